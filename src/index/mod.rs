//! The LevelDB index: which games reached a position, and what their headers say.
//!
//! `polybook make-book --leveldb DIR` writes it, [`Index`] reads it, and so does every front-end that
//! reads the index of polyglot's LevelDB fork. [`layout`] alone knows its keys and values.
//!
//! ```
//! use polybook::{MakeBook, index::Index, pgn::Input, position::{from_text, key}};
//!
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("index");
//! MakeBook::new([Input::file("data/famous.pgn")]).leveldb(&path).run()?;
//!
//! let index = Index::open(&path)?;
//! let evans = key(&from_text(None, Some("e4 e5 Nf3 Nc6 Bc4 Bc5 b4"))?);
//! for id in index.games(evans)?.iter() {
//!     let game = index.header(id)?;
//!     println!("{} - {}", game.white(), game.black());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod env;
mod games;
pub mod layout;
mod manifest;
pub(crate) mod posting;
mod read;
mod table;
mod text;
mod write;

use std::path::Path;

pub(crate) use self::{
    games::GameRecords,
    write::{IndexWriter, IndexedFile},
};
pub use self::{
    layout::{GameHeader, GameIds, PositionStats},
    read::Index,
};
use crate::error::{Error, Result};

/// Whether an index may be made where something is already: an empty directory always, an index with `force`.
///
/// # Errors
///
/// [`Error::File`] says why not.
pub(crate) fn check_replaceable(path: &Path, force: bool) -> Result<()> {
    let is_empty = path
        .read_dir()
        .is_ok_and(|mut entries| entries.next().is_none());
    if is_empty {
        return Ok(());
    }
    if !is_index(path) {
        return Err(Error::file(
            path,
            "exists and is not an index: name another directory",
        ));
    }
    if force {
        return Ok(());
    }
    Err(Error::exists(path))
}

/// Whether a directory is a LevelDB database and holds no other file.
fn is_index(path: &Path) -> bool {
    let Ok(entries) = path.read_dir() else {
        return false;
    };
    let is_of_leveldb = |name: &str| {
        matches!(name, "CURRENT" | "LOCK" | "LOG" | "LOG.old")
            || name.starts_with("MANIFEST-")
            || [".ldb", ".sst", ".log", ".dbtmp"]
                .iter()
                .any(|ending| name.ends_with(ending))
    };
    path.join("CURRENT").is_file()
        && entries.into_iter().all(|entry| {
            entry.is_ok_and(|entry| entry.file_name().to_str().is_some_and(is_of_leveldb))
        })
}

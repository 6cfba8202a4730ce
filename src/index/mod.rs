//! The LevelDB index: the games that reached each position, and the headers of the games.
//!
//! `polybook make-book --leveldb DIR` writes an index. [`Index`] reads it, and so do front-ends that read the index of
//! polyglot's LevelDB fork. [`layout`] defines the keys and values. Entries are written in ascending order of keys:
//! sorted records are divided into pieces, threads turn the pieces into batches of entries, and one thread cuts the
//! batches into tables.
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
//! for id in index.games(evans)? {
//!     let game = index.header(id)?;
//!     println!("{} - {}", game.tag("White"), game.tag("Black"));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod entries;
pub(crate) mod explored;
mod games;
pub mod layout;
mod leveldb;
mod merge;
mod pieces;
mod positions;
pub(crate) mod posting;
mod read;
mod replace;
mod second_opinion;
mod tables;
mod text;
mod verify;
mod waves;
mod write;

pub(crate) use self::replace::remove;
pub(crate) use self::{
    games::GameRecords,
    waves::IndexedFile,
    write::{CountedSource, ExploredData, IndexSource, IndexWriter},
};
pub use self::{
    layout::{GameHeader, PositionStats},
    merge::MergeIndexes,
    read::Index,
    replace::is_index,
    verify::{IndexFault, VerifiedIndex, verify},
    write::MergedIndex,
};

//! Indexes of games by position: the index of polyglot's LevelDB fork, and the [explorer](crate::explorer)'s index.
//!
//! `polybook make-book --leveldb DIR` writes the index of the fork, which other front-ends read, and
//! `make-book --explorer DIR` the explorer's index. [`Index`] reads both, and [`IndexKind`] says which it is. Both are
//! LevelDB databases, and [`layout`] defines their keys and values. Entries are written in ascending order of keys:
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
mod entry_batches;
mod games;
pub mod layout;
mod merge;
mod pieces;
mod positions;
pub(crate) mod posting;
mod read;
mod replace;
mod second_opinion;
pub mod store;
mod tables;
mod text;
mod verify;
mod write;

pub(crate) use self::replace::remove;
pub(crate) use self::{
    entry_batches::IndexedFile,
    games::GameRecords,
    write::{CountedSource, IndexSource, IndexWriter, StoreSource},
};
pub use self::{
    layout::{GameHeader, PositionStats},
    merge::MergeIndexes,
    read::{Index, IndexKind},
    replace::is_index,
    verify::{IndexFault, VerifiedIndex, verify},
    write::MergedIndex,
};

//! Opens, writes and verifies indexes, which find games or results by position. These are the index of polyglot's
//! LevelDB fork and the index of the [explorer](crate::explore::explorer).
//!
//! There are three kinds, all LevelDB databases:
//!
//! | index | made by | contains | layout |
//! |---|---|---|---|
//! | of the fork | `make-book --leveldb DIR` | the games of each position, for other front-ends | [`fork_index`](super::fork_index) |
//! | of games | `make-book --explorer DIR` from PGN | the games of each position with their moves, and the names, ratings and dates of games | [`explorer_index`](super::explorer_index) |
//! | of counts | `make-book --explorer DIR` from counts directories | the results of each move by speed, rating group and month, without games | [`explorer_index`](super::explorer_index) |
//!
//! [`Index`] opens an index of any kind, and [`IndexKind`] tells the kind. An [`Index`] looks up entries, but does not
//! evaluate filters. The [`Explorer`](crate::explore::explorer::Explorer) opens indexes of games and of counts, and
//! answers queries with filters.
//!
//! Entries are written in ascending order of keys: sorted records are divided into ranges, several threads convert the
//! ranges to batches of entries, and one thread divides the batches into tables. The number of threads therefore does
//! not affect the content of an index.
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

mod read;
mod verify;
mod write;

pub(crate) use self::write::remove;
#[cfg(feature = "serve")]
pub(crate) use self::write::remove_unfinished;
pub use self::{
    read::{Index, IndexKind},
    verify::{IndexFault, VerifiedIndex, verify},
    write::is_index,
};
pub(crate) use self::{
    read::{ListLocation, StoredPart},
    write::{CountedSource, GameRecords, IndexSource, IndexWriter, StoreSource},
};
pub use super::fork_index::{GameHeader, PositionStats};

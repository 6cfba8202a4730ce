//! Trees of moves: what can be reached from a position by the moves of a book, a database or an index, each position
//! once.
//!
//! A [`Source`] knows the moves of a position. A [`Tree`] is walked from position to position, and written as PGN, text
//! or JSON lines while it is walked, so that it may be larger than memory.
//!
//! ```
//! use polybook::{
//!     MakeBook, book::Book, pgn::Input, position::Variant, progress::Meter,
//!     tree::{Limits, Tree},
//! };
//!
//! # let dir = tempfile::tempdir()?;
//! # let bin = dir.path().join("book.bin");
//! MakeBook::new([Input::file("data/famous.pgn")]).max_ply(2).min_game(6).bin(&bin).run()?;
//! let mut text = Vec::new();
//! let book = Book::open(&bin)?;
//! let meter = Meter::default();
//! Tree::new(&book, Variant::Standard.start(), Limits::default(), &meter).write_text(&mut text, &bin)?;
//! let text = String::from_utf8(text)?;
//! assert!(text.starts_with("1. e4 "), "{text}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod find;
mod games;
mod jsonl;
mod pgn;
mod replace;
mod source;
mod text;
mod walk;

pub(crate) use self::games::{GameWriter, move_number};
pub use self::source::Explored;
pub use self::{
    find::{FoundPositions, Wanted},
    replace::{Format, check_replaceable},
    source::{LinesOf, Replies, Source, TreeMove, Union},
    walk::{Branch, Event, Limits, Order, Tree},
};

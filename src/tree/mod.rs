//! Trees of moves: what can be reached from a position by the moves of a book, a database or an index, each position
//! once.
//!
//! A [`Source`] knows the moves of a position, [`walk`] goes from position to position, and [`write_pgn`],
//! [`write_text`] and `write_jsonl` print what it comes to while it goes, so that a tree may be larger than memory.
//!
//! ```
//! use polybook::{
//!     MakeBook, book::Book, pgn::Input, position::Variant,
//!     tree::{Limits, write_text},
//! };
//!
//! # let dir = tempfile::tempdir()?;
//! # let bin = dir.path().join("book.bin");
//! MakeBook::new([Input::file("data/famous.pgn")]).max_ply(2).min_game(6).bin(&bin).run()?;
//! let mut text = Vec::new();
//! let book = Book::open(&bin)?;
//! write_text(&book, &Variant::Standard.start(), &Limits::default(), &mut text, &bin)?;
//! let text = String::from_utf8(text)?;
//! assert!(text.starts_with("1. e4 "), "{text}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod games;
#[cfg(feature = "serde")]
mod jsonl;
mod pgn;
mod replace;
mod source;
mod text;
mod walk;

#[cfg(feature = "obs")]
pub(crate) use self::games::{GameWriter, move_number};
#[cfg(feature = "serde")]
pub use self::jsonl::write_jsonl;
pub use self::{
    pgn::write_pgn,
    replace::{Format, check_replaceable},
    source::{LinesOf, Replies, Source, TreeMove, Union},
    text::write_text,
    walk::{Branch, Event, Limits, Order, find, walk},
};

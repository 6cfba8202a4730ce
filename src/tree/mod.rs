//! Trees of moves: everything that can be reached from a position by the moves of a book, a database or an index.
//!
//! A [`Source`] returns the moves of a position. A [`Tree`] walks from position to position and continues each position
//! once. It is written as PGN, text or JSON lines during the walk, so it can be larger than memory.
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
mod source;
#[cfg(test)]
mod tests;
mod text;

pub use self::{
    find::{FoundPositions, Wanted, book_positions},
    source::Explored,
};
pub(crate) use self::{
    source::played,
    text::{GameWriter, move_number, push_move},
};
pub use crate::walk::{
    Branch, EvaluatedSource, Limits, LinesOf, Order, Replies, Source, Tree, TreeEvent, TreeMove,
    Union,
};

/// The format of a tree.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum TreeFormat {
    /// PGN: games with variations.
    Pgn,
    /// Text: one move a line, indented by its depth.
    Text,
    /// JSON lines: one document for each position.
    Jsonl,
}

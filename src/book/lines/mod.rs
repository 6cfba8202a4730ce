//! The lines of a book: what one side can play from the starting position by the book, against every
//! reply after which the book still has a move.
//!
//! A line ends where the book ends, and at a position that was already in it or in an earlier
//! line. [`count`] gives the numbers of `polyglot info-book`, [`reachable`] those of its option
//! `-exact`, and [`write()`] the lines of `polyglot dump-book`.
//!
//! The book itself may stay in its file. [`count`] and [`reachable`] take a bit for each record of the
//! book, and some 16 bytes for each position on a line that the book has no move for; [`write()`]
//! takes some 50 bytes for each position on the lines that it writes.

mod count;
mod dump;
mod exact;
mod knowledge;
mod reached;
mod seen;

pub use self::{
    count::{Lines, count},
    dump::{DumpError, write},
    exact::{Reachable, reachable},
};
pub(super) use self::{
    knowledge::Knowledge,
    reached::{AscendingKeys, Reached, Way},
};

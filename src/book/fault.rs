//! What may be wrong with a book.

use std::fmt;

use super::header::HeaderError;

/// Something wrong with a book.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Fault {
    /// The size is not a multiple of 16: this many bytes are too many.
    Size {
        /// Bytes behind the last whole record.
        rest: usize,
    },
    /// The header is malformed.
    Header(HeaderError),
    /// The header has a checksum, and it is not that of the header and the records.
    Checksum,
    /// Keys do not ascend.
    Order {
        /// How many records have a smaller key than the one before.
        count: u64,
        /// The number of the first of them, from 0.
        first: u64,
    },
    /// Null records stand behind others.
    StrayNull {
        /// How many.
        count: u64,
        /// The first of them.
        first: u64,
    },
    /// A move stands more than once in a position.
    Twice {
        /// How many records are too many.
        count: u64,
        /// The first of them.
        first: u64,
    },
    /// Moves that cannot be moves.
    Move {
        /// How many.
        count: u64,
        /// The first of them.
        first: u64,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Size { rest } => {
                write!(
                    f,
                    "the size is not a multiple of 16: {rest} bytes are too many"
                )
            }
            Fault::Header(err) => write!(f, "{err}"),
            Fault::Checksum => write!(
                f,
                "the checksum in the header differs: the book is damaged, or another program changed it"
            ),
            Fault::Order { count, first } => {
                write!(
                    f,
                    "{count} records have smaller keys than the one before, first record {first}"
                )
            }
            Fault::StrayNull { count, first } => {
                write!(
                    f,
                    "{count} null records stand behind others, first record {first}"
                )
            }
            Fault::Twice { count, first } => {
                write!(
                    f,
                    "{count} records repeat a move of their position, first record {first}"
                )
            }
            Fault::Move { count, first } => {
                write!(f, "{count} records hold no move, first record {first}")
            }
        }
    }
}

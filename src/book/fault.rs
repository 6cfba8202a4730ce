//! What may be wrong with a book.

use std::fmt;

use super::header::HeaderError;

/// Something wrong with a book.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Fault {
    /// The size is not a multiple of 16: this many bytes are too many.
    Size {
        /// Bytes after the last whole record.
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
    /// Null records follow others.
    StrayNull {
        /// How many.
        count: u64,
        /// The first of them.
        first: u64,
    },
    /// A position has a move more than once.
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
                let bytes = if *rest == 1 { "byte is" } else { "bytes are" };
                write!(
                    f,
                    "the size is not a multiple of 16: {rest} {bytes} too many"
                )
            }
            Fault::Header(err) => write!(f, "{err}"),
            Fault::Checksum => write!(
                f,
                "the checksum in the header differs: the book is damaged, or another program changed it"
            ),
            Fault::Order { count, first } => {
                let records = records(*count, "has a smaller key", "have smaller keys");
                write!(f, "{records} than the one before, first record {first}")
            }
            Fault::StrayNull { count, first } => {
                let records = records(*count, "is null after others", "are null after others");
                write!(f, "{records}, first record {first}")
            }
            Fault::Twice { count, first } => {
                let records = records(*count, "repeats a move of its", "repeat a move of their");
                write!(f, "{records} position, first record {first}")
            }
            Fault::Move { count, first } => {
                let records = records(*count, "holds", "hold");
                write!(f, "{records} no move, first record {first}")
            }
        }
    }
}

/// A number of records with the text for one or for more.
fn records(count: u64, of_one: &str, of_more: &str) -> String {
    match count {
        1 => format!("1 record {of_one}"),
        _ => format!("{count} records {of_more}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_record_is_not_many() {
        let order = |count| Fault::Order { count, first: 7 }.to_string();
        assert_eq!(
            order(1),
            "1 record has a smaller key than the one before, first record 7"
        );
        assert_eq!(
            order(2),
            "2 records have smaller keys than the one before, first record 7"
        );
        assert_eq!(
            Fault::Size { rest: 1 }.to_string(),
            "the size is not a multiple of 16: 1 byte is too many"
        );
    }
}

//! What may be wrong with a header.

use thiserror::Error;

/// The longest header, its null byte included, that every program reads.
pub const PORTABLE_LENGTH: usize = 2048;

/// An error of a header, or of the values to make one from.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// The size of the file is not that of records, or their keys do not ascend.
    #[error("badly formatted file: {0}")]
    BadFormat(&'static str),
    /// There are no null records.
    #[error("no header")]
    NoHeader,
    /// A header was to be written from a file to the same file.
    #[error("input and output file are the same")]
    SameFile,
    /// A variant or comment that no header can hold.
    #[error("bad parameter: {0}")]
    BadParameter(String),
    /// Some programs read no more than [`PORTABLE_LENGTH`] bytes of a header, its null byte included.
    #[error(
        "the header would take {0} bytes, and {PORTABLE_LENGTH} is what every program reads: shorten the comment"
    )]
    TooLong(usize),
    /// There is a header, but it is malformed.
    #[error("bad header: {0}")]
    BadHeader(&'static str),
}

//! The errors of counts.

use thiserror::Error;

use super::Grouping;
use super::layout::VERSION;
use crate::error::reason;

/// An error in a file of counts.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum CountsError {
    /// The file is not Parquet or is damaged.
    #[error("this file is damaged, or is not a Parquet file: {0}; copy or make the file again")]
    Damaged(String),
    /// The operating system could not read the file.
    #[error("the file cannot be read: {0}")]
    Io(String),
    /// A page would take too much memory.
    #[error(
        "a page of this Parquet file has {bytes} bytes, but at most {most} bytes are allowed: write the file with \
             smaller pages"
    )]
    Page {
        /// The size of the page in bytes.
        bytes: u64,
        /// The greatest size that is read, in bytes.
        most: u64,
    },
    #[error(
        "the metadata of this Parquet file have {bytes} bytes, but at most {most} bytes are allowed: write the file \
         with larger row groups"
    )]
    /// The metadata would take too much memory.
    Metadata {
        /// The size of the metadata in bytes.
        bytes: u64,
        /// The greatest size that is read, in bytes.
        most: u64,
    },
    /// A column uses a compression that is not supported.
    #[error(
        "this Parquet file is compressed with {0}: write the file with zstd, snappy, gzip or no compression"
    )]
    Codec(&'static str),
    /// A required column is missing.
    #[error("this Parquet file has no column \"{0}\"")]
    NoColumn(&'static str),
    /// Several columns have the same name.
    #[error("this Parquet file has several columns named \"{0}\": keep only one of the columns")]
    Columns(&'static str),
    /// A column has the wrong type.
    #[error("the column \"{column}\" has the type {found}, but must be {wanted}: cast the column")]
    Type {
        /// The name of the column.
        column: &'static str,
        /// The type of the column.
        found: String,
        /// The type that the column must have.
        wanted: &'static str,
    },
    /// A column contains a null.
    #[error(
        "the column \"{column}\" contains a null in row {row} or soon after: write a value in every row"
    )]
    Null {
        /// The name of the column.
        column: &'static str,
        /// The number of the first row of the batch that contains the null, counted from 0.
        row: u64,
    },
    /// A row has an invalid number.
    #[error("row {row}: \"{column}\" is {value}, which is impossible: correct the row")]
    Value {
        /// The name of the column.
        column: &'static str,
        /// The number of the row, counted from 0.
        row: u64,
        /// The invalid number.
        value: i64,
    },
    /// A row of `starts.parquet` has an invalid EPD.
    #[error("row {row}: \"{epd}\" is not a position: {reason}")]
    Start {
        /// The number of the row, counted from 0.
        row: u64,
        /// The beginning of the EPD.
        epd: String,
        /// The reason why the EPD is invalid.
        reason: String,
    },
    #[error(
        "row {0} is not in the order that the file declares in sorting_columns: sort the rows, or write the file \
         without sorting_columns"
    )]
    /// A row is out of the order that its file states. Holds the number of the row, counted from 0.
    Order(u64),
    /// Two rows of a position have different sides to move. Holds the number of the second row, counted from 0.
    #[error(
        "row {0}: \"black\" differs from the row before, although both rows have the same key: correct one of the \
             two rows"
    )]
    Side(u64),
    #[error(
        "the inputs have different values of \"black\" for the key {0}: make the counts with the wrong value again"
    )]
    /// Several directories have different sides to move for a position. Holds the position's key.
    Sides(i64),
    #[error(
        "row {0} is not in order: sort the rows by key, move and identity, and write all rows of a key to one Parquet \
         file"
    )]
    /// A row of counts by class is out of order, or two parts share keys. Holds the number of the row, counted from 0,
    /// or 0 if two parts share keys.
    ClassOrder(u64),
    #[error(
        "the columns of this Parquet file are those of --by {found}, but other files have those of --by {expected}: \
         count all games with the same --by"
    )]
    /// Two parts have columns of different classes.
    Classes {
        /// The classes of the part.
        found: Grouping,
        /// The classes of the parts before it.
        expected: Grouping,
    },
    #[error(
        "the numbers of games add up to more than 2^63, or to more than 2^61 for one move, which is impossible: \
         correct the rows"
    )]
    /// The number of games exceeds what sums can hold.
    Overflow,
    /// The size or a number of the file differs from what the sidecar `counts.json` states.
    #[error(
        "this file has {found} {what}, but counts.json states {expected}: copy or make the file again"
    )]
    Differs {
        /// The unit of the numbers that differ: bytes, rows or half-moves.
        what: &'static str,
        /// The number that the file has.
        found: u64,
        /// The number that the sidecar states.
        expected: u64,
    },
    /// The checksum of the file differs from the one that the sidecar states.
    #[error(
        "the checksum of this file differs from the checksum in counts.json: copy or make the file again"
    )]
    Altered,
    /// The sidecar lists a file that does not exist.
    #[error(
        "this file is missing, although counts.json lists the file: copy or make the file again"
    )]
    Missing,
    /// The sidecar does not list a part that exists.
    #[error("counts.json does not list this file: remove the file, or make the counts again")]
    Unlisted,
    /// The sidecar is malformed or contradicts itself. Holds the reason.
    #[error("this file does not describe counts of polybook: {0}")]
    Sidecar(String),
    /// The sidecar has a version that this polybook does not read. Holds that version.
    #[error("the counts have version {0} of the format, but this polybook reads version {VERSION}: {advice}", advice = other_version(.0))]
    Version(u32),
    #[error(
        "these counts have no rows with the move 0, which mark the ends of games, but other inputs have such rows: \
         keep these rows in all counts, or leave them out of all"
    )]
    /// The counts lack rows of games that end in a position, and other counts to be added to them have such rows.
    NoEnds,
    /// A part has a column of identities, as counts of variants do, although no variant was named.
    #[error(
        "this Parquet file has a column \"identity\", so its counts are of a variant: name the variant with \
             --variant"
    )]
    Identity,
    /// A part of the counts of a variant lacks the column of identities, which distinguishes positions with equal keys.
    #[error("this Parquet file has no column \"identity\", which counts of a variant must have")]
    NoIdentity,
}

/// Returns advice for counts whose layout has the version `version`, which this version of polybook cannot read. The
/// advice depends on whether the counts are older or newer.
fn other_version(version: &u32) -> &'static str {
    match *version < VERSION {
        true => "count the games again",
        false => "use a newer polybook",
    }
}

impl From<std::io::Error> for CountsError {
    fn from(err: std::io::Error) -> CountsError {
        let own = err.get_ref().and_then(|own| own.downcast_ref());
        match own {
            Some(own) => CountsError::clone(own),
            // Only errors of the operating system have a number; the others are of a decoder.
            None if err.raw_os_error().is_some() => CountsError::Io(reason(&err)),
            None => CountsError::Damaged(err.to_string()),
        }
    }
}

impl From<parquet::errors::ParquetError> for CountsError {
    fn from(err: parquet::errors::ParquetError) -> CountsError {
        match err {
            parquet::errors::ParquetError::External(inner) => match inner.downcast() {
                Ok(err) => std::io::Error::into(*err),
                Err(other) => CountsError::Damaged(other.to_string()),
            },
            err => CountsError::Damaged(err.to_string()),
        }
    }
}

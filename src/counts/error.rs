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
    #[error("damaged, or not Parquet: {0}; copy or make it again")]
    Damaged(String),
    /// The operating system could not read the file.
    #[error("cannot be read: {0}")]
    Io(String),
    /// A page would take too much memory.
    #[error("a page of {bytes} bytes, and {most} are read at most: write it with smaller pages")]
    Page {
        /// The size of the page in bytes.
        bytes: u64,
        /// The greatest size that is read, in bytes.
        most: u64,
    },
    #[error(
        "metadata of {bytes} bytes, and {most} are read at most: write it with larger row groups"
    )]
    /// The metadata would take too much memory.
    Metadata {
        /// The size of the metadata in bytes.
        bytes: u64,
        /// The greatest size that is read, in bytes.
        most: u64,
    },
    /// A column uses a compression that is not supported.
    #[error("compressed with {0}: write it with zstd, snappy, gzip or no compression")]
    Codec(&'static str),
    /// A required column is missing.
    #[error("no column \"{0}\"")]
    NoColumn(&'static str),
    /// Several columns have the same name.
    #[error("several columns \"{0}\": leave one")]
    Columns(&'static str),
    /// A column has the wrong type.
    #[error("column \"{column}\" is {found}, and has to be {wanted}: cast it")]
    Type {
        /// The name of the column.
        column: &'static str,
        /// The type of the column.
        found: String,
        /// The type that the column must have.
        wanted: &'static str,
    },
    /// A column contains a null.
    #[error("column \"{column}\" has a null in row {row} or soon after")]
    Null {
        /// The name of the column.
        column: &'static str,
        /// The number of the first row of the batch that contains the null, counted from 0.
        row: u64,
    },
    /// A row has an invalid number.
    #[error("row {row}: \"{column}\" is {value}, which cannot be")]
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
        "row {0} is out of the order that the file states: sort the rows, or write the file without sorting_columns"
    )]
    /// A row is out of the order that its file states. Holds the number of the row, counted from 0.
    Order(u64),
    /// Two rows of a position have different sides to move. Holds the number of the second row, counted from 0.
    #[error("row {0}: \"black\" is not that of the row before, which has the same key")]
    Side(u64),
    #[error(
        "\"black\" is not the same in all inputs where \"key\" is {0}: make the counts again in which it is wrong"
    )]
    /// Several directories have different sides to move for a position. Holds the position's key.
    Sides(i64),
    #[error(
        "row {0} is out of order: sort the rows of counts by class by key, move and identity, each key in one part"
    )]
    /// A row of counts by class is out of order, or two parts share keys. Holds the number of the row, counted from 0,
    /// or 0 if two parts share keys.
    ClassOrder(u64),
    #[error(
        "its columns are those of --by {found}, and other parts are by {expected}: count all with the same"
    )]
    /// Two parts have columns of different classes.
    Classes {
        /// The classes of the part.
        found: Grouping,
        /// The classes of the parts before it.
        expected: Grouping,
    },
    #[error(
        "the games of all rows add up to more than 2^63, or those of a move to more than 2^61, which cannot be"
    )]
    /// The number of games exceeds what sums can hold.
    Overflow,
    /// The size or a number of the file differs from what the sidecar `counts.json` states.
    #[error("{found} {what}, where counts.json says {expected}: copy or make it again")]
    Differs {
        /// The unit of the numbers that differ: bytes, rows or half-moves.
        what: &'static str,
        /// The number that the file has.
        found: u64,
        /// The number that the sidecar states.
        expected: u64,
    },
    /// The checksum of the file differs from the one that the sidecar states.
    #[error("its checksum differs from that in counts.json: copy or make it again")]
    Altered,
    /// The sidecar lists a file that does not exist.
    #[error("missing, but counts.json lists it: copy or make it again")]
    Missing,
    /// The sidecar does not list a part that exists.
    #[error("counts.json does not list it: remove it, or make the counts again")]
    Unlisted,
    /// The sidecar is malformed or contradicts itself. Holds the reason.
    #[error("not a description of counts: {0}")]
    Sidecar(String),
    /// The sidecar has a version that this polybook does not read. Holds that version.
    #[error("counts of version {0}, and this polybook reads version {VERSION}: {advice}", advice = other_version(.0))]
    Version(u32),
    #[error(
        "no \"move\" is 0, as for games that end in a position, and other inputs have such rows: keep them in all counts, or \
         leave them out of all"
    )]
    /// The counts lack rows of games that end in a position, and other counts to be added to them have such rows.
    NoEnds,
    /// A part has a column of identities, as counts of variants do, although no variant was named.
    #[error("a column \"identity\", which counts of variants have: name theirs with --variant")]
    Identity,
    /// A part of the counts of a variant lacks the column of identities, which distinguishes positions with equal keys.
    #[error("no column \"identity\", which counts of variants have")]
    NoIdentity,
}

/// Returns advice for counts whose layout has the version `version`, which this version of polybook cannot read. The
/// advice depends on whether the counts are older or newer.
fn other_version(version: &u32) -> &'static str {
    match *version < VERSION {
        true => "count the games again",
        false => "take a newer polybook",
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

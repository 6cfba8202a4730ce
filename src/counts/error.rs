//! The errors of counts.

use thiserror::Error;

use super::layout::VERSION;
use crate::{error::reason, tally::By};

/// What is wrong with a file of counts.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum CountsError {
    /// Parquet that cannot be read.
    #[error("damaged, or not Parquet: {0}; copy or make it again")]
    Damaged(String),
    /// The operating system could not read the file.
    #[error("cannot be read: {0}")]
    Io(String),
    /// A page that would take too much memory.
    #[error("a page of {bytes} bytes, and {most} are read at most: write it with smaller pages")]
    Page {
        /// How many bytes it has.
        bytes: u64,
        /// How many it may have.
        most: u64,
    },
    /// Metadata that would take too much memory.
    #[error(
        "metadata of {bytes} bytes, and {most} are read at most: write it with larger row groups"
    )]
    Metadata {
        /// How many bytes they have.
        bytes: u64,
        /// How many they may have.
        most: u64,
    },
    /// A compression that is not read.
    #[error("compressed with {0}: write it with zstd, snappy, gzip or no compression")]
    Codec(&'static str),
    /// A column that is not there.
    #[error("no column \"{0}\"")]
    NoColumn(&'static str),
    /// A column that is there more than once.
    #[error("several columns \"{0}\": leave one")]
    Columns(&'static str),
    /// A column of another type.
    #[error("column \"{column}\" is {found}, and has to be {wanted}: cast it")]
    Type {
        /// The name of the column.
        column: &'static str,
        /// What it is.
        found: String,
        /// What it should be.
        wanted: &'static str,
    },
    /// A value that is missing.
    #[error("column \"{column}\" has a null in row {row} or soon after")]
    Null {
        /// The name of the column.
        column: &'static str,
        /// The first row of those that were read together, counted from 0.
        row: u64,
    },
    /// A number that cannot be.
    #[error("row {row}: \"{column}\" is {value}, which cannot be")]
    Value {
        /// The name of the column.
        column: &'static str,
        /// The row, counted from 0.
        row: u64,
        /// The number.
        value: i64,
    },
    /// An EPD that is not a position.
    #[error("row {row}: \"{epd}\" is not a position: {reason}")]
    Start {
        /// The row, counted from 0.
        row: u64,
        /// The text.
        epd: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Rows that are not in the order that their file states.
    #[error(
        "row {0} is out of the order that the file states: sort the rows, or write the file without sorting_columns"
    )]
    Order(u64),
    /// Rows of a position with different sides to move.
    #[error("row {0}: \"black\" is not that of the row before, which has the same key")]
    Side(u64),
    /// Rows of a position with different sides to move in several directories.
    #[error(
        "\"black\" is not the same in all inputs where \"key\" is {0}: make the counts again in which it is wrong"
    )]
    Sides(i64),
    /// Rows of counts by class that are not in order, or parts that share keys.
    #[error(
        "row {0} is out of order: sort the rows of counts by class by key, move and identity, each key in one part"
    )]
    ClassOrder(u64),
    /// Parts of different classes.
    #[error(
        "its columns are those of --by {found}, and other parts are by {expected}: count all with the same"
    )]
    Classes {
        /// The classes of the part.
        found: By,
        /// Those of the parts before it.
        expected: By,
    },
    /// More games than numbers reach.
    #[error(
        "the games of all rows add up to more than 2^63, or those of a move to more than 2^61, which cannot be"
    )]
    Overflow,
    /// A part with other content than the sidecar says.
    #[error("{found} {what}, where counts.json says {expected}: copy or make it again")]
    Differs {
        /// Rows or games.
        what: &'static str,
        /// How many there are.
        found: u64,
        /// How many there should be.
        expected: u64,
    },
    /// A part with other bytes than the sidecar says.
    #[error("its checksum differs from that in counts.json: copy or make it again")]
    Altered,
    /// A part that the sidecar lists and that is not there.
    #[error("missing, but counts.json lists it: copy or make it again")]
    Missing,
    /// A part that the sidecar does not list.
    #[error("counts.json does not list it: remove it, or make the counts again")]
    Unlisted,
    /// A sidecar that cannot be understood.
    #[error("not a description of counts: {0}")]
    Sidecar(String),
    /// A sidecar of another version.
    #[error("counts of version {0}, and this polybook reads version {VERSION}: {advice}", advice = other_version(.0))]
    Version(u32),
    /// Counts without the games that end in a position, to be added to counts that have them.
    #[error(
        "no \"move\" is 0, as for games that end in a position, and other inputs have such rows: keep them in all counts, or \
         leave them out of all"
    )]
    NoEnds,
    /// A part of a variant that is not named.
    #[error("a column \"identity\", which counts of variants have: name theirs with --variant")]
    Identity,
    /// A part of a variant without the column that separates positions with equal keys.
    #[error("no column \"identity\", which counts of variants have")]
    NoIdentity,
}

/// Returns what to do about counts of another version.
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

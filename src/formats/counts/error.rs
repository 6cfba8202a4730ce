//! The errors that occur when a counts directory is read.

use thiserror::Error;

use super::Grouping;
use super::layout::VERSION;
use crate::error::reason;

/// An error in a file of a counts directory. For example, the file is damaged, lacks a column or contains an invalid
/// row.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum CountsError {
    /// The file is not Parquet or is damaged.
    #[error("this file is damaged, or is not a Parquet file: {0}; copy or make the file again")]
    Damaged(String),
    /// The operating system could not read the file.
    #[error("the file cannot be read: {0}")]
    Io(String),
    /// A page of a Parquet file is so large that reading it would take too much memory.
    #[error(
        "a page of this Parquet file has {bytes} bytes, but at most {most} bytes are allowed: write the file with \
             smaller pages"
    )]
    Page {
        /// The size of the page in bytes.
        bytes: u64,
        /// The maximum allowed size in bytes.
        most: u64,
    },
    #[error(
        "the metadata of this Parquet file have {bytes} bytes, but at most {most} bytes are allowed: write the file \
         with larger row groups"
    )]
    /// The metadata of a Parquet file is so large that parsing it would take too much memory.
    Metadata {
        /// The size of the metadata in bytes.
        bytes: u64,
        /// The maximum allowed size in bytes.
        most: u64,
    },
    /// A column is compressed with a method that is not supported. Holds the name of the method.
    #[error(
        "this Parquet file is compressed with {0}: write the file with zstd, snappy, gzip or no compression"
    )]
    Codec(&'static str),
    /// A required column is missing. Holds the name of the column.
    #[error("this Parquet file has no column \"{0}\"")]
    NoColumn(&'static str),
    /// Several columns have the same name. Holds the name.
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
    /// A column contains a null value.
    #[error(
        "the column \"{column}\" contains a null in row {row} or soon after: write a value in every row"
    )]
    Null {
        /// The name of the column.
        column: &'static str,
        /// The number of the first row, counted from 0, in the batch of rows that contains the null.
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
    /// A row of `_starts.pq` has an invalid EPD.
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
    /// A row violates the sort order that the file's metadata declares. Holds the number of the row, counted from 0.
    Order(u64),
    /// Two rows of the same position disagree about the side to move. Holds the number of the second row, counted from
    /// 0.
    #[error(
        "row {0}: \"black\" differs from the row before, although both rows have the same key: correct one of the \
             two rows"
    )]
    Side(u64),
    #[error(
        "the inputs have different values of \"black\" for the key {0}: make the counts with the wrong value again"
    )]
    /// Two counts directories disagree about the side to move in a position. Holds the key of the position.
    Sides(i64),
    #[error(
        "row {0} is not in order: sort the rows by key, move and identity, and write all rows of a key to one Parquet \
         file"
    )]
    /// A row is out of order, or two files contain the same key. This is an error only if the rows are grouped by class
    /// (speed, rating group and month). Holds the number of the row, counted from 0, or 0 if two files contain the same
    /// key.
    ClassOrder(u64),
    /// The column `key` is unsigned, although the rows are grouped by class (speed, rating group and month), so that
    /// they must be sorted by signed keys.
    #[error(
        "the column \"key\" is unsigned: cast the column to signed numbers of 64 bits, and then sort the rows by key, \
         move and identity"
    )]
    UnsignedKeys,
    #[error(
        "the columns of this Parquet file are those of counts by {found}, but other files have those of counts by \
         {expected}: count all games by the same properties"
    )]
    /// Two files are grouped by different properties of games (speed, rating group and month).
    Classes {
        /// The properties by which the file is grouped.
        found: Grouping,
        /// The properties by which the files before it are grouped.
        expected: Grouping,
    },
    #[error(
        "the numbers of games add up to more than 2^63, or to more than 2^61 for one move, which is impossible: \
         correct the rows"
    )]
    /// The sum of the numbers of games is too large for 64 bits.
    Overflow,
    /// The size of the file, or the number of its rows or half-moves, differs from the number in `_counts.json`.
    #[error(
        "this file has {found} {what}, but _counts.json states {expected}: copy or make the file again"
    )]
    Differs {
        /// The unit of the two numbers: `bytes`, `rows` or `half-moves`.
        what: &'static str,
        /// The actual number in the file.
        found: u64,
        /// The number in `_counts.json`.
        expected: u64,
    },
    /// The checksum of the file differs from the checksum in `_counts.json`.
    #[error(
        "the checksum of this file differs from the checksum in _counts.json: copy or make the file again"
    )]
    Altered,
    /// A file that `_counts.json` lists does not exist.
    #[error(
        "this file is missing, although _counts.json lists the file: copy or make the file again"
    )]
    Missing,
    /// A Parquet file exists that `_counts.json` does not list.
    #[error("_counts.json does not list this file: remove the file, or make the counts again")]
    Unlisted,
    /// The file `_counts.json` is malformed or contradicts itself. Holds the reason.
    #[error("this file does not describe counts of polybook: {0}")]
    Sidecar(String),
    /// The counts directory has a version of the format that this polybook cannot read. Holds the version.
    #[error("the counts use version {0} of the format, but this polybook reads version {VERSION}{advice}", advice = other_version(.0))]
    Version(u32),
    #[error(
        "these counts have no rows with the move 0, which mark the ends of games, but other inputs have such rows: \
         keep these rows in all counts, or leave them out of all"
    )]
    /// A counts directory contains no rows for games that ended in a position, although other inputs of the merge
    /// contain such rows.
    NoEnds,
    /// A file has a column of identities, so it contains games of a chess variant, but no variant was named.
    #[error(
        "this Parquet file has a column \"identity\", so it contains counts of a variant: name the variant"
    )]
    Identity,
    /// A file with games of a chess variant lacks the column of identities. Identities distinguish positions with equal
    /// keys.
    #[error(
        "this Parquet file has no column \"identity\", which is required in counts of a variant"
    )]
    NoIdentity,
}

/// Returns the end of the error message about a counts directory with the unsupported format version `version`. An
/// older directory must be made again. A newer one needs a newer polybook.
fn other_version(version: &u32) -> &'static str {
    if *version < VERSION {
        ": count the games again"
    } else {
        ""
    }
}

impl From<std::io::Error> for CountsError {
    fn from(err: std::io::Error) -> CountsError {
        let own = err.get_ref().and_then(|own| own.downcast_ref());
        match own {
            Some(own) => CountsError::clone(own),
            // Only errors of the operating system have a number. All others come from a decoder.
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

//! Files and records, without formats: everything that keeps more data than fits into memory, and everything that
//! writes an output.
//!
//! [`output`] writes outputs under temporary names and renames them together. The private modules sort data that spills
//! to temporary files, find records of fixed size by their keys, read and write at an offset, add up checksums, and
//! write tables as Parquet files.

pub(crate) mod checksum;
pub(crate) mod keyed;
#[cfg(feature = "games")]
pub mod output;
#[cfg(feature = "parquet")]
pub(crate) mod parquet_table;
pub(crate) mod positioned;
#[cfg(feature = "games")]
pub(crate) mod sort;

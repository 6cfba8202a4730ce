//! Storage that knows nothing about file formats: sorting of data that exceeds memory, and safe writing of output
//! files.
//!
//! [`output`] writes output files under temporary names and renames them together at the end. The private modules
//! sort data and spill it to temporary files, look up records of a fixed size by key, read and write at file offsets,
//! and compute checksums. [`table`] writes tables as CSV, JSON lines and Parquet files.

pub(crate) mod checksum;
#[cfg(feature = "obs")]
pub(crate) mod column;
pub(crate) mod keyed;
#[cfg(feature = "games")]
pub mod output;
#[cfg(feature = "parquet")]
pub(crate) mod parquet_table;
pub(crate) mod positioned;
#[cfg(feature = "games")]
pub(crate) mod sort;
#[cfg(feature = "obs")]
pub mod table;

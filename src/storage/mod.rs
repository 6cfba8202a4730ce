//! Storage that is independent of file formats: sorts data that exceeds memory, and writes output files safely.
//!
//! [`output`] writes output files under temporary names, and renames them together at the end. [`table`] writes tables
//! as CSV, JSON lines and Parquet files. The private modules sort data with temporary files, look up fixed-size records
//! by key, read and write files at given offsets, and compute checksums.

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

//! Reads, writes, merges and verifies the formats of files that contain positions.

pub mod book;
#[cfg(feature = "games")]
pub mod counts;
#[cfg(feature = "games")]
pub mod evals;
#[cfg(feature = "games")]
pub mod explorer_index;
#[cfg(feature = "games")]
pub mod fork_index;
#[cfg(feature = "games")]
pub mod index;
#[cfg(feature = "games")]
pub(crate) mod leveldb;
#[cfg(feature = "obs")]
pub mod obs;
#[cfg(feature = "games")]
pub mod suite;
#[cfg(feature = "games")]
pub(crate) mod walk;

//! Files that contain positions: how each format is laid out, opened, written, merged and verified.

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

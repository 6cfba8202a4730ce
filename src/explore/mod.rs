//! Answers to questions about positions: the explorer's queries, trees, repertoires and practising them, and a UCI engine.

pub mod engine;
pub mod explorer;
#[cfg(all(feature = "obs", feature = "parquet"))]
pub mod practice;
#[cfg(all(feature = "obs", feature = "parquet"))]
pub mod repertoire;
pub mod tree;

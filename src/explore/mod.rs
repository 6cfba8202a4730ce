//! Answers questions about positions: with the opening explorer, trees of moves, repertoires and their practice, and a
//! UCI engine.

pub mod engine;
pub mod explorer;
#[cfg(all(feature = "obs", feature = "parquet"))]
pub mod practice;
#[cfg(all(feature = "obs", feature = "parquet"))]
pub mod repertoire;
pub mod tree;

//! Games in PGN: reading, selecting and writing them, and the names of their openings.

pub mod board_query;
#[cfg(feature = "download")]
pub mod download;
pub mod openings;
pub mod pgn;
pub mod results;
pub mod selection;

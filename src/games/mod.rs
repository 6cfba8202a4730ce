//! Chess games in PGN: reads, selects and writes games, and names their openings.

pub mod board_query;
#[cfg(feature = "download")]
pub mod download;
pub mod openings;
pub mod pgn;
pub mod results;
pub mod selection;

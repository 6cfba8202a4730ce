//! Positions, moves, variants and notation, and the protocol between engines and programs.

pub mod position;
#[cfg(feature = "games")]
pub(crate) mod uci;

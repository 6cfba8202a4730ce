//! Chess positions, moves, variants and notation, and the UCI protocol between engines and programs.

pub mod position;
#[cfg(feature = "games")]
pub(crate) mod uci;

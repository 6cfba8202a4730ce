//! A move and its games.

use super::stats::Stats;
use crate::position::BookMove;

/// A move of a position and its games.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct MoveCount {
    /// The move.
    pub mv: BookMove,
    /// The games in which it was played.
    pub stats: Stats,
}

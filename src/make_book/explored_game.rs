//! Games as the explorer's data needs them.

use shakmaty::Color;

use crate::{
    pgn::GameResult,
    position::{BookMove, Variant},
};

/// A game that counts, as the explorer sees it.
pub(super) struct ExploredGame<'a> {
    /// Its number in the batch.
    pub id: u32,
    pub variant: Variant,
    pub result: GameResult,
    /// How many half-moves it has, also those that do not count.
    pub plies: usize,
    /// Who moved first.
    pub first_turn: Color,
    /// The [identity](crate::position::Keyed::identity) of the position before each move, and the move.
    pub moves: &'a [(u64, BookMove)],
    /// The identity of the last position.
    pub last: u64,
}

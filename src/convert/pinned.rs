//! Polyglot keys of EPDs without the en passant square of a pinned pawn.
//!
//! A Polyglot key has the file of a pawn that has just made a double step if an enemy pawn stands beside it, even if that
//! pawn is pinned. An EPD has the square only if the capture is legal. The rows of the database show whether such an EPD
//! follows a double step: one of them may be that step.

use shakmaty::{EnPassantMode, Move, Position, Role, Square, variant::VariantPosition};

use crate::{
    error::Result,
    position::{BookMove, en_passant_part, key},
    tally::{CountBatch, Counts, Stats, Tally},
};

/// Positions whose counts are added together.
const BATCH: u64 = 1 << 14;

/// The square on which only pinned pawns are ready to take en passant.
pub(super) fn pinned_square(pos: &VariantPosition) -> Option<Square> {
    let square = pos.ep_square(EnPassantMode::PseudoLegal)?;
    let is_legal = pos.ep_square(EnPassantMode::Legal).is_some();
    (!is_legal && pos.pockets().is_none()).then_some(square)
}

/// Notes a double step of a row after which only pinned pawns are ready to take.
pub(super) fn note_step(pos: &VariantPosition, mv: BookMove, notes: &mut CountBatch) {
    let Some(
        mv @ Move::Normal {
            role: Role::Pawn,
            from,
            to,
            ..
        },
    ) = mv.to_move(pos)
    else {
        return;
    };
    if from.rank().distance(to.rank()) != 2 {
        return;
    }
    let mut next = pos.clone();
    next.play_unchecked(mv);
    if let Some(square) = pinned_square(&next) {
        let without = key(&next) ^ en_passant_part(square);
        notes.push(without, step_note(square), next.turn(), Stats::default());
    }
}

/// A move that is none, which notes that a position was reached by a step over a square.
fn step_note(square: Square) -> BookMove {
    BookMove(square as u16 | (square as u16) << 6)
}

/// Adds the counts of positions that may hide a step. `exact` says that they hide none.
pub(super) fn add_hidden(hidden: &Counts, exact: bool, tally: &Tally) -> Result<()> {
    let (mut batch, mut positions) = (CountBatch::default(), 0);
    for position in hidden.positions() {
        let position = position?;
        let step = |mv: BookMove| {
            let square = Square::new(u32::from(mv.0 & 63));
            (mv == step_note(square)).then_some(square)
        };
        let noted = position.moves.iter().find_map(|count| step(count.mv));
        let key = match noted {
            Some(square) if !exact => position.key ^ en_passant_part(square),
            _ => position.key,
        };
        for count in position
            .moves
            .iter()
            .filter(|count| step(count.mv).is_none())
        {
            batch.push(key, count.mv, position.turn, count.stats);
        }
        positions += 1;
        if positions % BATCH == 0 {
            tally.add_batch(&std::mem::take(&mut batch))?;
        }
    }
    tally.add_batch(&batch)
}

//! Recovering the Polyglot keys of EPDs that lack the en passant square of a pinned pawn.
//!
//! The Polyglot key has the en passant file if a pawn has just made a double step and an enemy pawn stands beside it,
//! even if that pawn is pinned. An EPD has the square only if the capture is legal. So the key of such a position
//! cannot be computed from its EPD alone. Another row of the database may have the double step as its move: it shows
//! which key the games of the position had.

use shakmaty::{EnPassantMode, Move, Position, Role, Square, variant::VariantPosition};

use crate::{
    counts::{CountBatch, Counts, Stats, Tally},
    error::Result,
    position::{BookMove, en_passant_part, key},
};

/// The number of positions whose counts are added at a time.
const BATCH: u64 = 1 << 14;

/// Returns the en passant square of a position if only pinned pawns stand ready to capture there, otherwise `None`.
pub(super) fn pinned_square(pos: &VariantPosition) -> Option<Square> {
    let square = pos.ep_square(EnPassantMode::PseudoLegal)?;
    let is_legal = pos.ep_square(EnPassantMode::Legal).is_some();
    (!is_legal && pos.pockets().is_none()).then_some(square)
}

/// Adds a note to `notes` if a move is a double step after which only pinned pawns stand ready to capture. The note is
/// filed under the key without the en passant file.
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

/// Returns the note of a double step over a square: a move from the square to itself, which no move of a game is.
fn step_note(square: Square) -> BookMove {
    BookMove(square as u16 | (square as u16) << 6)
}

/// Adds the counts of `hidden` to a tally. A position for which a double step was noted gets the en passant file into
/// its key, unless `exact` says that the EPDs of the database have the squares of pinned pawns.
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

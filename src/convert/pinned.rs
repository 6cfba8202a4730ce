//! Rows in which another program may have left out an en passant square.
//!
//! Polyglot's key has the file of a pawn that has just made a double step where a pawn stands ready to take it, even if that
//! is pinned. Many programs write the square into an EPD only if the capture is legal. Whether such an EPD is of a position
//! after a double step is seen by the rows of the database: one of them may be that step.

use shakmaty::{
    EnPassantMode, File, Move, Position, Rank, Role, Square, attacks, variant::VariantPosition,
};

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

/// Whether a double step may have led to a position that does not say so: a pawn stands where one ends, and another beside
/// it.
pub(super) fn may_hide_a_step(pos: &VariantPosition) -> bool {
    let (turn, board) = (pos.turn(), pos.board());
    let rank = |of_white: Rank, of_black: Rank| turn.fold_wb(of_white, of_black);
    let step = [
        rank(Rank::Seventh, Rank::Second),
        rank(Rank::Sixth, Rank::Third),
        rank(Rank::Fifth, Rank::Fourth),
    ];
    let hides = |file: File| {
        let [from, over, to] = step.map(|rank| Square::from_coords(file, rank));
        (board.by_piece((!turn).pawn())).contains(to)
            && board.piece_at(from).or(board.piece_at(over)).is_none()
            && (attacks::pawn_attacks(!turn, over) & board.by_piece(turn.pawn())).any()
    };
    pos.maybe_ep_square().is_none() && pos.pockets().is_none() && File::ALL.into_iter().any(hides)
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

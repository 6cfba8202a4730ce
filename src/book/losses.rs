//! The moves of a book that lose too much.

use super::{open::Book, records::Entry};
use crate::{
    error::Result,
    evals::MaxLoss,
    position::{BookMove, Variant},
    progress::Meter,
    sort::{Memory, Seen},
    walk::each_position,
};

/// How a book fares by evaluations.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, serde::Serialize)]
pub struct LossSummary {
    /// Moves that are left out, because they lose too much.
    pub left_out: u64,
    /// Moves that are kept because they have no evaluation, or because no line of the book comes to their position.
    pub unevaluated: u64,
    /// Positions whose moves are all left out.
    pub emptied: u64,
}

/// The moves of a book that lose too much, in 16 bytes each.
#[derive(Clone, Debug)]
pub(super) struct Losses {
    /// Keys and moves, in ascending order.
    lost: Vec<u128>,
    pub summary: LossSummary,
}

/// A record without its weight.
pub(super) fn place(key: u64, mv: BookMove) -> u128 {
    u128::from(key) << 64 | u128::from(mv.0)
}

impl Losses {
    /// Looks for them in the positions that lines of the book reach from the start of a variant: a key alone does not
    /// say what a move leads to.
    pub(super) fn of(
        book: &Book,
        variant: Variant,
        max_loss: &MaxLoss,
        memory: &Memory,
        meter: &Meter,
    ) -> Result<Losses> {
        let mut unseen = book.len_without_header()?;
        let mut losses = Losses {
            lost: Vec::new(),
            summary: LossSummary::default(),
        };
        losses.summary.unevaluated = unseen;
        let mut reached = Seen::new(memory.share(4));
        let start = [Ok(variant.start())];
        each_position(book, start, memory.share(4), meter, &mut |pos| {
            let entries = book.moves(pos.key())?;
            if entries.is_empty() || !reached.insert_key(pos.key())? {
                return Ok(unseen > 0);
            }
            let total = entries.len();
            unseen -= total as u64;
            let pos = pos.position();
            let legal = entries.iter();
            let legal = legal.filter_map(|entry| Some((*entry, entry.mv.to_move(pos)?)));
            let (entries, moves): (Vec<Entry>, Vec<_>) = legal.unzip();
            let lost_before = losses.lost.len();
            for (entry, loses) in entries.iter().zip(max_loss.judge(pos, &moves)?) {
                losses.summary.unevaluated -= u64::from(loses.is_some());
                if loses == Some(true) {
                    losses.lost.push(place(entry.key, entry.mv));
                }
            }
            let lost = losses.lost.len() - lost_before;
            losses.summary.emptied += u64::from(lost == total);
            Ok(unseen > 0)
        })?;
        losses.lost.sort_unstable();
        losses.summary.left_out = losses.lost.len() as u64;
        Ok(losses)
    }

    /// Whether a move is one of them.
    pub(super) fn contains(&self, key: u64, mv: BookMove) -> bool {
        self.lost.binary_search(&place(key, mv)).is_ok()
    }
}

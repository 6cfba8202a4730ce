//! Extends the lines of a book by the moves that lead to the best evaluated positions.

use std::{cmp::Reverse, fmt, sync::Arc};

use rustc_hash::FxHashMap;
use shakmaty::{Move, Position, variant::VariantPosition};

use super::{
    lines::{LegalMoves, PlayableMoves},
    reader::Book,
    records::Entry,
};
use crate::{
    chess::position::{BookMove, Keyed, Variant},
    error::{Advice, Diagnosis, Error, Result},
    formats::{
        evals::{EXPANSION_LOSS, Evals, MaxLoss, Value},
        walk::{MoveSource, Replies, each_position},
    },
    progress::Meter,
    storage::sort::Memory,
};

/// An upper bound on the memory, in bytes, of an added move.
const MOVE_SIZE: usize = 64;

/// A rule that continues the lines of a book with the best moves according to a store of evaluations.
///
/// A line ends in a position if the book has neither a move in this position nor a move after any legal move. The rule
/// adds the legal move that leads to the best evaluated position. It adds no move if the position has no evaluation, or
/// if the move is more than 50 centipawns worse than that evaluation. The line may be extended further after the added
/// move.
#[derive(Clone, PartialEq, Debug)]
pub struct Expand {
    evals: Arc<Evals>,
    max_loss: MaxLoss,
    plies: u16,
}

impl Expand {
    /// Creates a rule that adds up to `plies` moves to each line. The moves are chosen by the evaluations in `evals`.
    pub fn new(evals: impl Into<Arc<Evals>>, plies: u16) -> Expand {
        let evals = evals.into();
        Expand {
            max_loss: MaxLoss::new(Arc::clone(&evals), EXPANSION_LOSS),
            evals,
            plies,
        }
    }

    /// Returns the records that the rule adds to `book`, sorted by key. Each record has the weight 1. The lines of the
    /// book begin in the starting position of `variant`.
    ///
    /// # Errors
    ///
    /// Returns an error if the book, the store or a temporary file cannot be read, or if the records exceed the budget
    /// `memory`.
    pub(super) fn records(
        &self,
        book: &Book,
        variant: Variant,
        memory: &Memory,
        meter: &Meter,
    ) -> Result<Vec<Entry>> {
        let moves = PlayableMoves::within(book, meter, memory.bytes / 4)?;
        let legal = LegalMoves::new(moves, book.len_without_header()?);
        let mut added = FxHashMap::default();
        let start = [Ok(variant.start())];
        each_position(&legal, start, memory.share(4), meter, &mut |pos| {
            for (entry, mv) in legal.of(pos)? {
                if entry.weight > 0 {
                    let mut after = pos.clone();
                    after.play(mv);
                    self.continue_line(&legal, after, &mut added)?;
                }
            }
            if added.len() > memory.bytes / MOVE_SIZE {
                let most = memory.bytes / MOVE_SIZE;
                let problem = Diagnosis::new(format!("more than {most} moves would be added"));
                let problem = problem.advise(Advice::larger("memory"));
                return Err(Error::too_large(book.path(), problem));
            }
            Ok(true)
        })?;
        let mut records = Vec::from_iter(added.into_values().map(|(entry, _)| entry));
        records.sort_unstable_by_key(|entry| entry.key);
        Ok(records)
    }

    /// Extends a line of the book that ends in `pos`. Adds the record of each new move to `added`, under the key of its
    /// position, together with the number of moves by which the line may be extended from there.
    fn continue_line(
        &self,
        book: &LegalMoves<'_>,
        mut pos: Keyed<VariantPosition>,
        added: &mut FxHashMap<u64, (Entry, u16)>,
    ) -> Result<()> {
        for left in (1..=self.plies).rev() {
            // A line that reaches an added move sooner than other lines continues farther.
            if added
                .get(&pos.key())
                .is_some_and(|(_, before)| *before >= left)
                || !Replies(book).moves(&pos)?.is_empty()
            {
                break;
            }
            let Some(mv) = self.best_move(pos.position())? else {
                break;
            };
            let entry = Entry {
                key: pos.key(),
                mv: BookMove::from(mv),
                weight: 1,
                learn: 0,
            };
            added.insert(pos.key(), (entry, left));
            pos.play(mv);
        }
        Ok(())
    }

    /// Returns the legal move in `pos` that leads to the best evaluated position, or `None` if no move may be added.
    fn best_move(&self, pos: &VariantPosition) -> Result<Option<Move>> {
        if self.evals.of_position(pos)?.is_none() {
            return Ok(None);
        }
        let mut values = Vec::new();
        for mv in pos.legal_moves() {
            let mut after = pos.clone();
            after.play_unchecked(mv);
            if let Some(value) = self.evals.value(&after)? {
                values.push((value.for_opponent(), mv));
            }
        }
        let order = |(value, mv): &(Value, Move)| (*value, Reverse(BookMove::from(*mv)));
        let Some((_, mv)) = values.into_iter().max_by_key(order) else {
            return Ok(None);
        };
        let loss = self
            .max_loss
            .judge(pos, &[mv])?
            .into_iter()
            .next()
            .flatten();
        let is_good = loss.is_some_and(|loss| !self.max_loss.is_exceeded_by(loss));
        Ok(is_good.then_some(mv))
    }
}

/// Formats the rule as a command-line option. The header of a book contains this text.
impl fmt::Display for Expand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--expand {}", self.plies)
    }
}

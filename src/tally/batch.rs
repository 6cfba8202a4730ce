//! Batches of counts on their way to a tally.

use std::collections::BTreeMap;
use std::path::Path;

use shakmaty::Color;

use super::{
    record::{CountRecord, fits},
    stats::{MoveCount, Stats},
};
use crate::error::{Error, Result};
use crate::position::BookMove;

/// The maximum number of records that [`push`](CountBatch::push) adds for one call. More games are stored separately as numbers.
const MOST_RECORDS: u64 = 16;

/// The maximum number of moves whose games are stored as numbers. The largest collections have some thousands of such moves.
const MOST_LARGE: usize = 1 << 18;

/// A batch of counts for a [`Tally`](super::Tally). Its size depends on the number of its counts, not on the number of games.
#[derive(PartialEq, Eq, Default, Debug)]
pub struct CountBatch {
    pub(super) records: Vec<CountRecord>,
    pub(super) large: Vec<(CountRecord, Stats)>,
}

impl CountBatch {
    /// Adds games of one position and move, from the view of the side to move.
    #[inline]
    pub fn push(&mut self, key: u64, mv: BookMove, turn: Color, stats: Stats) {
        // Nearly all counts fit into one record.
        if fits(stats) {
            self.records.push(CountRecord::new(key, mv, turn, stats));
        } else {
            self.push_many(key, mv, turn, stats);
        }
    }

    #[cold]
    fn push_many(&mut self, key: u64, mv: BookMove, turn: Color, stats: Stats) {
        if CountRecord::records_for(stats) <= MOST_RECORDS {
            CountRecord::extend(&mut self.records, key, mv, turn, stats);
            return;
        }
        // An empty record lists the move among the moves of the position.
        let record = CountRecord::new(key, mv, turn, Stats::default());
        self.records.push(record);
        self.large.push((record, stats));
    }
}

/// Numbers of games that would take many records, by position key and move.
#[derive(Default, Debug)]
pub(super) struct LargeCounts(BTreeMap<(u64, u16), Stats>);

impl LargeCounts {
    /// Returns an error that names `source` if there are more large numbers than any collection has. They all stay in memory.
    pub(super) fn refuse_many(&self, source: &Path) -> Result<()> {
        if self.0.len() <= MOST_LARGE {
            return Ok(());
        }
        let problem = format!(
            "more than {MOST_LARGE} moves have over half a million games each, which cannot be"
        );
        Err(Error::too_large(source, problem))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the large numbers of a batch.
    pub(super) fn extend(&mut self, batch: &CountBatch) {
        for (record, stats) in &batch.large {
            let kind = (record.key(), record.book_move().0);
            *self.0.entry(kind).or_default() += *stats;
        }
    }

    /// Returns `true` if a move of these records has a large number of games.
    pub(super) fn has_any(&self, position: &[CountRecord]) -> bool {
        let kind = |record: &CountRecord| (record.key(), record.book_move().0);
        !self.is_empty()
            && position
                .iter()
                .any(|record| self.0.contains_key(&kind(record)))
    }

    /// Adds the large numbers of a position to the counts of its moves.
    pub(super) fn add_to(&self, key: u64, moves: &mut [MoveCount]) {
        if self.is_empty() {
            return;
        }
        for count in moves {
            if let Some(more) = self.0.get(&(key, count.mv.0)) {
                count.stats += *more;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_does_not_grow_with_the_games() {
        let mut batch = CountBatch::default();
        for wins in [1, 1 << 10, 1 << 20, 1 << 36, 1 << 60] {
            let stats = Stats {
                wins,
                ..Stats::default()
            };
            batch.push(7, BookMove(5), Color::White, stats);
        }
        assert!(batch.records.len() <= 5 * MOST_RECORDS as usize);
        assert_eq!(batch.large.len(), 3);
    }
}

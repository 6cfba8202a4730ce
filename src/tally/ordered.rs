//! Adds up counts from sources that are sorted already, such as sorted files, without sorting them again.

use std::{
    mem,
    ops::Range,
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{
    batch::{CountBatch, LargeCounts},
    counts::{Counts, Tally},
    record::CountRecord,
};
use crate::{
    error::Result,
    sort::{Memory, Refill, SHARDS, merge_ordered},
    task,
};

/// The number of records of the tally itself that are merged at once.
const AT_ONCE: usize = 1 << 11;

/// A function that reads the next counts of a range of shards, sorted by key and move, into an empty batch.
///
/// It returns the file that the counts are from, or `None` at the end. The batch may stay empty if a whole batch of rows has no
/// moves; then there may be further counts.
pub(crate) type OrderedCounts<'a> =
    Box<dyn FnMut(&mut CountBatch) -> Result<Option<&'a Path>> + 'a>;

/// Returns a source of the records of `counts` for a merge. Large numbers of games go to `large`.
fn records<'a: 'b, 'b>(
    mut counts: OrderedCounts<'a>,
    large: &'b Mutex<LargeCounts>,
    has_large: &'b AtomicBool,
) -> Refill<'b, CountRecord> {
    let mut batch = CountBatch::default();
    Box::new(move |out| {
        // A batch of rows may consist of rows without a move, so reading goes on until there are records.
        while out.is_empty() {
            // Swapping lets the rows be decoded straight into `out`, without a copy.
            mem::swap(out, &mut batch.records);
            let read = counts(&mut batch);
            mem::swap(out, &mut batch.records);
            let Some(path) = read? else {
                break;
            };
            // A count that takes several records does not have them in order.
            out.sort();
            if !batch.large.is_empty() {
                has_large.store(true, Ordering::Relaxed);
                let mut large = task::lock(large);
                large.extend(&batch);
                batch.large.clear();
                large.refuse_many(path)?;
            }
        }
        Ok(())
    })
}

/// Returns `true` if a move of a position was played at least `fewest` times. A move with several records, or with a large number
/// that is stored separately, counts as frequent.
fn is_frequent(position: &[CountRecord], fewest: u64) -> bool {
    let is_frequent = |record: &CountRecord| {
        let games = record.stats().games();
        games == 0 || games >= fewest
    };
    let has_several = |two: &[CountRecord]| two[0].book_move() == two[1].book_move();
    position.iter().any(is_frequent) || position.windows(2).any(has_several)
}

impl Tally {
    /// Ends counting, and adds sorted counts from other sources.
    ///
    /// `open(shards)` returns the sources of a range of shards; there are `ranges` equal ranges. A position is dropped if none
    /// of its moves was played at least `fewest` times; [`Counts::rare`] tells how many were. `watch` is called from time to
    /// time with the number of bytes in temporary files, and an error that it returns ends the work. `memory` is the budget of
    /// the result. Uses all threads of the current rayon pool.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be written or read, and returns the errors of the sources and of `watch`.
    pub(crate) fn seal_with<'a>(
        self,
        memory: &Memory,
        ranges: usize,
        fewest: u64,
        open: impl Fn(Range<usize>) -> Vec<OrderedCounts<'a>> + Sync,
        watch: impl Fn(u64) -> Result<()> + Sync,
    ) -> Result<Counts> {
        let Counts {
            records: counted,
            large,
            ..
        } = self.seal()?;
        let has_large = AtomicBool::new(!large.is_empty());
        let large = Mutex::new(large);
        let open = |shards: Range<usize>| {
            let mut own = shards.clone().flat_map(|shard| counted.records(shard));
            let own: Refill<'_, CountRecord> = Box::new(move |out| {
                for record in own.by_ref().take(AT_ONCE) {
                    out.push(record?);
                }
                Ok(())
            });
            let others = open(shards).into_iter();
            let others = others.map(|counts| records(counts, &large, &has_large));
            others.chain([own]).collect()
        };
        // An empty record that stands for a large number may have been added to others, so the numbers are looked up too.
        let is_frequent = |position: &[CountRecord]| {
            is_frequent(position, fewest)
                || has_large.load(Ordering::Relaxed) && task::lock(&large).has_any(position)
        };
        let keeps = |position: &[CountRecord]| fewest <= 1 || is_frequent(position);
        let (records, rare) = merge_ordered(ranges.min(SHARDS), memory, open, keeps, watch)?;
        Ok(Counts {
            records,
            large: task::unlocked(large),
            rare,
        })
    }
}

#[cfg(test)]
mod tests {
    use shakmaty::Color;

    use super::*;
    use crate::{position::BookMove, tally::Stats};

    #[test]
    fn counts_go_on_after_rows_without_moves() {
        let open = |shards: Range<usize>| -> Vec<OrderedCounts<'_>> {
            let mut step = 0;
            if shards.start > 0 {
                return Vec::new();
            }
            vec![Box::new(move |batch| {
                step += 1;
                if step == 2 {
                    let stats = Stats {
                        wins: 3,
                        draws: 2,
                        losses: 1,
                    };
                    batch.push(7, BookMove(796), Color::White, stats);
                }
                Ok((step < 4).then_some(Path::new("part")))
            })]
        };
        let memory = Memory::default();
        let counts = Tally::new(memory.clone()).seal_with(&memory, 2, 0, open, |_| Ok(()));
        let positions: Result<Vec<_>> = counts.unwrap().positions().collect();
        let positions = positions.unwrap();
        assert_eq!(positions.len(), 1);
        assert_eq!(positions[0].moves[0].stats.games(), 6);
    }
}

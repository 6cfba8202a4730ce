//! Counts that come in ascending order, as from files that are sorted: added up without sorting them again.

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

/// How many records of those that were counted are merged at once.
const AT_ONCE: usize = 1 << 11;

/// Appends the next counts of some shards of keys, in the order of keys and moves, to an empty batch, if those that were
/// read have any, and returns the file that they are of; `None` if there are no more.
pub(crate) type OrderedCounts<'a> =
    Box<dyn FnMut(&mut CountBatch) -> Result<Option<&'a Path>> + 'a>;

/// The records of counts. Large numbers are kept apart.
fn records<'a: 'b, 'b>(
    mut counts: OrderedCounts<'a>,
    large: &'b Mutex<LargeCounts>,
    has_large: &'b AtomicBool,
) -> Refill<'b, CountRecord> {
    let mut batch = CountBatch::default();
    Box::new(move |out| {
        // All rows that were read may be without moves.
        while out.is_empty() {
            // They are filled in where they are wanted.
            mem::swap(out, &mut batch.records);
            let read = counts(&mut batch);
            mem::swap(out, &mut batch.records);
            let Some(path) = read? else {
                break;
            };
            // The records of a number that takes several come in any order.
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

/// Whether a move of a position was played in `fewest` games. One that has several records, or large numbers that are
/// kept apart, was.
fn is_frequent(position: &[CountRecord], fewest: u64) -> bool {
    let is_frequent = |record: &CountRecord| {
        let games = record.stats().games();
        games == 0 || games >= fewest
    };
    let has_several = |two: &[CountRecord]| two[0].book_move() == two[1].book_move();
    position.iter().any(is_frequent) || position.windows(2).any(has_several)
}

impl Tally {
    /// Ends counting, and adds ordered counts: those that `open` returns for each of `ranges` equal ranges of shards.
    /// Positions in which no move was played in `fewest` games are not kept: [`Counts::rare`] is their number.
    /// `watch` is called now and then with the bytes in temporary files, and may end the work. `memory` is for the sum.
    /// Works on all threads of the rayon pool that it is called in.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be written or read, and the errors of the counts and of `watch`.
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
        // The record in place of a large number may have been added to others.
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

//! Counts that come in ascending order, as from files that are sorted: added up without sorting them again.

use std::{ops::Range, path::Path, sync::Mutex};

use super::{
    batch::{CountBatch, LargeCounts},
    counts::{Counts, RareCounts, Tally},
    record::CountRecord,
};
use crate::{
    error::Result,
    sort::{Ascending, Choice, Memory, SHARDS, merge_ordered},
    task,
};

/// Counts of some shards of keys in the order of keys and moves.
pub(crate) trait OrderedCounts {
    /// Appends the next counts, some thousand of them, to an empty batch. If it appends none, there are no more.
    ///
    /// # Errors
    ///
    /// A source that cannot be read, or is not in order.
    fn next(&mut self, batch: &mut CountBatch) -> Result<()>;

    /// What was read last, for errors.
    fn path(&self) -> &Path;
}

/// The records of counts. Large numbers are kept apart.
struct Records<'a> {
    counts: Box<dyn OrderedCounts + 'a>,
    batch: CountBatch,
    large: &'a Mutex<LargeCounts>,
}

impl Ascending<CountRecord> for Records<'_> {
    fn next(&mut self, out: &mut Vec<CountRecord>) -> Result<()> {
        // They are filled in where they are wanted.
        std::mem::swap(out, &mut self.batch.records);
        let answer = self.counts.next(&mut self.batch);
        std::mem::swap(out, &mut self.batch.records);
        if !self.batch.large.is_empty() {
            let mut large = task::lock(self.large);
            large.extend(&self.batch);
            self.batch.large.clear();
            large.refuse_many(self.counts.path())?;
        }
        answer
    }
}

/// Leaves out the positions in which no move was played in `fewest` games.
struct Frequent(u64);

impl Choice<CountRecord> for Frequent {
    #[inline]
    fn keeps(&self, records: &[CountRecord]) -> bool {
        // A move that has several records, or large numbers that are kept apart, is frequent.
        let is_frequent = |record: &CountRecord| {
            let games = record.stats().games();
            games == 0 || games >= self.0
        };
        let has_several = |two: &[CountRecord]| two[0].book_move() == two[1].book_move();
        records.iter().any(is_frequent) || records.windows(2).any(has_several)
    }

    #[inline]
    fn keeps_all(&self) -> bool {
        self.0 <= 1
    }
}

impl Tally {
    /// Ends counting, and adds ordered counts: those that `open` answers for each of `ranges` equal ranges of shards.
    /// Positions in which no move was played in `fewest` games are not kept: [`Counts::rare`] is their number.
    /// `watch` is called now and then with the bytes in temporary files, and may end the work. `memory` is for the sum.
    /// Works on all threads of the rayon pool that it is called in.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be written or read, what the counts answer, and what `watch` answers.
    pub(crate) fn seal_with<'a>(
        self,
        memory: &Memory,
        ranges: usize,
        fewest: u64,
        open: impl Fn(Range<usize>) -> Vec<Box<dyn OrderedCounts + 'a>> + Sync,
        watch: impl Fn(u64) -> Result<()> + Sync,
    ) -> Result<Counts> {
        let Counts { records, large, .. } = self.seal()?;
        let large = Mutex::new(large);
        let open = |shards: Range<usize>| {
            let mut sources: Vec<Box<dyn Ascending<CountRecord> + '_>> = Vec::new();
            sources.push(Box::new(
                shards.clone().flat_map(|shard| records.records(shard)),
            ));
            for counts in open(shards) {
                sources.push(Box::new(Records {
                    counts,
                    batch: CountBatch::default(),
                    large: &large,
                }));
            }
            Ok(sources)
        };
        let choice = Frequent(fewest);
        let (merged, rare) = merge_ordered(ranges.min(SHARDS), memory, open, &choice, watch)?;
        Ok(Counts {
            records: merged,
            large: task::unlocked(large),
            rare: RareCounts {
                positions: rare.groups,
                moves: rare.records,
            },
        })
    }
}

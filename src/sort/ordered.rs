//! Merging and folding records that are already in ascending order, so that none is sorted again.
//!
//! The shards are shared out among the threads. A thread takes the next records of each source, as far as all
//! sources have come, and merges these: a window that fits the cache. The merged records of a shard stay in memory up
//! to the shard's quota; past it they go to a temporary file, once.

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use rayon::prelude::*;

use super::{
    Memory,
    blocks::{Blocks, Pool},
    record::{Fold, Record, SHARDS},
    run::{ByteRun, RunFile},
    sealed::{Sealed, SealedShard},
};
use crate::error::Result;

/// Merges the sources that `open` returns for each of this many equal `ranges` of shards, and keeps the chosen groups.
/// `watch` is called now and then with the bytes in temporary files, and may end the merge. Works on all threads of the
/// rayon pool that it is called in.
///
/// # Errors
///
/// A temporary file that cannot be written, and the errors of the sources and of `watch`.
pub(crate) fn merge_ordered<'a, R: Record>(
    ranges: usize,
    memory: &Memory,
    open: impl Fn(Range<usize>) -> Result<Vec<Box<dyn Ascending<R> + 'a>>> + Sync,
    choice: &impl Choice<R>,
    watch: impl Fn(u64) -> Result<()> + Sync,
) -> Result<(Sealed<R>, PassedOver)> {
    // A quarter is left for the unused ends of blocks.
    let quota = memory.bytes / size_of::<R>() / 4 * 3 / SHARDS;
    let shared = Shared {
        pool: Pool::new(quota),
        quota,
        memory,
        spilled: AtomicU64::new(0),
    };
    let each = SHARDS / ranges;
    let merged: Vec<(Vec<SealedShard<R>>, PassedOver)> = (0..ranges)
        .into_par_iter()
        .map(|range| {
            let shards = range * each..(range + 1) * each;
            let sources = open(shards.clone())?;
            let mut writer = Writer::new(&shared, choice, shards);
            let mut windows = Windows::new(sources);
            while let Some(window) = windows.next(choice, &mut writer.passed_over)? {
                writer.take(window)?;
                watch(shared.spilled.load(Ordering::Relaxed))?;
            }
            writer.finish()
        })
        .collect::<Result<_>>()?;
    let mut passed_over = PassedOver::default();
    let mut all = Vec::with_capacity(SHARDS);
    for (shards, of_range) in merged {
        all.extend(shards);
        passed_over.groups += of_range.groups;
        passed_over.records += of_range.records;
    }
    Ok((Sealed::new(all), passed_over))
}

/// The data that all threads share.
struct Shared<'a, R> {
    pool: Pool<R>,
    /// How many records of a shard stay in memory.
    quota: usize,
    memory: &'a Memory,
    /// Bytes in temporary files.
    spilled: AtomicU64,
}

/// Takes the records of neighbouring shards in ascending order, and keeps those that are chosen.
struct Writer<'a, R: Record, C> {
    shared: &'a Shared<'a, R>,
    choice: &'a C,
    passed_over: PassedOver,
    fold: R::Fold,
    /// Folded records that are not judged yet.
    folded: Vec<R>,
    /// Those that were chosen last.
    chosen: Vec<R>,
    /// The shard that is open, and those after it.
    shards: Range<usize>,
    /// The records of the open shard in memory.
    blocks: Blocks<R>,
    /// Its records in the file: if there are some, these are all.
    run: Option<ByteRun>,
    file: Option<Arc<RunFile>>,
    done: Vec<SealedShard<R>>,
}

impl<'a, R: Record, C: Choice<R>> Writer<'a, R, C> {
    fn new(shared: &'a Shared<'a, R>, choice: &'a C, shards: Range<usize>) -> Writer<'a, R, C> {
        Writer {
            shared,
            choice,
            passed_over: PassedOver::default(),
            fold: R::Fold::default(),
            folded: Vec::new(),
            chosen: Vec::new(),
            done: Vec::with_capacity(shards.len()),
            shards,
            blocks: Blocks::default(),
            run: None,
            file: None,
        }
    }

    /// Takes the next records.
    fn take(&mut self, mut records: &[R]) -> Result<()> {
        while let Some(first) = records.first() {
            let shard = first.shard();
            while self.shards.start < shard {
                self.end_shard()?;
            }
            let (now, later) =
                records.split_at(records.partition_point(|record| record.shard() == shard));
            records = later;
            if self.choice.keeps_all() {
                self.keep_all(now)?;
                continue;
            }
            let folded = &mut self.folded;
            for (at, record) in now.iter().enumerate() {
                let is_same =
                    |other: Option<&R>| other.is_none_or(|other| record.rank() == other.rank());
                // Most groups are of one record.
                let is_alone = !is_same(now[..at].last()) && !is_same(now.get(at + 1));
                if is_alone && !self.choice.keeps(std::slice::from_ref(record)) {
                    self.passed_over.groups += 1;
                    self.passed_over.records += 1;
                } else {
                    self.fold.take(*record, &mut |record| folded.push(record));
                }
            }
            // The last group may go on.
            if let Some(last) = self.folded.last().copied() {
                let same = |record: &&R| record.rank() == last.rank();
                let in_last = self.folded.iter().rev().take_while(same).count();
                self.judge(self.folded.len() - in_last)?;
            }
        }
        Ok(())
    }

    /// Takes records of the open shard where all are chosen.
    fn keep_all(&mut self, records: &[R]) -> Result<()> {
        self.chosen.clear();
        let chosen = &mut self.chosen;
        for record in records {
            self.fold.take(*record, &mut |record| chosen.push(record));
        }
        self.keep()
    }

    /// Keeps the chosen groups of the first `records` folded records.
    fn judge(&mut self, records: usize) -> Result<()> {
        self.chosen.clear();
        let same = |a: &R, b: &R| a.rank() == b.rank();
        for group in self.folded[..records].chunk_by(same) {
            if self.choice.keeps(group) {
                self.chosen.extend_from_slice(group);
            } else {
                self.passed_over.groups += 1;
                self.passed_over.records += group.len() as u64;
            }
        }
        self.folded.drain(..records);
        self.keep()
    }

    /// Keeps the chosen records.
    fn keep(&mut self) -> Result<()> {
        let Shared { pool, quota, .. } = self.shared;
        if self.run.is_some() {
            let chosen = std::mem::take(&mut self.chosen);
            self.spill(chosen.len(), chosen.iter().copied())?;
            self.chosen = chosen;
            return Ok(());
        }
        self.blocks.extend(&self.chosen, pool);
        if self.blocks.len() > *quota {
            let blocks = std::mem::take(&mut self.blocks);
            self.spill(blocks.len(), blocks.iter())?;
            pool.give_back(blocks.into_blocks());
        }
        Ok(())
    }

    /// Appends records to the run of the open shard. No other thread knows of the file.
    fn spill(&mut self, len: usize, records: impl Iterator<Item = R>) -> Result<()> {
        let file = match &self.file {
            Some(file) => file,
            None => {
                let temp_dir = &self.shared.memory.temp_dir;
                self.file.insert(RunFile::create(temp_dir)?)
            }
        };
        let run = self.run.get_or_insert_with(|| file.start_run());
        for record in records {
            run.push(record)?;
        }
        let bytes = (len * size_of::<R>()) as u64;
        self.shared.spilled.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    fn end_shard(&mut self) -> Result<()> {
        let folded = &mut self.folded;
        self.fold.finish(&mut |record| folded.push(record));
        self.judge(self.folded.len())?;
        self.done.push(match self.run.take() {
            Some(run) => SealedShard::File(run.finish()?),
            None => SealedShard::Memory(std::mem::take(&mut self.blocks)),
        });
        self.shards.start += 1;
        Ok(())
    }

    fn finish(mut self) -> Result<(Vec<SealedShard<R>>, PassedOver)> {
        while !self.shards.is_empty() {
            self.end_shard()?;
        }
        Ok((self.done, self.passed_over))
    }
}

/// About how many records a source should hand over at once.
const WINDOW: usize = 1 << 11;

/// Records of some shards in ascending order. Those that are folded into one may come in any order.
pub(crate) trait Ascending<R> {
    /// Appends the next records, about [`WINDOW`] of them. If it appends none, there are no more.
    ///
    /// # Errors
    ///
    /// A source that cannot be read, or is not in order.
    fn next(&mut self, out: &mut Vec<R>) -> Result<()>;
}

impl<R: Record, I: Iterator<Item = Result<R>>> Ascending<R> for I {
    fn next(&mut self, out: &mut Vec<R>) -> Result<()> {
        for record in self.by_ref().take(WINDOW) {
            out.push(record?);
        }
        Ok(())
    }
}

/// Which groups of records are kept. A group is all records of a [rank](Record::rank).
pub(crate) trait Choice<R>: Sync {
    /// Whether a group is kept.
    fn keeps(&self, group: &[R]) -> bool;

    /// Whether every group is kept.
    fn keeps_all(&self) -> bool;
}

/// The groups and records that a choice did not keep.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct PassedOver {
    pub groups: u64,
    pub records: u64,
}

/// How many times as many marks as records a sieve has: few ranks share one.
const MARKS_OF_RECORD: usize = 8;

/// Sources that are read side by side.
pub(super) struct Windows<'a, R> {
    sources: Vec<Source<'a, R>>,
    sieve: Sieve,
    /// The records of the window. Those after them are old.
    window: Vec<R>,
}

struct Source<'a, R> {
    rows: Box<dyn Ascending<R> + 'a>,
    /// The records read of it; those from `at` on are not yet merged.
    read: Vec<R>,
    at: usize,
    /// How many records of it the window has.
    ready: usize,
}

impl<R> Source<'_, R> {
    fn ready(&self) -> &[R] {
        &self.read[self.at..self.at + self.ready]
    }
}

impl<'a, R: Record> Windows<'a, R> {
    pub(super) fn new(sources: Vec<Box<dyn Ascending<R> + 'a>>) -> Windows<'a, R> {
        let source = |rows| Source {
            rows,
            read: Vec::with_capacity(WINDOW),
            at: 0,
            ready: 0,
        };
        Windows {
            sources: sources.into_iter().map(source).collect(),
            sieve: Sieve::default(),
            window: Vec::new(),
        }
    }

    /// The next records of all sources, sorted, without some that are known not to be chosen; `None` at the end.
    pub(super) fn next(
        &mut self,
        choice: &impl Choice<R>,
        passed_over: &mut PassedOver,
    ) -> Result<Option<&[R]>> {
        for source in &mut self.sources {
            source.at += source.ready;
            source.ready = 0;
            if source.at == source.read.len() {
                source.read.clear();
                source.at = 0;
                source.rows.next(&mut source.read)?;
            }
        }
        self.sources.retain(|source| !source.read.is_empty());
        // Stop at the smallest last record: the source of that record may have more before those of the others.
        let Some(last) = self.sources.iter().filter_map(|s| s.read.last()).min() else {
            return Ok(None);
        };
        let last = *last;
        for source in &mut self.sources {
            let unmerged = &source.read[source.at..];
            source.ready = unmerged.partition_point(|record| *record <= last);
        }
        let records = if choice.keeps_all() {
            self.gather(last)
        } else {
            self.sift(last, choice, passed_over)
        };
        let window = &mut self.window[..records];
        // The sort of the standard library finds runs that are in order, and merges them.
        window.sort();
        Ok(Some(window))
    }

    /// Makes room for all records that are ready; returns how many these are.
    fn make_room(&mut self, filler: R) -> usize {
        let records = self.sources.iter().map(|source| source.ready).sum();
        if self.window.len() < records {
            self.window.resize(records, filler);
        }
        records
    }

    /// Fills the window with the records that are ready. Returns how many these are.
    fn gather(&mut self, last: R) -> usize {
        let records = self.make_room(last);
        let mut rest = &mut self.window[..records];
        for source in &self.sources {
            let (now, later) = rest.split_at_mut(source.ready);
            now.copy_from_slice(source.ready());
            rest = later;
        }
        records
    }

    /// Fills the window with the records that are ready, but for those that are a group each and are not kept: most,
    /// which need not be sorted then. Returns how many records the window has.
    fn sift(&mut self, last: R, choice: &impl Choice<R>, passed_over: &mut PassedOver) -> usize {
        let records = self.make_room(last);
        let firsts = self
            .sources
            .iter()
            .filter_map(|source| source.ready().first());
        let first = firsts
            .min()
            .expect("the source that has come least far is ready");
        let sieve = &mut self.sieve;
        sieve.start(first.rank(), last.rank(), records);
        for source in &self.sources {
            for record in source.ready() {
                sieve.mark(record.rank());
            }
        }
        let mut kept = 0;
        for source in &self.sources {
            for record in source.ready() {
                self.window[kept] = *record;
                // Which of them it is cannot be guessed, so it is written first.
                let is_kept = !sieve.is_alone(record.rank()) | choice.keeps(&[*record]);
                kept += usize::from(is_kept);
            }
        }
        passed_over.groups += (records - kept) as u64;
        passed_over.records += (records - kept) as u64;
        kept
    }
}

/// Finds ranks that occur once in a window, most of them.
#[derive(Default)]
struct Sieve {
    /// For each range of ranks: none, one, or more numbers.
    marks: Vec<u8>,
    first: u64,
    shift: u32,
}

impl Sieve {
    /// Forgets all ranks, and expects this many between a `first` and a `last`.
    fn start(&mut self, first: u64, last: u64, records: usize) {
        let bits = (records * MARKS_OF_RECORD).next_power_of_two().ilog2();
        let length = u64::BITS - (last - first).leading_zeros();
        self.first = first;
        self.shift = length.saturating_sub(bits);
        self.marks.clear();
        self.marks.resize(1 << bits, 0);
        // These may go on in other windows.
        for rank in [first, last] {
            self.mark(rank);
            self.mark(rank);
        }
    }

    #[inline]
    fn place(&self, rank: u64) -> usize {
        ((rank - self.first) >> self.shift) as usize
    }

    #[inline]
    fn mark(&mut self, rank: u64) {
        let place = self.place(rank);
        let mark = &mut self.marks[place];
        // The lowest bit after the first, another after the second, and so on.
        *mark = *mark << 1 | 1;
    }

    /// Whether it is known that a rank that was marked occurs once.
    #[inline]
    fn is_alone(&self, rank: u64) -> bool {
        self.marks[self.place(rank)] == 1
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{error::Error, sort::record::Plain};

    /// Keeps groups of some sizes: those that leave the second number when they are divided by the first.
    #[derive(Copy, Clone, Debug)]
    struct Of(usize, usize);

    impl Choice<Plain> for Of {
        fn keeps(&self, group: &[Plain]) -> bool {
            group.len() % self.0 == self.1
        }

        fn keeps_all(&self) -> bool {
            self.0 == 1
        }
    }

    proptest! {
        #[test]
        fn ordered_sources_are_one_sequence(
            sources in proptest::collection::vec(proptest::collection::vec((any::<u64>(), any::<u64>()), 0..3000), 0..9),
            ranks in prop_oneof![Just(1u64), Just(20), Just(20_000), Just(u64::MAX)],
            choice in prop_oneof![Just(Of(1, 0)), Just(Of(2, 0)), Just(Of(2, 1)), Just(Of(3, 2))],
            ranges in prop_oneof![Just(1usize), Just(4), Just(256)],
            bytes in prop_oneof![Just(0usize), Just(1 << 16), Just(1 << 24)],
        ) {
            let sources: Vec<Vec<Plain>> = sources
                .into_iter()
                .map(|source| {
                    let record = |(rank, low): (u64, u64)| {
                        // Ranks near one another, and far from one another.
                        let rank = if low & 1 == 0 { rank % ranks } else { (rank % ranks).rotate_right(11) };
                        Plain(u128::from(rank) << 64 | u128::from(low))
                    };
                    let mut source: Vec<Plain> = source.into_iter().map(record).collect();
                    source.sort();
                    source
                })
                .collect();
            let memory = Memory { bytes, ..Memory::default() };
            let open = |shards: Range<usize>| {
                let of_shards = |source: &Vec<Plain>| -> Box<dyn Ascending<Plain>> {
                    let records: Vec<Plain> = source.iter().copied().filter(|record| shards.contains(&record.shard())).collect();
                    Box::new(records.into_iter().map(Ok))
                };
                Ok(sources.iter().map(of_shards).collect())
            };
            let (merged, passed_over) = merge_ordered(ranges, &memory, open, &choice, |_| Ok(())).unwrap();
            let mut all = sources.concat();
            all.sort();
            let same = |a: &Plain, b: &Plain| a.rank() == b.rank();
            let (chosen, other): (Vec<&[Plain]>, Vec<&[Plain]>) = all.chunk_by(same).partition(|group| choice.keeps(group));
            let expected = chosen.concat();
            let records = (all.len() - expected.len()) as u64;
            prop_assert_eq!(passed_over, PassedOver { groups: other.len() as u64, records });
            if bytes == 0 {
                prop_assert_eq!(merged.is_spilled(), !expected.is_empty());
            } else if bytes == 1 << 24 && ranks == u64::MAX {
                // Ranks near one another are of one shard, which has but its share.
                prop_assert!(!merged.is_spilled());
            }
            let mut found = Vec::new();
            for shard in 0..SHARDS {
                merged.for_each(shard, |record| found.push(record)).unwrap();
            }
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_merge_ends_with_the_first_error() {
        let open = |_: Range<usize>| -> Result<Vec<Box<dyn Ascending<Plain>>>> {
            let records = [Ok(Plain(1)), Err(Error::Interrupted)];
            Ok(vec![Box::new(records.into_iter())])
        };
        let merged = merge_ordered(1, &Memory::default(), open, &Of(1, 0), |_| Ok(()));
        assert!(matches!(merged, Err(Error::Interrupted)));
        let open = |_: Range<usize>| -> Result<Vec<Box<dyn Ascending<Plain>>>> {
            Ok(vec![Box::new([Ok(Plain(1))].into_iter())])
        };
        let merged = merge_ordered(1, &Memory::default(), open, &Of(1, 0), |_| {
            Err(Error::Interrupted)
        });
        assert!(matches!(merged, Err(Error::Interrupted)));
    }
}

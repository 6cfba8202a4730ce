//! Records in sorted order, in bounded memory.
//!
//! The records are spread over [`SHARDS`] shards that are themselves in order: every record of one is
//! smaller than every record of the next. A shard takes records as they come and is *compacted* when
//! it has its fill: what came is sorted, merged with what is sorted already, and folded. If that
//! leaves it more than half full, the sorted records go to its temporary file as a run, and at the end
//! its runs are merged.
//!
//! Sorting a shard's few thousand records in the cache and folding neighbours beats a hash map per
//! shard, which waits for memory at each count; and a sorted run is just what a spill needs.

use std::{
    cell::RefCell,
    cmp::Reverse,
    collections::BinaryHeap,
    marker::PhantomData,
    ops::Range,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError, TryLockError},
};

use rayon::prelude::*;

use super::{
    merge::merge_two,
    run::{Run, RunFile, RunReader},
};
use crate::error::Result;

/// How many shards there are.
pub const SHARDS: usize = 256;

/// Into how many parts a shard is divided to be sorted.
pub const BUCKETS: usize = 256;

/// Records in a block of those that wait for their compaction.
const BLOCK: usize = 1024;

/// The records that a shard may hold however little memory there is.
const SMALLEST_QUOTA: usize = 64;

/// How many runs are merged at once; more are merged in several rounds.
const FAN_IN: usize = 64;

/// What a kind of record means: which shard it goes to and what becomes of several of one kind.
pub trait Fold: Default + Send {
    /// The shard of a record, under [`SHARDS`]. It never falls when the record grows.
    fn shard(record: u128) -> usize;

    /// The bucket of a record in its shard, under [`BUCKETS`]. Within a shard it never falls when the
    /// record grows.
    fn bucket(record: u128) -> usize;

    /// Takes the next record in ascending order and hands over those that are complete. Over a whole
    /// sequence it hands over no more than it takes.
    fn take(&mut self, record: u128, out: &mut impl FnMut(u128));

    /// Hands over what is left after the last record.
    fn finish(&mut self, out: &mut impl FnMut(u128));
}

/// How much memory to use, and where to go when that is full.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Memory {
    /// Bytes that records may take.
    pub bytes: usize,
    /// The directory of the temporary files.
    pub temp_dir: PathBuf,
}

/// 1 GiB, and the system's directory for temporary files.
impl Default for Memory {
    fn default() -> Memory {
        Memory {
            bytes: 1 << 30,
            temp_dir: std::env::temp_dir(),
        }
    }
}

/// Records sorted into the order of their shards, ready to be [appended](Shards::append).
#[derive(Debug)]
pub struct Partition<F> {
    records: Vec<u128>,
    /// Where each shard's records begin, and the end.
    starts: Vec<u32>,
    kind: PhantomData<F>,
}

impl<F: Fold> Partition<F> {
    /// Sorts `records` by shard; at most 2^32 of them.
    pub fn new(records: &[u128]) -> Partition<F> {
        let mut starts = vec![0u32; SHARDS + 1];
        for record in records {
            starts[F::shard(*record) + 1] += 1;
        }
        for shard in 0..SHARDS {
            starts[shard + 1] += starts[shard];
        }
        let mut next = starts.clone();
        let mut sorted = vec![0; records.len()];
        for record in records {
            let at = &mut next[F::shard(*record)];
            sorted[*at as usize] = *record;
            *at += 1;
        }
        Partition {
            records: sorted,
            starts,
            kind: PhantomData,
        }
    }

    fn shard(&self, shard: usize) -> &[u128] {
        &self.records[self.starts[shard] as usize..self.starts[shard + 1] as usize]
    }
}

/// Records being collected. Any number of threads may append at the same time.
#[derive(Debug)]
pub struct Shards<F> {
    shards: Vec<Mutex<Shard>>,
    /// How many records a shard may hold.
    quota: usize,
    memory: Memory,
    kind: PhantomData<fn() -> F>,
}

#[derive(Default, Debug)]
struct Shard {
    /// Full blocks and one that is filling.
    waiting: Vec<Vec<u128>>,
    sorted: Vec<u128>,
    spilled: Option<RunFile>,
}

impl Shard {
    fn waiting(&self) -> usize {
        self.waiting
            .last()
            .map_or(0, |last| (self.waiting.len() - 1) * BLOCK + last.len())
    }

    fn extend(&mut self, mut records: &[u128]) {
        while !records.is_empty() {
            let room = match self.waiting.last() {
                Some(block) if block.len() < BLOCK => BLOCK - block.len(),
                _ => {
                    self.waiting.push(Vec::with_capacity(BLOCK));
                    BLOCK
                }
            };
            let (now, later) = records.split_at(room.min(records.len()));
            if let Some(block) = self.waiting.last_mut() {
                block.extend_from_slice(now);
            }
            records = later;
        }
    }

    /// Sorts what waits and merges it with what is sorted.
    fn compact<F: Fold>(&mut self) {
        let new = sorted::<F>(std::mem::take(&mut self.waiting));
        if self.sorted.is_empty() {
            self.sorted = new;
        } else if !new.is_empty() {
            self.sorted = merge_two::<F>(&self.sorted, &new);
        }
    }

    fn spill(&mut self, memory: &Memory) -> Result<()> {
        let file = match &mut self.spilled {
            Some(file) => file,
            None => self.spilled.insert(RunFile::create(&memory.temp_dir)?),
        };
        file.append(&self.sorted)?;
        self.sorted = Vec::new();
        Ok(())
    }
}

impl<F: Fold> Shards<F> {
    /// No records yet.
    pub fn new(memory: Memory) -> Shards<F> {
        // A quarter is left for the blocks' unused ends and for what a compaction needs meanwhile.
        let records = memory.bytes / size_of::<u128>() / 4 * 3;
        Shards {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            quota: (records / SHARDS).max(SMALLEST_QUOTA),
            memory,
            kind: PhantomData,
        }
    }

    /// Takes records, each into its shard.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be written.
    pub fn append(&self, partition: &Partition<F>) -> Result<()> {
        // A shard that another thread holds is left for later rather than waited for.
        let mut busy = Vec::new();
        for (shard, lock) in self.shards.iter().enumerate() {
            match lock.try_lock() {
                Ok(guard) => self.extend(guard, partition.shard(shard))?,
                Err(TryLockError::WouldBlock) => busy.push(shard),
                Err(TryLockError::Poisoned(guard)) => {
                    self.extend(guard.into_inner(), partition.shard(shard))?;
                }
            }
        }
        for shard in busy {
            let guard = self.shards[shard]
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            self.extend(guard, partition.shard(shard))?;
        }
        Ok(())
    }

    fn extend(&self, mut shard: MutexGuard<'_, Shard>, records: &[u128]) -> Result<()> {
        for chunk in records.chunks(self.quota / 2) {
            shard.extend(chunk);
            if shard.waiting() + shard.sorted.len() >= self.quota {
                shard.compact::<F>();
                if shard.sorted.len() > self.quota / 2 {
                    shard.spill(&self.memory)?;
                }
            }
        }
        Ok(())
    }

    /// Ends collecting: every shard becomes one sorted sequence. Works on all threads of the rayon
    /// pool that it is called in.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be written or read.
    pub fn seal(self) -> Result<Sealed<F>> {
        let memory = &self.memory;
        let shards = self
            .shards
            .into_par_iter()
            .map(|shard| {
                let mut shard = shard.into_inner().unwrap_or_else(PoisonError::into_inner);
                shard.compact::<F>();
                if shard.spilled.is_none() {
                    return Ok(SealedShard::Memory(shard.sorted));
                }
                if !shard.sorted.is_empty() {
                    shard.spill(memory)?;
                }
                match shard.spilled {
                    Some(file) => Ok(SealedShard::File(merge_runs::<F>(file, memory)?)),
                    None => Ok(SealedShard::Memory(Vec::new())),
                }
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Sealed {
            shards,
            kind: PhantomData,
        })
    }
}

thread_local! {
    /// Where records are sorted. Asking the system for new pages each time would take as long as
    /// sorting.
    static DESK: RefCell<Vec<u128>> = const { RefCell::new(Vec::new()) };
}

/// All records of some blocks, sorted and folded.
fn sorted<F: Fold>(blocks: Vec<Vec<u128>>) -> Vec<u128> {
    DESK.with_borrow_mut(|desk| {
        sort_onto::<F>(desk, blocks);
        fold_in_place::<F>(desk);
        desk.to_vec()
    })
}

/// Distributes records over the buckets first, so that what is left to sort is short.
fn sort_onto<F: Fold>(desk: &mut Vec<u128>, blocks: Vec<Vec<u128>>) {
    let mut ends = [0usize; BUCKETS];
    for record in blocks.iter().flatten() {
        ends[F::bucket(*record)] += 1;
    }
    let mut next = [0usize; BUCKETS];
    let mut total = 0;
    for (next, end) in next.iter_mut().zip(&mut ends) {
        *next = total;
        total += *end;
        *end = total;
    }
    desk.resize(total, 0);
    for block in blocks {
        for record in block {
            let at = &mut next[F::bucket(record)];
            desk[*at] = record;
            *at += 1;
        }
    }
    let mut start = 0;
    for end in ends {
        desk[start..end].sort_unstable();
        start = end;
    }
}

fn fold_in_place<F: Fold>(records: &mut Vec<u128>) {
    let mut fold = F::default();
    let mut kept = 0;
    for at in 0..records.len() {
        let record = records[at];
        fold.take(record, &mut |folded| {
            records[kept] = folded;
            kept += 1;
        });
    }
    fold.finish(&mut |folded| {
        records[kept] = folded;
        kept += 1;
    });
    records.truncate(kept);
}

/// Merges all runs of a shard into one.
fn merge_runs<F: Fold>(mut file: RunFile, memory: &Memory) -> Result<RunFile> {
    while file.runs().len() > 1 {
        let mut merged = RunFile::create(&memory.temp_dir)?;
        for runs in file.runs().chunks(FAN_IN) {
            merge_some::<F>(&file, runs, &mut merged)?;
        }
        file = merged;
    }
    Ok(file)
}

/// Merges a few runs into one at the end of another file.
fn merge_some<F: Fold>(file: &RunFile, runs: &[Run], merged: &mut RunFile) -> Result<()> {
    let mut readers: Vec<RunReader<'_>> = runs.iter().map(|run| file.reader(*run)).collect();
    let mut heap = BinaryHeap::with_capacity(readers.len());
    for (i, reader) in readers.iter_mut().enumerate() {
        if let Some(record) = reader.next()? {
            heap.push(Reverse((record, i)));
        }
    }
    let mut fold = F::default();
    let mut writer = merged.start_run();
    while let Some(mut smallest) = heap.peek_mut() {
        let Reverse((record, i)) = *smallest;
        fold.take(record, &mut |folded| writer.push(folded));
        writer.flush_if_full()?;
        match readers[i].next()? {
            Some(next) => *smallest = Reverse((next, i)),
            None => {
                std::collections::binary_heap::PeekMut::pop(smallest);
            }
        }
    }
    fold.finish(&mut |folded| writer.push(folded));
    writer.finish()
}

/// All records, sorted and folded, shard by shard.
#[derive(Debug)]
pub struct Sealed<F> {
    shards: Vec<SealedShard>,
    kind: PhantomData<fn() -> F>,
}

#[derive(Debug)]
enum SealedShard {
    Memory(Vec<u128>),
    File(RunFile),
}

impl<F: Fold> Sealed<F> {
    /// Calls `f` with the groups of records of a shard that are of the `same` kind, in ascending order.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be read.
    pub fn for_each_group(
        &self,
        shard: usize,
        same: impl Fn(u128, u128) -> bool,
        mut f: impl FnMut(&[u128]),
    ) -> Result<()> {
        if let SealedShard::Memory(records) = &self.shards[shard] {
            records.chunk_by(|a, b| same(*a, *b)).for_each(f);
            return Ok(());
        }
        let mut group: Vec<u128> = Vec::new();
        self.for_each(shard, |record| {
            if group.last().is_some_and(|last| !same(*last, record)) {
                f(&group);
                group.clear();
            }
            group.push(record);
        })?;
        if !group.is_empty() {
            f(&group);
        }
        Ok(())
    }

    /// Calls `f` with the records of a shard in ascending order.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be read.
    pub fn for_each(&self, shard: usize, mut f: impl FnMut(u128)) -> Result<()> {
        match &self.shards[shard] {
            SealedShard::Memory(records) => records.iter().copied().for_each(f),
            SealedShard::File(file) => {
                for run in file.runs() {
                    let mut reader = file.reader(*run);
                    while let Some(record) = reader.next()? {
                        f(record);
                    }
                }
            }
        }
        Ok(())
    }

    /// How many records a shard has.
    pub(super) fn shard_len(&self, shard: usize) -> u64 {
        match &self.shards[shard] {
            SealedShard::Memory(records) => records.len() as u64,
            SealedShard::File(file) => file.runs().iter().map(|run| run.len()).sum(),
        }
    }

    /// The records of a shard that is in memory.
    pub(super) fn in_memory(&self, shard: usize) -> Option<&[u128]> {
        match &self.shards[shard] {
            SealedShard::Memory(records) => Some(records),
            SealedShard::File(_) => None,
        }
    }

    /// Some of a shard's records, read onto `desk` if they are not in memory.
    pub(super) fn range<'a>(
        &'a self,
        shard: usize,
        range: Range<usize>,
        desk: &'a mut Vec<u128>,
    ) -> Result<&'a [u128]> {
        match &self.shards[shard] {
            SealedShard::Memory(records) => Ok(&records[range]),
            // A sealed shard is one run.
            SealedShard::File(file) => {
                desk.clear();
                if let Some(run) = file.runs().first() {
                    file.read(*run, range, desk)?;
                }
                Ok(desk)
            }
        }
    }

    /// Whether any shard had to go to a temporary file.
    pub fn is_spilled(&self) -> bool {
        self.shards
            .iter()
            .any(|shard| matches!(shard, SealedShard::File(_)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tally::record::SumUp;

    fn sealed_records(records: &[u128], bytes: usize) -> (Vec<u128>, bool) {
        let shards = Shards::<SumUp>::new(Memory {
            bytes,
            ..Memory::default()
        });
        for batch in records.chunks(1000) {
            shards.append(&Partition::new(batch)).unwrap();
        }
        let sealed = shards.seal().unwrap();
        let mut found = Vec::new();
        for shard in 0..SHARDS {
            sealed.for_each(shard, |record| found.push(record)).unwrap();
        }
        (found, sealed.is_spilled())
    }

    #[test]
    fn spilling_changes_nothing() {
        // Few positions often and many seldom, in three shards, so that a shard spills many runs.
        let mut state = 1u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            u128::from(state >> 33)
        };
        let records: Vec<u128> = (0..600_000)
            .map(|i| {
                let key = if i % 3 == 0 {
                    next() % 40
                } else {
                    next() % 200_000
                };
                key << 64 | (next() % 3) << 120 | 1 << 16
            })
            .collect();
        let (roomy, spilled) = sealed_records(&records, 1 << 30);
        assert!(!spilled);
        let (tight, spilled) = sealed_records(&records, 0);
        assert!(spilled);
        assert!(roomy.is_sorted());
        assert_eq!(roomy, tight);
        let counted: u128 = roomy.iter().map(|record| record >> 16 & 0xffff).sum();
        assert_eq!(counted, 600_000);
    }

    #[test]
    fn temporary_files_that_cannot_be_made_are_an_error() {
        let shards = Shards::<SumUp>::new(Memory {
            bytes: 0,
            temp_dir: "/nonexistent/directory".into(),
        });
        let records: Vec<u128> = (0..10_000u128).map(|i| i << 64 | 1).collect();
        let err = shards.append(&Partition::new(&records)).unwrap_err();
        assert!(err.to_string().contains("/nonexistent/directory"), "{err}");
    }

    proptest! {
        #[test]
        fn partitions_keep_every_record(mut records in proptest::collection::vec(any::<u128>(), 0..500)) {
            let partition = Partition::<SumUp>::new(&records);
            let mut found: Vec<u128> = (0..SHARDS).flat_map(|s| partition.shard(s).to_vec()).collect();
            prop_assert!(found.is_sorted_by_key(|record| SumUp::shard(*record)));
            found.sort_unstable();
            records.sort_unstable();
            prop_assert_eq!(found, records);
        }
    }
}

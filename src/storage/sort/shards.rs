//! Distributes records over shards, and then sorts and folds the records of each shard into one sequence.
//!
//! [`Sorted`] contains the sorted and folded records of a store, in one sequence for each shard. A sequence in memory
//! is stored in blocks of equal size ([`Blocks`]). Growing it allocates a new block and never copies records. The
//! allocator can reuse a freed block for the next sequence. This matters because touching fresh memory pages takes as
//! long as sorting the records in them.

use std::{
    mem,
    ops::Range,
    slice,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use rayon::prelude::*;

use super::{
    Fold, Memory, PACKED_SIZE, Record, SHARDS,
    run::{ByteRun, MAX_BATCH_ITEMS, Merge, Refill, RunFile, SortedRecords, fold_into},
};
use crate::{error::Result, task};

/// The number of records that each shard (an ordered part of the data to sort) may always hold in memory, even if the
/// memory budget is very small. There are [`SHARDS`] shards.
const MIN_QUOTA: usize = 64;

/// The number of consecutive shards (ordered parts of the data to sort) that share a temporary file. Sharing keeps the
/// number of open files low.
const SHARDS_PER_FILE: usize = 8;

/// The maximum number of sorted runs (sequences of records in temporary files) that one merge combines. If there are
/// more runs, they are merged in several rounds.
const FAN_IN: usize = 64;

/// The desired number of records in a bucket of a bucket sort. Such a small bucket is sorted with few comparisons.
const RECORDS_PER_BUCKET: usize = 2;

/// The maximum number of bits of a bucket number in a bucket sort. With more buckets, distributing the records would
/// exceed the processor's cache.
const MAX_BUCKET_BITS: u32 = 11;

/// The maximum number of records in a bucket that is sorted by insertion, whose time is quadratic.
const MAX_INSERTED: usize = 16;

/// Buffers for sorting the records of a shard.
#[derive(Default, Debug)]
struct Scratch<R> {
    /// For each bucket of a bucket sort, the index at which its next record is stored.
    places: Vec<u32>,
    sorted: Vec<R>,
}

/// The buffers of a thread that appends records to a store.
#[derive(Default, Debug)]
struct Buffers<R> {
    /// A batch of records, grouped by shard.
    partitioned: Vec<R>,
    scratch: Scratch<R>,
}

/// Buffers that no thread is using at the moment. They are freed together with the store, because the memory budget of
/// the store includes them.
#[derive(Default, Debug)]
struct IdleBuffers<R>(Mutex<Vec<Buffers<R>>>);

impl<R: Record> IdleBuffers<R> {
    /// Calls `work` with buffers that no other thread is using.
    fn lend<T>(&self, work: impl FnOnce(&mut Buffers<R>) -> T) -> T {
        let mut buffers = task::lock(&self.0).pop().unwrap_or_default();
        let done = work(&mut buffers);
        task::lock(&self.0).push(buffers);
        done
    }
}

/// Extends `buffer` to at least `len` elements. Returns the first `len` elements, whose values are arbitrary.
fn at_least<R: Record>(buffer: &mut Vec<R>, len: usize) -> &mut [R] {
    if buffer.len() < len {
        buffer.resize(len, R::default());
    }
    &mut buffer[..len]
}

/// A batch of records grouped by shard. The records of each shard keep their original order.
struct Partition<'a, R> {
    records: &'a [R],
    /// The index in `records` of the first record of each shard, followed by the number of all records.
    starts: Vec<u32>,
}

impl<'a, R: Record> Partition<'a, R> {
    /// Groups `records` by shard, and stores the grouped records in `buffer`. There must be fewer than 2^32 records.
    fn new(records: &[R], buffer: &'a mut Vec<R>) -> Partition<'a, R> {
        let mut starts = vec![0u32; SHARDS + 1];
        for record in records {
            starts[record.shard() + 1] += 1;
        }
        for shard in 0..SHARDS {
            starts[shard + 1] += starts[shard];
        }
        let mut ends = starts.clone();
        let sorted = at_least(buffer, records.len());
        for record in records {
            let end = &mut ends[record.shard()];
            sorted[*end as usize] = *record;
            *end += 1;
        }
        Partition {
            records: sorted,
            starts,
        }
    }

    fn shard(&self, shard: usize) -> &'a [R] {
        &self.records[self.starts[shard] as usize..self.starts[shard + 1] as usize]
    }
}

/// A shard (an ordered part of the data to sort) that is still collecting records. It consists of unsorted records in
/// memory and sorted runs in temporary files.
#[derive(Debug)]
struct Shard<R> {
    /// The unsorted records that could be packed.
    packed: Blocks<[u8; PACKED_SIZE]>,
    records: Blocks<R>,
    /// The sorted runs in temporary files.
    runs: Vec<ByteRun>,
}

impl<R> Default for Shard<R> {
    fn default() -> Shard<R> {
        Shard {
            packed: Blocks::default(),
            records: Blocks::default(),
            runs: Vec::new(),
        }
    }
}

impl<R: Record> Shard<R> {
    /// Returns the number of records that the shard holds in memory.
    fn len(&self) -> usize {
        self.packed.len() + self.records.len()
    }

    fn extend(&mut self, records: &[R]) {
        for record in records {
            match record.packed() {
                Some(packed) => self.packed.push(packed),
                None => self.records.push(*record),
            }
        }
    }

    /// Removes all records of the shard from memory, sorts them and folds equal ones. Returns the folded records, which
    /// are stored in `scratch`. `shard` is the number of this shard.
    fn take_sorted<'s>(&mut self, shard: usize, scratch: &'s mut Scratch<R>) -> &'s [R] {
        let bits = (self.len() / RECORDS_PER_BUCKET)
            .max(1)
            .ilog2()
            .min(MAX_BUCKET_BITS);
        let places = &mut scratch.places;
        places.clear();
        places.resize(1 << bits, 0);
        self.for_each(shard, |record| places[record.bucket(bits)] += 1);
        let mut large = Vec::new();
        let mut start = 0;
        for place in places.iter_mut() {
            let end = start + *place;
            if *place > MAX_INSERTED as u32 {
                large.push(start as usize..end as usize);
            }
            *place = start;
            start = end;
        }
        let sorted = at_least(&mut scratch.sorted, self.len());
        self.for_each(shard, |record| {
            let place = &mut places[record.bucket(bits)];
            sorted[*place as usize] = record;
            *place += 1;
        });
        (self.packed, self.records) = (Blocks::default(), Blocks::default());
        for bucket in large {
            sorted[bucket].sort_unstable();
        }
        sort_by_insertion(sorted);
        let kept = fold_in_place(sorted);
        &sorted[..kept]
    }

    /// Calls `f` with each record that the shard holds in memory. `shard` is the number of this shard.
    #[inline(always)]
    fn for_each(&self, shard: usize, mut f: impl FnMut(R)) {
        for packed in self.packed.slices().flatten() {
            f(R::from_packed(shard, *packed));
        }
        for record in self.records.slices().flatten() {
            f(*record);
        }
    }
}

/// Sorts records by insertion. Fast only if each record is already near its final index, for example in a small bucket
/// that is not sorted.
fn sort_by_insertion<R: Record>(records: &mut [R]) {
    for at in 1..records.len() {
        let record = records[at];
        let mut place = at;
        while place > 0 && records[place - 1] > record {
            records[place] = records[place - 1];
            place -= 1;
        }
        records[place] = record;
    }
}

/// Folds sorted records. Stores the folded records at the start of `records`, and returns their number.
fn fold_in_place<R: Record>(records: &mut [R]) -> usize {
    let mut fold = R::Fold::default();
    let (mut kept, mut is_folding) = (0, false);
    for at in 0..records.len() {
        let record = records[at];
        let is_last = records
            .get(at + 1)
            .is_none_or(|next| next.rank() != record.rank());
        // Most records have a rank of their own and need no fold.
        if is_last && !is_folding {
            records[kept] = record;
            kept += 1;
            continue;
        }
        let mut keep = |folded| {
            records[kept] = folded;
            kept += 1;
        };
        fold.take(record, &mut keep);
        if is_last {
            fold.finish(&mut keep);
        }
        is_folding = !is_last;
    }
    kept
}

/// Collects and sorts more records than fit into memory. The high bits of a record select the shard that collects it.
/// Several threads may append records at the same time.
#[derive(Debug)]
pub(crate) struct Shards<R> {
    shards: Vec<Mutex<Shard<R>>>,
    files: Vec<Mutex<Arc<RunFile>>>,
    /// The maximum number of records that a shard holds in memory.
    quota: usize,
    memory: Memory,
    buffers: IdleBuffers<R>,
}

/// Returns the maximum number of records that each shard may hold in memory. A quarter of the budget `memory` is
/// reserved for sorting, and the rest is divided equally among the [`SHARDS`] shards.
fn quota<R>(memory: &Memory) -> usize {
    (memory.bytes / size_of::<R>() / 4 * 3 / SHARDS).max(MIN_QUOTA)
}

impl<R: Record> Shards<R> {
    /// Creates an empty store. `memory` is its memory budget.
    pub(crate) fn new(memory: Memory) -> Shards<R> {
        let files = 0..SHARDS / SHARDS_PER_FILE;
        Shards {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            files: files
                .map(|_| Mutex::new(RunFile::new(&memory.temp_dir)))
                .collect(),
            quota: quota::<R>(&memory),
            memory,
            buffers: IdleBuffers::default(),
        }
    }

    /// Appends records to the store. There must be fewer than 2^32 records per call.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be written.
    pub(crate) fn append(&self, records: &[R]) -> Result<()> {
        self.buffers.lend(|buffers| {
            let partition = Partition::new(records, &mut buffers.partitioned);
            self.append_partition(&partition, &mut buffers.scratch)
        })
    }

    fn append_partition(
        &self,
        partition: &Partition<'_, R>,
        scratch: &mut Scratch<R>,
    ) -> Result<()> {
        // Shards that other threads have locked are filled last, to avoid waiting.
        let mut busy = Vec::new();
        for (number, shard) in self.shards.iter().enumerate() {
            match shard.try_lock() {
                Ok(mut shard) => {
                    self.extend(number, &mut shard, partition.shard(number), scratch)?
                }
                // `try_lock` also fails if a thread panicked while it held the lock. That panic makes the whole run fail.
                Err(_) => busy.push(number),
            }
        }
        for number in busy {
            let mut shard = task::lock(&self.shards[number]);
            self.extend(number, &mut shard, partition.shard(number), scratch)?;
        }
        Ok(())
    }

    fn extend(
        &self,
        number: usize,
        shard: &mut Shard<R>,
        mut records: &[R],
        scratch: &mut Scratch<R>,
    ) -> Result<()> {
        task::fault("tally");
        while !records.is_empty() {
            let free = self.quota - shard.len();
            let (now, later) = records.split_at(free.min(records.len()));
            shard.extend(now);
            if shard.len() == self.quota {
                self.compact(number, shard, scratch)?;
            }
            records = later;
        }
        Ok(())
    }

    /// Sorts and folds the records that `shard` holds in memory. If the result still fills more than half of the
    /// shard's quota (the number of records that it may hold), writes it to a temporary file as a sorted run. `number`
    /// is the index of the shard. `scratch` contains buffers for sorting.
    fn compact(&self, number: usize, shard: &mut Shard<R>, scratch: &mut Scratch<R>) -> Result<()> {
        let sorted = shard.take_sorted(number, scratch);
        if sorted.len() <= self.quota / 2 {
            shard.records = Blocks::of(sorted);
            return Ok(());
        }
        // Until the run is finished, the other shards that share the file must not write to it.
        let file = task::lock(&self.files[number / SHARDS_PER_FILE]);
        task::fault("spill");
        let mut run = ByteRun::within(0, &file);
        run.append_records(sorted)?;
        shard.runs.push(run.finish()?);
        Ok(())
    }

    /// Returns the number of bytes that have been written to temporary files.
    pub(crate) fn spilled_bytes(&self) -> u64 {
        self.files.iter().map(|file| task::lock(file).size()).sum()
    }

    /// Completes the store: sorts and folds the records of each shard, so that they form one ascending sequence. Uses
    /// all threads of the current rayon pool.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be written or read.
    pub(crate) fn sort(self) -> Result<Sorted<R>> {
        let Shards {
            shards,
            files,
            memory,
            quota,
            buffers,
        } = self;
        // Each run holds a reference to its file, so a file is removed when its last run is dropped.
        drop(files);
        let mut shards: Vec<_> = shards.into_iter().map(task::unlocked).enumerate().collect();
        let held: usize = shards.iter().map(|(_, shard)| shard.len()).sum();
        let budget = RecordBudget(AtomicUsize::new((SHARDS * quota).saturating_sub(held)));
        let sorted = shards.par_chunks_mut(SHARDS_PER_FILE).map(|shards| {
            task::fault("sort");
            let mut writer = SortedWriter::new(&memory);
            buffers.lend(|buffers| {
                let mut sort = |(number, shard): &mut (usize, Shard<R>)| {
                    let scratch = &mut buffers.scratch;
                    sort_shard(*number, mem::take(shard), scratch, &budget, &mut writer)
                };
                shards.iter_mut().map(&mut sort).collect::<Result<_>>()
            })
        });
        let sorted: Vec<Vec<SortedShard<R>>> = sorted.collect::<Result<_>>()?;
        Ok(Sorted::new(sorted))
    }
}

/// The number of further records that may stay in memory while shards are sorted. All threads that sort shards share
/// it.
struct RecordBudget(AtomicUsize);

impl RecordBudget {
    /// Takes memory for `records` records from the budget. Returns `false` and takes nothing if not enough memory is
    /// left.
    fn take(&self, records: usize) -> bool {
        let less = |budget: usize| budget.checked_sub(records);
        let taken = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        taken.is_ok()
    }

    fn give_back(&self, records: usize) {
        self.0.fetch_add(records, Ordering::Relaxed);
    }
}

/// Merges the records that a shard holds in memory with its runs in temporary files, and folds equal records. The
/// result stays in memory if `budget`, the remaining memory budget, permits it. Otherwise, `writer` writes it to a
/// file. `number` is the index of the shard. `scratch` contains buffers for sorting.
fn sort_shard<R: Record>(
    number: usize,
    mut shard: Shard<R>,
    scratch: &mut Scratch<R>,
    budget: &RecordBudget,
    writer: &mut SortedWriter<R>,
) -> Result<SortedShard<R>> {
    let held = shard.len();
    let sorted = shard.take_sorted(number, scratch);
    let mut runs = shard.runs;
    if runs.is_empty() {
        return Ok(SortedShard::Memory(Blocks::of(sorted)));
    }
    while runs.len() >= FAN_IN {
        let round = RunFile::new(&writer.file.temp_dir);
        let merge = |runs: &[ByteRun]| {
            let mut merged = ByteRun::within(0, &round);
            let sources = runs.iter().map(|run| run.refill::<R>(MAX_BATCH_ITEMS));
            fold_into(Merge::of_sources(sources), |record| merged.push(record))?;
            merged.finish()
        };
        runs = runs.chunks(FAN_IN).map(merge).collect::<Result<_>>()?;
    }
    let spilled: u64 = runs.iter().map(ByteRun::records_len::<R>).sum();
    let most = sorted.len() + spilled as usize;
    writer.quota = if budget.take(most) { most } else { 0 };
    let mut in_memory = sorted.chunks(MAX_BATCH_ITEMS);
    let in_memory: Refill<'_, R> = Box::new(move |out| {
        let some = in_memory.next().unwrap_or_default();
        out.extend(some);
        Ok(())
    });
    let spilled = runs.iter().map(|run| run.refill(MAX_BATCH_ITEMS));
    let merge = Merge::of_sources(spilled.chain([in_memory]));
    fold_into(merge, |record| writer.push(record))?;
    let sorted = writer.end_shard()?;
    if let SortedShard::Memory(records) = &sorted {
        budget.give_back(writer.quota - records.len());
    }
    budget.give_back(held);
    Ok(sorted)
}

/// A writer of the sorted records of consecutive shards. A shard stays in memory if it has at most `quota` records.
/// Otherwise, all of its records are written to a temporary file.
struct SortedWriter<R> {
    /// The maximum number of records of the current shard that are kept in memory.
    quota: usize,
    file: Arc<RunFile>,
    /// The records of the current shard while they are in memory. `held` is their number.
    records: Blocks<R>,
    held: usize,
    /// The run to which all records of the current shard are written, or `None` while they fit into the quota.
    run: Option<ByteRun>,
}

impl<R: Record> SortedWriter<R> {
    fn new(memory: &Memory) -> SortedWriter<R> {
        SortedWriter {
            quota: quota::<R>(memory),
            file: RunFile::new(&memory.temp_dir),
            records: Blocks::default(),
            held: 0,
            run: None,
        }
    }

    #[inline]
    fn push(&mut self, record: R) -> Result<()> {
        if let Some(run) = &mut self.run {
            return run.push(record);
        }
        self.records.push(record);
        self.held += 1;
        if self.held <= self.quota {
            return Ok(());
        }
        let records = mem::take(&mut self.records);
        let run = self.run.insert(ByteRun::within(0, &self.file));
        records.iter().try_for_each(|record| run.push(record))
    }

    /// Completes the current shard, and returns its records. The next record that is pushed begins a new shard.
    fn end_shard(&mut self) -> Result<SortedShard<R>> {
        self.held = 0;
        Ok(match self.run.take() {
            Some(run) => SortedShard::File(run.finish()?),
            None => SortedShard::Memory(mem::take(&mut self.records)),
        })
    }
}

/// Merges the sorted records of several sources, and folds equal records as [`Record::Fold`] defines. Records with the
/// same [rank](Record::rank), such as the moves of one position, form a group. Groups for which `keeps` returns `false`
/// are dropped.
///
/// The shards are divided into `ranges` equal ranges, which are merged in parallel on the threads of the current rayon
/// pool. `ranges` must divide [`SHARDS`]. `open` returns the sources that contain the records of a range of shards.
/// `watch` is called repeatedly with the current number of bytes in temporary files. If `watch` returns an error, the
/// merge fails with this error.
///
/// Returns the sorted records of the groups that were kept, and the numbers of groups and records that were dropped.
///
/// # Errors
///
/// Returns an error if a temporary file cannot be written. Also returns the errors of the sources and of `watch`.
pub(crate) fn merge_ordered<'a, R: Record>(
    ranges: usize,
    memory: &Memory,
    open: impl Fn(Range<usize>) -> Vec<Refill<'a, R>> + Sync,
    keeps: impl Fn(&[R]) -> bool + Sync,
    watch: impl Fn(u64) -> Result<()> + Sync,
) -> Result<(Sorted<R>, Dropped)> {
    let spilled = AtomicU64::new(0);
    let each = SHARDS / ranges;
    let merged = (0..ranges).into_par_iter().map(|range| {
        let shards = range * each..(range + 1) * each;
        let mut merge = Merge::of_sources(open(shards.clone()));
        let mut groups = Groups {
            keeps: &keeps,
            shards,
            rank: None,
            fold: R::Fold::default(),
            group: Vec::new(),
            dropped: Dropped::default(),
            writer: SortedWriter::new(memory),
            sorted: Vec::with_capacity(each),
        };
        loop {
            let window = merge.window()?;
            if window.is_empty() {
                break;
            }
            groups.take(window)?;
            watch(spilled.load(Ordering::Relaxed) + groups.writer.file.size())?;
        }
        spilled.fetch_add(groups.writer.file.size(), Ordering::Relaxed);
        groups.finish()
    });
    let merged: Vec<(Vec<SortedShard<R>>, Dropped)> = merged.collect::<Result<_>>()?;
    let (sorted, dropped): (Vec<_>, Vec<Dropped>) = merged.into_iter().unzip();
    let dropped = Dropped {
        groups: dropped.iter().map(|dropped| dropped.groups).sum(),
        records: dropped.iter().map(|dropped| dropped.records).sum(),
    };
    Ok((Sorted::new(sorted), dropped))
}

/// The numbers of groups and records that a merge dropped. A group consists of all records with the same rank, such as
/// the moves of one position.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Dropped {
    pub groups: u64,
    pub records: u64,
}

/// The state of merging one range of shards. A group consists of all records with the same rank, such as the moves of
/// one position. Groups for which `keeps` returns `true` are written, and all others are dropped.
struct Groups<'a, R: Record, K> {
    keeps: &'a K,
    /// The current shard and those after it.
    shards: Range<usize>,
    /// The rank of the group that is being folded, or `None` between groups.
    rank: Option<u64>,
    fold: R::Fold,
    group: Vec<R>,
    dropped: Dropped,
    writer: SortedWriter<R>,
    sorted: Vec<SortedShard<R>>,
}

impl<R: Record, K: Fn(&[R]) -> bool> Groups<'_, R, K> {
    fn take(&mut self, records: &[R]) -> Result<()> {
        let mut groups = records.chunk_by(|a, b| a.rank() == b.rank()).peekable();
        while let Some(group) = groups.next() {
            let rank = group[0].rank();
            if self.rank != Some(rank) {
                self.end_group()?;
                // Most groups have one record and need no fold. The last group of a window may continue in the next
                // window.
                if let [only] = group
                    && groups.peek().is_some()
                {
                    self.write_if_kept(slice::from_ref(only))?;
                    continue;
                }
            }
            self.rank = Some(rank);
            for record in group {
                let folded = &mut self.group;
                self.fold.take(*record, &mut |record| folded.push(record));
            }
        }
        Ok(())
    }

    fn end_group(&mut self) -> Result<()> {
        if self.rank.take().is_none() {
            return Ok(());
        }
        let mut group = mem::take(&mut self.group);
        self.fold.finish(&mut |record| group.push(record));
        self.write_if_kept(&group)?;
        group.clear();
        self.group = group;
        Ok(())
    }

    /// Writes the records of a group (all records with the same rank) if `keeps` returns `true` for them. Otherwise,
    /// adds the group to the numbers of dropped groups and records.
    fn write_if_kept(&mut self, group: &[R]) -> Result<()> {
        if !(self.keeps)(group) {
            self.dropped.groups += 1;
            self.dropped.records += group.len() as u64;
            return Ok(());
        }
        while self.shards.start < group[0].shard() {
            self.end_shard()?;
        }
        group
            .iter()
            .try_for_each(|record| self.writer.push(*record))
    }

    fn end_shard(&mut self) -> Result<()> {
        self.sorted.push(self.writer.end_shard()?);
        self.shards.start += 1;
        Ok(())
    }

    fn finish(mut self) -> Result<(Vec<SortedShard<R>>, Dropped)> {
        self.end_group()?;
        while !self.shards.is_empty() {
            self.end_shard()?;
        }
        Ok((self.sorted, self.dropped))
    }
}

/// The size in bytes of a block. A sequence of records grows by one block at a time.
const BLOCK_SIZE: usize = 1 << 13;

/// A growable sequence of records, stored in separately allocated blocks of equal size. Every block except the last is
/// full.
#[derive(Debug)]
pub(super) struct Blocks<T>(Vec<Vec<T>>);

impl<T> Default for Blocks<T> {
    fn default() -> Blocks<T> {
        Blocks(Vec::new())
    }
}

impl<T: Copy> Blocks<T> {
    /// The number of records in a full block.
    const RECORDS_PER_BLOCK: usize = BLOCK_SIZE / size_of::<T>();

    fn of(records: &[T]) -> Blocks<T> {
        let block = |records: &[T]| {
            let mut block = Vec::with_capacity(Blocks::<T>::RECORDS_PER_BLOCK);
            block.extend_from_slice(records);
            block
        };
        Blocks(
            records
                .chunks(Blocks::<T>::RECORDS_PER_BLOCK)
                .map(block)
                .collect(),
        )
    }

    pub(super) fn len(&self) -> usize {
        let full = self.0.len().saturating_sub(1) * Blocks::<T>::RECORDS_PER_BLOCK;
        full + self.0.last().map_or(0, Vec::len)
    }

    #[inline]
    pub(super) fn push(&mut self, record: T) {
        match self.0.last_mut() {
            Some(last) if last.len() < last.capacity() => last.push(record),
            _ => {
                let mut block = Vec::with_capacity(Blocks::<T>::RECORDS_PER_BLOCK);
                block.push(record);
                self.0.push(block);
            }
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = T> + Clone + '_ {
        self.0.iter().flatten().copied()
    }

    /// Returns an iterator over the blocks, each as a slice of records.
    fn slices(&self) -> impl Iterator<Item = &[T]> {
        self.0.iter().map(Vec::as_slice)
    }

    /// Returns the record at index `number`, or `None` if the index is out of bounds.
    #[inline]
    pub(super) fn get(&self, number: usize) -> Option<&T> {
        let block = self.0.get(number / Blocks::<T>::RECORDS_PER_BLOCK)?;
        block.get(number % Blocks::<T>::RECORDS_PER_BLOCK)
    }

    /// Returns the records in a range of indices as one slice. If the range spans several blocks, the records are
    /// copied into `buffer` first.
    pub(super) fn range<'a>(&'a self, range: Range<usize>, buffer: &'a mut Vec<T>) -> &'a [T] {
        let (first, start) = (
            range.start / Blocks::<T>::RECORDS_PER_BLOCK,
            range.start % Blocks::<T>::RECORDS_PER_BLOCK,
        );
        let in_first = |block: &'a Vec<T>| block.get(start..start + range.len());
        if let Some(records) = self.0.get(first).and_then(in_first) {
            return records;
        }
        buffer.clear();
        buffer.reserve(range.len());
        let mut start = start;
        for block in self.0.iter().skip(first) {
            if buffer.len() == range.len() {
                break;
            }
            let end = block.len().min(start + range.len() - buffer.len());
            buffer.extend_from_slice(block.get(start..end).unwrap_or_default());
            start = 0;
        }
        buffer
    }
}

/// The records of a store after sorting and folding. They are divided into shards. The shards are in ascending order,
/// and so are the records of each shard.
#[derive(Debug)]
pub(crate) struct Sorted<R> {
    shards: Vec<SortedShard<R>>,
}

/// The sorted records of one shard, in memory or in a temporary file.
#[derive(Debug)]
pub(super) enum SortedShard<R> {
    Memory(Blocks<R>),
    /// A run in a temporary file, which neighboring shards share.
    File(ByteRun),
}

impl<R: Record> Sorted<R> {
    /// Creates the sorted records from groups of consecutive shards. The groups must be in ascending order.
    pub(super) fn new(groups: Vec<Vec<SortedShard<R>>>) -> Sorted<R> {
        Sorted {
            shards: groups.into_iter().flatten().collect(),
        }
    }

    /// Calls `f` with each record of the shard with index `shard`, in ascending order. A shard is one of the ordered
    /// parts of the records.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be read or was changed.
    pub(crate) fn for_each(&self, shard: usize, mut f: impl FnMut(R)) -> Result<()> {
        self.for_each_slice(shard, |records| records.iter().copied().for_each(&mut f))
    }

    /// Calls `f` with slices of consecutive records of the shard with index `shard`, in ascending order. Together, the
    /// slices contain all records of the shard. No slice is empty.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be read or was changed.
    pub(crate) fn for_each_slice(&self, shard: usize, mut f: impl FnMut(&[R])) -> Result<()> {
        match &self.shards[shard] {
            SortedShard::Memory(records) => {
                records.slices().for_each(f);
                Ok(())
            }
            SortedShard::File(run) => {
                let mut refill = run.refill(MAX_BATCH_ITEMS);
                let mut records = Vec::new();
                loop {
                    refill(&mut records)?;
                    if records.is_empty() {
                        return Ok(());
                    }
                    f(&records);
                    records.clear();
                }
            }
        }
    }

    /// Returns an iterator over the records of the shard with index `shard`, in ascending order.
    pub(crate) fn records(&self, shard: usize) -> SortedRecords<'_, R> {
        match &self.shards[shard] {
            SortedShard::Memory(records) => Box::new(records.iter().map(Ok)),
            SortedShard::File(run) => Box::new(run.records()),
        }
    }

    /// Returns the number of records in the shard with index `shard`.
    pub(crate) fn shard_len(&self, shard: usize) -> u64 {
        match &self.shards[shard] {
            SortedShard::Memory(records) => records.len() as u64,
            SortedShard::File(run) => run.records_len::<R>(),
        }
    }

    /// Returns the records of the shard with index `shard`, or `None` if they are in a temporary file.
    fn in_blocks(&self, shard: usize) -> Option<&Blocks<R>> {
        match &self.shards[shard] {
            SortedShard::Memory(records) => Some(records),
            SortedShard::File(_) => None,
        }
    }

    /// Returns `true` if the records of a shard are in memory, and `false` if they are in a temporary file. `shard` is
    /// the index of the shard.
    pub(crate) fn is_in_memory(&self, shard: usize) -> bool {
        self.in_blocks(shard).is_some()
    }

    /// Returns the record at index `number` in the shard with index `shard`. Returns `None` if `number` is out of
    /// bounds, or if the shard is in a temporary file.
    #[inline]
    pub(crate) fn in_memory(&self, shard: usize, number: usize) -> Option<&R> {
        self.in_blocks(shard)?.get(number)
    }

    /// Returns the records of the shard with index `shard` at the indices `range` as one slice. Records that are in a
    /// temporary file, or not contiguous in memory, are copied into `buffer` first.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be read or was changed.
    pub(crate) fn range<'a>(
        &'a self,
        shard: usize,
        range: Range<usize>,
        buffer: &'a mut Vec<R>,
    ) -> Result<&'a [R]> {
        match &self.shards[shard] {
            SortedShard::Memory(records) => Ok(records.range(range, buffer)),
            SortedShard::File(run) => {
                run.read(range, buffer)?;
                Ok(buffer)
            }
        }
    }

    /// Returns the approximate number of bytes of memory that the records take. Records in temporary files are not
    /// included.
    pub(crate) fn bytes_in_memory(&self) -> u64 {
        let in_memory = (0..self.shards.len()).filter_map(|shard| self.in_blocks(shard));
        (in_memory.map(Blocks::len).sum::<usize>() * size_of::<R>()) as u64
    }

    /// Returns `true` if the records of at least one shard are in a temporary file.
    pub(crate) fn is_spilled(&self) -> bool {
        (0..self.shards.len()).any(|shard| !self.is_in_memory(shard))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::Dedup, *};
    use crate::error::Error;

    /// A record whose low 16 bits are added up.
    #[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
    struct Sum(u128);

    #[derive(Default)]
    struct AddUp(Option<u128>);

    impl Record for Sum {
        type Fold = AddUp;
        type Bytes = [u8; 16];

        fn from_bytes(bytes: [u8; 16]) -> Sum {
            Sum(u128::from_le_bytes(bytes))
        }

        fn to_bytes(self) -> [u8; 16] {
            self.0.to_le_bytes()
        }

        fn rank(self) -> u64 {
            (self.0 >> 64) as u64
        }
    }

    impl Fold for AddUp {
        type Record = Sum;

        fn take(&mut self, record: Sum, out: &mut impl FnMut(Sum)) {
            match &mut self.0 {
                Some(open) if *open >> 16 == record.0 >> 16 => *open += record.0 & 0xffff,
                _ => {
                    self.finish(out);
                    self.0 = Some(record.0);
                }
            }
        }

        fn finish(&mut self, out: &mut impl FnMut(Sum)) {
            self.0.take().into_iter().for_each(|bits| out(Sum(bits)));
        }
    }

    fn sorted_records(records: &[Sum], bytes: usize) -> (Vec<Sum>, bool) {
        let shards = Shards::new(Memory {
            bytes,
            ..Memory::default()
        });
        for batch in records.chunks(1000) {
            shards.append(batch).unwrap();
        }
        let sorted = shards.sort().unwrap();
        let mut found = Vec::new();
        for shard in 0..SHARDS {
            sorted.for_each(shard, |record| found.push(record)).unwrap();
        }
        (found, sorted.is_spilled())
    }

    #[test]
    fn spilling_changes_nothing() {
        // Few kinds are frequent and many are rare. They are in three shards, so that each of these spills many runs.
        let mut state = 1u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            u128::from(state >> 33)
        };
        let records: Vec<Sum> = (0..600_000)
            .map(|i| {
                let kind = if i % 3 == 0 {
                    next() % 40
                } else {
                    next() % 200_000
                };
                Sum(kind << 64 | (next() % 3) << 120 | 1)
            })
            .collect();
        let (roomy, spilled) = sorted_records(&records, 1 << 30);
        assert!(!spilled);
        let (tight, spilled) = sorted_records(&records, 0);
        assert!(spilled);
        assert!(roomy.is_sorted());
        assert_eq!(roomy, tight);
        let counted: u128 = roomy.iter().map(|record| record.0 & 0xffff).sum();
        assert_eq!(counted, 600_000);
    }

    /// A record of 24 bytes.
    #[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
    struct Wide([u64; 3]);

    impl Record for Wide {
        type Fold = Dedup<Wide>;
        type Bytes = [u8; 24];

        fn from_bytes(bytes: [u8; 24]) -> Wide {
            let (words, _) = bytes.as_chunks::<8>();
            Wide([words[0], words[1], words[2]].map(u64::from_le_bytes))
        }

        fn to_bytes(self) -> [u8; 24] {
            let mut bytes = [0; 24];
            for (bytes, word) in bytes.chunks_mut(8).zip(self.0) {
                bytes.copy_from_slice(&word.to_le_bytes());
            }
            bytes
        }

        fn rank(self) -> u64 {
            self.0[0]
        }
    }

    #[test]
    fn wide_records_are_sorted_in_memory_and_in_files() {
        let mut random = fastrand::Rng::with_seed(5);
        // The records of the first shards fill several buffers of a file.
        let record = |_| {
            let [shard, low, last] = [0, 1, 2].map(|_| random.u64(..3000));
            Wide([((shard % 3) << 56) + low % 20, low, last])
        };
        let mut records: Vec<Wide> = (0..30_000).map(record).collect();
        for bytes in [0, 1 << 30] {
            let shards = Shards::new(Memory::default().with_bytes(bytes));
            shards.append(&records).unwrap();
            let sorted = shards.sort().unwrap();
            assert_eq!(sorted.is_spilled(), bytes == 0);
            records.sort_unstable();
            records.dedup();
            let mut rest = &records[..];
            for shard in 0..SHARDS {
                let own = rest.split_off(..sorted.shard_len(shard) as usize).unwrap();
                let found: Vec<Wide> = sorted.records(shard).map(Result::unwrap).collect();
                assert_eq!(found, own);
                let (half, mut buffer) = (own.len() / 2, Vec::new());
                let found = sorted.range(shard, half..own.len(), &mut buffer).unwrap();
                assert_eq!(found, &own[half..]);
            }
            assert!(rest.is_empty());
        }
    }

    #[test]
    fn many_runs_are_merged_in_rounds_and_added_up() {
        let shards = Shards::new(Memory::default().with_bytes(0));
        let mut expected = std::collections::BTreeMap::<u128, u128>::new();
        // The records of the first shard exceed the memory budget of all shards. Those of the last shard do not.
        for (shard, len, kinds) in [(0_u128, 20_000, 18_000), (255, 5000, 3000)] {
            let record = |number: u128| shard << 120 | (number * 7919 % kinds) << 64;
            let records: Vec<Sum> = (0..len).map(|number| Sum(record(number) | 1)).collect();
            for record in &records {
                *expected.entry(record.0 >> 16).or_insert(0) += 1;
            }
            for batch in records.chunks(100) {
                shards.append(batch).unwrap();
            }
        }
        let runs = (20_000 / MIN_QUOTA + 5000 / MIN_QUOTA) as u64;
        let run = MIN_QUOTA * size_of::<Sum>() + size_of::<u32>();
        assert_eq!(shards.spilled_bytes(), runs * run as u64);
        let sorted = shards.sort().unwrap();
        let len = |shard| sorted.shard_len(shard);
        assert_eq!((len(0), len(1), len(254), len(255)), (18_000, 0, 0, 3000));
        let mut found = Vec::new();
        for shard in 0..SHARDS {
            assert_eq!(sorted.is_in_memory(shard), shard > 0);
            sorted.for_each(shard, |record| found.push(record)).unwrap();
        }
        let expected = expected.iter().map(|(kind, sum)| Sum(kind << 16 | sum));
        assert!(found.into_iter().eq(expected));
        assert!(sorted.is_spilled());
        let in_memory = len(255) * size_of::<Sum>() as u64;
        assert_eq!(sorted.bytes_in_memory(), in_memory);
        let mut buffer = Vec::new();
        for (shard, first) in [(0, 0), (255, 255_u128 << 120)] {
            let range = sorted.range(shard, 1000..1002, &mut buffer).unwrap();
            let kinds = range.iter().map(|record| record.0 >> 64);
            assert!(kinds.eq([1000_u128, 1001].map(|kind| first >> 64 | kind)));
        }
    }

    #[test]
    fn groups_of_sorted_sources_are_added_up_and_kept_or_dropped() {
        const SOURCES: usize = 3;
        // Each group has one to three records. Most groups are in one shard, which exceeds its quota.
        let mut records: Vec<Sum> = (0..2000u64)
            .flat_map(|number| {
                let rank = match number % 4 {
                    0 => number.wrapping_mul(0x9e37_79b9_7f4a_7c15),
                    _ => 7 << 56 | number,
                };
                (0..=number % 3)
                    .map(move |low| Sum(u128::from(rank) << 64 | u128::from(low) << 16 | 1))
            })
            .collect();
        records.sort_unstable();
        let open = |shards: Range<usize>| {
            let source = |_| -> Refill<'_, Sum> {
                let within = records.iter().copied();
                let within: Vec<Sum> = within
                    .filter(|record| shards.contains(&record.shard()))
                    .collect();
                let mut within = within.into_iter();
                Box::new(move |out| {
                    out.extend(within.by_ref().take(100));
                    Ok(())
                })
            };
            (0..SOURCES).map(source).collect()
        };
        let keeps = |group: &[Sum]| group.len() != 2;
        let spilled = AtomicU64::new(0);
        let watch = |bytes| {
            spilled.store(bytes, Ordering::Relaxed);
            Ok(())
        };
        let memory = Memory::default().with_bytes(0);
        // A single thread merges the ranges from first to last, so the last call of `watch` gets the bytes of all
        // earlier ranges.
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(1)
            .build()
            .unwrap();
        let merged = pool.install(|| merge_ordered(4, &memory, open, keeps, watch));
        let (merged, dropped) = merged.unwrap();
        let groups = records.chunk_by(|a, b| a.rank() == b.rank());
        let (kept, other): (Vec<&[Sum]>, Vec<&[Sum]>) = groups.partition(|group| keeps(group));
        let groups = other.len() as u64;
        assert_eq!(
            dropped,
            Dropped {
                groups,
                records: 2 * groups
            }
        );
        let mut found: Vec<Sum> = Vec::new();
        for shard in 0..SHARDS {
            assert_eq!(merged.is_in_memory(shard), shard != 7);
            let of_shard = merged.records(shard).map(Result::unwrap);
            found.extend(of_shard.inspect(|record| assert_eq!(record.shard(), shard)));
        }
        let expected = kept.concat().into_iter();
        assert!(
            found
                .into_iter()
                .eq(expected.map(|record| Sum(record.0 - 1 + SOURCES as u128)))
        );
        // At least the records of the large shard have been written, except those that are still in a buffer.
        assert!(spilled.into_inner() > 16 << 10);
    }

    #[test]
    fn a_shard_spills_if_its_folded_records_exceed_half_of_its_quota() {
        for (kinds, spills) in [(MIN_QUOTA / 2, false), (MIN_QUOTA / 2 + 1, true)] {
            let shards = Shards::new(Memory::default().with_bytes(0));
            let records = (0..10 * MIN_QUOTA).map(|number| (number % kinds) as u128);
            shards.append(&records.collect::<Vec<u128>>()).unwrap();
            assert_eq!(shards.spilled_bytes() > 0, spills);
        }
    }

    #[test]
    fn a_merged_shard_exceeds_its_quota_with_one_record_more() {
        let counts = [MIN_QUOTA, MIN_QUOTA + 1, MIN_QUOTA, MIN_QUOTA];
        let of_shard = |shard: usize| {
            (0..counts[shard] as u128).map(move |low| (shard as u128) << 120 | low << 64)
        };
        let open = |_| -> Vec<Refill<'_, u128>> {
            let mut records = (0..counts.len()).flat_map(of_shard).collect::<Vec<u128>>();
            vec![Box::new(move |out| {
                out.append(&mut records);
                Ok(())
            })]
        };
        let memory = Memory::default().with_bytes(0);
        let (merged, _) = merge_ordered(1, &memory, open, |_| true, |_| Ok(())).unwrap();
        let in_memory = [0, 1, 2, 3, 4].map(|shard| merged.is_in_memory(shard));
        assert_eq!(in_memory, [true, false, true, true, true]);
    }

    /// A record for the test below. `Shards::append` calls `packed` when it appends a record to its shard. In the
    /// second shard, this call waits for the other thread of the test.
    #[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
    struct Waiting(u128);

    static SECOND_SHARD: std::sync::Barrier = std::sync::Barrier::new(2);

    impl Record for Waiting {
        type Fold = Dedup<Waiting>;
        type Bytes = [u8; 16];

        fn from_bytes(bytes: [u8; 16]) -> Waiting {
            Waiting(u128::from_le_bytes(bytes))
        }

        fn to_bytes(self) -> [u8; 16] {
            self.0.to_le_bytes()
        }

        fn rank(self) -> u64 {
            (self.0 >> 64) as u64
        }

        fn packed(self) -> Option<[u8; PACKED_SIZE]> {
            if self.shard() == 1 {
                SECOND_SHARD.wait();
            }
            None
        }
    }

    #[test]
    fn buffers_are_used_again() {
        let shards = Shards::new(Memory::default().with_bytes(0));
        for _ in 0..3 {
            let records: Vec<u128> = (0..1000).map(|number| number << 110).collect();
            shards.append(&records).unwrap();
        }
        let idle = task::lock(&shards.buffers.0);
        assert_eq!(idle.len(), 1);
        assert!(!idle[0].partitioned.is_empty() && !idle[0].scratch.sorted.is_empty());
    }

    #[test]
    fn a_shard_that_another_thread_has_locked_is_filled_later() {
        let shards = Shards::new(Memory::default());
        let records = [0, 1, 2].map(|shard| Waiting(shard << 120));
        std::thread::scope(|scope| {
            let first = task::lock(&shards.shards[0]);
            scope.spawn(|| shards.append(&records).unwrap());
            // The thread has passed the first shard when it comes to the second one.
            SECOND_SHARD.wait();
            assert_eq!(first.len(), 0);
        });
        let sorted = shards.sort().unwrap();
        assert!((0..3).all(|shard| sorted.in_memory(shard, 0) == Some(&records[shard])));
    }

    #[test]
    fn a_shard_may_fill_three_quarters_of_its_share_of_the_budget() {
        let quota = |bytes| quota::<u128>(&Memory::default().with_bytes(bytes));
        assert_eq!(quota(SHARDS * size_of::<u128>() * 1000), 750);
        assert_eq!(quota(0), MIN_QUOTA);
        let memory = Memory::default().with_bytes(1000).share(3);
        assert_eq!((memory.bytes, memory.temp_dir), (333, std::env::temp_dir()));
    }

    #[test]
    fn memory_of_folded_records_is_given_back() {
        const KINDS: u128 = 40;
        const RUNS: usize = 3;
        let shards = Shards::new(Memory::default().with_bytes(0));
        // Each shard spills `RUNS` runs of `KINDS` records, and then holds `KINDS` records in memory.
        let len = (RUNS * MIN_QUOTA) as u128 + KINDS;
        let records: Vec<u128> = (0..SHARDS as u128)
            .flat_map(|shard| (0..len).map(move |number| (shard << 120) | (number % KINDS)))
            .collect();
        shards.append(&records).unwrap();
        let run = (KINDS as usize * size_of::<u128>() + size_of::<u32>()) as u64;
        assert_eq!(shards.spilled_bytes(), (SHARDS * RUNS) as u64 * run);
        // The memory for all records suffices only if duplicates count no more after they were removed.
        let sorted = shards.sort().unwrap();
        assert!(!sorted.is_spilled());
        let bytes = SHARDS * KINDS as usize * size_of::<u128>();
        assert_eq!(sorted.bytes_in_memory(), bytes as u64);
    }

    #[test]
    fn temporary_files_that_cannot_be_made_are_an_error() {
        let shards = Shards::new(Memory {
            bytes: 0,
            temp_dir: "/nonexistent/directory".into(),
        });
        let records: Vec<Sum> = (0..10_000u128).map(|i| Sum(i << 64 | 1)).collect();
        let err = shards.append(&records).unwrap_err();
        assert!(err.to_string().contains("/nonexistent/directory"), "{err}");
    }

    proptest! {
        #[test]
        fn partitions_keep_every_record(mut records in proptest::collection::vec(any::<u128>().prop_map(Sum), 0..500)) {
            let mut buffer = Vec::new();
            let partition = Partition::new(&records, &mut buffer);
            let mut found: Vec<Sum> = (0..SHARDS).flat_map(|s| partition.shard(s).to_vec()).collect();
            prop_assert!(found.is_sorted_by_key(|record| record.shard()));
            found.sort_unstable();
            records.sort_unstable();
            prop_assert_eq!(found, records);
        }
    }

    /// A record for tests. Equal records are folded. It has a packed form if bits 16 to 63 are 0.
    #[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
    struct Number(u128);

    impl Record for Number {
        type Fold = Dedup<Number>;
        type Bytes = [u8; 16];

        fn from_bytes(bytes: [u8; 16]) -> Number {
            Number(u128::from_le_bytes(bytes))
        }

        fn to_bytes(self) -> [u8; 16] {
            self.0.to_le_bytes()
        }

        fn rank(self) -> u64 {
            (self.0 >> 64) as u64
        }

        fn packed(self) -> Option<[u8; PACKED_SIZE]> {
            let low = self.0 as u64;
            let packed = ((self.0 >> 64 << 72) >> 56 | u128::from(low)).to_le_bytes();
            packed.first_chunk().copied().filter(|_| low < 1 << 16)
        }

        fn from_packed(shard: usize, packed: [u8; PACKED_SIZE]) -> Number {
            let mut bytes = [0; 16];
            bytes[..PACKED_SIZE].copy_from_slice(&packed);
            let bits = u128::from_le_bytes(bytes);
            Number((shard as u128) << 120 | bits >> 16 << 64 | bits & 0xffff)
        }
    }

    fn number() -> impl Strategy<Value = Number> {
        // Most records have the same key, so that one bucket is large.
        let packed =
            (any::<u64>(), 0..9u64).prop_map(|(high, low)| ((high % 400).saturating_sub(250), low));
        let bits = prop_oneof![9 => packed, 1 => any::<(u64, u64)>()];
        bits.prop_map(|(high, low)| {
            let high = high.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8;
            Number(u128::from(high) << 64 | u128::from(low))
        })
    }

    proptest! {
        #[test]
        fn records_of_a_shard_are_sorted_and_folded(
            rounds in proptest::collection::vec(proptest::collection::vec(number(), 0..700), 1..8),
        ) {
            let (mut shard, mut scratch) = (Shard::<Number>::default(), Scratch::default());
            let mut expected = std::collections::BTreeSet::new();
            for new in rounds {
                expected.extend(&new);
                shard.extend(&new);
                let sorted = shard.take_sorted(0, &mut scratch).to_vec();
                prop_assert!(sorted.iter().eq(&expected));
                prop_assert_eq!(shard.len(), 0);
                shard.extend(&sorted);
            }
        }
    }

    proptest! {
        #[test]
        fn ordered_sources_are_one_sequence(
            sources in proptest::collection::vec(proptest::collection::vec((any::<u64>(), any::<u64>()), 0..3000), 0..9),
            ranks in prop_oneof![Just(1u64), Just(20), Just(20_000), Just(u64::MAX)],
            // A group is kept if its size, divided by the first number, leaves the second.
            (divisor, rest) in prop_oneof![Just((1, 0)), Just((2, 0)), Just((2, 1)), Just((3, 2))],
            ranges in prop_oneof![Just(1usize), Just(4), Just(256)],
            bytes in prop_oneof![Just(0usize), Just(1 << 16), Just(1 << 24)],
        ) {
            let sources: Vec<Vec<u128>> = sources
                .into_iter()
                .map(|source| {
                    let record = |(rank, low): (u64, u64)| {
                        // Some ranks are near one another, and others are far apart.
                        let rank = if low & 1 == 0 { rank % ranks } else { (rank % ranks).rotate_right(11) };
                        u128::from(rank) << 64 | u128::from(low)
                    };
                    let mut source: Vec<u128> = source.into_iter().map(record).collect();
                    source.sort();
                    source
                })
                .collect();
            let memory = Memory { bytes, ..Memory::default() };
            let open = |shards: Range<usize>| {
                let of_shards = |source: &Vec<u128>| {
                    let within = source.iter().copied().filter(|record| shards.contains(&record.shard()));
                    let mut within = within.collect::<Vec<u128>>().into_iter();
                    let source: Refill<'_, u128> = Box::new(move |out| {
                        out.extend(within.by_ref().take(2000));
                        Ok(())
                    });
                    source
                };
                sources.iter().map(of_shards).collect()
            };
            let keeps = |group: &[u128]| group.len() % divisor == rest;
            let (merged, dropped) = merge_ordered(ranges, &memory, open, keeps, |_| Ok(())).unwrap();
            let mut all = sources.concat();
            all.sort();
            all.dedup();
            let same = |a: &u128, b: &u128| a.rank() == b.rank();
            let (chosen, other): (Vec<&[u128]>, Vec<&[u128]>) = all.chunk_by(same).partition(|group| keeps(group));
            let expected = chosen.concat();
            let records = (all.len() - expected.len()) as u64;
            prop_assert_eq!(dropped, Dropped { groups: other.len() as u64, records });
            let of_shards = expected.chunk_by(|a, b| a.shard() == b.shard());
            let is_large = of_shards.map(<[u128]>::len).max() > Some(quota::<u128>(&memory));
            prop_assert_eq!(merged.is_spilled(), is_large);
            let (mut rest, mut buffer, mut in_memory) = (&expected[..], Vec::new(), 0);
            for shard in 0..SHARDS {
                let own = rest.split_off(..merged.shard_len(shard) as usize).unwrap();
                prop_assert!(own.iter().all(|record| record.shard() == shard));
                let mut found = Vec::new();
                merged.for_each(shard, |record| found.push(record)).unwrap();
                prop_assert_eq!(&found[..], own);
                let found: Vec<u128> = merged.records(shard).map(Result::unwrap).collect();
                prop_assert_eq!(&found[..], own);
                let half = own.len() / 2;
                prop_assert_eq!(merged.range(shard, half..own.len(), &mut buffer).unwrap(), &own[half..]);
                let is_held = merged.is_in_memory(shard);
                prop_assert_eq!(merged.in_memory(shard, half), own.get(half).filter(|_| is_held));
                in_memory += if is_held { size_of_val(own) as u64 } else { 0 };
            }
            prop_assert!(rest.is_empty());
            prop_assert_eq!(merged.bytes_in_memory(), in_memory);
        }
    }

    #[test]
    fn a_merge_ends_with_the_first_error() {
        let (all, memory) = (|_: &[u128]| true, Memory::default());
        let open = |_: Range<usize>| -> Vec<Refill<'_, u128>> {
            vec![Box::new(|_| Err(Error::Interrupted))]
        };
        let merged = merge_ordered(1, &memory, open, all, |_| Ok(()));
        assert!(matches!(merged, Err(Error::Interrupted)));
        let open = |_: Range<usize>| -> Vec<Refill<'_, u128>> {
            vec![Box::new(|out| {
                out.push(1);
                Ok(())
            })]
        };
        let stop = |_| Err(Error::Interrupted);
        let merged = merge_ordered(1, &memory, open, all, stop);
        assert!(matches!(merged, Err(Error::Interrupted)));
    }

    proptest! {
        #[test]
        fn blocks_are_one_sequence(
            all in proptest::collection::vec(any::<u128>(), 0..5000),
            cut in (0.0..1.0f64, 0.0..1.0f64),
        ) {
            let mut pushed = Blocks::default();
            all.iter().for_each(|record| pushed.push(*record));
            prop_assert_eq!(pushed.iter().collect::<Vec<_>>(), &all[..]);
            let blocks = Blocks::of(&all);
            prop_assert_eq!(blocks.len(), all.len());
            prop_assert_eq!(blocks.iter().collect::<Vec<_>>(), &all[..]);
            let start = (cut.0 * all.len() as f64) as usize;
            let end = start + (cut.1 * (all.len() - start) as f64) as usize;
            for number in [start, all.len().saturating_sub(1), all.len()] {
                prop_assert_eq!(blocks.get(number), all.get(number));
            }
            let mut buffer = Vec::new();
            prop_assert_eq!(blocks.range(start..end, &mut buffer), &all[start..end]);
        }
    }
}

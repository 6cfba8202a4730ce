//! Ending the collection: every shard becomes one sorted sequence. What is in several sorted sequences, such as runs, is
//! merged into memory while there is room, and else into a file.

use std::{
    ops::Range,
    path::Path,
    sync::{Arc, Mutex},
};

use rayon::prelude::*;

use super::{
    Memory,
    blocks::{Blocks, Pool},
    merge::{Merge, Records, fold_into},
    record::{Fold, Record, SHARDS},
    run::{ByteRun, Run, RunFile},
    sealed::{Sealed, SealedShard},
    shard::Shard,
};
use crate::{error::Result, task};

/// How many neighbouring shards share a temporary file, so that few files are open however much spills.
pub(super) const SHARDS_PER_FILE: usize = 8;

/// How many runs are merged at once; more are merged in several rounds.
const FAN_IN: usize = 64;

/// Where sealed records go.
pub(super) struct Room<'a, R> {
    pool: &'a Pool<R>,
    temp_dir: &'a Path,
    /// How many further records may be in memory, and how many bytes went to files.
    left: Mutex<(usize, u64)>,
}

impl<'a, R: Record> Room<'a, R> {
    pub(super) fn new(pool: &'a Pool<R>, records: usize, temp_dir: &'a Path) -> Room<'a, R> {
        Room {
            pool,
            temp_dir,
            left: Mutex::new((records, 0)),
        }
    }

    /// Takes room for records, if there is so much.
    fn take(&self, records: usize) -> bool {
        let (left, _) = &mut *task::lock(&self.left);
        let is_enough = *left >= records;
        if is_enough {
            *left -= records;
        }
        is_enough
    }

    fn give_back(&self, records: usize) {
        task::lock(&self.left).0 += records;
    }

    /// How many bytes are in files.
    fn spilled(&self) -> u64 {
        task::lock(&self.left).1
    }
}

/// Takes the records of shards in ascending order. Those that have no room in memory go to one file.
struct ShardWriter<'a, R: Record> {
    room: &'a Room<'a, R>,
    file: Option<Arc<RunFile>>,
    /// The records of the present shard in memory, and how many they have taken room for.
    blocks: Blocks<R>,
    taken: usize,
    /// The records of the present shard in the file: if there are some, these are all.
    run: Option<ByteRun>,
}

impl<'a, R: Record> ShardWriter<'a, R> {
    fn new(room: &'a Room<'a, R>) -> ShardWriter<'a, R> {
        ShardWriter {
            room,
            file: None,
            blocks: Blocks::default(),
            taken: 0,
            run: None,
        }
    }

    #[inline]
    fn extend(&mut self, mut records: &[R]) -> Result<()> {
        while self.run.is_none() && !records.is_empty() {
            if self.blocks.are_full() && !self.take_block() {
                self.spill()?;
                break;
            }
            let block = self.blocks.last_with_room(self.room.pool);
            let room = block.capacity() - block.len();
            let (now, later) = records.split_at(room.min(records.len()));
            block.extend_from_slice(now);
            records = later;
        }
        match &mut self.run {
            Some(run) => records.iter().try_for_each(|record| run.push(*record)),
            None => Ok(()),
        }
    }

    /// Takes room for another block.
    fn take_block(&mut self) -> bool {
        let block = self.room.pool.block();
        let is_enough = self.room.take(block);
        self.taken += if is_enough { block } else { 0 };
        is_enough
    }

    /// Moves the records of the present shard to the file.
    #[cold]
    fn spill(&mut self) -> Result<()> {
        let file = match &self.file {
            Some(file) => file,
            None => self.file.insert(RunFile::create(self.room.temp_dir)?),
        };
        let mut run = file.start_run();
        let blocks = std::mem::take(&mut self.blocks);
        for record in blocks.iter() {
            run.push(record)?;
        }
        self.room.pool.give_back(blocks.into_blocks());
        self.room.give_back(std::mem::take(&mut self.taken));
        self.run = Some(run);
        Ok(())
    }

    /// Ends the present shard.
    fn end_shard(&mut self) -> Result<SealedShard<R>> {
        let Some(run) = self.run.take() else {
            let blocks = std::mem::take(&mut self.blocks);
            self.room
                .give_back(std::mem::take(&mut self.taken) - blocks.len());
            return Ok(SealedShard::Memory(blocks));
        };
        let run = run.finish()?;
        task::lock(&self.room.left).1 += run.bytes();
        Ok(SealedShard::File(run))
    }
}

/// Seals shards. Works on all threads of the rayon pool that it is called in.
pub(super) fn seal<R: Record>(mut shards: Vec<Shard<R>>, room: &Room<'_, R>) -> Result<Sealed<R>> {
    let groups: Vec<Vec<SealedShard<R>>> = shards
        .par_chunks_mut(SHARDS_PER_FILE)
        .map(|shards| {
            task::fault("seal");
            shards.iter_mut().for_each(|shard| shard.compact(room.pool));
            let mut writer = ShardWriter::new(room);
            let shards = shards.iter_mut().map(std::mem::take);
            shards
                .map(|shard| merge_shard(shard, &mut writer))
                .collect()
        })
        .collect::<Result<_>>()?;
    Ok(Sealed::new(groups.into_iter().flatten().collect()))
}

/// Merges all records of a shard, from its file and memory, in several rounds where the runs are many.
fn merge_shard<R: Record>(
    shard: Shard<R>,
    writer: &mut ShardWriter<'_, R>,
) -> Result<SealedShard<R>> {
    let Shard {
        sorted, mut runs, ..
    } = shard;
    if runs.is_empty() {
        return Ok(SealedShard::Memory(sorted));
    }
    while runs.len() >= FAN_IN {
        let round = RunFile::create(writer.room.temp_dir)?;
        let merge = |runs: &[Run]| {
            let mut merged = round.start_run();
            fold_into(Merge::new(runs.iter().map(records::<R>)), |record| {
                merged.push(record)
            })?;
            merged.finish()
        };
        runs = runs.chunks(FAN_IN).map(merge).collect::<Result<_>>()?;
    }
    let in_memory: Records<'_, R> = Box::new(sorted.iter().map(Ok));
    let sequences = runs.iter().map(records).chain([in_memory]);
    fold_into(Merge::new(sequences), |record| writer.extend(&[record]))?;
    let Room { pool, .. } = writer.room;
    writer.room.give_back(sorted.len());
    pool.give_back(sorted.into_blocks());
    writer.end_shard()
}

fn records<R: Record>(run: &Run) -> Records<'_, R> {
    Box::new(run.records())
}

/// Appends the next records of some shards, some thousand of them in ascending order. If it appends none, there are no
/// more. Those that are folded into one may come in any order.
pub(crate) type Ordered<'a, R> = Box<dyn FnMut(&mut Vec<R>) -> Result<()> + 'a>;

/// Merges the ordered records that `open` returns for each of this many equal `ranges` of shards, and keeps the groups
/// that `keeps` says, or all; a group is all records of a [rank](Record::rank). Returns also how many groups and records it did
/// not keep. `watch` is called now and then with the bytes in temporary files, and may end the merge. Works on all
/// threads of the rayon pool that it is called in.
///
/// # Errors
///
/// A temporary file that cannot be written, and the errors of the records and of `watch`.
pub(crate) fn merge_ordered<'a, R: Record>(
    ranges: usize,
    memory: &Memory,
    open: impl Fn(Range<usize>) -> Vec<Ordered<'a, R>> + Sync,
    keeps: Option<impl Fn(&[R]) -> bool + Sync>,
    watch: impl Fn(u64) -> Result<()> + Sync,
) -> Result<(Sealed<R>, Dropped)> {
    // A quarter is left for the unused ends of blocks.
    let records = memory.bytes / size_of::<R>() / 4 * 3;
    let pool = Pool::new(records / SHARDS);
    let room = Room::new(&pool, records, &memory.temp_dir);
    let each = SHARDS / ranges;
    let merged: Vec<(Vec<SealedShard<R>>, Dropped)> = (0..ranges)
        .into_par_iter()
        .map(|range| {
            let shards = range * each..(range + 1) * each;
            let mut sources: Vec<_> = open(shards.clone())
                .into_iter()
                .map(|source| (source, Vec::new()))
                .collect();
            let mut groups = Groups {
                keeps: keeps.as_ref(),
                shards,
                fold: R::Fold::default(),
                rank: None,
                folded: Vec::new(),
                judged: 0,
                dropped: Dropped::default(),
                writer: ShardWriter::new(&room),
                sealed: Vec::with_capacity(each),
            };
            let mut window = Vec::new();
            while next_window(&mut sources, &mut window)? {
                groups.take(&window)?;
                watch(room.spilled())?;
            }
            groups.finish()
        })
        .collect::<Result<_>>()?;
    let mut dropped = Dropped::default();
    let mut all = Vec::with_capacity(SHARDS);
    for (shards, of_range) in merged {
        all.extend(shards);
        dropped.groups += of_range.groups;
        dropped.records += of_range.records;
    }
    Ok((Sealed::new(all), dropped))
}

/// The groups and records that were not kept.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Dropped {
    pub groups: u64,
    pub records: u64,
}

/// Replaces `window` with the next records of all sources, sorted; `false` at the end.
fn next_window<R: Record>(
    sources: &mut Vec<(Ordered<'_, R>, Vec<R>)>,
    window: &mut Vec<R>,
) -> Result<bool> {
    for (source, read) in sources.iter_mut() {
        if read.is_empty() {
            source(read)?;
            // Records of one group may come in any order. What is taken below ends at the last record of a source.
            read.sort();
        }
    }
    sources.retain(|(_, read)| !read.is_empty());
    window.clear();
    // Stop at the smallest last record: the source of that record may have more before those of the others.
    let Some(last) = sources.iter().filter_map(|(_, read)| read.last()).min() else {
        return Ok(false);
    };
    let last = *last;
    for (_, read) in sources {
        let ready = read.partition_point(|record| *record <= last);
        window.extend(read.drain(..ready));
    }
    // The sort of the standard library finds runs that are in order, and merges them.
    window.sort();
    Ok(true)
}

/// Folds the records of some shards in ascending order, and keeps some groups.
struct Groups<'a, R: Record, K> {
    keeps: Option<&'a K>,
    /// The present shard, and those after it.
    shards: Range<usize>,
    fold: R::Fold,
    /// The rank of the present group.
    rank: Option<u64>,
    /// Folded records.
    folded: Vec<R>,
    /// How many of them are of groups that are kept.
    judged: usize,
    dropped: Dropped,
    writer: ShardWriter<'a, R>,
    sealed: Vec<SealedShard<R>>,
}

impl<R: Record, K: Fn(&[R]) -> bool> Groups<'_, R, K> {
    fn take(&mut self, records: &[R]) -> Result<()> {
        let Some(keeps) = self.keeps else {
            return self.take_all(records);
        };
        for (at, record) in records.iter().enumerate() {
            let rank = record.rank();
            // Most groups are of one record. A first or last one may have others in another window.
            let differs = |other: Option<&R>| other.is_some_and(|other| other.rank() != rank);
            if at > 0
                && differs(records.get(at - 1))
                && differs(records.get(at + 1))
                && !keeps(std::slice::from_ref(record))
            {
                self.dropped.groups += 1;
                self.dropped.records += 1;
                continue;
            }
            if self.rank.replace(rank) != Some(rank) {
                self.end_group();
                self.end_shards_before(record.shard())?;
            }
            let folded = &mut self.folded;
            self.fold.take(*record, &mut |record| folded.push(record));
        }
        self.flush()
    }

    /// Takes records that are all kept.
    fn take_all(&mut self, records: &[R]) -> Result<()> {
        for of_shard in records.chunk_by(|a, b| a.shard() == b.shard()) {
            if of_shard[0].shard() > self.shards.start {
                self.end_group();
                self.end_shards_before(of_shard[0].shard())?;
            }
            let folded = &mut self.folded;
            for record in of_shard {
                self.fold.take(*record, &mut |record| folded.push(record));
            }
        }
        self.judged = self.folded.len();
        self.flush()
    }

    fn end_shards_before(&mut self, shard: usize) -> Result<()> {
        while self.shards.start < shard {
            self.end_shard()?;
        }
        Ok(())
    }

    /// Ends the present group, and drops it if it is not kept.
    fn end_group(&mut self) {
        let folded = &mut self.folded;
        self.fold.finish(&mut |record| folded.push(record));
        let group = &folded[self.judged..];
        if !group.is_empty() && self.keeps.is_some_and(|keeps| !keeps(group)) {
            self.dropped.groups += 1;
            self.dropped.records += group.len() as u64;
            folded.truncate(self.judged);
        }
        self.judged = folded.len();
    }

    /// Hands over the records that are kept.
    fn flush(&mut self) -> Result<()> {
        self.writer.extend(&self.folded[..self.judged])?;
        self.folded.drain(..self.judged);
        self.judged = 0;
        Ok(())
    }

    fn end_shard(&mut self) -> Result<()> {
        self.flush()?;
        self.sealed.push(self.writer.end_shard()?);
        self.shards.start += 1;
        Ok(())
    }

    fn finish(mut self) -> Result<(Vec<SealedShard<R>>, Dropped)> {
        self.end_group();
        while !self.shards.is_empty() {
            self.end_shard()?;
        }
        Ok((self.sealed, self.dropped))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{error::Error, sort::record::Plain};

    proptest! {
        #[test]
        fn ordered_sources_are_one_sequence(
            sources in proptest::collection::vec(proptest::collection::vec((any::<u64>(), any::<u64>()), 0..3000), 0..9),
            ranks in prop_oneof![Just(1u64), Just(20), Just(20_000), Just(u64::MAX)],
            // Groups of some sizes are kept: those that leave the second number when they are divided by the first.
            (divisor, rest) in prop_oneof![Just((1, 0)), Just((2, 0)), Just((2, 1)), Just((3, 2))],
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
                let of_shards = |source: &Vec<Plain>| -> Ordered<'_, Plain> {
                    let records: Vec<Plain> = source.iter().copied().filter(|record| shards.contains(&record.shard())).collect();
                    let mut records = records.into_iter();
                    Box::new(move |out| {
                        out.extend(records.by_ref().take(2000));
                        Ok(())
                    })
                };
                sources.iter().map(of_shards).collect()
            };
            let keeps = |group: &[Plain]| group.len() % divisor == rest;
            let (merged, dropped) = merge_ordered(ranges, &memory, open, (divisor > 1).then_some(keeps), |_| Ok(())).unwrap();
            let mut all = sources.concat();
            all.sort();
            let same = |a: &Plain, b: &Plain| a.rank() == b.rank();
            let (chosen, other): (Vec<&[Plain]>, Vec<&[Plain]>) = all.chunk_by(same).partition(|group| keeps(group));
            let expected = chosen.concat();
            let records = (all.len() - expected.len()) as u64;
            prop_assert_eq!(dropped, Dropped { groups: other.len() as u64, records });
            if bytes == 0 {
                prop_assert_eq!(merged.is_spilled(), !expected.is_empty());
            } else if bytes == 1 << 24 {
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
        let open = |_: Range<usize>| -> Vec<Ordered<'_, Plain>> {
            vec![Box::new(|_| Err(Error::Interrupted))]
        };
        let merged = merge_ordered(
            1,
            &Memory::default(),
            open,
            Some(|_: &[_]| true),
            |_| Ok(()),
        );
        assert!(matches!(merged, Err(Error::Interrupted)));
        let open = |_: Range<usize>| -> Vec<Ordered<'_, Plain>> {
            vec![Box::new(|out| {
                out.push(Plain(1));
                Ok(())
            })]
        };
        let stop = |_| Err(Error::Interrupted);
        let merged = merge_ordered(1, &Memory::default(), open, Some(|_: &[_]| true), stop);
        assert!(matches!(merged, Err(Error::Interrupted)));
    }
}

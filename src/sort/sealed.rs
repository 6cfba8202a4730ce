//! Ending the collection: every shard becomes one sorted sequence.

use std::{
    path::Path,
    sync::{Arc, Mutex},
};

use rayon::prelude::*;

use super::{
    blocks::{Blocks, Pool, Records},
    merge::Merge,
    record::{Fold, Record},
    run::{Run, RunFile, RunReader},
    shards::Shard,
};
use crate::{error::Result, task};

/// How many records of a file are handed over at once.
const BUFFER: usize = 1024;

/// All records, sorted and folded, shard by shard.
#[derive(Debug)]
pub(crate) struct Sealed<R> {
    shards: Vec<SealedShard<R>>,
}

/// The records of a shard.
#[derive(Debug)]
pub(super) enum SealedShard<R> {
    Memory(Blocks<R>),
    /// A run of a file that neighbouring shards share.
    File(Run),
}

impl<R: Record> Sealed<R> {
    pub(super) fn new(shards: Vec<SealedShard<R>>) -> Sealed<R> {
        Sealed { shards }
    }

    /// Calls `f` with the groups of records of a shard that are of the `same` kind, in ascending order.
    /// A callback, because groups in memory are handed over in place.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be read.
    pub(crate) fn for_each_group(
        &self,
        shard: usize,
        same: impl Fn(R, R) -> bool,
        mut f: impl FnMut(&[R]),
    ) -> Result<()> {
        if let SealedShard::Memory(records) = &self.shards[shard] {
            let mut groups = Groups::new(records.slices());
            while let Some(group) = groups.next(&same) {
                f(group);
            }
            return Ok(());
        }
        // A group that ends with the buffer of the file may go on in the next.
        let mut open: Vec<R> = Vec::new();
        self.for_each_slice(shard, |mut records| {
            if let Some(last) = open.last().copied() {
                let more = records
                    .iter()
                    .take_while(|record| same(last, **record))
                    .count();
                open.extend_from_slice(&records[..more]);
                records = &records[more..];
                if records.is_empty() {
                    return;
                }
                f(&open);
                open.clear();
            }
            let Some(last) = records.last().copied() else {
                return;
            };
            let in_last = records
                .iter()
                .rev()
                .take_while(|record| same(**record, last));
            let (whole, last) = records.split_at(records.len() - in_last.count());
            whole.chunk_by(|a, b| same(*a, *b)).for_each(&mut f);
            open.extend_from_slice(last);
        })?;
        if !open.is_empty() {
            f(&open);
        }
        Ok(())
    }

    /// Calls `f` with the records of a shard in ascending order, many at a time.
    fn for_each_slice(&self, shard: usize, mut f: impl FnMut(&[R])) -> Result<()> {
        match &self.shards[shard] {
            SealedShard::Memory(records) => records.slices().for_each(f),
            SealedShard::File(run) => {
                let mut buffer = Vec::with_capacity(BUFFER);
                for record in run.reader() {
                    buffer.push(record?);
                    if buffer.len() == BUFFER {
                        f(&buffer);
                        buffer.clear();
                    }
                }
                f(&buffer);
            }
        }
        Ok(())
    }

    /// Calls `f` with the records of a shard in ascending order.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be read.
    pub(crate) fn for_each(&self, shard: usize, mut f: impl FnMut(R)) -> Result<()> {
        self.for_each_slice(shard, |records| records.iter().copied().for_each(&mut f))
    }

    /// The records of a shard in ascending order.
    pub(crate) fn records(&self, shard: usize) -> Box<dyn Iterator<Item = Result<R>> + '_> {
        match &self.shards[shard] {
            SealedShard::Memory(records) => Box::new(records.iter().map(Ok)),
            SealedShard::File(run) => Box::new(run.reader()),
        }
    }

    /// How many records a shard has.
    pub(crate) fn shard_len(&self, shard: usize) -> u64 {
        match &self.shards[shard] {
            SealedShard::Memory(records) => records.len() as u64,
            SealedShard::File(run) => run.len(),
        }
    }

    /// Whether a shard is in memory.
    pub(crate) fn is_in_memory(&self, shard: usize) -> bool {
        matches!(self.shards[shard], SealedShard::Memory(_))
    }

    /// A record of a shard by its number, if the shard is in memory and has it.
    #[inline]
    pub(crate) fn in_memory(&self, shard: usize, number: usize) -> Option<&R> {
        match &self.shards[shard] {
            SealedShard::Memory(records) => records.get(number),
            SealedShard::File(..) => None,
        }
    }

    /// Some records of a shard, read into `buffer` if they are not in one place in memory.
    pub(crate) fn range<'a>(
        &'a self,
        shard: usize,
        range: std::ops::Range<usize>,
        buffer: &'a mut Vec<R>,
    ) -> Result<&'a [R]> {
        match &self.shards[shard] {
            SealedShard::Memory(records) => Ok(records.range(range, buffer)),
            SealedShard::File(run) => {
                run.read(range, buffer)?;
                Ok(buffer)
            }
        }
    }

    /// Whether any shard is in a temporary file.
    pub(crate) fn is_spilled(&self) -> bool {
        self.shards
            .iter()
            .any(|shard| matches!(shard, SealedShard::File(..)))
    }
}

/// Groups of records of one kind in blocks that follow one another.
struct Groups<'a, R, I> {
    blocks: I,
    /// The rest of the present block.
    rest: &'a [R],
    /// A group that is copied because it is in several blocks, or at the end of one.
    joined: Vec<R>,
}

impl<'a, R: Copy, I: Iterator<Item = &'a [R]>> Groups<'a, R, I> {
    fn new(blocks: I) -> Groups<'a, R, I> {
        Groups {
            blocks,
            rest: &[],
            joined: Vec::new(),
        }
    }

    // Every count comes through here twice, nearly all as a group of its own.
    #[inline(always)]
    fn next(&mut self, same: &impl Fn(R, R) -> bool) -> Option<&[R]> {
        let length = length_of_group(self.rest, same);
        if length == self.rest.len() {
            return self.next_joined(same);
        }
        let (group, rest) = self.rest.split_at(length);
        self.rest = rest;
        Some(group)
    }

    /// The next group, which reaches the end of its block if it is in the present one at all.
    #[cold]
    fn next_joined(&mut self, same: &impl Fn(R, R) -> bool) -> Option<&[R]> {
        self.joined.clear();
        loop {
            let length = match self.joined.last() {
                Some(last) => self
                    .rest
                    .iter()
                    .take_while(|next| same(*last, **next))
                    .count(),
                None => length_of_group(self.rest, same),
            };
            let (group, rest) = self.rest.split_at(length);
            self.joined.extend_from_slice(group);
            self.rest = rest;
            if !self.rest.is_empty() {
                break;
            }
            match self.blocks.next() {
                Some(block) => self.rest = block,
                None => break,
            }
        }
        (!self.joined.is_empty()).then_some(&self.joined)
    }
}

/// How many of the first records are of one kind.
#[inline(always)]
fn length_of_group<R: Copy>(records: &[R], same: &impl Fn(R, R) -> bool) -> usize {
    let Some((first, rest)) = records.split_first() else {
        return 0;
    };
    1 + rest.iter().take_while(|next| same(*first, **next)).count()
}

/// How many neighbouring shards share a temporary file, so that few files are open however much spills.
pub(super) const SHARDS_PER_FILE: usize = 8;

/// How many runs are merged at once; more are merged in several rounds.
const FAN_IN: usize = 64;

/// The means of sealing.
pub(super) struct Sealing<'a, R> {
    pub pool: &'a Pool<R>,
    /// How many records may be in memory.
    pub most: usize,
    pub temp_dir: &'a Path,
}

/// How many further records may be in memory.
struct Room(Mutex<usize>);

impl Room {
    /// Takes room, if there is so much.
    fn take(&self, records: usize) -> bool {
        let mut room = task::lock(&self.0);
        let is_enough = *room >= records;
        if is_enough {
            *room -= records;
        }
        is_enough
    }

    fn give_back(&self, records: usize) {
        *task::lock(&self.0) += records;
    }
}

impl<R: Record> Sealing<'_, R> {
    /// Seals the shards. Spilled runs are merged into memory as far as there is room. Works on all threads of the rayon
    /// pool that it is called in.
    pub(super) fn seal(&self, mut shards: Vec<Shard<R>>) -> Result<Sealed<R>> {
        let held: usize = shards.iter().map(Shard::len).sum();
        let room = Room(Mutex::new(self.most.saturating_sub(held)));
        let groups: Vec<Vec<SealedShard<R>>> = shards
            .par_chunks_mut(SHARDS_PER_FILE)
            .map(|shards| self.seal_group(shards, &room))
            .collect::<Result<_>>()?;
        Ok(Sealed::new(groups.into_iter().flatten().collect()))
    }

    /// Seals the shards that share a file.
    fn seal_group(&self, shards: &mut [Shard<R>], room: &Room) -> Result<Vec<SealedShard<R>>> {
        task::fault("seal");
        for shard in shards.iter_mut() {
            shard.compact(self.pool);
        }
        let mut end = None;
        let sealed = shards.iter_mut().map(|shard| {
            let Shard { sorted, runs, .. } = std::mem::take(shard);
            if runs.is_empty() {
                return Ok(SealedShard::Memory(sorted));
            }
            let end = match &end {
                Some(end) => end,
                None => end.insert(RunFile::create(self.temp_dir)?),
            };
            self.merge(runs, sorted, end, room)
        });
        sealed.collect()
    }

    /// Merges all records of a shard, from its file and memory, in several rounds where the runs are many: into memory, or
    /// at the end of a file.
    fn merge(
        &self,
        mut runs: Vec<Run>,
        sorted: Blocks<R>,
        end: &Arc<RunFile>,
        room: &Room,
    ) -> Result<SealedShard<R>> {
        while runs.len() >= FAN_IN {
            let round = RunFile::create(self.temp_dir)?;
            runs = runs
                .chunks(FAN_IN)
                .map(|runs| to_file(sources::<R>(runs), &round))
                .collect::<Result<_>>()?;
        }
        let from_memory = Source::<R>::Memory(sorted.iter());
        let sources = sources(&runs).chain([from_memory]);
        let most = sorted.len() + runs.iter().map(|run| run.len() as usize).sum::<usize>();
        let merged = if room.take(most) {
            let records = self.to_memory(sources)?;
            room.give_back(most - records.len());
            SealedShard::Memory(records)
        } else {
            SealedShard::File(to_file(sources, end)?)
        };
        room.give_back(sorted.len());
        self.pool.give_back(sorted.into_blocks());
        Ok(merged)
    }

    fn to_memory<'s>(&self, sources: impl Iterator<Item = Source<'s, R>>) -> Result<Blocks<R>> {
        let mut records = Blocks::default();
        merge_into(sources, |record| {
            records.last_with_room(self.pool).push(record);
            Ok(())
        })?;
        Ok(records)
    }
}

/// Sorted records that are merged.
enum Source<'a, R> {
    File(RunReader<'a, R>),
    Memory(Records<'a, R>),
}

impl<R: Record> Iterator for Source<'_, R> {
    type Item = Result<R>;

    #[inline]
    fn next(&mut self) -> Option<Result<R>> {
        match self {
            Source::File(records) => records.next(),
            Source::Memory(records) => records.next().map(Ok),
        }
    }
}

fn sources<R: Record>(runs: &[Run]) -> impl Iterator<Item = Source<'_, R>> {
    runs.iter().map(|run| Source::File(run.reader()))
}

/// Merges records into a run at the end of a file.
fn to_file<'a, R: Record>(
    sources: impl Iterator<Item = Source<'a, R>>,
    file: &Arc<RunFile>,
) -> Result<Run> {
    let mut writer = file.start_run();
    merge_into(sources, |record| writer.push(record))?;
    writer.finish()
}

/// Merges and folds records.
fn merge_into<'a, R: Record>(
    sources: impl Iterator<Item = Source<'a, R>>,
    mut push: impl FnMut(R) -> Result<()>,
) -> Result<()> {
    let mut pushed = Ok(());
    let mut push = |record| {
        if pushed.is_ok() {
            pushed = push(record);
        }
        pushed.is_ok()
    };
    let mut fold = R::Fold::default();
    for record in Merge::new(sources) {
        let mut goes_on = true;
        fold.take(record?, &mut |folded| goes_on = push(folded));
        if !goes_on {
            return pushed;
        }
    }
    fold.finish(&mut |folded| {
        push(folded);
    });
    pushed
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn groups_are_whole_wherever_blocks_end(
            lengths in proptest::collection::vec(0..20usize, 0..60),
            block in 1..30usize,
        ) {
            let records: Vec<(usize, usize)> = lengths
                .iter()
                .enumerate()
                .flat_map(|(kind, length)| (0..*length).map(move |at| (kind, at)))
                .collect();
            let same = |a: (usize, usize), b: (usize, usize)| a.0 == b.0;
            let mut groups = Groups::new(records.chunks(block));
            let mut found = Vec::new();
            while let Some(group) = groups.next(&same) {
                found.push(group.to_vec());
            }
            let expected = records.chunk_by(|a, b| same(*a, *b));
            prop_assert_eq!(found, expected.map(<[_]>::to_vec).collect::<Vec<_>>());
        }
    }
}

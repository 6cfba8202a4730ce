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
    run::{Run, RunFile, RunReader, RunWriter},
    sealed::{Sealed, SealedShard},
    shard::Shard,
};
use crate::{error::Result, task};

/// How many neighbouring shards share a temporary file, so that few files are open however much spills.
pub(super) const SHARDS_PER_FILE: usize = 8;

/// How many runs are merged at once; more are merged in several rounds.
const FAN_IN: usize = 64;

/// What sealing needs.
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

/// The records of a shard after merging.
enum Merged<R> {
    Memory(Blocks<R>),
    File(Run),
}

impl<R: Record> Sealing<'_, R> {
    /// Seals shards that spilled to these files, of which each is for [`SHARDS_PER_FILE`] neighbours. What spilled is
    /// merged into memory as far as there is room. Works on all threads of the rayon pool that it is called in.
    pub(super) fn seal(
        &self,
        mut shards: Vec<Shard<R>>,
        files: Vec<Option<Arc<RunFile>>>,
    ) -> Result<Sealed<R>> {
        let held: usize = shards.iter().map(Shard::len).sum();
        let room = Room(Mutex::new(self.most.saturating_sub(held)));
        let groups: Vec<Vec<SealedShard<R>>> = shards
            .par_chunks_mut(SHARDS_PER_FILE)
            .zip(files)
            .map(|(shards, file)| self.seal_group(shards, file.as_deref(), &room))
            .collect::<Result<_>>()?;
        Ok(Sealed::new(groups.into_iter().flatten().collect()))
    }

    /// Seals the shards that share a file.
    fn seal_group(
        &self,
        shards: &mut [Shard<R>],
        file: Option<&RunFile>,
        room: &Room,
    ) -> Result<Vec<SealedShard<R>>> {
        task::fault("seal");
        for shard in shards.iter_mut() {
            shard.compact(self.pool);
        }
        let sorted = |shard: &mut Shard<R>| std::mem::take(&mut shard.sorted);
        let Some(file) = file else {
            let in_memory = |shard| SealedShard::Memory(sorted(shard));
            return Ok(shards.iter_mut().map(in_memory).collect());
        };
        let mut end = RunFile::create(self.temp_dir)?;
        let mut merged = Vec::with_capacity(shards.len());
        for shard in shards {
            let sorted = sorted(shard);
            merged.push(match shard.runs[..] {
                [] => Merged::Memory(sorted),
                _ => self.merge(file, &shard.runs, sorted, &mut end, room)?,
            });
        }
        let end = Arc::new(end);
        let sealed = |merged| match merged {
            Merged::Memory(records) => SealedShard::Memory(records),
            Merged::File(run) => SealedShard::File(Arc::clone(&end), run),
        };
        Ok(merged.into_iter().map(sealed).collect())
    }

    /// Merges what a shard has in a file and in memory, in several rounds where the runs are many: into memory, or at
    /// the end of a file.
    fn merge(
        &self,
        file: &RunFile,
        runs: &[Run],
        sorted: Blocks<R>,
        end: &mut RunFile,
        room: &Room,
    ) -> Result<Merged<R>> {
        if runs.len() >= FAN_IN {
            let mut round = RunFile::create(self.temp_dir)?;
            let fewer = runs
                .chunks(FAN_IN)
                .map(|runs| to_file(sources::<R>(file, runs), &mut round))
                .collect::<Result<Vec<Run>>>()?;
            return self.merge(&round, &fewer, sorted, end, room);
        }
        let from_memory = Source::<R>::Memory(sorted.iter());
        let sources = sources(file, runs).chain([from_memory]);
        let most = sorted.len() + runs.iter().map(|run| run.len() as usize).sum::<usize>();
        let merged = if room.take(most) {
            let records = self.to_memory(sources)?;
            room.give_back(most - records.len());
            Merged::Memory(records)
        } else {
            Merged::File(to_file(sources, end)?)
        };
        room.give_back(sorted.len());
        self.pool.give_back(sorted.into_blocks());
        Ok(merged)
    }

    fn to_memory<'s>(&self, sources: impl Iterator<Item = Source<'s, R>>) -> Result<Blocks<R>> {
        let mut sink = InMemory {
            records: Blocks::default(),
            pool: self.pool,
        };
        merge_into(sources, &mut sink)?;
        Ok(sink.records)
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

fn sources<'a, R: Record>(
    file: &'a RunFile,
    runs: &'a [Run],
) -> impl Iterator<Item = Source<'a, R>> {
    runs.iter().map(|run| Source::File(file.reader(*run)))
}

/// Merges records into a run at the end of a file.
fn to_file<'a, R: Record>(
    sources: impl Iterator<Item = Source<'a, R>>,
    file: &mut RunFile,
) -> Result<Run> {
    let mut writer = file.start_run();
    merge_into(sources, &mut writer)?;
    writer.finish()
}

/// Takes records in order.
trait Sink<R> {
    fn push(&mut self, record: R);

    /// Gives away what need not be in memory.
    fn flush_if_full(&mut self) -> Result<()>;
}

impl<R: Record> Sink<R> for RunWriter<'_> {
    #[inline]
    fn push(&mut self, record: R) {
        RunWriter::push(self, record);
    }

    #[inline]
    fn flush_if_full(&mut self) -> Result<()> {
        RunWriter::flush_if_full(self)
    }
}

/// Records in blocks of the pool.
struct InMemory<'a, R> {
    records: Blocks<R>,
    pool: &'a Pool<R>,
}

impl<R: Record> Sink<R> for InMemory<'_, R> {
    #[inline]
    fn push(&mut self, record: R) {
        self.records.last_with_room(self.pool).push(record);
    }

    #[inline]
    fn flush_if_full(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Merges and folds records.
fn merge_into<'a, R: Record>(
    sources: impl Iterator<Item = Source<'a, R>>,
    sink: &mut impl Sink<R>,
) -> Result<()> {
    let mut fold = R::Fold::default();
    for record in Merge::new(sources) {
        fold.take(record?, &mut |folded| sink.push(folded));
        sink.flush_if_full()?;
    }
    fold.finish(&mut |folded| sink.push(folded));
    Ok(())
}

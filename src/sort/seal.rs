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

impl<R: Record> Sealing<'_, R> {
    /// Seals the shards. What spilled is merged into memory as far as there is room. Works on all threads of the rayon
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

    /// Merges what a shard has in a file and in memory, in several rounds where the runs are many: into memory, or at
    /// the end of a file.
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

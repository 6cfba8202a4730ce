//! Merging indexes: one that is, to the byte, the index of all their games.
//!
//! The ids of the second index run on behind those of the first, and so on. All entries are read in order, a stretch of
//! keys at a time, joined where several inputs have them, and written in order. Each stretch is read, joined and
//! written on all threads, and most entries of the first games are never copied between. Only game records, rows and
//! names pass through memory or temporary files, because new ids and numbers change their order.

mod ahead;
mod cursor;
mod entries;
mod games;
mod list_stream;
mod lists;
mod plan;
mod positions;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
};

use self::{
    entries::IndexMerge,
    games::{ExploredMerge, merged_records},
    plan::Plan,
};
use super::{
    Index,
    replace::check_replaceable,
    write::{IndexSummary, IndexWriter},
};
use crate::{error::Result, progress::Meter, sort::Memory, task};

/// Makes one index of several, which is to the byte the index that [`MakeBook`](crate::MakeBook) makes of all their
/// inputs in that order.
///
/// ```
/// use polybook::{MakeBook, index::{Index, MergeIndexes}, pgn::Input};
///
/// # let dir = tempfile::tempdir()?;
/// # let path = |name| dir.path().join(name);
/// for name in ["famous", "selfplay"] {
///     let pgn = Input::file(format!("data/{name}.pgn"));
///     MakeBook::new([pgn]).leveldb(path(name)).run()?;
/// }
/// let merged = MergeIndexes::new([path("famous"), path("selfplay")]).run(&path("both"))?;
/// assert_eq!(merged.games, 545);
/// assert_eq!(Index::open(path("both"))?.game_count(), 545);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct MergeIndexes {
    inputs: Vec<PathBuf>,
    force: bool,
    threads: usize,
    memory: Memory,
    stop: Arc<AtomicBool>,
    meter: Arc<Meter>,
}

/// What an index of several has.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, serde::Serialize)]
pub struct MergedIndex {
    /// Games of all inputs.
    pub games: u64,
    /// Positions that a game reached.
    pub positions: u64,
    /// Pairs of a position and a game that reached it.
    pub postings: u64,
}

impl MergeIndexes {
    /// A merge of these indexes, in this order.
    pub fn new(inputs: impl IntoIterator<Item = PathBuf>) -> MergeIndexes {
        MergeIndexes {
            inputs: inputs.into_iter().collect(),
            force: false,
            threads: 0,
            memory: Memory::default(),
            stop: Arc::default(),
            meter: Arc::default(),
        }
    }

    /// Replaces an index that exists. Default: an error.
    pub fn force(mut self, force: bool) -> MergeIndexes {
        self.force = force;
        self
    }

    /// How many threads read, join and write, 0 for one per core. Default: 0.
    pub fn threads(mut self, threads: usize) -> MergeIndexes {
        self.threads = threads;
        self
    }

    /// How much memory headers of games may take before they go to temporary files, and entries that are read ahead.
    /// Default: 1 GiB.
    pub fn memory(mut self, memory: Memory) -> MergeIndexes {
        self.memory = memory;
        self
    }

    /// A flag that, once set, ends the merge with [`Error::Interrupted`](crate::Error::Interrupted).
    pub fn stop_flag(mut self, stop: Arc<AtomicBool>) -> MergeIndexes {
        self.stop = stop;
        self
    }

    /// How far the merge has come, for another thread to show.
    pub fn meter(&self) -> Arc<Meter> {
        Arc::clone(&self.meter)
    }

    /// Merges the indexes into `out`, which appears when it is complete.
    ///
    /// # Errors
    ///
    /// No input, one that cannot be read or was made with other options than the first, more games than an index holds,
    /// an output that cannot be written, or [`Error::Interrupted`](crate::Error::Interrupted).
    pub fn run(&self, out: &Path) -> Result<MergedIndex> {
        task::caught(|| self.merge_into(out))
    }

    fn merge_into(&self, out: &Path) -> Result<MergedIndex> {
        let inputs = self
            .inputs
            .iter()
            .map(Index::open)
            .collect::<Result<Vec<_>>>()?;
        let plan = Plan::new(&inputs, out, self.memory.bytes / 8)?;
        let writer = IndexWriter::create(out, plan.with_stats, |old| {
            check_replaceable(old, self.force)
        })?;
        let pool = task::pool(self.threads)?;
        let (summary, finished) = pool.install(|| self.write(&plan, writer))?;
        finished.commit()?;
        Ok(MergedIndex {
            games: summary.games,
            positions: summary.positions,
            postings: summary.postings,
        })
    }

    fn write(
        &self,
        plan: &Plan<'_>,
        writer: IndexWriter,
    ) -> Result<(IndexSummary, crate::output::Finished)> {
        let records = merged_records(plan, &self.memory, &self.stop)?;
        let explored = plan
            .contents
            .as_ref()
            .map(|contents| ExploredMerge::new(plan, contents, &self.memory, &self.stop))
            .transpose()?;
        let merge = IndexMerge::new(plan, &records, explored.as_ref(), &self.meter)?;
        writer.write_waves(merge, plan, plan.games, &self.stop, &self.meter)
    }
}

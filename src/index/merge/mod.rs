//! Merging indexes. The result is byte-identical to the index that would be made from all their games.
//!
//! The game ids of the second index follow the ids of the first index, and so on. The key space is divided into
//! ranges. Each thread reads the entries of a range from all inputs and merges entries with equal keys. The
//! merged entries are written in the same way as in an index made from games. Game records, rows and names change
//! their order because they get new ids and numbers, so they pass through memory or temporary files. Values that
//! are too long to be held in memory also pass through temporary files.

mod games;
mod lists;
mod plan;

use std::{
    iter,
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
};

use self::{
    games::{MergedGames, merged_records},
    lists::ListMerge,
    plan::{KeyRange, MergePlan},
};
use super::{
    Index, IndexedFile,
    entry_batches::{EntryBatch, batches_of, file_entries, filled_batches, last_entry},
    store::Contents,
    write::{IndexWriter, MergedIndex},
};
use crate::{
    error::Result, progress::Meter, storage::output::Finished, storage::sort::Memory, task,
};

/// A merge of several indexes of one [kind](super::IndexKind) into a new index. The new index is byte-identical to the
/// index that [`MakeBook`](crate::MakeBook) makes from the input files of these indexes in the same order.
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

impl MergeIndexes {
    /// Creates a merge of the indexes at the paths `inputs`. Games are numbered in the order of the inputs.
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

    /// Sets whether [`run`](MergeIndexes::run) may replace an existing index. Otherwise, `run` fails if the output
    /// exists. Default: `false`.
    pub fn force(mut self, force: bool) -> MergeIndexes {
        self.force = force;
        self
    }

    /// Sets the number of threads; 0 means one thread per core. Default: 0.
    pub fn threads(mut self, threads: usize) -> MergeIndexes {
        self.threads = threads;
        self
    }

    /// Sets the memory budget of the merge. Data beyond the budget are spilled to temporary files. Default: 1 GiB.
    pub fn memory(mut self, memory: Memory) -> MergeIndexes {
        self.memory = memory;
        self
    }

    /// Sets a flag that cancels the merge. When another thread sets it to `true`, [`run`](MergeIndexes::run) returns
    /// [`Error::Interrupted`](crate::Error::Interrupted).
    pub fn stop_flag(mut self, stop: Arc<AtomicBool>) -> MergeIndexes {
        self.stop = stop;
        self
    }

    /// Returns the progress meter of the merge, which another thread can display.
    pub fn meter(&self) -> Arc<Meter> {
        Arc::clone(&self.meter)
    }

    /// Merges the indexes into a new index at the path `out`. The index appears at this path only when it is complete.
    ///
    /// # Errors
    ///
    /// Returns an error if there are no inputs, or if they have more games than an index can contain. Also returns an
    /// error if an input cannot be read, if an input differs from the first one in its kind, its variant or its
    /// options, or if the output cannot be written. Returns [`Error::Interrupted`](crate::Error::Interrupted) if the
    /// stop flag is set.
    pub fn run(&self, out: &Path) -> Result<MergedIndex> {
        task::caught(|| self.merge_into(out))
    }

    /// Opens the input indexes, writes the merged index to a temporary directory, and renames the directory to `out`.
    fn merge_into(&self, out: &Path) -> Result<MergedIndex> {
        let inputs = self
            .inputs
            .iter()
            .map(Index::open)
            .collect::<Result<Vec<_>>>()?;
        let plan = MergePlan::new(&inputs, out, &self.memory.temp_dir)?;
        let writer = IndexWriter::create(out, self.force)?;
        let pool = task::pool(self.threads)?;
        let (summary, finished) = pool.install(|| self.write(&plan, writer))?;
        finished.commit()?;
        Ok(summary)
    }

    /// Writes the merged index, using the threads of the current rayon pool. Returns a summary of the index, and the
    /// finished output, which the caller must still rename to its target.
    fn write(&self, plan: &MergePlan<'_>, writer: IndexWriter) -> Result<(MergedIndex, Finished)> {
        let mut files = Vec::new();
        for input in &plan.inputs {
            files.extend(input.index.inputs().iter().map(|file| IndexedFile {
                first_id: file.first_id.saturating_add(input.first_id.into()),
                ..file.clone()
            }));
        }
        let files = iter::once(Ok(file_entries(&files, plan.games, plan.variant)));
        self.meter.add_total(plan.games);
        let Some(contents) = &plan.contents else {
            let records = merged_records(plan, &self.memory, &self.stop)?;
            let mut records = records.walk();
            let positions = plan.position_ranges();
            let groups = self
                .joined(plan, positions, |range| plan.positions_in(range))
                .chain(filled_batches(move |entries| {
                    records.fill(entries, BYTES_PER_WRITE)
                }))
                .chain(files);
            return writer.write_batches(groups, |_| None, plan.games, &self.stop, &self.meter);
        };
        let merge = MergedGames::new(plan, &self.memory, &self.stop)?;
        let merged = merged_contents(contents, &merge);
        let lists = ListMerge::new(plan, contents, &merge, merged.items);
        let mut games = merge.games.entries();
        let games = filled_batches(move |entries| games.fill(entries, BYTES_PER_WRITE));
        let lists = self.joined(plan, lists.ranges(), |range| lists.lists_in(range));
        let groups = files.chain(games).chain(lists);
        let last = |made: &MergedIndex| Some(last_entry(merged, made.positions));
        writer.write_batches(groups, last, plan.games, &self.stop, &self.meter)
    }

    /// Merges the key ranges `ranges` by calling `join` with each of them. Returns the resulting batches of entries in
    /// groups, in the order of the ranges. All ranges of a group are merged in parallel. The number of ranges in a
    /// group depends on the memory budget and on the number of indexes in `plan`.
    fn joined<F: Fn(&KeyRange) -> Result<EntryBatch> + Send + Sync>(
        &self,
        plan: &MergePlan<'_>,
        ranges: Vec<KeyRange>,
        join: F,
    ) -> impl Iterator<Item = Result<Vec<EntryBatch>>> + Send + use<F> {
        self.meter
            .add_total(ranges.iter().map(|range| range.size).sum());
        let at_once = plan.ranges_at_once(self.memory.bytes / 8);
        batches_of(ranges, at_once, |_| 1, join)
    }
}

/// The approximate number of bytes of entries that are written to the merged index at a time, if the entries contain
/// game records, game rows or names. It limits the memory that these entries take.
const BYTES_PER_WRITE: usize = 4 << 20;

/// Creates the description of the merged index from the descriptions of the inputs (`contents`). `merged_games`
/// supplies the number of names in the merged index. The number of positions is not known yet, so it is set to 0.
fn merged_contents(contents: &[Contents], merged_games: &MergedGames) -> Contents {
    let names = contents.iter().map(|contents| u64::from(contents.names));
    let items: u64 = contents.iter().map(|contents| contents.items).sum();
    let merged = merged_games.games.name_count();
    let items = items.saturating_sub(names.sum()) + u64::from(merged);
    let max_ply = contents.first().and_then(|contents| contents.max_ply);
    Contents::new(items, merged, max_ply)
}

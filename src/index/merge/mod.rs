//! Merging indexes. The result is byte-identical to the index that is made from all their games.
//!
//! The ids of the second index's games follow those of the first, and so on. The key space is divided into ranges. Each
//! thread reads the entries of a range from all inputs and joins those with equal keys. The results are written like
//! those of an index made from games. Game records, rows and names pass through memory or temporary files because their
//! new ids and numbers change their order. Values that are too long to be held in memory also pass through temporary
//! files.

mod games;
mod lists;
mod positions;

use std::{
    iter,
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
};

use self::{
    games::{MergedGames, merged_records},
    lists::ListMerge,
};
use super::{
    Index, IndexedFile,
    entry_batches::{EntryBatch, batches_of, file_entries, filled_batches, last_entry},
    store::Contents,
    write::{IndexWriter, MergedIndex},
};
use crate::{
    error::{Error, Result},
    index::{IndexKind, tables::TABLE_SIZE},
    leveldb::{TableFile, TablesCursor},
    position::VariantChoice,
    progress::Meter,
    storage::{output::Finished, sort::Memory},
    task,
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

    /// Sets whether an existing index may be replaced. If not, [`run`](MergeIndexes::run) fails when the output exists.
    /// Default: `false`.
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

    /// Sets a flag that cancels the merge: when it becomes `true`, [`run`](MergeIndexes::run) returns
    /// [`Error::Interrupted`](crate::Error::Interrupted).
    pub fn stop_flag(mut self, stop: Arc<AtomicBool>) -> MergeIndexes {
        self.stop = stop;
        self
    }

    /// Returns the progress meter of the merge, which another thread can display.
    pub fn meter(&self) -> Arc<Meter> {
        Arc::clone(&self.meter)
    }

    /// Merges the indexes into a new index at `out`. The index appears there only when it is complete.
    ///
    /// # Errors
    ///
    /// Returns an error if there are no inputs, if an input cannot be read, if an input differs from the first one in
    /// its kind, its variant or its options, if the inputs have more games than an index can contain, or if the output
    /// cannot be written. Returns [`Error::Interrupted`](crate::Error::Interrupted) if the stop flag is set.
    pub fn run(&self, out: &Path) -> Result<MergedIndex> {
        task::caught(|| self.merge_into(out))
    }

    /// Opens the indexes, writes the merged index to a temporary directory, and renames the directory to `out`.
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

    /// Writes the merged index with the threads of the current rayon pool. Returns its size and the finished output,
    /// which is not renamed yet.
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
            let positions = plan.ranges(positions::START, positions::END, |key| Some(key.to_vec()));
            let groups = self
                .joined(plan, positions, |range| plan.positions_in(range))
                .chain(filled_batches(move |entries| {
                    records.fill(entries, BYTES_AT_ONCE)
                }))
                .chain(files);
            return writer.write_batches(groups, |_| None, plan.games, &self.stop, &self.meter);
        };
        let merge = MergedGames::new(plan, &self.memory, &self.stop)?;
        let merged = merged_contents(contents, &merge);
        let lists = ListMerge::new(plan, contents, &merge, merged.items);
        let mut games = merge.games.entries();
        let games = filled_batches(move |entries| games.fill(entries, BYTES_AT_ONCE));
        let lists = self.joined(plan, lists.ranges(), |range| lists.lists_in(range));
        let groups = files.chain(games).chain(lists);
        let last = |made: &MergedIndex| Some(last_entry(merged, made.positions));
        writer.write_batches(groups, last, plan.games, &self.stop, &self.meter)
    }

    /// Returns an iterator over the batches of entries that `join` creates from each key range in `ranges`. Several
    /// ranges are processed in parallel, as many as the memory budget and the indexes in `plan` allow.
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

/// The number of bytes of entries that are written to the merged index at a time. The entries contain game records,
/// rows of games, or names.
const BYTES_AT_ONCE: usize = 4 << 20;

/// Returns the description of the merged index, in which the number of positions is still 0. `contents` are the
/// descriptions of the inputs.
fn merged_contents(contents: &[Contents], merge: &MergedGames) -> Contents {
    let names = contents.iter().map(|contents| u64::from(contents.names));
    let items: u64 = contents.iter().map(|contents| contents.items).sum();
    let merged = merge.games.name_count();
    let items = items.saturating_sub(names.sum()) + u64::from(merged);
    let max_ply = contents.first().and_then(|contents| contents.max_ply);
    Contents::new(items, merged, max_ply)
}

/// The size in bytes up to which a block is held in memory with all its values. If a block is larger, its last value is
/// streamed.
const LONGEST_HELD: usize = 256 << 10;

/// The minimum number of LevelDB tables whose first keys lie in one key range. A merge is divided into key ranges,
/// which are processed one by one.
const FEWEST_TABLES: usize = 2;
/// The maximum of the number of LevelDB tables that begin in one key range. A merge of `n` indexes is divided into key
/// ranges in which about `n` tables begin, but at least [`FEWEST_TABLES`] and at most this number.
const MOST_TABLES: usize = 8;

/// The plan of a merge: the indexes to be merged, and the properties that they share.
struct MergePlan<'a> {
    pub inputs: Vec<MergeInput<'a>>,
    /// The number of games in all inputs.
    pub games: u64,
    pub variant: VariantChoice,
    /// The index in `inputs` of the base input: the one with the first games, which keep their ids.
    pub base: usize,
    /// The descriptions of the inputs if they are explorer's indexes, or `None` for indexes of the fork.
    pub contents: Option<Vec<Contents>>,
    /// The directory to which values are spilled that are too long to be held in memory.
    pub temp_dir: &'a Path,
}

/// An index that is an input of a merge.
struct MergeInput<'a> {
    pub index: &'a Index,
    /// The new id of the input's first game.
    pub first_id: u32,
    /// The tables, sorted by key.
    tables: Vec<&'a TableFile>,
}

impl<'a> MergeInput<'a> {
    /// Returns a cursor at the first entry whose key is at least `start`. The cursor reaches all entries whose keys are
    /// less than `end`, and possibly further ones.
    ///
    /// If a block has more than `longest` bytes and ends with a long value, the cursor returns the location of this
    /// value instead of its bytes.
    ///
    /// # Errors
    ///
    /// Returns an error if a table cannot be read or is damaged.
    fn cursor(&self, start: &[u8], end: &[u8], longest: usize) -> Result<TablesCursor<'a>> {
        let first = self
            .tables
            .partition_point(|table| table.last_key[..] < *start);
        let tables = self.tables[first..].iter();
        let tables = tables
            .take_while(|table| table.first_key[..] < *end)
            .copied();
        let tables = tables.collect();
        let database = self.index.database();
        let mut cursor = database.tables_cursor(tables, start, longest)?;
        cursor.pass_without_value()?;
        while cursor.key_before(start).is_some() {
            cursor.advance()?;
        }
        Ok(cursor)
    }
}

/// A half-open range of LevelDB keys that one thread merges.
#[derive(Clone, PartialEq, Eq, Debug)]
struct KeyRange {
    pub start: Vec<u8>,
    pub end: Vec<u8>,
    /// The total size in bytes of the tables that begin in the range.
    pub size: u64,
}

impl<'a> MergePlan<'a> {
    /// Checks that `indexes` can be merged, and plans their merge. `out` is the path of the merged index, which errors
    /// name. Long values are spilled to `temp_dir`.
    ///
    /// # Errors
    ///
    /// Returns an error if `indexes` is empty, if an index has another kind, variant or options than the first one, if
    /// it contains counts instead of games, if another program has written to it, or if all indexes together have more
    /// games than an index can contain.
    fn new(indexes: &'a [Index], out: &Path, temp_dir: &'a Path) -> Result<MergePlan<'a>> {
        let Some(first) = indexes.first() else {
            return Err(Error::file(
                out,
                "no index is named: name the indexes to merge",
            ));
        };
        let mut plan = MergePlan {
            inputs: Vec::new(),
            games: 0,
            variant: first.variant(),
            base: 0,
            contents: None,
            temp_dir,
        };
        let mut contents = Vec::new();
        let mut stats = None;
        for index in indexes {
            let other = |what: &str| {
                let problem = format!(
                    "this index {what} than {}: make one of the two again",
                    first.path().display()
                );
                Error::file(index.path(), problem)
            };
            if index.kind() == IndexKind::Counts {
                let problem = "this index has counts instead of games: add up the counts with make-book, and make an \
                               index from the sum";
                return Err(Error::file(index.path(), problem));
            }
            if index.kind() != first.kind() {
                return Err(other("is of another kind"));
            }
            if index.variant() != plan.variant {
                return Err(other("has games of another variant"));
            }
            let input = MergeInput {
                index,
                first_id: plan.games as u32,
                tables: index.database().tables_in_order()?,
            };
            let has_stats = input.has_stats()?;
            if has_stats.is_some_and(|has| stats.is_some_and(|others| has != others)) {
                return Err(other("was made with another choice of --index-stats"));
            }
            stats = stats.or(has_stats);
            contents.extend(index.contents());
            if contents.last().map(|last| last.max_ply)
                != contents.first().map(|first| first.max_ply)
            {
                return Err(other("was made with another --max-ply"));
            }
            if plan.games == 0 {
                plan.base = plan.inputs.len();
            }
            plan.inputs.push(input);
            plan.games += index.game_count();
            if plan.games > u64::from(u32::MAX) {
                return Err(Error::too_large(
                    out,
                    "the indexes have more than 4294967295 games, the most that one index can hold: merge fewer indexes",
                ));
            }
        }
        plan.contents = (first.kind() == IndexKind::Explorer).then_some(contents);
        Ok(plan)
    }

    /// Divides the keys from `start` up to but excluding `end` into ranges of a few megabytes. A range begins near the
    /// first key of a table. `align` receives this first key, and returns the greatest key up to it at which a range
    /// may begin, or `None` if no range may begin there.
    fn ranges(
        &self,
        start: &[u8],
        end: &[u8],
        align: impl Fn(&[u8]) -> Option<Vec<u8>>,
    ) -> Vec<KeyRange> {
        let inputs = self.inputs.iter().flat_map(|input| &input.tables);
        let mut tables: Vec<&TableFile> = inputs
            .filter(|table| table.last_key[..] >= *start && table.first_key[..] < *end)
            .copied()
            .collect();
        tables.sort_by(|a, b| a.first_key.cmp(&b.first_key));
        let mut ranges: Vec<KeyRange> = Vec::new();
        for some in tables.chunks(self.tables_in_range()) {
            let size = some.iter().map(|table| table.size).sum();
            let mut range = KeyRange {
                start: start.to_vec(),
                end: end.to_vec(),
                size,
            };
            if let Some(last) = ranges.last_mut() {
                let cut = align(&some[0].first_key).filter(|cut| *cut > last.start);
                let Some(cut) = cut else {
                    last.size += size;
                    continue;
                };
                last.end.clone_from(&cut);
                range.start = cut;
            }
            ranges.push(range);
        }
        ranges
    }

    /// Returns the number of ranges to merge in parallel, if the entries of these ranges may take `bytes` bytes of
    /// memory in total.
    fn ranges_at_once(&self, bytes: usize) -> usize {
        let ranges = bytes / (self.tables_in_range() * TABLE_SIZE);
        ranges.clamp(1, 2 * rayon::current_num_threads())
    }

    /// Returns the number of input tables after which the plan begins a new key range. The number equals the
    /// number of inputs, but is at least [`FEWEST_TABLES`] and at most [`MOST_TABLES`].
    fn tables_in_range(&self) -> usize {
        self.inputs.len().clamp(FEWEST_TABLES, MOST_TABLES)
    }
}

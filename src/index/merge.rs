//! Merging indexes. The result is byte-identical to the index that would be made from all their games.
//!
//! The game ids of the second index follow the ids of the first index, and so on. The key space is divided into
//! ranges. Each thread reads the entries of a range from all inputs and merges entries with equal keys. The
//! merged entries are written in the same way as in an index made from games. Game records, rows and names change
//! their order because they get new ids and numbers, so they pass through memory or temporary files. Values that
//! are too long to be held in memory also pass through temporary files.
//!
//! The lists of the explorer's indexes are merged in ascending order of list keys. The base input is the input with
//! the first games, which keep their ids. If only the base input has lists in a page, the page is copied unchanged.
//! Within other pages, lists that only the base input has are copied unchanged, too.

use std::{
    collections::VecDeque,
    iter, mem,
    ops::Range,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{
    GameRecords, Index, IndexKind, IndexedFile,
    entry_batches::{EntryBatch, batches_of, file_entries, filled_batches, last_entry},
    layout::{IdReader, game_id, joined_stats, parse_number, write_id},
    store::{
        Contents, LISTS, ListBuilder, ListEntry, ListKey, ListRecord, Paging, StoredGames,
        game_details::GAMES_PER_ENTRY,
        game_rows::ROWS_PER_ENTRY,
        list_entry,
        list_record::NAMED,
        list_subject,
        lists::{ChunkedList, List, for_each_list},
        rows_key, subject_start,
    },
    write::{IndexWriter, MergedIndex, TABLE_SIZE},
};
use crate::{
    error::{Error, Result},
    leveldb::{TableFile, TableValue, TablesCursor},
    position::VariantChoice,
    progress::Meter,
    storage::{
        output::Finished,
        sort::{ByteRun, Memory, Record, SHARDS, Sealed, Shards},
    },
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

    /// Writes the merged index. Uses the threads of the current rayon pool. Returns a summary of the index, and the
    /// finished output. The caller must then rename the output to its target.
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

/// The lower limit (inclusive) of the LevelDB keys of game records.
const GAMES_START: &[u8] = b"game_";
/// The upper limit (exclusive) of the LevelDB keys of game records. The backtick follows the underscore in ASCII.
const GAMES_END: &[u8] = b"game`";

/// The greatest number of decimal digits of a 32-bit game id.
const MAX_ID_DIGITS: usize = 10;

/// The number of list records that [`MergedGames::new`] collects in memory before it passes them to a sorter, which can
/// spill them to temporary files. Each of these records adds the number of a player or event name to the list of all
/// names that are equal after normalization, for example names that differ only in case.
const NAME_RECORDS_PER_SORT: usize = 1 << 16;

/// Reads the game records of all indexes in `plan`, and returns them in the order of the game ids in the merged index.
///
/// # Errors
///
/// Returns an error if an input cannot be read or is damaged, or if a temporary file fails. Returns
/// [`Error::Interrupted`] if `stop` is set.
fn merged_records(plan: &MergePlan<'_>, memory: &Memory, stop: &AtomicBool) -> Result<GameRecords> {
    let mut merged = GameRecords::new(memory.bytes / 4, memory.temp_dir.clone());
    for part in &plan.inputs {
        // Keys of ids with equal numbers of digits are in numeric order, so one run for each number of digits suffices
        // to restore the order of the ids.
        let share = memory.bytes / 4 / MAX_ID_DIGITS;
        let run = || (ByteRun::new(share, memory.temp_dir.clone()), 0);
        let mut by_digits: Vec<(ByteRun, u64)> = (0..MAX_ID_DIGITS).map(|_| run()).collect();
        let mut entries = part.cursor(GAMES_START, GAMES_END, usize::MAX)?;
        while let Some(key) = entries.key_before(GAMES_END) {
            let id = game_id(key).ok_or_else(|| part.index.malformed(key))?;
            let (records, count) = &mut by_digits[id.checked_ilog10().unwrap_or(0) as usize];
            records.append_text(entries.value().held())?;
            *count += 1;
            entries.advance()?;
        }
        let found: u64 = by_digits.iter().map(|(_, count)| count).sum();
        if found != part.index.game_count() {
            return Err(part.index.malformed(GAMES_START));
        }
        for (records, _) in &by_digits {
            let mut reader = records.reader(0);
            while let Some(record) = reader.read_text()? {
                merged.push_all(&[record.len() as u32], &record)?;
            }
        }
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
    }
    Ok(merged)
}

/// The games and the player and event names of a merged index, read from all inputs of the merge. The row of a game
/// contains the numbers that the names of its players and of its event have in the merged index.
struct MergedGames {
    pub games: StoredGames,
    /// The list records of the names that the base input does not contain.
    pub names: Sealed<ListRecord>,
}

impl MergedGames {
    /// Reads the games and names of all indexes in `plan`, and assigns the numbers that the names get in the merged
    /// index.
    ///
    /// # Errors
    ///
    /// Returns an error if an input cannot be read or is damaged, or if a temporary file fails. Returns
    /// [`Error::Interrupted`] if `stop` is set.
    fn new(plan: &MergePlan<'_>, memory: &Memory, stop: &AtomicBool) -> Result<MergedGames> {
        let mut games = StoredGames::new(memory.bytes / 4, memory.temp_dir.clone());
        let shards = Shards::new(memory.share(8));
        let mut lists = Vec::new();
        for (number, part) in plan.inputs.iter().enumerate() {
            for entry in 0..part.index.game_count().div_ceil(ROWS_PER_ENTRY) {
                if stop.load(Ordering::Relaxed) {
                    return Err(Error::Interrupted);
                }
                let mut rows = part.index.row_entry(entry)?.into_iter();
                let first = entry * ROWS_PER_ENTRY / GAMES_PER_ENTRY;
                let of_rows = (rows.len() as u64).div_ceil(GAMES_PER_ENTRY);
                for details in first..first + of_rows {
                    part.index.for_each_details(details, |details, _| {
                        let row = rows.next().expect("the entries have as many games");
                        let name = |number| part.index.name(number);
                        let names = [name(row.white)?, name(row.black)?, name(row.event)?];
                        let before = [row.white, row.black, row.event];
                        let numbers = games.push(row, &names, details, &mut lists)?;
                        if number == plan.base && numbers != before {
                            return Err(part.index.malformed(&rows_key(entry as u32)));
                        }
                        Ok(())
                    })?;
                }
                if number == plan.base {
                    // The names of the base input keep their numbers, so its lists of names need no new records.
                    lists.clear();
                }
                if lists.len() > NAME_RECORDS_PER_SORT {
                    shards.append(&lists)?;
                    lists.clear();
                }
            }
        }
        shards.append(&lists)?;
        Ok(MergedGames {
            games,
            names: shards.seal()?,
        })
    }

    /// Returns a list record for each new name. A new name is a name that the base index (the first index with games)
    /// does not contain. The record adds the number of the name to the list of all names that are equal after
    /// normalization.
    ///
    /// Returns only records whose list keys are at least `from` and less than `until`. If `until` is `None`, there is
    /// no upper limit.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be read.
    fn names_within(&self, from: ListKey, until: Option<ListKey>) -> Result<Vec<ListRecord>> {
        let shard_of = |subject| ListRecord::listed(subject, 0).shard();
        let mut names = Vec::new();
        for shard in shard_of(from)..=until.map_or(SHARDS - 1, shard_of) {
            self.names.for_each(shard, |record| {
                let subject = record.subject();
                if subject >= from && until.is_none_or(|until| subject < until) {
                    names.push(record);
                }
            })?;
        }
        Ok(names)
    }
}

/// The lower limit (inclusive) of the LevelDB keys under which an explorer's index stores its lists. A list contains,
/// for example, the games of a position.
const LISTS_START: &[u8] = b"xp";
/// The upper limit (exclusive) of the LevelDB keys under which an explorer's index stores its lists.
const LISTS_END: &[u8] = b"xq";

/// A merge of the lists of several indexes that were made for the explorer. Most lists contain the games of one
/// position, one player or one Lichess id. The other lists contain numbers of player and event names: all names in such
/// a list are equal after normalization, for example because they differ only in case.
struct ListMerge<'a> {
    plan: &'a MergePlan<'a>,
    merged: &'a MergedGames,
    /// The rule by which each input assigns lists to pages.
    pagings: Vec<Paging>,
    /// The rule by which the output assigns lists to pages.
    paging: Paging,
}

impl<'a> ListMerge<'a> {
    /// Creates a merge of the lists of all indexes in `plan`. `contents` contains the descriptions of these indexes,
    /// and `merged` the games of the merged index. `items` is the total number of list items in all indexes. It
    /// determines which lists of the merged index share a page, which is an entry that contains several lists.
    fn new(
        plan: &'a MergePlan<'a>,
        contents: &[Contents],
        merged: &'a MergedGames,
        items: u64,
    ) -> ListMerge<'a> {
        ListMerge {
            plan,
            merged,
            pagings: contents.iter().map(|contents| contents.paging).collect(),
            paging: Paging::for_items(items),
        }
    }

    /// Divides the lists into key ranges that can be merged in parallel. The merged index stores several lists together
    /// in an entry, called a page. No range begins in the middle of a page.
    fn ranges(&self) -> Vec<KeyRange> {
        self.plan.ranges(LISTS_START, LISTS_END, |key| {
            Some(subject_start(self.paging.first_of(list_subject(key)?)).to_vec())
        })
    }

    /// Merges all lists whose keys are in `range`. Returns the resulting entries of the merged index.
    ///
    /// # Errors
    ///
    /// Returns an error if an input cannot be read or is damaged, or if a temporary file cannot be read or written.
    fn lists_in(&self, range: &KeyRange) -> Result<EntryBatch> {
        task::fault("join lists");
        let from = list_subject(&range.start).unwrap_or(ListKey(0));
        let until = list_subject(&range.end);
        let inputs = self.plan.inputs.iter().zip(&self.pagings).enumerate();
        let inputs = inputs.map(|(number, (input, paging))| {
            ListStream::new(input, number == self.plan.base, *paging, (from, until))
        });
        let names = self.merged.names_within(from, until)?;
        let join = RangeMerge {
            base: self.plan.base,
            has_same_pages: self.pagings[self.plan.base] == self.paging,
            inputs: inputs.collect::<Result<_>>()?,
            names: &names,
            paging: self.paging,
            maker: ListBuilder::new(self.paging, &self.merged.games),
        };
        let steps = range.size;
        Ok(EntryBatch {
            steps,
            ..join.join()?
        })
    }
}

/// The merge of all lists whose keys lie in one range. Each range is merged by one thread.
struct RangeMerge<'p> {
    base: usize,
    /// Whether the base input assigns lists to pages in the same way as the output, so that its pages can be copied.
    has_same_pages: bool,
    inputs: Vec<ListStream<'p>>,
    /// The records of new names that have not been merged yet, sorted by subject.
    names: &'p [ListRecord],
    paging: Paging,
    maker: ListBuilder<'p>,
}

impl RangeMerge<'_> {
    /// Merges all lists in the key range, and returns the resulting entries of the merged index.
    fn join(mut self) -> Result<EntryBatch> {
        loop {
            let named = self.names.first().map(|record| record.subject());
            let mut other = named;
            for (number, input) in self.inputs.iter_mut().enumerate() {
                if number != self.base {
                    input.read_to_lists()?;
                    other = other.into_iter().chain(input.subject()).min();
                }
            }
            if self.has_same_pages {
                self.copy_pages(other)?;
            }
            let base = &mut self.inputs[self.base];
            base.read_to_lists()?;
            if self.has_same_pages
                && let Some((last, lists)) = base.take_lists(other)
            {
                // The page of these lists has been read, so they are well-formed.
                self.maker.count_lists(last, lists);
                self.maker.add_lists(last, lists)?;
                continue;
            }
            let Some(subject) = other.into_iter().chain(base.subject()).min() else {
                return self.maker.finish();
            };
            if named == Some(subject) {
                self.add_named(subject)?;
            } else {
                self.add(subject)?;
            }
        }
    }

    /// Copies pages of the base index to the merged index without changes. A page is an entry that contains several
    /// lists. The base index is the first index with games. Its game ids are the same in the merged index, so its pages
    /// can be copied.
    ///
    /// Stops before the page to which the list key `other` belongs, because this page must be merged: `other` is the
    /// smallest key of the lists that other indexes still contribute. If `other` is `None`, copies all remaining pages.
    fn copy_pages(&mut self, other: Option<ListKey>) -> Result<()> {
        let base = &mut self.inputs[self.base];
        while base.subject().is_none()
            && let Some((key, page)) = base.next_key()?
            && other.is_none_or(|other| page < self.paging.first_of(other))
        {
            let TableValue::Held(value) = base.entries.value() else {
                return Err(base.index.malformed(key));
            };
            if let Some(ListEntry::Page(last)) = list_entry(LISTS, key) {
                let counted = self.maker.count_lists(last, value);
                counted.ok_or_else(|| base.index.malformed(key))?;
            }
            self.maker.copy_entry(key, value)?;
            base.entries.advance()?;
        }
        Ok(())
    }

    /// Concatenates the lists that the inputs have for the list key `subject`, and adds the resulting list to the
    /// merged index. Must not be called for a list of name numbers if the merge adds numbers of new names to this list.
    /// [`add_named`](Self::add_named) merges such a list.
    fn add(&mut self, subject: ListKey) -> Result<()> {
        // The new ids of each input follow those of the previous one, so concatenation keeps the order.
        for input in &mut self.inputs {
            if input.subject() == Some(subject) {
                input.take(|record| self.maker.add(record))?;
            }
        }
        Ok(())
    }

    /// Merges the lists of name numbers that the inputs have for the list key `subject`, and adds the resulting list to
    /// the merged index. A name number is the number that an index has assigned to a player or event name. The numbers
    /// of new names in `self.names` that have this key are added to the list. A new name is a name that the base index
    /// (the first index with games) does not contain. The list is sorted by number.
    fn add_named(&mut self, subject: ListKey) -> Result<()> {
        let named = self.names.partition_point(|name| name.subject() == subject);
        let (named, rest) = self.names.split_at(named);
        self.names = rest;
        let mut records = named.to_vec();
        for input in &mut self.inputs {
            if input.subject() == Some(subject) {
                input.take(|record| {
                    records.push(record);
                    Ok(())
                })?;
            }
        }
        records.sort_unstable();
        // If several records have the same id, the last one is kept, as when an index is made from games.
        records.dedup_by(|later, kept| {
            let is_same = later.id() == kept.id();
            if is_same {
                *kept = *later;
            }
            is_same
        });
        records
            .into_iter()
            .try_for_each(|record| self.maker.add(record))
    }
}

/// A reader of the lists that one input of a merge contains in a range of list keys.
///
/// The base index is the first index with games. Its names keep their numbers in the merged index. The names of all
/// other inputs get new numbers (see [`MergedGames`]), so the readers of these inputs skip the lists of name numbers,
/// in which the old numbers are stored.
struct ListStream<'p> {
    index: &'p Index,
    entries: TablesCursor<'p>,
    paging: Paging,
    first_id: u32,
    keeps_names: bool,
    from: ListKey,
    until: Option<ListKey>,
    /// The number of chunks read since the last page.
    chunks: u64,
    /// The page that was read last.
    page: Vec<u8>,
    /// The lists of the page that have not been taken yet.
    lists: VecDeque<PageList>,
}

/// The location of a list in the current page, an entry that contains several lists.
#[derive(Clone)]
struct PageList {
    subject: ListKey,
    /// The offset in the page at which the key of the list begins.
    start: usize,
    /// The byte range of the list in the page.
    list: Range<usize>,
    /// The description of the list if it is stored in chunks.
    chunked: Option<ChunkedList>,
}

impl<'p> ListStream<'p> {
    /// Creates a reader of the lists of `input` whose keys are at least `from` and less than `until`. If `until` is
    /// `None`, there is no upper limit. `paging` determines which lists of `input` share a page, which is an entry
    /// that contains several lists.
    ///
    /// `has_first_games` is `true` if `input` contains the first games of the merged index. The names of this input
    /// keep their numbers, so the reader also returns its lists of name numbers.
    fn new(
        input: &MergeInput<'p>,
        has_first_games: bool,
        paging: Paging,
        (from, until): (ListKey, Option<ListKey>),
    ) -> Result<ListStream<'p>> {
        Ok(ListStream {
            index: input.index,
            entries: input.cursor(
                &subject_start(paging.first_of(from)),
                LISTS_END,
                MAX_BLOCK_IN_MEMORY,
            )?,
            paging,
            first_id: input.first_id,
            keeps_names: has_first_games,
            from,
            until,
            chunks: 0,
            page: Vec::new(),
            lists: VecDeque::new(),
        })
    }

    /// Returns the key of the next list in the current page, or `None` if the page has no more lists. A page is an
    /// entry that contains several lists.
    fn subject(&self) -> Option<ListKey> {
        self.lists.front().map(|list| list.subject)
    }

    /// Removes as many lists as possible from the front of the current page, which is an entry with several lists.
    /// Stops before the first list that is stored in chunks, or whose key is at least `limit`. If `limit` is `None`,
    /// there is no upper limit.
    ///
    /// Returns the key of the last removed list, and the encoded form of all removed lists. Returns `None` if no list
    /// was removed.
    fn take_lists(&mut self, limit: Option<ListKey>) -> Option<(ListKey, &[u8])> {
        let is_own = |list: &&PageList| {
            list.chunked.is_none() && limit.is_none_or(|limit| list.subject < limit)
        };
        let own = self.lists.iter().take_while(is_own).count();
        let mut passed = self.lists.drain(..own);
        let first = passed.next()?;
        let last = passed.next_back().unwrap_or_else(|| first.clone());
        Some((last.subject, &self.page[first.start..last.list.end]))
    }

    /// Removes the next list from the current page (an entry with several lists), and calls `f` with each of its
    /// records. The game ids in the records are those of the merged index.
    fn take(&mut self, mut f: impl FnMut(ListRecord) -> Result<()>) -> Result<()> {
        let Some(next) = self.lists.pop_front() else {
            return Ok(());
        };
        let mut least = 0;
        let Some(chunked) = next.chunked else {
            let list = List::parse(&self.page[next.list]);
            let list = list.ok_or_else(|| self.index.malformed(LISTS_START))?;
            return self.pass_records(next.subject, list, &mut least, &mut f);
        };
        for chunk in self.index.chunks(next.subject, chunked) {
            let chunk = chunk?;
            self.pass_records(next.subject, chunk.list(self.index)?, &mut least, &mut f)?;
        }
        Ok(())
    }

    /// Calls `f` with each record in `list`, which is a whole list or one chunk of a long list. `subject` is the key of
    /// the list. The game ids in the records are those of the merged index.
    ///
    /// `least` is the smallest id that `list` may contain, because the ids must ascend from chunk to chunk. The
    /// function changes it to the smallest id that the next chunk may contain.
    fn pass_records(
        &self,
        subject: ListKey,
        list: List<'_>,
        least: &mut u64,
        f: &mut impl FnMut(ListRecord) -> Result<()>,
    ) -> Result<()> {
        let malformed = || self.index.malformed(LISTS_START);
        let are_names = list.moves().all(|mv| mv == NAMED);
        if are_names && !self.keeps_names {
            return Ok(());
        }
        let end = match are_names {
            true => u64::from(u32::MAX),
            false => self.index.game_count(),
        };
        let (items, _) = list.items().ok_or_else(malformed)?;
        for (id, mv) in items {
            if !(*least..end).contains(&u64::from(id)) {
                return Err(malformed());
            }
            *least = u64::from(id) + 1;
            let id = id.checked_add(self.first_id).ok_or_else(malformed)?;
            f(ListRecord::new(subject, id, 0, list.white_to_move, mv))?;
        }
        Ok(())
    }

    /// Returns two keys, or `None` if no entry is left in the range of this reader. The first is the LevelDB key of the
    /// next entry. The second is the smallest list key that can occur in the page to which this entry belongs. A page
    /// is an entry that contains several lists with neighboring keys.
    fn next_key(&self) -> Result<Option<(&[u8], ListKey)>> {
        let Some(key) = self.entries.key_before(LISTS_END) else {
            return Ok(None);
        };
        let subject = list_subject(key).ok_or_else(|| self.index.malformed(key))?;
        let first = self.paging.first_of(subject);
        Ok(self
            .until
            .is_none_or(|until| first < until)
            .then_some((key, first)))
    }

    /// Reads entries until a page contains at least one list in the key range of this reader, or until no entry is
    /// left. A page is an entry that contains several lists. Does nothing if the current page still has lists that have
    /// not been taken.
    fn read_to_lists(&mut self) -> Result<()> {
        while self.lists.is_empty()
            && let Some((key, _)) = self.next_key()?
        {
            match (list_entry(LISTS, key), self.entries.value()) {
                (Some(ListEntry::Chunk(_)), _) => self.chunks += 1,
                // The results by period are calculated again for the merged lists.
                (Some(ListEntry::Period), _) => {}
                (Some(ListEntry::Page(last)), TableValue::Held(page)) => {
                    self.page.clear();
                    self.page.extend_from_slice(page);
                    self.read_page(last)?;
                }
                _ => return Err(self.index.malformed(key)),
            }
            self.entries.advance()?;
        }
        Ok(())
    }

    /// Finds the lists in the current page (an entry with several lists) whose keys are in the range of this reader.
    /// `last` is the greatest list key that can occur in the page.
    ///
    /// Long lists of the page are stored in chunks, which are entries before the page. The function also checks that
    /// the number of these entries is correct.
    fn read_page(&mut self, last: ListKey) -> Result<()> {
        let (mut start, mut chunks) = (0, 0);
        let lists = &mut self.lists;
        let found = for_each_list(self.paging, &self.page, last, |subject, list, range| {
            let start = mem::replace(&mut start, range.end);
            chunks += list.chunked.map_or(0, ChunkedList::chunks);
            if subject >= self.from && self.until.is_none_or(|until| subject < until) {
                lists.push_back(PageList {
                    subject,
                    start,
                    list: range,
                    chunked: list.chunked,
                });
            }
            Some(())
        });
        found
            .filter(|()| mem::take(&mut self.chunks) == chunks)
            .ok_or_else(|| self.index.malformed(LISTS_START))
    }
}

/// The greatest size in bytes of a LevelDB block that is held in memory as a whole. Only the last value of a block can
/// be long. In a larger block, this value is read in parts.
const MAX_BLOCK_IN_MEMORY: usize = 256 << 10;

/// The minimum number of LevelDB tables in one key range. A merge is divided into key ranges, and one thread processes
/// each range. A range with fewer tables would be too little work for a thread.
const MIN_TABLES_PER_RANGE: usize = 2;
/// The maximum number of LevelDB tables in one key range, which limits the memory that a range takes. A merge is
/// divided into key ranges. For a merge of `n` indexes, each range contains `n` tables, but at least
/// [`MIN_TABLES_PER_RANGE`] and at most this number.
const MAX_TABLES_PER_RANGE: usize = 8;

/// The plan of a merge: the indexes that will be merged, and the properties that they share.
struct MergePlan<'a> {
    pub inputs: Vec<MergeInput<'a>>,
    /// The number of games in all inputs.
    pub games: u64,
    pub variant: VariantChoice,
    /// The index in `inputs` of the base input: the one with the first games, which keep their ids.
    pub base: usize,
    /// The descriptions of the inputs if these are explorer's indexes, or `None` if they were made by `make-book
    /// --leveldb`.
    pub contents: Option<Vec<Contents>>,
    /// The directory to which values are spilled that are too long to be held in memory.
    pub temp_dir: &'a Path,
}

/// An index that is an input of a merge.
struct MergeInput<'a> {
    pub index: &'a Index,
    /// The id that the input's first game gets in the merged index.
    pub first_id: u32,
    /// The tables, sorted by key.
    tables: Vec<&'a TableFile>,
}

impl<'a> MergeInput<'a> {
    /// Returns a cursor at the first entry of this index whose key is at least `start`. The cursor reaches all entries
    /// whose keys are less than `end`, and possibly further entries.
    ///
    /// Blocks of more than `longest` bytes are not held in memory as a whole. If such a block ends with a long value,
    /// the cursor returns the location of this value instead of its bytes.
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
        cursor.skip_hidden()?;
        while cursor.key_before(start).is_some() {
            cursor.advance()?;
        }
        Ok(cursor)
    }
}

/// A half-open range of LevelDB keys in a merge. One thread merges the entries of all inputs in this range.
#[derive(Clone, PartialEq, Eq, Debug)]
struct KeyRange {
    pub start: Vec<u8>,
    pub end: Vec<u8>,
    /// The total size in bytes of the tables that begin in the range.
    pub size: u64,
}

/// Returns the sum of `games`, the number of games in the previous indexes, and `of_index`, that of the next index.
///
/// # Errors
///
/// Returns an error if the sum is greater than the number of games that one index can contain. `out` is the path of the
/// merged index.
fn add_games(games: u64, of_index: u64, out: &Path) -> Result<u64> {
    let sum = games + of_index;
    if sum > u64::from(u32::MAX) {
        let problem = "the indexes contain more than 4294967295 games, the most that one index can contain: merge fewer \
                       indexes";
        return Err(Error::too_large(out, problem));
    }
    Ok(sum)
}

impl<'a> MergePlan<'a> {
    /// Checks that `indexes` can be merged, and plans their merge. `out` is the path of the merged index; it is only
    /// used in error messages. Long values are spilled to `temp_dir`.
    ///
    /// # Errors
    ///
    /// Returns an error if `indexes` is empty, or if all indexes together have more games than an index can contain.
    /// Also returns an error if an index differs from the first one in its kind, its variant or its options, if it
    /// contains counts instead of games, or if another program has written to it.
    fn new(indexes: &'a [Index], out: &Path, temp_dir: &'a Path) -> Result<MergePlan<'a>> {
        let Some(first) = indexes.first() else {
            return Err(Error::file(
                out,
                "no index is given: give the indexes to merge",
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
                    "this index {what} than {}: make this index again with the options of the other one",
                    first.path().display()
                );
                Error::file(index.path(), problem)
            };
            if index.kind() == IndexKind::Counts {
                let problem = "this index contains counts instead of games: add up the counts with make-book, and \
                               make an index from the sum";
                return Err(Error::file(index.path(), problem));
            }
            if index.kind() != first.kind() {
                return Err(other("is of another kind"));
            }
            if index.variant() != plan.variant {
                return Err(other("contains games of another variant"));
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
            plan.games = add_games(plan.games, index.game_count(), out)?;
        }
        plan.contents = (first.kind() == IndexKind::Explorer).then_some(contents);
        Ok(plan)
    }

    /// Divides the keys that are at least `start` and less than `end` into ranges that take a few megabytes each. A
    /// range begins at the first key of a table, or slightly before it.
    ///
    /// Some entries must be merged together, so a range cannot begin at every key. `align` receives the first key of a
    /// table, and returns the greatest possible beginning of a range that is not after this key. `align` returns `None`
    /// if there is no such beginning.
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

    /// Returns how many key ranges may be merged in parallel if their entries may take about `bytes` bytes of memory in
    /// total. The result is at least 1, and at most twice the number of threads.
    fn ranges_at_once(&self, bytes: usize) -> usize {
        let ranges = bytes / (self.tables_in_range() * TABLE_SIZE);
        ranges.clamp(1, 2 * rayon::current_num_threads())
    }

    /// Returns the number of input tables in one key range of the plan. This is the number of inputs, but at least
    /// [`MIN_TABLES_PER_RANGE`] and at most [`MAX_TABLES_PER_RANGE`].
    fn tables_in_range(&self) -> usize {
        self.inputs
            .len()
            .clamp(MIN_TABLES_PER_RANGE, MAX_TABLES_PER_RANGE)
    }
}

/// The lower limit (inclusive) of the LevelDB keys of positions. These keys begin with decimal digits.
const POSITIONS_START: &[u8] = b"0";
/// The upper limit (exclusive) of the LevelDB keys of positions. These keys begin with decimal digits, and the colon
/// follows the digit 9 in ASCII.
const POSITIONS_END: &[u8] = b":";

/// Counts the game ids that end in `value`, a part of a list of game ids in decimal digits. A comma follows each id, so
/// the function counts commas.
fn count(value: &[u8]) -> u64 {
    memchr::memchr_iter(b',', value).count() as u64
}

impl MergeInput<'_> {
    /// Returns `Some(true)` if the index contains statistics of positions, such as the number of draws, and
    /// `Some(false)` if it does not. Returns `None` if it has no positions.
    ///
    /// # Errors
    ///
    /// Returns an error if the index cannot be read or is damaged.
    fn has_stats(&self) -> Result<Option<bool>> {
        let positions = self.cursor(POSITIONS_START, POSITIONS_END, 0)?;
        let Some(key) = positions.key_before(POSITIONS_END) else {
            return Ok(None);
        };
        let key = parse_number(key).ok_or_else(|| self.index.malformed(key))?;
        Ok(Some(self.index.stats(key)?.is_some()))
    }

    /// Converts game ids of this input to ids of the merged index, and appends them to `out` as text. `value` is a part
    /// of a list of game ids. If the part ends in the middle of an id, `ids` keeps the first digits of the id for the
    /// next part. Returns `None` if the list is malformed.
    fn shift(&self, ids: &mut IdReader, value: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let games = self.index.game_count();
        ids.read(value, |id| {
            // The new ids cannot overflow, because the plan has checked the total number of games.
            (u64::from(id) < games).then(|| write_id(out, id + self.first_id))
        })
    }

    /// Adds the games of a position in this input to the merged list of the position. `value` is the list of game ids
    /// in this input. The ids are converted to ids of the merged index, and appended to the value of the open entry of
    /// `made`, whose key is `key`. A long list is spilled to `temp_dir`.
    ///
    /// # Errors
    ///
    /// Returns an error if the ids are malformed, or if a long list cannot be read or spilled.
    fn add_ids(
        &self,
        key: &[u8],
        value: TableValue<'_>,
        temp_dir: &Path,
        made: &mut EntryBatch,
    ) -> Result<()> {
        let malformed = || self.index.malformed(key);
        let (mut ids, entries) = (IdReader::default(), &mut made.entries);
        match value {
            TableValue::Held(value) => {
                made.postings += count(value);
                if self.first_id == 0 {
                    entries.open_bytes().extend_from_slice(value);
                    return Ok(());
                }
                self.shift(&mut ids, value, entries.open_bytes())
                    .ok_or_else(malformed)?;
            }
            TableValue::Long(value) => self.index.database().read_long(&value, |part| {
                made.postings += count(part);
                self.shift(&mut ids, part, entries.open_bytes())
                    .ok_or_else(malformed)?;
                entries.spill(key.len(), temp_dir)
            })?,
        }
        ids.is_done().then_some(()).ok_or_else(malformed)
    }
}

impl MergePlan<'_> {
    /// Divides the entries of positions into key ranges that can be merged in parallel.
    fn position_ranges(&self) -> Vec<KeyRange> {
        self.ranges(POSITIONS_START, POSITIONS_END, |key| Some(key.to_vec()))
    }

    /// Merges the entries of all positions whose keys are in `range`. Returns the resulting entries of the merged
    /// index.
    ///
    /// # Errors
    ///
    /// Returns an error if an input cannot be read or is damaged, or if a temporary file cannot be read or written.
    fn positions_in(&self, range: &KeyRange) -> Result<EntryBatch> {
        task::fault("join positions");
        let inputs = self.inputs.iter();
        let inputs =
            inputs.map(|input| input.cursor(&range.start, &range.end, MAX_BLOCK_IN_MEMORY));
        let mut inputs = inputs.collect::<Result<Vec<_>>>()?;
        let mut made = EntryBatch {
            steps: range.size,
            ..EntryBatch::default()
        };
        let mut key = Vec::new();
        loop {
            let others = inputs.iter().enumerate();
            let others = others.filter(|(number, _)| *number != self.base);
            let others = others.filter_map(|(_, input)| input.key_before(&range.end));
            let next = others.min();
            let is_last = next.is_none();
            key.clear();
            key.extend_from_slice(next.unwrap_or(&range.end));
            self.copy_base(&mut inputs[self.base], &key, &mut made)?;
            if is_last {
                return Ok(made);
            }
            let with_key = self.inputs.iter().zip(&inputs);
            let with_key = with_key.filter(|(_, cursor)| cursor.key() == Some(&key));
            let values = with_key.map(|(input, cursor)| (input, cursor.value()));
            if is_of_games(&key) {
                self.join_ids(&key, values, &mut made)?;
            } else {
                join_stats(&key, values, &mut made)?;
            }
            for cursor in &mut inputs {
                if cursor.key() == Some(&key) {
                    cursor.advance()?;
                }
            }
        }
    }

    /// Copies entries from the cursor `base` to `made`, up to the first entry whose key is at least `end`. No other
    /// input has entries before `end`, so nothing has to be merged. `base` reads the first index with games, whose game
    /// ids are the same in the merged index.
    fn copy_base(
        &self,
        base: &mut TablesCursor<'_>,
        end: &[u8],
        made: &mut EntryBatch,
    ) -> Result<()> {
        let input = &self.inputs[self.base];
        while let Some(key) = base.key_before(end) {
            match base.value() {
                value if is_of_games(key) => {
                    self.join_ids(key, iter::once((input, value)), made)?;
                }
                TableValue::Held(value) => made.entries.push(key, value),
                TableValue::Long(_) => return Err(input.index.malformed(key)),
            }
            base.advance()?;
        }
        Ok(())
    }

    /// Concatenates the lists of game ids that several inputs contain for one position, and adds the resulting entry to
    /// `made`. `key` is the LevelDB key of the entry. `values` contains each of these inputs with its list, in the
    /// order of the inputs.
    #[inline]
    fn join_ids<'p>(
        &self,
        key: &[u8],
        values: impl Iterator<Item = (&'p MergeInput<'p>, TableValue<'p>)>,
        made: &mut EntryBatch,
    ) -> Result<()> {
        made.positions += 1;
        made.entries.begin(key);
        for (input, value) in values {
            input.add_ids(key, value, self.temp_dir, made)?;
        }
        made.entries.end_spilled(key.len(), self.temp_dir)
    }
}

/// Returns `true` if `key` is the LevelDB key of a position's list of games. Returns `false` if it is the key of a
/// statistic, such as `10_freq`.
fn is_of_games(key: &[u8]) -> bool {
    key.last().is_some_and(u8::is_ascii_digit)
}

/// Combines the values that several inputs contain for one statistic of a position, such as the number of draws, and
/// adds the resulting entry to `made`. `key` is the LevelDB key of the entry. `values` contains each of these inputs
/// with its value.
///
/// # Errors
///
/// Returns an error if a value is malformed.
fn join_stats<'p>(
    key: &[u8],
    values: impl Iterator<Item = (&'p MergeInput<'p>, TableValue<'p>)>,
    made: &mut EntryBatch,
) -> Result<()> {
    let (mut held, mut any) = (Vec::new(), None);
    for (input, value) in values {
        let TableValue::Held(value) = value else {
            return Err(input.index.malformed(key));
        };
        held.push(value);
        any = any.or(Some(input));
    }
    if let [only] = held[..] {
        made.entries.push(key, only);
    } else if let Some(joined) = joined_stats(key, &held) {
        made.entries.push(key, &joined);
    } else if let Some(input) = any {
        return Err(input.index.malformed(key));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merged_index_has_a_limited_number_of_games() {
        let most = u64::from(u32::MAX);
        let err = add_games(most, 1, "new.idx".as_ref()).unwrap_err();
        let advice = "merge fewer indexes";
        assert!(err.to_string().contains(advice), "{err}");
        // One game fewer is within the limit.
        assert_eq!(add_games(most - 1, 1, "new.idx".as_ref()).unwrap(), most);
    }
}

//! Writes the entries of an index in ascending order of keys, on all threads.
//!
//! The entries are written in groups of a few megabytes. While the thread pool writes the tables of one group, it also
//! creates the entries of the next group. In between, one thread divides the entries into tables ([`TableCutter`]), so
//! the tables depend neither on the number of threads nor on the size of a group.
//!
//! A table is complete with the entry at which its keys and values reach one mebibyte. The entries arrive in ascending
//! order of keys but in batches of any size, so a table may contain entries from several batches.
//!
//! [`GameRecords`] collects game records in bounded memory, and returns them in the order of the index. Records are
//! added in the order of game ids, but in the index they are sorted by key, so that `game_10_data` precedes
//! `game_1_data`. The order of ids with the same number of digits is the same in both cases, so the records are
//! returned by merging at most ten runs. Only the offsets at which these runs begin are kept in memory.
//!
//! [`check_replaceable`] decides whether a new index may replace an existing file or directory.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File},
    io::{self, BufWriter},
    iter,
    ops::Range,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use rayon::prelude::*;

#[cfg(feature = "serve")]
use crate::storage::output::remove_abandoned_directories;
use crate::{
    chess::position::VariantChoice,
    error::{At, Error, ErrorKind, Result},
    formats::{
        explorer_index::{
            self, CountPageBuilder, CountedContents, CountsSources, IndexDescription, ListKey,
            ListRecord, Paging, StoredGames, list_entries, results::ResultRow,
        },
        fork_index::{
            entries::{Entries, Value},
            entry_batches::{
                EntryBatch, IndexedFile, ShardRange, WaitingStats, batches_of, file_entries,
                filled_batches, shard_ranges, write_due,
            },
            layout,
            posting::{Posting, position_entries},
        },
        leveldb::{Database, FIRST_TABLE, TableBuilder, TableFile, is_file_of_database, manifest},
    },
    progress::Meter,
    storage::{
        output::{AtomicDir, Finished, is_absent, is_empty_directory, own_files},
        sort::{ByteReader, ByteRun, Record, SHARDS, Sorted},
    },
    task,
};

/// The number of sorted records that all threads together convert to index entries at a time. A record can become an
/// entry of 200 bytes, so this number limits the memory.
const RECORDS_PER_WRITE: usize = 1 << 16;

/// The approximate size, in bytes, of a batch of index entries with game records, game rows or names. Only one batch is
/// in memory at a time.
const BYTES_PER_WRITE: usize = 8 << 20;

/// The number of rows with results that take about as much space as one item in a list of games. With this factor, a
/// page with the results of several positions gets about the same size as a page with several lists.
const ROWS_PER_ITEM: u64 = 2;

/// A writer of an index. The index is written to a temporary directory next to the target, which is renamed to the
/// target when the index and all other outputs of the same operation are complete.
#[derive(Debug)]
pub(crate) struct IndexWriter {
    directory: AtomicDir,
}

/// The data from which an index for `make-book --leveldb` is written.
#[derive(Copy, Clone)]
pub(crate) struct IndexSource<'a> {
    pub postings: &'a Sorted<Posting>,
    /// Whether the entries of positions include statistics.
    pub with_stats: bool,
    pub games: &'a GameRecords,
    pub files: &'a [IndexedFile],
    pub variant: VariantChoice,
}

/// The data from which an explorer index with games is written.
#[derive(Copy, Clone)]
pub(crate) struct StoreSource<'a> {
    pub records: &'a Sorted<ListRecord>,
    pub games: &'a StoredGames,
    pub files: &'a [IndexedFile],
    pub variant: VariantChoice,
    /// The number of half-moves after which counting stopped in each game, or `None` if all half-moves were counted.
    pub max_ply: Option<usize>,
}

/// The data from which an explorer index without games is written. Such an index contains only the results of the moves
/// in each position.
pub(crate) struct CountedSource<'a> {
    /// A function that produces the rows, sorted by position.
    pub rows: RowsOfCounts<'a>,
    /// The number of rows.
    pub total: u64,
    pub variant: VariantChoice,
    pub about: CountsSources,
}

/// A function that calls its argument with each row of results and the key of the row's position.
pub(crate) type RowsOfCounts<'a> =
    Box<dyn FnOnce(&mut dyn FnMut(ListKey, ResultRow) -> Result<()>) -> Result<()> + Send + 'a>;

/// The numbers of games, positions and postings in an index that `make-book` wrote.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, serde::Serialize)]
pub(crate) struct WrittenIndex {
    /// The number of games.
    pub games: u64,
    /// The number of positions that games reached.
    pub positions: u64,
    /// The number of postings, which are pairs of a position and a game that reached it. In an index without games, the
    /// number of rows.
    pub postings: u64,
}

impl IndexWriter {
    /// Creates a temporary directory in which an index for the path `target` is written. An existing index at `target`
    /// may be replaced only if `force` is `true`.
    ///
    /// # Errors
    ///
    /// Returns an error if `target` exists and may not be replaced, or if the temporary directory cannot be created.
    pub(crate) fn create(target: &Path, force: bool) -> Result<IndexWriter> {
        let may_replace = |old: &Path| check_replaceable(old, force);
        Ok(IndexWriter {
            directory: AtomicDir::create_over(target, is_own_file, may_replace)?,
        })
    }

    /// Writes an index for `make-book --leveldb`. Uses the threads of the current rayon pool. Returns a summary of the
    /// index, and the finished output. The caller must then rename the output to its target.
    ///
    /// # Errors
    ///
    /// Returns an error if the index cannot be written or a temporary file cannot be read. Returns
    /// [`Error::Interrupted`] if `stop` is set.
    pub(crate) fn write(
        self,
        from: IndexSource<'_>,
        stop: &AtomicBool,
        meter: &Meter,
    ) -> Result<(WrittenIndex, Finished)> {
        meter.add_total(record_count(from.postings));
        meter.add_total(from.games.len());
        let entries_of = move |range: &ShardRange| {
            position_entries(range, from.postings, from.with_stats, from.games.temp_dir())
        };
        let positions = shard_ranges(from.postings, range_size());
        let positions = batches_of(positions, RECORDS_PER_WRITE, ShardRange::len, entries_of);
        let mut records = from.games.walk();
        let records = filled_batches(move |entries| records.fill(entries, BYTES_PER_WRITE));
        let files = file_entries(from.files, from.games.len(), from.variant);
        let groups = positions.chain(records).chain(iter::once(Ok(files)));
        self.write_batches(groups, |_| None, from.games.len(), stop, meter)
    }

    /// Writes an explorer index with games. Uses the threads of the current rayon pool. Returns a summary of the index,
    /// and the finished output. The caller must then rename the output to its target.
    ///
    /// # Errors
    ///
    /// Returns an error if the index cannot be written or a temporary file cannot be read. Returns
    /// [`Error::Interrupted`] if `stop` is set.
    pub(crate) fn write_store(
        self,
        from: StoreSource<'_>,
        stop: &AtomicBool,
        meter: &Meter,
    ) -> Result<(WrittenIndex, Finished)> {
        let (items, games) = (record_count(from.records), from.games.len());
        let contents = IndexDescription::new(items, from.games.name_count(), from.max_ply);
        meter.add_total(items);
        let mut rows = from.games.entries();
        let rows = filled_batches(move |entries| rows.fill(entries, BYTES_PER_WRITE));
        let entries_of = move |range: &ShardRange| {
            list_entries(range, from.records, from.games, contents.paging)
        };
        let lists = shard_ranges(from.records, range_size());
        let lists = batches_of(lists, RECORDS_PER_WRITE, ShardRange::len, entries_of);
        let files = file_entries(from.files, games, from.variant);
        let groups = iter::once(Ok(files)).chain(rows).chain(lists);
        let last = |made: &WrittenIndex| Some(last_entry(contents, made.positions));
        self.write_batches(groups, last, games, stop, meter)
    }

    /// Writes an explorer index without games, which contains only the results of the moves in each position. Uses the
    /// threads of the current rayon pool. Returns a summary of the index, and the finished output. The caller must then
    /// rename the output to its target.
    ///
    /// # Errors
    ///
    /// Returns an error if the rows cannot be produced, if a position or a page has too many rows, or if the index
    /// cannot be written. Returns [`Error::Interrupted`] if `stop` is set.
    pub(crate) fn write_counts(
        self,
        counts: CountedSource<'_>,
        stop: &AtomicBool,
        meter: &Meter,
    ) -> Result<(WrittenIndex, Finished)> {
        let target = self.directory.target().to_owned();
        let paging = Paging::for_items(counts.total / ROWS_PER_ITEM);
        let contents = Mutex::new(CountedContents::new(paging, counts.about));
        meter.add_total(counts.total);
        thread::scope(|scope| {
            let rows = counts.rows;
            let mut feed = task::start_in(scope, "rows of counts", 2, move |feeder| {
                let mut batch = Vec::with_capacity(RECORDS_PER_WRITE);
                rows(&mut |subject, row| {
                    batch.push((subject, row));
                    match batch.len() {
                        RECORDS_PER_WRITE => feeder.send(std::mem::replace(
                            &mut batch,
                            Vec::with_capacity(RECORDS_PER_WRITE),
                        )),
                        _ => Ok(()),
                    }
                })?;
                feeder.send(batch)
            })?;
            let mut pages = Some(CountPageBuilder::new(paging));
            let mut next = || -> Result<Option<Vec<EntryBatch>>> {
                let Some(mut present) = pages.take() else {
                    return Ok(None);
                };
                let refused = |problem| Error::too_large(&target, problem);
                let made = match feed.next(&[stop])? {
                    Some(batch) => {
                        let made = present.add_all(batch).map_err(refused)?;
                        pages = Some(present);
                        made
                    }
                    None => {
                        let (made, about) = present.finish().map_err(refused)?;
                        let mut contents = task::lock(&contents);
                        (contents.years, contents.has_ends) = (about.years, about.has_ends);
                        made
                    }
                };
                Ok(Some(vec![made]))
            };
            let pages = iter::from_fn(move || next().transpose());
            let files = iter::once(Ok(file_entries(&[], 0, counts.variant)));
            let last = |made: &WrittenIndex| {
                let mut contents = task::lock(&contents);
                (contents.positions, contents.rows) = (made.positions, made.postings);
                Some((explorer_index::COUNTED, contents.write()))
            };
            self.write_batches(files.chain(pages), last, 0, stop, meter)
        })
    }

    /// Writes all entries of an index. `groups` yields the entries in ascending order of keys, a few megabytes at a
    /// time. The next group is created while the previous one is written. `games` is the number of games in the index.
    ///
    /// After the last group, `contents` is called with the summary of the index. It returns one more entry, which
    /// describes the whole index, or `None` if the index has no such entry.
    ///
    /// # Errors
    ///
    /// Returns an error if `groups` fails or if the index cannot be written. Returns [`Error::Interrupted`] if `stop`
    /// is set.
    pub(super) fn write_batches(
        self,
        mut groups: impl Iterator<Item = Result<Vec<EntryBatch>>> + Send,
        contents: impl FnOnce(&WrittenIndex) -> Option<(&'static [u8], Vec<u8>)>,
        games: u64,
        stop: &AtomicBool,
        meter: &Meter,
    ) -> Result<(WrittenIndex, Finished)> {
        let mut summary = WrittenIndex {
            games,
            ..WrittenIndex::default()
        };
        let mut cutter = TableCutter::new();
        let mut written = Vec::new();
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            let tables = cutter.take_tables();
            let (files, group) = rayon::join(|| self.write_tables(tables), || groups.next());
            written.extend(files?);
            let Some(group) = group.transpose()? else {
                break;
            };
            for batch in group {
                summary.positions += batch.positions;
                summary.postings += batch.postings;
                meter.advance(batch.steps);
                cutter.push(batch);
            }
        }
        if let Some((key, value)) = contents(&summary) {
            let mut last = EntryBatch::default();
            last.entries.push(key, &value);
            cutter.push(last);
        }
        cutter.finish();
        written.extend(self.write_tables(cutter.take_tables())?);
        manifest::write(self.directory.path(), &written).at(self.directory.target(), "write")?;
        Ok((summary, self.directory.finish()?))
    }

    /// Writes LevelDB tables to files in the temporary directory, with all threads. Returns the descriptions of the
    /// tables, which the manifest of the database must contain.
    fn write_tables(&self, tables: Vec<TableEntries>) -> Result<Vec<TableFile>> {
        tables
            .into_par_iter()
            .map(|table| {
                task::fault("write tables");
                table.write(self.directory.path())
            })
            .collect::<io::Result<_>>()
            .at(self.directory.target(), "write")
    }
}

/// Creates the last entry of an explorer index, which describes the whole index. Returns the key and the value of the
/// entry. The value encodes `contents` with the number of positions `positions`.
fn last_entry(contents: IndexDescription, positions: u64) -> (&'static [u8], Vec<u8>) {
    let contents = IndexDescription {
        positions,
        ..contents
    };
    (explorer_index::CONTENTS, contents.write())
}

/// Returns the total number of records in all shards of `records`.
fn record_count<R: Record>(records: &Sorted<R>) -> u64 {
    (0..SHARDS).map(|shard| records.shard_len(shard)).sum()
}

/// Returns the maximum number of sorted records that one job converts to entries. The number is small enough that each
/// thread gets several jobs.
fn range_size() -> usize {
    RECORDS_PER_WRITE / (4 * rayon::current_num_threads()).clamp(8, 128)
}

/// The total size in bytes of the keys and values at which a LevelDB table is complete.
pub(super) const TABLE_SIZE: usize = 1 << 20;

/// The entries of a LevelDB table. Each element is a range of consecutive entries in one batch of entries.
type Parts = Vec<(Arc<Entries>, Range<usize>)>;

/// The entries of a LevelDB table that is to be written, and the number from which the name of its file is made.
#[derive(Debug)]
struct TableEntries {
    number: u64,
    parts: Parts,
}

/// A builder that divides a sequence of entries into LevelDB tables of about one mebibyte.
#[derive(Debug)]
struct TableCutter {
    /// The complete tables that [`take_tables`](TableCutter::take_tables) has not returned yet.
    tables: Vec<TableEntries>,
    next_number: u64,
    parts: Parts,
    /// The size in bytes of the keys and values in `parts`.
    size: usize,
    /// Statistics that must not be added yet, because their keys may be greater than the keys of the next entries. They
    /// are sorted by the number of digits of their position keys, ascending.
    waiting: Vec<WaitingStats>,
}

impl TableCutter {
    /// Creates a builder without entries and tables.
    fn new() -> TableCutter {
        TableCutter {
            tables: Vec::new(),
            next_number: FIRST_TABLE,
            parts: Vec::new(),
            size: 0,
            waiting: Vec::new(),
        }
    }

    /// Adds a batch of entries to the tables. The keys of the batch must be greater than all keys of earlier batches.
    /// The statistics of positions are an exception: they may have to wait because their keys sort after keys of later
    /// batches (see [`WaitingStats`]). Statistics from earlier batches are inserted between the entries of this batch
    /// in the order of keys.
    fn push(&mut self, batch: EntryBatch) {
        let entries = Arc::new(batch.entries);
        let mut part = 0..entries.len();
        // Waiting statistics of earlier batches precede the first entry whose key does not begin with the digits of
        // their position key.
        while !part.is_empty() && !self.waiting.is_empty() {
            if !self.release(entries.key(part.start)) {
                self.push_part(&entries, part.start..part.start + 1);
                part.start += 1;
            }
        }
        self.push_part(&entries, part);
        self.waiting.extend(batch.waiting);
    }

    /// Adds the waiting statistics of one earlier position to the tables, if their keys are less than `next`, the key
    /// of the entry that the caller will add next. `next` is empty if no entry follows. Returns `true` if statistics
    /// were added. The caller must then call the function again, because further statistics may be due.
    fn release(&mut self, next: &[u8]) -> bool {
        let mut stats = Entries::default();
        let is_due = write_due(&mut self.waiting, next, &mut stats);
        let all = 0..stats.len();
        self.push_part(&Arc::new(stats), all);
        is_due
    }

    /// Adds the entries of `entries` in the index range `part` to the current table. Begins a new table whenever a
    /// table is complete. The caller must first add all statistics with smaller keys that are still in the field
    /// `waiting`.
    fn push_part(&mut self, entries: &Arc<Entries>, mut part: Range<usize>) {
        loop {
            match entries.find_at_size(part.clone(), TABLE_SIZE - self.size) {
                Ok(last) => {
                    self.parts.push((Arc::clone(entries), part.start..last + 1));
                    self.end_table();
                    part.start = last + 1;
                }
                Err(size) => {
                    self.size += size;
                    if !part.is_empty() {
                        self.parts.push((Arc::clone(entries), part));
                    }
                    return;
                }
            }
        }
    }

    /// Ends the current LevelDB table. Does nothing if the table has no entries.
    fn end_table(&mut self) {
        if self.parts.is_empty() {
            return;
        }
        self.tables.push(TableEntries {
            number: self.next_number,
            parts: std::mem::take(&mut self.parts),
        });
        self.next_number += 1;
        self.size = 0;
    }

    /// Removes the complete LevelDB tables from the builder, and returns them.
    fn take_tables(&mut self) -> Vec<TableEntries> {
        std::mem::take(&mut self.tables)
    }

    /// Adds all statistics that are still in the field `waiting`, and ends the last table.
    fn finish(&mut self) {
        while self.release(b"") {}
        self.end_table();
    }
}

impl TableEntries {
    /// Writes the LevelDB table to a file in `directory`. Returns the description of the table that the manifest of the
    /// database must contain.
    ///
    /// # Errors
    ///
    /// Returns an error if the table cannot be written, if spilled values cannot be read, or if a value is longer than
    /// LevelDB allows.
    fn write(self, directory: &Path) -> io::Result<TableFile> {
        let path = directory.join(TableFile::name(self.number));
        let file = BufWriter::with_capacity(1 << 16, File::create(path)?);
        let mut table = TableBuilder::new(file);
        for (entries, part) in self.parts {
            for number in part {
                let key = entries.key(number);
                match entries.value(number) {
                    Value::Held(value) => table.add(key, value)?,
                    Value::Spilled(value) if value.len > layout::MAX_LIST_BYTES => {
                        return Err(io::Error::other(layout::TOO_LONG));
                    }
                    Value::Spilled(value) => {
                        table.add_long(key, value.len as usize, |out| {
                            entries.read_spilled(value, out)
                        })?;
                    }
                }
            }
        }
        table.finish(self.number)
    }
}

/// A collection of game records. A record contains the header of a game, such as its players and date. Records
/// beyond a memory limit are spilled to a temporary file.
#[derive(Debug)]
pub(crate) struct GameRecords {
    run: ByteRun,
    count: u64,
    /// The offsets in `run` of the records with the ids 0, 10, 100 and so on.
    starts: Vec<u64>,
}

impl GameRecords {
    /// Creates an empty collection that holds up to `memory` bytes in memory, and spills further records to a file in
    /// `temp_dir`.
    pub(crate) fn new(memory: usize, temp_dir: PathBuf) -> GameRecords {
        GameRecords {
            run: ByteRun::new(memory, temp_dir),
            count: 0,
            starts: Vec::new(),
        }
    }

    /// Returns the number of game records.
    pub(crate) fn len(&self) -> u64 {
        self.count
    }

    /// Returns the directory in which the collection creates its temporary file.
    pub(super) fn temp_dir(&self) -> &Path {
        self.run.temp_dir()
    }

    /// Appends game records, whose games get the next ids. `records` contains the bytes of all records without
    /// separators, and `lengths` contains the length of each record in bytes.
    ///
    /// # Errors
    ///
    /// Returns an error if the temporary file cannot be written.
    pub(crate) fn push_all(&mut self, lengths: &[u32], mut records: &[u8]) -> Result<()> {
        for length in lengths {
            if self.count == 0 || self.count == 10_u64.pow(self.starts.len() as u32) {
                self.starts.push(self.run.len());
            }
            let (record, rest) = records.split_at(*length as usize);
            self.run.append_text(record)?;
            records = rest;
            self.count += 1;
        }
        Ok(())
    }

    /// Returns a reader of the records, sorted by their keys in the index. Keys are compared as text, so the record of
    /// the game with the id 10 comes before that of the game with the id 9.
    pub(crate) fn walk(&self) -> GameWalk<'_> {
        let sequence = |(digits, start): (u32, &u64)| {
            let first = if digits == 0 { 0 } else { 10_u64.pow(digits) };
            let end = self.count.min(10_u64.pow(digits + 1));
            (first..end, self.run.reader(*start))
        };
        GameWalk {
            sequences: (0..).zip(&self.starts).map(sequence).collect(),
        }
    }
}

/// A reader of game records, sorted by their keys in the index. Keys are compared as text, so the record of the game
/// with the id 10 comes before that of the game with the id 9.
pub(crate) struct GameWalk<'a> {
    /// For each number of digits, the range of ids that have not been read yet and a reader of their records.
    sequences: Vec<(Range<u64>, ByteReader<'a>)>,
}

impl GameWalk<'_> {
    /// Appends the next game records to `entries`. Stops when `entries` holds at least `size` bytes or when no record
    /// is left.
    ///
    /// # Errors
    ///
    /// Returns an error if the temporary file cannot be read.
    pub(super) fn fill(&mut self, entries: &mut Entries, size: usize) -> Result<()> {
        while entries.bytes_in_memory() < size {
            // There are at most ten sequences, so a linear search for the smallest key is fast.
            let some = self.sequences.iter_mut().filter(|(ids, _)| !ids.is_empty());
            let first = some.min_by_key(|(ids, _)| layout::game_key(ids.start as u32));
            let Some((ids, reader)) = first else {
                break;
            };
            let id = ids.start as u32;
            ids.start += 1;
            let value = reader.read_text()?.unwrap_or_default();
            entries.push(&layout::game_key(id), &value);
        }
        Ok(())
    }
}

/// Checks whether a new index may replace the file or directory at `path`, which must exist. An empty directory may
/// always be replaced. An index may be replaced only if `force` is `true`.
///
/// Returns the names of the files of the old index, or an empty list for an empty directory.
///
/// # Errors
///
/// Returns [`Error::Exists`] for an index if `force` is `false`. Returns [`Error::foreign`] for anything else, such as
/// a directory with files that do not belong to an index. Also returns an error if the operating system cannot read the
/// directory.
fn check_replaceable(path: &Path, force: bool) -> Result<Vec<OsString>> {
    if is_empty_directory(path)? {
        return Ok(Vec::new());
    }
    let problem = match content(path) {
        Ok(OldOutput::Index(files)) if force => return Ok(files),
        Ok(OldOutput::Index(_)) => return Err(Error::exists(path)),
        Ok(OldOutput::IndexAnd(other)) => format!(
            "this index exists and contains {}, which is not a file of an index: move that file away, or choose \
             another directory",
            other.display()
        ),
        Ok(OldOutput::Other) => {
            "this path exists and is not an index: choose another directory".to_owned()
        }
        Err(err) if err.kind() == ErrorKind::Io => return Err(err),
        Err(err) => {
            format!(
                "this directory exists and does not look like an index ({err}): remove the directory, or choose \
                 another one"
            )
        }
    };
    Err(Error::foreign(path, problem))
}

/// Returns `true` if the directory `path` contains a LevelDB database. Every such database has a file named `CURRENT`.
///
/// # Errors
///
/// Returns an error if the file system cannot tell whether the file exists.
pub(super) fn holds_database(path: &Path) -> Result<bool> {
    match path.join("CURRENT").symlink_metadata() {
        Ok(_) => Ok(true),
        Err(err) if is_absent(&err) => Ok(false),
        Err(err) => Err(err).at(path, "open"),
    }
}

/// Returns `true` if `path` is the directory of an index and contains no other files.
///
/// # Errors
///
/// Returns an error if there is a LevelDB database at `path` that is damaged or cannot be read, because it might be an
/// index.
pub fn is_index(path: impl AsRef<Path>) -> Result<bool> {
    Ok(matches!(content(path.as_ref())?, OldOutput::Index(_)))
}

/// The kind of the file or directory that already exists at the path of a new index.
enum OldOutput {
    /// An index, which consists of these files.
    Index(Vec<OsString>),
    /// An index whose directory also contains this file or directory, which does not belong to the index.
    IndexAnd(OsString),
    /// Anything else.
    Other,
}

/// Determines whether there is an index at `path`, which files belong to it, and whether its directory contains
/// anything else.
fn content(path: &Path) -> Result<OldOutput> {
    if !holds_database(path)? || Database::open(path)?.get(layout::TOTAL_GAMES)?.is_none() {
        return Ok(OldOutput::Other);
    }
    let known = Database::names_in(path)?;
    let is_known = |name: &OsStr| name.to_str().is_some_and(|name| known.contains(name));
    let files = own_files(path, is_known)?;
    Ok(files.map_or_else(OldOutput::IndexAnd, OldOutput::Index))
}

/// Returns `true` if `name` has the form of a LevelDB file name. When a new index replaces an old one, this function
/// recognizes the files to remove. `_directory` is unused, but the corresponding function for another file format needs
/// it.
fn is_own_file(_directory: &Path, name: &OsStr) -> bool {
    is_file_of_database(name)
}

/// Removes the temporary directories of unfinished indexes for `target`. Such a directory remains if the process is
/// killed while it writes an index.
///
/// # Errors
///
/// Returns an error if another process is writing an index to `target`, or if a directory with an unfinished index
/// contains files that do not belong to an index.
#[cfg(feature = "serve")]
pub(crate) fn remove_unfinished(target: &Path) -> Result<()> {
    remove_abandoned_directories(target, is_own_file)
}

/// Removes the directory `path` and all files in it that have names of LevelDB files.
///
/// # Errors
///
/// Returns an error if `path` is not a directory (for example, if it is a symbolic link), if a file cannot be removed,
/// or if the directory contains other files, which are kept.
pub(crate) fn remove(path: &Path) -> Result<()> {
    if !path.symlink_metadata().at(path, "read")?.is_dir() {
        return Err(Error::foreign(
            path,
            "this path is not an index: move it away",
        ));
    }
    for entry in fs::read_dir(path).at(path, "read")? {
        let entry = entry.at(path, "read")?;
        let is_file = entry.file_type().at(path, "read")?.is_file();
        if is_file && is_file_of_database(&entry.file_name()) {
            fs::remove_file(entry.path()).at(entry.path(), "remove")?;
        }
    }
    fs::remove_dir(path).at(path, "remove")
}

#[cfg(test)]
mod tests {
    use shakmaty::Color;

    use super::{super::Index, *};
    use crate::{
        chess::position::BookMove,
        storage::sort::{Memory, Shards},
    };

    /// Writes an index of postings. `postings` contains the key and the game id of each posting. The index contains
    /// one game more than the greatest id, at most 10 games.
    fn index_of(
        postings: impl Iterator<Item = (u64, u32)>,
        with_stats: bool,
    ) -> (tempfile::TempDir, Index) {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("idx");
        let shards = Shards::new(Memory::default());
        let mut records = Vec::new();
        let mut games = 0;
        for (key, id) in postings {
            games = games.max(u64::from(id) + 1);
            records.push(Posting::new(key, id, BookMove(7), Some(Color::White)));
            if records.len() == 100_000 {
                shards.append(&records).unwrap();
                records.clear();
            }
        }
        shards.append(&records).unwrap();
        let mut games_ = GameRecords::new(1 << 20, std::env::temp_dir());
        let record = b"A|B";
        for _ in 0..games.min(10) {
            games_.push_all(&[record.len() as u32], record).unwrap();
        }
        let writer = IndexWriter::create(&target, false).unwrap();
        let sorted = shards.sort().unwrap();
        let (_, index) = writer
            .write(
                IndexSource {
                    postings: &sorted,
                    with_stats,
                    games: &games_,
                    files: &[],
                    variant: VariantChoice::default(),
                },
                &AtomicBool::new(false),
                &Meter::default(),
            )
            .unwrap();
        index.commit().unwrap();
        let index = Index::open(&target).unwrap();
        (dir, index)
    }

    #[test]
    fn numbers_that_begin_alike_keep_their_statistics_in_order() {
        // LevelDB does not find entries after one that is out of order.
        let mut keys = vec![0, 9, u64::MAX];
        for length in 1..=19 {
            keys.extend([10_u64.pow(length), 10_u64.pow(length) + 1]);
            keys.push(1_844_674_407_370_955_161 / 10_u64.pow(length - 1));
        }
        keys.sort_unstable();
        keys.dedup();
        let postings = keys.iter().flat_map(|key| [(*key, 0), (*key, 3)]);
        let (_dir, index) = index_of(postings, true);
        for key in keys {
            assert_eq!(index.games(key).unwrap(), [0, 3], "{key}");
            let stats = index.stats(key).unwrap().unwrap();
            assert_eq!(
                (stats.games, stats.white_score, stats.draws),
                (2, 2, 0),
                "{key}"
            );
            assert_eq!(stats.moves, [BookMove(7)]);
        }
        assert!(index.games(8).unwrap().is_empty());
        assert_eq!(index.stats(8).unwrap(), None);
    }

    #[test]
    fn a_posting_list_of_100_megabytes() {
        const GAMES: u32 = 12_000_000;
        let ids = (0..GAMES).map(|id| (4711, id)).chain([(1, 5), (9, 5)]);
        let (_dir, index) = index_of(ids, false);
        let games = index.games(4711).unwrap();
        assert_eq!(games.len(), GAMES as usize);
        assert!(games.into_iter().eq(0..GAMES));
        assert_eq!(index.games(9).unwrap(), [5]);
    }

    #[test]
    fn a_list_that_is_too_long_for_leveldb_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut entries = Entries::default();
        entries.claim_spilled(b"1", layout::MAX_LIST_BYTES + 1);
        let table = TableEntries {
            number: FIRST_TABLE,
            parts: vec![(Arc::new(entries), 0..1)],
        };
        let err = table.write(dir.path()).unwrap_err().to_string();
        assert!(err.contains("440 million"), "{err}");
    }

    #[test]
    fn records_leave_in_the_order_of_their_keys() {
        for (count, memory) in [(0, 0), (1, 0), (10, 1 << 20), (1234, 0), (1234, 1 << 20)] {
            let mut records = GameRecords::new(memory, std::env::temp_dir());
            for id in 0..count {
                let text = format!("record {id}");
                records
                    .push_all(&[text.len() as u32], text.as_bytes())
                    .unwrap();
            }
            let mut found = Vec::new();
            let mut walk = records.walk();
            loop {
                let mut entries = Entries::default();
                walk.fill(&mut entries, 1000).unwrap();
                if entries.len() == 0 {
                    break;
                }
                found.extend((0..entries.len()).map(|number| {
                    let Value::Held(value) = entries.value(number) else {
                        unreachable!("records are short");
                    };
                    (entries.key(number).to_vec(), value.to_vec())
                }));
            }
            let mut expected: Vec<_> = (0..count)
                .map(|id| (layout::game_key(id), format!("record {id}").into_bytes()))
                .collect();
            expected.sort();
            assert_eq!(found, expected);
        }
    }
}

//! Reads LevelDB databases: looks up keys, and iterates over entries in ascending order of keys with cursors.
//!
//! A [`TableCursor`] iterates over one table, and verifies that its keys are in order. A [`TablesCursor`] iterates over
//! several tables that do not overlap, one after the other. A [`DatabaseCursor`] merges all levels and logs of a
//! database. The newest entry of a key hides the older ones.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, btree_map},
    ffi::OsStr,
    fs,
    iter::Peekable,
    path::{Path, PathBuf},
    slice,
    sync::Arc,
};

use super::{
    Damage,
    block::{Block, EntryState},
    files::{
        OpenPermit, Stamp, TableFile, TableSource, open_table, read_whole, replaced, stamp_of,
        unless_missing,
    },
    key::{self, EntryKind},
    log::{Logged, Memtable},
    manifest::{self, Version},
    table::{BlockCache, Handle, StoredValue, Table},
};
use crate::error::{At, Error, Result};

impl Damage {
    /// Converts this description of damage to an error about the file `path`. The error message states the problem and
    /// the offset of the damage.
    pub(super) fn into_error(self, path: &Path) -> Error {
        Error::damaged(
            path,
            format!(
                "this file of the index is damaged at byte {}: {}; make the index again",
                self.offset, self.problem
            ),
        )
    }
}

/// A LevelDB database that is open for reading.
///
/// A reader never writes a file, not even a lock or a log. The database may therefore be on a read-only medium,
/// and several programs may read it at the same time.
#[derive(Debug)]
pub(crate) struct Database {
    pub(super) version: Version,
    pub(super) tables: Tables,
    cache: BlockCache,
    pub(super) memtable: Memtable,
}

impl Database {
    /// Opens the database in `directory`.
    ///
    /// # Errors
    ///
    /// Returns an error if the manifest, a log or a table cannot be read or is damaged, or if a required log is
    /// missing.
    pub(crate) fn open(directory: &Path) -> Result<Database> {
        let version = Version::read(directory)?;
        Ok(Database {
            memtable: read_logs(directory, &version)?,
            tables: Tables::open(directory, version.tables())?,
            cache: BlockCache::default(),
            version,
        })
    }

    /// Returns the names that files of the database in `directory` may have: the names of its manifest, logs and
    /// tables, and names that occur in every LevelDB database, such as `CURRENT`. The result contains two names for
    /// each table, whose extension may be `.ldb` or `.sst`.
    ///
    /// # Errors
    ///
    /// Returns an error if the manifest or the directory cannot be read, or if the manifest is damaged.
    pub(crate) fn names_in(directory: &Path) -> Result<BTreeSet<String>> {
        let version = Version::read(directory)?;
        let manifest = manifest::name_in(directory)?;
        let mut names = BTreeSet::from([manifest]);
        names.extend(OWN_NAMES.map(str::to_owned));
        for table in version.tables() {
            names.insert(TableFile::name(table.number));
            names.insert(TableFile::old_name(table.number));
        }
        let logs = logs(directory, &version)?.into_iter();
        names.extend(logs.filter_map(|(_, path)| path.file_name()?.to_str().map(str::to_owned)));
        Ok(names)
    }

    /// Returns the size in bytes of each table of the database, level by level.
    pub(crate) fn table_sizes(&self) -> Vec<u64> {
        self.version.tables().map(|table| table.size).collect()
    }

    /// Verifies the checksums of blocks that lookups do not read: the metaindex of each table, and the blocks that the
    /// metaindex lists, such as filters.
    ///
    /// # Errors
    ///
    /// Returns an error if a table cannot be read, or if one of the verified blocks is damaged.
    pub(crate) fn check_metadata(&self) -> Result<()> {
        let mut tables = self.version.tables();
        tables.try_for_each(|table| self.tables.get(table.number)?.check_metadata())
    }

    /// Returns `true` if the database has no tables and no entries in a log.
    pub(crate) fn is_empty(&self) -> bool {
        self.memtable.is_empty() && self.version.tables().next().is_none()
    }

    /// Reads a long value in parts, and calls `f` with each part, from first to last. A part may be empty.
    ///
    /// # Errors
    ///
    /// Returns an error if `f` fails, if the table cannot be read, or if the block of the value is damaged. A wrong
    /// checksum is detected only after the last part.
    pub(crate) fn read_long(
        &self,
        value: &StoredValue,
        f: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let table = self.tables.get(value.table)?;
        table.read_long(value.block, &value.range, f)
    }

    /// Returns the newest value of `key`. Returns `None` if the database does not contain the key, or if the key was
    /// deleted.
    ///
    /// # Errors
    ///
    /// Returns an error if a table cannot be read or is damaged.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        // Newer entries hide older ones. The newest are in the logs, then come the tables of the first level from the
        // newest to the oldest, then the other levels.
        if let Some(value) = self.memtable.get(key) {
            return Ok(value.map(<[u8]>::to_vec));
        }
        let [first, others @ ..] = &self.version.levels;
        let overlapping = first
            .iter()
            .filter(|table| (&table.first_key[..]..=&table.last_key[..]).contains(&key));
        let of_levels = others.iter().filter_map(|level| {
            let at = level.partition_point(|table| table.last_key[..] < *key);
            level.get(at).filter(|table| table.first_key[..] <= *key)
        });
        for table in overlapping.chain(of_levels) {
            if let Some(value) = self.tables.get(table.number)?.get(key, &self.cache)? {
                return Ok(value);
            }
        }
        Ok(None)
    }
}

/// The tables of an open database, sorted by file number. Only as many table files are kept open as the process's limit
/// on open files allows. The other files are opened when they are needed.
#[derive(Debug)]
pub(super) struct Tables {
    directory: PathBuf,
    tables: Vec<ManifestTable>,
    /// The number of tables that the process may keep open. Further tables are opened anew for each read.
    most_open: usize,
}

/// A table that the manifest lists, with the identity and the modification time that its file had when the database was
/// opened.
#[derive(Debug)]
struct ManifestTable {
    file: TableFile,
    stamp: Stamp,
    /// The table if it is kept open. `None` if too many tables are open already, so that this table is opened when it
    /// is used.
    held: Option<Arc<Table>>,
}

impl Tables {
    /// Opens the tables `files` in `directory` and checks them. Keeps as many of them open as the process's limit on
    /// open files allows, and closes the others.
    ///
    /// # Errors
    ///
    /// Returns an error if a table cannot be opened, or if its size is not the one that the manifest states.
    pub(super) fn open<'a>(
        directory: &Path,
        files: impl Iterator<Item = &'a TableFile>,
    ) -> Result<Tables> {
        let files: Vec<&TableFile> = files.collect();
        Tables::open_up_to(most_held(), directory, files)
    }

    /// Opens each of the tables `files` in `directory`. Keeps a table open if this process does not yet keep `limit`
    /// tables open, and closes the table otherwise. A closed table is reopened when it is used.
    fn open_up_to(limit: usize, directory: &Path, mut files: Vec<&TableFile>) -> Result<Tables> {
        files.sort_by_key(|file| file.number);
        let mut tables = Tables {
            directory: directory.to_owned(),
            tables: Vec::new(),
            most_open: limit.saturating_add(limit / 2),
        };
        for file in files {
            let (path, opened) = open_table(directory, file)?;
            let stamp = stamp_of(&opened).at(directory, "read")?;
            let held = OpenPermit::acquire(limit).map(|permit| {
                let source = TableSource::Open(opened, permit);
                Arc::new(Table::new(file.clone(), path, source))
            });
            tables.tables.push(ManifestTable {
                file: file.clone(),
                stamp,
                held,
            });
        }
        Ok(tables)
    }

    /// Returns the number of tables of this database that are kept open.
    #[cfg(all(test, unix))]
    fn held(&self) -> usize {
        let tables = self.tables.iter();
        tables.filter(|table| table.held.is_some()).count()
    }

    /// Returns the table with the file number `number`. Opens its file if it is not kept open.
    ///
    /// # Errors
    ///
    /// Returns an error if the table cannot be opened, or if it was replaced since the database was opened.
    ///
    /// # Panics
    ///
    /// Panics if the manifest does not list the table.
    pub(super) fn get(&self, number: u64) -> Result<Arc<Table>> {
        let at = self
            .tables
            .binary_search_by_key(&number, |table| table.file.number)
            .expect("the manifest names the table");
        let ManifestTable { file, stamp, held } = &self.tables[at];
        if let Some(table) = held {
            return Ok(Arc::clone(table));
        }
        let opened = open_table(&self.directory, file);
        let (path, opened) = unless_missing(&self.directory, opened)?;
        if stamp_of(&opened).at(&self.directory, "read")? != *stamp {
            return Err(replaced(&self.directory));
        }
        let source = match OpenPermit::acquire(self.most_open) {
            Some(permit) => TableSource::Open(opened, permit),
            None => TableSource::Closed(*stamp),
        };
        Ok(Arc::new(Table::new(file.clone(), path, source)))
    }
}

/// Returns the maximum number of tables that this process may keep open in all databases together: half of its soft
/// limit on open files.
#[cfg(unix)]
fn most_held() -> usize {
    let soft = rlimit::Resource::NOFILE.get().map_or(0, |(soft, _)| soft);
    usize::try_from(soft / 2).unwrap_or(usize::MAX)
}

/// Returns the maximum number of tables that this process may keep open. The number is unlimited on systems other than
/// Unix, which allow enough open files.
#[cfg(not(unix))]
fn most_held() -> usize {
    usize::MAX
}

/// Returns the number and the path of each log file whose entries are not in a table yet, sorted by number. `version`
/// is the state of the database according to its manifest.
fn logs(directory: &Path, version: &Version) -> Result<Vec<(u64, PathBuf)>> {
    let mut logs = Vec::new();
    for entry in fs::read_dir(directory).at(directory, "read")? {
        let path = entry.at(directory, "read")?.path();
        if let Some(number) = log_number(&path)
            && version.needs_log(number)
        {
            logs.push((number, path));
        }
    }
    logs.sort();
    Ok(logs)
}

/// Reads the entries that are in log files but not in a table yet. `version` is the state of the database according to
/// its manifest.
///
/// # Errors
///
/// Returns an error if a log cannot be read or is damaged, or if a log that the manifest requires is missing.
fn read_logs(directory: &Path, version: &Version) -> Result<Memtable> {
    let logs = logs(directory, version)?;
    if let Some(required) = version.required_log()
        && logs.iter().all(|(number, _)| *number != required)
    {
        return Err(Error::damaged(
            directory,
            format!(
                "the index is damaged: its log file {required:06}.log is missing; make the index again"
            ),
        ));
    }
    let mut memtable = Memtable::default();
    for (_, path) in logs {
        let bytes = read_whole(&path)?;
        memtable
            .read_log(&bytes)
            .map_err(|damage| damage.into_error(&path))?;
    }
    Ok(memtable)
}

/// The file names without a number that occur in LevelDB databases.
const OWN_NAMES: [&str; 4] = ["CURRENT", "LOCK", "LOG", "LOG.old"];

/// Returns `true` if LevelDB may give the name `name` to a file of a database.
pub(crate) fn is_file_of_database(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    match name.rsplit_once('.') {
        Some((number, "ldb" | "sst" | "log" | "dbtmp")) => manifest::is_number(number),
        _ => OWN_NAMES.contains(&name) || manifest::is_manifest(name),
    }
}

/// Returns the number of the log file `path`, or `None` if `path` is not a log file.
fn log_number(path: &Path) -> Option<u64> {
    let number = path.file_name()?.to_str()?.strip_suffix(".log")?;
    manifest::is_number(number).then(|| number.parse().ok())?
}

// Windows does not remove a directory that contains open files.
#[cfg(all(test, unix))]
mod tests {
    use std::fs;

    use super::{super::TableBuilder, *};

    const TABLES: u64 = 60;

    /// Writes `TABLES` LevelDB tables to a new directory. Each contains one entry with the value `value`.
    fn tables_in(directory: &Path, value: &[u8]) -> Vec<TableFile> {
        fs::create_dir(directory).unwrap();
        let table = |number| {
            let mut bytes = Vec::new();
            let mut builder = TableBuilder::new(&mut bytes);
            builder.add(b"key", value).unwrap();
            let table = builder.finish(number).unwrap();
            fs::write(directory.join(TableFile::name(number)), bytes).unwrap();
            table
        };
        (0..TABLES).map(table).collect()
    }

    fn value_in(tables: &Tables, number: u64) -> Result<Vec<u8>> {
        Ok(tables
            .get(number)?
            .get(b"key", &BlockCache::default())?
            .unwrap()
            .unwrap())
    }

    /// Tests that a database can have more tables than the process may have open files, and that opening it does not
    /// change this limit. The test runs in a child process with a lower limit.
    #[test]
    fn opening_leaves_the_limit_of_open_files_as_it_is() {
        const LIMIT: u64 = TABLES + 20;
        const INNER: &str = "POLYBOOK_TEST_FEW_FILES";
        if std::env::var_os(INNER).is_none() {
            let name = "formats::leveldb::database::tests::opening_leaves_the_limit_of_open_files_as_it_is";
            let again = std::process::Command::new("sh")
                .args(["-c", &format!("ulimit -S -n {LIMIT} && exec \"$@\"")])
                .arg("sh")
                .arg(std::env::current_exe().unwrap())
                .args(["--exact", name])
                .env(INNER, "1")
                .output()
                .unwrap();
            let output = String::from_utf8_lossy(&again.stdout);
            assert!(
                again.status.success() && output.contains("1 passed"),
                "{output}"
            );
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("idx");
        let files = tables_in(&path, b"value");
        drop(Tables::open(&path, files.iter()).unwrap());
        // The tables that were held before count no more.
        let tables = Tables::open(&path, files.iter()).unwrap();
        assert_eq!(tables.held() as u64, LIMIT / 2);
        for number in 0..TABLES {
            assert_eq!(value_in(&tables, number).unwrap(), b"value");
        }
        assert_eq!(rlimit::Resource::NOFILE.get().unwrap().0, LIMIT);
        // The last table is opened only when it is used, which fails if another file has replaced it.
        let other = dir.path().join("other");
        tables_in(&other, b"other");
        let last = TableFile::name(TABLES - 1);
        fs::rename(other.join(&last), path.join(&last)).unwrap();
        let err = value_in(&tables, TABLES - 1).unwrap_err().to_string();
        assert!(err.contains("replaced"), "{err}");
    }

    #[test]
    fn held_tables_go_on_answering_and_others_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("idx");
        let files = tables_in(&path, b"old");
        let all = Tables::open_up_to(usize::MAX, &path, files.iter().collect()).unwrap();
        assert_eq!(all.held(), TABLES as usize);
        // If the limit is 0, each table is opened for each read.
        let none = Tables::open_up_to(0, &path, files.iter().collect()).unwrap();
        assert_eq!(none.held(), 0);
        for number in (0..TABLES).chain([0, 0, TABLES - 1]) {
            assert_eq!(value_in(&all, number).unwrap(), b"old");
            assert_eq!(value_in(&none, number).unwrap(), b"old");
        }

        fs::remove_dir_all(&path).unwrap();
        for is_replaced in [false, true] {
            if is_replaced {
                tables_in(&path, b"new");
            }
            for number in 0..TABLES {
                assert_eq!(value_in(&all, number).unwrap(), b"old");
            }
            let err = value_in(&none, 5).unwrap_err().to_string();
            let advice = "replaced or removed while it was open: open the index again";
            assert!(err.contains("idx") && err.contains(advice), "{err}");
        }
        let again = Tables::open_up_to(0, &path, files.iter().collect()).unwrap();
        assert_eq!(value_in(&again, 5).unwrap(), b"new");
    }

    #[test]
    fn files_of_a_database_have_certain_names() {
        let own = [
            "000003.ldb",
            "3.sst",
            "12.log",
            "7.dbtmp",
            "CURRENT",
            "LOCK",
            "LOG",
            "LOG.old",
            "MANIFEST-000001",
        ];
        for name in own {
            assert!(is_file_of_database(name.as_ref()), "{name}");
        }
        let other = [
            "",
            "3",
            ".log",
            "x3.ldb",
            "3x.ldb",
            "+3.log",
            "3.txt",
            "games.log",
            "MANIFEST-",
            "MANIFEST-1.bak",
        ];
        for name in other {
            assert!(!is_file_of_database(name.as_ref()), "{name}");
        }
        let not_text = std::os::unix::ffi::OsStrExt::from_bytes(b"\xff.log");
        assert!(!is_file_of_database(not_text));
    }

    #[test]
    fn a_table_that_the_system_does_not_open_is_not_called_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("idx");
        let files = tables_in(&path, b"value");
        let tables = Tables::open_up_to(0, &path, files.iter().collect()).unwrap();
        let table = path.join(TableFile::name(5));
        fs::remove_file(&table).unwrap();
        // A symbolic link to itself exists but cannot be opened.
        std::os::unix::fs::symlink(&table, &table).unwrap();
        let err = value_in(&tables, 5).unwrap_err();
        assert!(matches!(err, Error::Io { .. }), "{err}");
    }
}

/// The value of a cursor's current entry. It holds the bytes of the value or, if the value is too long to be held in
/// memory, its location in the database.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum TableValue<'a> {
    Held(&'a [u8]),
    Long(StoredValue),
}

impl<'a> TableValue<'a> {
    /// Returns the bytes of a value that is held in memory. A cursor that was created without a limit on the length
    /// of values holds every value in memory.
    ///
    /// # Panics
    ///
    /// Panics if the value is not held in memory.
    pub(crate) fn held(self) -> &'a [u8] {
        match self {
            TableValue::Held(value) => value,
            TableValue::Long(_) => unreachable!("values of any length are held"),
        }
    }
}

impl Database {
    /// Creates a cursor over the entries of `tables`. The tables must be sorted by key and must not overlap.
    ///
    /// `longest` is the maximum size in bytes of a decompressed block that is read as a whole; a limit below 128 KiB is
    /// treated as 128 KiB. Only the last value of a block can be long. If a block is larger than `longest`, the cursor
    /// reads all of the block except the last value, and returns the location of this value instead of its bytes.
    ///
    /// # Errors
    ///
    /// Returns an error if the first table cannot be read or is damaged.
    fn tables_cursor<'d>(
        &'d self,
        tables: &'d [TableFile],
        longest: usize,
    ) -> Result<TablesCursor<'d>> {
        let mut cursor = TablesCursor {
            database: self,
            longest,
            tables: tables.iter(),
            table: None,
            passed: 0,
        };
        cursor.step()?;
        Ok(cursor)
    }

    /// Creates a cursor over the database that returns each key once, with its newest value, and skips deleted keys.
    /// Call [`advance`](DatabaseCursor::advance) to move the cursor to the first entry.
    ///
    /// `longest` is the maximum size in bytes of a decompressed block that is read as a whole; a limit below 128 KiB is
    /// treated as 128 KiB. Only the last value of a block can be long. If a block is larger than `longest`, the cursor
    /// reads all of the block except the last value, and returns the location of this value instead of its bytes.
    ///
    /// # Errors
    ///
    /// Returns an error if a table cannot be read or is damaged.
    pub(crate) fn entries(&self, longest: usize) -> Result<DatabaseCursor<'_>> {
        let [first, others @ ..] = &self.version.levels;
        // The tables of the first level may overlap, so each of them gets a cursor of its own.
        let levels = first.chunks(1).chain(others.iter().map(Vec::as_slice));
        let levels = levels.map(|tables| self.tables_cursor(tables, longest));
        Ok(DatabaseCursor {
            levels: levels.collect::<Result<_>>()?,
            logged: self.memtable.entries().peekable(),
            present: None,
            logged_value: &[],
            last: None,
        })
    }
}

/// A cursor over all entries of one table in ascending order of keys. The cursor also returns deletions, and old
/// entries that were replaced by a newer entry of the same key.
///
/// [`advance`](TableCursor::advance) returns an error if the keys are out of order, or if they contradict the table's
/// index or the manifest.
#[derive(Debug)]
pub(crate) struct TableCursor {
    table: Arc<Table>,
    /// The maximum size in bytes of a block that is held in memory as a whole.
    longest: usize,
    index: Block,
    /// The index entry of the current block.
    in_index: EntryState,
    block: Block,
    /// The location of the current block.
    handle: Handle,
    /// The current entry.
    entry: EntryState,
    sequence: u64,
    kind: EntryKind,
    /// The previous internal key. The next one must be greater.
    last: Vec<u8>,
}

impl TableCursor {
    /// Creates a cursor over `table`.
    ///
    /// `longest` is the maximum size in bytes of a decompressed block that is read as a whole; a limit below 128 KiB is
    /// treated as 128 KiB. Only the last value of a block can be long. If a block is larger than `longest`, the cursor
    /// reads all of the block except the last value, and returns the location of this value instead of its bytes.
    ///
    /// # Errors
    ///
    /// Returns an error if the table's index cannot be read.
    pub(super) fn new(table: Arc<Table>, longest: usize) -> Result<TableCursor> {
        // A cursor reads the index once, so caching it would only take memory.
        let index = table.read_index()?;
        Ok(TableCursor {
            longest,
            index,
            in_index: EntryState::default(),
            block: Block::of_first_part(Vec::new(), 0, 0, &table.path),
            handle: Handle { offset: 0, size: 0 },
            entry: EntryState::default(),
            sequence: 0,
            kind: EntryKind::Deletion,
            last: Vec::new(),
            table,
        })
    }

    /// Moves to the next entry. The first call moves to the first entry. Returns `false` if there is no next entry.
    ///
    /// # Errors
    ///
    /// Returns an error if a block cannot be read or is damaged, if the keys are out of order, or if the last key of
    /// the table is not the one that the manifest states.
    #[inline]
    pub(super) fn advance(&mut self) -> Result<bool> {
        self.last.clear();
        self.last.extend_from_slice(&self.entry.key);
        while !self.block.advance(&mut self.entry)? {
            if !self.next_block()? {
                let last = key::parse(&self.last);
                return if last.is_some_and(|last| last.0 == self.table.file.last_key) {
                    Ok(false)
                } else {
                    Err(out_of_order(&self.table))
                };
            }
        }
        let (key, sequence, kind) = self.block.parts(&self.entry)?;
        let is_in_order = match key::parse(&self.last) {
            Some((last, before, _)) => (last, Reverse(before)) < (key, Reverse(sequence)),
            None => key == self.table.file.first_key,
        };
        if !is_in_order {
            return Err(out_of_order(&self.table));
        }
        (self.sequence, self.kind) = (sequence, kind);
        Ok(true)
    }

    /// Reads the next block of the table. Returns `false` if there is no next block.
    ///
    /// # Errors
    ///
    /// Returns an error if the next block cannot be read, or if it begins before the end of the previous block in the
    /// file. Also returns an error if the previous block contains a greater key than the table's index permits.
    fn next_block(&mut self) -> Result<bool> {
        if let Some((separator, sequence, _)) = key::parse(&self.in_index.key) {
            let last = key::parse(&self.last);
            if last.is_some_and(|last| (last.0, Reverse(last.1)) > (separator, Reverse(sequence))) {
                return Err(out_of_order(&self.table));
            }
        }
        let separator = self.in_index.key.clone();
        if !self.index.advance(&mut self.in_index)? {
            return Ok(false);
        }
        self.last = separator;
        self.index.parts(&self.in_index)?;
        let handle = self.table.handle(&self.index, &self.in_index)?;
        // Increasing offsets guarantee that no block is read twice.
        if handle.offset < self.handle.offset.saturating_add(self.handle.size) {
            return Err(self.table.damaged(handle.offset, "blocks overlap"));
        }
        self.handle = handle;
        self.entry = EntryState::default();
        self.block = match self.table.long_block(handle, self.longest)? {
            Some(long) => long,
            None => self.table.block(handle)?,
        };
        Ok(true)
    }

    /// Returns the user key of the current entry, without the sequence number and the kind that follow it in an
    /// internal key.
    #[inline]
    fn key(&self) -> &[u8] {
        &self.entry.key[..self.entry.key.len().saturating_sub(key::TRAILER_LENGTH)]
    }

    /// Returns `true` if the current entry marks its key as deleted.
    #[inline]
    fn is_deleted(&self) -> bool {
        self.kind == EntryKind::Deletion
    }

    /// Returns the value of the current entry. If the value is too long to be held in memory, returns its location.
    #[inline]
    pub(super) fn value(&self) -> TableValue<'_> {
        match self.block.value(&self.entry) {
            Some(value) => TableValue::Held(value),
            None => TableValue::Long(StoredValue {
                table: self.table.file.number,
                block: self.handle,
                range: self.entry.value.clone(),
            }),
        }
    }
}

/// Creates the error for a table whose keys are out of order.
fn out_of_order(table: &Table) -> Error {
    table.problem("the index is damaged: the keys are not in order; make the index again")
}

/// A cursor over the entries of several tables, one table after the other. The key ranges of the tables do not
/// overlap.
#[derive(Debug)]
struct TablesCursor<'d> {
    database: &'d Database,
    /// The maximum size in bytes of a block that is held in memory as a whole.
    longest: usize,
    /// The tables that remain to be read.
    tables: slice::Iter<'d, TableFile>,
    /// The cursor of the current table, `None` after the last entry.
    table: Option<TableCursor>,
    /// The total size in bytes of the tables that have been read completely.
    passed: u64,
}

impl TablesCursor<'_> {
    /// Moves to the next entry, even if it is a deletion or was replaced by a newer entry of the same key. If there is
    /// no next entry, moves past the last one.
    #[inline]
    fn step(&mut self) -> Result<()> {
        loop {
            if let Some(table) = &mut self.table {
                if table.advance()? {
                    return Ok(());
                }
                self.passed += table.table.file.size;
            }
            let Some(next) = self.tables.next() else {
                self.table = None;
                return Ok(());
            };
            let table = self.database.tables.get(next.number)?;
            self.table = Some(TableCursor::new(table, self.longest)?);
        }
    }
}

/// A cursor over all keys of a database with their newest values, in ascending order of keys. It merges the tables of
/// all levels and the entries of the logs, and skips deleted keys.
#[derive(Debug)]
pub(crate) struct DatabaseCursor<'d> {
    /// The cursors: one for each table of the first level, and one for each further level.
    levels: Vec<TablesCursor<'d>>,
    /// The entries of the logs that follow the current position of the cursor.
    logged: Peekable<btree_map::Iter<'d, Vec<u8>, Logged>>,
    /// The index in `levels` of the cursor with the current entry, or `levels.len()` if the current entry comes from a
    /// log.
    present: Option<usize>,
    /// The value of the entry at the front of `logged`.
    logged_value: &'d [u8],
    /// The key of the current entry.
    last: Option<Vec<u8>>,
}

impl DatabaseCursor<'_> {
    /// Moves to the next key that has a value. The first call moves to the first such key. Returns `false` if there is
    /// no such key.
    ///
    /// # Errors
    ///
    /// Returns an error if a table cannot be read or is damaged.
    pub(crate) fn advance(&mut self) -> Result<bool> {
        loop {
            match self.present.take() {
                Some(level) if level < self.levels.len() => self.levels[level].step()?,
                Some(_) => drop(self.logged.next()),
                None => {}
            }
            let tables = self.levels.iter().enumerate();
            let tables = tables.filter_map(|(level, cursor)| {
                let table = cursor.table.as_ref()?;
                Some((
                    table.key(),
                    Reverse(table.sequence),
                    level,
                    table.is_deleted(),
                ))
            });
            let logged = self.logged.peek().map(|(key, (sequence, value))| {
                let log = self.levels.len();
                self.logged_value = value.as_deref().unwrap_or_default();
                (&key[..], Reverse(*sequence), log, value.is_none())
            });
            let Some((key, _, source, is_deleted)) = tables.chain(logged).min() else {
                return Ok(false);
            };
            self.present = Some(source);
            if self.last.as_deref() == Some(key) {
                continue;
            }
            let mut last = self.last.take().unwrap_or_default();
            last.clear();
            last.extend_from_slice(key);
            self.last = Some(last);
            if !is_deleted {
                return Ok(true);
            }
        }
    }

    /// Returns the key of the current entry.
    pub(crate) fn key(&self) -> &[u8] {
        self.last.as_deref().unwrap_or_default()
    }

    /// Returns the value of the current entry. If the value is too long to be held in memory, returns its location.
    pub(crate) fn value(&self) -> TableValue<'_> {
        let level = self.present.and_then(|level| self.levels.get(level));
        match level.and_then(|level| level.table.as_ref()) {
            Some(table) => table.value(),
            None => TableValue::Held(self.logged_value),
        }
    }

    /// Returns the total size in bytes of the tables that the cursor has read completely. This number can be used to
    /// show progress.
    pub(crate) fn passed(&self) -> u64 {
        self.levels.iter().map(|level| level.passed).sum()
    }
}

//! Databases that are open for reading, and lookups of keys.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    Damage,
    files::{
        OpenPermit, Stamp, TableFile, TableSource, open_table, read_whole, replaced, stamp_of,
        unless_missing,
    },
    log::Memtable,
    manifest::{self, Version},
    table::{BlockCache, StoredValue, Table},
};
use crate::error::{At, Error, Result};

impl Damage {
    /// Converts this description of damage to an error that names the file `path`, the problem, and the offset of the
    /// damage.
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

    /// Returns the names that the files of the database in `directory` may have: the names of its manifest, logs and
    /// tables, and the names that occur in every LevelDB database, such as `CURRENT`. Two names are returned for each
    /// table, because its extension may be `.ldb` or `.sst`.
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

    /// Verifies the checksums of blocks that lookups do not read: the metaindex of each table, and the blocks that it
    /// lists, such as filters.
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

    /// Reads a long value piece by piece: calls `f` with the parts of the value, from first to last. A part may be
    /// empty.
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
/// on open files allows. Every other file is opened when its table is used.
#[derive(Debug)]
pub(super) struct Tables {
    directory: PathBuf,
    tables: Vec<ManifestTable>,
    /// The number of tables that the process may have open before further tables are opened for each read.
    most_open: usize,
}

/// A table in the manifest, with the identity and the modification time that its file had when the database was
/// opened.
#[derive(Debug)]
struct ManifestTable {
    file: TableFile,
    stamp: Stamp,
    /// The table if it is held open, or `None` if the limit was reached, so that the table is opened when it is used.
    held: Option<Arc<Table>>,
}

impl Tables {
    /// Opens the tables `files` in `directory` and checks them. Keeps as many of them open as the process's limit on
    /// open files allows, and closes the others again.
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
    /// tables open, and closes the table otherwise. A closed table is opened again when it is used.
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

    /// Returns the directory of the database.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
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

/// Returns the maximum number of tables that this process may keep open. It is unlimited, because systems other than
/// Unix allow enough open files.
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

/// The names of the files that occur in LevelDB databases and have no number in their names.
const OWN_NAMES: [&str; 4] = ["CURRENT", "LOCK", "LOG", "LOG.old"];

/// Returns `true` if `name` is a name that LevelDB may give to a file of a database.
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
            let name = "leveldb::database::tests::opening_leaves_the_limit_of_open_files_as_it_is";
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

//! The open tables of a database, and opening its files.
//!
//! Tables are opened with their database and held open, so that an open database keeps working when it is replaced or
//! removed. A database may have more tables than a process may have open files, so at most half of the process's limit
//! is used for tables that are held. A further table is opened when it is used. It stays open as long as it is used if
//! the open tables take less than three quarters of the limit; otherwise it is opened for each read. Such a use fails
//! if the file is no longer the one that the database was opened with. This module never raises the limit; the program
//! may do so before it opens a database.

use std::{
    fs::File,
    io::{self, ErrorKind, Read},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::SystemTime,
};

use super::{
    manifest::TableFile,
    table::{self, Table},
};
use crate::{
    error::{At, Error, Result},
    storage::output::{FileId, parent},
};

/// The greatest size in bytes of a manifest or log, which are read into memory as a whole. LevelDB limits a log to a
/// few MiB, and a manifest takes about 100 bytes for each table, so this allows millions of tables.
const MOST_READ_WHOLE: u64 = 256 << 20;

/// Opens a file of a database for reading.
///
/// # Errors
///
/// Returns an error if the file cannot be opened or is not a regular file. Opening a pipe would block, and reading a
/// device might never end.
pub(super) fn open_regular(path: &Path) -> Result<File> {
    match path.metadata().at(path, "open")?.is_file() {
        true => File::open(path).at(path, "open"),
        false => Err(Error::damaged(path, "is not a file: make the index again")),
    }
}

/// Reads a whole file of a database into memory.
///
/// # Errors
///
/// Returns an error if the file cannot be read, is not a regular file, or is larger than [`MOST_READ_WHOLE`].
pub(super) fn read_whole(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = open_regular(path)?;
    let size = file.metadata().at(path, "read")?.len();
    if size > MOST_READ_WHOLE {
        let problem = format!(
            "is damaged: it has {size} bytes, and {MOST_READ_WHOLE} is the most that it may have; make the index again"
        );
        return Err(Error::damaged(path, problem));
    }
    file.take(MOST_READ_WHOLE)
        .read_to_end(&mut bytes)
        .at(path, "read")?;
    Ok(bytes)
}

/// The number of tables that all databases of this process hold open.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// A permit to hold one table's file open. Dropping the permit allows another table to be opened.
#[derive(Debug)]
pub(super) struct OpenPermit;

impl OpenPermit {
    /// Acquires a permit to hold a table's file open. Returns `None` if the process already holds `limit` tables open.
    fn acquire(limit: usize) -> Option<OpenPermit> {
        let one_more = |open| (open < limit).then_some(open + 1);
        let acquired = OPEN.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        // A permit that is made and dropped would count as a closed table.
        acquired.is_ok().then(|| OpenPermit)
    }
}

impl Drop for OpenPermit {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The file of a table, held open or opened for each read.
#[derive(Debug)]
pub(super) enum TableSource {
    Open(File, OpenPermit),
    /// A file that is opened for each read, with its stamp.
    Closed(Stamp),
}

impl TableSource {
    /// Calls `read` with the open file of the table and returns the result. `path` is the path of this file, which is
    /// opened for the call if it is not held open.
    ///
    /// # Errors
    ///
    /// Returns an error if `read` fails, if the file cannot be opened, or if it was replaced since the database was
    /// opened.
    pub(super) fn with_file<T>(
        &self,
        path: &Path,
        read: impl FnOnce(&File) -> Result<T>,
    ) -> Result<T> {
        match self {
            TableSource::Open(file, _) => read(file),
            TableSource::Closed(stamp) => {
                let directory = parent(path);
                let file = unless_missing(directory, open_regular(path))?;
                match stamp_of(&file).at(path, "read")? == *stamp {
                    true => read(&file),
                    false => Err(replaced(directory)),
                }
            }
        }
    }
}

/// Creates the error which says that another program has replaced or removed the database in `directory`.
fn replaced(directory: &Path) -> Error {
    Error::changed(
        directory,
        "was replaced or removed, and has too many tables to hold them all open: open it again",
    )
}

/// Returns `opened`, the result of opening a table's file. If the table is missing or damaged, returns instead the
/// error which says that the database in `directory` was replaced.
fn unless_missing<T>(directory: &Path, opened: Result<T>) -> Result<T> {
    opened.map_err(|err| match err {
        Error::Io { ref source, .. } if source.kind() != ErrorKind::NotFound => err,
        _ => replaced(directory),
    })
}

/// The tables of an open database, sorted by number. As many tables as possible are held open. The remaining tables are
/// opened each time they are used.
#[derive(Debug)]
pub(super) struct Tables {
    directory: PathBuf,
    tables: Vec<KnownTable>,
    /// The number of open tables of the process from which tables are opened for each read.
    most_open: usize,
}

/// A table with the state of its file at the time when the database was opened.
#[derive(Debug)]
struct KnownTable {
    file: TableFile,
    stamp: Stamp,
    /// The open table, or `None` if the limit was reached and the table is opened when it is used.
    held: Option<Arc<Table>>,
}

impl Tables {
    /// Opens the tables `files` in `directory`. Holds as many tables open as the process's limit on open files allows.
    /// Checks the remaining tables and closes them.
    ///
    /// # Errors
    ///
    /// Returns an error if a table cannot be opened, or if its size differs from the size in the manifest.
    pub(super) fn open<'a>(
        directory: &Path,
        files: impl Iterator<Item = &'a TableFile>,
    ) -> Result<Tables> {
        let files: Vec<&TableFile> = files.collect();
        Tables::open_up_to(most_held(), directory, files)
    }

    /// Opens the tables `files` in `directory`, and holds each one open if the process holds fewer than `limit` tables
    /// open at that time.
    fn open_up_to(limit: usize, directory: &Path, mut files: Vec<&TableFile>) -> Result<Tables> {
        files.sort_by_key(|file| file.number);
        let mut tables = Tables {
            directory: directory.to_owned(),
            tables: Vec::new(),
            most_open: limit.saturating_add(limit / 2),
        };
        for file in files {
            let (path, opened) = table::open(directory, file)?;
            let stamp = stamp_of(&opened).at(directory, "read")?;
            let held = OpenPermit::acquire(limit).map(|permit| {
                let source = TableSource::Open(opened, permit);
                Arc::new(Table::new(file.clone(), path, source))
            });
            tables.tables.push(KnownTable {
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

    /// Returns the number of tables of this database that are held open.
    #[cfg(all(test, unix))]
    fn held(&self) -> usize {
        let tables = self.tables.iter();
        tables.filter(|table| table.held.is_some()).count()
    }

    /// Returns the table with the file number `number`. Opens its file if it is not held open.
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
        let KnownTable { file, stamp, held } = &self.tables[at];
        if let Some(table) = held {
            return Ok(Arc::clone(table));
        }
        let opened = table::open(&self.directory, file);
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

/// Returns the greatest number of tables that all databases of this process may hold open: half of its soft limit on
/// open files.
#[cfg(unix)]
fn most_held() -> usize {
    let soft = rlimit::Resource::NOFILE.get().map_or(0, |(soft, _)| soft);
    usize::try_from(soft / 2).unwrap_or(usize::MAX)
}

/// Returns `usize::MAX`, because systems other than Unix allow enough open files.
#[cfg(not(unix))]
fn most_held() -> usize {
    usize::MAX
}

/// The identity, the size in bytes and the modification time of a file. The stamp of a file changes if the file is
/// replaced.
type Stamp = (FileId, u64, Option<SystemTime>);

/// Returns the stamp of an open file.
fn stamp_of(file: &File) -> io::Result<Stamp> {
    let metadata = file.metadata()?;
    let modified = metadata.modified().ok();
    Ok((FileId::of_open(file)?, metadata.len(), modified))
}

// Windows does not remove a directory that contains open files.
#[cfg(all(test, unix))]
mod tests {
    use std::fs;

    use super::{
        super::{TableBuilder, table::LastBlocks},
        *,
    };

    const TABLES: u64 = 60;

    /// Writes `TABLES` tables with one entry each to a new directory.
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
            .get(b"key", &LastBlocks::default())?
            .unwrap()
            .unwrap())
    }

    /// Runs the test in a child process that may have fewer open files than the database has tables.
    #[test]
    fn opening_leaves_the_limit_of_open_files_as_it_is() {
        const LIMIT: u64 = TABLES + 20;
        const INNER: &str = "POLYBOOK_TEST_FEW_FILES";
        if std::env::var_os(INNER).is_none() {
            let name = "leveldb::files::tests::opening_leaves_the_limit_of_open_files_as_it_is";
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
    }

    #[test]
    fn held_tables_go_on_answering_and_others_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("idx");
        let files = tables_in(&path, b"old");
        let all = Tables::open_up_to(usize::MAX, &path, files.iter().collect()).unwrap();
        assert_eq!(all.held(), TABLES as usize);
        // A limit of 0 makes each table be opened for each read.
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
            assert!(err.contains("idx") && err.contains("replaced"), "{err}");
        }
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

//! The open tables of a database, and opening its files.
//!
//! Tables are opened with their database and held open, so that an open database keeps working when it is replaced or
//! removed. A database may have more tables than a process may have open files, so at most half of the process's limit
//! is used for tables. Further tables are opened for each use. Such a use fails if the file is no longer the one that
//! the database was opened with. This module never raises the limit; the program may do so before it opens a database.

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

use super::{manifest::TableFile, table::Table};
use crate::{
    error::{At, Error, Result},
    output::FileId,
};

/// The greatest size in bytes of a file that is read into memory: a manifest or a log. LevelDB limits a log to a few
/// MiB. A manifest takes about 100 bytes for each table, so this is enough for millions of tables.
const MOST_READ_WHOLE: u64 = 256 << 20;

/// Opens a file of a database.
///
/// # Errors
///
/// Returns an error if the file cannot be opened or is not a regular file. Opening a pipe would wait for its other end,
/// and reading a device may never end.
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
static HELD: AtomicUsize = AtomicUsize::new(0);

/// The tables of a database, sorted by number.
#[derive(Debug)]
pub(super) struct Tables {
    directory: PathBuf,
    tables: Vec<KnownTable>,
}

/// A table as it was when the database was opened.
#[derive(Debug)]
struct KnownTable {
    file: TableFile,
    stamp: Stamp,
    /// The open table, or `None` if the limit was reached and the table is opened for each use.
    held: Option<Arc<Table>>,
}

impl Tables {
    /// Opens all tables in `directory`, and holds as many of them open as the process's limit allows.
    ///
    /// # Errors
    ///
    /// Returns an error if a table cannot be opened or does not have the size that the manifest names.
    pub(super) fn open<'a>(
        directory: &Path,
        files: impl Iterator<Item = &'a TableFile>,
    ) -> Result<Tables> {
        let files: Vec<&TableFile> = files.collect();
        Tables::open_up_to(most_held(), directory, files)
    }

    /// Opens all tables, and holds them open as long as the process holds fewer than `limit`.
    fn open_up_to(limit: usize, directory: &Path, mut files: Vec<&TableFile>) -> Result<Tables> {
        files.sort_by_key(|file| file.number);
        let mut tables = Tables {
            directory: directory.to_owned(),
            tables: Vec::new(),
        };
        for file in files {
            let table = Table::open(directory, file)?;
            tables.tables.push(KnownTable {
                file: file.clone(),
                stamp: stamp_of(&table).at(directory, "read")?,
                held: hold(limit).then(|| Arc::new(table)),
            });
        }
        Ok(tables)
    }

    /// Returns the directory of the database.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the number of tables that are held open.
    fn held(&self) -> usize {
        let tables = self.tables.iter();
        tables.filter(|table| table.held.is_some()).count()
    }

    /// Returns the table with this number, and opens it if it is not held open.
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
        let replaced = || {
            Error::changed(
                &self.directory,
                "was replaced or removed, and has too many tables to hold them all open: open it again",
            )
        };
        let table = Table::open(&self.directory, file).map_err(|err| match err {
            Error::Io { ref source, .. } if source.kind() != ErrorKind::NotFound => err,
            _ => replaced(),
        })?;
        if stamp_of(&table).at(&self.directory, "read")? != *stamp {
            return Err(replaced());
        }
        Ok(Arc::new(table))
    }
}

impl Drop for Tables {
    fn drop(&mut self) {
        HELD.fetch_sub(self.held(), Ordering::Relaxed);
    }
}

/// Adds one to [`HELD`] if it is less than `limit`. Returns `true` if it was.
fn hold(limit: usize) -> bool {
    let one_more = |held| (held < limit).then_some(held + 1);
    HELD.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more)
        .is_ok()
}

/// Returns the greatest number of tables that all databases of this process may hold open: half of its soft limit on
/// open files.
#[cfg(unix)]
fn most_held() -> usize {
    let soft = rlimit::Resource::NOFILE.get().map_or(0, |(soft, _)| soft);
    usize::try_from(soft / 2).unwrap_or(usize::MAX)
}

/// Returns no limit: other systems allow enough open files.
#[cfg(not(unix))]
fn most_held() -> usize {
    usize::MAX
}

/// The identity, the size and the modification time of a file. Another file of the same name has a different stamp.
type Stamp = (FileId, u64, Option<SystemTime>);

/// Returns the stamp of a table's open file.
fn stamp_of(table: &Table) -> io::Result<Stamp> {
    let metadata = table.file().metadata()?;
    let file = FileId::of_open(table.file())?;
    Ok((file, metadata.len(), metadata.modified().ok()))
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

    /// Runs this test again in a process that may have fewer open files than the database has tables.
    #[test]
    fn opening_leaves_the_limit_of_open_files_as_it_is() {
        const LIMIT: u64 = TABLES + 20;
        const INNER: &str = "POLYBOOK_TEST_FEW_FILES";
        if std::env::var_os(INNER).is_none() {
            let name =
                "index::leveldb::files::tests::opening_leaves_the_limit_of_open_files_as_it_is";
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
        // A limit of 0 makes each table be opened when it is used.
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

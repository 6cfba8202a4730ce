//! The open tables of a database.
//!
//! A table that is open goes on answering when its database is replaced or removed, so tables are
//! opened with the database and held. A database may have more tables than a process may
//! have open files: half of the limit is for tables. Those past that are opened when they are asked for, and
//! refused when they are not the files any more that they were. The limit belongs to the program, which may raise
//! it before it opens a database.

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

/// The most bytes of a file that is read whole: a manifest, or a log, which LevelDB ends at some MiB. A manifest takes
/// some 100 bytes for each table, so this is enough for millions of tables.
const MOST_READ_WHOLE: u64 = 256 << 20;

/// Opens a file of a database. Anything but a regular file is refused, because opening a pipe waits for its other end, and
/// a device may never end.
pub(super) fn open_regular(path: &Path) -> Result<File> {
    match path.metadata().at(path, "open")?.is_file() {
        true => File::open(path).at(path, "open"),
        false => Err(Error::damaged(path, "is not a file: make the index again")),
    }
}

/// Reads a file of a database that is held in memory.
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

/// How many tables all databases of this process hold.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// Tables by their numbers.
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
    held: Option<Arc<Table>>,
}

impl Tables {
    /// Opens as many tables as may be held.
    pub(super) fn open<'a>(
        directory: &Path,
        files: impl Iterator<Item = &'a TableFile>,
    ) -> Result<Tables> {
        let files: Vec<&TableFile> = files.collect();
        Tables::open_up_to(most_held(), directory, files)
    }

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

    /// Where the tables are.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// How many tables are held.
    fn held(&self) -> usize {
        let tables = self.tables.iter();
        tables.filter(|table| table.held.is_some()).count()
    }

    /// A table of the database.
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

/// Takes one of the places for held tables, if there is one.
fn hold(limit: usize) -> bool {
    let one_more = |held| (held < limit).then_some(held + 1);
    HELD.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more)
        .is_ok()
}

/// How many tables all databases of the process may hold.
#[cfg(unix)]
fn most_held() -> usize {
    let soft = rlimit::Resource::NOFILE.get().map_or(0, |(soft, _)| soft);
    usize::try_from(soft / 2).unwrap_or(usize::MAX)
}

/// Elsewhere the system has no limit that matters.
#[cfg(not(unix))]
fn most_held() -> usize {
    usize::MAX
}

/// A file, its size and when it was written. Another file that took its name has a different stamp.
type Stamp = (FileId, u64, Option<SystemTime>);

fn stamp_of(table: &Table) -> io::Result<Stamp> {
    let metadata = table.file().metadata()?;
    let file = FileId::of_open(table.file())?;
    Ok((file, metadata.len(), metadata.modified().ok()))
}

// Windows removes no directory with open files.
#[cfg(all(test, unix))]
mod tests {
    use std::fs;

    use super::{
        super::{TableBuilder, table::LastBlocks},
        *,
    };

    const TABLES: u64 = 60;

    /// Makes tables with an entry each in a directory.
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
        // No more may be held: each of these is opened when it is asked for.
        let none = Tables::open_up_to(0, &path, files.iter().collect()).unwrap();
        assert_eq!(none.held(), 0);
        for number in (0..TABLES).chain([0, 0, TABLES - 1]) {
            assert_eq!(value_in(&all, number).unwrap(), b"old");
            assert_eq!(value_in(&none, number).unwrap(), b"old");
        }

        fs::remove_dir_all(&path).unwrap();
        for files in [vec![], tables_in(&path, b"new")] {
            for number in 0..TABLES {
                assert_eq!(value_in(&all, number).unwrap(), b"old");
            }
            let err = value_in(&none, 5).unwrap_err().to_string();
            assert!(err.contains("idx") && err.contains("replaced"), "{err}");
            drop(files);
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
        // A link to itself cannot be opened, and is there.
        std::os::unix::fs::symlink(&table, &table).unwrap();
        let err = value_in(&tables, 5).unwrap_err();
        assert!(matches!(err, Error::Io { .. }), "{err}");
    }
}

//! Names and opens the files of a LevelDB database.
//!
//! When a database is opened, its tables are kept open, so that they can still be read after the database has been
//! replaced or removed. A database may have more tables than a process may have open files, so the tables that are kept
//! open use at most half of the process's limit. Any other table is opened when it is used, which fails if the file has
//! been replaced since the database was opened. Such a table stays open during its use if open tables take less than
//! three quarters of the limit; otherwise, it is opened for each read. This module never raises the limit, but the
//! program may raise it before it opens a database.

use std::{
    cmp::Reverse,
    fs::File,
    io::{self, ErrorKind, Read},
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    time::SystemTime,
};

use crate::{
    error::{At, Error, Result},
    storage::output::{FileId, parent},
};

/// The maximum size in bytes of a manifest or a log. Both are read into memory as a whole. LevelDB limits a log to a
/// few MiB. A manifest takes about 100 bytes for each table, so this size is enough for millions of tables.
const MAX_LOG_SIZE: u64 = 256 << 20;

/// Opens a file of a database for reading. Rejects files that are not regular, because opening a pipe would block, and
/// reading a device might never end.
///
/// # Errors
///
/// Returns an error if the file cannot be opened or is not a regular file.
pub(super) fn open_regular(path: &Path) -> Result<File> {
    if path.metadata().at(path, "open")?.is_file() {
        File::open(path).at(path, "open")
    } else {
        Err(Error::damaged(
            path,
            "this part of the index is not a file: make the index again",
        ))
    }
}

/// Reads a whole file of a database into memory.
///
/// # Errors
///
/// Returns an error if the file cannot be read, is not a regular file, or is larger than [`MAX_LOG_SIZE`].
pub(super) fn read_whole(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = open_regular(path)?;
    let size = file.metadata().at(path, "read")?.len();
    if size > MAX_LOG_SIZE {
        let problem = format!(
            "this file of the index is damaged: it has {size} bytes, but at most {MAX_LOG_SIZE} are possible; make \
             the index again"
        );
        return Err(Error::damaged(path, problem));
    }
    file.take(MAX_LOG_SIZE)
        .read_to_end(&mut bytes)
        .at(path, "read")?;
    Ok(bytes)
}

/// A table as the manifest describes it: its number, its size, and the range of its keys.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TableFile {
    /// The number in the name of the file.
    pub number: u64,
    /// The size of the file in bytes.
    pub size: u64,
    /// The user key of the first entry.
    pub first_key: Vec<u8>,
    /// The user key of the last entry.
    pub last_key: Vec<u8>,
    /// The sequence number of the first entry.
    pub first_sequence: u64,
    /// The sequence number of the last entry.
    pub last_sequence: u64,
}

impl TableFile {
    /// Returns the file name of the table with the number `number`.
    pub(crate) fn name(number: u64) -> String {
        format!("{number:06}.ldb")
    }

    /// Returns the user key and the sequence number of the table's first entry. Such pairs have the order of the
    /// entries in a LevelDB database: by ascending user key, then by descending sequence number.
    pub(super) fn first(&self) -> (&[u8], Reverse<u64>) {
        (&self.first_key, Reverse(self.first_sequence))
    }

    /// Returns the user key and the sequence number of the table's last entry. Such pairs have the order of the entries
    /// in a LevelDB database: by ascending user key, then by descending sequence number.
    pub(super) fn last(&self) -> (&[u8], Reverse<u64>) {
        (&self.last_key, Reverse(self.last_sequence))
    }

    /// Returns the name that old versions of LevelDB give to the file of the table with the number `number`.
    pub(super) fn old_name(number: u64) -> String {
        format!("{number:06}.sst")
    }
}

fn is_missing(err: &Error) -> bool {
    matches!(err, Error::Io { source, .. } if source.kind() == ErrorKind::NotFound)
}

/// Returns `opened`, the result of opening or reading the file `path`. If the file does not exist, changes the error so
/// that it says that the index is damaged. An index is a LevelDB database, which lists its files, so a missing file
/// means damage.
pub(super) fn damaged_if_missing<T>(path: &Path, opened: Result<T>) -> Result<T> {
    opened.map_err(|err| {
        if is_missing(&err) {
            Error::damaged(
                path,
                "this file of the index is missing: make the index again",
            )
        } else {
            err
        }
    })
}

/// Opens the file of `table` in `directory`, and returns its path and the open file. If no file has the current
/// name of the table, tries the name that old versions of LevelDB would give it.
///
/// # Errors
///
/// Returns an error if the file cannot be opened, is not a regular file, or does not have the size that the
/// manifest states.
pub(super) fn open_table(directory: &Path, table: &TableFile) -> Result<(PathBuf, File)> {
    let is_missing = |opened: &Result<File>| opened.as_ref().is_err_and(is_missing);
    let mut path = directory.join(TableFile::name(table.number));
    let mut file = open_regular(&path);
    if is_missing(&file) {
        let old = directory.join(TableFile::old_name(table.number));
        let opened = open_regular(&old);
        if !is_missing(&opened) {
            (path, file) = (old, opened);
        }
    }
    let file = damaged_if_missing(&path, file)?;
    let size = file.metadata().at(&path, "read")?.len();
    if size != table.size {
        return Err(Error::damaged(
            &path,
            format!(
                "this file of the index is damaged: it has {size} bytes instead of {}; make the index again",
                table.size
            ),
        ));
    }
    Ok((path, file))
}

/// The number of tables that this process keeps open, in all databases together.
static OPEN_TABLES: AtomicUsize = AtomicUsize::new(0);

/// A permit to keep the file of one table open. Dropping the permit allows another table to be kept open.
#[derive(Debug)]
pub(super) struct OpenPermit;

impl OpenPermit {
    /// Acquires a permit to keep the file of a table open. Returns `None` if the process already keeps `limit` tables
    /// open.
    pub(super) fn acquire(limit: usize) -> Option<OpenPermit> {
        let one_more = |open| (open < limit).then_some(open + 1);
        let acquired = OPEN_TABLES.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        // `then` creates the permit only on success. Creating and dropping one otherwise would count as closing a
        // table.
        acquired.is_ok().then(|| OpenPermit)
    }
}

impl Drop for OpenPermit {
    fn drop(&mut self) {
        OPEN_TABLES.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The file of a table, which is either kept open or opened for each read.
#[derive(Debug)]
pub(super) enum TableSource {
    Open(File, OpenPermit),
    /// A file that is opened for each read. Holds its stamp, which shows whether the file was replaced.
    Closed(Stamp),
}

impl TableSource {
    /// Calls `read` with the open file of the table, and returns the result. If the file is not kept open, opens it at
    /// `path` for this call.
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
                if stamp_of(&file).at(path, "read")? == *stamp {
                    read(&file)
                } else {
                    Err(replaced(directory))
                }
            }
        }
    }
}

/// Creates the error for a database in `directory` that another program has replaced or removed.
pub(super) fn replaced(directory: &Path) -> Error {
    Error::changed(
        directory,
        "this index was replaced or removed while it was open: open the index again",
    )
}

/// Returns `opened`, the result of opening a table's file. If the file is missing or damaged, returns an error that
/// says that the database in `directory` was replaced or removed. Any other result is returned unchanged.
pub(super) fn unless_missing<T>(directory: &Path, opened: Result<T>) -> Result<T> {
    opened.map_err(|err| match err {
        Error::Io { ref source, .. } if source.kind() != ErrorKind::NotFound => err,
        _ => replaced(directory),
    })
}

/// The identity of a file in the file system, its size in bytes, and the time of its last change. At least one of them
/// changes if the file is changed or replaced.
pub(super) type Stamp = (FileId, u64, Option<SystemTime>);

/// Returns the stamp of an open file: its identity in the file system, its size, and the time of its last change. If a
/// later stamp of the same path differs, the file was changed or replaced.
pub(super) fn stamp_of(file: &File) -> io::Result<Stamp> {
    let metadata = file.metadata()?;
    // On a system without modification times, only the identity and the size are compared.
    let modified = metadata.modified().ok();
    Ok((FileId::of_open(file)?, metadata.len(), modified))
}

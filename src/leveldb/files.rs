//! The files of a database: their names, and opening them.
//!
//! Tables are opened with their database and held open, so that an open database keeps working when it is replaced or
//! removed. A database may have more tables than a process may have open files, so at most half of the process's limit
//! is used for tables that are held. A further table is opened when it is used. It stays open as long as it is used if
//! the open tables take less than three quarters of the limit; otherwise it is opened for each read. Such a use fails
//! if the file is no longer the one that the database was opened with. This module never raises the limit; the program
//! may do so before it opens a database.

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
        false => Err(Error::damaged(
            path,
            "this part of the index is not a file: make the index again",
        )),
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
            "this file of the index is damaged: it has {size} bytes, but at most {MOST_READ_WHOLE} are possible; make \
             the index again"
        );
        return Err(Error::damaged(path, problem));
    }
    file.take(MOST_READ_WHOLE)
        .read_to_end(&mut bytes)
        .at(path, "read")?;
    Ok(bytes)
}

/// The description of a table in a manifest: its number, its size and the range of its keys.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TableFile {
    /// The number in the file's name.
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

    /// Returns the user key and the sequence number of the table's first entry. The pairs compare like LevelDB's
    /// entries: by user key ascending, then from the newest entry to the oldest.
    pub(super) fn first(&self) -> (&[u8], Reverse<u64>) {
        (&self.first_key, Reverse(self.first_sequence))
    }

    /// Returns the user key and the sequence number of the table's last entry. The pairs compare like LevelDB's
    /// entries: by user key ascending, then from the newest entry to the oldest.
    pub(super) fn last(&self) -> (&[u8], Reverse<u64>) {
        (&self.last_key, Reverse(self.last_sequence))
    }

    /// Returns the file name that old versions of LevelDB give to the table with the number `number`.
    pub(super) fn old_name(number: u64) -> String {
        format!("{number:06}.sst")
    }
}

/// Opens the file of `table` in `directory`. Returns the path of the file and the file. If the current file name does
/// not exist, tries the name that old versions of LevelDB give to the table.
///
/// # Errors
///
/// Returns an error if the file cannot be opened, is not a regular file, or does not have the size that the manifest
/// lists.
pub(super) fn open_table(directory: &Path, table: &TableFile) -> Result<(PathBuf, File)> {
    let is_missing = |opened: &Result<File>| matches!(opened, Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound);
    let mut path = directory.join(TableFile::name(table.number));
    let mut file = open_regular(&path);
    if is_missing(&file) {
        let old = directory.join(TableFile::old_name(table.number));
        let opened = open_regular(&old);
        if !is_missing(&opened) {
            (path, file) = (old, opened);
        }
    }
    let file = file?;
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

/// The number of tables that all databases of this process hold open.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// A permit to hold one table's file open. Dropping the permit allows another table to be opened.
#[derive(Debug)]
pub(super) struct OpenPermit;

impl OpenPermit {
    /// Acquires a permit to hold a table's file open. Returns `None` if the process already holds `limit` tables open.
    pub(super) fn acquire(limit: usize) -> Option<OpenPermit> {
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
pub(super) fn replaced(directory: &Path) -> Error {
    Error::changed(
        directory,
        "this index was replaced or removed while it was open: open the index again",
    )
}

/// Returns `opened`, the result of opening a table's file. If the table is missing or damaged, returns instead the
/// error which says that the database in `directory` was replaced.
pub(super) fn unless_missing<T>(directory: &Path, opened: Result<T>) -> Result<T> {
    opened.map_err(|err| match err {
        Error::Io { ref source, .. } if source.kind() != ErrorKind::NotFound => err,
        _ => replaced(directory),
    })
}

/// The identity, the size in bytes and the modification time of a file. The stamp of a file changes if the file is
/// replaced.
pub(super) type Stamp = (FileId, u64, Option<SystemTime>);

/// Returns the stamp of an open file: its identity in the file system, its size, and the time of its last change. A
/// file with another stamp was replaced or changed.
pub(super) fn stamp_of(file: &File) -> io::Result<Stamp> {
    let metadata = file.metadata()?;
    let modified = metadata.modified().ok();
    Ok((FileId::of_open(file)?, metadata.len(), modified))
}

//! Checks whether another program uses an SQLite database.
//!
//! SQLite finds the journal and the write-ahead log of a database by the database's file name. If a new database
//! replaces the file while another program uses the old one, the changes of that program are applied to the new
//! database and destroy it. Therefore, a database is not replaced if it has a write-ahead log (`-wal`, `-shm`), or a
//! journal that is not empty.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use super::is_absent;
use crate::error::{Error, Result};

/// Returns `true` if a file begins with the header of an SQLite database.
///
/// # Errors
///
/// Returns an error if the file cannot be read. The file may then still be a database.
pub(super) fn is_database(path: &Path) -> io::Result<bool> {
    let mut start = [0; MAGIC.len()];
    match File::open(path)?.read_exact(&mut start) {
        Err(err) if err.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| start == *MAGIC),
    }
}

/// The first bytes of an SQLite database.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Checks that no other program uses the SQLite database at `target`. `target` must not contain symbolic links. Error
/// messages show the path `name`.
///
/// # Errors
///
/// Fails for the same reasons as [`check_unused`].
pub(crate) fn check_not_in_use(target: &Path, name: &Path) -> Result<()> {
    check_unused(target).map_err(|err| Error::changed(name, err.to_string()))
}

/// Checks that no other program uses the SQLite database at `target`: it must have no write-ahead log, and no journal
/// with content.
///
/// # Errors
///
/// Returns an error that names the log or journal if another program uses the database, or was interrupted while using
/// it. Also returns an error if the database cannot be checked.
pub(super) fn check_unused(target: &Path) -> io::Result<()> {
    for (ending, may_be_empty) in [("-wal", false), ("-shm", false), ("-journal", true)] {
        let side_file = side_file(target, ending);
        let is_in_use = match side_file.symlink_metadata() {
            Ok(metadata) => !may_be_empty || metadata.len() > 0,
            // If the name is too long for the file system, no such file can exist.
            Err(err) if is_absent(&err) => false,
            Err(err) => return Err(err),
        };
        if is_in_use {
            let side_file = side_file.file_name().unwrap_or_default().display();
            let problem = format!(
                "the file {side_file} exists, so another program has the database open, or was interrupted: open and \
                 close the database with that program, or choose another file (if {side_file} remains, remove both \
                 files)"
            );
            return Err(io::Error::other(problem));
        }
    }
    Ok(())
}

/// Returns the path of a file that SQLite keeps next to a database. It is the path of the database followed by
/// `ending`, for example `-wal`.
pub(crate) fn side_file(database: &Path, ending: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(OsStr::new(ending));
    name.into()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn an_error_of_the_system_does_not_mean_that_there_is_no_database() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        for (bytes, is_sqlite) in [
            (&MAGIC[..], true),
            (&MAGIC[..15], false),
            (b"[Event \"A long name\"]", false),
        ] {
            fs::write(&path, bytes).unwrap();
            assert_eq!(is_database(&path).unwrap(), is_sqlite, "{bytes:?}");
        }
        // A directory is there, but no system reads bytes from it.
        assert!(is_database(dir.path()).is_err());
    }

    #[test]
    fn a_database_with_a_log_or_a_journal_is_in_use() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db3");
        let check = || check_unused(&path);
        check().unwrap();
        for (ending, text, is_in_use) in [
            ("-wal", "", true),
            ("-journal", "", false),
            ("-journal", "pages", true),
            ("-shm", "index", true),
        ] {
            let side_file = side_file(&path, ending);
            fs::write(&side_file, text).unwrap();
            assert_eq!(check().is_err(), is_in_use, "{ending}");
            fs::remove_file(side_file).unwrap();
        }
    }
}

//! Checks whether another program has a database open.
//!
//! SQLite finds the journal and the write-ahead log of a database by the database's name. If a new database takes the
//! name while another program uses the old one, that program's changes go into the new one and destroy it.

use std::{
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
};

use crate::output::is_absent;

/// Checks that no other program has the database open: that it has no write-ahead log, no journal with content, and none
/// of SQLite's locks. `target` is its name, with links followed; `old` is where its file is now.
///
/// # Errors
///
/// Returns an error that says what shows the use, or one of the system.
pub(super) fn check(target: &Path, old: &Path) -> io::Result<()> {
    for (ending, may_be_empty) in [("-wal", false), ("-shm", false), ("-journal", true)] {
        let side_file = side_file(target, ending);
        let is_in_use = match side_file.symlink_metadata() {
            Ok(metadata) => !may_be_empty || metadata.len() > 0,
            // No file can have a name that is too long.
            Err(err) if is_absent(&err) => false,
            Err(err) => return Err(err),
        };
        if is_in_use {
            let name = side_file.file_name().unwrap_or_default().display();
            return Err(io::Error::other(format!(
                "{name} is next to it: another program has it open or did not finish; open and close it there (if {name} \
                 stays, remove the two together), or name another file"
            )));
        }
    }
    if is_locked(old)? {
        let problem = "another program has it open: close it there, or name another file";
        return Err(io::Error::other(problem));
    }
    Ok(())
}

/// Returns the path of the file that SQLite keeps next to a database.
pub(super) fn side_file(database: &Path, ending: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(OsStr::new(ending));
    name.into()
}

/// The first of the bytes that SQLite locks in a database: PENDING, RESERVED, and 510 of SHARED. [Its
/// documentation](https://www.sqlite.org/fileformat.html#the_lock_byte_page) has the numbers.
#[cfg(unix)]
const FIRST_LOCKED: u64 = 0x4000_0000;
#[cfg(unix)]
const LOCKED: u64 = 512;

/// Returns `true` if another process holds one of SQLite's locks on a file.
#[cfg(unix)]
fn is_locked(path: &Path) -> io::Result<bool> {
    use rustix::{
        io::Errno,
        process::{Flock, FlockType, fcntl_getlk},
    };
    let file = match std::fs::File::open(path) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(false),
        // A file that cannot be read is not a database that this run replaces.
        Err(err) if err.kind() == io::ErrorKind::PermissionDenied => return Ok(false),
        opened => opened?,
    };
    let mut lock = Flock::from(FlockType::WriteLock);
    (lock.start, lock.length) = (FIRST_LOCKED, LOCKED);
    match fcntl_getlk(&file, &lock) {
        // Some network file systems have no locks.
        Err(Errno::NOLCK | Errno::INVAL | Errno::NOTSUP | Errno::NOSYS) => Ok(false),
        found => Ok(found?.is_some()),
    }
}

/// On Windows, a file that SQLite has open cannot be renamed, so there is nothing to check.
#[cfg(windows)]
fn is_locked(_path: &Path) -> io::Result<bool> {
    Ok(false)
}

//! Checks whether another program has an SQLite database open.
//!
//! SQLite finds the journal and the write-ahead log of a database by the database's name. If a new database takes the
//! name while another program uses the old one, that program's changes go into the new one and destroy it.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use super::is_absent;
use crate::error::{Error, Result};

/// Returns `true` if a file begins like an SQLite database.
pub(super) fn is_database(path: &Path) -> bool {
    let mut start = [0; MAGIC.len()];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut start));
    // A file that cannot be read is not a database that this run replaces.
    read.is_ok() && start == *MAGIC
}

/// The first bytes of an SQLite database.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Checks that no other program has the database at `target` open. `target` is its name, with links followed; `name` is its
/// name for error messages.
///
/// # Errors
///
/// Returns an error that says what shows the use, or one of the system.
pub(crate) fn check_not_in_use(target: &Path, name: &Path) -> Result<()> {
    check(target, target).map_err(|err| Error::changed(name, err.to_string()))
}

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
    // A reader may hold its lock only for a moment.
    for _ in 0..LOCK_CHECKS {
        if !is_locked(old)? {
            return Ok(());
        }
        thread::sleep(BETWEEN_LOCK_CHECKS);
    }
    let problem = "another program has it open: close it there, or name another file";
    Err(io::Error::other(problem))
}

/// The number of times that a lock must be seen until the database counts as open in another program.
const LOCK_CHECKS: usize = 40;

/// The time between two checks of the lock.
const BETWEEN_LOCK_CHECKS: Duration = Duration::from_millis(50);

/// Returns the path of the file that SQLite keeps next to a database.
pub(crate) fn side_file(database: &Path, ending: &str) -> PathBuf {
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
    let file = match File::open(path) {
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

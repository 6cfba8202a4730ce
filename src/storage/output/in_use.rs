//! Checks whether another program, or another SQLite library in this process, has an SQLite database open.
//!
//! SQLite finds the journal and the write-ahead log of a database by the name of the database. If a new database
//! replaces the file while another program uses the old one, the changes of that program are applied to the new
//! database and destroy it. So the output is refused if the database has a write-ahead log (`-wal`, `-shm`), a journal
//! with content, or one of SQLite's locks.

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

/// Returns `true` if a file begins with the header of an SQLite database.
///
/// # Errors
///
/// Returns an error if the file cannot be read. In this case, the file may nevertheless be a database.
pub(super) fn is_database(path: &Path) -> io::Result<bool> {
    let mut start = [0; MAGIC.len()];
    match File::open(path)?.read_exact(&mut start) {
        Err(err) if err.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| start == *MAGIC),
    }
}

/// The first bytes of an SQLite database.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Checks that no other program has the SQLite database at `target` open. `target` must not contain symbolic links.
/// Error messages show the path `name`.
///
/// # Errors
///
/// Returns an error that states the reason if another program seems to have the database open. Also returns an error
/// if the database cannot be checked.
pub(crate) fn check_not_in_use(target: &Path, name: &Path) -> Result<()> {
    check_unused(target, target).map_err(|err| Error::changed(name, err.to_string()))
}

/// Checks that no other program has an SQLite database open: the database must have no write-ahead log and no journal
/// with content, and no other process may hold one of SQLite's locks on it. `target` is the path of the database,
/// without symbolic links. `old` is the current path of the database file, which differs from `target` if the file has
/// been renamed.
///
/// # Errors
///
/// Returns an error that states the reason if another program seems to have the database open. Also returns an error
/// if the database cannot be checked.
pub(super) fn check_unused(target: &Path, old: &Path) -> io::Result<()> {
    for (ending, may_be_empty) in [("-wal", false), ("-shm", false), ("-journal", true)] {
        let side_file = side_file(target, ending);
        let is_in_use = match side_file.symlink_metadata() {
            Ok(metadata) => !may_be_empty || metadata.len() > 0,
            // If the name is too long for the file system, no such file can exist.
            Err(err) if is_absent(&err) => false,
            Err(err) => return Err(err),
        };
        if is_in_use {
            let name = side_file.file_name().unwrap_or_default().display();
            return Err(io::Error::other(format!(
                "the file {name} exists, so another program has the database open, or was interrupted: open and close \
                 the database with that program, or choose another file (if {name} remains, remove both files)"
            )));
        }
    }
    check_unlocked(|| is_locked_here(old), || is_locked(old))
}

/// Checks that this process holds none of SQLite's locks on the file at `path`. A Python program holds such locks, for
/// example, during a transaction of its module `sqlite3`. Call this function before the file is opened, because closing
/// it would release these locks.
///
/// # Errors
///
/// Returns an error if this process keeps a lock, or if the file cannot be checked.
pub(super) fn check_not_locked_here(path: &Path) -> io::Result<()> {
    check_unlocked(|| is_locked_here(path), || Ok(false))
}

/// Checks that neither this process nor another process keeps a lock on a file, according to `is_locked_here` and
/// `is_locked`. Repeats the check several times, because a reader may hold its lock only for a moment.
///
/// Does not call `is_locked` while this process holds a lock, because `is_locked` would release it.
///
/// # Errors
///
/// Returns an error if each check finds a lock, or if a check fails.
fn check_unlocked(
    is_locked_here: impl Fn() -> io::Result<bool>,
    is_locked: impl Fn() -> io::Result<bool>,
) -> io::Result<()> {
    let mut problem = "";
    for _ in 0..LOCK_CHECKS {
        problem = if is_locked_here()? {
            "this program has the file open as a database: end its transaction, or choose another file"
        } else if is_locked()? {
            "another program has this file open: close the file in that program, or choose another file"
        } else {
            return Ok(());
        };
        thread::sleep(LOCK_CHECK_INTERVAL);
    }
    Err(io::Error::other(problem))
}

/// The number of times that a database is checked for locks. The database counts as in use only if each check finds a
/// lock, because some programs hold a lock only for a moment.
const LOCK_CHECKS: usize = 40;

/// The time between two consecutive checks of a database for locks.
const LOCK_CHECK_INTERVAL: Duration = Duration::from_millis(if cfg!(test) { 1 } else { 50 });

/// Returns the path of a file that SQLite keeps next to a database. It is the path of the database followed by
/// `ending`, for example `-wal`.
pub(crate) fn side_file(database: &Path, ending: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(OsStr::new(ending));
    name.into()
}

/// The offset of the first byte of a database file that SQLite locks. SQLite locks [`LOCKED_BYTES`] consecutive bytes:
/// PENDING, RESERVED and 510 bytes for SHARED. See [SQLite's
/// documentation](https://www.sqlite.org/fileformat.html#the_lock_byte_page).
#[cfg(unix)]
const FIRST_LOCKED_OFFSET: u64 = 0x4000_0000;
#[cfg(unix)]
const LOCKED_BYTES: u64 = 512;

/// Returns `true` if another process holds one of SQLite's locks on the file at `path`. Returns `false` if the file
/// does not exist, or if the file system does not support locks.
///
/// Opens the file and closes it again, which releases all locks that this process holds on the file. Call
/// [`is_locked_here`] first, which finds such locks. The loss of a lock that polybook itself acquires in the meantime
/// is harmless: a command never reads the file that it writes, and a thread that still reads the database checks after
/// the last row whether the file was changed.
#[cfg(unix)]
fn is_locked(path: &Path) -> io::Result<bool> {
    use rustix::{
        io::Errno,
        process::{Flock, FlockType, fcntl_getlk},
    };
    let file = match File::open(path) {
        Err(err) if is_absent(&err) => return Ok(false),
        opened => opened?,
    };
    let mut lock = Flock::from(FlockType::WriteLock);
    (lock.start, lock.length) = (FIRST_LOCKED_OFFSET, LOCKED_BYTES);
    match fcntl_getlk(&file, &lock) {
        // Some network file systems have no locks.
        Err(Errno::NOLCK | Errno::INVAL | Errno::NOTSUP | Errno::NOSYS) => Ok(false),
        found => Ok(found?.is_some()),
    }
}

/// Returns `true` if this process holds one of SQLite's locks on the file at `path`. Returns `false` if the file does
/// not exist, or if the locks are unknown, because the file `/proc/locks` cannot be read.
///
/// A lock never conflicts with another lock of the same process, so only the list of all locks shows it. Does not open
/// the file.
#[cfg(target_os = "linux")]
fn is_locked_here(path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let inode = match path.metadata() {
        Err(err) if is_absent(&err) => return Ok(false),
        metadata => metadata?.ino(),
    };
    let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
    Ok(locks.lines().any(|line| is_own_lock(line, inode)))
}

/// Returns `true` if `line`, a line of `/proc/locks`, describes one of SQLite's locks that this process holds on the
/// file with the inode number `inode`. The number of the device is not compared, because overlay file systems show
/// different numbers in different places.
#[cfg(target_os = "linux")]
fn is_own_lock(line: &str, inode: u64) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, "POSIX", _, _, process, file, first, last] = words[..] else {
        return false;
    };
    let number_of_file = file.rsplit(':').next().and_then(|inode| inode.parse().ok());
    let of_sqlite = FIRST_LOCKED_OFFSET..FIRST_LOCKED_OFFSET + LOCKED_BYTES;
    // A lock up to the end of the file has the word `EOF` instead of a number.
    let is_of_sqlite = |offset: &str| {
        offset
            .parse()
            .is_ok_and(|offset| of_sqlite.contains(&offset))
    };
    process.parse() == Ok(std::process::id())
        && number_of_file == Some(inode)
        && is_of_sqlite(first)
        && is_of_sqlite(last)
}

/// Always returns `false`. Only Linux lists the locks of a process. On Windows, a database that SQLite has open cannot
/// be renamed.
#[cfg(not(target_os = "linux"))]
fn is_locked_here(_path: &Path) -> io::Result<bool> {
    Ok(false)
}

/// Always returns `false`. On Windows, a database that SQLite has open cannot be renamed, so locks need not be checked.
#[cfg(windows)]
fn is_locked(_path: &Path) -> io::Result<bool> {
    Ok(false)
}

#[cfg(test)]
mod tests {
    use std::{
        cell::{Cell, RefCell},
        fs,
    };

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
    fn a_file_that_this_process_locks_during_the_check_is_not_opened() {
        let (round, opened) = (Cell::new(0), RefCell::new(Vec::new()));
        let is_locked_here = || {
            round.set(round.get() + 1);
            Ok(round.get() == 2)
        };
        let is_locked = || {
            opened.borrow_mut().push(round.get());
            Ok(round.get() == 1)
        };
        check_unlocked(is_locked_here, is_locked).unwrap();
        assert_eq!(opened.into_inner(), [1, 3]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_database_in_a_transaction_of_this_process_is_in_use() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db3");
        let open = rusqlite::Connection::open(&path).unwrap();
        open.execute_batch("PRAGMA journal_mode = MEMORY; CREATE TABLE t (x); BEGIN EXCLUSIVE")
            .unwrap();
        let err = check_unused(&path, &path).unwrap_err().to_string();
        let advice = "end its transaction, or choose another file";
        assert!(err.contains(advice), "{err}");
        let other = dir.path().join("other.db3");
        check_unused(&other, &other).unwrap();
        open.execute_batch("COMMIT").unwrap();
        check_unused(&path, &path).unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn only_the_locks_of_sqlite_in_this_process_are_found() {
        use rustix::fs::{FlockOperation, fcntl_lock};
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file.db3");
        assert!(!is_locked_here(&path).unwrap());
        let file = File::create(&path).unwrap();
        assert!(!is_locked_here(&path).unwrap());
        fcntl_lock(&file, FlockOperation::LockExclusive).unwrap();
        // The program locks the whole file, as SQLite never does.
        check_not_locked_here(&path).unwrap();
        let inode = std::os::unix::fs::MetadataExt::ino(&file.metadata().unwrap());
        let process = std::process::id();
        let is_own = |words: &str, inode| is_own_lock(&format!("7: {words}"), inode);
        for (range, is_of_sqlite) in [
            ("1073741826 1073742335", true),
            ("1073741825 1073741825", true),
            ("0 EOF", false),
            ("0 1073741824", false),
            ("1073742335 1073742336", false),
            ("1073741826 EOF", false),
        ] {
            let line = format!("POSIX  ADVISORY  READ {process} 08:01:{inode} {range}");
            assert_eq!(is_own(&line, inode), is_of_sqlite, "{range}");
            assert!(!is_own(&line, inode + 1));
            assert!(!is_own(&format!("-> {line}"), inode));
            assert!(!is_own(&line.replace("POSIX", "FLOCK"), inode));
        }
        let other = format!("POSIX  ADVISORY  READ 1 08:01:{inode} 0 EOF");
        assert!(!is_own(&other, inode));
        fcntl_lock(&file, FlockOperation::Unlock).unwrap();
        check_unused(&path, &path).unwrap();
    }
}

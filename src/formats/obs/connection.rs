//! A pool of SQLite connections to one database file, which any number of threads can use.
//!
//! SQLite opens files by path, and another file may replace the database while it is being read. The pool
//! therefore keeps its connections open, and opens further ones only as long as the path leads to the same file.

use std::{
    fs::File,
    io::Read,
    ops::Deref,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use rusqlite::{Connection, OpenFlags, config::DbConfig, limits::Limit};

use super::error::{ObsError, Sql};
use crate::{
    error::{At, Error, Result},
    storage::output::{
        FileId, FileState, is_absent, is_directory, open_again_if_replaced, side_file,
    },
    storage::sort::Memory,
    task,
};

/// The maximum size in bytes of a value or row that SQLite may return. A query that would return a larger one fails.
/// Rows of valid databases are far smaller.
const MAX_ROW_BYTES: i32 = 1 << 20;

/// The number of instructions that SQLite's virtual machine runs between two checks of the stop flag, which takes about
/// a millisecond.
const INSTRUCTIONS_PER_CHECK: i32 = 10_000;

/// The minimum size in bytes of SQLite's page cache for a query that sorts rows. Sorting with a smaller cache is slow.
const MIN_CACHE: usize = 1 << 16;
/// The maximum size in bytes of SQLite's page cache for a query that sorts rows. A larger cache makes sorting no
/// faster.
const MAX_CACHE: usize = 1 << 24;

/// A pool of SQLite connections to one database file.
#[derive(Debug)]
pub(super) struct Connections {
    /// The state of the database file when the pool was created.
    opened: DatabaseState,
    /// The [URI](immutable_uri) with which the file is read without locks, or `None` if SQLite uses locks.
    immutable: Option<String>,
    /// A flag that interrupts all running queries.
    stop: Arc<AtomicBool>,
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl Connections {
    /// Opens a database file and creates a pool of two connections, so that short queries can run during a long read.
    /// If another file replaces the database before both connections are open, starts over with the new file. If `stop`
    /// is set, all queries of the pool are interrupted.
    pub(super) fn open(path: &Path, stop: &Arc<AtomicBool>) -> Result<Connections> {
        open_again_if_replaced(path, || Connections::open_two(path, stop))
    }

    fn open_two(path: &Path, stop: &Arc<AtomicBool>) -> Result<Connections> {
        let connections = Connections {
            opened: DatabaseState::of(path)?,
            immutable: immutable_uri(path)?,
            stop: Arc::clone(stop),
            idle: Arc::default(),
        };
        let two = vec![connections.another()?, connections.another()?];
        *task::lock(&connections.idle) = two;
        Ok(connections)
    }

    pub(super) fn path(&self) -> &Path {
        &self.opened.path
    }

    /// Checks that the database has [not changed](DatabaseState::refuse_changed) since it was opened.
    pub(super) fn refuse_changed(&self) -> Result<()> {
        self.opened.refuse_changed()
    }

    /// Takes an idle connection from the pool, or opens a new connection if none is idle.
    pub(super) fn lend(&self) -> Result<PooledConnection> {
        let idle = task::lock(&self.idle).pop();
        let db = match idle {
            Some(db) => db,
            None => self.another()?,
        };
        Ok(PooledConnection {
            db: Some(db),
            idle: Arc::clone(&self.idle),
        })
    }

    /// Takes a connection from the pool for a long read. If no idle connection is left for short queries, also tries to
    /// add a new connection to the pool, but ignores a failure, because the new connection is not necessary.
    pub(super) fn lend_long(&self) -> Result<PooledConnection> {
        let lent = self.lend()?;
        let is_last = task::lock(&self.idle).is_empty();
        if is_last && let Ok(another) = self.another() {
            task::lock(&self.idle).push(another);
        }
        Ok(lent)
    }

    #[cfg(test)]
    pub(super) fn idle(&self) -> usize {
        task::lock(&self.idle).len()
    }

    fn another(&self) -> Result<Connection> {
        let path = self.path();
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = match &self.immutable {
            Some(uri) => Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI),
            None => Connection::open_with_flags(path, flags),
        };
        let mut db = db.sql(path, "open")?;
        let stop = Arc::clone(&self.stop);
        db.progress_handler(
            INSTRUCTIONS_PER_CHECK,
            Some(move || stop.load(Ordering::Relaxed)),
        )
        .sql(path, "open")?;
        if FileId::of(path).at(path, "open")? != Some(self.opened.file) {
            return Err(ObsError::Replaced.at(path));
        }
        // The file comes from an unknown source, so no code in its schema may run.
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)
            .and_then(|_| db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false))
            .and_then(|_| db.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_ROW_BYTES))
            .sql(path, "open")?;
        Ok(db)
    }
}

/// The state of a database file when it was recorded. A comparison with the current state shows whether the file has
/// changed since then.
#[derive(Debug)]
pub(super) struct DatabaseState {
    path: PathBuf,
    /// The path with symbolic links resolved. SQLite also resolves links before it appends `-wal` or `-shm` to the
    /// name.
    resolved: PathBuf,
    /// The identity of the file. If the path leads to a file with another identity, the database was replaced.
    file: FileId,
    /// The states of the file and of its write-ahead log.
    states: [Option<FileState>; 2],
}

impl DatabaseState {
    pub(super) fn of(path: &Path) -> Result<DatabaseState> {
        let resolved = path.canonicalize().at(path, "open")?;
        Ok(DatabaseState {
            path: path.to_owned(),
            file: FileId::of(path)
                .at(path, "open")?
                .ok_or_else(|| ObsError::NotSqlite.at(path))?,
            states: states_of(&resolved)?,
            resolved,
        })
    }

    /// Returns `true` if the database has a write-ahead log. With such a log, a transaction reads the content that the
    /// database had when the transaction began, even if another program changes the database during the transaction.
    pub(super) fn has_log(&self) -> bool {
        self.states[1].is_some()
    }

    /// Checks that no program has written to the database since this state was recorded. Returns no error if another
    /// file has replaced the database at its path, because connections still read the old file.
    ///
    /// # Errors
    ///
    /// Returns an error if the file was changed or its state cannot be read.
    pub(super) fn refuse_changed(&self) -> Result<()> {
        let path = &self.path;
        // The identity is read last, because another file may replace the database between the two steps.
        if states_of(&self.resolved)? == self.states
            || FileId::of(path).at(path, "read")? != Some(self.file)
        {
            return Ok(());
        }
        let problem = "the file changed while it was read: run the command again when no other program is writing the \
                       file";
        Err(Error::changed(path, problem))
    }
}

/// Returns the states of the database file `resolved` and of its write-ahead log, in this order. A state contains, for
/// example, the size and the modification time. The state of a missing file is `None`. `resolved` must be a path
/// without symbolic links.
fn states_of(resolved: &Path) -> Result<[Option<FileState>; 2]> {
    let state = |path: &Path| FileState::of(path).at(path, "read");
    let states = [state(resolved)?, state(&side_file(resolved, "-wal"))?];
    Ok(states.map(|state| state.map(FileState::renamed)))
}

/// Opens a database read-only, without locks and without creating files next to it. The caller must make sure that no
/// other program has the database open, because a change during a read would not be noticed without locks.
#[cfg(unix)]
pub(super) fn open_unshared(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    Connection::open_with_flags(uri_without_locks(path), flags)
}

/// Opens a database read-only and without locks. The caller must make sure that no other program has the database open,
/// because a change during a read would not be noticed without locks.
#[cfg(windows)]
pub(super) fn open_unshared(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(path, flags)
}

/// Returns a URI with which SQLite reads the database without locks and creates no files next to it. Returns `None` if
/// SQLite must use locks.
///
/// To read a database in WAL mode, SQLite normally creates a write-ahead log (`-wal`) and an index of this log (`-shm`)
/// next to the database. If neither file exists, no other program has the database open, and the database file contains
/// all changes. SQLite can then read the database without these files.
///
/// # Errors
///
/// Returns an error if a log that contains changes exists without its index, which means that another program did not
/// finish these changes.
fn immutable_uri(path: &Path) -> Result<Option<String>> {
    /// The offset of the byte "read version" in the header of an SQLite file, and the value that this byte has if the
    /// file is in WAL mode (with a write-ahead log).
    const READ_VERSION: (usize, u8) = (19, 2);
    let mut header = Vec::new();
    File::open(path)
        .and_then(|file| {
            file.take(READ_VERSION.0 as u64 + 1)
                .read_to_end(&mut header)
        })
        .at(path, "read")?;
    // URIs have another form on Windows, where SQLite's locks are used instead.
    if header.get(READ_VERSION.0) != Some(&READ_VERSION.1) || cfg!(windows) {
        return Ok(None);
    }
    // SQLite resolves symbolic links before it appends to the name.
    let database = path.canonicalize().at(path, "open")?;
    let size = |ending| {
        let side_file = side_file(&database, ending);
        match side_file.metadata() {
            Ok(metadata) => Ok(Some(metadata.len())),
            Err(err) if is_absent(&err) => Ok(None),
            Err(err) => Err(err).at(&side_file, "open"),
        }
    };
    match (size("-wal")?, size("-shm")?) {
        (None | Some(0), None) => {}
        (_, Some(_)) => return Ok(None),
        (Some(_), None) => {
            let problem = "the -wal file of this database contains changes that another program did not finish: open \
                           and close the database with that program, or run sqlite3 FILE \"PRAGMA \
                           wal_checkpoint(TRUNCATE)\"";
            return Err(Error::file(path, problem));
        }
    }
    Ok(Some(uri_without_locks(&database)))
}

/// Returns the URI with which SQLite reads the database `path` without locks.
fn uri_without_locks(path: &Path) -> String {
    // Two slashes begin an authority, which must be empty. Without them, a path such as `//tmp/x` would name one.
    let mut uri = if path.is_absolute() {
        "file://".to_owned()
    } else {
        "file:".to_owned()
    };
    // A question mark begins the parameters of the URI, so special bytes of the path are escaped.
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => uri.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => uri.push(char::from(*byte)),
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri + "?immutable=1"
}

/// A connection taken from a pool. Dropping it returns the connection to the pool, or closes a connection that is in a
/// transaction.
#[derive(Debug)]
pub(super) struct PooledConnection {
    db: Option<Connection>,
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl PooledConnection {
    /// Limits the memory for sorting rows with this connection to `memory.bytes`. The limit is at least [`MIN_CACHE`]
    /// and at most [`MAX_CACHE`]. Rows that do not fit into this memory are written to temporary files in
    /// `memory.temp_dir`.
    ///
    /// # Errors
    ///
    /// Returns an error if `memory.temp_dir` is not a directory or its path is not valid UTF-8.
    pub(super) fn sort_in(&self, memory: &Memory) -> Result<()> {
        let dir = &memory.temp_dir;
        let Some(name) = dir.to_str() else {
            let problem = "SQLite needs a directory for temporary files whose name is UTF-8: choose another directory";
            return Err(Error::file(dir, problem));
        };
        if !is_directory(dir)? {
            let problem = "this is not a directory, so temporary files cannot be written there: choose another \
                           directory";
            return Err(Error::file(dir, problem));
        }
        let kibibytes = memory.bytes.clamp(MIN_CACHE, MAX_CACHE) >> 10;
        // The directory is a global setting of SQLite, shared by all connections. Sorting works in whichever directory
        // was set last.
        self.pragma_update(None, "temp_store_directory", name)
            .and_then(|()| self.pragma_update(None, "cache_size", -(kibibytes as i64)))
            .sql(dir, "create a temporary file in")
    }
}

impl Deref for PooledConnection {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.db.as_ref().expect("it goes back only when dropped")
    }
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        // An interrupt that comes late can interrupt the end of a transaction, too.
        let db = self.db.take().filter(Connection::is_autocommit);
        task::lock(&self.idle).extend(db);
    }
}

//! Connections to one file, for any number of threads.
//!
//! SQLite opens files by name, and the name of a database may come to lead to another file while it is being
//! read. So connections are kept, and further ones are made only while the name leads to the first file.

use std::{
    ops::Deref,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use rusqlite::{Connection, OpenFlags, config::DbConfig, limits::Limit};
use same_file::Handle;

use super::error::{ObsError, Sql};
use crate::error::{At, Result};

/// More bytes than a row of any use takes.
const LONGEST_ROW: i32 = 1 << 20;

/// Why the lock of idle connections is never poisoned.
const LOCK: &str = "moving connections does not panic";

/// Connections to one file.
#[derive(Debug)]
pub(super) struct Connections {
    path: PathBuf,
    /// The file that was opened first.
    file: Handle,
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl Connections {
    /// Opens a file, twice: one connection is for long reading and one for questions meanwhile.
    pub(super) fn open(path: &Path) -> Result<Connections> {
        let connections = Connections {
            path: path.to_owned(),
            file: Handle::from_path(path).at(path, "open")?,
            idle: Arc::default(),
        };
        let two = vec![connections.another()?, connections.another()?];
        *connections.idle.lock().expect(LOCK) = two;
        Ok(connections)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// A connection that is not in use.
    pub(super) fn lend(&self) -> Result<Lent> {
        let idle = self.idle.lock().expect(LOCK).pop();
        let db = match idle {
            Some(db) => db,
            None => self.another()?,
        };
        Ok(Lent {
            db: Some(db),
            idle: Arc::clone(&self.idle),
        })
    }

    /// A connection for long reading, such that one for questions is left if that can be.
    pub(super) fn lend_long(&self) -> Result<Lent> {
        let lent = self.lend()?;
        let is_last = self.idle.lock().expect(LOCK).is_empty();
        if is_last && let Ok(another) = self.another() {
            self.idle.lock().expect(LOCK).push(another);
        }
        Ok(lent)
    }

    /// Closes the connections that are idle, but for one.
    pub(super) fn keep_one(&self) {
        self.idle.lock().expect(LOCK).truncate(1);
    }

    fn another(&self) -> Result<Connection> {
        let path = &self.path;
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = Connection::open_with_flags(path, flags).sql(path, "open")?;
        let file = Handle::from_path(path).at(path, "open")?;
        if file != self.file {
            return Err(ObsError::Replaced.at(path));
        }
        // What stands in the file is data, and nothing in it is to be run.
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)
            .and_then(|_| db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false))
            .and_then(|_| db.set_limit(Limit::SQLITE_LIMIT_LENGTH, LONGEST_ROW))
            .sql(path, "open")?;
        Ok(db)
    }
}

/// A connection that goes back when it is dropped.
#[derive(Debug)]
pub(super) struct Lent {
    db: Option<Connection>,
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl Deref for Lent {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.db.as_ref().expect("it goes back only when dropped")
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.idle.lock().expect(LOCK).extend(self.db.take());
    }
}

//! Checking a database.

use std::path::Path;

use thiserror::Error as ThisError;

use super::{error::Sql, info::ChecksumCheck, read::Obs};
use crate::error::Result;

/// What [`verify`] found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verified {
    /// Everything that is wrong.
    pub faults: Vec<Fault>,
    /// Rows of the table `Book`.
    pub rows: u64,
    /// Whether the table `Info` has a checksum. Without one, changed rows cannot be noticed.
    pub has_checksum: bool,
}

/// What is wrong with a database.
#[derive(Clone, PartialEq, Eq, Debug, ThisError)]
#[non_exhaustive]
pub enum Fault {
    /// SQLite's own check of its pages and indexes finds this.
    #[error("SQLite finds: {0}")]
    Sqlite(String),
    /// The checksum is not that of the rows.
    #[error(
        "the checksum in the table Info differs: the database is damaged, or another program changed it"
    )]
    Checksum,
}

/// Looks for everything that is wrong with a database: SQLite checks the file, and the checksum that polybook's
/// databases have is compared with their rows. Reads the file twice.
///
/// # Errors
///
/// A file that is not such a database, or one that is so damaged that it cannot be read.
pub fn verify(path: impl AsRef<Path>) -> Result<Verified> {
    let path = path.as_ref();
    let obs = Obs::open(path)?;
    let db = obs.lend()?;
    let mut faults = Vec::new();
    let found: String = db
        .query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))
        .sql(path, "read")?;
    if found != "ok" {
        faults.push(Fault::Sqlite(found));
    }
    let check = ChecksumCheck::of(&db).sql(path, "read")?;
    let has_checksum = check.is_some();
    let mut check = check.unwrap_or_default();
    let mut rows = 0;
    let mut add_rows = || -> rusqlite::Result<()> {
        let mut statement = db.prepare(obs.select())?;
        let mut found = statement.query([])?;
        while let Some(row) = found.next()? {
            check.add(row)?;
            rows += 1;
        }
        Ok(())
    };
    add_rows().sql(path, "read")?;
    if has_checksum && !check.matches() {
        faults.push(Fault::Checksum);
    }
    Ok(Verified {
        faults,
        rows,
        has_checksum,
    })
}

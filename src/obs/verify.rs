//! Verifies databases.

use std::path::Path;

use thiserror::Error as ThisError;

use super::{error::Sql, info::ChecksumCheck, read::Obs};
use crate::error::Result;

/// The result of [`verify`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VerifiedDatabase {
    /// All faults that were found.
    pub faults: Vec<DatabaseFault>,
    /// The number of rows of the table `Book`.
    pub rows: u64,
    /// `true` if the table `Info` has a checksum. Without one, changed rows cannot be detected.
    pub has_checksum: bool,
}

/// A fault of a database.
#[derive(Clone, PartialEq, Eq, Debug, ThisError)]
#[non_exhaustive]
pub enum DatabaseFault {
    /// SQLite's integrity check found a problem, which this describes.
    #[error("SQLite finds: {0}")]
    Sqlite(String),
    /// The checksum does not match the rows.
    #[error(
        "the checksum in the table Info differs: the database is damaged, or another program changed it"
    )]
    Checksum,
}

/// Finds the faults of a database. Runs SQLite's integrity check, and compares the checksum with the rows if there is one.
/// Reads the file twice.
///
/// # Errors
///
/// Returns an error if the file is not a database of this schema, or if it is too damaged to be read.
pub fn verify(path: impl AsRef<Path>) -> Result<VerifiedDatabase> {
    let path = path.as_ref();
    let obs = Obs::open(path)?;
    let db = obs.lend()?;
    let mut faults = Vec::new();
    let found: String = db
        .query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))
        .sql(path, "read")?;
    if found != "ok" {
        faults.push(DatabaseFault::Sqlite(found));
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
        faults.push(DatabaseFault::Checksum);
    }
    Ok(VerifiedDatabase {
        faults,
        rows,
        has_checksum,
    })
}

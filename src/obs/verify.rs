//! Checking a database.

use std::path::Path;

use rusqlite::{Connection, types::ValueRef};
use thiserror::Error as ThisError;

use super::{
    error::Sql,
    info::{CHECKSUM, Rows},
    read::Obs,
};
use crate::{checksum::Checksum, error::Result};

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
    let recorded = Rows::of(&db).sql(path, "read")?;
    let recorded = recorded.get(CHECKSUM).map(str::to_owned);
    let (rows, sum) = checksum(&db, obs.select()).sql(path, "read")?;
    if recorded
        .as_ref()
        .is_some_and(|text| *text != sum.to_string())
    {
        faults.push(Fault::Checksum);
    }
    Ok(Verified {
        faults,
        rows,
        has_checksum: recorded.is_some(),
    })
}

/// How many rows a database has, and the checksum of these and of what its table `Info` has besides.
fn checksum(db: &Connection, select: &str) -> rusqlite::Result<(u64, Checksum)> {
    let mut sum = Checksum::default();
    let rows = add_rows(db, select, &mut sum)?;
    if Rows::is_there(db)? {
        let others = format!("SELECT Name, Value FROM Info WHERE Name <> '{CHECKSUM}'");
        add_rows(db, &others, &mut sum)?;
    }
    Ok((rows, sum))
}

/// Adds each row of a query: its fields as text, with a tab after each but the last. Answers how many there are.
fn add_rows(db: &Connection, query: &str, sum: &mut Checksum) -> rusqlite::Result<u64> {
    let mut statement = db.prepare(query)?;
    let columns = statement.column_count();
    let mut found = statement.query([])?;
    let mut text = Vec::new();
    let mut rows = 0;
    while let Some(row) = found.next()? {
        text.clear();
        for column in 0..columns {
            if column > 0 {
                text.push(b'\t');
            }
            match row.get_ref(column)? {
                ValueRef::Null => {}
                ValueRef::Integer(number) => text.extend(number.to_string().into_bytes()),
                ValueRef::Real(number) => text.extend(number.to_string().into_bytes()),
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => text.extend_from_slice(bytes),
            }
        }
        sum.add(&text);
        rows += 1;
    }
    Ok(rows)
}

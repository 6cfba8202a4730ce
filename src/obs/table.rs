//! The tables of a new database, and filling `Book`.

use std::path::Path;

use rusqlite::{Connection, Statement};

use super::{error::Sql, row::Active};
use crate::{
    checksum::Checksum,
    error::{Error, Result},
    tally::Stats,
    task::Failure,
};

/// The tables that the standard's own tool makes, and the index that its document advises under another name, so
/// that the statement printed there still works.
pub(super) const TABLES: &str = "
    CREATE TABLE Book (
        ID INTEGER PRIMARY KEY AUTOINCREMENT,
        EPD TEXT NOT NULL,
        Move TEXT,
        Active INTEGER DEFAULT 1,
        Win INTEGER,
        Draw INTEGER,
        Loss INTEGER,
        Comment TEXT
    );
    CREATE TABLE Info (Name TEXT UNIQUE NOT NULL, Value TEXT);
    CREATE INDEX BookByEPD ON Book (EPD);";

/// The file has another name until it is complete, so a journal would protect nothing. Rows and index entries
/// come in order, so little of them is ever needed again.
pub(super) const SETTINGS: &str = "
    PRAGMA cache_size = -16384;
    PRAGMA journal_mode = OFF;
    PRAGMA synchronous = OFF;
    PRAGMA locking_mode = EXCLUSIVE;";

/// Rows that one statement inserts. One at a time, AUTOINCREMENT alone would take half of the time.
const AT_ONCE: usize = 40;

/// A row of the table `Book`.
#[derive(Copy, Clone, Debug)]
pub(super) struct NewRow<'a> {
    pub epd: &'a str,
    pub mv: &'a str,
    pub active: Active,
    pub stats: Stats,
    pub comment: Option<&'a str>,
}

impl NewRow<'_> {
    /// Replaces `text` with the fields in the order of the table, a tab after each but the last.
    fn write_text(&self, text: &mut Vec<u8>) {
        let mut number = itoa::Buffer::new();
        text.clear();
        text.extend_from_slice(self.epd.as_bytes());
        text.push(b'\t');
        text.extend_from_slice(self.mv.as_bytes());
        text.push(b'\t');
        text.extend_from_slice(number.format(self.active.bits()).as_bytes());
        let Stats {
            wins,
            draws,
            losses,
        } = self.stats;
        for games in [wins, draws, losses] {
            text.push(b'\t');
            text.extend_from_slice(number.format(games).as_bytes());
        }
        text.push(b'\t');
        text.extend_from_slice(self.comment.unwrap_or_default().as_bytes());
    }
}

/// The columns of new rows that are not left to their defaults.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Columns {
    /// Those of a position, a move and its games.
    Counted,
    /// Activity and comment too.
    All,
}

impl Columns {
    fn names(self) -> &'static str {
        match self {
            Columns::Counted => "EPD, Move, Win, Draw, Loss",
            Columns::All => "EPD, Move, Win, Draw, Loss, Active, Comment",
        }
    }

    /// A statement for this number of rows. It need not be undone by itself if it fails, because then all is.
    fn insertion(self, rows: usize) -> String {
        let names = self.names();
        let row = vec!["?"; names.split(',').count()].join(",");
        let rows = vec![format!("({row})"); rows].join(",");
        format!("INSERT OR ROLLBACK INTO Book ({names}) VALUES {rows}")
    }
}

/// Takes the rows of the table `Book`.
pub(super) struct BookTable<'a> {
    db: &'a Connection,
    target: &'a Path,
    columns: Columns,
    /// Inserts [`AT_ONCE`] rows.
    many: Statement<'a>,
    rows: u64,
    checksum: Checksum,
    /// A row as the checksum has it.
    text: Vec<u8>,
    /// Set when inserted rows are lost.
    failure: &'a Failure,
}

impl<'a> BookTable<'a> {
    pub(super) fn new(
        db: &'a Connection,
        target: &'a Path,
        columns: Columns,
        failure: &'a Failure,
    ) -> Result<BookTable<'a>> {
        let many = db.prepare(&columns.insertion(AT_ONCE));
        Ok(BookTable {
            db,
            target,
            columns,
            many: many.sql(target, "write")?,
            rows: 0,
            checksum: Checksum::default(),
            text: Vec::new(),
            failure,
        })
    }

    /// How many rows were inserted.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// The checksum of the rows that were inserted.
    pub(super) fn checksum(&self) -> Checksum {
        self.checksum
    }

    /// Inserts the next rows, which should be some thousands.
    pub(super) fn insert(&mut self, rows: &[NewRow<'_>]) -> Result<()> {
        if self.failure.is_set() {
            return Err(Error::Interrupted);
        }
        let (whole, rest) = rows.as_chunks::<AT_ONCE>();
        for rows in whole {
            insert(&mut self.many, self.columns, rows).sql(self.target, "write")?;
        }
        if !rest.is_empty() {
            self.db
                .prepare(&self.columns.insertion(rest.len()))
                .and_then(|mut few| insert(&mut few, self.columns, rest))
                .sql(self.target, "write")?;
        }
        self.rows += rows.len() as u64;
        for row in rows {
            row.write_text(&mut self.text);
            self.checksum.add(&self.text);
        }
        Ok(())
    }
}

/// Runs a statement for exactly these rows.
fn insert(
    statement: &mut Statement<'_>,
    columns: Columns,
    rows: &[NewRow<'_>],
) -> rusqlite::Result<()> {
    let number = |number: u64| i64::try_from(number).expect("sums of counts stay within 63 bits");
    let mut parameter = 1;
    for row in rows {
        statement.raw_bind_parameter(parameter, row.epd)?;
        statement.raw_bind_parameter(parameter + 1, row.mv)?;
        statement.raw_bind_parameter(parameter + 2, number(row.stats.wins))?;
        statement.raw_bind_parameter(parameter + 3, number(row.stats.draws))?;
        statement.raw_bind_parameter(parameter + 4, number(row.stats.losses))?;
        parameter += 5;
        if columns == Columns::All {
            statement.raw_bind_parameter(parameter, row.active.bits())?;
            statement.raw_bind_parameter(parameter + 1, row.comment)?;
            parameter += 2;
        }
    }
    statement.raw_execute()?;
    Ok(())
}

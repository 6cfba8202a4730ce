//! Creates the tables of a new database, and fills the table `Book`.

use std::{ops::Range, path::Path};

use rusqlite::{Connection, Statement};

use super::{error::ObsError, row::ObsRow, source::MOST_GAMES};
use crate::{
    checksum::Checksum,
    counts::Stats,
    error::Result,
    task::{self, Feeder},
};

/// The tables that the standard's own tool creates. The index has another name than the one that the standard's document
/// advises, so that the statement printed there still works.
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

/// Settings for writing. No journal is needed, because the file gets its name only when it is complete. A small cache suffices,
/// because rows and index entries are appended in order.
pub(super) const SETTINGS: &str = "
    PRAGMA cache_size = -16384;
    PRAGMA journal_mode = OFF;
    PRAGMA synchronous = OFF;
    PRAGMA locking_mode = EXCLUSIVE;";

/// The number of rows that one statement inserts. With one row per statement, AUTOINCREMENT alone would take half of the time.
const AT_ONCE: usize = 40;

/// The columns of a row. The last two have their default values in nearly all rows.
const COLUMNS: [&str; 7] = ["EPD", "Move", "Win", "Draw", "Loss", "Active", "Comment"];

/// The number of bytes at which a block of rows is handed over.
pub(super) const BLOCK: usize = 1 << 20;

/// Rows that are about to be inserted, with their texts in one string.
///
/// The thread that inserts rows is the slowest, so another thread prepares everything for it.
#[derive(Default)]
pub(super) struct RowBlock {
    text: String,
    rows: Vec<NewRow>,
}

/// A row of the table `Book`, with the ranges of its texts in the block.
struct NewRow {
    epd: Range<usize>,
    mv: Range<usize>,
    comment: Option<Range<usize>>,
    active: i64,
    stats: Stats,
}

impl RowBlock {
    fn say(&mut self, text: &str) -> Range<usize> {
        let start = self.text.len();
        self.text.push_str(text);
        start..self.text.len()
    }

    /// Replaces `text` with the fields of a row in the order of the table, separated by tabs.
    fn write_fields(&self, row: &NewRow, text: &mut Vec<u8>) {
        let mut number = itoa::Buffer::new();
        text.clear();
        text.extend_from_slice(&self.text.as_bytes()[row.epd.clone()]);
        text.push(b'\t');
        text.extend_from_slice(&self.text.as_bytes()[row.mv.clone()]);
        text.push(b'\t');
        text.extend_from_slice(number.format(row.active).as_bytes());
        for games in [row.stats.wins, row.stats.draws, row.stats.losses] {
            text.push(b'\t');
            text.extend_from_slice(number.format(games).as_bytes());
        }
        text.push(b'\t');
        if let Some(comment) = row.comment.clone() {
            text.extend_from_slice(&self.text.as_bytes()[comment]);
        }
    }

    /// Returns the columns to insert. Leaves out the columns in which all rows have the default, because each column takes time.
    fn columns(&self) -> &'static [&'static str] {
        let is_plain = |row: &NewRow| row.active == ObsRow::ACTIVE && row.comment.is_none();
        match self.rows.iter().all(is_plain) {
            true => &COLUMNS[..5],
            false => &COLUMNS,
        }
    }

    /// Binds `rows` to a statement that inserts exactly this many rows, and runs it.
    fn insert(
        &self,
        rows: &[NewRow],
        statement: &mut Statement<'_>,
        columns: usize,
    ) -> rusqlite::Result<()> {
        let number = |games: u64| i64::try_from(games).expect("sums of counts stay within 63 bits");
        let mut first = 1;
        for row in rows {
            statement.raw_bind_parameter(first, &self.text[row.epd.clone()])?;
            statement.raw_bind_parameter(first + 1, &self.text[row.mv.clone()])?;
            statement.raw_bind_parameter(first + 2, number(row.stats.wins))?;
            statement.raw_bind_parameter(first + 3, number(row.stats.draws))?;
            statement.raw_bind_parameter(first + 4, number(row.stats.losses))?;
            if columns == COLUMNS.len() {
                statement.raw_bind_parameter(first + 5, row.active)?;
                let comment = row.comment.clone().map(|comment| &self.text[comment]);
                statement.raw_bind_parameter(first + 6, comment)?;
            }
            first += columns;
        }
        statement.raw_execute()?;
        Ok(())
    }
}

/// Collects rows in blocks, and hands them over to the inserting thread.
pub(super) struct Gatherer<'a> {
    pub blocks: &'a Feeder<RowBlock>,
    pub block: RowBlock,
    /// The path that errors name.
    pub target: &'a Path,
}

impl Gatherer<'_> {
    /// Adds the next row.
    ///
    /// # Errors
    ///
    /// Returns an error if the row has more games than readers accept.
    pub(super) fn take(
        &mut self,
        epd: &str,
        mv: &str,
        active: i64,
        stats: Stats,
        comment: Option<&str>,
    ) -> Result<()> {
        let games = stats.wins.max(stats.draws).max(stats.losses);
        if games > MOST_GAMES as u64 {
            let too_many = ObsError::TooManyGames {
                epd: epd.to_owned(),
                mv: mv.to_owned(),
                games,
                most: MOST_GAMES as u64,
            };
            return Err(too_many.at(self.target));
        }
        let block = &mut self.block;
        let row = NewRow {
            epd: match block.rows.last() {
                Some(last) if block.text[last.epd.clone()] == *epd => last.epd.clone(),
                _ => block.say(epd),
            },
            mv: block.say(mv),
            comment: comment.map(|comment| block.say(comment)),
            active,
            stats,
        };
        block.rows.push(row);
        if block.text.len() + block.rows.len() * size_of::<NewRow>() >= BLOCK {
            self.hand_over()?;
        }
        Ok(())
    }

    /// Hands over the rows that were collected.
    pub(super) fn hand_over(&mut self) -> Result<()> {
        task::fault("gather");
        self.blocks.send(std::mem::take(&mut self.block))
    }
}

/// Inserts rows into the table `Book`.
pub(super) struct BookTable<'a> {
    pub db: &'a Connection,
    /// The number of rows that were inserted.
    pub rows: u64,
    /// The checksum of the rows that were inserted.
    pub checksum: Checksum,
}

impl BookTable<'_> {
    /// Inserts the rows of a block.
    pub(super) fn insert(&mut self, block: &RowBlock) -> rusqlite::Result<()> {
        let columns = block.columns();
        let mut statement = self.db.prepare_cached(&insertion(columns, AT_ONCE))?;
        let (whole, rest) = block.rows.as_chunks::<AT_ONCE>();
        for rows in whole {
            block.insert(rows, &mut statement, columns.len())?;
        }
        if !rest.is_empty() {
            let mut statement = self.db.prepare(&insertion(columns, rest.len()))?;
            block.insert(rest, &mut statement, columns.len())?;
        }
        self.rows += block.rows.len() as u64;
        let mut text = Vec::new();
        for row in &block.rows {
            block.write_fields(row, &mut text);
            self.checksum.add(&text);
        }
        Ok(())
    }
}

/// Returns a statement that inserts this many rows. ROLLBACK saves SQLite a statement journal: a failure discards the whole file.
fn insertion(columns: &[&str], rows: usize) -> String {
    let row = format!("({})", vec!["?"; columns.len()].join(","));
    let rows = vec![row; rows].join(",");
    let names = columns.join(", ");
    format!("INSERT OR ROLLBACK INTO Book ({names}) VALUES {rows}")
}

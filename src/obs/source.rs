//! Finds the columns of a database, and reads its cells.

use std::path::Path;

use rusqlite::{Connection, functions::FunctionFlags, types::ValueRef};

use super::{
    error::{ObsError, Sql},
    row::ObsRow,
};
use crate::{
    counts::Stats,
    error::Result,
    position::{Variant, epd_of},
};

/// The maximum number of games of one result in a row. Larger than any collection, and small enough that sums cannot overflow.
pub(super) const MOST_GAMES: i64 = 1 << 36;

/// The maximum number of characters of an EPD, including counters and operations. No real EPD is longer.
const LONGEST_EPD: usize = 1 << 10;

/// The maximum number of characters of a move. No real move is longer.
const LONGEST_MOVE: usize = 1 << 6;

/// Queries that read the columns of an [`ObsRow`] from wherever a database has them.
#[derive(Debug)]
pub(super) struct Queries {
    /// Selects the columns of an [`ObsRow`] from all rows, in the order of the table.
    pub select: String,
    /// The clause that sorts rows by EPD, then by move, both in byte order, then in the order of the table.
    pub order: String,
    /// Selects the columns of an [`ObsRow`] in that order, with EPDs respelled by the function that [`add_spelling`] defines.
    pub respelled: String,
    /// The expression of the EPD, for conditions.
    pub epd: &'static str,
}

impl Queries {
    pub(super) fn of(db: &Connection, path: &Path) -> Result<Queries> {
        let columns = columns(db, "Book").sql(path, "read")?;
        let has = |name: &str| {
            columns
                .iter()
                .any(|column| column.eq_ignore_ascii_case(name))
        };
        let in_two_tables = !has("EPD") && has("EPDID");
        let needed = ["Move", "Win", "Draw", "Loss"];
        if let Some(missing) = needed.into_iter().find(|name| !has(name)) {
            return Err(ObsError::MissingColumn(missing).at(path));
        }
        if !has("EPD") && !in_two_tables {
            return Err(ObsError::MissingColumn("EPD").at(path));
        }
        let optional = |name: &str| match has(name) {
            true => format!("b.{name}"),
            false => "NULL".to_owned(),
        };
        let (epd, join) = match in_two_tables {
            true => ("e.EPD", " JOIN EPD e ON e.ID = b.EPDID"),
            false => ("b.EPD", ""),
        };
        let others = format!(
            "b.Move AS Move, {} AS Active, b.Win AS Win, b.Draw AS Draw, b.Loss AS Loss, {} FROM Book b{join}",
            optional("Active"),
            optional("Comment"),
        );
        // A table may have been created WITHOUT ROWID.
        let number = match db.prepare("SELECT rowid FROM Book LIMIT 0") {
            Ok(_) => ", b.rowid",
            Err(_) => "",
        };
        let order = format!("ORDER BY {epd} COLLATE BINARY, b.Move COLLATE BINARY{number}");
        Ok(Queries {
            select: format!("SELECT {epd} AS EPD, {others}"),
            respelled: format!(
                "SELECT coalesce({SPELLING}({epd}), {epd}) AS EPD, {others}
                 ORDER BY 1 COLLATE BINARY, 2 COLLATE BINARY{number}"
            ),
            order,
            epd,
        })
    }
}

/// The name of the SQL function that returns polybook's spelling of an EPD, or NULL if it cannot read the EPD.
const SPELLING: &str = "polybook_epd";

/// Defines the SQL function that spells the EPDs of `variant` as polybook does.
pub(super) fn add_spelling(db: &Connection, variant: Variant) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8
        | FunctionFlags::SQLITE_DETERMINISTIC
        | FunctionFlags::SQLITE_DIRECTONLY;
    db.create_scalar_function(SPELLING, 1, flags, move |call| {
        let read = text(call.get_raw(0), LONGEST_EPD).ok();
        Ok(read.and_then(|epd| respelled(variant, epd)))
    })
}

/// Returns the EPD that polybook writes for the position of an EPD, or `None` if the EPD cannot be read.
///
/// Other programs write castling rights in another order, an en passant square after every double step, counters and operations
/// at the end, and empty brackets if no piece is in hand.
pub(super) fn respelled(variant: Variant, epd: &str) -> Option<String> {
    let pos = variant.parse_position(epd).ok()?;
    Some(epd_of(&pos))
}

fn columns(db: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = db.prepare("SELECT name FROM pragma_table_info(?1)")?;
    let names = statement.query_map([table], |row| row.get(0))?;
    names.collect()
}

/// Reads a row of [`Queries::select`]. The inner result is an error if the row is malformed.
pub(super) fn read_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Result<ObsRow, ObsError>> {
    let epd = match text(row.get_ref(0)?, LONGEST_EPD) {
        Ok(epd) => epd,
        Err(problem) => return Ok(malformed(format!("a row has an EPD that {problem}"))),
    };
    let mv = match text(row.get_ref(1)?, LONGEST_MOVE) {
        Ok(mv) => mv,
        Err(problem) => {
            return Ok(malformed(format!(
                "a row of \"{epd}\" has a move that {problem}"
            )));
        }
    };
    let mut numbers = [0; 3];
    for (column, number) in (3..).zip(&mut numbers) {
        *number = match integer(row.get_ref(column)?, 0) {
            Some(games @ 0..=MOST_GAMES) => games as u64,
            Some(games) => {
                let mv = mv.to_owned();
                let epd = epd.to_owned();
                return Ok(Err(ObsError::ImpossibleGames { epd, mv, games }));
            }
            None => {
                return Ok(malformed(format!(
                    "\"{epd}\" \"{mv}\" has a count that is not a number"
                )));
            }
        };
    }
    let [wins, draws, losses] = numbers;
    let Some(active) = integer(row.get_ref(2)?, ObsRow::ACTIVE) else {
        return Ok(malformed(format!(
            "\"{epd}\" \"{mv}\" has an Active that is not a number"
        )));
    };
    Ok(Ok(ObsRow {
        epd: epd.to_owned(),
        mv: mv.to_owned(),
        active,
        stats: Stats {
            wins,
            draws,
            losses,
        },
        comment: comment(row.get_ref(6)?),
    }))
}

fn malformed(problem: String) -> Result<ObsRow, ObsError> {
    Err(ObsError::MalformedRow(problem))
}

/// Reads a cell that must contain a short printable text. The error describes the problem.
fn text(value: ValueRef<'_>, longest: usize) -> Result<&str, &'static str> {
    match value {
        ValueRef::Text([]) => Err("is empty"),
        ValueRef::Text(bytes) if bytes.len() > longest => Err("is too long"),
        ValueRef::Text(bytes) => match str::from_utf8(bytes) {
            Ok(text) if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) => Ok(text),
            _ => Err("is not printable ASCII"),
        },
        ValueRef::Null => Err("is NULL"),
        _ => Err("is not text"),
    }
}

/// Reads a comment. Any text is accepted; `None` if the cell has another type.
fn comment(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Text(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => None,
    }
}

/// Reads an integer, which SQLite may store as any type. Returns `empty` for NULL, and `None` if the cell is not a number.
fn integer(value: ValueRef<'_>, empty: i64) -> Option<i64> {
    match value {
        ValueRef::Null => Some(empty),
        ValueRef::Integer(number) => Some(number),
        ValueRef::Real(number) if number.fract() == 0.0 => Some(number as i64),
        ValueRef::Text(bytes) => str::from_utf8(bytes).ok()?.trim().parse().ok(),
        _ => None,
    }
}

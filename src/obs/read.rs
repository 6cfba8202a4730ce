//! Reading databases, those of other programs too.

use std::{
    cmp::Ordering,
    path::{Path, PathBuf},
};

use rusqlite::{Connection, OpenFlags, config::DbConfig, types::ValueRef};
use shakmaty::{Position, uci::UciMove};

use super::{Sql, info::Info};
use crate::{
    book::Factors,
    error::{Error, Result},
    position::{BookMove, Rules, read_move, write_epd},
    tally::Stats,
};

/// More games than this were never played, and sums of them stay within all types.
const MOST_GAMES: i64 = 1 << 36;

/// An open database.
///
/// It is read as it is: with or without an index, with rows in any order, columns in any order and
/// more of them, and positions in a table of their own, as the standard's tool can have it.
#[derive(Debug)]
pub struct Obs {
    path: PathBuf,
    db: Connection,
    info: Info,
    source: Source,
}

/// A row of a database.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// The position.
    pub epd: String,
    /// The move in coordinates.
    pub mv: String,
    /// Bits; the lowest is set if the move is to be played.
    pub active: i64,
    /// The games in which it was played, for the side to move.
    pub stats: Stats,
    /// What somebody said of it.
    pub comment: Option<String>,
}

impl Row {
    /// The order of the rows of a position: the most games first, and of equal ones by the move.
    pub fn by_games(a: &Row, b: &Row) -> Ordering {
        let games = b.stats.games().cmp(&a.stats.games());
        games.then_with(|| a.mv.cmp(&b.mv))
    }

    /// Whether the move is to be played.
    pub fn is_active(&self) -> bool {
        self.active & 1 == 1
    }
}

/// Where in the database things are.
#[derive(Debug)]
struct Source {
    /// The columns of a [`Row`] and where they come from.
    select: String,
    /// What to compare with to find a position.
    epd: &'static str,
}

impl Source {
    fn of(db: &Connection, path: &Path) -> Result<Source> {
        let columns = columns(db, "Book").sql(path, "read")?;
        let has = |name: &str| {
            columns
                .iter()
                .any(|column| column.eq_ignore_ascii_case(name))
        };
        let in_two_tables = !has("EPD") && has("EPDID");
        let needed = ["Move", "Win", "Draw", "Loss"];
        if let Some(missing) = needed.iter().find(|name| !has(name)) {
            return Err(no_database(path, missing));
        }
        if !has("EPD") && !in_two_tables {
            return Err(no_database(path, "EPD"));
        }
        let optional = |name: &str, default: &str| {
            if has(name) {
                format!("coalesce(b.{name}, {default})")
            } else {
                default.to_owned()
            }
        };
        let epd = if in_two_tables { "e.EPD" } else { "b.EPD" };
        let join = if in_two_tables {
            " JOIN EPD e ON e.ID = b.EPDID"
        } else {
            ""
        };
        let select = format!(
            "SELECT {epd} AS EPD, b.Move AS Move, {} AS Active, b.Win AS Win, b.Draw AS Draw, b.Loss AS Loss, {} FROM Book b{join}",
            // What nobody has said is to be played.
            optional("Active", "1"),
            optional("Comment", "NULL"),
        );
        Ok(Source { select, epd })
    }
}

fn no_database(path: &Path, missing: &str) -> Error {
    Error::file(
        path,
        format!("is no OOBS database: it has no table Book with a column {missing}"),
    )
}

fn columns(db: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = db.prepare("SELECT name FROM pragma_table_info(?1)")?;
    let names = statement.query_map([table], |row| row.get(0))?;
    names.collect()
}

impl Obs {
    /// Opens a database.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, or that is no such database.
    pub fn open(path: impl AsRef<Path>) -> Result<Obs> {
        let path = path.as_ref();
        if !super::is_database(path)? {
            return Err(Error::file(path, "is no OOBS database: it is not SQLite's"));
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = Connection::open_with_flags(path, flags).sql(path, "open")?;
        // What stands in the file is data, and nothing in it is to be run.
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)
            .and_then(|_| db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false))
            .sql(path, "open")?;
        let name = path.file_name().unwrap_or(path.as_os_str());
        let info = Info::read(&db, &name.to_string_lossy()).sql(path, "read")?;
        let source = Source::of(&db, path)?;
        Ok(Obs {
            path: path.to_owned(),
            db,
            info,
            source,
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the database says of itself.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// The rows of a position, those not to be played among them, the most games first.
    ///
    /// # Errors
    ///
    /// A database that cannot be read.
    pub fn moves<P: Position>(&self, pos: &P) -> Result<Vec<Row>> {
        let mut epd = Vec::new();
        write_epd(pos, &mut epd);
        let epd = String::from_utf8_lossy(&epd);
        let mut rows = Vec::new();
        let query = format!("{} WHERE {} = ?1", self.source.select, self.source.epd);
        self.query(&query, [&*epd], |row| {
            rows.push(row);
            Ok(())
        })?;
        rows.sort_by(Row::by_games);
        Ok(rows)
    }

    /// The largest weight of an active row before scaling. Looks at all of them.
    ///
    /// # Errors
    ///
    /// A database that cannot be read.
    pub fn largest_weight(&self, factors: Factors) -> Result<u64> {
        let Factors { win, draw, loss } = factors;
        let query = format!(
            "SELECT max({win} * Win + {draw} * Draw + {loss} * Loss) FROM ({}) WHERE Active & 1",
            self.source.select
        );
        let largest = self
            .db
            .query_row(&query, [], |row| integer(row.get_ref(0)?).map_or(Ok(0), Ok));
        Ok(u64::try_from(largest.sql(&self.path, "read")?).unwrap_or(0))
    }

    /// Calls `f` with every row, in the order of the table.
    ///
    /// # Errors
    ///
    /// A database that cannot be read, or what `f` answers.
    pub fn for_each(&self, f: impl FnMut(Row) -> Result<()>) -> Result<()> {
        self.query(&self.source.select, [], f)
    }

    /// Calls `f` with every row in the order of EPDs, byte by byte.
    ///
    /// # Errors
    ///
    /// A database that cannot be read, or what `f` answers.
    pub fn for_each_by_epd(&self, f: impl FnMut(Row) -> Result<()>) -> Result<()> {
        let Source { select, epd } = &self.source;
        self.query(&format!("{select} ORDER BY {epd} COLLATE BINARY"), [], f)
    }

    fn query(
        &self,
        query: &str,
        parameters: impl rusqlite::Params,
        mut f: impl FnMut(Row) -> Result<()>,
    ) -> Result<()> {
        let doing = "read";
        let mut statement = self.db.prepare_cached(query).sql(&self.path, doing)?;
        let mut rows = statement.query(parameters).sql(&self.path, doing)?;
        while let Some(row) = rows.next().sql(&self.path, doing)? {
            let row = read_row(row).sql(&self.path, doing)?;
            f(row.map_err(|problem| Error::file(&self.path, problem))?)?;
        }
        Ok(())
    }
}

/// A row, or what is impossible in it.
fn read_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<std::result::Result<Row, String>> {
    let epd = text(row.get_ref(0)?).unwrap_or_default();
    let mv = text(row.get_ref(1)?).unwrap_or_default();
    let mut numbers = [0; 3];
    for (column, number) in (3..).zip(&mut numbers) {
        *number = match integer(row.get_ref(column)?).unwrap_or(0) {
            games @ 0..=MOST_GAMES => games as u64,
            games => {
                return Ok(Err(format!(
                    "the row of \"{epd}\" \"{mv}\" has {games} games, which cannot be: correct or delete it"
                )));
            }
        };
    }
    let [wins, draws, losses] = numbers;
    Ok(Ok(Row {
        epd,
        mv,
        active: integer(row.get_ref(2)?).unwrap_or(1),
        stats: Stats {
            wins,
            draws,
            losses,
        },
        comment: text(row.get_ref(6)?),
    }))
}

/// The legal move that a row's text is: in coordinates, or as people write moves.
pub fn legal_move<P: Rules>(pos: &P, text: &str) -> Option<BookMove> {
    let coordinates = UciMove::from_ascii(text.as_bytes());
    let mv = coordinates.ok().and_then(|mv| mv.to_move(pos).ok());
    mv.or_else(|| read_move(pos, text.as_bytes()).ok())
        .map(BookMove::from)
}

fn text(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
        _ => None,
    }
}

/// SQLite lets people write numbers as they like.
fn integer(value: ValueRef<'_>) -> Option<i64> {
    match value {
        ValueRef::Integer(number) => Some(number),
        ValueRef::Real(number) => Some(number as i64),
        ValueRef::Text(_) => text(value)?.trim().parse().ok(),
        _ => None,
    }
}

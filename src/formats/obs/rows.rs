//! Reads the rows of the table `Book` in an OOBS database. Contains the type [`ObsRow`], the SQL [`Queries`] that read
//! rows from databases with different columns, and the iterator [`Rows`], which reads ahead in a separate thread.

use std::{
    cmp::Ordering,
    fmt,
    iter::FusedIterator,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, atomic::AtomicBool},
    thread::{self, JoinHandle},
    time::Duration,
    vec,
};

use rusqlite::{Connection, InterruptHandle, functions::FunctionFlags, types::ValueRef};
use shakmaty::{uci::UciMove, variant::VariantPosition};

use super::{
    connection::{DatabaseState, PooledConnection},
    error::{ObsError, Sql},
    info::ChecksumCheck,
};
use crate::{
    chess::position::{BookMove, LineError, Rules, Variant, epd_of, read_move},
    error::{Result, plural},
    games::results::Wdl,
    task::{self, Feed, Feeder},
};

/// A row of an OOBS database: the results of one move in one position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObsRow {
    /// The EPD of the position.
    pub epd: String,
    /// The move in coordinate notation, such as `e2e4`.
    pub mv: String,
    /// The bits of the column `Active`. The standard defines only the lowest bit; the others are preserved.
    pub active: i64,
    /// The results of the games in which the move was played, from the point of view of the side to move.
    pub stats: Wdl,
    /// A comment on the move.
    pub comment: Option<String>,
}

impl ObsRow {
    /// Compares two rows of one position. The row with more games comes first. Rows with the same number of games are
    /// in alphabetical order of their moves.
    pub fn by_games(a: &ObsRow, b: &ObsRow) -> Ordering {
        let games = b.stats.games().cmp(&a.stats.games());
        games.then_with(|| a.mv.cmp(&b.mv))
    }

    /// The default value of the column `Active`. Its lowest bit is set, which means that the move may be played.
    pub const ACTIVE: i64 = 1;

    /// Returns `true` if the move may be played.
    pub fn is_active(&self) -> bool {
        self.active & 1 == 1
    }

    /// Returns the approximate memory usage of the row in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let comment = self.comment.as_ref().map_or(0, String::len);
        size_of::<ObsRow>() + self.epd.len() + self.mv.len() + comment
    }

    /// Adds the results of `other` to this row. `other` must have the same position and move. If this row has no
    /// comment, gives it the comment of `other`.
    pub(super) fn join(&mut self, other: ObsRow) {
        self.stats += other.stats;
        self.comment = self.comment.take().or(other.comment);
    }
}

/// The number of rows that a reader skipped, with a description of the first one. Rows are skipped if they are
/// malformed or their move is illegal.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SkippedRows {
    /// The number of skipped rows.
    pub rows: u64,
    /// A description of the first skipped row, or `None` if no row was skipped.
    pub example: Option<String>,
}

/// The reason, in a warning, why a row with an illegal move was skipped.
pub(crate) const NOT_LEGAL: &str = "this is not a legal move in the position";

impl SkippedRows {
    /// Counts `row` as skipped. `reason` is the reason why the row is skipped. If this is the first skipped row, also
    /// stores a description of the row and the reason.
    pub(crate) fn row(&mut self, row: &ObsRow, reason: &str) {
        self.rows += 1;
        self.example
            .get_or_insert_with(|| format!("\"{}\" \"{}\": {reason}", row.epd, row.mv));
    }

    /// Counts a row that is skipped because it cannot be read. If this is the first skipped row, stores `problem`, a
    /// description of the row and the reason.
    pub(super) fn problem(&mut self, problem: String) {
        self.rows += 1;
        self.example.get_or_insert(problem);
    }

    /// Returns a warning about the skipped rows of the database `name`, or `None` if no row was skipped.
    pub fn warning(&self, name: impl fmt::Display) -> Option<String> {
        let example = self.example.as_ref()?;
        Some(format!(
            "warning: {name}: {} skipped: {example}",
            plural(self.rows, "row")
        ))
    }

    /// Adds the rows that another reader has skipped to those in `self`. Takes the description of the first skipped row
    /// from `other` only if `self` has none.
    pub(crate) fn add(&mut self, other: SkippedRows) {
        self.rows += other.rows;
        self.example = self.example.take().or(other.example);
    }
}

/// Parses the move of a row, in coordinate notation (`e2e4`) or algebraic notation. Returns `None` if `text` is not a
/// legal move in `pos`.
pub fn legal_move<P: Rules>(pos: &P, text: &str) -> Option<BookMove> {
    let coordinates = UciMove::from_ascii(text.as_bytes());
    let mv = coordinates.ok().and_then(|mv| mv.to_move(pos).ok());
    mv.or_else(|| read_move(pos, text.as_bytes()).ok())
        .map(BookMove::from)
}

/// The maximum value of each of the columns `Win`, `Draw` and `Loss` in a row of the table `Book`. No collection
/// contains that many games, and sums of values up to this maximum cannot overflow.
pub(super) const MAX_GAMES_PER_ROW: i64 = 1 << 36;

/// The maximum length of an EPD in characters, including counters and operations. A longer string is not parsed.
const MAX_EPD_LENGTH: usize = 1 << 10;

/// The maximum length of a move in characters. A longer string is not parsed.
const MAX_MOVE_LENGTH: usize = 1 << 6;

/// The SQL queries that read [`ObsRow`]s from one database. The text of the queries depends on the tables and columns
/// of the database.
#[derive(Debug)]
pub(super) struct Queries {
    /// The query that returns all rows, in the order of the table, with the columns of an [`ObsRow`]. The query does
    /// not use an SQL index, because the checksum of the database does not cover indexes.
    pub select: String,
    /// The query `select` for use with a condition or an order, for which SQLite may use an SQL index.
    pub indexed: String,
    /// Whether the EPDs are in a separate table.
    pub in_two_tables: bool,
    /// The tables of the database that polybook reads.
    pub tables: Vec<&'static str>,
    /// The clause that sorts rows by EPD and then by move, both in byte order, and then in the order of the table.
    pub order: String,
    /// The query that returns all rows, sorted by EPD and then by move, with the columns of an [`ObsRow`]. EPDs and
    /// moves are converted by the SQL functions that [`add_spelling`] defines.
    pub respelled: String,
    /// The SQL expression of the EPD, for use in conditions.
    pub epd: &'static str,
}

impl Queries {
    pub(super) fn of(db: &Connection, path: &Path) -> Result<Queries> {
        let mut tables = Vec::new();
        for table in ["Book", "Info", "EPD"] {
            if !is_plain_table(db, table).sql(path, "read")? {
                return Err(ObsError::NotPlainTable(table).at(path));
            }
            if db.table_exists(None, table).sql(path, "read")? {
                tables.push(table);
            }
        }
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
        let optional = |name: &str| {
            if has(name) {
                format!("b.{name}")
            } else {
                "NULL".to_owned()
            }
        };
        // CROSS JOIN reads the rows of Book in the order of the table.
        let (epd, join) = if in_two_tables {
            ("e.EPD", " CROSS JOIN EPD e ON e.ID = b.EPDID")
        } else {
            ("b.EPD", "")
        };
        let others = format!(
            "{} AS Active, b.Win AS Win, b.Draw AS Draw, b.Loss AS Loss, {}",
            optional("Active"),
            optional("Comment"),
        );
        let unindexed = format!("FROM Book b NOT INDEXED{join}");
        let indexed = format!("FROM Book b{}", join.replace("CROSS ", ""));
        // A table may have been created WITHOUT ROWID.
        let number = match db.prepare("SELECT rowid FROM Book LIMIT 0") {
            Ok(_) => ", b.rowid",
            Err(_) => "",
        };
        let order = format!("ORDER BY {epd} COLLATE BINARY, b.Move COLLATE BINARY{number}");
        Ok(Queries {
            select: format!("SELECT {epd} AS EPD, b.Move AS Move, {others} {unindexed}"),
            indexed: format!("SELECT {epd} AS EPD, b.Move AS Move, {others} {indexed}"),
            in_two_tables,
            tables,
            respelled: format!(
                "SELECT coalesce({EPD_SPELLING_FUNCTION}({epd}), {epd}) AS EPD, coalesce({MOVE_SPELLING_FUNCTION}({epd}, b.Move), b.Move) AS Move, {others} {unindexed}
                 ORDER BY 1 COLLATE BINARY, 2 COLLATE BINARY{number}"
            ),
            order,
            epd,
        })
    }
}

/// The name of the SQL function that converts an EPD to polybook's spelling. The function returns NULL if the EPD
/// cannot be read.
const EPD_SPELLING_FUNCTION: &str = "polybook_epd";

/// The name of the SQL function that converts a move to polybook's spelling. The function takes the EPD of the
/// position and the move, and returns NULL if the move is not legal.
const MOVE_SPELLING_FUNCTION: &str = "polybook_move";

/// Defines two SQL functions on the connection `db`, which convert EPDs and moves of `variant` to the spelling that
/// polybook writes. Other programs use other spellings. For example, they write an en passant square to which no pawn
/// can capture, or castling as a move of the king to the rook's square.
pub(super) fn add_spelling(db: &Connection, variant: Variant) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8
        | FunctionFlags::SQLITE_DETERMINISTIC
        | FunctionFlags::SQLITE_DIRECTONLY;
    db.create_scalar_function(EPD_SPELLING_FUNCTION, 1, flags, move |call| {
        let read = text(call.get_raw(0), MAX_EPD_LENGTH).ok();
        Ok(read.and_then(|epd| respelled(variant, epd)))
    })?;
    db.create_scalar_function(MOVE_SPELLING_FUNCTION, 2, flags, move |call| {
        let epd = text(call.get_raw(0), MAX_EPD_LENGTH).ok();
        let mv = text(call.get_raw(1), MAX_MOVE_LENGTH).ok();
        let pos = epd.and_then(|epd| position_of(variant, epd).ok());
        let spelled = pos
            .zip(mv)
            .and_then(|(pos, mv)| Some(legal_move(&pos, mv)?.uci(&pos)));
        Ok(spelled)
    })
}

/// A parser for the EPDs of consecutive rows. The parser remembers the previous EPD and its position, so that the
/// common EPD of adjacent rows is parsed only once.
pub(super) struct PositionCheck {
    variant: Variant,
    epd: String,
    /// The position of `epd`, or the reason why `epd` cannot be read.
    read: Result<VariantPosition, String>,
}

impl PositionCheck {
    pub(super) fn new(variant: Variant) -> PositionCheck {
        PositionCheck {
            variant,
            epd: String::new(),
            read: Err(String::new()),
        }
    }

    /// Parses `epd`, or returns the remembered position if `epd` equals the previous EPD.
    ///
    /// # Errors
    ///
    /// If `epd` cannot be read, returns the reason as a string.
    pub(super) fn position(&mut self, epd: &str) -> Result<&VariantPosition, &str> {
        if self.epd != epd {
            let read = position_of(self.variant, epd);
            self.read = read.map_err(|err| err.to_string());
            epd.clone_into(&mut self.epd);
        }
        self.read.as_ref().map_err(|reason| &**reason)
    }
}

/// Parses the EPD of a row in a database of `variant`.
///
/// Other programs may write castling rights in another order, or an en passant square after every double step. Some
/// programs add counters and operations, or empty brackets if no piece is in hand, even if pieces are never in hand in
/// the variant.
pub(crate) fn position_of(variant: Variant, epd: &str) -> Result<VariantPosition, LineError> {
    match epd.split_once("[]") {
        Some((board, rest)) if variant != Variant::Crazyhouse => {
            variant.parse_position(&format!("{board}{rest}"))
        }
        _ => variant.parse_position(epd),
    }
}

/// Converts an EPD of `variant` to the spelling that polybook writes. Returns `None` if the EPD cannot be read.
pub(super) fn respelled(variant: Variant, epd: &str) -> Option<String> {
    let pos = position_of(variant, epd).ok()?;
    Some(epd_of(&pos))
}

/// Returns `true` if `table` is neither a view nor a virtual table and has no generated columns, or if it does not
/// exist.
fn is_plain_table(db: &Connection, table: &str) -> rusqlite::Result<bool> {
    // Only ordinary tables have a root page. A virtual table must not be examined, because that would run its code.
    let is_other = "SELECT count(*) FROM sqlite_schema NOT INDEXED WHERE CAST(name AS TEXT) COLLATE NOCASE = ?1
                    AND type IN ('table', 'view') AND (type <> 'table' OR coalesce(rootpage, 0) <= 0)";
    let is_generated = "SELECT count(*) FROM pragma_table_xinfo(?1) WHERE hidden <> 0";
    for query in [is_other, is_generated] {
        if db.query_row(query, [table], |row| row.get::<_, i64>(0))? > 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

fn columns(db: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = db.prepare("SELECT name FROM pragma_table_info(?1)")?;
    let names = statement.query_map([table], |row| row.get(0))?;
    names.collect()
}

/// Converts a result row of [`Queries::select`] to an [`ObsRow`]. The outer `Result` is an error if SQLite fails. The
/// inner `Result` is an error if a value of the row is malformed.
pub(super) fn read_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Result<ObsRow, ObsError>> {
    let epd = match text(row.get_ref(0)?, MAX_EPD_LENGTH) {
        Ok(epd) => epd,
        Err(problem) => return Ok(malformed(format!("a row contains an EPD that {problem}"))),
    };
    let mv = match text(row.get_ref(1)?, MAX_MOVE_LENGTH) {
        Ok(mv) => mv,
        Err(problem) => {
            return Ok(malformed(format!(
                "a row of the position \"{epd}\" contains a move that {problem}"
            )));
        }
    };
    let mut numbers = [0; 3];
    for (column, number) in (3..).zip(&mut numbers) {
        *number = match integer(row.get_ref(column)?, 0) {
            Some(games @ 0..=MAX_GAMES_PER_ROW) => games as u64,
            Some(games) => {
                let mv = mv.to_owned();
                let epd = epd.to_owned();
                return Ok(Err(ObsError::ImpossibleGames { epd, mv, games }));
            }
            None => {
                return Ok(malformed(format!(
                    "in the position \"{epd}\", the row of the move \"{mv}\" contains a count that is not a number"
                )));
            }
        };
    }
    let [wins, draws, losses] = numbers;
    let Some(active) = integer(row.get_ref(2)?, ObsRow::ACTIVE) else {
        return Ok(malformed(format!(
            "in the position \"{epd}\", the row of the move \"{mv}\" contains a value of Active that is not a number"
        )));
    };
    Ok(Ok(ObsRow {
        epd: epd.to_owned(),
        mv: mv.to_owned(),
        active,
        stats: Wdl {
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

/// Returns the string in `value`, the value of a column. The string must consist of 1 to `longest` printable ASCII
/// characters.
///
/// # Errors
///
/// If `value` is anything else, returns a phrase for an error message, such as "is too long".
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

/// Returns the comment in `value`, the value of a row in the column `Comment`, or `None` if it is not text.
fn comment(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Text(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => None,
    }
}

/// Returns the integer in `value`, the value of a column. SQLite may store the integer as an integer, a floating-point
/// number or a string. Returns `empty` if the value is NULL, and `None` if it is anything else.
fn integer(value: ValueRef<'_>, empty: i64) -> Option<i64> {
    match value {
        ValueRef::Null => Some(empty),
        ValueRef::Integer(number) => Some(number),
        ValueRef::Real(number) if number.fract() == 0.0 => Some(number as i64),
        ValueRef::Text(bytes) => str::from_utf8(bytes).ok()?.trim().parse().ok(),
        _ => None,
    }
}

/// The number of rows at which a [`Chunk`] is full. A chunk is also full when it reaches [`CHUNK_BYTES`].
const CHUNK_ROWS: usize = 1 << 10;
/// The size in bytes at which a [`Chunk`] is full.
const CHUNK_BYTES: usize = 1 << 17;

/// The maximum number of chunks of rows that the reading thread keeps ready for the iterator.
const MAX_QUEUED_CHUNKS: usize = 2;

/// An iterator over the rows of an OOBS database.
///
/// A separate thread with its own connection reads the rows before the iterator needs them. The thread ends when the
/// iterator is dropped. The iterator ends after its first error. If the checksum of the database does not match, it
/// yields an error after the last row.
pub struct Rows {
    ready: vec::IntoIter<ObsRow>,
    skipped_rows: SkippedRows,
    /// The chunks that the thread sends, or `None` at the end.
    chunks: Option<Feed<Chunk>>,
    reader: Option<JoinHandle<()>>,
    interrupt: InterruptHandle,
    /// The connection of the thread. The connection returns to the pool after the thread has ended, so that the next
    /// user of the connection is not interrupted.
    db: Option<Arc<Mutex<PooledConnection>>>,
}

/// A group of rows that the reading thread sends to the iterator in one message.
#[derive(Default, Debug)]
struct Chunk {
    rows: Vec<ObsRow>,
    bytes: usize,
    skipped_rows: SkippedRows,
}

impl Chunk {
    fn push(&mut self, row: ObsRow) {
        self.bytes += row.bytes();
        self.rows.push(row);
    }

    fn is_full(&self) -> bool {
        self.rows.len() >= CHUNK_ROWS || self.bytes >= CHUNK_BYTES
    }
}

impl Rows {
    /// Starts a thread that runs the SQL query `query` on the connection `db`, and returns an iterator over the
    /// resulting rows. If `is_ordered` is `true`, the rows must be sorted by EPD and then by move. The iterator yields
    /// an error if they are not, which shows that an SQL index is damaged. Error messages name the database file
    /// `path`.
    ///
    /// # Errors
    ///
    /// Returns an error if the thread cannot be started.
    pub(super) fn of_query(
        db: PooledConnection,
        query: String,
        is_ordered: bool,
        path: PathBuf,
    ) -> Result<Rows> {
        let interrupt = db.get_interrupt_handle();
        let db = Arc::new(Mutex::new(db));
        let of_thread = Arc::clone(&db);
        let (chunks, reader) = task::start("rows", MAX_QUEUED_CHUNKS, move |chunks| {
            let db = task::lock(&of_thread);
            read(&db, &query, is_ordered, &path, chunks)
        })?;
        Ok(Rows {
            ready: Vec::new().into_iter(),
            skipped_rows: SkippedRows::default(),
            chunks: Some(chunks),
            reader: Some(reader),
            interrupt,
            db: Some(db),
        })
    }

    /// Returns the number of rows that were skipped so far, with a description of the first one. A row is skipped if
    /// its EPD, its move or one of its numbers is malformed.
    pub fn skipped_rows(&self) -> &SkippedRows {
        &self.skipped_rows
    }

    /// Returns the next row, or `None` after the last one. If another thread has set `stop`, returns
    /// [`Error::Interrupted`].
    pub(super) fn next_unless(&mut self, stop: &AtomicBool) -> Option<Result<ObsRow>> {
        loop {
            if let Some(row) = self.ready.next() {
                return Some(Ok(row));
            }
            match self.chunks.as_mut()?.next(&[stop]) {
                Ok(Some(chunk)) => {
                    self.ready = chunk.rows.into_iter();
                    self.skipped_rows.add(chunk.skipped_rows);
                }
                last => {
                    self.end();
                    return last.err().map(Err);
                }
            }
        }
    }

    /// Interrupts the thread that reads the rows, and waits until it has ended.
    fn end(&mut self) {
        self.ready = Vec::new().into_iter();
        self.chunks = None;
        let Some(reader) = self.reader.take() else {
            return;
        };
        // SQLite may be sorting, which takes long, so the query is interrupted. An interrupt before the query begins
        // has no effect, so it is repeated.
        while !reader.is_finished() {
            self.interrupt.interrupt();
            thread::sleep(Duration::from_millis(1));
        }
        // The thread has already sent its result.
        let _ = reader.join();
        self.db = None;
    }
}

impl Iterator for Rows {
    type Item = Result<ObsRow>;

    #[inline]
    fn next(&mut self) -> Option<Result<ObsRow>> {
        match self.ready.next() {
            Some(row) => Some(Ok(row)),
            None => self.next_unless(&AtomicBool::new(false)),
        }
    }
}

impl FusedIterator for Rows {}

impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows")
            .field("skipped_rows", &self.skipped_rows)
            .finish_non_exhaustive()
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        self.end();
    }
}

/// Reads all rows that `query` selects and sends them to `chunks`. Error messages name the database file `path`.
///
/// # Errors
///
/// Returns an error if the database cannot be read, if `is_ordered` is `true` but the rows are not sorted by EPD and
/// move, or if the receiver of the chunks has been dropped. If the checksum
/// of the database does not match, or if the file changed while it was read, returns an error after sending the last
/// row.
fn read(
    db: &PooledConnection,
    query: &str,
    is_ordered: bool,
    path: &Path,
    chunks: &Feeder<Chunk>,
) -> Result<()> {
    let _transaction = db.unchecked_transaction().sql(path, "read")?;
    let mut check = ChecksumCheck::of(db).sql(path, "read")?;
    // The lock of the transaction prevents other programs from writing. However, some file systems have no locks, and
    // on Unix the lock is lost if any part of this process opens and closes the file. Therefore, the states of the file
    // before and after reading are also compared.
    let state = DatabaseState::of(path)?;
    let mut statement = db.prepare(query).sql(path, "read")?;
    let mut rows = statement.query([]).sql(path, "read")?;
    let mut chunk = Chunk::default();
    let mut last: Option<(String, String)> = None;
    while let Some(row) = rows.next().sql(path, "read")? {
        check
            .as_mut()
            .map_or(Ok(()), |check| check.add(row))
            .sql(path, "read")?;
        match read_row(row).sql(path, "read")? {
            Ok(row) => {
                if is_ordered {
                    let order = last.as_ref().map(|(epd, mv)| (&**epd, &**mv));
                    if order > Some((&row.epd, &row.mv)) {
                        let problem = "its SQL index does not match its rows".to_owned();
                        return Err(ObsError::Damaged(problem).at(path));
                    }
                    let (epd, mv) = last.get_or_insert_default();
                    row.epd.clone_into(epd);
                    row.mv.clone_into(mv);
                }
                chunk.push(row);
            }
            Err(ObsError::MalformedRow(problem)) => chunk.skipped_rows.problem(problem),
            Err(err) => return Err(err.at(path)),
        }
        if chunk.is_full() {
            task::fault("rows");
            chunks.send(std::mem::take(&mut chunk))?;
        }
    }
    task::fault("last rows");
    chunks.send(chunk)?;
    if !state.has_log() {
        state.refuse_changed()?;
    }
    if check.is_none_or(|check| check.matches()) {
        Ok(())
    } else {
        Err(ObsError::Checksum.at(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::obs::connection::Connections;

    #[test]
    fn a_connection_goes_back_when_it_can_no_longer_be_interrupted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db3");
        let db = rusqlite::Connection::open(&path).unwrap();
        db.execute_batch("CREATE TABLE Book (x)").unwrap();
        let connections = Connections::open(&path, &Arc::default()).unwrap();
        let query = "SELECT 'an EPD', 'e2e4', 1, 1, 0, 0, NULL".to_owned();
        let rows = Rows::of_query(connections.lend().unwrap(), query, false, path).unwrap();
        while !rows.reader.as_ref().unwrap().is_finished() {
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(connections.idle(), 1);
        assert_eq!(rows.map(Result::unwrap).count(), 1);
        assert_eq!(connections.idle(), 2);
    }

    #[test]
    fn a_connection_in_a_transaction_is_closed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db3");
        let db = rusqlite::Connection::open(&path).unwrap();
        db.execute_batch("CREATE TABLE Book (x)").unwrap();
        let connections = Connections::open(&path, &Arc::default()).unwrap();
        let idle = connections.idle();
        let lent = connections.lend().unwrap();
        // An interrupted end of a transaction leaves the transaction open.
        lent.execute_batch("BEGIN").unwrap();
        drop(lent);
        assert_eq!(connections.idle(), idle - 1);
        let lent = connections.lend().unwrap();
        assert!(lent.is_autocommit());
    }

    /// The test ignores the lock of the transaction and changes the file, as another program can if the lock was lost.
    #[test]
    fn a_change_during_the_reading_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db3");
        let db = rusqlite::Connection::open(&path).unwrap();
        db.execute_batch("CREATE TABLE Book (x)").unwrap();
        let connections = Connections::open(&path, &Arc::default()).unwrap();
        let rows = CHUNK_ROWS * (MAX_QUEUED_CHUNKS + 3);
        let read = |change: &dyn Fn()| -> Result<Vec<ObsRow>> {
            let query = format!(
                "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < {rows}) \
                 SELECT 'an EPD', 'e2e4', 1, 1, 0, 0, NULL FROM n"
            );
            let mut rows = Rows::of_query(connections.lend().unwrap(), query, false, path.clone())?;
            let first = rows.next().expect("there are rows");
            change();
            std::iter::once(first).chain(rows).collect()
        };
        assert_eq!(read(&|| ()).unwrap().len(), rows);
        let error = read(&|| {
            let file = std::fs::File::options().write(true).open(&path).unwrap();
            file.set_modified(std::time::UNIX_EPOCH).unwrap();
        });
        let error = error.unwrap_err().to_string();
        let advice = "run the command again when no other program is writing";
        assert!(error.contains(advice), "{error}");
        // A changed file can be read again. Replacing the file at the path is not a change.
        assert_eq!(read(&|| ()).unwrap().len(), rows);
        let replaced = read(&|| std::fs::rename(&path, dir.path().join("old.db3")).unwrap());
        assert_eq!(replaced.unwrap().len(), rows);
    }
}

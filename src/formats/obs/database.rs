//! Reads and verifies OOBS databases, including databases written by other programs.

use std::{
    collections::{BTreeMap, HashMap, hash_map::Entry},
    path::Path,
    sync::{Arc, Mutex, atomic::AtomicBool},
};

use thiserror::Error as ThisError;

use super::{
    connection::{Connections, PooledConnection, open_unshared},
    error::{ObsError, Sql},
    info::{ChecksumCheck, Info},
    rows::{
        NOT_LEGAL, ObsRow, PositionCheck, Queries, Rows, SkippedRows, add_spelling, legal_move,
        read_row, respelled,
    },
};
use crate::{
    chess::position::{Rules, Variant, epd_of},
    error::{Advice, Diagnosis, Error, Result, plural},
    formats::book::Factors,
    kind::FileKind,
    storage::sort::Memory,
    task,
};

/// An open database in the format of the Open Opening Book Standard (OOBS): an opening book in an SQLite file.
///
/// Databases written by other programs may have additional columns, may keep positions in a separate table, and
/// may lack an SQL index. Several threads can use one `Obs` at the same time. If another file replaces the
/// database on disk, the `Obs` still reads the file that it opened.
#[derive(Debug)]
pub struct Obs {
    connections: Connections,
    info: Info,
    queries: Queries,
    has_checksum: bool,
    /// The outcome of [`verify_once`](Obs::verify_once), or `None` before its first call.
    verified: Mutex<Option<Result<(), ObsError>>>,
}

/// Returns `true` if the file at `path` is an OOBS database.
///
/// Reads the file without locks, because SQLite would otherwise create files next to a database in WAL mode. The caller
/// must make sure that no other program has the file open.
///
/// # Errors
///
/// Returns an error if the operating system or SQLite cannot read the file.
pub(super) fn is_database(path: &Path) -> Result<bool> {
    if FileKind::of(path)? != FileKind::Sqlite {
        return Ok(false);
    }
    let db = open_unshared(path).sql(path, "open")?;
    let read = Queries::of(&db, path).and_then(|_| Info::read(&db, path));
    match read {
        Err(err @ Error::Io { .. }) => Err(err),
        read => Ok(read.is_ok()),
    }
}

impl Obs {
    /// Opens an OOBS database. Does not verify its checksum: [`rows`](Obs::rows) and similar functions verify it while
    /// they read, and [`verify_once`](Obs::verify_once) or the first lookup verifies the whole database.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read or is not an OOBS database. Its tables must be ordinary tables
    /// without generated columns.
    pub fn open(path: impl AsRef<Path>) -> Result<Obs> {
        Obs::open_until(path, Arc::default())
    }

    /// Opens an OOBS database like [`open`](Obs::open). After `stop` is set, all functions of the database return
    /// [`Error::Interrupted`] within milliseconds, even during a long query.
    ///
    /// # Errors
    ///
    /// Fails for the same reasons as [`open`](Obs::open), and if `stop` is set.
    pub fn open_until(path: impl AsRef<Path>, stop: Arc<AtomicBool>) -> Result<Obs> {
        let path = path.as_ref();
        if FileKind::of(path)? != FileKind::Sqlite {
            return Err(ObsError::NotSqlite.at(path));
        }
        let connections = Connections::open(path, &stop)?;
        let db = connections.lend()?;
        let queries = Queries::of(&db, path)?;
        let info = Info::read(&db, path)?;
        let has_checksum = ChecksumCheck::of(&db).sql(path, "read")?.is_some();
        drop(db);
        Ok(Obs {
            connections,
            info,
            queries,
            has_checksum,
            verified: Mutex::default(),
        })
    }

    /// Verifies the whole database. The database is verified only once; later calls return the same result. The first
    /// lookup also calls this function, so a program that must answer lookups quickly should call it in advance.
    ///
    /// Lookups use an SQL index, which the checksum does not cover. SQLite therefore compares the tables with all their
    /// indexes, in both directions. If the database has a checksum, all rows are then read without an index, and
    /// compared with the checksum.
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be read, or if its checksum or an SQL index does not match the rows.
    pub fn verify_once(&self) -> Result<()> {
        let mut verified = task::lock(&self.verified);
        if verified.is_none() {
            *verified = Some(self.damage()?.map_or(Ok(()), Err));
        }
        match &*verified {
            Some(Err(damage)) => Err(damage.clone().at(self.path())),
            _ => Ok(()),
        }
    }

    /// Reads the whole database. Returns the first damage that it finds, or `None` if the database is intact.
    fn damage(&self) -> Result<Option<ObsError>> {
        let db = self.connections.lend()?;
        if let Some(problem) = self.integrity_problem(&db)? {
            return Ok(Some(ObsError::Damaged(problem)));
        }
        drop(db);
        if !self.has_checksum {
            return Ok(None);
        }
        match self.unindexed_rows()?.find_map(Result::err) {
            Some(Error::Format { path, source }) => match source.downcast() {
                Ok(damage) => Ok(Some(*damage)),
                Err(source) => Err(Error::Format { path, source }),
            },
            Some(err) => Err(err),
            None => Ok(None),
        }
    }

    /// Runs SQLite's integrity check of the tables that polybook reads, and of their indexes. Does not check other
    /// tables, because the check would run the code of virtual tables. Returns the first problem.
    fn integrity_problem(&self, db: &PooledConnection) -> Result<Option<String>> {
        let path = self.path();
        for table in &self.queries.tables {
            let query = format!("PRAGMA integrity_check('{table}')");
            let found: String = db
                .query_row(&query, [], |row| row.get(0))
                .sql(path, "read")?;
            if is_system_error(&found) {
                let problem = format!("SQLite cannot read the database: {found}");
                return Err(Error::failed(path, problem));
            }
            if found != "ok" {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Returns the path of the database file.
    pub fn path(&self) -> &Path {
        self.connections.path()
    }

    /// Returns the chess variant of the positions in the database: `asked` or, if `asked` is `None`, the variant that
    /// the database names.
    ///
    /// # Errors
    ///
    /// Returns an error if `asked` is `None` and the database names an unknown variant.
    pub fn variant(&self, asked: Option<Variant>) -> Result<Variant> {
        if let Some(variant) = asked {
            return Ok(variant);
        }
        let name = &self.info().variant;
        name.parse().map_err(|_| {
            let problem = format!("this file is for the unknown variant \"{name}\"");
            let advice = Advice::option("give the variant with {}", "variant");
            Error::file(self.path(), Diagnosis::new(problem).advise(advice))
        })
    }

    /// Checks that no program has changed the database since it was opened. Call this function after a series of
    /// lookups. Each lookup reads the current content of the file, so a change during the series could mix old and new
    /// rows.
    ///
    /// # Errors
    ///
    /// Returns an error if the database was changed, or if its state cannot be read.
    pub fn refuse_changed(&self) -> Result<()> {
        self.connections.refuse_changed()
    }

    pub(super) fn lend(&self) -> Result<PooledConnection> {
        self.connections.lend()
    }

    /// Returns an SQL query that selects all rows of the database, with the columns that an [`ObsRow`] needs.
    pub(super) fn select(&self) -> &str {
        &self.queries.select
    }

    /// Returns the description of the database: its variant, its origin, and the filter that selected its moves.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// Returns the moves of a position, sorted by number of games in descending order. The result includes inactive
    /// moves, which must not be played.
    ///
    /// A database may contain a position under several EPDs, because programs write some fields of an EPD in different
    /// ways. The results under all these EPDs are added up. The returned rows contain the EPD that
    /// [`write_epd`](crate::chess::position::write_epd) writes.
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be read, or if a row of the position is malformed. The first call reads
    /// the whole database, and returns an error if the checksum or an SQL index does not match the rows.
    pub fn moves<P: Rules>(&self, pos: &P) -> Result<Vec<ObsRow>> {
        self.verify_once()?;
        let wanted = epd_of(pos);
        let fields = wanted.split(' ').count();
        // All programs write the board, which begins an EPD, in the same way. The query selects all rows with this
        // board, and the loop then compares their whole EPDs.
        let board = wanted.split([' ', '[']).next().unwrap_or_default();
        let Queries {
            indexed,
            order,
            epd,
            ..
        } = &self.queries;
        let query = format!(
            "{indexed} WHERE {epd} COLLATE BINARY >= ?1 AND {epd} COLLATE BINARY < ?2 {order}"
        );
        let (path, doing) = (self.path(), "read");
        let db = self.connections.lend()?;
        let mut statement = db.prepare_cached(&query).sql(path, doing)?;
        // The characters of an EPD are less than `\x7f`, so `end` sorts after all EPDs that begin with the board.
        let end = format!("{board}\x7f");
        let mut found = statement.query([board, &end]).sql(path, doing)?;
        // The rows of the position, keyed by the text of their move.
        let mut rows: BTreeMap<String, ObsRow> = BTreeMap::new();
        while let Some(row) = found.next().sql(path, doing)? {
            let row = read_row(row).sql(path, doing)?;
            let mut row = row.map_err(|err| err.at(path))?;
            let theirs: Vec<&str> = row.epd.split_ascii_whitespace().take(fields).collect();
            let is_of_other =
                || respelled(pos.rules(), &theirs.join(" ")).is_none_or(|epd| epd != wanted);
            if row.epd != wanted && is_of_other() {
                continue;
            }
            row.epd.clone_from(&wanted);
            match rows.get_mut(&row.mv) {
                Some(first) => first.join(row),
                None => {
                    rows.insert(row.mv.clone(), row);
                }
            }
        }
        let mut rows = added_up(pos, rows.into_values());
        rows.sort_by(ObsRow::by_games);
        Ok(rows)
    }

    /// Returns the largest weight of all active moves. The weight of a move is the sum of its wins, draws and losses,
    /// each multiplied by its factor in `factors`. The result is not scaled to 16 bits, the size of a weight in a
    /// Polyglot book. Reads all rows.
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be read, or if its checksum or an SQL index does not match the rows.
    pub fn largest_weight(&self, factors: Factors) -> Result<u64> {
        self.verify_once()?;
        let Factors { win, draw, loss } = factors;
        let query = format!(
            "SELECT CAST(coalesce(max({win} * coalesce(Win, 0) + {draw} * coalesce(Draw, 0) + {loss} * coalesce(Loss, 0)), 0)
             AS INTEGER) FROM ({}) WHERE coalesce(Active, 1) & 1",
            self.queries.select
        );
        let db = self.connections.lend()?;
        let largest: i64 = db
            .query_row(&query, [], |row| row.get(0))
            .sql(self.path(), "read")?;
        Ok(u64::try_from(largest).unwrap_or(0))
    }

    /// Returns an estimate of the number of rows, for progress meters. The estimate is the largest row ID, or 0 if the
    /// database cannot be read.
    pub(crate) fn about_rows(&self) -> u64 {
        let largest = |db: &rusqlite::Connection| -> rusqlite::Result<Option<i64>> {
            db.query_row("SELECT max(ROWID) FROM Book", [], |row| row.get(0))
        };
        let found = self.connections.lend().ok().map(|db| largest(&db));
        let found = found.and_then(|found| found.ok().flatten());
        found.and_then(|rows| u64::try_from(rows).ok()).unwrap_or(0)
    }

    /// Returns an iterator over all rows, in the order in which the database stores them. A separate thread reads the
    /// rows before the iterator needs them.
    ///
    /// # Errors
    ///
    /// Returns an error if the thread cannot be started. The iterator yields an error if the database cannot be read,
    /// or if the number of games in a row is negative or too large. If the checksum does not match, it yields an error
    /// after the last row.
    ///
    /// ```
    /// # use polybook::{MakeBook, obs::Obs, pgn::Input};
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("famous.obs.db3");
    /// # MakeBook::new([Input::file("data/famous.pgn")]).min_game(1).obs(&path).run()?;
    /// let obs = Obs::open(&path)?;
    /// let mut games = 0;
    /// for row in obs.rows()? {
    ///     games += row?.stats.games();
    /// }
    /// assert!(games > 1000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rows(&self) -> Result<Rows> {
        self.verify_epd_table()?;
        self.unindexed_rows()
    }

    fn unindexed_rows(&self) -> Result<Rows> {
        let db = self.connections.lend_long()?;
        let query = self.queries.select.clone();
        Rows::of_query(db, query, false, self.path().to_owned())
    }

    /// Verifies the database if its EPDs are in a separate table, because joining the tables uses an SQL index.
    fn verify_epd_table(&self) -> Result<()> {
        if self.queries.in_two_tables {
            self.verify_once()
        } else {
            Ok(())
        }
    }

    /// Returns an iterator over all rows, sorted by EPD and then by move, both in byte order. If the database has no
    /// checksum, or no index of its EPDs, SQLite sorts the rows within the memory budget `memory`.
    ///
    /// # Errors
    ///
    /// Fails for the same reasons as [`rows`](Obs::rows). Also returns an error if the directory for temporary files
    /// cannot be used.
    pub fn rows_by_epd(&self, memory: &Memory) -> Result<Rows> {
        self.sorted(self.connections.lend_long()?, memory)
    }

    /// Returns an iterator over all rows, sorted by EPD and then by move. In the returned rows, EPDs and moves are
    /// spelled as polybook writes them. Unreadable EPDs and illegal moves remain unchanged. SQLite sorts the rows
    /// within the memory budget `memory`.
    pub(super) fn rows_by_own_epd(&self, memory: &Memory) -> Result<Rows> {
        let db = self.connections.lend()?;
        let path = self.path();
        let variant = self.info.variant.parse();
        // polybook writes a checksum to each database, so a database with a checksum already has polybook's spelling.
        let (false, Ok(variant)) = (self.has_checksum, variant) else {
            return self.sorted(db, memory);
        };
        self.verify_epd_table()?;
        db.sort_in(memory)?;
        add_spelling(&db, variant).sql(path, "read")?;
        let query = self.queries.respelled.clone();
        Rows::of_query(db, query, false, path.to_owned())
    }

    fn sorted(&self, db: PooledConnection, memory: &Memory) -> Result<Rows> {
        self.verify_epd_table()?;
        db.sort_in(memory)?;
        let Queries {
            select,
            indexed,
            order,
            ..
        } = &self.queries;
        // If the database has a checksum, the reader notices a row that the index lacks, and checks the order.
        let query = if self.has_checksum {
            format!("{indexed} {order}")
        } else {
            format!("{select} {order}")
        };
        Rows::of_query(db, query, self.has_checksum, self.path().to_owned())
    }
}

/// Combines rows of the position `pos` that contain the same legal move in different spellings, such as `e1g1` and
/// `e1h1` for castling, and adds up their results. Active rows, whose moves may be played, are not combined with
/// inactive rows.
fn added_up<P: Rules>(pos: &P, rows: impl Iterator<Item = ObsRow>) -> Vec<ObsRow> {
    let mut places = HashMap::new();
    let mut sums: Vec<ObsRow> = Vec::new();
    for row in rows {
        match legal_move(pos, &row.mv).map(|mv| places.entry((mv, row.is_active()))) {
            Some(Entry::Occupied(place)) => {
                let place: &usize = place.get();
                sums[*place].join(row);
                continue;
            }
            Some(Entry::Vacant(place)) => {
                place.insert(sums.len());
            }
            None => {}
        }
        sums.push(row);
    }
    sums
}

/// The result of [`verify`]: the faults found in an OOBS database, and its number of rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VerifiedDatabase {
    /// All faults that were found.
    pub faults: Vec<DatabaseFault>,
    /// The number of rows of the table `Book`.
    pub rows: u64,
    /// Whether the table `Info` contains a checksum. Without a checksum, changes to the rows cannot be detected.
    pub has_checksum: bool,
}

/// A fault that [`verify`] found in an OOBS database.
#[derive(Clone, PartialEq, Eq, Debug, ThisError)]
#[non_exhaustive]
pub enum DatabaseFault {
    /// SQLite's integrity check found a problem. The string is SQLite's description of the problem.
    #[error("the check of SQLite failed: {0}")]
    Sqlite(String),
    /// The checksum does not match the rows.
    #[error(
        "the checksum in the table Info does not match the rows: the database is damaged, or another program changed it"
    )]
    Checksum,
    /// Rows have values that cannot be used: an EPD that does not describe a position, an illegal move, or a number
    /// that cannot be a number of games.
    #[error("{} cannot be used; the first of these rows: {}", plural(.0.rows, "row"), .0.example.as_deref().unwrap_or_default())]
    UnusableRows(SkippedRows),
}

/// Checks an OOBS database. Runs SQLite's integrity check, compares the checksum, if there is one, with the rows, and
/// checks that each row contains a valid position, a legal move and valid numbers of games. Reads the file twice.
///
/// # Errors
///
/// Returns an error if the file is not an OOBS database, or if it is too damaged to be read. Other faults are not
/// errors, but are listed in the result.
pub fn verify(path: impl AsRef<Path>) -> Result<VerifiedDatabase> {
    let path = path.as_ref();
    let obs = Obs::open(path)?;
    let db = obs.lend()?;
    let mut faults = Vec::new();
    if let Some(problem) = obs.integrity_problem(&db)? {
        faults.push(DatabaseFault::Sqlite(problem));
    }
    let check = ChecksumCheck::of(&db).sql(path, "read")?;
    let has_checksum = check.is_some();
    let mut check = check.unwrap_or_default();
    let (mut rows, mut unusable) = (0, SkippedRows::default());
    let mut positions = obs.info().variant.parse().ok().map(PositionCheck::new);
    let mut add_rows = || -> rusqlite::Result<()> {
        let mut statement = db.prepare(obs.select())?;
        let mut found = statement.query([])?;
        while let Some(row) = found.next()? {
            check.add(row)?;
            rows += 1;
            match (read_row(row)?, &mut positions) {
                (Err(ObsError::MalformedRow(problem)), _) => unusable.problem(problem),
                (Err(err), _) => unusable.problem(err.to_string()),
                (Ok(row), Some(positions)) => match positions.position(&row.epd) {
                    Err(reason) => unusable.row(&row, reason),
                    Ok(pos) if legal_move(pos, &row.mv).is_none() => {
                        unusable.row(&row, NOT_LEGAL);
                    }
                    Ok(_) => {}
                },
                (Ok(_), None) => {}
            }
        }
        Ok(())
    };
    add_rows().sql(path, "read")?;
    if has_checksum && !check.matches() {
        faults.push(DatabaseFault::Checksum);
    }
    if unusable.rows > 0 {
        faults.push(DatabaseFault::UnusableRows(unusable));
    }
    Ok(VerifiedDatabase {
        faults,
        rows,
        has_checksum,
    })
}

/// Returns `true` if `problem`, a message of SQLite's integrity check, says that the operating system could not read a
/// page. Such a message ends with an extended error code of SQLite, whose low byte is the kind of error.
fn is_system_error(problem: &str) -> bool {
    let code = problem.rsplit_once("error code=");
    let code = code.and_then(|(_, code)| code.trim().parse::<i32>().ok());
    code.is_some_and(|code| code & 0xff == rusqlite::ffi::SQLITE_IOERR)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that a lookup of the position `fen` finds the rows with the EPDs `named`, and not the rows with the
    /// EPDs `others`.
    #[track_caller]
    fn check(variant: Variant, fen: &str, named: &[&str], others: &[&str]) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db3");
        let db = rusqlite::Connection::open(&path).unwrap();
        db.execute_batch("CREATE TABLE Book (EPD TEXT, Move TEXT, Win, Draw, Loss)")
            .unwrap();
        for (epd, mv) in named
            .iter()
            .map(|epd| (epd, "named"))
            .chain(others.iter().map(|epd| (epd, "other")))
        {
            db.execute("INSERT INTO Book VALUES (?1, ?2, 1, 0, 0)", [epd, mv])
                .unwrap();
        }
        let pos = variant.parse_fen(fen).unwrap();
        let found = Obs::open(&path).unwrap().moves(&pos).unwrap();
        let found: Vec<_> = found
            .iter()
            .map(|row| (&*row.epd, &*row.mv, row.stats.games()))
            .collect();
        let expected = (&*epd_of(&pos), "named", named.len() as u64);
        let is_named = !named.is_empty();
        assert_eq!(found, Vec::from_iter(is_named.then_some(expected)));
    }

    #[test]
    fn counters_and_the_order_of_rights_make_no_difference() {
        let board = "r3k2r/8/8/8/8/8/8/R3K2R";
        let named = [
            "w KQkq -",
            "w kqKQ - 3 17",
            "w QKqk - hmvc 3;",
            "w HAha - x",
        ];
        let others = ["b KQkq -", "w KQk -", "w - -"];
        let with_board = |text: &&str| format!("{board} {text}");
        check(
            Variant::Standard,
            &with_board(&"w KQkq - 0 1"),
            &named
                .each_ref()
                .map(with_board)
                .each_ref()
                .map(|epd| &**epd),
            &others
                .each_ref()
                .map(with_board)
                .each_ref()
                .map(|epd| &**epd),
        );
    }

    #[test]
    fn an_en_passant_square_counts_if_a_pawn_stands_ready() {
        let alone = "4k3/8/8/8/4P3/8/8/4K3 b -";
        let named = ["-", "e3 0 1"].map(|end| format!("{alone} {end}"));
        let named = named.each_ref().map(|epd| &**epd);
        check(Variant::Standard, &format!("{alone} e3 0 1"), &named, &[]);
        let ready = "4k3/8/8/8/3pP3/8/8/4K3 b -";
        let [without, with] = ["- 0 1", "e3"].map(|end| format!("{ready} {end}"));
        check(Variant::Standard, &without, &[&without], &[&with]);
        check(Variant::Standard, &with, &[&with], &[&without]);
    }

    #[test]
    fn the_square_of_a_pinned_pawn_does_not_count() {
        let pinned = "4k3/8/8/r2pP2K/8/8/8/8 w - d6 0 1";
        let without = "4k3/8/8/r2pP2K/8/8/8/8 w - - 0 1";
        let to_black = "4k3/8/8/r2pP2K/8/8/8/8 b - -";
        check(Variant::Standard, pinned, &[without], &[to_black]);
        check(Variant::Standard, pinned, &[pinned, without], &[]);
        check(Variant::Standard, without, &[pinned, without], &[to_black]);
        let free = "4k3/8/8/3pP2K/8/8/8/8 w - d6 0 1";
        check(
            Variant::Standard,
            free,
            &[],
            &["4k3/8/8/3pP2K/8/8/8/8 w - -"],
        );
    }

    #[test]
    fn what_a_variant_needs_must_be_there() {
        let board = "4k3/8/8/8/8/8/8/4K3";
        for (variant, asked, named, others) in [
            (
                Variant::Crazyhouse,
                "[QNp] w - -",
                &["[pQN] w - - 0 1", "[QNp] w - -"][..],
                &[" w - -", "[QN] w - -"][..],
            ),
            (
                Variant::Crazyhouse,
                "[] w - -",
                &[" w - -", "[] w - - 0 1"],
                &["[Q] w - -"],
            ),
            (Variant::Standard, " w - -", &["[] w - -"], &["[Q] w - -"]),
            (
                Variant::ThreeCheck,
                " w - - 3+2",
                &[" w - - 3+2 0 1"],
                &[" w - -", " w - - 3+3 0 1"],
            ),
        ] {
            let with_board = |epds: &[&str]| -> Vec<String> {
                epds.iter().map(|epd| format!("{board}{epd}")).collect()
            };
            let (named, others) = (with_board(named), with_board(others));
            check(
                variant,
                &format!("{board}{asked}"),
                &named.iter().map(String::as_str).collect::<Vec<_>>(),
                &others.iter().map(String::as_str).collect::<Vec<_>>(),
            );
        }
    }

    #[test]
    fn rooks_of_chess960_are_told_apart() {
        let board = "4k3/8/8/8/8/8/8/2R1K1RR w";
        check(
            Variant::Chess960,
            &format!("{board} CG -"),
            &[&format!("{board} GC - 0 1"), &format!("{board} GQ -")],
            &[&format!("{board} KQ -"), &format!("{board} HC -")],
        );
    }

    #[test]
    fn the_stop_flag_interrupts_queries() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db3");
        let db = rusqlite::Connection::open(&path).unwrap();
        db.execute_batch(
            "CREATE TABLE Book (EPD TEXT, Move TEXT, Win, Draw, Loss);
             CREATE INDEX i ON Book (EPD);
             WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 20000)
             INSERT INTO Book SELECT '8/8/8/8/8/8/8/K1k5 w - -', 'a1b1', x, 0, 0 FROM n",
        )
        .unwrap();
        let pos = Variant::Standard.parse_fen("8/8/8/8/8/8/8/K1k5 w - - 0 1");
        let stop = Arc::<AtomicBool>::default();
        let obs = Obs::open_until(&path, Arc::clone(&stop)).unwrap();
        assert_eq!(obs.rows().unwrap().count(), 20_000);
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        let looked_up = obs.moves(&pos.unwrap());
        assert!(
            matches!(looked_up, Err(Error::Interrupted)),
            "{looked_up:?}"
        );
        let read = obs.rows().unwrap().find_map(Result::err);
        assert!(matches!(read, Some(Error::Interrupted)), "{read:?}");
    }

    #[test]
    fn a_database_is_verified_only_once() {
        let dir = tempfile::tempdir().unwrap();
        for (name, index, is_damaged) in [("good", "EPD", false), ("bad", "Move", true)] {
            let path = dir.path().join(name);
            let db = rusqlite::Connection::open(&path).unwrap();
            db.execute_batch(&format!(
                "CREATE TABLE Book (EPD TEXT, Move TEXT, Win, Draw, Loss);
                 INSERT INTO Book VALUES ('8/8/8/8/8/8/8/K1k5 w - -', 'a1b1', 1, 0, 0);
                 CREATE INDEX i ON Book ({index});
                 PRAGMA writable_schema = ON;
                 UPDATE sqlite_schema SET sql = 'CREATE INDEX i ON Book (EPD)' WHERE name = 'i'"
            ))
            .unwrap();
            drop(db);
            let stop = Arc::<AtomicBool>::default();
            let obs = Obs::open_until(&path, Arc::clone(&stop)).unwrap();
            for is_stopped in [true, false, true] {
                stop.store(is_stopped, std::sync::atomic::Ordering::Relaxed);
                let verified = obs.verify_once();
                let damage = verified.as_ref().err().and_then(Error::carried);
                // A verification that is stopped stores no result. Once stored, a call reads nothing and cannot stop.
                if is_stopped && task::lock(&obs.verified).is_none() {
                    assert!(matches!(verified, Err(Error::Interrupted)))
                } else {
                    assert_eq!(verified.is_err(), is_damaged, "{name}: {verified:?}");
                    assert_eq!(
                        matches!(damage, Some(ObsError::Damaged(_))),
                        is_damaged,
                        "{name}: {verified:?}"
                    );
                }
            }
            assert!(task::lock(&obs.verified).is_some());
        }
    }

    #[test]
    fn threads_can_share_a_database() {
        fn shared<T: Send + Sync + 'static>() {}
        fn sent<T: Send + 'static>() {}
        shared::<Obs>();
        sent::<Rows>();
    }
}

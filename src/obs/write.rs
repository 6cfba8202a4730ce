//! Writing a database.

use std::{
    path::{Path, PathBuf},
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, sync_channel},
    },
};

use rusqlite::{Connection, Statement};

use super::{
    Sql,
    info::Info,
    rows::{MoveRow, Rows, SortedRows, epd, for_each_row, pack, whole},
    walk::{Start, walk},
};
use crate::{
    error::{Error, Result},
    output::AtomicFile,
    position::{Rules, uci, write_epd},
    tally::{Counts, Memory, Stats},
};

/// What the standard's own tool makes.
const TABLES: &str = "
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
    CREATE INDEX EPDIndex ON Book (EPD);";

/// The file is not there for anybody until it is complete, so a journal would protect nothing. Rows and
/// index entries come in order, so little of them is ever needed again, and large pages cost
/// less.
const SETTINGS: &str = "
    PRAGMA page_size = 16384;
    PRAGMA cache_size = -16384;
    PRAGMA journal_mode = OFF;
    PRAGMA synchronous = OFF;
    PRAGMA locking_mode = EXCLUSIVE;";

/// Rows that one statement inserts. One at a time, AUTOINCREMENT alone would take half of the time.
const AT_ONCE: usize = 100;

/// Bytes of rows that are handed over at once.
const BLOCK: usize = 1 << 16;

/// Makes a database.
#[derive(Debug)]
pub struct ObsWriter {
    file: AtomicFile,
}

/// What was written.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Written {
    /// Rows of the table `Book`.
    pub rows: u64,
    /// Positions and moves that are missing because two positions share a key, which is hardly ever.
    pub strays: u64,
}

/// A row of the table `Book`.
#[derive(Copy, Clone, Debug)]
pub(super) struct NewRow<'a> {
    pub epd: &'a str,
    pub mv: &'a str,
    pub active: i64,
    pub stats: Stats,
    pub comment: Option<&'a str>,
}

impl ObsWriter {
    /// Starts a database.
    ///
    /// # Errors
    ///
    /// A file that exists, unless it is to be replaced, or a directory that may not be written.
    pub fn create(path: impl Into<PathBuf>, replace: bool) -> Result<ObsWriter> {
        let path = path.into();
        if let Ok(metadata) = path.metadata() {
            if !metadata.is_file() {
                return Err(Error::file(path, "is no file: a database needs one"));
            }
            if !replace {
                return Err(Error::file(
                    path,
                    "exists: remove it, or have it replaced with --force",
                ));
            }
        }
        Ok(ObsWriter {
            file: AtomicFile::create(path)?,
        })
    }

    /// The file that will be there.
    pub fn target(&self) -> &Path {
        self.file.target()
    }

    /// Writes the moves that are [selected](crate::book::Weighting::selects) of all positions that the counted moves
    /// lead to from `starts`, ordered by EPD and then by games. Works on all threads of the rayon
    /// pool that it is called in.
    ///
    /// # Errors
    ///
    /// A file that cannot be written, or [`Error::Interrupted`].
    pub fn write<P: Rules + Send + Sync>(
        self,
        counts: &Counts,
        starts: impl Iterator<Item = Result<Start<P>>>,
        info: &Info,
        memory: &Memory,
        stop: &AtomicBool,
    ) -> Result<Written> {
        let rows = Rows::new(rayon::current_num_threads(), memory);
        let strays = walk(counts, starts, stop, |pos: &P, moves| {
            let turn = pos.turn();
            let mut texts = Vec::new();
            for count in moves {
                if info.selection.selects(turn, count.stats)
                    && let Some(mv) = count.mv.to_move(pos)
                {
                    texts.push((uci(pos, mv), count.stats));
                }
            }
            if texts.is_empty() {
                return Ok(());
            }
            texts.sort_by(|a, b| b.1.games().cmp(&a.1.games()).then_with(|| a.0.cmp(&b.0)));
            let moves: Vec<MoveRow<'_>> = texts
                .iter()
                .map(|(mv, stats)| MoveRow {
                    mv: mv.as_bytes(),
                    stats: *stats,
                })
                .collect();
            let (mut text, mut packed) = (Vec::new(), Vec::new());
            write_epd(pos, &mut text);
            pack(&text, &moves, &mut packed);
            rows.push(&packed)
        })?;
        let rows = rows.sorted();
        let written = self.insert_all(info, stop, |table| insert_sorted(&rows, table, stop))?;
        Ok(Written {
            rows: written,
            strays,
        })
    }

    /// Writes the rows that `insert` inserts, in order; answers how many there are.
    pub(super) fn insert_all(
        self,
        info: &Info,
        stop: &AtomicBool,
        insert: impl FnOnce(&mut BookTable<'_>) -> Result<()>,
    ) -> Result<u64> {
        let target = self.file.target().to_owned();
        let db = Connection::open(self.file.temporary_path()).sql(&target, "write it")?;
        db.execute_batch(SETTINGS).sql(&target, "write it")?;
        db.execute_batch(TABLES).sql(&target, "write it")?;
        db.execute_batch("BEGIN").sql(&target, "write it")?;
        let mut table = BookTable::new(&db, &target)?;
        insert(&mut table)?;
        let rows = table.finish()?;
        info.write(&db, rows).sql(&target, "write it")?;
        db.execute_batch("COMMIT").sql(&target, "write it")?;
        db.close()
            .map_err(|(_, err)| err)
            .sql(&target, "write it")?;
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        self.file.commit()?;
        Ok(rows)
    }
}

/// One thread gathers the rows from all over memory while another inserts them.
fn insert_sorted(rows: &SortedRows, table: &mut BookTable<'_>, stop: &AtomicBool) -> Result<()> {
    let (blocks, received) = sync_channel::<Vec<u8>>(4);
    std::thread::scope(|scope| {
        let gathered = scope.spawn(move || {
            let mut block = Vec::with_capacity(2 * BLOCK);
            // Whoever does not take the block any more has a reason of its own to give.
            let hand_over = |block: &mut Vec<u8>| {
                let next = Vec::with_capacity(2 * BLOCK);
                blocks.send(std::mem::replace(block, next)).is_ok()
            };
            rows.for_each(|packed| {
                block.extend_from_slice(packed);
                if block.len() >= BLOCK && (!hand_over(&mut block) || stop.load(Ordering::Relaxed))
                {
                    return Err(Error::Interrupted);
                }
                Ok(())
            })?;
            hand_over(&mut block);
            Ok(())
        });
        let inserted = insert_blocks(received, table);
        let gathered = gathered
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        inserted.and(gathered)
    })
}

fn insert_blocks(blocks: Receiver<Vec<u8>>, table: &mut BookTable<'_>) -> Result<()> {
    for block in blocks {
        let mut rest = &block[..];
        while !rest.is_empty() {
            let packed = whole(rest);
            rest = &rest[packed.len()..];
            let epd = text(epd(packed));
            for_each_row(packed, |row| {
                table.push(NewRow {
                    epd,
                    mv: text(row.mv),
                    active: 1,
                    stats: row.stats,
                    comment: None,
                })
            })?;
        }
    }
    Ok(())
}

/// EPDs and moves are ASCII.
fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

/// Takes the rows of the table `Book`.
pub(super) struct BookTable<'a> {
    db: &'a Connection,
    target: &'a Path,
    many: Statement<'a>,
    /// Rows that wait until there are enough, their texts one behind the other.
    waiting: Vec<WaitingRow>,
    texts: String,
    rows: u64,
}

struct WaitingRow {
    epd_end: usize,
    move_end: usize,
    comment_end: Option<usize>,
    active: i64,
    stats: Stats,
}

impl<'a> BookTable<'a> {
    fn new(db: &'a Connection, target: &'a Path) -> Result<BookTable<'a>> {
        let many = db.prepare(&insertion(AT_ONCE)).sql(target, "write it")?;
        Ok(BookTable {
            db,
            target,
            many,
            waiting: Vec::with_capacity(AT_ONCE),
            texts: String::new(),
            rows: 0,
        })
    }

    /// Takes the next row.
    pub(super) fn push(&mut self, row: NewRow<'_>) -> Result<()> {
        self.texts.push_str(row.epd);
        let epd_end = self.texts.len();
        self.texts.push_str(row.mv);
        let move_end = self.texts.len();
        let comment_end = row.comment.map(|comment| {
            self.texts.push_str(comment);
            self.texts.len()
        });
        self.waiting.push(WaitingRow {
            epd_end,
            move_end,
            comment_end,
            active: row.active,
            stats: row.stats,
        });
        self.rows += 1;
        if self.waiting.len() == AT_ONCE {
            insert(&mut self.many, &mut self.waiting, &mut self.texts)
                .sql(self.target, "write it")?;
        }
        Ok(())
    }

    /// Inserts what waits; answers how many rows there are.
    fn finish(mut self) -> Result<u64> {
        if !self.waiting.is_empty() {
            self.db
                .prepare(&insertion(self.waiting.len()))
                .and_then(|mut few| insert(&mut few, &mut self.waiting, &mut self.texts))
                .sql(self.target, "write it")?;
        }
        Ok(self.rows)
    }
}

/// A statement for so many rows.
fn insertion(rows: usize) -> String {
    let mut statement =
        String::from("INSERT INTO Book (EPD, Move, Active, Win, Draw, Loss, Comment) VALUES ");
    for row in 0..rows {
        statement.push_str(if row == 0 {
            "(?,?,?,?,?,?,?)"
        } else {
            ",(?,?,?,?,?,?,?)"
        });
    }
    statement
}

fn insert(
    statement: &mut Statement<'_>,
    waiting: &mut Vec<WaitingRow>,
    texts: &mut String,
) -> rusqlite::Result<()> {
    let (mut parameter, mut start) = (1, 0);
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    for row in waiting.drain(..) {
        statement.raw_bind_parameter(parameter, &texts[start..row.epd_end])?;
        statement.raw_bind_parameter(parameter + 1, &texts[row.epd_end..row.move_end])?;
        statement.raw_bind_parameter(parameter + 2, row.active)?;
        statement.raw_bind_parameter(parameter + 3, number(row.stats.wins))?;
        statement.raw_bind_parameter(parameter + 4, number(row.stats.draws))?;
        statement.raw_bind_parameter(parameter + 5, number(row.stats.losses))?;
        let comment = row.comment_end.map(|end| &texts[row.move_end..end]);
        statement.raw_bind_parameter(parameter + 6, comment)?;
        start = row.comment_end.unwrap_or(row.move_end);
        parameter += 7;
    }
    statement.raw_execute()?;
    texts.clear();
    Ok(())
}

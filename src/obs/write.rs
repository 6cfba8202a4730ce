//! Writing a database.

use std::{
    path::Path,
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, sync_channel},
    },
    thread::{self, Thread},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags, Statement};

use super::{
    Sql,
    info::Info,
    rows::{Packer, Rows, SortedRows, epd, for_each_row, whole},
    walk::{LegalCount, walk},
};
use crate::{
    error::{Error, Result},
    output::{AtomicFile, Finished},
    position::{Keyed, Rules, write_epd, write_uci},
    sort::Memory,
    tally::{Counts, Stats},
};

/// What the standard's own tool makes, and the index that its document advises under another name, so that
/// the statement printed there still works.
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
    CREATE INDEX BookByEPD ON Book (EPD);";

/// The file is not there for anybody until it is complete, so a journal would protect nothing. Rows and
/// index entries come in order, so little of them is ever needed again.
const SETTINGS: &str = "
    PRAGMA cache_size = -16384;
    PRAGMA journal_mode = OFF;
    PRAGMA synchronous = OFF;
    PRAGMA locking_mode = EXCLUSIVE;";

/// A database of at least so many bytes has large pages, which are written in less time; a small one
/// would be little else than their unused ends.
const LARGE: u64 = 1 << 24;

/// Rows that one statement inserts. One at a time, AUTOINCREMENT alone would take half of the time.
const AT_ONCE: usize = 40;

/// How often what has been written is sent to the disk.
const FLUSH_EVERY: Duration = Duration::from_millis(200);

/// Bytes of rows that are handed over at once.
const BLOCK: usize = 1 << 19;

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
    /// Starts a database. If there is a file, `may_replace` judges it.
    ///
    /// # Errors
    ///
    /// A directory that cannot be written, a device or pipe, and what `may_replace` answers.
    pub fn create(
        path: impl AsRef<Path>,
        may_replace: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<ObsWriter> {
        let file = AtomicFile::create_over(path, may_replace)?;
        if !file.is_seekable() {
            return Err(Error::file(
                file.target(),
                "not a file: a database needs one",
            ));
        }
        Ok(ObsWriter { file })
    }

    /// The file that will be there.
    pub fn target(&self) -> &Path {
        self.file.target()
    }

    /// Writes the moves that are [selected](crate::tally::MoveFilter::selects) of all positions that the
    /// counted moves lead to from `starts`, ordered by EPD and then by games. Works on all threads of the rayon
    /// pool that it is called in.
    ///
    /// # Errors
    ///
    /// A file that cannot be written, or [`Error::Interrupted`].
    pub fn write<P: Rules>(
        self,
        counts: &Counts,
        starts: impl Iterator<Item = Result<Keyed<P>>>,
        info: &Info,
        memory: &Memory,
        stop: &AtomicBool,
    ) -> Result<(Written, Finished)> {
        let rows = Rows::new(rayon::current_num_threads(), memory);
        let strays = walk(
            counts,
            starts,
            stop,
            |packer: &mut Packer, pos: &P, moves| {
                let turn = pos.turn();
                let selected = |count: &&LegalCount| info.selection.selects(turn, count.stats);
                if !moves.iter().any(|count| selected(&count)) {
                    return Ok(());
                }
                packer.start(|text| write_epd(pos, text));
                for count in moves.iter().filter(selected) {
                    packer.row(count.stats, |text| write_uci(pos, count.mv, text));
                }
                rows.push(packer.finish())
            },
        )?;
        let rows = rows.sorted();
        let size = 2 * rows.size();
        let (written, finished) = self.insert_all(info, Columns::Counted, size, stop, |table| {
            insert_sorted(rows, table, stop)
        })?;
        let written = Written {
            rows: written,
            strays,
        };
        Ok((written, finished))
    }

    /// Writes the rows that `insert` inserts, in order, and that will take about `size` bytes; answers how
    /// many there are.
    pub(super) fn insert_all(
        self,
        info: &Info,
        columns: Columns,
        size: u64,
        stop: &AtomicBool,
        insert: impl FnOnce(&mut BookTable<'_>) -> Result<()>,
    ) -> Result<(u64, Finished)> {
        let target = self.file.target().to_owned();
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db =
            Connection::open_with_flags(self.file.temporary_path(), flags).sql(&target, "write")?;
        let page_size = if size < LARGE { 4096 } else { 32768 };
        db.pragma_update(None, "page_size", page_size)
            .sql(&target, "write")?;
        db.execute_batch(SETTINGS).sql(&target, "write")?;
        db.execute_batch(TABLES).sql(&target, "write")?;
        db.execute_batch("BEGIN").sql(&target, "write")?;
        let mut table = BookTable::new(&db, &target, columns)?;
        let flushed = AtomicBool::new(false);
        thread::scope(|scope| {
            // The disk has as much to do as the processor: it need not wait for the end.
            let flusher = scope.spawn(|| {
                while !flushed.load(Ordering::Relaxed) {
                    thread::park_timeout(FLUSH_EVERY);
                    let _ = self.file.file().sync_data();
                }
            });
            let _ended = Ended {
                flag: &flushed,
                thread: flusher.thread(),
            };
            insert(&mut table)
        })?;
        let rows = table.rows;
        drop(table);
        info.write(&db, rows).sql(&target, "write")?;
        db.execute_batch("COMMIT").sql(&target, "write")?;
        db.close().map_err(|(_, err)| err).sql(&target, "write")?;
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        Ok((rows, self.file.finish()?))
    }
}

/// Ends a thread that waits, however what it waits for ends.
struct Ended<'a> {
    flag: &'a AtomicBool,
    thread: &'a Thread,
}

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.flag.store(true, Ordering::Relaxed);
        self.thread.unpark();
    }
}

/// One thread gathers the rows from all over memory while another inserts them.
fn insert_sorted(rows: SortedRows, table: &mut BookTable<'_>, stop: &AtomicBool) -> Result<()> {
    let (blocks, received) = sync_channel::<Vec<u8>>(4);
    thread::scope(|scope| {
        let gathered = scope.spawn(move || {
            let mut block = Vec::with_capacity(BLOCK + (1 << 12));
            // Whoever does not take the block any more has a reason of its own to give.
            let hand_over = |block: &mut Vec<u8>| {
                let next = Vec::with_capacity(BLOCK + (1 << 12));
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
        let mut rows = Vec::new();
        let mut rest = &block[..];
        while !rest.is_empty() {
            let packed = whole(rest);
            rest = &rest[packed.len()..];
            let epd = text(epd(packed));
            for_each_row(packed, |mv, stats| {
                rows.push(NewRow {
                    epd,
                    mv: text(mv),
                    active: 1,
                    stats,
                    comment: None,
                });
            });
        }
        table.insert(&rows)?;
    }
    Ok(())
}

/// EPDs and moves are ASCII.
fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
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

    /// A statement for so many rows. It need not be undone by itself if it fails, because then all is.
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
}

impl<'a> BookTable<'a> {
    fn new(db: &'a Connection, target: &'a Path, columns: Columns) -> Result<BookTable<'a>> {
        let many = db.prepare(&columns.insertion(AT_ONCE));
        Ok(BookTable {
            db,
            target,
            columns,
            many: many.sql(target, "write")?,
            rows: 0,
        })
    }

    /// Inserts the next rows, which should be some thousands.
    pub(super) fn insert(&mut self, rows: &[NewRow<'_>]) -> Result<()> {
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
        Ok(())
    }
}

/// Runs a statement for just so many rows.
fn insert(
    statement: &mut Statement<'_>,
    columns: Columns,
    rows: &[NewRow<'_>],
) -> rusqlite::Result<()> {
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let mut parameter = 1;
    for row in rows {
        statement.raw_bind_parameter(parameter, row.epd)?;
        statement.raw_bind_parameter(parameter + 1, row.mv)?;
        statement.raw_bind_parameter(parameter + 2, number(row.stats.wins))?;
        statement.raw_bind_parameter(parameter + 3, number(row.stats.draws))?;
        statement.raw_bind_parameter(parameter + 4, number(row.stats.losses))?;
        parameter += 5;
        if columns == Columns::All {
            statement.raw_bind_parameter(parameter, row.active)?;
            statement.raw_bind_parameter(parameter + 1, row.comment)?;
            parameter += 2;
        }
    }
    statement.raw_execute()?;
    Ok(())
}

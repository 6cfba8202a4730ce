//! Writes databases.

use std::{
    fs::File,
    io::{Read, Seek, Write},
    path::Path,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::Duration,
};

use rusqlite::{Connection, OpenFlags};

use super::{
    error::Sql,
    info::Info,
    row::ObsRow,
    sorted::{Packer, Piles, unpacked},
    table::{BLOCK, BookTable, Gatherer, RowBlock, SETTINGS, TABLES},
    walk::{LegalCount, walk},
};
use crate::{
    checksum::Checksum,
    counts::Counts,
    error::{At, Error, Result},
    output::{AtomicFile, Finished},
    position::{Keyed, Rules, write_epd, write_uci},
    progress::Meter,
    sort::Memory,
    task::{self, Failure, Feeder},
};

/// The expected size in bytes from which a database has large pages, which are faster to write. In a small database, large pages
/// would be mostly unused.
const LARGE: u64 = 1 << 24;

/// The interval at which written bytes are sent to the disk.
const FLUSH_EVERY: Duration = Duration::from_millis(200);

/// The number of positions after which the progress is updated.
const METERED: u64 = 256;

/// The maximum number of blocks of rows that are collected ahead.
const AHEAD: usize = 4;

/// Writes a new database.
#[derive(Debug)]
pub struct ObsWriter {
    file: AtomicFile,
}

/// The numbers of a written database.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct ObsSummary {
    /// Rows of the table `Book`.
    pub rows: u64,
    /// The number of moves that were left out because they were played fewer times than the filter's minimum.
    pub rare: u64,
    /// The number of positions and moves that are missing because two positions share a key. Almost always 0.
    pub strays: u64,
}

impl ObsWriter {
    /// Begins a database at `path`. Replaces an existing database only with `force`.
    ///
    /// If `path` is standard output, a pipe or a device, the database is created in a temporary file, and copied when it is
    /// complete.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory cannot be written, if `path` is a file that is not an OOBS database, or if another program
    /// has that database open or did not finish it. Returns [`Error::Exists`](crate::Error::Exists) for a database without `force`.
    pub fn create(path: impl AsRef<Path>, force: bool) -> Result<ObsWriter> {
        let mut file = AtomicFile::create_over(path, |old| super::check_replaceable(old, force))?;
        file.refuse_database_in_use()?;
        Ok(ObsWriter { file })
    }

    /// Returns the path of the database.
    pub fn target(&self) -> &Path {
        self.file.target()
    }

    /// Writes the moves that the filter of `info` [selects](crate::counts::MoveFilter::selects), of all positions that counted moves
    /// reach from `starts`. Rows are sorted by EPD, then by descending number of games.
    ///
    /// Sorts within `memory`, and uses all threads of the current rayon pool. The caller sets the total of `meter`: half of it
    /// stands for finding the positions, the other half for writing their rows.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be written, and [`Error::Interrupted`] if `stop` is set.
    pub fn write<P: Rules>(
        self,
        counts: &Counts,
        starts: impl Iterator<Item = Result<Keyed<P>>> + Send,
        info: &Info,
        memory: &Memory,
        stop: &AtomicBool,
        meter: &Meter,
    ) -> Result<(ObsSummary, Finished)> {
        let piles = Piles::new(rayon::current_num_threads(), memory);
        let rare = AtomicU64::new(0);
        let strays = walk(
            counts,
            starts,
            stop,
            |(packer, seen): &mut (Packer, u64), pos: &P, moves| {
                *seen += 1;
                if seen.is_multiple_of(METERED) {
                    meter.advance(METERED);
                }
                let is_rare = |count: &&LegalCount| count.stats.games() < info.move_filter.min_game;
                rare.fetch_add(
                    moves.iter().filter(is_rare).count() as u64,
                    Ordering::Relaxed,
                );
                match pack(packer, pos, moves, info) {
                    Some(packed) => piles.push(packed),
                    None => Ok(()),
                }
            },
        )?;
        let rows = piles.into_rows();
        let made = MadeDatabase {
            info,
            size: 2 * rows.size(),
            temp_dir: &memory.temp_dir,
        };
        let steps_per_byte = meter.total() as f64 / 2.0 / rows.size().max(1) as f64;
        let (rows, finished) = self.insert_all(made, stop, |gatherer| {
            let mut steps = 0.0;
            rows.for_each(|packed| {
                steps += packed.len() as f64 * steps_per_byte;
                if steps >= METERED as f64 {
                    meter.advance(steps as u64);
                    steps = 0.0;
                }
                let (epd, mut rows) = unpacked(packed);
                rows.try_for_each(|(mv, stats)| {
                    gatherer.take(text(epd), text(mv), ObsRow::ACTIVE, stats, None)
                })
            })
        })?;
        let rare = rare.into_inner();
        Ok((ObsSummary { rows, rare, strays }, finished))
    }

    /// Inserts the rows that `gather` adds, in this order. Returns the number of rows and the finished file.
    pub(super) fn insert_all(
        mut self,
        made: MadeDatabase<'_>,
        stop: &AtomicBool,
        gather: impl FnOnce(&mut Gatherer<'_>) -> Result<()> + Send,
    ) -> Result<(u64, Finished)> {
        let target = self.file.target().to_owned();
        if self.file.is_seekable() {
            let db = open(self.file.temporary_path()).sql(&target, "write")?;
            let rows = made.fill(db, self.file.file(), &target, stop, gather)?;
            return Ok((rows, self.file.finish()?));
        }
        // SQLite writes at any offset, so the database is created in a temporary file. Its name is removed at once where the
        // system allows that, so that the file is removed however the program ends. On other systems it is removed at the end.
        let dir = made.temp_dir;
        let temporary = tempfile::NamedTempFile::new_in(dir).at(dir, "make a temporary file in")?;
        let db = open(temporary.path()).sql(dir, "write a temporary file in")?;
        let (file, name) = temporary.into_parts();
        let name = (!cfg!(unix)).then_some(name);
        let rows = made.fill(db, &file, dir, stop, gather)?;
        copy(&file, dir, &mut self.file, stop)?;
        drop(name);
        Ok((rows, self.file.finish()?))
    }
}

/// The description of a new database.
pub(super) struct MadeDatabase<'a> {
    pub info: &'a Info,
    /// The approximate size in bytes.
    pub size: u64,
    /// The directory in which the database is created if its target cannot be written at any offset.
    pub temp_dir: &'a Path,
}

impl MadeDatabase<'_> {
    /// Fills an empty database that is in `file`. Returns the number of rows. Errors name `path`.
    fn fill(
        &self,
        db: Connection,
        file: &File,
        path: &Path,
        stop: &AtomicBool,
        gather: impl FnOnce(&mut Gatherer<'_>) -> Result<()> + Send,
    ) -> Result<u64> {
        let doing = "write";
        let page_size = if self.size < LARGE { 4096 } else { 32768 };
        db.pragma_update(None, "page_size", page_size)
            .and_then(|()| db.execute_batch(SETTINGS))
            .and_then(|()| db.execute_batch(TABLES))
            .and_then(|()| db.execute_batch("BEGIN"))
            .sql(path, doing)?;
        let failure = Failure::default();
        let mut table = BookTable {
            db: &db,
            rows: 0,
            checksum: Checksum::default(),
        };
        let gather = |blocks: &Feeder<RowBlock>| {
            let block = RowBlock::default();
            let mut gatherer = Gatherer {
                blocks,
                block,
                target: path,
            };
            gather(&mut gatherer)?;
            gatherer.hand_over()
        };
        // One thread collects the rows, which are scattered over memory, while another inserts them.
        let insert = || {
            thread::scope(|scope| {
                let mut blocks = task::start_in(scope, "gather", AHEAD, gather)?;
                while let Some(block) = blocks.next(&[stop, &failure.flag()])? {
                    task::fault("insert");
                    table.insert(&block).sql(path, doing)?;
                }
                Ok(())
            })
        };
        // Writing to the disk takes as long as inserting, so it is not left to the end. The result must be checked, because the
        // system reports lost bytes only once.
        let flush = || {
            task::fault("flush");
            file.sync_data().at(path, doing)
        };
        task::while_repeating("flush", FLUSH_EVERY, flush, &failure, insert)?;
        let BookTable { rows, checksum, .. } = table;
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        self.info
            .write(&db, rows, checksum)
            .and_then(|()| db.execute_batch("COMMIT"))
            .and_then(|()| db.close().map_err(|(_, err)| err))
            .sql(path, doing)?;
        Ok(rows)
    }
}

/// Opens a file that only this run writes. SQLite takes no lock: on NFS, SQLite's lock would conflict with the lock by which
/// this process claims the file.
fn open(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if cfg!(unix) {
        return Connection::open_with_flags_and_vfs(path, flags, "unix-none");
    }
    Connection::open_with_flags(path, flags)
}

/// Copies a complete database from `file` to `out`.
fn copy(mut file: &File, dir: &Path, out: &mut AtomicFile, stop: &AtomicBool) -> Result<()> {
    let reading = "read a temporary file in";
    file.rewind().at(dir, reading)?;
    let target = out.target().to_owned();
    let mut buffer = vec![0; BLOCK];
    loop {
        let length = file.read(&mut buffer).at(dir, reading)?;
        if length == 0 {
            return Ok(());
        }
        out.write_all(&buffer[..length]).at(&target, "write")?;
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
    }
}

/// Packs a position with the moves that the filter selects. Returns `None` if it selects no move.
fn pack<'a, P: Rules>(
    packer: &'a mut Packer,
    pos: &P,
    moves: &[LegalCount],
    info: &Info,
) -> Option<&'a [u8]> {
    let turn = pos.turn();
    let selected = |count: &&LegalCount| info.move_filter.selects(turn, count.stats);
    if !moves.iter().any(|count| selected(&count)) {
        return None;
    }
    packer.start(|text| write_epd(pos, text));
    for count in moves.iter().filter(selected) {
        packer.row(count.stats, |text| write_uci(pos, count.mv, text));
    }
    Some(packer.finish())
}

fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).expect("EPDs and moves are ASCII")
}

//! Writing a database.

use std::{
    fs::File,
    io::{Read, Seek, Write},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use rusqlite::{Connection, OpenFlags};

use super::{
    error::Sql,
    in_use,
    info::Info,
    row::Row,
    sorted::{Packer, Piles, unpacked},
    table::{BLOCK, BookTable, Gatherer, RowBlock, SETTINGS, TABLES},
    walk::{LegalCount, walk},
};
use crate::{
    checksum::Checksum,
    error::{At, Error, Result},
    output::{AtomicFile, Finished},
    position::{Keyed, Rules, write_epd, write_uci},
    progress::Meter,
    sort::Memory,
    tally::Counts,
    task::{self, Failure, Feeder},
};

/// A database of at least this many bytes has large pages, which are written in less time; a small one
/// would be little else than their unused ends.
const LARGE: u64 = 1 << 24;

/// How often the written bytes are sent to the disk.
const FLUSH_EVERY: Duration = Duration::from_millis(200);

/// How many positions are found between two counts of the progress.
const METERED: u64 = 256;

/// Blocks of rows that are gathered ahead.
const AHEAD: usize = 4;

/// Makes a database.
#[derive(Debug)]
pub struct ObsWriter {
    file: AtomicFile,
}

/// The numbers of a written database.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct ObsSummary {
    /// Rows of the table `Book`.
    pub rows: u64,
    /// Positions and moves that are missing because two positions share a key, which is hardly ever.
    pub strays: u64,
}

impl ObsWriter {
    /// Starts a database. A database that exists is replaced with `force` only.
    ///
    /// For standard output, a pipe or a device, the database is made in a temporary file and copied when it is
    /// complete.
    ///
    /// # Errors
    ///
    /// A directory that cannot be written, a file there that is not an OOBS database, the journal of one that another
    /// program has open or did not finish, and [`Error::Exists`](crate::Error::Exists).
    pub fn create(path: impl AsRef<Path>, force: bool) -> Result<ObsWriter> {
        let mut file = AtomicFile::create_over(path, |old| super::check_replaceable(old, force))?;
        if file.is_seekable() {
            let target = file.resolved_target();
            let checked = in_use::check(target, target);
            checked.map_err(|err| Error::changed(file.target(), err.to_string()))?;
            file.set_guard(in_use::check);
        }
        Ok(ObsWriter { file })
    }

    /// The file that will be there.
    pub fn target(&self) -> &Path {
        self.file.target()
    }

    /// Writes the moves that are [selected](crate::tally::MoveFilter::selects) of all positions that the
    /// counted moves lead to from `starts`, ordered by EPD and then by games. Rows are sorted in `memory`.
    /// Works on all threads of the rayon pool that it is called in. `meter` has the steps that the caller
    /// expects; half of them is finding the positions, the rest is writing their rows.
    ///
    /// # Errors
    ///
    /// A file that cannot be written, or [`Error::Interrupted`].
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
        let strays = walk(
            counts,
            starts,
            stop,
            |(packer, seen): &mut (Packer, u64), pos: &P, moves| {
                *seen += 1;
                if seen.is_multiple_of(METERED) {
                    meter.advance(METERED);
                }
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
                    gatherer.take(text(epd), text(mv), Row::ACTIVE, stats, None)
                })
            })
        })?;
        Ok((ObsSummary { rows, strays }, finished))
    }

    /// Writes the rows that `gather` takes, in order; returns how many there are.
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
        // SQLite writes here and there, so the file is made elsewhere. Without a name it is gone however the program
        // ends; where an open file cannot lose its name, it is deleted at the end.
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

/// A database that is made.
pub(super) struct MadeDatabase<'a> {
    pub info: &'a Info,
    /// About how many bytes it will have.
    pub size: u64,
    /// Where it is made if its target cannot be written here and there.
    pub temp_dir: &'a Path,
}

impl MadeDatabase<'_> {
    /// Fills an empty database, which is in `file`. Errors name `path`.
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
        // One thread gathers the rows from all over memory while another inserts them.
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
        // The disk has as much to do as the processor, so it is not left to the end. The system reports once that it
        // lost the written bytes.
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

/// Opens a file that this run alone writes. SQLite takes no lock of its own: on NFS the lock that claims the file for
/// the run would keep SQLite out, although both are of one process.
fn open(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if cfg!(unix) {
        return Connection::open_with_flags_and_vfs(path, flags, "unix-none");
    }
    Connection::open_with_flags(path, flags)
}

/// Copies a complete database.
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

/// Packs a position with the moves that are selected; `None` if there are none.
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

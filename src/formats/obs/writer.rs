//! Writes OOBS databases: collects encoded positions, sorts them by EPD, creates the tables of a new database, and
//! fills the table `Book`.
//!
//! A [walk](recover_positions) finds positions in arbitrary order, each with all its rows. Each thread collects them in
//! its own sorter, and the sorters are merged. The rows of the [`BookTable`] and the entries of its index are then
//! appended.
//!
//! An encoded position consists of its EPD, a null byte, and its rows. Each row consists of the length of the move, the
//! move, and three numbers in a variable-length encoding with seven bits per byte.

use std::{
    fs::File,
    io::{self, Read, Seek, Write},
    iter,
    ops::Range,
    path::Path,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::Duration,
};

use integer_encoding::VarInt;
use rusqlite::{Connection, OpenFlags};

use super::{
    book_table::{BookTable, Fields},
    error::{ObsError, Sql},
    info::Info,
    rows::{MAX_GAMES_PER_ROW, ObsRow},
};
use crate::{
    chess::position::{Keyed, Rules, Variant, epd_of, write_epd, write_uci},
    error::{At, Error, Result},
    formats::counts::{Counts, FoundPosition, LegalCount, recover_positions},
    games::results::Wdl,
    progress::Meter,
    storage::checksum::Checksum,
    storage::output::{AtomicFile, Finished},
    storage::sort::{Memory, ThreadSorters},
    task::{self, Failure, Feeder},
};

/// The estimated size, in bytes, from which on a database is written with large pages. Large pages are faster to write,
/// but would be mostly empty in a small database.
const LARGE_DATABASE: u64 = 1 << 24;

/// The interval at which a database file is flushed to the disk while rows are being written, so that little is left to
/// flush at the end.
const FLUSH_INTERVAL: Duration = Duration::from_millis(200);

/// The number of positions between two updates of the progress meter.
const POSITIONS_PER_UPDATE: u64 = 256;

/// The maximum number of blocks of rows that wait in the queue of the thread that writes them to the database.
const MAX_QUEUED_BLOCKS: usize = 4;

/// A writer of a new OOBS database. When the database is complete, it replaces the file at the target path.
#[derive(Debug)]
pub struct ObsWriter {
    file: AtomicFile,
}

/// The result of writing an OOBS database: the number of its rows, and the numbers of counted moves and positions that
/// were left out.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ObsSummary {
    /// The number of rows of the table `Book`.
    pub rows: u64,
    /// The number of moves that were left out because they have fewer games than the filter's minimum.
    pub rare: u64,
    /// The number of positions and moves that are missing because two positions have the same hash key. This is almost
    /// always 0.
    pub strays: u64,
    /// The EPD of the first position in the database, or `None` if the database contains the starting position of its
    /// variant.
    pub first: Option<String>,
}

impl ObsWriter {
    /// Creates a writer for a new OOBS database at `path`. An existing database is replaced only if `force` is `true`.
    ///
    /// If `path` is standard output, a pipe or a device, the database is created in a temporary file and copied to
    /// `path` when it is complete.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory cannot be written, if `path` is a file that is not an OOBS database, or if
    /// another program has the existing database open or left it unfinished. Returns
    /// [`Error::Exists`](crate::Error::Exists) if a database exists and `force` is `false`.
    pub fn create(path: impl AsRef<Path>, force: bool) -> Result<ObsWriter> {
        let mut file = AtomicFile::create_over(path, |old| super::check_replaceable(old, force))?;
        file.refuse_database_in_use()?;
        Ok(ObsWriter { file })
    }

    /// Returns the path at which the complete database will be placed.
    pub fn target(&self) -> &Path {
        self.file.target()
    }

    /// Writes a database of all positions that moves in `counts` reach from the positions `starts`. Each position gets
    /// one row for each move that the filter of `info` [selects](crate::formats::counts::MoveFilter::selects). Rows are
    /// sorted by EPD, then by number of games in descending order.
    ///
    /// Sorts within the memory budget `memory`, and uses all threads of the current rayon pool. `meter` shows the
    /// progress, and must have a total, half of which is for finding the positions, and half for writing the rows.
    /// Returns a summary and the finished output, which the caller must rename to its target.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be written. Returns [`Error::Interrupted`] if `stop` is set.
    pub fn write<P: Rules>(
        self,
        counts: &Counts,
        starts: impl Iterator<Item = Result<Keyed<P>>> + Send,
        info: &Info,
        memory: &Memory,
        stop: &AtomicBool,
        meter: &Meter,
    ) -> Result<(ObsSummary, Finished)> {
        let sorters = ThreadSorters::new(rayon::current_num_threads(), memory);
        let rare = AtomicU64::new(0);
        let strays = recover_positions(
            counts,
            starts,
            stop,
            |(packer, seen): &mut (Packer, u64), found: FoundPosition<'_, P>| {
                let (pos, moves) = (found.line.position(), found.moves);
                *seen += 1;
                if seen.is_multiple_of(POSITIONS_PER_UPDATE) {
                    meter.advance(POSITIONS_PER_UPDATE);
                }
                let is_rare = |count: &&LegalCount| count.stats.games() < info.move_filter.min_game;
                rare.fetch_add(
                    moves.iter().filter(is_rare).count() as u64,
                    Ordering::Relaxed,
                );
                match pack(packer, pos, moves, info) {
                    Some(packed) => sorters.push(packed),
                    None => Ok(()),
                }
            },
        )?;
        let rows = sorters.into_sorted();
        let properties = DatabaseProperties {
            info,
            size: 2 * rows.size(),
            temp_dir: &memory.temp_dir,
        };
        let variant: Variant = info.variant.parse().unwrap_or_default();
        let start = epd_of(&variant.start());
        let (mut first, mut has_start) = (None, false);
        let steps_per_byte = meter.total() as f64 / 2.0 / rows.size().max(1) as f64;
        let (rows, finished) = self.write_rows(properties, stop, |collector| {
            let mut steps = 0.0;
            rows.for_each(|packed| {
                steps += packed.len() as f64 * steps_per_byte;
                if steps >= POSITIONS_PER_UPDATE as f64 {
                    meter.advance(steps as u64);
                    steps = 0.0;
                }
                let (epd, mut rows) = unpacked(packed);
                let epd = text(epd);
                has_start |= epd == start;
                first.get_or_insert_with(|| epd.to_owned());
                rows.try_for_each(|(mv, stats)| {
                    collector.take(epd, text(mv), ObsRow::ACTIVE, stats, None)
                })
            })
        })?;
        let rare = rare.into_inner();
        let summary = ObsSummary {
            rows,
            rare,
            strays,
            first: first.filter(|_| !has_start),
        };
        Ok((summary, finished))
    }

    /// Creates the database that `properties` describes. Calls `gather` with a [`RowCollector`], to which `gather` must
    /// pass all rows of the database in their final order. Returns the number of rows and the finished output. If
    /// `stop` is set, the operation is cancelled.
    pub(super) fn write_rows(
        mut self,
        properties: DatabaseProperties<'_>,
        stop: &AtomicBool,
        gather: impl FnOnce(&mut RowCollector<'_>) -> Result<()> + Send,
    ) -> Result<(u64, Finished)> {
        let target = self.file.target().to_owned();
        if self.file.is_seekable() {
            let db = open(self.file.temporary_path()).sql(&target, "write")?;
            let rows = properties.fill(db, self.file.file(), &target, stop, gather)?;
            return Ok((rows, self.file.finish()?));
        }
        // The target cannot be written at any offset, as SQLite needs, so the database is created in a temporary file.
        // The name of the temporary file is removed at once if the system allows this, so that no file remains however
        // the program ends. Otherwise the name is removed at the end.
        let dir = properties.temp_dir;
        let temporary =
            tempfile::NamedTempFile::new_in(dir).at(dir, "create a temporary file in")?;
        let db = open(temporary.path()).sql(dir, "write a temporary file in")?;
        let (file, name) = temporary.into_parts();
        let name = (!cfg!(unix)).then_some(name);
        let rows = properties.fill(db, &file, dir, stop, gather)?;
        copy(&file, dir, &mut self.file, stop)?;
        drop(name);
        Ok((rows, self.file.finish()?))
    }
}

/// The properties of a database that is about to be written.
pub(super) struct DatabaseProperties<'a> {
    pub info: &'a Info,
    /// The approximate size of the database in bytes.
    pub size: u64,
    /// The directory in which the database is created if its target cannot be written at any offset.
    pub temp_dir: &'a Path,
}

impl DatabaseProperties<'_> {
    /// Creates the tables of the empty database `db` and fills them. Calls `gather` with a [`RowCollector`], to which
    /// `gather` must pass all rows. The database file, `file`, is flushed to the disk at intervals while the rows are
    /// written. Returns the number of rows. If `stop` is set, the operation is cancelled. Error messages name `path`.
    fn fill(
        &self,
        db: Connection,
        file: &File,
        path: &Path,
        stop: &AtomicBool,
        gather: impl FnOnce(&mut RowCollector<'_>) -> Result<()> + Send,
    ) -> Result<u64> {
        let doing = "write";
        let page_size = if self.size < LARGE_DATABASE {
            4096
        } else {
            32768
        };
        db.pragma_update(None, "page_size", page_size)
            .and_then(|()| db.execute_batch(SETTINGS))
            .and_then(|()| db.execute_batch(TABLES))
            .sql(path, doing)?;
        let failure = Failure::default();
        let mut table = BookTable::of_new(&db, file, path)?;
        let mut checksum = Checksum::default();
        let gather = |blocks: &Feeder<RowBlock>| {
            let mut collector = RowCollector {
                blocks,
                block: RowBlock::default(),
                fields: Vec::new(),
                target: path,
            };
            gather(&mut collector)?;
            collector.hand_over()
        };
        // One thread collects the rows, which are scattered over memory, while another thread writes them.
        let insert = || {
            thread::scope(|scope| {
                let mut blocks = task::start_in(scope, "gather", MAX_QUEUED_BLOCKS, gather)?;
                while let Some(block) = blocks.next(&[stop, &failure.flag()])? {
                    task::fault("rows");
                    block.add_to(&mut table).at(path, doing)?;
                    checksum = checksum.plus(block.checksum);
                }
                Ok(())
            })
        };
        // The file is flushed while rows are written. The result must be checked, because the system reports a failed write
        // only once.
        let flush = || {
            task::fault("flush");
            file.sync_data().at(path, doing)
        };
        task::while_repeating("flush", FLUSH_INTERVAL, flush, &failure, insert)?;
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let rows = table.finish().at(path, doing)?;
        db.execute_batch("BEGIN")
            .and_then(|()| self.info.write(&db, rows, checksum))
            .and_then(|()| db.execute(LAST_ID, [rows as i64]))
            .and_then(|_| db.execute_batch("COMMIT"))
            .and_then(|()| db.close().map_err(|(_, err)| err))
            .sql(path, doing)?;
        Ok(rows)
    }
}

/// Opens a database file for writing. The caller must make sure that no other process writes it. On Unix, SQLite opens
/// the file without a lock, because this process already holds a lock on it, and the two locks would conflict on NFS.
pub(super) fn open(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if cfg!(unix) {
        return Connection::open_with_flags_and_vfs(path, flags, "unix-none");
    }
    Connection::open_with_flags(path, flags)
}

/// Copies the complete database in `file` to the output `out`. If reading `file` fails, the error names its directory,
/// `dir`. If `stop` is set, the copying is cancelled.
fn copy(mut file: &File, dir: &Path, out: &mut AtomicFile, stop: &AtomicBool) -> Result<()> {
    let reading = "read a temporary file in";
    file.rewind().at(dir, reading)?;
    let target = out.target().to_owned();
    let mut buffer = vec![0; BLOCK_SIZE];
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

/// Encodes the position `pos`, with the counted moves in `moves` that the filter of `info` selects. Returns the
/// encoding, which is stored in `packer`, or `None` if the filter selects no move.
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

/// The SQL statements that create the tables of an OOBS database. They create the same tables as the tool of the OOBS
/// standard. The name of the index differs from the one in the standard's document, so that users can still run the
/// `CREATE INDEX` statement of this document.
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

/// The SQLite settings for writing a new database. No journal is needed, because an incomplete file never
/// replaces the target.
pub(super) const SETTINGS: &str = "
    PRAGMA journal_mode = OFF;
    PRAGMA synchronous = OFF;";

/// The SQL statement that stores the largest ID of the table `Book`, after which `AUTOINCREMENT` continues. Like SQLite
/// itself, the statement stores nothing if the table has no rows.
const LAST_ID: &str = "INSERT INTO sqlite_sequence (name, seq) SELECT 'Book', ?1 WHERE ?1 > 0";

/// The size in bytes at which a block of rows is sent to the thread that writes rows.
pub(super) const BLOCK_SIZE: usize = 1 << 20;

/// A block of rows of a new database. One string contains the EPDs, moves and comments of all rows.
#[derive(Default)]
pub(super) struct RowBlock {
    text: String,
    rows: Vec<NewRow>,
    /// The checksum of the rows.
    checksum: Checksum,
}

/// A row of the table `Book`. Its EPD, move and comment are byte ranges in the string of a [`RowBlock`].
struct NewRow {
    epd: Range<usize>,
    mv: Range<usize>,
    comment: Option<Range<usize>>,
    active: i64,
    stats: Wdl,
}

impl RowBlock {
    fn push_text(&mut self, text: &str) -> Range<usize> {
        let start = self.text.len();
        self.text.push_str(text);
        start..self.text.len()
    }

    /// Replaces the content of `text` with the fields of `row`, in the order of the table's columns and separated by
    /// tabs. The caller adds this text to the checksum of the database.
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

    /// Adds the rows to `table`.
    fn add_to(&self, table: &mut BookTable<'_>) -> io::Result<()> {
        for row in &self.rows {
            table.add(Fields {
                epd: &self.text[row.epd.clone()],
                mv: &self.text[row.mv.clone()],
                active: row.active,
                stats: row.stats,
                comment: row.comment.clone().map(|comment| &self.text[comment]),
            })?;
        }
        Ok(())
    }
}

/// A collector of the rows of a new database, which sends the rows in blocks to the thread that writes them.
pub(super) struct RowCollector<'a> {
    blocks: &'a Feeder<RowBlock>,
    block: RowBlock,
    /// A buffer for the fields of a row.
    fields: Vec<u8>,
    /// The path of the database, for error messages.
    target: &'a Path,
}

impl RowCollector<'_> {
    /// Adds a row to the collected rows of the new database. The row contains the results `stats` of the move `mv` (in
    /// UCI notation) in the position `epd`. `active` is the value of the column `Active`, which is 1 if the move may be
    /// played. Rows must be added in ascending order of their EPDs.
    ///
    /// # Errors
    ///
    /// Returns an error if the number of wins, draws or losses exceeds [`MAX_GAMES_PER_ROW`].
    pub(super) fn take(
        &mut self,
        epd: &str,
        mv: &str,
        active: i64,
        stats: Wdl,
        comment: Option<&str>,
    ) -> Result<()> {
        let games = stats.wins.max(stats.draws).max(stats.losses);
        if games > MAX_GAMES_PER_ROW as u64 {
            let too_many = ObsError::TooManyGames {
                epd: epd.to_owned(),
                mv: mv.to_owned(),
                games,
                most: MAX_GAMES_PER_ROW as u64,
            };
            return Err(too_many.at(self.target));
        }
        let block = &mut self.block;
        let row = NewRow {
            epd: match block.rows.last() {
                Some(last) if block.text[last.epd.clone()] == *epd => last.epd.clone(),
                last => {
                    debug_assert!(last.is_none_or(|last| block.text[last.epd.clone()] < *epd));
                    block.push_text(epd)
                }
            },
            mv: block.push_text(mv),
            comment: comment.map(|comment| block.push_text(comment)),
            active,
            stats,
        };
        block.write_fields(&row, &mut self.fields);
        block.checksum.add(&self.fields);
        block.rows.push(row);
        if block.text.len() + block.rows.len() * size_of::<NewRow>() >= BLOCK_SIZE {
            self.hand_over()?;
        }
        Ok(())
    }

    /// Sends the rows collected so far to the thread that writes rows.
    pub(super) fn hand_over(&mut self) -> Result<()> {
        task::fault("gather");
        self.blocks.send(std::mem::take(&mut self.block))
    }
}

/// The maximum length in bytes of an integer in the variable-length encoding that an encoded position uses for wins,
/// draws and losses.
const LONGEST_NUMBER: usize = 10;

/// An encoder of positions with their moves and results. The encoder reuses its buffers from one position to the next.
#[derive(Default, Debug)]
pub(super) struct Packer {
    packed: Vec<u8>,
    moves: Vec<u8>,
    /// For each row, the range of its move in `moves`, and its results.
    rows: Vec<(Range<usize>, Wdl)>,
}

impl Packer {
    /// Begins the encoding of a position. `write` must append the EPD of the position to the buffer that it receives.
    pub(super) fn start(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.packed.clear();
        write(&mut self.packed);
        self.packed.push(0);
        self.moves.clear();
        self.rows.clear();
    }

    /// Adds a move with its results `stats` to the current position. `write` must append the move as text to the buffer
    /// that it receives.
    pub(super) fn row(&mut self, stats: Wdl, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.moves.len();
        write(&mut self.moves);
        self.rows.push((start..self.moves.len(), stats));
    }

    /// Returns the encoded position, with its moves sorted by number of games in descending order and then by text.
    pub(super) fn finish(&mut self) -> &[u8] {
        let moves = &self.moves;
        self.rows.sort_unstable_by(|(a, a_stats), (b, b_stats)| {
            let games = b_stats.games().cmp(&a_stats.games());
            games.then_with(|| moves[a.clone()].cmp(&moves[b.clone()]))
        });
        for (mv, stats) in &self.rows {
            self.packed.push(mv.len() as u8);
            self.packed.extend_from_slice(&moves[mv.clone()]);
            for number in [stats.wins, stats.draws, stats.losses] {
                let mut bytes = [0; LONGEST_NUMBER];
                let length = number.encode_var(&mut bytes);
                self.packed.extend_from_slice(&bytes[..length]);
            }
        }
        &self.packed
    }
}

/// Decodes a position that [`Packer`] encoded. Returns its EPD, and an iterator over pairs of a move and its
/// results.
#[inline]
pub(super) fn unpacked(packed: &[u8]) -> (&[u8], impl Iterator<Item = (&[u8], Wdl)>) {
    let end = memchr::memchr(0, packed).expect("an EPD has an end");
    let mut rest = &packed[end + 1..];
    let rows = iter::from_fn(move || {
        let (length, after) = rest.split_first()?;
        let (mv, after) = after.split_at(usize::from(*length));
        rest = after;
        let mut number = || {
            let (number, length) = u64::decode_var(rest).expect("a row has three numbers");
            rest = &rest[length..];
            number
        };
        let stats = Wdl {
            wins: number(),
            draws: number(),
            losses: number(),
        };
        Some((mv, stats))
    });
    (&packed[..end], rows)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rayon::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn positions_come_in_order_from_memory_and_files(
            boards in proptest::collection::hash_set(
                "((rnbqkbnr/pppppppp/8/8/8/){0,2}|[1-8KQRBNPkqrbnp/~\\[\\]]{0,40})[1-3]{0,2} [wb] (-|[KQkq]{1,4})", 0..300,
            ),
            quota in prop_oneof![Just(1usize << 12), Just(1 << 14), Just(1 << 20)],
        ) {
            let sorters = ThreadSorters::new(3, &Memory { bytes: 3 * quota, ..Memory::default() });
            boards.par_iter().for_each_init(Packer::default, |packer, board| {
                packer.start(|text| text.extend_from_slice(board.as_bytes()));
                packer.row(Wdl::default(), |text| text.extend_from_slice(b"a2a3"));
                sorters.push(packer.finish()).unwrap();
            });
            let mut found = Vec::new();
            sorters.into_sorted().for_each(|packed| {
                found.push(String::from_utf8(unpacked(packed).0.to_vec()).unwrap());
                Ok(())
            }).unwrap();
            let mut expected: Vec<String> = boards.into_iter().collect();
            expected.sort();
            prop_assert_eq!(found, expected);
        }
    }

    proptest! {
        #[test]
        fn what_is_packed_comes_back(
            epd in "[ -~]{0,90}", numbers in proptest::collection::vec(any::<u64>(), 0..40),
        ) {
            let mut packer = Packer::default();
            packer.start(|text| text.extend_from_slice(epd.as_bytes()));
            for wins in &numbers {
                let stats = Wdl { wins: *wins >> 1, draws: 1 << 40, losses: 0 };
                packer.row(stats, |text| text.extend_from_slice(b"e7e8q"));
            }
            let packed = packer.finish();
            let (found_epd, rows) = unpacked(packed);
            prop_assert_eq!(found_epd, epd.as_bytes());
            let mut found = Vec::new();
            for (mv, stats) in rows {
                prop_assert_eq!((mv, stats.draws, stats.losses), (&b"e7e8q"[..], 1 << 40, 0));
                found.push(stats.wins);
            }
            let mut expected: Vec<u64> = numbers.iter().map(|wins| wins >> 1).collect();
            expected.sort_by_key(|wins| std::cmp::Reverse(*wins));
            prop_assert_eq!(found, expected);
        }
    }
}

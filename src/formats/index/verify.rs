//! Verifies an index. The tables are also read with the crate `rusty-leveldb`, an independent implementation of
//! LevelDB, to verify polybook's own reader.

use std::{
    cell::RefCell,
    fmt,
    fs::{self, File},
    io::{self, Read, Write},
    mem,
    path::{Path, PathBuf},
    rc::Rc,
};

use rusty_leveldb::{
    DB, DBIterator, LdbIterator, MemEnv, Options,
    env::{Env, FileLock, Logger, RandomAccess},
};

use super::{IndexKind, read::Index};
use crate::{
    error::{At, Error, ErrorKind, Result},
    formats::{
        explorer_index::{
            self, COUNTS, CountedContents, IndexDescription, LISTS, ListEntry, ListKey,
            count_pages::for_each_counted,
            game_details::GAMES_PER_ENTRY,
            game_rows::ROWS_PER_ENTRY,
            list_entry,
            list_record::NAMED,
            lists::{ChunkedList, List, for_each_list},
            names::NAMES_PER_ENTRY,
            results::{Period, games_of},
        },
        fork_index::layout::{self, GameHeader, IdReader, PositionStats},
        leveldb::TableValue,
    },
    progress::Meter,
    storage::{output::read_again_if_replaced, positioned::read_exact_at},
    task,
};

/// The maximum length in bytes of a value that is held in memory as a whole while it is checked. Longer values are read
/// in parts.
const MAX_VALUE_IN_MEMORY: usize = 8 << 20;

/// The maximum size in bytes of a table that is also read with the crate `rusty-leveldb`, which holds several copies of
/// a value in memory. If any table of an index is larger, the whole index is checked without this crate.
const MAX_SECOND_OPINION_TABLE: u64 = 64 << 20;

/// The result of [`verify`]: the faults of an index, and the numbers of its entries, games and positions.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct VerifiedIndex {
    /// The faults, one for each kind of problem. If there are none, the index is not damaged, and queries return
    /// exactly what was written to it.
    pub faults: Vec<IndexFault>,
    /// The number of entries of the LevelDB database.
    pub entries: u64,
    /// The number of games.
    pub games: u64,
    /// The number of positions.
    pub positions: u64,
    /// Whether the entries were also read with the crate `rusty-leveldb` and compared. This comparison is skipped if a
    /// fault was found, or if a table is larger than 64 MiB because of a very long list.
    pub has_second_opinion: bool,
}

/// A fault that was found in an index, and the number of entries that have this fault.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct IndexFault {
    /// A description of the problem. If a file of the index is damaged, the description names this file. If a file or
    /// the entry that describes the whole index is damaged, the rest of the index was not checked.
    pub problem: String,
    /// The key of the first entry that has this fault, or an empty vector if the fault concerns a whole file.
    pub key: Vec<u8>,
    /// The number of entries that have this fault.
    pub count: u64,
}

impl fmt::Display for IndexFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.key.is_empty() {
            write!(f, "the entry '{}' ", self.key.escape_ascii())?;
        }
        f.write_str(&self.problem)?;
        match self.count - 1 {
            0 => Ok(()),
            more => write!(f, " ({more} more entries have this fault)"),
        }
    }
}

/// Checks a whole index without changing it. Verifies the checksum of every block, the order of the keys, and the
/// format of each value. Also checks that the values do not contradict each other. If no fault is found, reads all
/// entries a second time with the crate `rusty-leveldb`, and checks that both readers return the same entries.
///
/// # Errors
///
/// Returns an error if `path` is not an index, if the index is too damaged to be opened, or if a file cannot be read.
pub fn verify(path: impl AsRef<Path>, meter: &Meter) -> Result<VerifiedIndex> {
    let path = path.as_ref();
    // Both readers open the directory by its name. If the index is replaced in between, they read two different
    // indexes, which looks like damage.
    let is_damaged = |found: &VerifiedIndex| !found.faults.is_empty();
    task::caught(|| read_again_if_replaced(path, || verify_once(path, meter), is_damaged))
}

/// Checks the index at `path`. The caller must check whether another program replaced the index meanwhile and, if so,
/// call the function again.
fn verify_once(path: &Path, meter: &Meter) -> Result<VerifiedIndex> {
    let index = Index::open(path)?;
    let sizes = index.database().table_sizes();
    let longest = sizes.iter().max();
    let is_seconded = longest.is_none_or(|size| *size <= MAX_SECOND_OPINION_TABLE);
    let passes = 1 + u64::from(is_seconded);
    meter.add_total(passes * sizes.iter().sum::<u64>());
    let mut found = VerifiedIndex::default();
    let checked = check(&index, &mut found, meter);
    found.file_fault(index.path(), checked)?;
    if found.faults.is_empty() && is_seconded {
        let failure = SystemError::default();
        let compared = task::caught(|| {
            let second = SecondOpinion::open(index.path(), failure.clone())?;
            compare(&index, second, &mut found, meter)
        });
        if let Some(err) = failure.take() {
            return Err(err).at(path, "read");
        }
        if let Err(Error::Panicked { message }) = compared {
            found.fault(&format!("the library rusty-leveldb, which checks the index a second time, failed: {message}"), b"");
        } else {
            found.file_fault(index.path(), compared)?;
        }
        found.has_second_opinion = true;
    }
    Ok(found)
}

impl VerifiedIndex {
    fn fault(&mut self, problem: &str, key: &[u8]) {
        let mut known = self.faults.iter_mut();
        match known.find(|fault| fault.problem == problem) {
            Some(fault) => fault.count += 1,
            None => self.faults.push(IndexFault {
                problem: problem.to_owned(),
                key: key.to_vec(),
                count: 1,
            }),
        }
    }

    /// Converts an error about a damaged file to a fault. If `checked` is such an error, adds it to the faults of the
    /// index and returns `Ok`. Otherwise, returns `checked` unchanged. `index` is the path of the index. The
    /// description of the fault names the damaged file, unless the error is about `index` as a whole.
    fn file_fault(&mut self, index: &Path, checked: Result<()>) -> Result<()> {
        match checked {
            Err(Error::File {
                path,
                kind: ErrorKind::Damaged,
                problem,
            }) => {
                let problem = problem.text().trim_end_matches("make the index again");
                let problem = problem.trim_end_matches([';', ':', ' ']);
                let file = if path == index {
                    String::new()
                } else {
                    format!("{}: ", path.display())
                };
                self.fault(&format!("{file}{problem}"), b"");
                Ok(())
            }
            checked => checked,
        }
    }
}

/// Compares all entries of the index, as polybook reads them, with the entries that `second` reads with the crate
/// `rusty-leveldb`. Adds the first difference to the faults in `found`.
fn compare(
    index: &Index,
    mut second: SecondOpinion,
    found: &mut VerifiedIndex,
    meter: &Meter,
) -> Result<()> {
    // `rusty-leveldb` holds several copies of each value in memory anyway, so our reader may hold another one.
    let mut entries = index.database().entries(usize::MAX)?;
    let mut passed = 0;
    while entries.advance()? {
        if !second.agrees(entries.key(), entries.value().held()) {
            found.fault(
                "is read differently by the library rusty-leveldb",
                entries.key(),
            );
            return Ok(());
        }
        meter.advance(entries.passed() - mem::replace(&mut passed, entries.passed()));
    }
    if let Some(key) = second.key() {
        found.fault("is read only by the library rusty-leveldb", &key);
    }
    Ok(())
}

/// Checks each entry of the index, and checks that the entries do not contradict each other. Adds the faults to
/// `found`.
///
/// # Errors
///
/// Returns an error if a file cannot be read, or if the index is so damaged that the check cannot continue.
fn check(index: &Index, found: &mut VerifiedIndex, meter: &Meter) -> Result<()> {
    index.database().check_metadata()?;
    let mut check = IndexCheck {
        index,
        contents: index.contents(),
        counted: index.counted()?,
        found,
        open: Vec::new(),
        with_stats: 0,
        rows: 0,
        details: 0,
        names: 0,
        items: 0,
        separate: 0,
        files: 0,
    };
    let mut entries = index.database().entries(MAX_VALUE_IN_MEMORY)?;
    let mut passed = 0;
    while entries.advance()? {
        check.entry(entries.key(), entries.value())?;
        meter.advance(entries.passed() - mem::replace(&mut passed, entries.passed()));
    }
    check.finish()
}

/// The state of a check of an index. The entries are checked in the order of their keys.
struct IndexCheck<'a> {
    index: &'a Index,
    contents: Option<IndexDescription>,
    /// The description of an index without games, or `None` if the index contains games.
    counted: Option<CountedContents>,
    found: &'a mut VerifiedIndex,
    /// The positions whose statistics may still follow, sorted by the number of digits of their keys, ascending.
    open: Vec<OpenPosition>,
    /// The number of positions that have statistics.
    with_stats: u64,
    /// The number of entries with game rows so far. `details` and `names` are the numbers of entries with game details
    /// and with names.
    rows: u64,
    details: u64,
    names: u32,
    /// The number of items in all lists so far or, in an index without games, of rows.
    items: u64,
    /// The number of entries after the last page that belong to the next page: chunks of lists, and results by period.
    /// A page is an index entry with several lists or positions.
    separate: u64,
    /// The number of entries so far that describe inputs.
    files: u64,
}

struct OpenPosition {
    number: Vec<u8>,
    games: u64,
    stats: PositionStats,
    /// The number of entries of statistics that have been read for the position.
    stats_read: u64,
}

impl IndexCheck<'_> {
    fn entry(&mut self, key: &[u8], value: TableValue<'_>) -> Result<()> {
        self.found.entries += 1;
        let of_kind = match key {
            [b'0'..=b'9' | b'g', ..] => Some(IndexKind::Leveldb),
            [b'x', b'q' | b'y', ..] => Some(IndexKind::Counts),
            [b'x', ..] => Some(IndexKind::Explorer),
            _ => None,
        };
        if of_kind.is_some_and(|kind| kind != self.index.kind()) {
            self.found.fault("belongs to another kind of index", key);
            return Ok(());
        }
        self.close_positions(key);
        let digits = key.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, name) = key.split_at(digits);
        if name.is_empty() {
            return self.position(key, value);
        }
        let TableValue::Held(value) = value else {
            self.found.fault("has a value that is too long", key);
            return Ok(());
        };
        if digits > 0 {
            self.statistic(key, number, name, value);
            return Ok(());
        }
        let is_well_formed = match key {
            [b'g', ..] => self.game(key, value),
            [b'x', b'g', ..] => return self.rows(key),
            [b'x', b'h', ..] => return self.details(key),
            [b'x', b'n', ..] => return self.names(key),
            [b'x', b'p', ..] => return self.list(key, value),
            [b'x', b'q', ..] => return self.counts(key, value),
            layout::TOTAL_GAMES | layout::FILE_NAME | layout::FILE_COUNT => true,
            layout::VARIANT | explorer_index::CONTENTS | explorer_index::COUNTED => true,
            // These keys were read when the index was opened.
            _ if key.starts_with(b"options_") || key.starts_with(b"untagged_variant_") => {
                self.contents.is_some()
            }
            _ => {
                let is_file =
                    key.starts_with(b"pgn_file_") && layout::parse_file_value(value).is_some();
                self.files += u64::from(is_file);
                is_file
            }
        };
        if !is_well_formed {
            self.found.fault("is malformed", key);
        }
        Ok(())
    }

    /// Checks the entry with the key `key`, which lists the games of a position. `key` consists of the decimal digits
    /// of the position key.
    fn position(&mut self, key: &[u8], value: TableValue<'_>) -> Result<()> {
        self.found.positions += 1;
        let number = layout::parse_number(key).map(layout::position_key);
        if number.is_none_or(|number| number != key) {
            self.found.fault("is not the key of a position", key);
        }
        let (mut ids, mut games, mut is_well_formed) = (IdReader::default(), 0, true);
        let count = self.index.game_count();
        let mut read = |part: &[u8]| {
            let read = ids.read(part, |id| {
                games += 1;
                (u64::from(id) < count).then_some(())
            });
            is_well_formed &= read.is_some();
            Ok(())
        };
        match value {
            TableValue::Held(value) => read(value)?,
            TableValue::Long(value) => self.index.database().read_long(&value, read)?,
        }
        if !is_well_formed || !ids.is_done() || games == 0 {
            self.found
                .fault("lists game ids that are not in ascending order", key);
        }
        self.open.push(OpenPosition {
            number: key.to_vec(),
            games,
            stats: PositionStats::default(),
            stats_read: 0,
        });
        Ok(())
    }

    fn statistic(&mut self, key: &[u8], number: &[u8], name: &[u8], value: &[u8]) {
        match self.open.last_mut() {
            Some(open) if open.number == number => {
                open.stats_read += 1;
                if open.stats.read(name, value).is_none() {
                    self.found.fault("is malformed", key);
                }
            }
            _ => self.found.fault("belongs to a position without games", key),
        }
    }

    /// Checks the statistics of each position whose entries have all been read. This is the case if `next`, the key of
    /// the next entry, does not begin with the digits of the position key. Records a fault if some statistics of a
    /// position are missing or impossible, or if they contradict the list of the position's games.
    fn close_positions(&mut self, next: &[u8]) {
        while let Some(open) = self
            .open
            .pop_if(|open| layout::ends_before(&open.number, next))
        {
            match open.stats_read {
                0 => continue,
                4 if open.stats.games == open.games && open.stats.is_possible() => {}
                4 => self
                    .found
                    .fault("has statistics that contradict its games", &open.number),
                _ => self
                    .found
                    .fault("does not contain all statistics", &open.number),
            }
            self.with_stats += 1;
        }
    }

    /// Checks an entry that contains the record of a game, and counts the game. Returns `false` if the key or the value
    /// is malformed.
    fn game(&mut self, key: &[u8], value: &[u8]) -> bool {
        let header = GameHeader::parse(value.to_vec());
        let id = layout::game_id(key).filter(|id| layout::game_key(*id) == key);
        self.found.games += 1;
        header.is_some() && id.is_some_and(|id| u64::from(id) < self.index.game_count())
    }

    /// Checks the entry with the key `key`, which contains the rows of several games. Records a fault if the number in
    /// the key is not the next one, or if a row refers to a name that does not exist.
    fn rows(&mut self, key: &[u8]) -> Result<()> {
        let games = self.index.game_count();
        let names = self.contents.map_or(0, |contents| contents.names);
        let is_next = self.rows < games.div_ceil(ROWS_PER_ENTRY)
            && key == explorer_index::rows_key(self.rows as u32);
        if !is_next {
            self.found.fault("is not the next entry of rows", key);
            return Ok(());
        }
        let rows = self.index.row_entry(self.rows)?;
        let is_named =
            |row: &explorer_index::GameRow| row.white.max(row.black).max(row.event) < names;
        if !rows.iter().all(is_named) {
            self.found.fault(
                "contains a game that refers to a name that does not exist",
                key,
            );
        }
        self.found.games += rows.len() as u64;
        self.rows += 1;
        Ok(())
    }

    /// Checks the entry with the key `key`, which contains the details of several games. Records a fault if the number
    /// in the key is not the next one.
    fn details(&mut self, key: &[u8]) -> Result<()> {
        let entries = self.index.game_count().div_ceil(GAMES_PER_ENTRY);
        if self.details >= entries || key != explorer_index::details_key(self.details as u32) {
            self.found.fault("is not the next entry of details", key);
            return Ok(());
        }
        self.index.for_each_details(self.details, |_, _| Ok(()))?;
        self.details += 1;
        Ok(())
    }

    fn names(&mut self, key: &[u8]) -> Result<()> {
        let names = self.contents.map_or(0, |contents| contents.names);
        if self.names >= names.div_ceil(NAMES_PER_ENTRY)
            || key != explorer_index::names_key(self.names)
        {
            self.found.fault("is not the next entry of names", key);
            return Ok(());
        }
        self.index.name_entry(self.names, names)?;
        self.names += 1;
        Ok(())
    }

    /// Checks an entry with lists of an explorer index. If the entry is a page, which contains several lists, also
    /// checks the chunks and the results by period of its long lists. These entries precede the page, and are only
    /// counted when they themselves are passed to this function.
    fn list(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        match (list_entry(LISTS, key), self.contents) {
            (Some(ListEntry::Chunk(_) | ListEntry::Period), Some(_)) => self.separate += 1,
            (Some(ListEntry::Page(last)), Some(contents))
                if contents.paging.last_of(last) == last =>
            {
                self.page(key, last, value, contents)?;
            }
            _ => self.found.fault("is malformed", key),
        }
        Ok(())
    }

    /// Checks an entry with results in an explorer index without games. If the entry is a page, which contains several
    /// positions, also checks the results by period that belong to the page. These entries precede the page, and are
    /// only counted when they themselves are passed to this function.
    fn counts(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let paging = self.counted.as_ref().map(CountedContents::paging);
        match (list_entry(COUNTS, key), paging) {
            (Some(ListEntry::Period), Some(_)) => self.separate += 1,
            (Some(ListEntry::Page(last)), Some(paging)) if paging.last_of(last) == last => {
                let (mut separate, mut positions, mut items) = (Vec::new(), 0, 0);
                let read = for_each_counted(paging, value, last, |subject, rows, games| {
                    separate.extend(games.map(|games| (subject, games)));
                    positions += 1;
                    items += rows.len() as u64;
                });
                if read.is_none() {
                    self.found.fault("is malformed", key);
                }
                self.found.positions += positions;
                self.items += items;
                let mut expected = 0;
                for (subject, games) in separate {
                    let (entries, rows) = self.periods(COUNTS, subject, games)?;
                    expected += entries;
                    self.items += rows;
                }
                if mem::take(&mut self.separate) != expected {
                    self.found.fault("does not list the periods before it", key);
                }
            }
            _ => self.found.fault("is malformed", key),
        }
        Ok(())
    }

    /// Checks the entries that contain the results of one position by period: for all time, for each year and for each
    /// month. `subject` is the key of the position, and `games` is the number of games that the results must add up to.
    /// `prefix` is the prefix of the LevelDB keys: [`LISTS`] for an index with games, [`COUNTS`] for one without games.
    ///
    /// Returns the number of these entries, and the total number of rows in the entries for months.
    fn periods(&mut self, prefix: &[u8; 2], subject: ListKey, games: u64) -> Result<(u64, u64)> {
        let all = self.index.results(prefix, subject, Period::All)?;
        let (mut entries, mut rows, mut of_years, mut of_months) = (1, 0, 0, 0);
        for year in self.index.years(prefix, subject)? {
            let results = self
                .index
                .results(prefix, subject, Period::Year(year.year))?;
            of_years += games_of(&results.rows);
            entries += 1;
            for month in year.months() {
                let results = self.index.results(prefix, subject, Period::Month(month))?;
                of_months += games_of(&results.rows);
                rows += results.rows.len() as u64;
                entries += 1;
            }
        }
        if [games_of(&all.rows), of_years, of_months] != [games; 3] {
            let key = explorer_index::period_key(prefix, subject, Period::All);
            self.found
                .fault("has years or months that do not add up to its games", &key);
        }
        Ok((entries, rows))
    }

    fn page(
        &mut self,
        key: &[u8],
        last: ListKey,
        page: &[u8],
        contents: IndexDescription,
    ) -> Result<()> {
        let (mut chunked, mut positions) = (Vec::new(), 0);
        let mut is_well_formed = true;
        let read = for_each_list(contents.paging, page, last, |subject, list, _| {
            chunked.extend(list.chunked.map(|chunked| (subject, chunked)));
            positions += u64::from(list.games_of_position().is_some());
            is_well_formed &= list.len == 0 || self.items(&list, 0, contents).is_some();
            Some(())
        });
        if read.is_none() || !is_well_formed {
            self.found.fault("is malformed", key);
        }
        self.found.positions += positions;
        let mut expected = 0;
        for (subject, chunked) in chunked {
            expected += self.chunked_list(subject, chunked, contents)?;
        }
        if mem::take(&mut self.separate) != expected {
            self.found
                .fault("does not list the chunks and sums before it", key);
        }
        Ok(())
    }

    /// Checks and counts the items of a list or of a chunk of a list. Each item contains the id of a game or the number
    /// of a name, which must exist in the index. `contents` states the number of names. Ids and numbers ascend from
    /// chunk to chunk, so those in this chunk must be at least `least`. Returns the smallest id or number that the next
    /// chunk may contain, or `None` if an item is invalid.
    fn items(&mut self, list: &List<'_>, least: u64, contents: IndexDescription) -> Option<u64> {
        let are_names = list.moves().all(|mv| mv == NAMED);
        let end = if are_names {
            u64::from(contents.names)
        } else {
            self.index.game_count()
        };
        self.items += list.len as u64;
        let first = list.first_id()?;
        let mut last = first;
        list.for_each(|id, _| last = id)?;
        (least <= u64::from(first) && u64::from(last) < end).then_some(u64::from(last) + 1)
    }

    /// Checks the chunks of a long list of games, and the list's results by period if the index contains them.
    /// `subject` is the key of the list, `chunked` describes the list, and `contents` describes the index. Returns the
    /// number of entries that were checked.
    fn chunked_list(
        &mut self,
        subject: ListKey,
        chunked: ChunkedList,
        contents: IndexDescription,
    ) -> Result<u64> {
        let (mut entries, mut least) = (0, 0);
        for chunk in self.index.chunks(subject, chunked) {
            let chunk = chunk?;
            entries += 1;
            let Some(next) = self.items(&chunk.list(self.index)?, least, contents) else {
                self.found.fault("is malformed", &chunk.key);
                return Ok(entries);
            };
            least = next;
        }
        if !chunked.has_periods {
            return Ok(entries);
        }
        let (periods, _) = self.periods(LISTS, subject, chunked.items)?;
        Ok(entries + periods)
    }

    /// Completes the check. Compares the counted numbers of games, positions and entries with the numbers that the
    /// index states, and records a fault for each difference.
    fn finish(mut self) -> Result<()> {
        self.close_positions(b"x");
        let (games, positions) = (self.found.games, self.found.positions);
        let files = self.index.inputs();
        let numbered = if files.len() > 1 { files.len() } else { 0 };
        let in_order = files.is_sorted_by_key(|file| file.first_id)
            && files.first().is_none_or(|file| file.first_id == 0)
            && files.last().map_or(0, |file| file.first_id) <= games;
        let is_complete = match (self.contents, &self.counted) {
            (None, Some(counted)) => {
                games == 0
                    && self.separate == 0
                    && (positions, self.items) == (counted.positions, counted.rows)
            }
            (Some(contents), _) => {
                self.rows == games.div_ceil(ROWS_PER_ENTRY)
                    && self.details == games.div_ceil(GAMES_PER_ENTRY)
                    && self.names == contents.names.div_ceil(NAMES_PER_ENTRY)
                    && self.separate == 0
                    && (positions, self.items) == (contents.positions, contents.items)
            }
            (None, None) => true,
        };
        let checks: [(bool, &str, &[u8]); 6] = [
            (
                games == self.index.game_count(),
                "is not the number of games",
                layout::TOTAL_GAMES,
            ),
            (
                self.with_stats == 0 || self.with_stats == positions,
                "is not a key of all positions",
                b"_freq",
            ),
            (
                games == 0 || self.index.value(layout::FILE_NAME)?.is_some(),
                "is missing",
                layout::FILE_NAME,
            ),
            (
                self.files == numbered as u64,
                "is not the number of inputs",
                layout::FILE_COUNT,
            ),
            (
                in_order,
                "lists inputs whose games are not in order",
                layout::FILE_NAME,
            ),
            (
                is_complete,
                "does not describe the content of the index",
                explorer_index::CONTENTS,
            ),
        ];
        for (_, problem, key) in checks.iter().filter(|(is_right, ..)| !is_right) {
            self.found.fault(problem, key);
        }
        Ok(())
    }
}

/// The maximum number of files that the crate `rusty-leveldb` may keep open: 64 tables, and ten files that the crate
/// reserves for other purposes.
const OPEN_TABLES: usize = 74;

/// A shared cell for the first error that the operating system reports while `rusty-leveldb` reads files.
/// `rusty-leveldb` itself converts such an error to text, or treats it as the end of the data, so that a failing disk
/// would look like a damaged index.
#[derive(Clone, Default)]
struct SystemError(Rc<RefCell<Option<io::Error>>>);

impl SystemError {
    /// Takes the stored error, if there is one.
    fn take(&self) -> Option<io::Error> {
        self.0.take()
    }

    /// Returns `result` unchanged. If it is an error, also stores a copy of the error, unless an earlier error is
    /// already stored.
    fn noted<T>(&self, result: io::Result<T>) -> io::Result<T> {
        if let Err(err) = &result {
            let copy = match err.raw_os_error() {
                Some(code) => io::Error::from_raw_os_error(code),
                None => io::Error::new(err.kind(), err.to_string()),
            };
            self.0.borrow_mut().get_or_insert(copy);
        }
        result
    }
}

/// A second reader for the entries of an index, which uses the crate `rusty-leveldb`. To verify an index, polybook
/// compares these entries with those from its own reader.
struct SecondOpinion {
    entries: DBIterator,
    _database: DB,
}

impl SecondOpinion {
    /// Opens the database in `directory` with `rusty-leveldb`, without changing the directory. `failure` receives the
    /// first error that the operating system reports, now or while entries are read later.
    ///
    /// # Errors
    ///
    /// Returns an error if `rusty-leveldb` cannot open the database.
    fn open(directory: &Path, failure: SystemError) -> Result<SecondOpinion> {
        let options = Options {
            env: Rc::new(Box::new(ReadOnly {
                directory: directory.to_owned(),
                memory: MemEnv::new(),
                failure,
            })),
            create_if_missing: false,
            reuse_logs: false,
            reuse_manifest: false,
            max_open_files: OPEN_TABLES,
            ..Options::default()
        };
        let open = || {
            let mut database = DB::open(NAME, options)?;
            let mut entries = database.new_iter()?;
            entries.seek_to_first();
            Ok(SecondOpinion {
                entries,
                _database: database,
            })
        };
        open().map_err(|err: rusty_leveldb::Status| {
            Error::damaged(
                directory,
                format!(
                    "the library rusty-leveldb, which checks the index a second time, cannot \
                                               open the index: {err}"
                ),
            )
        })
    }

    /// Returns the key of the current entry, or `None` if the reader has reached the end of the database.
    fn key(&self) -> Option<Vec<u8>> {
        self.entries.current().map(|(key, _)| key.to_vec())
    }

    /// Compares the current entry with `key` and `value`, and advances to the next entry. Returns `true` if the entry
    /// has this key and this value, and `false` if it differs or no entry is left.
    fn agrees(&mut self, key: &[u8], value: &[u8]) -> bool {
        let Some(present) = self.entries.current() else {
            return false;
        };
        self.entries.advance();
        (&present.0[..], &present.1[..]) == (key, value)
    }
}

/// A file whose `read` always fills the whole buffer, except at the end of the file. On network file systems, a read
/// may return fewer bytes, and `rusty-leveldb` would treat this as the end of the file. The second field receives
/// errors of the operating system.
struct Filling(File, SystemError);

impl Read for Filling {
    fn read(&mut self, mut buffer: &mut [u8]) -> io::Result<usize> {
        let mut wanted = (&self.0).take(buffer.len() as u64);
        let read = io::copy(&mut wanted, &mut buffer);
        self.1.noted(read).map(|read| read as usize)
    }
}

impl RandomAccess for Filling {
    fn read_at(&self, offset: usize, buffer: &mut [u8]) -> rusty_leveldb::Result<usize> {
        let size = self.1.noted(self.0.metadata())?.len() as usize;
        let length = size.saturating_sub(offset).min(buffer.len());
        let read = read_exact_at(&self.0, &mut buffer[..length], offset as u64);
        self.1.noted(read)?;
        Ok(length)
    }
}

/// The directory name that is passed to `rusty-leveldb`. It has no effect, because [`ReadOnly`] ignores directory
/// names.
const NAME: &str = "\0";

/// A file system environment for `rusty-leveldb`. It reads existing files from a directory on disk, but keeps new files
/// in memory, so the directory is never changed.
struct ReadOnly {
    directory: PathBuf,
    memory: MemEnv,
    failure: SystemError,
}

impl ReadOnly {
    /// Returns the path on disk of the file that `rusty-leveldb` calls `path`. Only the file name in `path` is used.
    fn on_disk(&self, path: &Path) -> PathBuf {
        self.directory.join(path.file_name().unwrap_or_default())
    }

    /// Opens the file on disk that `rusty-leveldb` calls `path`.
    fn open(&self, path: &Path) -> io::Result<Filling> {
        let file = self.failure.noted(File::open(self.on_disk(path)))?;
        Ok(Filling(file, self.failure.clone()))
    }
}

impl Env for ReadOnly {
    fn open_sequential_file(&self, path: &Path) -> rusty_leveldb::Result<Box<dyn Read>> {
        if self.memory.exists(path)? {
            self.memory.open_sequential_file(path)
        } else {
            Ok(Box::new(self.open(path)?))
        }
    }

    fn open_random_access_file(&self, path: &Path) -> rusty_leveldb::Result<Box<dyn RandomAccess>> {
        if self.memory.exists(path)? {
            self.memory.open_random_access_file(path)
        } else {
            Ok(Box::new(self.open(path)?))
        }
    }

    fn open_writable_file(&self, path: &Path) -> rusty_leveldb::Result<Box<dyn Write>> {
        self.memory.open_writable_file(path)
    }

    fn open_appendable_file(&self, path: &Path) -> rusty_leveldb::Result<Box<dyn Write>> {
        self.memory.open_appendable_file(path)
    }

    fn exists(&self, path: &Path) -> rusty_leveldb::Result<bool> {
        let on_disk = || self.failure.noted(self.on_disk(path).try_exists());
        Ok(self.memory.exists(path)? || on_disk()?)
    }

    fn children(&self, path: &Path) -> rusty_leveldb::Result<Vec<PathBuf>> {
        let mut children = self.memory.children(path)?;
        for entry in self.failure.noted(fs::read_dir(&self.directory))? {
            children.push(self.failure.noted(entry)?.file_name().into());
        }
        Ok(children)
    }

    fn size_of(&self, path: &Path) -> rusty_leveldb::Result<usize> {
        if self.memory.exists(path)? {
            self.memory.size_of(path)
        } else {
            let metadata = self.failure.noted(self.on_disk(path).metadata());
            Ok(metadata?.len() as usize)
        }
    }

    fn delete(&self, _: &Path) -> rusty_leveldb::Result<()> {
        Ok(())
    }

    fn mkdir(&self, _: &Path) -> rusty_leveldb::Result<()> {
        Ok(())
    }

    fn rmdir(&self, _: &Path) -> rusty_leveldb::Result<()> {
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> rusty_leveldb::Result<()> {
        self.memory.rename(from, to)
    }

    fn lock(&self, _: &Path) -> rusty_leveldb::Result<FileLock> {
        Ok(FileLock { id: String::new() })
    }

    fn unlock(&self, _: FileLock) -> rusty_leveldb::Result<()> {
        Ok(())
    }

    fn new_logger(&self, _: &Path) -> rusty_leveldb::Result<Logger> {
        Ok(Logger::new(Box::new(io::sink())))
    }

    fn micros(&self) -> u64 {
        0
    }

    fn sleep_for(&self, _: u32) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MakeBook, games::pgn::Input};

    #[test]
    fn an_entry_that_rusty_leveldb_reads_differently_is_a_fault() {
        let dir = tempfile::tempdir().unwrap();
        let made = ["famous", "selfplay"].map(|name| {
            let path = dir.path().join(name);
            let input = Input::file(format!("data/{name}.pgn"));
            MakeBook::new([input]).leveldb(&path).run().unwrap();
            path
        });
        let index = Index::open(&made[0]).unwrap();
        let mut found = VerifiedIndex::default();
        for (second, is_same) in [(&made[0], true), (&made[1], false)] {
            let second = SecondOpinion::open(second, SystemError::default()).unwrap();
            compare(&index, second, &mut found, &Meter::default()).unwrap();
            assert_eq!(found.faults.is_empty(), is_same);
        }
        assert!(
            found.faults[0]
                .to_string()
                .contains("read differently by the library rusty-leveldb")
        );
    }
}

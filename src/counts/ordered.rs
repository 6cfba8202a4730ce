//! Reading parts whose rows are in order, a range of keys at a time.
//!
//! A part that polybook wrote tells the order of its rows, and of each row group the first and the last key. So a
//! thread can read the rows of some keys, and skip what lies before them.

use std::{
    collections::VecDeque,
    ops::{Range, RangeInclusive},
    path::Path,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use parquet::file::{metadata::RowGroupMetaData, statistics::Statistics};

use super::{
    error::CountsError,
    file::{ParquetFile, caught},
    read::{CountsDirectory, Part},
    rows::{BATCH, GroupReader, MOST_GAMES, PartColumns, Rows},
};
use crate::{error::Result, sort::SHARDS, tally::CountBatch};

/// The most rows of a row group of which a part of each directory is in memory.
const MOST_OF_GROUP: u64 = 1 << 17;

/// The parts of a directory, by ascending keys, each in order.
#[derive(Debug)]
pub(crate) struct OrderedParts(Vec<OrderedPart>);

/// A part whose rows are in order.
#[derive(Debug)]
struct OrderedPart {
    part: Part,
    groups: Vec<Group>,
    /// Whether its bytes are those that the sidecar tells. The first thread that reads of it finds out.
    is_checked: Mutex<bool>,
    /// What all threads have read of it.
    rows_read: AtomicU64,
    games_read: AtomicU64,
}

/// What a part tells of a row group.
#[derive(Clone, Debug)]
struct Group {
    keys: RangeInclusive<i64>,
    rows: u64,
}

impl CountsDirectory {
    /// The parts, if all of them tell that their rows are in order, and each has other keys.
    ///
    /// # Errors
    ///
    /// A part that cannot be read.
    pub(crate) fn ordered(&self) -> Result<Option<OrderedParts>> {
        let mut ordered = Vec::new();
        for part in self.parts() {
            match OrderedPart::open(part)? {
                Some(part) => ordered.push(part),
                None => return Ok(None),
            }
        }
        // A part without rows has no keys.
        ordered.sort_by_key(|part| part.groups.first().map(|group| *group.keys.start()));
        let groups = || ordered.iter().flat_map(|part| &part.groups);
        let follow = groups().zip(groups().skip(1)).all(follows);
        Ok(follow.then_some(OrderedParts(ordered)))
    }
}

/// Whether no key of a row group is smaller than one of the row group before.
fn follows((before, behind): (&Group, &Group)) -> bool {
    before.keys.end() <= behind.keys.start()
}

impl OrderedPart {
    /// `None` if the part does not tell an order.
    fn open(part: &Part) -> Result<Option<OrderedPart>> {
        let file = part.open()?;
        let find = || -> Result<_, CountsError> {
            let columns = PartColumns::find(file.schema())?;
            let in_order = columns.identity.is_none() && !columns.key.is_unsigned(file.schema());
            let groups = file
                .groups()
                .iter()
                .map(|group| Group::find(group, &columns));
            Ok(groups.collect::<Option<Vec<Group>>>().filter(|_| in_order))
        };
        let groups = part.named(caught(find))?;
        Ok(groups.map(|groups| OrderedPart {
            part: part.clone(),
            groups,
            is_checked: Mutex::new(false),
            rows_read: AtomicU64::new(0),
            games_read: AtomicU64::new(0),
        }))
    }

    /// Opens the file, after its bytes were checked.
    fn open_checked(&self) -> Result<ParquetFile> {
        let mut is_checked = self
            .is_checked
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if !*is_checked {
            self.part.check_bytes()?;
            *is_checked = true;
        }
        self.part.open()
    }

    fn rows(&self) -> u64 {
        self.groups.iter().map(|group| group.rows).sum()
    }
}

impl Group {
    /// `None` if the row group does not tell an order, or is large.
    fn find(group: &RowGroupMetaData, columns: &PartColumns) -> Option<Group> {
        let rows = u64::try_from(group.num_rows()).ok()?;
        let [key, mv] = [columns.key, columns.mv].map(|column| column.place());
        let sorting = group.sorting_columns()?;
        let ascending = sorting
            .iter()
            .take_while(|column| !column.descending)
            .map(|column| usize::try_from(column.column_idx).ok());
        let in_order = ascending.take(2).eq([Some(key), Some(mv)]);
        let Some(Statistics::Int64(keys)) = group.column(key).statistics() else {
            return None;
        };
        let (first, last) = (*keys.min_opt()?, *keys.max_opt()?);
        (in_order && (1..=MOST_OF_GROUP).contains(&rows) && first <= last).then_some(Group {
            keys: first..=last,
            rows,
        })
    }
}

impl OrderedParts {
    pub(crate) fn rows(&self) -> u64 {
        self.0.iter().map(OrderedPart::rows).sum()
    }

    /// The rows of some neighbouring shards of keys, which are all in the upper half or all in the lower.
    pub(crate) fn in_shards(&self, shards: Range<usize>) -> OrderedRows<'_> {
        let first = |shard: usize| (shard as u64) << (u64::BITS - SHARDS.ilog2());
        let keys = first(shards.start).cast_signed()
            ..=(first(shards.end - 1) | (u64::MAX >> SHARDS.ilog2())).cast_signed();
        let mut groups = VecDeque::new();
        for part in &self.0 {
            let mut first_row = 0;
            for (number, group) in part.groups.iter().enumerate() {
                if group.keys.start() <= keys.end() && group.keys.end() >= keys.start() {
                    groups.push_back(Place {
                        part,
                        number,
                        first_row,
                    });
                }
                first_row += group.rows;
            }
        }
        OrderedRows {
            parts: &self.0,
            keys,
            groups,
            open: None,
            rows: Rows::default(),
            last: None,
        }
    }

    /// Makes sure that every row of every part was read, and answers the sum of their games.
    ///
    /// # Errors
    ///
    /// A part that has other rows than it tells, or than the sidecar says.
    pub(crate) fn check_read(&self) -> Result<u64> {
        let mut sum = 0;
        for part in &self.0 {
            let (rows, games) = (
                part.rows_read.load(Ordering::Relaxed),
                part.games_read.load(Ordering::Relaxed),
            );
            part.part.check(rows, games)?;
            if rows != part.rows() {
                let problem = "its keys are not those that its metadata tell".to_owned();
                return part.part.named(Err(CountsError::Damaged(problem)));
            }
            sum += games;
        }
        Ok(sum)
    }
}

/// Where a row group stands.
#[derive(Copy, Clone)]
struct Place<'a> {
    part: &'a OrderedPart,
    number: usize,
    /// Its first row, counted from the beginning of the part.
    first_row: u64,
}

/// The rows of a range of keys.
pub(crate) struct OrderedRows<'a> {
    parts: &'a [OrderedPart],
    keys: RangeInclusive<i64>,
    /// The row groups that are not begun yet.
    groups: VecDeque<Place<'a>>,
    open: Option<OpenGroup<'a>>,
    rows: Rows,
    /// The key and move of the last row.
    last: Option<(i64, i64)>,
}

/// A row group that is being read.
struct OpenGroup<'a> {
    part: &'a OrderedPart,
    file: ParquetFile,
    reader: GroupReader,
    /// The next row, counted from the beginning of the part.
    row: u64,
    left: usize,
}

/// What was read of a part.
pub(crate) struct Step<'a> {
    pub part: &'a Part,
    pub games: u64,
    /// About how many bytes of the file it was.
    pub bytes: u64,
}

impl<'a> OrderedRows<'a> {
    /// Appends the next rows to a batch; `None` at the end.
    ///
    /// # Errors
    ///
    /// A part that cannot be read, does not hold what it should, or is not in order.
    pub(crate) fn next(&mut self, batch: &mut CountBatch) -> Result<Option<Step<'a>>> {
        loop {
            if let Some(open) = &mut self.open
                && open.left > 0
            {
                let part = open.part;
                let read = || self.read(batch);
                let (rows, games) = part.part.named(caught(read))?;
                if rows == 0 {
                    return Ok(None);
                }
                return Ok(Some(Step {
                    part: &part.part,
                    games,
                    bytes: part.part.size() * rows / part.rows(),
                }));
            }
            let Some(place) = self.groups.pop_front() else {
                self.open = None;
                return Ok(None);
            };
            self.open = Some(self.open_group(place)?);
        }
    }

    /// The part that is being read, or the last that there is.
    pub(crate) fn path(&self) -> &'a Path {
        let part = self.open.as_ref().map(|open| open.part);
        part.or(self.parts.last())
            .map_or(Path::new(""), |part| part.part.path())
    }

    /// Begins a row group, behind the rows that are before the range.
    fn open_group(&mut self, place: Place<'a>) -> Result<OpenGroup<'a>> {
        let Place {
            part,
            number,
            first_row,
        } = place;
        let mut file = match self.open.take() {
            Some(open) if std::ptr::eq(open.part, part) => open.file,
            _ => part.open_checked()?,
        };
        let group = &part.groups[number];
        let begin = || {
            let columns = PartColumns::find(file.schema())?;
            let rows = file.rows(number)?;
            let pages = file.pages(number)?;
            let mut before = 0;
            if group.keys.start() < self.keys.start() {
                let mut keys = columns.key.open(&pages)?;
                let numbers = &mut self.rows.keys;
                while before < rows {
                    keys.integers(BATCH.min(rows - before), first_row, numbers)?;
                    let smaller = numbers.partition_point(|key| key < self.keys.start());
                    before += smaller;
                    if smaller < numbers.len() {
                        break;
                    }
                }
            }
            let mut reader = GroupReader::open(&columns, &pages)?;
            reader.skip(before)?;
            Ok((reader, before, rows - before))
        };
        let (reader, before, left) = part.part.named(caught(begin))?;
        Ok(OpenGroup {
            part,
            file,
            reader,
            row: first_row + before as u64,
            left,
        })
    }

    /// Reads rows of the open row group; answers how many, and their games. None are left if there are none.
    fn read(&mut self, batch: &mut CountBatch) -> Result<(u64, u64), CountsError> {
        let open = self.open.as_mut().expect("a row group is open");
        let read = open.left.min(BATCH);
        self.rows.read(&mut open.reader, read, open.row)?;
        self.check_order()?;
        let open = self.open.as_mut().expect("a row group is open");
        let keys = &self.rows.keys;
        let rows = keys.partition_point(|key| key <= self.keys.end());
        if rows < read {
            // What follows is for others.
            self.rows.truncate(rows);
            self.groups.clear();
            open.left = 0;
        } else {
            open.left -= rows;
            open.row += rows as u64;
        }
        let games = self.rows.push_to(batch)?;
        let before = open.part.games_read.fetch_add(games, Ordering::Relaxed);
        if before + games > MOST_GAMES {
            return Err(CountsError::Overflow);
        }
        open.part
            .rows_read
            .fetch_add(rows as u64, Ordering::Relaxed);
        Ok((rows as u64, games))
    }

    /// Makes sure that the rows that were read follow those before, and one another.
    fn check_order(&mut self) -> Result<(), CountsError> {
        let rows = &self.rows;
        let (Some(first), Some(last)) = (rows.kind(0), rows.kind(rows.len() - 1)) else {
            return Ok(());
        };
        let is_early = first.0 < *self.keys.start() || self.last.is_some_and(|last| first < last);
        let out_of_order = if is_early {
            Some(rows.first)
        } else {
            rows.first_out_of_order()
        };
        self.last = Some(last);
        out_of_order.map_or(Ok(()), |row| Err(CountsError::Order(row)))
    }
}

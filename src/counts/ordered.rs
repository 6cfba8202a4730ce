//! Parts whose rows are in order, read a range of keys at a time.
//!
//! A part that polybook wrote states the order of its rows, and the first and the last key of each row group.

use std::{
    collections::VecDeque,
    ops::{Range, RangeInclusive},
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

use parquet::file::{metadata::RowGroupMetaData, statistics::Statistics};

use rayon::prelude::*;

use super::{
    error::CountsError,
    file::{ParquetFile, caught},
    layout::ClassRow,
    read::{CountsDirectory, Part},
    rows::{GroupReader, MOST_GAMES, PartColumns, Rows},
};
use crate::{
    error::Result,
    sort::SHARDS,
    tally::{By, CountBatch},
};

/// The most rows of a row group that is read in order: memory has a part of one of each directory.
const MOST_OF_GROUP: u64 = 1 << 17;

/// The parts of a directory, by ascending keys, each in order.
#[derive(Debug)]
pub(crate) struct OrderedParts(Vec<OrderedPart>);

/// A part whose rows are in order.
#[derive(Debug)]
struct OrderedPart {
    part: Part,
    groups: Vec<Group>,
    /// How much they have read.
    rows_read: AtomicU64,
    games_read: AtomicU64,
}

/// What a part says of a row group.
#[derive(Clone, Debug)]
struct Group {
    keys: RangeInclusive<i64>,
    rows: u64,
}

impl CountsDirectory {
    /// The parts, if all of them state that their rows are in order, and each has other keys.
    ///
    /// # Errors
    ///
    /// A part that cannot be read.
    pub(crate) fn ordered(&self) -> Result<Option<OrderedParts>> {
        let parts = self.parts().iter().map(OrderedPart::open);
        let parts = parts.collect::<Result<Option<Vec<OrderedPart>>>>()?;
        let parts = parts.map(OrderedParts::by_keys);
        Ok(parts.filter(|parts| parts.first_out_of_order().is_none()))
    }

    /// The parts of counts by class, whose rows must be in order whatever they state.
    ///
    /// # Errors
    ///
    /// A part that cannot be read, and parts that share keys.
    pub(super) fn classed(&self) -> Result<OrderedParts> {
        let parts = self.parts().iter().map(OrderedPart::open_classed);
        let parts = OrderedParts::by_keys(parts.collect::<Result<_>>()?);
        match parts.first_out_of_order() {
            Some(part) => part.part.named(Err(CountsError::ClassOrder(0))),
            None => Ok(parts),
        }
    }
}

impl OrderedPart {
    /// `None` if the part does not state an order.
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
        Ok(groups.map(|groups| OrderedPart::new(part, groups)))
    }

    /// A part of counts by class. A row group without a first and a last key may have any.
    fn open_classed(part: &Part) -> Result<OrderedPart> {
        let file = part.open()?;
        let groups = part.named(caught(|| {
            let columns = PartColumns::find(file.schema())?;
            if columns.key.is_unsigned(file.schema()) {
                return Err(CountsError::ClassOrder(0));
            }
            let mut groups = Vec::new();
            for (number, group) in file.groups().iter().enumerate() {
                groups.push(Group {
                    keys: Group::keys(group, columns.key.place()).unwrap_or(i64::MIN..=i64::MAX),
                    rows: file.rows(number)? as u64,
                });
            }
            let rows: i128 = groups.iter().map(|group| i128::from(group.rows)).sum();
            if rows != i128::from(file.all_rows()) {
                let problem = "its row groups have other rows than it says".to_owned();
                return Err(CountsError::Damaged(problem));
            }
            Ok(groups)
        }));
        Ok(OrderedPart::new(part, groups?))
    }

    fn new(part: &Part, groups: Vec<Group>) -> OrderedPart {
        OrderedPart {
            part: part.clone(),
            groups,
            rows_read: AtomicU64::new(0),
            games_read: AtomicU64::new(0),
        }
    }

    /// Counts the rows and games that were read.
    fn add_read(&self, rows: u64, games: u64) -> Result<(), CountsError> {
        self.rows_read.fetch_add(rows, Ordering::Relaxed);
        let before = self.games_read.fetch_add(games, Ordering::Relaxed);
        if before + games > MOST_GAMES {
            return Err(CountsError::Overflow);
        }
        Ok(())
    }

    fn rows(&self) -> u64 {
        self.groups.iter().map(|group| group.rows).sum()
    }
}

impl Group {
    /// `None` if the row group does not state its order and keys, or is large.
    fn find(group: &RowGroupMetaData, columns: &PartColumns) -> Option<Group> {
        let rows = u64::try_from(group.num_rows()).ok()?;
        let [key, mv] = [columns.key, columns.mv].map(|column| column.place());
        let sorting = group.sorting_columns()?;
        let ascending = sorting
            .iter()
            .take_while(|column| !column.descending)
            .map(|column| usize::try_from(column.column_idx).ok());
        let in_order = ascending.take(2).eq([Some(key), Some(mv)]);
        let keys = Group::keys(group, key)?;
        (in_order && (1..=MOST_OF_GROUP).contains(&rows)).then_some(Group { keys, rows })
    }

    /// The first and the last key that the row group states.
    fn keys(group: &RowGroupMetaData, key: usize) -> Option<RangeInclusive<i64>> {
        let Some(Statistics::Int64(keys)) = group.column(key).statistics() else {
            return None;
        };
        let (first, last) = (*keys.min_opt()?, *keys.max_opt()?);
        (first <= last).then_some(first..=last)
    }
}

impl OrderedParts {
    /// The parts by their first keys. One without rows has no keys.
    fn by_keys(mut parts: Vec<OrderedPart>) -> OrderedParts {
        parts.sort_by_key(|part| part.groups.first().map(|group| *group.keys.start()));
        OrderedParts(parts)
    }

    /// The first part with a row group that has a smaller key than the row group before.
    fn first_out_of_order<'a>(&'a self) -> Option<&'a OrderedPart> {
        let of_part =
            |part: &'a OrderedPart| part.groups.iter().map(move |group| (part, &group.keys));
        let groups = || self.0.iter().flat_map(of_part);
        let mut neighbors = groups().zip(groups().skip(1));
        let found = neighbors.find(|((_, before), (_, after))| before.end() > after.start());
        found.map(|(_, (part, _))| part)
    }

    pub(crate) fn rows(&self) -> u64 {
        let rows = self.0.iter().map(OrderedPart::rows);
        rows.fold(0, u64::saturating_add)
    }

    /// The rows of some neighbouring shards of keys, which are all in the upper half or all in the lower.
    pub(crate) fn rows_of(&self, shards: Range<usize>) -> OrderedRows<'_> {
        self.classed_rows_of(shards, By::default())
    }

    /// The same with the columns of these classes.
    pub(super) fn classed_rows_of(&self, shards: Range<usize>, by: By) -> OrderedRows<'_> {
        let first = |shard: usize| (shard as u64) << (u64::BITS - SHARDS.ilog2());
        let keys = first(shards.start).cast_signed()
            ..=(first(shards.end - 1) | (u64::MAX >> SHARDS.ilog2())).cast_signed();
        let mut groups = VecDeque::new();
        for part in &self.0 {
            let mut first_row = 0;
            for (number, group) in part.groups.iter().enumerate() {
                if group.keys.start() <= keys.end() && group.keys.end() >= keys.start() {
                    groups.push_back((part, number, first_row));
                }
                first_row += group.rows;
            }
        }
        OrderedRows {
            keys,
            by,
            groups,
            open: None,
            rows: Rows::default(),
            last: None,
        }
    }

    /// Makes sure that every part has the checksum that the sidecar lists. Works on all threads of the rayon pool that it
    /// is called in.
    ///
    /// # Errors
    ///
    /// A part that was altered or cannot be read.
    pub(crate) fn check_bytes(&self) -> Result<()> {
        let parts = self.0.par_iter();
        parts.map(|part| part.part.check_bytes()).collect()
    }

    /// Makes sure that every row of every part was read, and returns the sum of their games.
    ///
    /// # Errors
    ///
    /// A part that has other rows than it or the sidecar states.
    pub(crate) fn check_read(&self) -> Result<u64> {
        let mut sum = 0;
        for part in &self.0 {
            let (rows, games) = (
                part.rows_read.swap(0, Ordering::Relaxed),
                part.games_read.swap(0, Ordering::Relaxed),
            );
            part.part.check(rows, games)?;
            if rows != part.rows() {
                let problem = "its keys differ from its metadata".to_owned();
                return part.part.named(Err(CountsError::Damaged(problem)));
            }
            sum += games;
        }
        Ok(sum)
    }
}

/// The rows of a range of keys.
pub(crate) struct OrderedRows<'a> {
    keys: RangeInclusive<i64>,
    by: By,
    /// The row groups that are not begun yet: the part of each, its number, and its first row, counted from the beginning
    /// of the part.
    groups: VecDeque<(&'a OrderedPart, usize, u64)>,
    open: Option<OpenGroup<'a>>,
    /// The rows that were read last.
    rows: Rows,
    /// The key, the move and, of counts by class, the identity of the last row, and whether Black is to move.
    last: Option<((i64, i64, i64), bool)>,
}

/// A row group that is being read.
struct OpenGroup<'a> {
    part: &'a OrderedPart,
    file: ParquetFile,
    reader: GroupReader,
}

/// The progress of reading a part.
pub(crate) struct Step<'a> {
    pub path: &'a Path,
    pub games: u64,
    /// About how many bytes of the file it was.
    pub bytes: u64,
}

impl<'a> OrderedRows<'a> {
    /// Appends the next rows, some thousand of them, to an empty batch; `None` at the end.
    ///
    /// # Errors
    ///
    /// A part that cannot be read, does not hold what it should, or is not in order.
    pub(crate) fn next(&mut self, batch: &mut CountBatch) -> Result<Option<Step<'a>>> {
        self.next_with(|rows, range| rows.push_to(range, batch))
    }

    /// Appends the next rows with their classes, some thousand of them; `None` at the end.
    ///
    /// # Errors
    ///
    /// As of [`next`](OrderedRows::next).
    pub(super) fn next_classed(&mut self, out: &mut Vec<ClassRow>) -> Result<Option<Step<'a>>> {
        self.next_with(|rows, range| {
            let mut games = 0;
            for at in range {
                let row = rows.class_row(at)?;
                games += row.row.plies();
                if games > MOST_GAMES {
                    return Err(CountsError::Overflow);
                }
                // Without games it says nothing.
                if row.row.stats.games() > 0 {
                    out.push(row);
                }
            }
            Ok(games)
        })
    }

    /// Hands the next rows to `take`, which returns their games.
    fn next_with(
        &mut self,
        mut take: impl FnMut(&Rows, Range<usize>) -> Result<u64, CountsError>,
    ) -> Result<Option<Step<'a>>> {
        loop {
            if self.open.as_ref().is_none_or(|open| open.reader.left == 0) && !self.open_next()? {
                return Ok(None);
            }
            let part = self.open.as_ref().expect("a row group is open").part;
            let (rows, games) = part.part.named(caught(|| self.read(&mut take)))?;
            if rows > 0 {
                return Ok(Some(Step {
                    path: part.part.path(),
                    games,
                    bytes: part.part.size() * rows / part.rows(),
                }));
            }
        }
    }

    /// Begins the next row group, if there is one.
    fn open_next(&mut self) -> Result<bool> {
        let Some((part, number, row)) = self.groups.pop_front() else {
            return Ok(false);
        };
        let file = match self.open.take() {
            Some(open) if std::ptr::eq(open.part, part) => open.file,
            _ => part.part.open()?,
        };
        let reader = caught(|| GroupReader::open(&file, number, row, self.by));
        self.open = Some(OpenGroup {
            reader: part.part.named(reader)?,
            part,
            file,
        });
        Ok(true)
    }

    /// Reads rows of the open row group, and hands over those of the range; returns how many, and their games.
    fn read(
        &mut self,
        take: &mut impl FnMut(&Rows, Range<usize>) -> Result<u64, CountsError>,
    ) -> Result<(u64, u64), CountsError> {
        let open = self.open.as_mut().expect("a row group is open");
        open.reader.read(&mut self.rows)?;
        let Rows {
            first,
            keys,
            moves,
            blacks,
            identities,
            ..
        } = &self.rows;
        for (at, ((key, mv), black)) in keys.iter().zip(moves).zip(blacks).enumerate() {
            let kind = (*key, *mv, identities.get(at).copied().unwrap_or(0));
            let Some((before, was_black)) = self.last.replace((kind, *black)) else {
                continue;
            };
            let row = first + at as u64;
            if before > kind {
                return Err(match self.by.is_none() {
                    true => CountsError::Order(row),
                    false => CountsError::ClassOrder(row),
                });
            }
            if was_black != *black && before.0 == *key && identities.is_empty() {
                return Err(CountsError::Side(row));
            }
        }
        let start = keys.partition_point(|key| key < self.keys.start());
        let end = keys.partition_point(|key| key <= self.keys.end());
        if end < keys.len() {
            // The rest is for other ranges.
            self.groups.clear();
            open.reader.left = 0;
        }
        let games = take(&self.rows, start..end)?;
        let rows = (end - start) as u64;
        open.part.add_read(rows, games)?;
        Ok((rows, games))
    }
}

#[cfg(test)]
mod tests {
    use std::{path::Path, sync::atomic::AtomicBool};

    use shakmaty::Color;

    use super::*;
    use crate::{
        counts::{About, CountsContent, CountsDirectory, CountsWriter, RowSource},
        output::commit_all,
        position::BookMove,
        progress::Meter,
        tally::{Memory, Stats, Tally},
    };

    /// Writes this many rows, and returns where they are.
    fn written(dir: &Path, rows: u64) -> CountsDirectory {
        let tally = Tally::new(Memory::default());
        for row in 1..=rows {
            let key = row.wrapping_mul(0x2545_f491_4f6c_dd1d);
            let stats = Stats {
                wins: row % 40_000,
                draws: 1,
                losses: 0,
            };
            tally.add(key, BookMove(796), Color::White, stats).unwrap();
        }
        let counts = tally.seal().unwrap();
        let target = dir.join("counts");
        let writer = CountsWriter::create(&target, false).unwrap();
        let about = About {
            plies: (1..=rows).map(|row| row % 40_000 + 1).sum(),
            ..About::default()
        };
        let (source, stop) = (RowSource::Keys(&counts), AtomicBool::new(false));
        let content = CountsContent {
            size: rows,
            min_game: 0,
            starts: std::iter::empty(),
            about,
        };
        let (_, finished) = writer
            .write(&source, content, &stop, &Meter::default())
            .unwrap();
        commit_all(vec![finished]).unwrap();
        CountsDirectory::open(target).unwrap()
    }

    #[test]
    fn ranges_have_all_rows_between_them() {
        let dir = tempfile::tempdir().unwrap();
        let rows = 150_000;
        let directory = written(dir.path(), rows);
        let mut whole = CountBatch::default();
        for part in directory.parts() {
            part.read(&mut |rows| {
                for row in rows {
                    whole.push(row.key, row.mv, row.turn, row.stats);
                }
                Ok(())
            })
            .unwrap();
        }
        for ranges in [2, 8, 128] {
            let parts = directory.ordered().unwrap().expect("they are in order");
            assert!(parts.check_read().is_err(), "nothing was read");
            let mut batch = CountBatch::default();
            let each = SHARDS / ranges;
            // As signed numbers, the upper half comes first.
            for range in (ranges / 2..ranges).chain(0..ranges / 2) {
                let mut rows = parts.rows_of(range * each..(range + 1) * each);
                while rows.next(&mut batch).unwrap().is_some() {}
            }
            assert_eq!(batch, whole, "{ranges} ranges");
            let games = directory.about().map(|about| about.plies);
            assert_eq!(parts.check_read().ok(), games);
        }
    }
}

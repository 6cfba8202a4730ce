//! Reading parts whose rows are in order, a range of keys at a time. Rows before the range are skipped.

use std::{
    collections::VecDeque,
    ops::{Range, RangeInclusive},
    path::Path,
};

use super::{
    columns::Values,
    error::CountsError,
    file::{ParquetFile, caught},
    ordered::{OrderedPart, OrderedParts},
    read::Part,
    rows::{BATCH, GroupReader, PartColumns, Rows},
};
use crate::{error::Result, sort::SHARDS, tally::CountBatch};

/// Where a row group is.
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

/// The progress of reading a part.
pub(crate) struct Step<'a> {
    pub part: &'a Part,
    pub games: u64,
    /// About how many bytes of the file it was.
    pub bytes: u64,
}

impl<'a> OrderedRows<'a> {
    /// The rows of some neighbouring shards of keys, which are all in the upper half or all in the lower.
    pub(crate) fn new(parts: &'a OrderedParts, shards: Range<usize>) -> OrderedRows<'a> {
        let first = |shard: usize| (shard as u64) << (u64::BITS - SHARDS.ilog2());
        let keys = first(shards.start).cast_signed()
            ..=(first(shards.end - 1) | (u64::MAX >> SHARDS.ilog2())).cast_signed();
        let parts = parts.parts();
        let mut groups = VecDeque::new();
        for part in parts {
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
            parts,
            keys,
            groups,
            open: None,
            rows: Rows::default(),
            last: None,
        }
    }

    /// Appends the next rows to a batch; `None` at the end.
    ///
    /// # Errors
    ///
    /// A part that cannot be read, does not hold what it should, or is not in order. [`OrderedParts::check_bytes`] finds
    /// altered bytes.
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

    /// Begins a row group, after the rows that are before the range.
    fn open_group(&mut self, place: Place<'a>) -> Result<OpenGroup<'a>> {
        let Place {
            part,
            number,
            first_row,
        } = place;
        let mut file = match self.open.take() {
            Some(open) if std::ptr::eq(open.part, part) => open.file,
            _ => part.part.open()?,
        };
        let group = &part.groups[number];
        let begin = || {
            let columns = PartColumns::find(file.schema())?;
            let rows = file.rows(number)?;
            let pages = file.pages(number)?;
            part.sum_up(&pages);
            let before = match group.keys.start() < self.keys.start() {
                true => self.rows_before(columns.key.open(&pages)?, rows, first_row)?,
                false => 0,
            };
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

    /// How many of the `rows` of a row group are before the range, by their keys.
    fn rows_before(
        &mut self,
        mut keys: Values,
        rows: usize,
        first_row: u64,
    ) -> Result<usize, CountsError> {
        let numbers = &mut self.rows.keys;
        let mut before = 0;
        while before < rows {
            keys.integers(BATCH.min(rows - before), first_row, numbers)?;
            let smaller = numbers.partition_point(|key| key < self.keys.start());
            before += smaller;
            if smaller < numbers.len() {
                break;
            }
        }
        Ok(before)
    }

    /// Reads rows of the open row group; returns how many, and their games. None are left if there are none.
    fn read(&mut self, batch: &mut CountBatch) -> Result<(u64, u64), CountsError> {
        let open = self.open.as_mut().expect("a row group is open");
        let read = open.left.min(BATCH);
        self.rows.read(&mut open.reader, read, open.row)?;
        self.check_order()?;
        let open = self.open.as_mut().expect("a row group is open");
        let keys = &self.rows.keys;
        let rows = keys.partition_point(|key| key <= self.keys.end());
        if rows < read {
            // The rest is for other ranges.
            self.rows.truncate(rows);
            self.groups.clear();
            open.left = 0;
        } else {
            open.left -= rows;
            open.row += rows as u64;
        }
        let games = self.rows.push_to(batch)?;
        open.part.add_read(rows as u64, games)?;
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use shakmaty::Color;

    use super::*;
    use crate::{
        counts::{About, CountsDirectory, CountsWriter, Source},
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
        let (source, stop) = (Source::Keys(&counts), AtomicBool::new(false));
        let none = std::iter::empty();
        let (_, finished) = writer
            .write(&source, rows, none, about, &stop, &Meter::default())
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
                let mut rows = OrderedRows::new(&parts, range * each..(range + 1) * each);
                while rows.next(&mut batch).unwrap().is_some() {}
            }
            assert_eq!(batch, whole, "{ranges} ranges");
            let games = directory.about().map(|about| about.plies);
            assert_eq!(parts.check_read().ok(), games);
        }
    }
}

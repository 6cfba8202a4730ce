//! Parts whose rows are in order.
//!
//! A part that polybook wrote states the order of its rows, and the first and the last key of each row group.

use std::{
    ops::RangeInclusive,
    sync::atomic::{AtomicU64, Ordering},
};

use parquet::file::{metadata::RowGroupMetaData, statistics::Statistics};

use super::{
    error::CountsError,
    file::{Pages, caught},
    read::{CountsDirectory, Part},
    rows::{MOST_GAMES, PartColumns},
    summed::RangeSums,
};
use crate::error::Result;

/// The most rows of a row group that is read in order: memory has a part of one of each directory.
const MOST_OF_GROUP: u64 = 1 << 17;

/// The parts of a directory, by ascending keys, each in order.
#[derive(Debug)]
pub(crate) struct OrderedParts(Vec<OrderedPart>);

/// A part whose rows are in order.
#[derive(Debug)]
pub(super) struct OrderedPart {
    pub part: Part,
    pub groups: Vec<Group>,
    /// The checksums of the ranges that all threads have read of it.
    sums: RangeSums,
    /// How much they have read.
    rows_read: AtomicU64,
    games_read: AtomicU64,
}

/// What a part says of a row group.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub keys: RangeInclusive<i64>,
    pub rows: u64,
}

impl CountsDirectory {
    /// The parts, if all of them state that their rows are in order, and each has other keys.
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
fn follows((before, after): (&Group, &Group)) -> bool {
    before.keys.end() <= after.keys.start()
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
        Ok(groups.map(|groups| OrderedPart {
            part: part.clone(),
            groups,
            sums: RangeSums::default(),
            rows_read: AtomicU64::new(0),
            games_read: AtomicU64::new(0),
        }))
    }

    /// Sums up the bytes of a row group that is read.
    pub(super) fn sum_up(&self, pages: &Pages<'_>) {
        if self.part.has_checksum() {
            let (start, bytes) = pages.read_at_once();
            self.sums.add(start, bytes);
        }
    }

    /// Counts the rows and games that were read.
    pub(super) fn add_read(&self, rows: u64, games: u64) -> Result<(), CountsError> {
        self.rows_read.fetch_add(rows, Ordering::Relaxed);
        let before = self.games_read.fetch_add(games, Ordering::Relaxed);
        if before + games > MOST_GAMES {
            return Err(CountsError::Overflow);
        }
        Ok(())
    }

    pub(super) fn rows(&self) -> u64 {
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

    pub(super) fn parts(&self) -> &[OrderedPart] {
        &self.0
    }

    /// Makes sure that every part has the checksum that the sidecar lists.
    ///
    /// Checksums are computed while parts are read, so an altered part may first show as some other error, such as rows
    /// that are out of order. After an error, call this to find out whether an altered part is the cause.
    ///
    /// # Errors
    ///
    /// A part that was altered or cannot be read.
    pub(crate) fn check_bytes(&self) -> Result<()> {
        let check = |part: &OrderedPart| part.part.check_bytes(&part.sums);
        self.0.iter().try_for_each(check)
    }

    /// Makes sure that every row of every part was read, and returns the sum of their games.
    ///
    /// # Errors
    ///
    /// A part that was altered, or has other rows than it or the sidecar states.
    pub(crate) fn check_read(&self) -> Result<u64> {
        self.check_bytes()?;
        let mut sum = 0;
        for part in &self.0 {
            let (rows, games) = (
                part.rows_read.load(Ordering::Relaxed),
                part.games_read.load(Ordering::Relaxed),
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

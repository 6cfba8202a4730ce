//! The inputs of a merge, whether they fit together, and the ranges of keys in which they are joined.

use std::path::Path;

use crate::{
    error::{Error, Result},
    index::{
        Index,
        layout::Contents,
        leveldb::{TableFile, TablesCursor},
        tables::TABLE_SIZE,
    },
    position::VariantChoice,
};

/// The longest value that is held.
pub(super) const LONGEST_HELD: usize = 256 << 10;

/// How many tables begin in a range, of all inputs together: about one of each.
const FEWEST_TABLES: usize = 2;
const MOST_TABLES: usize = 8;

/// The inputs of a merge.
pub(super) struct MergePlan<'a> {
    pub inputs: Vec<MergeInput<'a>>,
    pub games: u64,
    pub variant: VariantChoice,
    /// The number of the input that has the first games, which keep their ids.
    pub base: usize,
    /// What each input has for the explorer, if all have.
    pub contents: Option<Vec<Contents>>,
    /// Where values are spilled that are too long to be held.
    pub temp_dir: &'a Path,
}

/// An input and the new id of its first game.
pub(super) struct MergeInput<'a> {
    pub index: &'a Index,
    pub first_id: u32,
    /// In the order of their keys.
    tables: Vec<&'a TableFile>,
}

impl<'a> MergeInput<'a> {
    /// Goes through the entries whose keys are from `start` on, at least those before `end`. The cursor is at the first.
    /// Values in blocks of more than `longest` bytes are not held, if they are long themselves.
    pub(super) fn cursor(
        &self,
        start: &[u8],
        end: &[u8],
        longest: usize,
    ) -> Result<TablesCursor<'a>> {
        let first = self
            .tables
            .partition_point(|table| table.last_key[..] < *start);
        let tables = self.tables[first..].iter();
        let tables = tables
            .take_while(|table| table.first_key[..] < *end)
            .copied();
        let tables = tables.collect();
        let database = self.index.database();
        let mut cursor = database.tables_cursor(tables, start, longest)?;
        cursor.pass_without_value()?;
        while cursor.key_before(start).is_some() {
            cursor.advance()?;
        }
        Ok(cursor)
    }
}

/// Keys from one on and before another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct KeyRange {
    pub start: Vec<u8>,
    pub end: Vec<u8>,
    /// How many bytes the tables have that begin there.
    pub size: u64,
}

impl<'a> MergePlan<'a> {
    pub(super) fn new(
        indexes: &'a [Index],
        out: &Path,
        temp_dir: &'a Path,
    ) -> Result<MergePlan<'a>> {
        let Some(first) = indexes.first() else {
            return Err(Error::file(out, "there is nothing to merge: name indexes"));
        };
        let mut plan = MergePlan {
            inputs: Vec::new(),
            games: 0,
            variant: first.variant(),
            base: 0,
            contents: None,
            temp_dir,
        };
        let mut contents = Vec::new();
        let mut stats = None;
        for index in indexes {
            let other = |what: &str| {
                let problem = format!(
                    "{what} than {}: make one of them again",
                    first.path().display()
                );
                Error::file(index.path(), problem)
            };
            if index.variant() != plan.variant {
                return Err(other("has games of another variant"));
            }
            let input = MergeInput {
                index,
                first_id: plan.games as u32,
                tables: index.database().tables_in_order()?,
            };
            let has_stats = input.has_stats()?;
            if has_stats.is_some_and(|has| stats.is_some_and(|others| has != others)) {
                return Err(other("was made with another choice of --index-stats"));
            }
            stats = stats.or(has_stats);
            if index.has_counts {
                let problem = "has counts and no games: add up the counts with make-book, and make an index of the sum";
                return Err(Error::file(index.path(), problem));
            }
            contents.extend(index.contents()?);
            if contents.last().map(|last| last.max_ply)
                != contents.first().map(|first| first.max_ply)
            {
                return Err(other("was made with another --max-ply"));
            }
            if plan.games == 0 {
                plan.base = plan.inputs.len();
            }
            plan.inputs.push(input);
            if !contents.is_empty() && contents.len() < plan.inputs.len() {
                return Err(other("was made with another choice of --explorer"));
            }
            plan.games += index.game_count();
            if plan.games > u64::from(u32::MAX) {
                return Err(Error::too_large(
                    out,
                    "an index has at most 4294967295 games",
                ));
            }
        }
        plan.contents = (!contents.is_empty()).then_some(contents);
        Ok(plan)
    }

    /// Cuts the keys from `start` on and before `end` where tables begin, so that ranges have some megabytes. `align`
    /// gives the last key not after one at which a range may begin, if there is one.
    pub(super) fn ranges(
        &self,
        start: &[u8],
        end: &[u8],
        align: impl Fn(&[u8]) -> Option<Vec<u8>>,
    ) -> Vec<KeyRange> {
        let inputs = self.inputs.iter().flat_map(|input| &input.tables);
        let mut tables: Vec<&TableFile> = inputs
            .filter(|table| table.last_key[..] >= *start && table.first_key[..] < *end)
            .copied()
            .collect();
        tables.sort_by(|a, b| a.first_key.cmp(&b.first_key));
        let mut ranges: Vec<KeyRange> = Vec::new();
        for some in tables.chunks(self.tables_in_range()) {
            let size = some.iter().map(|table| table.size).sum();
            let mut range = KeyRange {
                start: start.to_vec(),
                end: end.to_vec(),
                size,
            };
            if let Some(last) = ranges.last_mut() {
                let cut = align(&some[0].first_key).filter(|cut| *cut > last.start);
                let Some(cut) = cut else {
                    last.size += size;
                    continue;
                };
                last.end.clone_from(&cut);
                range.start = cut;
            }
            ranges.push(range);
        }
        ranges
    }

    /// How many ranges are joined at once, if the entries may take this many bytes.
    pub(super) fn ranges_at_once(&self, bytes: usize) -> usize {
        let ranges = bytes / (self.tables_in_range() * TABLE_SIZE);
        ranges.clamp(1, 2 * rayon::current_num_threads())
    }

    fn tables_in_range(&self) -> usize {
        self.inputs.len().clamp(FEWEST_TABLES, MOST_TABLES)
    }
}

//! The inputs of a merge, the checks that they can be merged, and the key ranges in which they are merged.

use std::path::Path;

use crate::{
    error::{Error, Result},
    index::{Index, IndexKind, store::Contents, tables::TABLE_SIZE},
    leveldb::{TableFile, TablesCursor},
    position::VariantChoice,
};

/// The greatest size in bytes of a LevelDB block that is held in memory as a whole. Only the last value of a block can
/// be long. In a larger block, this value is read in parts.
pub(super) const MAX_BLOCK_IN_MEMORY: usize = 256 << 10;

/// The minimum number of LevelDB tables in one key range. A merge is divided into key ranges, and one thread processes
/// each range. A range with fewer tables would be too little work for a thread.
const MIN_TABLES_PER_RANGE: usize = 2;
/// The maximum number of LevelDB tables in one key range, which limits the memory that a range takes. A merge is
/// divided into key ranges. For a merge of `n` indexes, each range contains `n` tables, but at least
/// [`MIN_TABLES_PER_RANGE`] and at most this number.
const MAX_TABLES_PER_RANGE: usize = 8;

/// The plan of a merge: the indexes that will be merged, and the properties that they share.
pub(super) struct MergePlan<'a> {
    pub inputs: Vec<MergeInput<'a>>,
    /// The number of games in all inputs.
    pub games: u64,
    pub variant: VariantChoice,
    /// The index in `inputs` of the base input: the one with the first games, which keep their ids.
    pub base: usize,
    /// The descriptions of the inputs if these are explorer's indexes, or `None` if they were made by `make-book
    /// --leveldb`.
    pub contents: Option<Vec<Contents>>,
    /// The directory to which values are spilled that are too long to be held in memory.
    pub temp_dir: &'a Path,
}

/// An index that is an input of a merge.
pub(super) struct MergeInput<'a> {
    pub index: &'a Index,
    /// The id that the input's first game gets in the merged index.
    pub first_id: u32,
    /// The tables, sorted by key.
    tables: Vec<&'a TableFile>,
}

impl<'a> MergeInput<'a> {
    /// Returns a cursor at the first entry of this index whose key is at least `start`. The cursor reaches all entries
    /// whose keys are less than `end`, and possibly further entries.
    ///
    /// Blocks of more than `longest` bytes are not held in memory as a whole. If such a block ends with a long value,
    /// the cursor returns the location of this value instead of its bytes.
    ///
    /// # Errors
    ///
    /// Returns an error if a table cannot be read or is damaged.
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
        cursor.skip_hidden()?;
        while cursor.key_before(start).is_some() {
            cursor.advance()?;
        }
        Ok(cursor)
    }
}

/// A half-open range of LevelDB keys in a merge. One thread merges the entries of all inputs in this range.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct KeyRange {
    pub start: Vec<u8>,
    pub end: Vec<u8>,
    /// The total size in bytes of the tables that begin in the range.
    pub size: u64,
}

impl<'a> MergePlan<'a> {
    /// Checks that `indexes` can be merged, and plans their merge. `out` is the path of the merged index; it is only
    /// used in error messages. Long values are spilled to `temp_dir`.
    ///
    /// # Errors
    ///
    /// Returns an error if `indexes` is empty, or if all indexes together have more games than an index can contain.
    /// Also returns an error if an index differs from the first one in its kind, its variant or its options, if it
    /// contains counts instead of games, or if another program has written to it.
    pub(super) fn new(
        indexes: &'a [Index],
        out: &Path,
        temp_dir: &'a Path,
    ) -> Result<MergePlan<'a>> {
        let Some(first) = indexes.first() else {
            return Err(Error::file(
                out,
                "no index is given: give the indexes to merge",
            ));
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
                    "this index {what} than {}: make this index again with the options of the other one",
                    first.path().display()
                );
                Error::file(index.path(), problem)
            };
            if index.kind() == IndexKind::Counts {
                let problem = "this index contains counts instead of games: add up the counts with make-book, and \
                               make an index from the sum";
                return Err(Error::file(index.path(), problem));
            }
            if index.kind() != first.kind() {
                return Err(other("is of another kind"));
            }
            if index.variant() != plan.variant {
                return Err(other("contains games of another variant"));
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
            contents.extend(index.contents());
            if contents.last().map(|last| last.max_ply)
                != contents.first().map(|first| first.max_ply)
            {
                return Err(other("was made with another --max-ply"));
            }
            if plan.games == 0 {
                plan.base = plan.inputs.len();
            }
            plan.inputs.push(input);
            plan.games += index.game_count();
            if plan.games > u64::from(u32::MAX) {
                return Err(Error::too_large(
                    out,
                    "the indexes contain more than 4294967295 games, the most that one index can contain: merge fewer \
                     indexes",
                ));
            }
        }
        plan.contents = (first.kind() == IndexKind::Explorer).then_some(contents);
        Ok(plan)
    }

    /// Divides the keys that are at least `start` and less than `end` into ranges that take a few megabytes each. A
    /// range begins at the first key of a table, or slightly before it.
    ///
    /// Some entries must be merged together, so a range cannot begin at every key. `align` receives the first key of a
    /// table, and returns the greatest possible beginning of a range that is not after this key. `align` returns `None`
    /// if there is no such beginning.
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

    /// Returns how many key ranges may be merged in parallel if their entries may take about `bytes` bytes of memory in
    /// total. The result is at least 1, and at most twice the number of threads.
    pub(super) fn ranges_at_once(&self, bytes: usize) -> usize {
        let ranges = bytes / (self.tables_in_range() * TABLE_SIZE);
        ranges.clamp(1, 2 * rayon::current_num_threads())
    }

    /// Returns the number of input tables in one key range of the plan. This is the number of inputs, but at least
    /// [`MIN_TABLES_PER_RANGE`] and at most [`MAX_TABLES_PER_RANGE`].
    fn tables_in_range(&self) -> usize {
        self.inputs
            .len()
            .clamp(MIN_TABLES_PER_RANGE, MAX_TABLES_PER_RANGE)
    }
}

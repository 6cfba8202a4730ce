//! The inputs of a merge, the checks that they can be merged, and the key ranges in which they are merged. Also merges
//! the entries of positions in indexes of polyglot's fork: the lists of game ids, and the statistics.

use std::{iter, path::Path};

use crate::{
    error::{Error, Result},
    index::{
        Index, IndexKind,
        entry_batches::EntryBatch,
        layout::{IdReader, joined_stats, parse_number, write_id},
        store::Contents,
        write::TABLE_SIZE,
    },
    leveldb::{TableFile, TableValue, TablesCursor},
    position::VariantChoice,
    task,
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

/// Returns the sum of `games`, the number of games in the previous indexes, and `of_index`, that of the next index.
///
/// # Errors
///
/// Returns an error if the sum is greater than the number of games that one index can contain. `out` is the path of the
/// merged index.
fn add_games(games: u64, of_index: u64, out: &Path) -> Result<u64> {
    let sum = games + of_index;
    if sum > u64::from(u32::MAX) {
        let problem = "the indexes contain more than 4294967295 games, the most that one index can contain: merge fewer \
                       indexes";
        return Err(Error::too_large(out, problem));
    }
    Ok(sum)
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
            plan.games = add_games(plan.games, index.game_count(), out)?;
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

/// The lower limit (inclusive) of the LevelDB keys of positions. These keys begin with decimal digits.
const START: &[u8] = b"0";
/// The upper limit (exclusive) of the LevelDB keys of positions. These keys begin with decimal digits, and the colon
/// follows the digit 9 in ASCII.
const END: &[u8] = b":";

/// Counts the game ids that end in `value`, a part of a list of game ids in decimal digits. A comma follows each id, so
/// the function counts commas.
fn count(value: &[u8]) -> u64 {
    memchr::memchr_iter(b',', value).count() as u64
}

impl MergeInput<'_> {
    /// Returns `Some(true)` if the index contains statistics of positions, such as the number of draws, and
    /// `Some(false)` if it does not. Returns `None` if it has no positions.
    ///
    /// # Errors
    ///
    /// Returns an error if the index cannot be read or is damaged.
    fn has_stats(&self) -> Result<Option<bool>> {
        let positions = self.cursor(START, END, 0)?;
        let Some(key) = positions.key_before(END) else {
            return Ok(None);
        };
        let key = parse_number(key).ok_or_else(|| self.index.malformed(key))?;
        Ok(Some(self.index.stats(key)?.is_some()))
    }

    /// Converts game ids of this input to ids of the merged index, and appends them to `out` as text. `value` is a part
    /// of a list of game ids. If the part ends in the middle of an id, `ids` keeps the first digits of the id for the
    /// next part. Returns `None` if the list is malformed.
    fn shift(&self, ids: &mut IdReader, value: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let games = self.index.game_count();
        ids.read(value, |id| {
            // The new ids cannot overflow, because the plan has checked the total number of games.
            (u64::from(id) < games).then(|| write_id(out, id + self.first_id))
        })
    }

    /// Adds the games of a position in this input to the merged list of the position. `value` is the list of game ids
    /// in this input. The ids are converted to ids of the merged index, and appended to the value of the open entry of
    /// `made`, whose key is `key`. A long list is spilled to `temp_dir`.
    ///
    /// # Errors
    ///
    /// Returns an error if the ids are malformed, or if a long list cannot be read or spilled.
    fn add_ids(
        &self,
        key: &[u8],
        value: TableValue<'_>,
        temp_dir: &Path,
        made: &mut EntryBatch,
    ) -> Result<()> {
        let malformed = || self.index.malformed(key);
        let (mut ids, entries) = (IdReader::default(), &mut made.entries);
        match value {
            TableValue::Held(value) => {
                made.postings += count(value);
                if self.first_id == 0 {
                    entries.open_bytes().extend_from_slice(value);
                    return Ok(());
                }
                self.shift(&mut ids, value, entries.open_bytes())
                    .ok_or_else(malformed)?;
            }
            TableValue::Long(value) => self.index.database().read_long(&value, |part| {
                made.postings += count(part);
                self.shift(&mut ids, part, entries.open_bytes())
                    .ok_or_else(malformed)?;
                entries.spill(key.len(), temp_dir)
            })?,
        }
        ids.is_done().then_some(()).ok_or_else(malformed)
    }
}

impl MergePlan<'_> {
    /// Divides the entries of positions into key ranges that can be merged in parallel.
    pub(super) fn position_ranges(&self) -> Vec<KeyRange> {
        self.ranges(START, END, |key| Some(key.to_vec()))
    }

    /// Merges the entries of all positions whose keys are in `range`. Returns the resulting entries of the merged
    /// index.
    ///
    /// # Errors
    ///
    /// Returns an error if an input cannot be read or is damaged, or if a temporary file cannot be read or written.
    pub(super) fn positions_in(&self, range: &KeyRange) -> Result<EntryBatch> {
        task::fault("join positions");
        let inputs = self.inputs.iter();
        let inputs =
            inputs.map(|input| input.cursor(&range.start, &range.end, MAX_BLOCK_IN_MEMORY));
        let mut inputs = inputs.collect::<Result<Vec<_>>>()?;
        let mut made = EntryBatch {
            steps: range.size,
            ..EntryBatch::default()
        };
        let mut key = Vec::new();
        loop {
            let others = inputs.iter().enumerate();
            let others = others.filter(|(number, _)| *number != self.base);
            let others = others.filter_map(|(_, input)| input.key_before(&range.end));
            let next = others.min();
            let is_last = next.is_none();
            key.clear();
            key.extend_from_slice(next.unwrap_or(&range.end));
            self.copy_base(&mut inputs[self.base], &key, &mut made)?;
            if is_last {
                return Ok(made);
            }
            let with_key = self.inputs.iter().zip(&inputs);
            let with_key = with_key.filter(|(_, cursor)| cursor.key() == Some(&key));
            let values = with_key.map(|(input, cursor)| (input, cursor.value()));
            if is_of_games(&key) {
                self.join_ids(&key, values, &mut made)?;
            } else {
                join_stats(&key, values, &mut made)?;
            }
            for cursor in &mut inputs {
                if cursor.key() == Some(&key) {
                    cursor.advance()?;
                }
            }
        }
    }

    /// Copies entries from the cursor `base` to `made`, up to the first entry whose key is at least `end`. No other
    /// input has entries before `end`, so nothing has to be merged. `base` reads the first index with games, whose game
    /// ids are the same in the merged index.
    fn copy_base(
        &self,
        base: &mut TablesCursor<'_>,
        end: &[u8],
        made: &mut EntryBatch,
    ) -> Result<()> {
        let input = &self.inputs[self.base];
        while let Some(key) = base.key_before(end) {
            match base.value() {
                value if is_of_games(key) => {
                    self.join_ids(key, iter::once((input, value)), made)?;
                }
                TableValue::Held(value) => made.entries.push(key, value),
                TableValue::Long(_) => return Err(input.index.malformed(key)),
            }
            base.advance()?;
        }
        Ok(())
    }

    /// Concatenates the lists of game ids that several inputs contain for one position, and adds the resulting entry to
    /// `made`. `key` is the LevelDB key of the entry. `values` contains each of these inputs with its list, in the
    /// order of the inputs.
    #[inline]
    fn join_ids<'p>(
        &self,
        key: &[u8],
        values: impl Iterator<Item = (&'p MergeInput<'p>, TableValue<'p>)>,
        made: &mut EntryBatch,
    ) -> Result<()> {
        made.positions += 1;
        made.entries.begin(key);
        for (input, value) in values {
            input.add_ids(key, value, self.temp_dir, made)?;
        }
        made.entries.end_spilled(key.len(), self.temp_dir)
    }
}

/// Returns `true` if `key` is the LevelDB key of a position's list of games. Returns `false` if it is the key of a
/// statistic, such as `10_freq`.
fn is_of_games(key: &[u8]) -> bool {
    key.last().is_some_and(u8::is_ascii_digit)
}

/// Combines the values that several inputs contain for one statistic of a position, such as the number of draws, and
/// adds the resulting entry to `made`. `key` is the LevelDB key of the entry. `values` contains each of these inputs
/// with its value.
///
/// # Errors
///
/// Returns an error if a value is malformed.
fn join_stats<'p>(
    key: &[u8],
    values: impl Iterator<Item = (&'p MergeInput<'p>, TableValue<'p>)>,
    made: &mut EntryBatch,
) -> Result<()> {
    let (mut held, mut any) = (Vec::new(), None);
    for (input, value) in values {
        let TableValue::Held(value) = value else {
            return Err(input.index.malformed(key));
        };
        held.push(value);
        any = any.or(Some(input));
    }
    if let [only] = held[..] {
        made.entries.push(key, only);
    } else if let Some(joined) = joined_stats(key, &held) {
        made.entries.push(key, &joined);
    } else if let Some(input) = any {
        return Err(input.index.malformed(key));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merged_index_has_a_limited_number_of_games() {
        let most = u64::from(u32::MAX);
        let err = add_games(most, 1, "new.idx".as_ref()).unwrap_err();
        let advice = "merge fewer indexes";
        assert!(err.to_string().contains(advice), "{err}");
        // One game fewer is within the limit.
        assert_eq!(add_games(most - 1, 1, "new.idx".as_ref()).unwrap(), most);
    }
}

//! Merging the entries of positions: the lists of game ids, and the statistics.

use std::{iter, path::Path};

use super::plan::{KeyRange, MAX_BLOCK_IN_MEMORY, MergeInput, MergePlan};
use crate::{
    error::Result,
    index::{
        entry_batches::EntryBatch,
        layout::{IdReader, joined_stats, parse_number, write_id},
    },
    leveldb::{TableValue, TablesCursor},
    task,
};

/// The lower limit (inclusive) of the LevelDB keys of positions. These keys begin with decimal digits.
pub(super) const START: &[u8] = b"0";
/// The upper limit (exclusive) of the LevelDB keys of positions. These keys begin with decimal digits, and the colon
/// follows the digit 9 in ASCII.
pub(super) const END: &[u8] = b":";

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
    pub(super) fn has_stats(&self) -> Result<Option<bool>> {
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

//! Merging the entries of positions: the ids of their games, and their statistics.

use std::{iter, path::Path};

use super::plan::{KeyRange, LONGEST_HELD, MergeInput, MergePlan};
use crate::{
    error::Result,
    index::{
        layout::{IdReader, joined_stats, parse_number, write_id},
        positions::EntryBatch,
    },
    leveldb::{TableValue, TablesCursor},
    task,
};

/// The least key of positions. Their keys are decimal numbers.
pub(super) const START: &[u8] = b"0";
/// The end of the keys of positions.
pub(super) const END: &[u8] = b":";

/// Returns the number of ids in a value or a part of it.
fn count(value: &[u8]) -> u64 {
    memchr::memchr_iter(b',', value).count() as u64
}

impl MergeInput<'_> {
    /// Returns whether positions have statistics, or `None` if there are no positions.
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

    /// Renumbers the ids in `value`, a part of a list of ids, and appends them to `out`. If `value` ends in the middle
    /// of an id, `ids` keeps its digits for the next part. Returns `None` if the ids are malformed.
    fn shift(&self, ids: &mut IdReader, value: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let games = self.index.game_count();
        ids.read(value, |id| {
            // The new ids cannot overflow, because the plan has checked the total number of games.
            (u64::from(id) < games).then(|| write_id(out, id + self.first_id))
        })
    }

    /// Renumbers the ids in `value`, and appends them to the open entry of `made`. `key` is the key of that entry.
    ///
    /// # Errors
    ///
    /// Returns an error if the ids are malformed, or if a long value cannot be read or spilled.
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
    /// Merges the entries of positions whose keys are in a range.
    ///
    /// # Errors
    ///
    /// Returns an error if an input cannot be read or is damaged, or if a temporary file fails.
    pub(super) fn positions_in(&self, range: &KeyRange) -> Result<EntryBatch> {
        task::fault("join positions");
        let inputs = self.inputs.iter();
        let inputs = inputs.map(|input| input.cursor(&range.start, &range.end, LONGEST_HELD));
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
            self.pass_base(&mut inputs[self.base], &key, &mut made)?;
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

    /// Copies the entries of the base input before `end`, which are nearly all of its entries.
    fn pass_base(
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

    /// Adds an entry with the ids of a position's games. The ids of each input follow those of the previous one.
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
        made.entries.end_long(key.len(), self.temp_dir)
    }
}

/// Returns `true` if `key` belongs to the entry that lists a position's games, and `false` if it belongs to a
/// statistic.
fn is_of_games(key: &[u8]) -> bool {
    key.last().is_some_and(u8::is_ascii_digit)
}

/// Adds an entry with a statistic of a position, joined from all inputs that have the position.
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

//! Joining the entries of positions: their games, and their statistics.

use std::{iter, path::Path};

use super::plan::{KeyRange, LONGEST_HELD, MergeInput, MergePlan};
use crate::{
    error::Result,
    index::{
        layout::{IdReader, joined_stats, parse_number, write_id},
        leveldb::{TableValue, TablesCursor},
        positions::MadeEntries,
    },
    task,
};

/// The keys of positions are numbers.
pub(super) const START: &[u8] = b"0";
pub(super) const END: &[u8] = b":";

/// How many ids a value has.
fn count(value: &[u8]) -> u64 {
    memchr::memchr_iter(b',', value).count() as u64
}

impl MergeInput<'_> {
    /// Whether positions have statistics, `None` if there are no positions.
    pub(super) fn has_stats(&self) -> Result<Option<bool>> {
        let positions = self.cursor(START, END, 0)?;
        let Some(key) = positions.key_before(END) else {
            return Ok(None);
        };
        let key = parse_number(key).ok_or_else(|| self.index.malformed(key))?;
        Ok(Some(self.index.stats(key)?.is_some()))
    }

    /// Appends some ids under their new numbers; `None` if they are malformed.
    fn shift(&self, ids: &mut IdReader, value: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let games = self.index.game_count();
        ids.read(value, |id| {
            // All games of all inputs have ids.
            (u64::from(id) < games).then(|| write_id(out, id + self.first_id))
        })
    }

    /// Appends the ids that the input has for a position's key to the value that is being appended.
    fn add_ids(
        &self,
        key: &[u8],
        value: TableValue<'_>,
        temp_dir: &Path,
        made: &mut MadeEntries,
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
    /// Joins the entries of positions whose keys lie in a range.
    pub(super) fn positions_in(&self, range: &KeyRange) -> Result<MadeEntries> {
        task::fault("join positions");
        let inputs = self.inputs.iter();
        let inputs = inputs.map(|input| input.cursor(&range.start, &range.end, LONGEST_HELD));
        let mut inputs = inputs.collect::<Result<Vec<_>>>()?;
        let mut made = MadeEntries {
            steps: range.size,
            ..MadeEntries::default()
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

    /// Takes the entries of the first games that come before `end`, which are nearly all of them.
    fn pass_base(
        &self,
        base: &mut TablesCursor<'_>,
        end: &[u8],
        made: &mut MadeEntries,
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

    /// Joins the games of a position, those of each input after those of the one before.
    #[inline]
    fn join_ids<'p>(
        &self,
        key: &[u8],
        values: impl Iterator<Item = (&'p MergeInput<'p>, TableValue<'p>)>,
        made: &mut MadeEntries,
    ) -> Result<()> {
        made.positions += 1;
        made.entries.begin(key);
        for (input, value) in values {
            input.add_ids(key, value, self.temp_dir, made)?;
        }
        made.entries.end_long(key.len(), self.temp_dir)
    }
}

/// Whether a key of a position is that of its games.
fn is_of_games(key: &[u8]) -> bool {
    key.last().is_some_and(u8::is_ascii_digit)
}

/// Joins a statistic of a position.
fn join_stats<'p>(
    key: &[u8],
    values: impl Iterator<Item = (&'p MergeInput<'p>, TableValue<'p>)>,
    made: &mut MadeEntries,
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

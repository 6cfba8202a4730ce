//! Joining the entries of positions: their games, and their statistics.

use std::io;

use super::plan::{KeyRange, MergeInput, Plan};
use crate::{
    error::Result,
    index::{
        entries::{LongIds, LongValue, ReadIds, StoredIds},
        layout::{IdReader, joined_stats, write_id},
        leveldb::{DatabaseCursor, TableValue},
        waves::Made,
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
    /// Appends some ids under their new numbers; `None` if they are malformed.
    fn shift(&self, ids: &mut IdReader, value: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let games = self.index.game_count();
        ids.read(value, |id| {
            // All games of all inputs have ids.
            (u64::from(id) < games).then(|| write_id(out, id + self.first_id))
        })
    }

    /// Appends all ids of a position.
    fn shift_all(&self, key: &[u8], value: &[u8], out: &mut Vec<u8>) -> Result<()> {
        if self.first_id == 0 {
            out.extend_from_slice(value);
            return Ok(());
        }
        let mut ids = IdReader::default();
        self.shift(&mut ids, value, out)
            .filter(|()| ids.is_done())
            .ok_or_else(|| self.index.malformed(key))
    }
}

impl Plan<'_> {
    /// Joins the entries of positions whose keys lie in a range.
    pub(super) fn positions_in(&self, range: &KeyRange) -> Result<Made> {
        task::fault("join positions");
        let inputs = self.inputs.iter();
        let inputs = inputs.map(|input| input.cursor(&range.start, &range.end));
        let mut inputs = inputs.collect::<Result<Vec<_>>>()?;
        let mut made = Made {
            steps: range.size,
            ..Made::default()
        };
        let mut key = Vec::new();
        while let Some(next) = inputs.iter().filter_map(DatabaseCursor::present_key).min() {
            key.clear();
            key.extend_from_slice(next);
            if key.iter().all(u8::is_ascii_digit) {
                self.join_ids(&key, &inputs, &mut made)?;
            } else {
                self.join_stats(&key, &inputs, &mut made)?;
            }
            for input in &mut inputs {
                if input.present_key() == Some(&key) {
                    input.advance()?;
                }
            }
        }
        Ok(made)
    }

    /// The values that inputs have for a key, by the numbers of the inputs.
    fn values<'c>(
        &self,
        key: &[u8],
        inputs: &'c [DatabaseCursor<'_>],
    ) -> impl Iterator<Item = (usize, &MergeInput<'_>, TableValue<'c>)> {
        let inputs = inputs.iter().enumerate().zip(&self.inputs);
        inputs
            .filter(move |((_, cursor), _)| cursor.present_key() == Some(key))
            .map(|((number, cursor), input)| (number, input, cursor.value()))
    }

    /// Joins the games of a position, those of each input after those of the one before.
    fn join_ids(&self, key: &[u8], inputs: &[DatabaseCursor<'_>], made: &mut Made) -> Result<()> {
        // All before the last that is too long to be held.
        let mut stored = Vec::new();
        let bytes = made.entries.begin(key);
        let start = bytes.len();
        for (number, input, value) in self.values(key, inputs) {
            match value {
                TableValue::Held(value) => input.shift_all(key, value, bytes)?,
                TableValue::Long(value) => {
                    stored.push(StoredIds::Held(bytes.split_off(start)));
                    stored.push(StoredIds::Long(number, value));
                }
            }
        }
        made.positions += 1;
        if stored.is_empty() {
            made.postings += count(&bytes[start..]);
            made.entries.end(key.len());
            return Ok(());
        }
        stored.push(StoredIds::Held(bytes.split_off(start)));
        let (ids, mut len) = (LongIds::Stored(stored), 0);
        self.ids_of(&ids, key, &mut |bytes| {
            made.postings += count(bytes);
            len += bytes.len();
            Ok(())
        })?;
        made.entries.end_long(key.len(), LongValue { ids, len });
        Ok(())
    }

    fn join_stats(&self, key: &[u8], inputs: &[DatabaseCursor<'_>], made: &mut Made) -> Result<()> {
        let mut values = Vec::new();
        for (_, input, value) in self.values(key, inputs) {
            let TableValue::Held(value) = value else {
                return Err(input.index.malformed(key));
            };
            values.push(value);
        }
        if let [only] = values[..] {
            made.entries.push(key, only);
        } else if let Some(joined) = joined_stats(key, &values) {
            made.entries.push(key, &joined);
        } else {
            let (_, input, _) = self
                .values(key, inputs)
                .next()
                .expect("an input has the key");
            return Err(input.index.malformed(key));
        }
        Ok(())
    }

    /// Hands the ids of a position's key to `out` as they are to be written, in parts.
    fn ids_of(
        &self,
        ids: &LongIds,
        key: &[u8],
        out: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let LongIds::Stored(parts) = ids else {
            unreachable!("entries that were read from a table are stored there");
        };
        for part in parts {
            let (input, value) = match part {
                StoredIds::Held(ids) => {
                    out(ids)?;
                    continue;
                }
                StoredIds::Long(number, value) => (&self.inputs[*number], value),
            };
            let malformed = || input.index.malformed(key);
            let (mut ids, mut shifted) = (IdReader::default(), Vec::new());
            input.index.database().read_long(value, |bytes| {
                shifted.clear();
                input
                    .shift(&mut ids, bytes, &mut shifted)
                    .ok_or_else(malformed)?;
                out(&shifted)
            })?;
            if !ids.is_done() {
                return Err(malformed());
            }
        }
        Ok(())
    }
}

impl ReadIds for Plan<'_> {
    fn read_ids(
        &self,
        ids: &LongIds,
        out: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut written = Ok(());
        // They were read before, so they are well-formed.
        let read = self.ids_of(ids, START, &mut |bytes| {
            if written.is_ok() {
                written = out(bytes);
            }
            Ok(())
        });
        written.and(read.map_err(io::Error::other))
    }
}

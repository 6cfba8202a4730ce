//! Joining the entries of positions: their games, and their statistics.

use std::{io, ops::Range};

use rayon::prelude::*;

use super::{
    ahead::{KeyRange, ReadAhead},
    cursor::{EntryCursor, Joined},
    plan::{MergeInput, Plan},
};
use crate::{
    error::Result,
    index::{
        entries::{Entries, LongIds, LongValue, Parts, ReadIds, StoredIds, Value},
        layout::{IdReader, joined_stats, write_id},
        waves::Wave,
    },
    task,
};

/// The keys of positions are numbers.
const START: &[u8] = b"0";
const END: &[u8] = b":";

/// Joins the entries of positions of all inputs.
pub(super) struct PositionMerge<'a> {
    plan: &'a Plan<'a>,
    inputs: ReadAhead<'a>,
}

/// Whether a key of a position is that of its games.
fn is_of_games(key: &[u8]) -> bool {
    key.iter().all(u8::is_ascii_digit)
}

impl<'a> PositionMerge<'a> {
    pub(super) fn new(plan: &'a Plan<'a>) -> Result<PositionMerge<'a>> {
        Ok(PositionMerge {
            plan,
            inputs: ReadAhead::new(plan, START, END, None)?,
        })
    }

    /// How many bytes of tables are to be read.
    pub(super) fn bytes_left(&self) -> u64 {
        self.inputs.bytes_left()
    }

    /// The next entries, `None` when all have come.
    pub(super) fn next_wave(&mut self) -> Result<Option<Wave>> {
        let before = self.bytes_left();
        // The last key that was read need not be the last of a table.
        let stretch = self.inputs.next_stretch(|tables| {
            let last = tables.last()?.last_key()?;
            Some(last.to_vec())
        })?;
        let Some(stretch) = stretch else {
            return Ok(None);
        };
        let parts = self.inputs.cut(&stretch, |key| Some(key.to_vec()));
        let made = parts
            .par_iter()
            .map(|part| {
                task::fault("join positions");
                RangeMerge::new(self.plan, &self.inputs, part).join()
            })
            .collect::<Result<Vec<_>>>()?;
        self.inputs.pass(stretch);
        let mut wave = (Parts::new(), 0, 0);
        for (parts, counted) in made {
            wave.0.extend(parts);
            wave.1 += counted.positions;
            wave.2 += counted.postings;
        }
        let (parts, positions, postings) = wave;
        Ok(Some(Wave::Others {
            parts,
            positions,
            postings,
            steps: before - self.bytes_left(),
        }))
    }
}

/// How many ids a value has.
fn count(value: &[u8]) -> u64 {
    memchr::memchr_iter(b',', value).count() as u64
}

/// Appends the ids of an input under their new numbers; `None` if they are malformed.
fn shift(part: &MergeInput<'_>, value: &[u8], out: &mut Vec<u8>) -> Option<()> {
    if part.first_id == 0 {
        out.extend_from_slice(value);
        return Some(());
    }
    let mut ids = IdReader::default();
    shift_some(part, &mut ids, value, out)?;
    ids.is_done().then_some(())
}

/// The same of a part of a value.
fn shift_some(
    part: &MergeInput<'_>,
    ids: &mut IdReader,
    value: &[u8],
    out: &mut Vec<u8>,
) -> Option<()> {
    let games = part.index.game_count();
    ids.read(value, |id| {
        // All games of all inputs have ids.
        (u64::from(id) < games).then(|| write_id(out, id + part.first_id))
    })
}

impl Plan<'_> {
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
            let (part, value) = match part {
                StoredIds::Held(ids) => {
                    out(ids)?;
                    continue;
                }
                StoredIds::Long(input, value) => (&self.inputs[*input], value),
            };
            if part.first_id == 0 {
                part.index.database().read_long(value, &mut *out)?;
                continue;
            }
            let malformed = || part.index.malformed(key);
            let (mut ids, mut shifted) = (IdReader::default(), Vec::new());
            part.index.database().read_long(value, |bytes| {
                shifted.clear();
                shift_some(part, &mut ids, bytes, &mut shifted).ok_or_else(malformed)?;
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

/// The joined entries.
#[derive(Default)]
struct Counted {
    positions: u64,
    postings: u64,
}

/// Joins the entries whose keys lie in a part of a stretch.
struct RangeMerge<'p> {
    plan: &'p Plan<'p>,
    end: &'p [u8],
    inputs: Vec<EntryCursor<'p>>,
    made: Entries,
    joined: Joined,
    counted: Counted,
}

impl<'p> RangeMerge<'p> {
    fn new(plan: &'p Plan<'p>, inputs: &'p ReadAhead<'_>, part: &'p KeyRange) -> RangeMerge<'p> {
        RangeMerge {
            plan,
            end: &part.end,
            inputs: inputs.cursors(&part.start),
            made: Entries::default(),
            joined: Joined::default(),
            counted: Counted::default(),
        }
    }

    fn join(mut self) -> Result<(Parts, Counted)> {
        loop {
            let others = self.inputs.iter().enumerate();
            let others = others.filter(|(number, _)| *number != self.plan.base);
            let next = others
                .filter_map(|(_, input)| input.key_before(self.end))
                .min();
            self.pass_base(next.unwrap_or(self.end))?;
            let Some(key) = next else {
                return Ok((self.joined.finish(self.made), self.counted));
            };
            if is_of_games(key) {
                self.join_ids(key)?;
            } else {
                self.join_stats(key)?;
            }
            for input in &mut self.inputs {
                if input.key() == Some(key) {
                    input.advance();
                }
            }
        }
    }

    /// Takes the entries of the first games that come before `end`, unchanged.
    fn pass_base(&mut self, end: &[u8]) -> Result<()> {
        while let Some((read, some)) = self.inputs[self.plan.base].pass_until(end) {
            self.count(read, some.clone())?;
            self.joined.pass(self.made.len(), read, some);
        }
        Ok(())
    }

    /// Counts the positions and postings of some entries.
    fn count(&mut self, read: &Entries, some: Range<usize>) -> Result<()> {
        for value in read.long_values(&some) {
            self.plan.ids_of(&value.ids, START, &mut |ids| {
                self.counted.postings += count(ids);
                Ok(())
            })?;
        }
        if !self.plan.with_stats {
            // No key has a comma.
            self.counted.positions += some.len() as u64;
            self.counted.postings += count(read.bytes_of(some));
            return Ok(());
        }
        for entry in some.filter(|entry| is_of_games(read.key(*entry))) {
            self.counted.positions += 1;
            if let Value::Bytes(ids) = read.value(entry) {
                self.counted.postings += count(ids);
            }
        }
        Ok(())
    }

    /// Joins the games of a position, those of each input after those of the one before.
    fn join_ids(&mut self, key: &[u8]) -> Result<()> {
        self.counted.positions += 1;
        let has_key = |input: &&EntryCursor<'_>| input.key() == Some(key);
        let mut values = self.inputs.iter().filter(has_key).map(EntryCursor::value);
        if values.any(|value| matches!(value, Value::Long(_))) {
            return self.join_long_ids(key);
        }
        let bytes = self.made.begin(key);
        let start = bytes.len();
        for (part, input) in self.plan.inputs.iter().zip(&self.inputs) {
            if has_key(&input) {
                let Value::Bytes(value) = input.value() else {
                    return Err(part.index.malformed(key));
                };
                let shifted = shift(part, value, bytes);
                shifted.ok_or_else(|| part.index.malformed(key))?;
            }
        }
        self.counted.postings += count(&bytes[start..]);
        self.made.end(key.len());
        Ok(())
    }

    /// The same where an input has too many to be held.
    fn join_long_ids(&mut self, key: &[u8]) -> Result<()> {
        let mut stored = Vec::new();
        for (part, input) in self.plan.inputs.iter().zip(&self.inputs) {
            match input.value() {
                _ if input.key() != Some(key) => {}
                Value::Long(LongValue {
                    ids: LongIds::Stored(ids),
                    ..
                }) => stored.extend(ids.iter().cloned()),
                Value::Long(_) => return Err(part.index.malformed(key)),
                Value::Bytes(value) => {
                    let mut shifted = Vec::new();
                    let read = shift(part, value, &mut shifted);
                    read.ok_or_else(|| part.index.malformed(key))?;
                    stored.push(StoredIds::Held(shifted));
                }
            }
        }
        let (ids, mut len) = (LongIds::Stored(stored), 0);
        self.plan.ids_of(&ids, key, &mut |bytes| {
            self.counted.postings += count(bytes);
            len += bytes.len();
            Ok(())
        })?;
        self.made.push_long(key, LongValue { ids, len });
        Ok(())
    }

    fn join_stats(&mut self, key: &[u8]) -> Result<()> {
        let present = || {
            let parts = self.plan.inputs.iter().zip(&self.inputs);
            parts.filter(|(_, input)| input.key() == Some(key))
        };
        let value = |(part, input): (&MergeInput<'_>, &EntryCursor<'p>)| match input.value() {
            Value::Bytes(value) => Ok(value),
            Value::Long(_) => Err(part.index.malformed(key)),
        };
        let values = present().map(value).collect::<Result<Vec<&[u8]>>>()?;
        let joined = match values[..] {
            [only] => Some(only.to_vec()),
            _ => joined_stats(key, &values),
        };
        let damaged = || {
            let (part, _) = present().next().expect("an input has the key");
            part.index.malformed(key)
        };
        let joined = joined.ok_or_else(damaged)?;
        self.made.push(key, &joined);
        Ok(())
    }
}

//! Joining the entries of positions: their games, and their statistics.

use std::ops::Range;

use rayon::prelude::*;

use super::{
    ahead::{KeyRange, ReadAhead},
    cursor::{EntryCursor, Joined},
    plan::Plan,
};
use crate::{
    error::Result,
    index::{
        entries::{Entries, Parts, Value},
        layout::{GameIds, joined_stats, write_id},
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
            inputs: ReadAhead::new(plan, START, END)?,
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
                PartMerge::new(self.plan, &self.inputs, part).join()
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
        Ok(Some(Wave::Joined {
            parts,
            positions,
            postings,
            steps: before - self.bytes_left(),
        }))
    }
}

/// What was joined.
#[derive(Default)]
struct Counted {
    positions: u64,
    postings: u64,
}

/// Joins the entries whose keys lie in a part of a stretch.
struct PartMerge<'p> {
    plan: &'p Plan<'p>,
    end: &'p [u8],
    inputs: Vec<EntryCursor<'p>>,
    made: Entries,
    joined: Joined,
    counted: Counted,
}

impl<'p> PartMerge<'p> {
    fn new(plan: &'p Plan<'p>, inputs: &'p ReadAhead<'_>, part: &'p KeyRange) -> PartMerge<'p> {
        PartMerge {
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
            self.pass_base(next.unwrap_or(self.end));
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

    /// Takes the entries of the first games that come before `end` as they stand.
    fn pass_base(&mut self, end: &[u8]) {
        while let Some((read, some)) = self.inputs[self.plan.base].pass_until(end) {
            self.count(read, some.clone());
            self.joined.pass(self.made.len(), read, some);
        }
    }

    /// Counts the positions and postings of some entries.
    fn count(&mut self, read: &Entries, some: Range<usize>) {
        if !self.plan.with_stats {
            // No key has a comma.
            let bytes = read.bytes_of(some.clone());
            self.counted.positions += some.len() as u64;
            self.counted.postings += memchr::memchr_iter(b',', bytes).count() as u64;
            return;
        }
        for entry in some {
            if is_of_games(read.key(entry))
                && let Value::Bytes(ids) = read.value(entry)
            {
                self.counted.positions += 1;
                self.counted.postings += memchr::memchr_iter(b',', ids).count() as u64;
            }
        }
    }

    /// Joins the games of a position, those of each input behind those of the one before.
    fn join_ids(&mut self, key: &[u8]) -> Result<()> {
        let bytes = self.made.begin(key);
        let start = bytes.len();
        for (part, input) in self.plan.inputs.iter().zip(&self.inputs) {
            if input.key() != Some(key) {
                continue;
            }
            if part.first_id == 0 {
                bytes.extend_from_slice(input.value());
                continue;
            }
            let ids = GameIds::parse(input.value().to_vec());
            let ids = ids.ok_or_else(|| part.index.malformed(key))?;
            for id in &ids {
                // All games of all inputs have ids.
                if u64::from(id) >= part.index.game_count() {
                    return Err(part.index.malformed(key));
                }
                write_id(bytes, id + part.first_id);
            }
        }
        let ids = memchr::memchr_iter(b',', &bytes[start..]).count();
        self.made.end(key.len());
        self.counted.positions += 1;
        self.counted.postings += ids as u64;
        Ok(())
    }

    fn join_stats(&mut self, key: &[u8]) -> Result<()> {
        let present = || {
            let parts = self.plan.inputs.iter().zip(&self.inputs);
            parts.filter(|(_, input)| input.key() == Some(key))
        };
        let values: Vec<&[u8]> = present().map(|(_, input)| input.value()).collect();
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

//! Finding positions in counts by their keys, in any order.

use std::borrow::Cow;

use rayon::prelude::*;

use super::{counts::Counts, record::CountRecord, stats::MoveCount};
use crate::{
    error::Result,
    position::{Keyed, Rules},
    sort::{Record, SHARDS},
};

/// Bits of a record that are below those that choose its shard.
const SHARD_SHIFT: u32 = 120;

/// About how many records a part of a shard has that is in memory.
const PART_IN_MEMORY: u64 = 4;

/// The same for a shard in a temporary file, where a part is read at once.
const PART_IN_FILE: u64 = 256;

/// Finds the moves of a position by its key.
///
/// Keys are spread evenly, so the bits below those of the shard say within a few records where a key
/// is: a table of where each part begins suffices.
#[derive(Debug)]
pub(crate) struct Finder<'a> {
    pub(super) counts: &'a Counts,
    pub(super) shards: Cow<'a, [Parts]>,
}

/// Counts with the table of a [`Finder`].
#[derive(Debug)]
pub(crate) struct FindableCounts {
    counts: Counts,
    shards: Vec<Parts>,
}

/// Where the parts of a shard begin.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    /// How many bits of the key choose the part.
    bits: u32,
    /// The first record of each part, and the end.
    pub(super) starts: Vec<u32>,
    /// How many positions the shard has.
    pub(super) positions: u64,
}

/// Where to look for a position.
#[derive(Copy, Clone, Debug)]
pub(crate) struct RecordRange {
    key: u64,
    pub(super) shard: usize,
    pub(super) start: u32,
    end: u32,
}

/// Where a position's records begin.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct RecordPlace {
    pub(super) shard: usize,
    pub(super) record: usize,
}

/// A position that was found.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    /// Where its records begin.
    pub place: RecordPlace,
    /// The side to move.
    pub turn: shakmaty::Color,
    /// Its moves in the order of their numbers.
    pub moves: &'a [MoveCount],
}

/// Memory that a thread reuses from one look-up to the next.
#[derive(Default, Debug)]
pub(crate) struct Scratch {
    records: Vec<CountRecord>,
    moves: Vec<MoveCount>,
}

impl Counts {
    /// Prepares for finding positions. Works on all threads of the rayon pool that it is called in.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be read.
    pub(crate) fn finder(&self) -> Result<Finder<'_>> {
        Ok(Finder {
            counts: self,
            shards: self.parts()?.into(),
        })
    }

    fn parts(&self) -> Result<Vec<Parts>> {
        let shards = (0..SHARDS).into_par_iter();
        shards.map(|shard| Parts::new(self, shard)).collect()
    }
}

impl FindableCounts {
    /// Prepares counts for finding positions. Works on all threads of the rayon pool that it is called in.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be read.
    pub fn new(counts: Counts) -> Result<FindableCounts> {
        Ok(FindableCounts {
            shards: counts.parts()?,
            counts,
        })
    }

    /// Returns the moves of a position, as [`Finder::moves`] does.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be read.
    pub fn moves<P: Rules>(&self, pos: &Keyed<P>) -> Result<Vec<MoveCount>> {
        let finder = Finder {
            counts: &self.counts,
            shards: Cow::Borrowed(&self.shards),
        };
        finder.moves(pos, &mut Scratch::default())
    }
}

impl Parts {
    fn new(counts: &Counts, shard: usize) -> Result<Parts> {
        let records = counts.records();
        let part = if records.is_in_memory(shard) {
            PART_IN_MEMORY
        } else {
            PART_IN_FILE
        };
        let bits = (records.shard_len(shard) / part).max(1).ilog2().min(32);
        let mut starts = Vec::with_capacity((1 << bits) + 1);
        let mut seen = 0;
        let (mut positions, mut last) = (0, None);
        records.for_each(shard, |record| {
            if last.replace(record.key()) != Some(record.key()) {
                positions += 1;
            }
            while starts.len() <= part_of(record.to_bits(), bits) {
                starts.push(seen);
            }
            seen += 1;
        })?;
        starts.resize((1 << bits) + 1, seen);
        Ok(Parts {
            bits,
            starts,
            positions,
        })
    }
}

#[inline]
fn part_of(record: u128, bits: u32) -> usize {
    (record >> (SHARD_SHIFT - bits)) as usize & ((1 << bits) - 1)
}

impl Finder<'_> {
    /// Where to look for a position.
    #[inline]
    pub fn part(&self, key: u64) -> RecordRange {
        self.whole(self.numbered(key))
    }

    /// A part whose `start` is yet its number within the shard.
    #[inline]
    pub(super) fn numbered(&self, key: u64) -> RecordRange {
        let lowest = u128::from(key) << 64;
        let shard = (lowest >> SHARD_SHIFT) as usize;
        let number = part_of(lowest, self.shards[shard].bits) as u32;
        RecordRange {
            key,
            shard,
            start: number,
            end: number + 1,
        }
    }

    /// The part that is numbered.
    #[inline]
    pub(super) fn whole(&self, numbered: RecordRange) -> RecordRange {
        let starts = &self.shards[numbered.shard].starts;
        RecordRange {
            start: starts[numbered.start as usize],
            end: starts[numbered.end as usize],
            ..numbered
        }
    }

    /// Returns the moves of a position in the order of their numbers, with the games of all its
    /// [exact identities](Keyed::exact_identities) added up.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be read.
    pub fn moves<P: Rules>(&self, pos: &Keyed<P>, scratch: &mut Scratch) -> Result<Vec<MoveCount>> {
        let mut moves: Vec<MoveCount> = Vec::new();
        for identity in pos.exact_identities() {
            let Some(found) = self.find(self.part(identity), scratch)? else {
                continue;
            };
            for count in found.moves {
                match moves.binary_search_by_key(&count.mv, |known| known.mv) {
                    Ok(at) => moves[at].stats += count.stats,
                    Err(at) => moves.insert(at, *count),
                }
            }
        }
        Ok(moves)
    }

    /// A position and its moves; `None` if it was not counted.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be read.
    pub fn find<'s>(
        &self,
        part: RecordRange,
        scratch: &'s mut Scratch,
    ) -> Result<Option<Found<'s>>> {
        let RecordRange {
            key,
            shard,
            start,
            end,
        } = part;
        let range = start as usize..end as usize;
        let records = self
            .counts
            .records()
            .range(shard, range, &mut scratch.records)?;
        let Some(first) = records.iter().position(|record| record.key() == key) else {
            return Ok(None);
        };
        let rest = &records[first..];
        let len = rest.iter().take_while(|record| record.key() == key).count();
        self.counts.move_counts(&rest[..len], &mut scratch.moves);
        Ok(Some(Found {
            place: RecordPlace {
                shard,
                record: start as usize + first,
            },
            turn: rest[0].turn(),
            moves: &scratch.moves,
        }))
    }
}

#[cfg(test)]
mod tests {
    use shakmaty::Color;

    use super::*;
    use crate::{
        position::BookMove,
        sort::Memory,
        tally::{Stats, Tally},
    };

    #[test]
    fn every_position_is_found_in_memory_and_in_files() {
        let key = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let won = Stats {
            wins: 1,
            ..Stats::default()
        };
        for bytes in [1 << 30, 0] {
            let tally = Tally::new(Memory {
                bytes,
                ..Memory::default()
            });
            let mut records = Vec::new();
            for i in 1..60_000 {
                for mv in 0..1 + i % 3 {
                    let mv = BookMove(mv as u16 + 1);
                    records.push(CountRecord::new(key(i), mv, Color::White, won));
                }
            }
            tally.add_records(&records).unwrap();
            let counts = tally.seal().unwrap();
            assert_eq!(counts.is_spilled(), bytes == 0);
            let finder = counts.finder().unwrap();
            let mut scratch = Scratch::default();
            for i in 1..60_000 {
                let part = finder.part(key(i));
                let found = finder.find(part, &mut scratch).unwrap().unwrap();
                assert_eq!(found.moves.len() as u64, 1 + i % 3);
                let other = finder.part(key(i) ^ 1);
                assert!(finder.find(other, &mut scratch).unwrap().is_none());
            }
        }
    }

    #[test]
    fn nothing_is_found_in_nothing() {
        let counts = Tally::new(Memory::default()).seal().unwrap();
        let finder = counts.finder().unwrap();
        for key in [0, 1, u64::MAX] {
            let mut scratch = Scratch::default();
            let found = finder.find(finder.part(key), &mut scratch);
            assert!(found.unwrap().is_none());
        }
    }
}

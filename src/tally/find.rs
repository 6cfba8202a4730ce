//! Finding positions in counts by their keys, in any order.

#[cfg(feature = "obs")]
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use super::{counts::Counts, move_count::MoveCount, record::CountRecord};
use crate::{
    error::Result,
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
/// Keys are spread evenly, so the bits below those of the shard tell within a few records where a key
/// stands: a table of where each part begins suffices.
#[derive(Debug)]
pub(crate) struct Finder<'a> {
    counts: &'a Counts,
    shards: Vec<Parts>,
}

/// Where the parts of a shard begin.
#[derive(Debug)]
struct Parts {
    /// How many bits of the key choose the part.
    bits: u32,
    /// The first record of each part, and the end.
    starts: Vec<u32>,
    /// How many positions the shard has.
    #[cfg(feature = "obs")]
    positions: u64,
}

/// Where to look for a position.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Part {
    key: u64,
    shard: usize,
    start: u32,
    end: u32,
}

/// Where a position's records begin.
#[cfg(feature = "obs")]
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    shard: usize,
    record: usize,
}

/// A position that was found.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    /// Where its records begin.
    #[cfg(feature = "obs")]
    pub place: Place,
    /// The side to move.
    #[cfg(feature = "parquet")]
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
        let shards = (0..SHARDS)
            .into_par_iter()
            .map(|shard| Parts::new(self, shard))
            .collect::<Result<Vec<Parts>>>()?;
        Ok(Finder {
            counts: self,
            shards,
        })
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
        #[cfg(feature = "obs")]
        let (mut positions, mut last) = (0, None);
        records.for_each(shard, |record| {
            #[cfg(feature = "obs")]
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
            #[cfg(feature = "obs")]
            positions,
        })
    }
}

#[inline]
fn part_of(record: u128, bits: u32) -> usize {
    (record >> (SHARD_SHIFT - bits)) as usize & ((1 << bits) - 1)
}

impl Finder<'_> {
    /// How many positions there are.
    #[cfg(feature = "obs")]
    pub fn positions(&self) -> u64 {
        self.shards.iter().map(|parts| parts.positions).sum()
    }

    /// Where to look for a position. A caller that asks for several parts before it looks into the first
    /// overlaps their waits for memory.
    #[inline]
    pub fn part(&self, key: u64) -> Part {
        let lowest = u128::from(key) << 64;
        let shard = (lowest >> SHARD_SHIFT) as usize;
        let Parts { bits, starts, .. } = &self.shards[shard];
        let part = part_of(lowest, *bits);
        Part {
            key,
            shard,
            start: starts[part],
            end: starts[part + 1],
        }
    }

    /// A position and its moves; `None` if it was not counted.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be read.
    pub fn find<'s>(&self, part: Part, scratch: &'s mut Scratch) -> Result<Option<Found<'s>>> {
        let Part {
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
            #[cfg(feature = "obs")]
            place: Place {
                shard,
                record: start as usize + first,
            },
            #[cfg(feature = "parquet")]
            turn: rest[0].turn(),
            moves: &scratch.moves,
        }))
    }

    /// A mark for each position, none of them set.
    #[cfg(feature = "obs")]
    pub fn marks(&self) -> Marks {
        let shards = self
            .shards
            .iter()
            .map(|parts| {
                let records = *parts.starts.last().expect("the end is always there");
                (0..records.div_ceil(u64::BITS))
                    .map(|_| AtomicU64::new(0))
                    .collect()
            })
            .collect();
        Marks { shards }
    }
}

/// A mark for each position of a [`Finder`], a bit for each record.
#[cfg(feature = "obs")]
#[derive(Debug)]
pub(crate) struct Marks {
    shards: Vec<Vec<AtomicU64>>,
}

#[cfg(feature = "obs")]
impl Marks {
    /// Marks a position, from any thread; `true` if it had no mark yet.
    pub fn set(&self, place: Place) -> bool {
        let word = &self.shards[place.shard][place.record / u64::BITS as usize];
        let bit = 1 << (place.record % u64::BITS as usize);
        word.fetch_or(bit, Ordering::Relaxed) & bit == 0
    }
}

#[cfg(all(test, feature = "obs"))]
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
            assert_eq!(finder.positions(), 59_999);
            let marks = finder.marks();
            let mut scratch = Scratch::default();
            for i in 1..60_000 {
                let part = finder.part(key(i));
                let found = finder.find(part, &mut scratch).unwrap().unwrap();
                assert_eq!(found.moves.len() as u64, 1 + i % 3);
                assert!(marks.set(found.place));
                assert!(!marks.set(found.place));
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

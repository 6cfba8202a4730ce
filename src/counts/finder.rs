//! Finds positions in counts by their keys, and records which positions have been visited.

use std::{
    borrow::Cow,
    hint::black_box,
    sync::atomic::{AtomicU64, Ordering},
};

use rayon::prelude::*;

use super::{
    record::{CountRecord, MoveCount},
    tally::Counts,
};
use crate::{
    error::Result,
    position::{Keyed, Rules},
    storage::sort::{Record, SHARDS},
};

/// The number of bits by which a 128-bit record is shifted to the right to get the index of its shard. The highest
/// eight bits select one of the 256 shards.
const SHARD_SHIFT: u32 = 120;

/// The intended number of records in a bucket if the records are in memory. A bucket is a part of a shard. A look-up
/// searches one bucket instead of the whole shard.
const BUCKET_SIZE_IN_MEMORY: u64 = 4;

/// The intended number of records in a bucket if the records are in a temporary file. A bucket is a part of a shard. A
/// look-up reads one bucket instead of the whole shard.
const BUCKET_SIZE_IN_FILE: u64 = 256;

/// An index of sorted counts that finds the moves of a position by the position's key.
///
/// Keys are uniformly distributed, so only a few records have keys with the same leading bits. A table contains the
/// index of the first record for each combination of leading bits. A look-up searches only the records with the same
/// leading bits as its key.
#[derive(Debug)]
pub(crate) struct Finder<'a> {
    pub(super) counts: &'a Counts,
    pub(super) shards: Cow<'a, [ShardBuckets]>,
}

/// The results of moves in positions, with an index that finds a position by its key.
#[derive(Debug)]
pub(crate) struct FindableCounts {
    counts: Counts,
    shards: Vec<ShardBuckets>,
}

/// A table that divides the sorted records of one shard into buckets. Records in the same bucket have keys with the
/// same leading bits. A shard contains a 256th of the range of keys.
#[derive(Clone, Debug)]
pub(super) struct ShardBuckets {
    /// The number of bits of the key that select the bucket. They follow the bits that select the shard.
    bits: u32,
    /// The index of the first record of each bucket, followed by the total number of records in the shard.
    pub(super) starts: Vec<u32>,
    /// The number of positions in the shard.
    pub(super) positions: u64,
}

/// A range of the sorted records of one shard. A look-up searches this range for the records of the position with the
/// key `key`. If the position was counted, the range contains all of its records. A shard contains a 256th of the range
/// of keys.
#[derive(Copy, Clone, Debug)]
pub(crate) struct RecordRange {
    key: u64,
    pub(super) shard: usize,
    pub(super) start: u32,
    end: u32,
}

/// The location of a position's first record: the index of its shard, and the index of the record in the shard. A
/// shard contains a 256th of the range of keys.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct RecordLocation {
    pub(super) shard: usize,
    pub(super) record: usize,
}

/// A position that was found in the counts, with the moves that were played in it and their results.
#[derive(Debug)]
pub(crate) struct FinderMatch<'a> {
    /// The location of the first record of the position.
    pub place: RecordLocation,
    /// The side to move.
    pub turn: shakmaty::Color,
    /// The moves and their results, in ascending order of the moves.
    pub moves: &'a [MoveCount],
}

/// Buffers for looking up positions. A thread reuses them for all of its look-ups, to save allocations.
#[derive(Default, Debug)]
pub(crate) struct LookUpBuffers {
    records: Vec<CountRecord>,
    moves: Vec<MoveCount>,
}

impl Counts {
    /// Creates an index that finds positions by their keys. Reads all records once, on all threads of the current
    /// rayon pool.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be read.
    pub(crate) fn finder(&self) -> Result<Finder<'_>> {
        Ok(Finder {
            counts: self,
            shards: self.buckets()?.into(),
        })
    }

    fn buckets(&self) -> Result<Vec<ShardBuckets>> {
        let shards = (0..SHARDS).into_par_iter();
        shards.map(|shard| ShardBuckets::new(self, shard)).collect()
    }
}

impl FindableCounts {
    /// Creates an index of `counts`, so that positions can be found by their keys. Reads all records once, on all
    /// threads of the current rayon pool.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be read.
    pub fn new(counts: Counts) -> Result<FindableCounts> {
        Ok(FindableCounts {
            shards: counts.buckets()?,
            counts,
        })
    }

    /// Returns the moves that were played in a position and their results, in ascending order of the moves. Returns
    /// an empty vector if the position was not counted.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be read.
    pub fn moves<P: Rules>(&self, pos: &Keyed<P>) -> Result<Vec<MoveCount>> {
        let finder = Finder {
            counts: &self.counts,
            shards: Cow::Borrowed(&self.shards),
        };
        finder.moves(pos, &mut LookUpBuffers::default())
    }
}

impl ShardBuckets {
    fn new(counts: &Counts, shard: usize) -> Result<ShardBuckets> {
        let records = counts.records();
        let size = if records.is_in_memory(shard) {
            BUCKET_SIZE_IN_MEMORY
        } else {
            BUCKET_SIZE_IN_FILE
        };
        let bits = (records.shard_len(shard) / size).max(1).ilog2().min(32);
        let mut starts = Vec::with_capacity((1 << bits) + 1);
        let mut seen = 0;
        let (mut positions, mut last) = (0, None);
        records.for_each(shard, |record| {
            if last.replace(record.key()) != Some(record.key()) {
                positions += 1;
            }
            while starts.len() <= bucket_of(record.to_bits(), bits) {
                starts.push(seen);
            }
            seen += 1;
        })?;
        starts.resize((1 << bits) + 1, seen);
        Ok(ShardBuckets {
            bits,
            starts,
            positions,
        })
    }
}

#[inline]
fn bucket_of(record: u128, bits: u32) -> usize {
    (record >> (SHARD_SHIFT - bits)) as usize & ((1 << bits) - 1)
}

impl Finder<'_> {
    /// Returns the range of records to search for the position with the key `key`. If the position was counted, all of
    /// its records are in this range.
    #[inline]
    pub fn range_of(&self, key: u64) -> RecordRange {
        self.to_records(self.bucket_range(key))
    }

    /// Returns the number of the bucket that contains all records with the position key `key`, if there are any. The
    /// number is returned as a range of one bucket. [`to_records`](Finder::to_records) converts this range to the range
    /// of the records in the bucket. A bucket contains the records of a shard whose keys have the same leading bits.
    #[inline]
    pub(super) fn bucket_range(&self, key: u64) -> RecordRange {
        let lowest = u128::from(key) << 64;
        let shard = (lowest >> SHARD_SHIFT) as usize;
        let number = bucket_of(lowest, self.shards[shard].bits) as u32;
        RecordRange {
            key,
            shard,
            start: number,
            end: number + 1,
        }
    }

    /// Converts a range of bucket numbers, which [`bucket_range`](Finder::bucket_range) returned, to the range of the
    /// records in these buckets.
    #[inline]
    pub(super) fn to_records(&self, buckets: RecordRange) -> RecordRange {
        let starts = &self.shards[buckets.shard].starts;
        RecordRange {
            start: starts[buckets.start as usize],
            end: starts[buckets.end as usize],
            ..buckets
        }
    }

    /// Returns the moves that were played in a position and their results, in ascending order of the moves. Adds up the
    /// games of all [exact identities](Keyed::exact_identities) of the position, which are the keys under which the
    /// position may have been counted. Returns an empty vector if the position was not counted. Overwrites the buffers
    /// in `scratch`.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be read.
    pub fn moves<P: Rules>(
        &self,
        pos: &Keyed<P>,
        scratch: &mut LookUpBuffers,
    ) -> Result<Vec<MoveCount>> {
        let mut moves: Vec<MoveCount> = Vec::new();
        for identity in pos.exact_identities() {
            let Some(found) = self.find(self.range_of(identity), scratch)? else {
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

    /// Returns the moves of a position and their results, or `None` if the position was not counted. `range` must be
    /// the result of [`range_of`](Finder::range_of) for the key of the position. Overwrites the buffers in `scratch`.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be read.
    pub fn find<'s>(
        &self,
        range: RecordRange,
        scratch: &'s mut LookUpBuffers,
    ) -> Result<Option<FinderMatch<'s>>> {
        let RecordRange {
            key,
            shard,
            start,
            end,
        } = range;
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
        Ok(Some(FinderMatch {
            place: RecordLocation {
                shard,
                record: start as usize + first,
            },
            turn: rest[0].turn(),
            moves: &scratch.moves,
        }))
    }
}

impl Finder<'_> {
    /// Returns the number of positions that were counted.
    pub fn positions(&self) -> u64 {
        self.shards.iter().map(|buckets| buckets.positions).sum()
    }

    /// Finds the range of records for each of `keys`, as [`range_of`](Finder::range_of) does. Replaces the content of
    /// `ranges` with these ranges, in the order of the keys.
    ///
    /// A look-up spends most of its time waiting for memory. Looking up many keys together is faster, because their
    /// waits overlap.
    pub fn find_ranges(&self, keys: impl Iterator<Item = u64>, ranges: &mut Vec<RecordRange>) {
        ranges.clear();
        ranges.extend(keys.map(|key| self.bucket_range(key)));
        for range in ranges.iter_mut() {
            *range = self.to_records(*range);
        }
        let records = self.counts.records();
        let first = |range: &RecordRange| records.in_memory(range.shard, range.start as usize);
        let firsts = ranges.iter().filter_map(first);
        black_box(firsts.fold(0, |all, record| all ^ record.key()));
    }

    /// Creates an empty set in which positions of these counts can be marked as visited.
    pub fn visited_bits(&self) -> VisitedBits {
        let shards = self
            .shards
            .iter()
            .map(|buckets| {
                let records = *buckets.starts.last().expect("the end is always there");
                (0..(records as usize).div_ceil(WORD_BITS))
                    .map(|_| AtomicU64::new(0))
                    .collect()
            })
            .collect();
        VisitedBits { shards }
    }
}

/// The number of bits in each word of a bit set.
const WORD_BITS: usize = u64::BITS as usize;

/// A set of visited positions. It has one bit for each record of the counts. The bit of a position's first record is
/// set if the position was visited.
#[derive(Debug)]
pub(crate) struct VisitedBits {
    shards: Vec<Vec<AtomicU64>>,
}

impl VisitedBits {
    /// Loads the bits of the positions in `ranges` into the processor's cache, so that [`set`](VisitedBits::set) need
    /// not wait for memory.
    pub fn fetch(&self, ranges: &[RecordRange]) {
        let word =
            |range: &RecordRange| self.shards[range.shard].get(range.start as usize / WORD_BITS);
        let words = ranges.iter().filter_map(word);
        black_box(words.fold(0, |all, word| all | word.load(Ordering::Relaxed)));
    }

    /// Marks a position as visited. `place` is the location of its first record. Returns `true` if the position was
    /// not visited before. Several threads may call this function at the same time.
    pub fn set(&self, place: RecordLocation) -> bool {
        let word = &self.shards[place.shard][place.record / WORD_BITS];
        let bit = 1 << (place.record % WORD_BITS);
        word.fetch_or(bit, Ordering::Relaxed) & bit == 0
    }
}

#[cfg(test)]
mod tests {
    use shakmaty::Color;

    use super::*;
    use crate::{
        counts::{Tally, Wdl},
        position::BookMove,
        storage::sort::Memory,
    };

    #[test]
    fn every_position_is_found_in_memory_and_in_files() {
        let key = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let won = Wdl {
            wins: 1,
            ..Wdl::default()
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
            let mut scratch = LookUpBuffers::default();
            for i in 1..60_000 {
                let range = finder.range_of(key(i));
                let found = finder.find(range, &mut scratch).unwrap().unwrap();
                assert_eq!(found.moves.len() as u64, 1 + i % 3);
                let other = finder.range_of(key(i) ^ 1);
                assert!(finder.find(other, &mut scratch).unwrap().is_none());
            }
        }
    }

    #[test]
    fn empty_counts_contain_no_position() {
        let counts = Tally::new(Memory::default()).seal().unwrap();
        let finder = counts.finder().unwrap();
        for key in [0, 1, u64::MAX] {
            let mut scratch = LookUpBuffers::default();
            let found = finder.find(finder.range_of(key), &mut scratch);
            assert!(found.unwrap().is_none());
        }
    }

    #[test]
    fn positions_that_are_found_together_are_marked_once() {
        let key = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for bytes in [1 << 30, 0] {
            let tally = Tally::new(Memory {
                bytes,
                ..Memory::default()
            });
            let record =
                |i, mv| CountRecord::new(key(i), BookMove(mv), Color::White, Wdl::default());
            let records: Vec<CountRecord> = (0..60_000)
                .map(|i| record(i / 3, 1 + i as u16 % 3))
                .collect();
            tally.add_records(&records).unwrap();
            let counts = tally.seal().unwrap();
            let finder = counts.finder().unwrap();
            assert_eq!(finder.positions(), 20_000);
            let (marks, mut ranges) = (finder.visited_bits(), Vec::new());
            let mut scratch = LookUpBuffers::default();
            for first in (0..30_000).step_by(100) {
                finder.find_ranges((first..first + 100).map(key), &mut ranges);
                marks.fetch(&ranges);
                for (i, range) in (first..).zip(&ranges) {
                    let found = finder.find(*range, &mut scratch).unwrap();
                    assert_eq!(found.is_some(), i < 20_000);
                    if let Some(found) = found {
                        assert!(marks.set(found.place));
                        assert!(!marks.set(found.place));
                    }
                }
            }
        }
    }
}

//! Collects the wins, draws and losses of every move in every position. Results that are already sorted can be merged
//! without sorting them again. A [`Finder`] finds counted positions by their keys, and [`VisitedBits`] record which
//! positions have been visited.

use std::{
    borrow::Cow,
    hint::black_box,
    mem,
    ops::Range,
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use rayon::prelude::*;
use shakmaty::Color;

use super::record::{CountBatch, CountRecord, LargeCounts, MoveCount};
use crate::{
    chess::position::{BookMove, Keyed, Rules},
    error::Result,
    games::results::Wdl,
    storage::sort::{Dropped, Memory, Refill, SHARDS, Shards, Sorted, merge_ordered},
    task,
};

/// A collection that adds up the wins, draws and losses of each move in each position. Several threads can add results
/// at the same time.
#[derive(Debug)]
pub struct Tally {
    shards: Shards<CountRecord>,
    large: Mutex<LargeCounts>,
}

impl Tally {
    /// Creates an empty tally, which writes results to temporary files when they exceed the memory budget `memory`.
    pub fn new(memory: Memory) -> Tally {
        Tally {
            shards: Shards::new(memory),
            large: Mutex::default(),
        }
    }

    /// Adds records of the results of moves to the tally. This is the fastest way to count, but one record can count
    /// only about 32,000 games. Use [`add_batch`](Tally::add_batch) for results of any size.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be written.
    pub fn add_records(&self, records: &[CountRecord]) -> Result<()> {
        self.shards.append(records)
    }

    /// Adds a batch of results of moves to the tally. The number of games of a move is not limited.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be written.
    pub fn add_batch(&self, batch: &CountBatch) -> Result<()> {
        if !batch.large.is_empty() {
            task::lock(&self.large).extend(batch);
        }
        self.add_records(&batch.records)
    }

    /// Adds the results of one move to the tally. `key` identifies the position, and `turn` is the side to move.
    /// `stats` contains the results from the view of that side.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be written.
    pub fn add(&self, key: u64, mv: BookMove, turn: Color, stats: Wdl) -> Result<()> {
        let mut batch = CountBatch::default();
        batch.push(key, mv, turn, stats);
        self.add_batch(&batch)
    }

    /// Checks that not too many moves have results that are too large for records. Such results are held in memory, so
    /// their number is limited.
    ///
    /// # Errors
    ///
    /// Returns an [`Error::File`](crate::Error::File) that names `source`, the path of the counts directory that was
    /// read, if there are more such moves than in any real collection of games.
    pub(crate) fn refuse_many_large(&self, source: &Path) -> Result<()> {
        task::lock(&self.large).check_count(source)
    }

    /// Returns the number of bytes that have been written to temporary files.
    pub(crate) fn spilled_bytes(&self) -> u64 {
        self.shards.spilled_bytes()
    }

    /// Finishes counting: sorts the results, and adds up those of the same move in the same position. Uses all threads
    /// of the current rayon pool.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be written or read.
    pub fn sort(self) -> Result<Counts> {
        Ok(Counts {
            records: self.shards.sort()?,
            large: task::unlocked(self.large),
            rare: Dropped::default(),
        })
    }
}

/// A counted position, with the moves that were played in it and their results.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PositionCount {
    /// The key of the position.
    pub key: u64,
    /// The side to move.
    pub turn: Color,
    /// The moves and their results, in ascending order of the moves.
    pub moves: Vec<MoveCount>,
}

/// The final counts of a [`Tally`]: the results of each move in each position, sorted by position key and move.
#[derive(Debug)]
pub struct Counts {
    pub(super) records: Sorted<CountRecord>,
    pub(super) large: LargeCounts,
    /// The numbers of positions and moves that were dropped because none of the position's moves was played often
    /// enough.
    pub(super) rare: Dropped,
}

impl Counts {
    /// Returns an iterator over all positions and the moves that were played in them, sorted by position key.
    ///
    /// # Errors
    ///
    /// The iterator yields an error if a temporary file cannot be read.
    pub fn positions(&self) -> impl Iterator<Item = Result<PositionCount>> + '_ {
        let mut records = (0..SHARDS)
            .flat_map(|shard| self.records.records(shard))
            .peekable();
        std::iter::from_fn(move || {
            let first = match records.next()? {
                Ok(first) => first,
                Err(err) => return Some(Err(err)),
            };
            let mut group = vec![first];
            let same = |next: &Result<CountRecord>| {
                next.as_ref().is_ok_and(|next| next.key() == first.key())
            };
            while let Some(Ok(record)) = records.next_if(same) {
                group.push(record);
            }
            let mut moves = Vec::new();
            self.move_counts(&group, &mut moves);
            Some(Ok(PositionCount {
                key: first.key(),
                turn: first.turn(),
                moves,
            }))
        })
    }

    /// Returns the number of positions, and the total number of moves in all positions. Both numbers include the
    /// positions that [`sort_with`](Tally::sort_with) dropped because their moves are rare. Uses all threads of the
    /// current rayon pool.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be read.
    pub(crate) fn size(&self) -> Result<(u64, u64)> {
        let of_shard = |shard| {
            let (mut positions, mut entries) = (0, 0);
            self.for_each_position(shard, |_, _, moves| {
                positions += 1;
                entries += moves.len() as u64;
            })?;
            Ok((positions, entries))
        };
        let rare = (self.rare.groups, self.rare.records);
        (0..SHARDS)
            .into_par_iter()
            .map(of_shard)
            .try_reduce(|| (0, 0), |a, b| Ok((a.0 + b.0, a.1 + b.1)))
            .map(|kept| (kept.0 + rare.0, kept.1 + rare.1))
    }

    /// Returns the number of shards. Each shard is a range of position keys, and together the shards contain all
    /// positions.
    pub(crate) fn shard_count(&self) -> usize {
        SHARDS
    }

    /// Calls `f` with each position in a shard, in ascending order of position keys. `f` receives the key, the side to
    /// move, and the moves with their results, in ascending order of the moves. `shard` is the index of the shard,
    /// which is a range of position keys.
    ///
    /// The required memory depends only on the number of moves in a position, not on the number of records.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be read.
    pub(crate) fn for_each_position<F>(&self, shard: usize, mut f: F) -> Result<()>
    where
        F: FnMut(u64, Color, &[MoveCount]),
    {
        // The last record of the slices before, and the moves before it that belong to the same position.
        let mut last: Option<CountRecord> = None;
        let mut moves: Vec<MoveCount> = Vec::new();
        let has_large = !self.large.is_empty();
        self.records.for_each_slice(shard, |records| {
            let (first, end) = (records[0], records[records.len() - 1]);
            if let Some(last) = last.replace(end) {
                let ends_position = last.key() != first.key();
                self.add_move(last, ends_position, &mut moves, &mut f);
            }
            for pair in records.windows(2) {
                let [record, next] = [pair[0], pair[1]];
                let ends_position = record.key() != next.key();
                // Most positions have a single move, which needs no vector.
                if ends_position && moves.is_empty() && !has_large {
                    f(record.key(), record.turn(), &[MoveCount::from(record)]);
                } else {
                    self.add_move(record, ends_position, &mut moves, &mut f);
                }
            }
        })?;
        if let Some(last) = last {
            self.add_move(last, true, &mut moves, &mut f);
        }
        Ok(())
    }

    /// Adds the results in `record` to `moves`, the moves of one position. If `ends_position` is `true`, this record is
    /// the last of the position, so `f` is called with the position and `moves` is cleared.
    // If it were inlined, `f` would be too large to be inlined where it is called for single moves.
    #[inline(never)]
    fn add_move<F>(
        &self,
        record: CountRecord,
        ends_position: bool,
        moves: &mut Vec<MoveCount>,
        f: &mut F,
    ) where
        F: FnMut(u64, Color, &[MoveCount]),
    {
        count_move(record, moves);
        if ends_position {
            self.large.add_to(record.key(), moves);
            f(record.key(), record.turn(), moves);
            moves.clear();
        }
    }

    /// Returns the numbers of positions and moves that [`sort_with`](Tally::sort_with) dropped. A position is dropped
    /// if all of its moves are rare.
    pub(crate) fn rare(&self) -> Dropped {
        self.rare
    }

    /// Returns `true` if some results are in temporary files, because the results exceeded the memory budget.
    pub fn is_spilled(&self) -> bool {
        self.records.is_spilled()
    }

    /// Returns the approximate number of bytes that the results take in memory.
    pub(crate) fn bytes_in_memory(&self) -> u64 {
        self.records.bytes_in_memory()
    }

    pub(super) fn records(&self) -> &Sorted<CountRecord> {
        &self.records
    }

    /// Replaces the content of `moves` with the moves of a position and their results. `records` contains all records
    /// of the position, in ascending order.
    pub(super) fn move_counts(&self, records: &[CountRecord], moves: &mut Vec<MoveCount>) {
        moves.clear();
        for record in records {
            count_move(*record, moves);
        }
        if let Some(record) = records.first() {
            self.large.add_to(record.key(), moves);
        }
    }
}

/// Adds the results in `record` to `moves`, which contains the moves of one position. The caller must pass the records
/// of the position in ascending order, so that records of the same move follow each other.
#[inline]
fn count_move(record: CountRecord, moves: &mut Vec<MoveCount>) {
    let count = MoveCount::from(record);
    match moves.last_mut() {
        Some(last) if last.mv == count.mv => last.stats += count.stats,
        _ => moves.push(count),
    }
}

/// The number of records that are passed to a merge at a time. Each record contains results of one move.
const RECORDS_PER_BATCH: usize = 1 << 11;

/// A function that reads the next batch of results from a sorted source into an empty [`CountBatch`]. The results are
/// sorted by position key and move, and belong to one range of shards. A shard is a 256th of the range of keys.
///
/// The function returns the path of the file that it has read, or `None` at the end of the source. A batch may be empty
/// before the end, because rows without moves are skipped.
pub(crate) type OrderedCounts<'a> =
    Box<dyn FnMut(&mut CountBatch) -> Result<Option<&'a Path>> + 'a>;

/// Converts `counts`, a sorted source of results, to a source of records for a merge. Results that are too large for
/// records are added to `large`. `has_large` is set to `true` before the first of these results is added.
fn records<'a: 'b, 'b>(
    mut counts: OrderedCounts<'a>,
    large: &'b Mutex<LargeCounts>,
    has_large: &'b AtomicBool,
) -> Refill<'b, CountRecord> {
    let mut batch = CountBatch::default();
    Box::new(move |out| {
        // A batch is empty if none of its rows has a move. Therefore batches are read until one contains records.
        while out.is_empty() {
            // The vectors are swapped so that the rows are decoded directly into `out`, without a copy.
            mem::swap(out, &mut batch.records);
            let read = counts(&mut batch);
            mem::swap(out, &mut batch.records);
            let Some(path) = read? else {
                break;
            };
            // The records are not in order if the results of a move take several records.
            out.sort();
            if !batch.large.is_empty() {
                has_large.store(true, Ordering::Relaxed);
                let mut large = task::lock(large);
                large.extend(&batch);
                batch.large.clear();
                large.check_count(path)?;
            }
        }
        Ok(())
    })
}

/// Returns `true` if any move of a position may have been played at least `min_games` times. `position` contains the
/// sorted records of the position.
///
/// Assumes that a move with several records is frequent. A record without games is also frequent: it stands for a move
/// whose results do not fit into records.
fn is_frequent(position: &[CountRecord], min_games: u64) -> bool {
    let is_frequent = |record: &CountRecord| {
        let games = record.stats().games();
        games == 0 || games >= min_games
    };
    let has_several = |two: &[CountRecord]| two[0].book_move() == two[1].book_move();
    position.iter().any(is_frequent) || position.windows(2).any(has_several)
}

impl Tally {
    /// Finishes counting, and merges this tally with other sources, which must already be sorted. Uses all threads of
    /// the current rayon pool.
    ///
    /// - `memory`: the memory budget of the returned counts
    /// - `ranges`: the number of equal ranges into which the shards are divided; the ranges are merged in parallel
    /// - `min_games`: a position is dropped if each of its moves was played fewer than `min_games` times;
    ///   [`Counts::rare`] returns the number of dropped positions
    /// - `open`: returns the sorted sources for a range of shards
    /// - `watch`: called from time to time with the number of bytes in temporary files; if it returns an error, the
    ///   function fails with this error
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be written or read, and returns the errors of the sources and of
    /// `watch`.
    pub(crate) fn sort_with<'a>(
        self,
        memory: &Memory,
        ranges: usize,
        min_games: u64,
        open: impl Fn(Range<usize>) -> Vec<OrderedCounts<'a>> + Sync,
        watch: impl Fn(u64) -> Result<()> + Sync,
    ) -> Result<Counts> {
        let Counts {
            records: counted,
            large,
            ..
        } = self.sort()?;
        let has_large = AtomicBool::new(!large.is_empty());
        let large = Mutex::new(large);
        let open = |shards: Range<usize>| {
            let mut own = shards.clone().flat_map(|shard| counted.records(shard));
            let own: Refill<'_, CountRecord> = Box::new(move |out| {
                for record in own.by_ref().take(RECORDS_PER_BATCH) {
                    out.push(record?);
                }
                Ok(())
            });
            let others = open(shards).into_iter();
            let others = others.map(|counts| records(counts, &large, &has_large));
            others.chain([own]).collect()
        };
        // An empty record that represents large results may have been merged with other records of the same move.
        // Therefore the large results are searched too.
        let is_frequent = |position: &[CountRecord]| {
            is_frequent(position, min_games)
                || has_large.load(Ordering::Relaxed) && task::lock(&large).has_any(position)
        };
        let keeps = |position: &[CountRecord]| min_games <= 1 || is_frequent(position);
        let (records, rare) = merge_ordered(ranges.min(SHARDS), memory, open, keeps, watch)?;
        Ok(Counts {
            records,
            large: task::unlocked(large),
            rare,
        })
    }
}

/// The number of bits by which a 128-bit record is shifted to the right to get the index of its shard. Its highest
/// eight bits select one of the 256 shards.
const SHARD_SHIFT: u32 = 120;

/// The intended number of records in a bucket if the records are in memory. A bucket is a part of a shard. A lookup
/// searches one bucket instead of the whole shard.
const BUCKET_SIZE_IN_MEMORY: u64 = 4;

/// The intended number of records in a bucket if the records are in a temporary file. A bucket is a part of a shard. A
/// lookup reads one bucket instead of the whole shard.
const BUCKET_SIZE_IN_FILE: u64 = 256;

/// An index of sorted results that finds the moves of a position by the position's key.
///
/// Keys are uniformly distributed, so only a few records have keys with the same leading bits. A table contains the
/// index of the first record for each combination of leading bits. A lookup searches only the records with the same
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

/// A range of the sorted records of one shard. A lookup searches this range for the records of the position with the
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

/// A position that a [`Finder`] has found, with the moves that were played in it and their results.
#[derive(Debug)]
pub(crate) struct FinderMatch<'a> {
    /// The location of the first record of the position.
    pub place: RecordLocation,
    /// The side to move.
    pub turn: shakmaty::Color,
    /// The moves and their results, in ascending order of the moves.
    pub moves: &'a [MoveCount],
}

/// Buffers for looking up positions. A thread reuses them for all of its lookups, to save allocations.
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
            while starts.len() <= bucket_of(record.0, bits) {
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

    /// Returns the number of the bucket with the records of the position `key`, as a range that contains only this
    /// number. [`to_records`](Finder::to_records) converts this range to the range of the records in the bucket.
    ///
    /// Each shard is divided into buckets. Two records of a shard are in the same bucket if the leading bits of their
    /// keys are equal.
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
    /// A lookup spends most of its time waiting for memory. Looking up many keys together is faster, because the
    /// waiting times overlap.
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

    /// Creates an empty set in which the counted positions can be marked as visited.
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

/// A set of visited positions. It has one bit for each record of the results. The bit of a position's first record is
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
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use shakmaty::Color;

    use super::{super::Tally, *};
    use crate::{chess::position::BookMove, storage::sort::Memory};

    #[test]
    fn counts_are_exact_past_32_bits() {
        let tally = Tally::new(Memory::default());
        let many = Wdl {
            wins: 5_000_000_000,
            draws: 1,
            losses: 70_000,
        };
        for _ in 0..2 {
            tally.add(1 << 60, BookMove(5), Color::Black, many).unwrap();
        }
        tally.add(1 << 60, BookMove(6), Color::Black, many).unwrap();
        let counts = tally.sort().unwrap();
        let positions: Vec<PositionCount> = counts.positions().map(Result::unwrap).collect();
        let [position] = &positions[..] else {
            panic!("{positions:?}");
        };
        assert_eq!((position.key, position.turn), (1 << 60, Color::Black));
        assert_eq!(position.moves[0].stats, many + many);
        assert_eq!(position.moves[1].stats, many);
    }

    /// Checks that a look-up by key finds each position.
    fn assert_all_are_found(counts: &Counts) {
        let finder = counts.finder().unwrap();
        let mut scratch = crate::formats::counts::LookUpBuffers::default();
        for position in counts.positions() {
            let position = position.unwrap();
            let found = finder.find(finder.range_of(position.key), &mut scratch);
            let found = found.unwrap().expect("it was counted");
            assert_eq!(found.moves, position.moves);
        }
    }

    proptest! {
        #[test]
        fn counts_are_those_of_a_map(
            games in proptest::collection::vec(
                (0..9u64, 0..4u16, prop_oneof![0..40_000u64, Just(1 << 21), Just(1 << 40)], 0..3u64), 0..400,
            ),
            bytes in prop_oneof![Just(0usize), Just(1 << 20)],
        ) {
            let tally = Tally::new(Memory { bytes, ..Memory::default() });
            let mut expected: BTreeMap<(u64, u16), Wdl> = BTreeMap::new();
            for (key, mv, wins, draws) in games {
                // Spread the keys over several shards. Some records still have the same key.
                let key = key.wrapping_mul(0x2545_f491_4f6c_dd1d) >> (key % 3);
                let stats = Wdl { wins, draws, losses: 1 };
                tally.add(key, BookMove(mv), Color::White, stats).unwrap();
                *expected.entry((key, mv)).or_default() += stats;
            }
            let counts = tally.sort().unwrap();
            assert_all_are_found(&counts);
            for shard in 0..counts.shard_count() {
                counts.for_each_position(shard, |key, _, moves| {
                    for count in moves {
                        assert_eq!(expected[&(key, count.mv.0)], count.stats);
                    }
                }).unwrap();
            }
            let mut found = BTreeMap::new();
            let mut last = None;
            for position in counts.positions() {
                let position = position.unwrap();
                prop_assert!(last < Some(position.key));
                last = Some(position.key);
                for count in position.moves {
                    prop_assert!(found.insert((position.key, count.mv.0), count.stats).is_none());
                }
            }
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn counts_go_on_after_rows_without_moves() {
        let open = |shards: Range<usize>| -> Vec<OrderedCounts<'_>> {
            let mut step = 0;
            if shards.start > 0 {
                return Vec::new();
            }
            vec![Box::new(move |batch| {
                step += 1;
                if step == 2 {
                    let stats = Wdl {
                        wins: 3,
                        draws: 2,
                        losses: 1,
                    };
                    batch.push(7, BookMove(796), Color::White, stats);
                }
                Ok((step < 4).then_some(Path::new("part")))
            })]
        };
        let memory = Memory::default();
        let counts = Tally::new(memory.clone()).sort_with(&memory, 2, 0, open, |_| Ok(()));
        let positions: Result<Vec<_>> = counts.unwrap().positions().collect();
        let positions = positions.unwrap();
        assert_eq!(positions.len(), 1);
        assert_eq!(positions[0].moves[0].stats.games(), 6);
    }

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
            let counts = tally.sort().unwrap();
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
        let counts = Tally::new(Memory::default()).sort().unwrap();
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
            let counts = tally.sort().unwrap();
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

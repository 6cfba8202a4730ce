//! Collects the wins, draws and losses of every move in every position. Counts that are sorted already can be added
//! without sorting them again.

use std::{
    mem,
    ops::Range,
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use rayon::prelude::*;
use shakmaty::Color;

use super::record::{CountBatch, CountRecord, LargeCounts, MoveCount, Wdl};
use crate::{
    error::Result,
    position::BookMove,
    storage::sort::{Dropped, Memory, Refill, SHARDS, Sealed, Shards, merge_ordered},
    task,
};

/// A store that adds up the wins, draws and losses of each move in each position. Any number of threads can add
/// results.
#[derive(Debug)]
pub struct Tally {
    shards: Shards<CountRecord>,
    large: Mutex<LargeCounts>,
}

impl Tally {
    /// Creates an empty tally. When it exceeds the memory budget `memory`, it writes results to temporary files.
    pub fn new(memory: Memory) -> Tally {
        Tally {
            shards: Shards::new(memory),
            large: Mutex::default(),
        }
    }

    /// Adds records of the results of moves to the tally. This is the fastest way to count. One record can count only
    /// about 32,000 games. Use [`add_batch`](Tally::add_batch) for results of any size.
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

    /// Returns an error if too many moves have results that are too large for records. Such results are held in memory,
    /// so their number is limited.
    ///
    /// # Errors
    ///
    /// Returns an [`Error::File`](crate::Error::File) that names `source`, the path of the counts that were read, if
    /// there are more such moves than in any real collection of games.
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
    pub fn seal(self) -> Result<Counts> {
        Ok(Counts {
            records: self.shards.seal()?,
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
    pub(super) records: Sealed<CountRecord>,
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
    /// positions that [`seal_with`](Tally::seal_with) dropped because their moves are rare. Uses all threads of the
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

    /// Calls `f` with each position in a shard, in ascending order of position keys. `f` receives the key, the side
    /// to move, and the moves with their results, in ascending order of the moves. `shard` is the index of the shard,
    /// which is a range of position keys.
    ///
    /// The required memory depends on the number of moves in a position, but not on how many records store the results
    /// of these moves.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be read.
    pub(crate) fn for_each_position(
        &self,
        shard: usize,
        mut f: impl FnMut(u64, Color, &[MoveCount]),
    ) -> Result<()> {
        // The moves of the current position, without the last one, to which the results of further records may be
        // added.
        let mut moves: Vec<MoveCount> = Vec::new();
        let mut open: Option<(CountRecord, MoveCount)> = None;
        let mut end = |of: CountRecord, last: MoveCount, moves: &mut Vec<MoveCount>| {
            // Most positions have a single move, which needs no copy.
            if moves.is_empty() && self.large.is_empty() {
                return f(of.key(), of.turn(), &[last]);
            }
            moves.push(last);
            self.large.add_to(of.key(), moves);
            f(of.key(), of.turn(), moves);
            moves.clear();
        };
        self.records.for_each(shard, |record| {
            let (mv, stats) = (record.book_move(), record.stats());
            match &mut open {
                Some((first, last)) if first.key() == record.key() => {
                    if last.mv == mv {
                        last.stats += stats;
                    } else {
                        moves.push(mem::replace(last, MoveCount { mv, stats }));
                    }
                }
                _ => {
                    if let Some((first, last)) = open.replace((record, MoveCount { mv, stats })) {
                        end(first, last, &mut moves);
                    }
                }
            }
        })?;
        if let Some((first, last)) = open {
            end(first, last, &mut moves);
        }
        Ok(())
    }

    /// Returns the numbers of positions and moves that [`seal_with`](Tally::seal_with) dropped. It drops a position if
    /// all moves of the position are rare.
    pub(crate) fn rare(&self) -> Dropped {
        self.rare
    }

    /// Returns `true` if some of the counts are in temporary files, because the counts exceeded the memory budget.
    pub fn is_spilled(&self) -> bool {
        self.records.is_spilled()
    }

    /// Returns the approximate number of bytes of memory that the counts take.
    pub(crate) fn bytes_in_memory(&self) -> u64 {
        self.records.bytes_in_memory()
    }

    pub(super) fn records(&self) -> &Sealed<CountRecord> {
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
    let (mv, stats) = (record.book_move(), record.stats());
    match moves.last_mut() {
        Some(last) if last.mv == mv => last.stats += stats,
        _ => moves.push(MoveCount { mv, stats }),
    }
}

/// The number of records that are passed to a merge at a time. Each record contains results of one move.
const RECORDS_PER_BATCH: usize = 1 << 11;

/// A function that reads the next batch of counts from a sorted source into an empty [`CountBatch`]. The counts are
/// sorted by position key and move, and belong to one range of shards. A shard is a 256th of the range of keys.
///
/// The function returns the path of the file that it has read, or `None` at the end of the counts. A batch may be empty
/// before the end, because rows without moves are skipped.
pub(crate) type OrderedCounts<'a> =
    Box<dyn FnMut(&mut CountBatch) -> Result<Option<&'a Path>> + 'a>;

/// Converts `counts`, a sorted source of counts, to a source of records for a merge. Results that are too large for
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
/// Assumes that a move with several records is frequent. If the results of a move do not fit into a record, the record
/// contains no games; such a move is frequent too.
fn is_frequent(position: &[CountRecord], min_games: u64) -> bool {
    let is_frequent = |record: &CountRecord| {
        let games = record.stats().games();
        games == 0 || games >= min_games
    };
    let has_several = |two: &[CountRecord]| two[0].book_move() == two[1].book_move();
    position.iter().any(is_frequent) || position.windows(2).any(has_several)
}

impl Tally {
    /// Finishes counting, and merges the counts of this tally with counts from sources that are already sorted. Uses
    /// all threads of the current rayon pool.
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
    pub(crate) fn seal_with<'a>(
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
        } = self.seal()?;
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use shakmaty::Color;

    use super::*;
    use crate::{counts::Wdl, position::BookMove};

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
        let counts = tally.seal().unwrap();
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
        let mut scratch = crate::counts::LookUpBuffers::default();
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
            let counts = tally.seal().unwrap();
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
        let counts = Tally::new(memory.clone()).seal_with(&memory, 2, 0, open, |_| Ok(()));
        let positions: Result<Vec<_>> = counts.unwrap().positions().collect();
        let positions = positions.unwrap();
        assert_eq!(positions.len(), 1);
        assert_eq!(positions[0].moves[0].stats.games(), 6);
    }
}

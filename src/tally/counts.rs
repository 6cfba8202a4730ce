//! Wins, draws and losses of every position and move.

use std::{mem, path::Path, sync::Mutex};

use rayon::prelude::*;

use shakmaty::Color;

use super::{
    batch::{CountBatch, LargeCounts},
    record::CountRecord,
    stats::{MoveCount, Stats},
};
use crate::{
    error::Result,
    position::BookMove,
    sort::{Dropped, Memory, SHARDS, Sealed, Shards},
    task,
};

/// Counts being collected, from any number of threads.
#[derive(Debug)]
pub struct Tally {
    shards: Shards<CountRecord>,
    large: Mutex<LargeCounts>,
}

impl Tally {
    /// No counts yet.
    pub fn new(memory: Memory) -> Tally {
        Tally {
            shards: Shards::new(memory),
            large: Mutex::default(),
        }
    }

    /// Adds a batch of records, which is the fast way to count.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be written.
    pub fn add_records(&self, records: &[CountRecord]) -> Result<()> {
        self.shards.append(records)
    }

    /// Adds a batch of counts of any numbers of games.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be written.
    pub fn add_batch(&self, batch: &CountBatch) -> Result<()> {
        if !batch.large.is_empty() {
            task::lock(&self.large).extend(batch);
        }
        self.add_records(&batch.records)
    }

    /// Adds games of one position and move.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be written.
    pub fn add(&self, key: u64, mv: BookMove, turn: Color, stats: Stats) -> Result<()> {
        let mut batch = CountBatch::default();
        batch.push(key, mv, turn, stats);
        self.add_batch(&batch)
    }

    /// Refuses more moves with large numbers of games than the largest collections have: these numbers stay in memory.
    ///
    /// # Errors
    ///
    /// [`Error::File`] that names the `source` of the counts.
    pub(crate) fn refuse_many_large(&self, source: &Path) -> Result<()> {
        task::lock(&self.large).refuse_many(source)
    }

    /// How many bytes of counts are in temporary files.
    pub(crate) fn spilled_bytes(&self) -> u64 {
        self.shards.spilled_bytes()
    }

    /// Ends counting: sorts and adds up what was added. Works on all threads of the rayon pool that it is called in.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be written or read.
    pub fn seal(self) -> Result<Counts> {
        Ok(Counts {
            records: self.shards.seal()?,
            large: task::unlocked(self.large),
            rare: Dropped::default(),
        })
    }
}

/// A position and its moves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PositionCount {
    /// The key of the position.
    pub key: u64,
    /// The side to move.
    pub turn: Color,
    /// The moves in the order of their numbers.
    pub moves: Vec<MoveCount>,
}

/// All counts, in the order of keys.
#[derive(Debug)]
pub struct Counts {
    pub(super) records: Sealed<CountRecord>,
    pub(super) large: LargeCounts,
    /// Those that were not kept, because no move of their positions was played often enough for what is made of them.
    pub(super) rare: Dropped,
}

impl Counts {
    /// All positions in the order of their keys.
    ///
    /// # Errors
    ///
    /// An item is an error if a temporary file cannot be read.
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

    /// How many positions there are, and how many pairs of position and move. Works on all threads of the rayon pool
    /// that it is called in.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be read.
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

    /// How many shards there are; one after the other they hold all positions in order.
    pub(crate) fn shard_count(&self) -> usize {
        SHARDS
    }

    /// Calls `f` with each position of a shard: its key, the side to move, and its moves in the order of their numbers.
    /// However many records a position has, only its moves are in memory.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be read.
    pub(crate) fn for_each_position(
        &self,
        shard: usize,
        mut f: impl FnMut(u64, Color, &[MoveCount]),
    ) -> Result<()> {
        // The moves of a position but its last, which is open.
        let mut moves: Vec<MoveCount> = Vec::new();
        let mut open: Option<(CountRecord, MoveCount)> = None;
        let mut end = |of: CountRecord, last: MoveCount, moves: &mut Vec<MoveCount>| {
            // Most positions have one move.
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

    /// What was counted and not kept: positions, and pairs of position and move.
    pub(crate) fn rare(&self) -> Dropped {
        self.rare
    }

    /// Whether memory did not suffice and counts are in temporary files.
    pub fn is_spilled(&self) -> bool {
        self.records.is_spilled()
    }

    /// About how many bytes of memory the counts take.
    pub(crate) fn bytes_in_memory(&self) -> u64 {
        self.records.bytes_in_memory()
    }

    pub(super) fn records(&self) -> &Sealed<CountRecord> {
        &self.records
    }

    /// Replaces `moves` with those of the records of a position.
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

/// Adds the next record of a position to its moves.
#[inline]
fn count_move(record: CountRecord, moves: &mut Vec<MoveCount>) {
    let (mv, stats) = (record.book_move(), record.stats());
    match moves.last_mut() {
        Some(last) if last.mv == mv => last.stats += stats,
        _ => moves.push(MoveCount { mv, stats }),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn counts_are_exact_past_32_bits() {
        let tally = Tally::new(Memory::default());
        let many = Stats {
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

    /// Each position is found by its key too.
    fn assert_all_are_found(counts: &Counts) {
        let finder = counts.finder().unwrap();
        let mut scratch = crate::tally::Scratch::default();
        for position in counts.positions() {
            let position = position.unwrap();
            let found = finder.find(finder.part(position.key), &mut scratch);
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
            let mut expected: BTreeMap<(u64, u16), Stats> = BTreeMap::new();
            for (key, mv, wins, draws) in games {
                // Keys in several shards, and some that share one.
                let key = key.wrapping_mul(0x2545_f491_4f6c_dd1d) >> (key % 3);
                let stats = Stats { wins, draws, losses: 1 };
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
}

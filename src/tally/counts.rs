//! Wins, draws and losses of every position and move.

use shakmaty::Color;

use super::{
    record::{self, SumUp},
    shards::{Memory, Partition, SHARDS, Sealed, Shards},
    stats::Stats,
};
use crate::{error::Result, position::BookMove};

/// Counts being collected, from any number of threads.
#[derive(Debug)]
pub struct Tally {
    shards: Shards<SumUp>,
}

impl Tally {
    /// Nothing counted yet.
    pub fn new(memory: Memory) -> Tally {
        Tally {
            shards: Shards::new(memory),
        }
    }

    /// Counts a batch of [records](record) at once, which is how a lot is counted fast.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be written.
    pub fn add_records(&self, records: &[u128]) -> Result<()> {
        self.shards.append(&Partition::new(records))
    }

    /// Counts games of one position and move.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be written.
    pub fn add(&self, key: u64, mv: BookMove, turn: Color, stats: Stats) -> Result<()> {
        let mut records = Vec::new();
        record::extend(&mut records, key, mv, turn, stats);
        self.add_records(&records)
    }

    /// Ends counting.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be written or read.
    pub fn seal(self) -> Result<Counts> {
        Ok(Counts {
            records: self.shards.seal()?,
        })
    }
}

/// A move of a position and how it did.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct MoveCount {
    /// The move.
    pub mv: BookMove,
    /// The games in which it was played.
    pub stats: Stats,
}

/// All counts, in the order of keys.
#[derive(Debug)]
pub struct Counts {
    records: Sealed<SumUp>,
}

impl Counts {
    /// How many shards there are; one after the other they hold all positions in order.
    pub fn shard_count(&self) -> usize {
        SHARDS
    }

    /// Calls `f` with each position of a shard: its key, the side to move, and its moves in the order
    /// of their numbers.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be read.
    pub fn for_each_position(
        &self,
        shard: usize,
        mut f: impl FnMut(u64, Color, &[MoveCount]),
    ) -> Result<()> {
        let mut moves: Vec<MoveCount> = Vec::new();
        let same = |a, b| record::key(a) == record::key(b);
        self.records.for_each_group(shard, same, |records| {
            // Most positions have one move.
            if let [record] = *records {
                let (mv, stats) = (record::book_move(record), record::stats(record));
                f(
                    record::key(record),
                    record::turn(record),
                    &[MoveCount { mv, stats }],
                );
                return;
            }
            move_counts(records, &mut moves);
            f(record::key(records[0]), record::turn(records[0]), &moves);
        })
    }

    /// Whether memory did not suffice and a temporary file had to.
    pub fn is_spilled(&self) -> bool {
        self.records.is_spilled()
    }

    pub(super) fn records(&self) -> &Sealed<SumUp> {
        &self.records
    }
}

/// Replaces `moves` with those that a position's records are of.
pub(super) fn move_counts(records: &[u128], moves: &mut Vec<MoveCount>) {
    moves.clear();
    for record in records {
        let (mv, stats) = (record::book_move(*record), record::stats(*record));
        match moves.last_mut() {
            Some(last) if last.mv == mv => last.stats += stats,
            _ => moves.push(MoveCount { mv, stats }),
        }
    }
}

#[cfg(test)]
mod tests {
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
        let mut seen = 0;
        counts
            .for_each_position(16, |key, turn, moves| {
                assert_eq!((key, turn), (1 << 60, Color::Black));
                assert_eq!(moves[0].stats, many + many);
                assert_eq!(moves[1].stats, many);
                seen += 1;
            })
            .unwrap();
        assert_eq!(seen, 1);
    }
}

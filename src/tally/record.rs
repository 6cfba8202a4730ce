//! A count as 128 bits.
//!
//! | bits | meaning |
//! |---|---|
//! | 64-127 | key of the position |
//! | 48-63 | the move |
//! | 47 | whether Black is to move |
//! | 32-46 | wins |
//! | 16-31 | draws |
//! | 0-15 | losses |
//!
//! Numbers too large for their bits take several records of the same key and move, whose numbers add
//! up, so there is no largest count.

use shakmaty::Color;

use super::{
    shards::{BUCKETS, Fold},
    stats::Stats,
};
use crate::position::BookMove;

const MAX_WINS: u64 = (1 << 15) - 1;
const MAX_OTHER: u64 = (1 << 16) - 1;

/// Everything but the numbers.
const IDENTITY: u128 = !0 << 47;

/// The record of one game: its result seen from the side to move must be counted once in `stats`.
#[inline]
pub fn pack(key: u64, mv: BookMove, turn: Color, stats: Stats) -> u128 {
    debug_assert!(stats.wins <= MAX_WINS && stats.draws <= MAX_OTHER && stats.losses <= MAX_OTHER);
    u128::from(key) << 64 | u128::from(low_bits(mv, turn, stats))
}

#[inline]
fn low_bits(mv: BookMove, turn: Color, stats: Stats) -> u64 {
    u64::from(mv.0) << 48
        | u64::from(turn.is_black()) << 47
        | stats.wins << 32
        | stats.draws << 16
        | stats.losses
}

/// Appends records of games of any number.
pub fn extend(records: &mut Vec<u128>, key: u64, mv: BookMove, turn: Color, stats: Stats) {
    split(stats, |part| records.push(pack(key, mv, turn, part)));
}

/// The key of a record.
#[inline]
pub fn key(record: u128) -> u64 {
    (record >> 64) as u64
}

/// The move of a record.
#[inline]
pub fn book_move(record: u128) -> BookMove {
    BookMove((record >> 48) as u16)
}

/// The side to move in the position of a record.
#[inline]
pub fn turn(record: u128) -> Color {
    Color::from_white(record >> 47 & 1 == 0)
}

/// The numbers of a record.
#[inline]
pub fn stats(record: u128) -> Stats {
    let low = record as u64;
    Stats {
        wins: low >> 32 & MAX_WINS,
        draws: low >> 16 & MAX_OTHER,
        losses: low & MAX_OTHER,
    }
}

/// Splits numbers of any size into those of records.
fn split(mut stats: Stats, mut emit: impl FnMut(Stats)) {
    loop {
        let part = Stats {
            wins: stats.wins.min(MAX_WINS),
            draws: stats.draws.min(MAX_OTHER),
            losses: stats.losses.min(MAX_OTHER),
        };
        emit(part);
        stats.wins -= part.wins;
        stats.draws -= part.draws;
        stats.losses -= part.losses;
        if stats == Stats::default() {
            return;
        }
    }
}

/// Adds the numbers of records with the same key and move.
#[derive(Clone, Default, Debug)]
pub struct SumUp {
    /// The identity and the numbers so far, `None` before the first record.
    open: Option<(u128, Stats)>,
}

impl Fold for SumUp {
    #[inline]
    fn shard(record: u128) -> usize {
        (record >> 120) as usize
    }

    #[inline]
    fn bucket(record: u128) -> usize {
        (record >> 112) as usize & (BUCKETS - 1)
    }

    #[inline]
    fn take(&mut self, record: u128, out: &mut impl FnMut(u128)) {
        let identity = record & IDENTITY;
        match &mut self.open {
            Some((open, sum)) if *open == identity => *sum += stats(record),
            _ => {
                self.finish(out);
                self.open = Some((identity, stats(record)));
            }
        }
    }

    #[inline]
    fn finish(&mut self, out: &mut impl FnMut(u128)) {
        let Some((identity, sum)) = self.open.take() else {
            return;
        };
        if sum.wins <= MAX_WINS && sum.draws <= MAX_OTHER && sum.losses <= MAX_OTHER {
            out(identity | u128::from(sum.wins << 32 | sum.draws << 16 | sum.losses));
        } else {
            split(sum, |part| {
                out(identity | u128::from(part.wins << 32 | part.draws << 16 | part.losses));
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_packed_comes_back(
            bits: u64, mv: u16, black: bool, wins in 0..=MAX_WINS, draws in 0..=MAX_OTHER, losses in 0..=MAX_OTHER,
        ) {
            let numbers = Stats { wins, draws, losses };
            let side = Color::from_white(!black);
            let record = pack(bits, BookMove(mv), side, numbers);
            prop_assert_eq!(key(record), bits);
            prop_assert_eq!(book_move(record), BookMove(mv));
            prop_assert_eq!(turn(record), side);
            prop_assert_eq!(stats(record), numbers);
        }

        #[test]
        fn split_numbers_add_up(wins in 0..1u64 << 22, draws in 0..1u64 << 22, losses in 0..1u64 << 22) {
            let numbers = Stats { wins, draws, losses };
            let mut sum = Stats::default();
            split(numbers, |part| sum += part);
            prop_assert_eq!(sum, numbers);
        }
    }
}

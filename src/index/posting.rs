//! That a game reached a position, as 128 bits in the order of the index.
//!
//! The index keeps keys as decimal text, so `10` comes before `9`. A record holds the key's digits
//! moved to the left, as if it had 20 of them, and then how many it has: comparing records compares
//! the decimal text.
//!
//! | bits | meaning |
//! |---|---|
//! | 55-121 | the key times 10^(20 - digits) |
//! | 50-54 | digits of the key |
//! | 18-49 | id of the game |
//! | 2-17 | the move played, 0 for none or where nobody asked |
//! | 0-1 | who won: 0 neither side, 1 White, 2 Black |

use shakmaty::Color;

use crate::{
    pgn::GameResult,
    position::BookMove,
    tally::{BUCKETS, Fold},
};

const LONGEST: u32 = 20;

/// What all keys but 0 are at least, moved to the left.
const SMALLEST: u128 = 10_u128.pow(LONGEST - 1);

/// How many keys have 20 digits.
const OF_LONGEST: u128 = (1 << 64) - SMALLEST;

/// Makes a record.
#[inline]
pub fn pack(key: u64, id: u32, mv: BookMove, result: GameResult) -> u128 {
    let digits = key.checked_ilog10().map_or(1, |log| log + 1);
    let aligned = u128::from(key) * u128::from(10_u64.pow(LONGEST - digits));
    let winner = match result {
        GameResult::WhiteWins => 1,
        GameResult::BlackWins => 2,
        GameResult::Draw | GameResult::Unknown => 0,
    };
    aligned << 55
        | u128::from(u64::from(digits) << 50 | u64::from(id) << 18 | u64::from(mv.0) << 2 | winner)
}

/// Adds to the id of a record, for games that were numbered from 0 at first.
#[inline]
pub fn add_to_id(record: u128, first_id: u32) -> u128 {
    record + (u128::from(first_id) << 18)
}

/// What tells the position of a record: records of the same position have the same.
#[inline]
pub fn position(record: u128) -> u128 {
    record >> 50
}

/// The key of a record's position.
#[inline]
pub fn key(record: u128) -> u64 {
    let digits = (record >> 50) as u32 & 31;
    let aligned = record >> 55;
    match LONGEST - digits {
        0 => aligned as u64,
        // The commonest, and a constant divisor.
        1 => (aligned / 10) as u64,
        shift => (aligned / u128::from(10_u64.pow(shift))) as u64,
    }
}

/// The id of a record's game.
#[inline]
pub fn id(record: u128) -> u32 {
    (record >> 18) as u32
}

/// The move of a record.
#[inline]
pub fn book_move(record: u128) -> BookMove {
    BookMove((record >> 2) as u16)
}

/// Who won the game of a record.
#[inline]
pub fn winner(record: u128) -> Option<Color> {
    match record & 3 {
        1 => Some(Color::White),
        2 => Some(Color::Black),
        _ => None,
    }
}

/// About the share of all keys, of 2^64, whose text comes before that of the record: keys are spread
/// evenly as numbers but not as text, half of which begins with a 1.
#[inline]
fn share_before(record: u128) -> u64 {
    let above = (record >> 55).saturating_sub(SMALLEST);
    // Those of 20 digits, and a ninth of `above` for those of 19, 18 and so on together.
    let before = above.min(OF_LONGEST) + ((above * 7281) >> 16);
    u64::try_from(before).unwrap_or(u64::MAX)
}

/// Keeps one of several equal records.
#[derive(Clone, Default, Debug)]
pub struct Once {
    last: Option<u128>,
}

impl Fold for Once {
    #[inline]
    fn shard(record: u128) -> usize {
        (share_before(record) >> 56) as usize
    }

    #[inline]
    fn bucket(record: u128) -> usize {
        (share_before(record) >> 48) as usize & (BUCKETS - 1)
    }

    #[inline]
    fn take(&mut self, record: u128, out: &mut impl FnMut(u128)) {
        if self.last != Some(record) {
            self.last = Some(record);
            out(record);
        }
    }

    #[inline]
    fn finish(&mut self, _out: &mut impl FnMut(u128)) {}
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tally::SHARDS;

    fn keys() -> impl Strategy<Value = u64> {
        // Of all lengths, and with many that begin alike.
        (any::<u64>(), 0..20u32).prop_map(|(key, digits)| key / 10_u64.pow(digits))
    }

    proptest! {
        #[test]
        fn what_is_packed_comes_back(number in keys(), id_ in 0..u32::MAX - 9, mv: u16) {
            for (result, side) in [
                (GameResult::WhiteWins, Some(Color::White)),
                (GameResult::BlackWins, Some(Color::Black)),
                (GameResult::Draw, None),
            ] {
                let record = add_to_id(pack(number, id_, BookMove(mv), result), 9);
                prop_assert_eq!(key(record), number);
                prop_assert_eq!(id(record), id_ + 9);
                prop_assert_eq!(book_move(record), BookMove(mv));
                prop_assert_eq!(winner(record), side);
            }
        }

        #[test]
        fn records_are_in_the_order_of_the_text(mut numbers in proptest::collection::vec(keys(), 2..50)) {
            let pack = |key: &u64| pack(*key, 0, BookMove::NONE, GameResult::Draw);
            numbers.sort_by_key(|key| key.to_string());
            prop_assert!(numbers.is_sorted_by_key(pack));
            let place = |key: &u64| (Once::shard(pack(key)), Once::bucket(pack(key)));
            prop_assert!(numbers.is_sorted_by_key(place));
            prop_assert!(numbers.iter().all(|key| place(key).0 < SHARDS));
        }
    }

    #[test]
    fn shards_are_filled_evenly() {
        let mut sizes = [0; SHARDS];
        for i in 0..1_000_000u64 {
            let key = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            sizes[Once::shard(pack(key, 0, BookMove::NONE, GameResult::Draw))] += 1;
        }
        let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
        assert!(*least > 2_500 && *most < 6_000, "{least} to {most}");
    }
}

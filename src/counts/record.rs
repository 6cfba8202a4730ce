//! A count in 128 bits, and batches of counts on their way to a tally.
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
//! Numbers that exceed their bits take several records of the same key and move, which add up, so the number of games
//! is not limited.

use std::{collections::BTreeMap, path::Path};

use shakmaty::Color;

use super::wdl::{MoveCount, Wdl};
use crate::{
    error::{Error, Result},
    position::BookMove,
    storage::sort::{Fold, PACKED, Record, SHARDS},
};

const MAX_WINS: u64 = (1 << 15) - 1;
const MAX_OTHER: u64 = (1 << 16) - 1;

/// A mask of the bits that hold the position, the move and the side to move.
const KIND: u128 = !0 << 47;

/// The number of low bits of a record that hold the numbers of wins, draws and losses.
const NUMBERS: u32 = 47;

/// The number of low bits of a position key that do not select its shard. The highest bits select one of 256 shards.
const KEY_BITS: u32 = u64::BITS - SHARDS.ilog2();
const KEY_MASK: u128 = (1 << KEY_BITS) - 1;

/// A 128-bit record of the wins, draws and losses of a move in a position. Records are ordered by position key, then by
/// move.
///
/// ```
/// use polybook::{position::BookMove, counts::{CountRecord, Wdl}};
/// use shakmaty::Color;
///
/// let won = Wdl { wins: 1, draws: 0, losses: 0 };
/// let record = CountRecord::new(7, BookMove(796), Color::White, won);
/// assert_eq!((record.key(), record.stats()), (7, won));
/// ```
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CountRecord(u128);

impl CountRecord {
    /// Creates a record of at most 32,767 wins, 65,535 draws and 65,535 losses. `key` identifies the position, and
    /// `turn` is the side to move.
    ///
    /// Larger numbers result in a wrong record; [`CountBatch::push`](super::CountBatch::push) accepts numbers of any
    /// size.
    #[inline]
    pub fn new(key: u64, mv: BookMove, turn: Color, stats: Wdl) -> CountRecord {
        debug_assert!(fits(stats));
        let low = u64::from(mv.0) << 48
            | u64::from(turn.is_black()) << 47
            | stats.wins << 32
            | stats.draws << 16
            | stats.losses;
        CountRecord(u128::from(key) << 64 | u128::from(low))
    }

    /// Returns the number of records that are needed to store `stats`.
    pub(super) fn records_for(stats: Wdl) -> u64 {
        let wins = stats.wins.div_ceil(MAX_WINS);
        let others = stats.draws.max(stats.losses).div_ceil(MAX_OTHER);
        wins.max(others).max(1)
    }

    /// Appends records to `records` that together contain the games of one move in a position. `turn` is the side to
    /// move, from whose view the results `stats` are stored.
    pub(super) fn extend(
        records: &mut Vec<CountRecord>,
        key: u64,
        mv: BookMove,
        turn: Color,
        stats: Wdl,
    ) {
        split(stats, |part| {
            records.push(CountRecord::new(key, mv, turn, part));
        });
    }

    /// Returns the key of the position.
    #[inline]
    pub fn key(self) -> u64 {
        (self.0 >> 64) as u64
    }

    /// Returns the move whose results this record counts.
    #[inline]
    pub fn book_move(self) -> BookMove {
        BookMove((self.0 >> 48) as u16)
    }

    /// Returns the side to move in the position.
    #[inline]
    pub fn turn(self) -> Color {
        Color::from_white(self.0 >> 47 & 1 == 0)
    }

    /// Returns the numbers of games won, drawn and lost, from the view of the side to move.
    #[inline]
    pub fn stats(self) -> Wdl {
        let low = self.0 as u64;
        Wdl {
            wins: low >> 32 & MAX_WINS,
            draws: low >> 16 & MAX_OTHER,
            losses: low & MAX_OTHER,
        }
    }
}

/// Returns `true` if `stats` can be stored in one record.
#[inline]
pub(super) fn fits(stats: Wdl) -> bool {
    stats.wins <= MAX_WINS && stats.draws <= MAX_OTHER && stats.losses <= MAX_OTHER
}

/// Splits `stats` into parts that can each be stored in one record, and calls `emit` with each part.
fn split(mut stats: Wdl, mut emit: impl FnMut(Wdl)) {
    loop {
        let part = Wdl {
            wins: stats.wins.min(MAX_WINS),
            draws: stats.draws.min(MAX_OTHER),
            losses: stats.losses.min(MAX_OTHER),
        };
        emit(part);
        stats.wins -= part.wins;
        stats.draws -= part.draws;
        stats.losses -= part.losses;
        if stats == Wdl::default() {
            return;
        }
    }
}

impl Record for CountRecord {
    type Fold = SumUp;

    #[inline]
    fn from_bits(bits: u128) -> CountRecord {
        CountRecord(bits)
    }

    #[inline]
    fn to_bits(self) -> u128 {
        self.0
    }

    /// Returns the number by which records are distributed among shards: the position key. Keys are hashes, so the
    /// shards get about equally many records.
    #[inline]
    fn rank(self) -> u64 {
        self.key()
    }

    /// Returns the packed form of a record that counts exactly one game. Returns `None` for any other record.
    ///
    /// The packed form contains the position key without its first byte, the result, the side to move, and the move.
    /// The result is 0 for a loss, 1 for a draw and 2 for a win.
    #[inline]
    fn packed(self) -> Option<[u8; PACKED]> {
        let low = self.0 as u64;
        let numbers = low & ((1 << NUMBERS) - 1);
        let is_of_one = numbers & (1 << 32 | 1 << 16 | 1) == numbers && numbers.is_power_of_two();
        let short = low >> NUMBERS << 2 | u64::from(low.trailing_zeros() / 16);
        let bits = u128::from(self.key()) & KEY_MASK | u128::from(short) << KEY_BITS;
        let packed = bits.to_le_bytes().first_chunk().copied();
        packed.filter(|_| is_of_one)
    }

    #[inline]
    fn from_packed(shard: usize, packed: [u8; PACKED]) -> CountRecord {
        let mut bytes = [0; size_of::<u128>()];
        bytes[..PACKED].copy_from_slice(&packed);
        let bits = u128::from_le_bytes(bytes);
        let key = bits & KEY_MASK | (shard as u128) << KEY_BITS;
        let short = (bits >> KEY_BITS) as u64;
        let low = short >> 2 << NUMBERS | 1 << (16 * (short & 3));
        CountRecord(key << 64 | u128::from(low))
    }
}

/// A [`Fold`] that merges records with the same key and move into records with the sum of their results.
#[derive(Clone, Default, Debug)]
pub struct SumUp {
    /// The common bits of the current records, and the sum of their numbers. `None` before the first record.
    open: Option<(u128, Wdl)>,
}

impl Fold for SumUp {
    type Record = CountRecord;

    // All sorting and merging of counts calls this function, so it must be inlined.
    #[inline(always)]
    fn take(&mut self, record: CountRecord, out: &mut impl FnMut(CountRecord)) {
        let kind = record.0 & KIND;
        match &mut self.open {
            Some((open, sum)) if *open == kind => *sum += record.stats(),
            _ => {
                self.finish(out);
                self.open = Some((kind, record.stats()));
            }
        }
    }

    #[inline]
    fn finish(&mut self, out: &mut impl FnMut(CountRecord)) {
        let Some((kind, sum)) = self.open.take() else {
            return;
        };
        let record = |part: Wdl| {
            let numbers = part.wins << 32 | part.draws << 16 | part.losses;
            CountRecord(kind | u128::from(numbers))
        };
        if fits(sum) {
            out(record(sum));
        } else {
            split(sum, |part| out(record(part)));
        }
    }
}

/// The maximum number of records that one call of [`push`](CountBatch::push) adds. Results that would need more records
/// are stored as plain numbers instead.
const MOST_RECORDS: u64 = 16;

/// The maximum number of moves with more games than 16 records can count. The largest collections have a few thousand
/// such moves, which are stored in a map.
const MOST_LARGE: usize = 1 << 18;

/// A batch of results of moves, which is added to a [`Tally`](super::Tally) at once. Its size depends on the number of
/// different moves, not on the number of games.
#[derive(PartialEq, Eq, Default, Debug)]
pub struct CountBatch {
    pub(super) records: Vec<CountRecord>,
    pub(super) large: Vec<(CountRecord, Wdl)>,
}

impl CountBatch {
    /// Adds the results of one move in a position, from the view of the side to move. `key` identifies the position,
    /// and `turn` is the side to move.
    #[inline]
    pub fn push(&mut self, key: u64, mv: BookMove, turn: Color, stats: Wdl) {
        // Nearly all counts fit into one record.
        if fits(stats) {
            self.records.push(CountRecord::new(key, mv, turn, stats));
        } else {
            self.push_many(key, mv, turn, stats);
        }
    }

    #[cold]
    fn push_many(&mut self, key: u64, mv: BookMove, turn: Color, stats: Wdl) {
        if CountRecord::records_for(stats) <= MOST_RECORDS {
            CountRecord::extend(&mut self.records, key, mv, turn, stats);
            return;
        }
        // An empty record lists the move among the moves of the position.
        let record = CountRecord::new(key, mv, turn, Wdl::default());
        self.records.push(record);
        self.large.push((record, stats));
    }
}

/// The results of moves with more games than 16 records can count, by position key and move. One record counts some
/// 32,000 games.
#[derive(Default, Debug)]
pub(super) struct LargeCounts(BTreeMap<(u64, u16), Wdl>);

impl LargeCounts {
    /// Returns an error if the number of moves exceeds [`MOST_LARGE`], which no real collection of games reaches. All
    /// these moves stay in memory, so their number must be limited. The error names the path `source`.
    pub(super) fn refuse_many(&self, source: &Path) -> Result<()> {
        if self.0.len() <= MOST_LARGE {
            return Ok(());
        }
        let problem = format!(
            "more than {MOST_LARGE} moves have over half a million games each, which is impossible: correct the counts"
        );
        Err(Error::too_large(source, problem))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the results of moves in `batch` that were stored as plain numbers, because more than 16 records would be
    /// needed for their games.
    pub(super) fn extend(&mut self, batch: &CountBatch) {
        for (record, stats) in &batch.large {
            let kind = (record.key(), record.book_move().0);
            *self.0.entry(kind).or_default() += *stats;
        }
    }

    /// Returns `true` if a move of a position has results in this map. `position` contains all records of the position,
    /// of which each names a move.
    pub(super) fn has_any(&self, position: &[CountRecord]) -> bool {
        let kind = |record: &CountRecord| (record.key(), record.book_move().0);
        !self.is_empty()
            && position
                .iter()
                .any(|record| self.0.contains_key(&kind(record)))
    }

    /// Adds the stored results of moves in the position with the key `key` to the elements of `moves` with the same
    /// moves.
    pub(super) fn add_to(&self, key: u64, moves: &mut [MoveCount]) {
        if self.is_empty() {
            return;
        }
        for count in moves {
            if let Some(more) = self.0.get(&(key, count.mv.0)) {
                count.stats += *more;
            }
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
            key: u64, mv: u16, black: bool, wins in 0..=MAX_WINS, draws in 0..=MAX_OTHER, losses in 0..=MAX_OTHER,
        ) {
            let stats = Wdl { wins, draws, losses };
            let turn = Color::from_white(!black);
            let record = CountRecord::new(key, BookMove(mv), turn, stats);
            prop_assert_eq!(record.key(), key);
            prop_assert_eq!(record.book_move(), BookMove(mv));
            prop_assert_eq!(record.turn(), turn);
            prop_assert_eq!(record.stats(), stats);
        }

        #[test]
        fn records_of_one_game_have_a_packed_form(key: u64, low: u64, result in 0..4u32) {
            let low = if result < 3 { low >> NUMBERS << NUMBERS | 1 << (16 * result) } else { low };
            let record = CountRecord::from_bits(u128::from(key) << 64 | u128::from(low));
            prop_assert_eq!(record.packed().is_some(), record.stats().games() == 1);
            if let Some(packed) = record.packed() {
                prop_assert_eq!(CountRecord::from_packed(record.shard(), packed), record);
            }
        }

        #[test]
        fn split_numbers_add_up(wins in 0..1u64 << 22, draws in 0..1u64 << 22, losses in 0..1u64 << 22) {
            let stats = Wdl { wins, draws, losses };
            let mut sum = Wdl::default();
            let mut records = 0;
            split(stats, |part| {
                sum += part;
                records += 1;
            });
            prop_assert_eq!(sum, stats);
            prop_assert_eq!(records, CountRecord::records_for(stats));
        }
    }

    #[test]
    fn a_batch_does_not_grow_with_the_games() {
        let mut batch = CountBatch::default();
        for wins in [1, 1 << 10, 1 << 20, 1 << 36, 1 << 60] {
            let stats = Wdl {
                wins,
                ..Wdl::default()
            };
            batch.push(7, BookMove(5), Color::White, stats);
        }
        assert!(batch.records.len() <= 5 * MOST_RECORDS as usize);
        assert_eq!(batch.large.len(), 3);
    }
}

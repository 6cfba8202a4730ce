//! Defines postings: 128-bit records, each of which states that a game reached a position. Sorting postings as integers
//! yields the order of the index.
//!
//! The index stores position keys as decimal text, so `10` precedes `9`. A posting contains the digits of the key,
//! padded on the right with zeros to 20 digits, and then the number of digits. Comparing two postings as integers
//! therefore compares their keys as text.
//!
//! | bits | meaning |
//! |---|---|
//! | 55-121 | the key times 10^(20 - digits) |
//! | 50-54 | the number of digits of the key |
//! | 18-49 | the id of the game |
//! | 2-17 | the move played, 0 for none or if moves are not recorded |
//! | 0-1 | the winner: 0 for neither side, 1 for White, 2 for Black |

use std::path::Path;

use shakmaty::Color;

use super::{
    entry_batches::{EntryBatch, ShardRange, WaitingStats, scan_groups, write_due},
    layout::{self, PositionStats},
};
use crate::{
    chess::position::BookMove,
    error::Result,
    storage::sort::{Dedup, Record, Sorted},
    task,
};

/// The maximum number of decimal digits that a 64-bit position key can have.
const MAX_KEY_DIGITS: u32 = 20;

/// The smallest padded position key, except for the padded key 0. A key is padded by appending zeros until it has 20
/// decimal digits. Comparing padded keys as numbers gives the same order as comparing the original keys as text.
const MIN_PADDED_KEY: u128 = 10_u128.pow(MAX_KEY_DIGITS - 1);

/// The number of 64-bit position keys that have 20 decimal digits without padding.
const KEYS_WITH_20_DIGITS: u128 = (1 << 64) - MIN_PADDED_KEY;

/// A 128-bit record of a game that reached a position, with the move that was played there and the winner of the game.
/// Postings are ordered by the decimal text of the position key, then by game id.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub(crate) struct Posting(u128);

impl Posting {
    /// Creates a posting of the game with the id `id`, in which the move `mv` was played in the position with the key
    /// `key`. `winner` is the side that won the game, or `None` if neither side won.
    #[inline]
    pub(crate) fn new(key: u64, id: u32, mv: BookMove, winner: Option<Color>) -> Posting {
        let digits = key.checked_ilog10().map_or(1, |log| log + 1);
        let aligned = u128::from(key) * u128::from(10_u64.pow(MAX_KEY_DIGITS - digits));
        let winner = match winner {
            None => 0,
            Some(Color::White) => 1,
            Some(Color::Black) => 2,
        };
        let low = u64::from(digits) << 50 | u64::from(id) << 18 | u64::from(mv.0) << 2 | winner;
        Posting(aligned << 55 | u128::from(low))
    }

    /// Returns a copy of this posting with the final id of its game. The games of a batch are first numbered from 0.
    /// `first_id`, which is added to the number, is the id of the first game of the batch in the index.
    #[inline]
    pub(crate) fn shifted_by(self, first_id: u32) -> Posting {
        Posting(self.0 + (u128::from(first_id) << 18))
    }

    /// Returns a value that identifies the position. The values of two postings are equal if and only if they belong to
    /// the same position.
    #[inline]
    pub(crate) fn position(self) -> u128 {
        self.0 >> 50
    }

    /// Returns the 64-bit hash key of the position.
    #[inline]
    pub(crate) fn key(self) -> u64 {
        let digits = (self.0 >> 50) as u32 & 31;
        let aligned = self.0 >> 55;
        match MAX_KEY_DIGITS - digits {
            0 => aligned as u64,
            // The most frequent case, with a constant divisor.
            1 => (aligned / 10) as u64,
            shift => (aligned / u128::from(10_u64.pow(shift))) as u64,
        }
    }

    /// Returns the id of the game.
    #[inline]
    pub(crate) fn id(self) -> u32 {
        (self.0 >> 18) as u32
    }

    /// Returns the move that was played in the position. Returns [`BookMove::NONE`] if the game ended there, or if the
    /// posting does not record the move.
    #[inline]
    pub(crate) fn book_move(self) -> BookMove {
        BookMove((self.0 >> 2) as u16)
    }

    /// Returns the side that won the game, or `None` if neither side won.
    #[inline]
    pub(crate) fn winner(self) -> Option<Color> {
        match self.0 & 3 {
            1 => Some(Color::White),
            2 => Some(Color::Black),
            _ => None,
        }
    }

    /// Returns the approximate share of all possible position keys that come before the key of this posting, if keys
    /// are sorted as decimal text. The share is scaled to the range of `u64`, so 2^63 means half of the keys.
    ///
    /// Records are divided into shards by this share. Dividing them by the first decimal digits would result in shards
    /// of very different sizes, because about half of all keys begin with the digit 1.
    #[inline]
    fn share_before(self) -> u64 {
        let above = (self.0 >> 55).saturating_sub(MIN_PADDED_KEY);
        // Adds to the number of 20-digit keys about a ninth of `above`, for all shorter keys together.
        let before = above.min(KEYS_WITH_20_DIGITS) + ((above * 7281) >> 16);
        u64::try_from(before).unwrap_or(u64::MAX)
    }
}

impl Record for Posting {
    type Fold = Dedup<Posting>;
    type Bytes = [u8; 16];

    #[inline]
    fn from_bytes(bytes: [u8; 16]) -> Posting {
        Posting(u128::from_le_bytes(bytes))
    }

    #[inline]
    fn to_bytes(self) -> [u8; 16] {
        self.0.to_le_bytes()
    }

    #[inline]
    fn rank(self) -> u64 {
        self.share_before()
    }
}

/// The length in bytes above which a position's list of games is spilled from memory to a temporary file.
const MAX_LIST_IN_MEMORY: usize = 4 << 20;

/// Creates the index entries of all positions whose first posting is in `range`. `postings` contains the sorted
/// postings of all positions. A posting is a record of a game that reached a position.
///
/// If `with_stats` is `true`, also creates the statistics of these positions. Long lists of games are spilled to
/// `temp_dir`.
///
/// # Errors
///
/// Returns an error if a temporary file cannot be read or written.
pub(crate) fn position_entries(
    range: &ShardRange,
    postings: &Sorted<Posting>,
    with_stats: bool,
    temp_dir: &Path,
) -> Result<EntryBatch> {
    task::fault("write positions");
    let mut maker = EntryMaker::new(with_stats, temp_dir);
    scan_groups(postings, range, Posting::position, |posting| {
        if !maker.is_at(posting) {
            maker.begin(posting)?;
        }
        maker.add(posting)
    })?;
    maker.end()?;
    maker.batch.steps = maker.batch.postings;
    Ok(maker.batch)
}

/// A builder that converts sorted postings to index entries. A posting is a record of a game that reached a position.
struct EntryMaker<'a> {
    with_stats: bool,
    temp_dir: &'a Path,
    batch: EntryBatch,
    /// The current position, or `None` before the first one.
    position: Option<u128>,
    /// The key of the current position.
    key: u64,
    /// The key in decimal.
    digits: Vec<u8>,
    stats: PositionStats,
    /// The id of the game of the last posting, or `None` if the current position has no posting yet.
    last_id: Option<u32>,
    /// The offset in the buffer at which the value of the current entry begins.
    value_start: usize,
}

impl EntryMaker<'_> {
    /// Creates a builder without entries. If `with_stats` is `true`, the builder also creates entries with the
    /// statistics of positions. Long lists of games are spilled to `temp_dir`.
    fn new(with_stats: bool, temp_dir: &Path) -> EntryMaker<'_> {
        EntryMaker {
            with_stats,
            temp_dir,
            batch: EntryBatch::default(),
            position: None,
            key: 0,
            digits: Vec::new(),
            stats: PositionStats::default(),
            last_id: None,
            value_start: 0,
        }
    }

    /// Returns `true` if `posting` belongs to the position whose entry is being built. A posting is a record of a game
    /// that reached a position.
    #[inline]
    fn is_at(&self, posting: Posting) -> bool {
        self.position == Some(posting.position())
    }

    /// Ends the entry of the current position, if there is one. Then makes the position of `posting` the current
    /// position, and begins the entry that lists its games. The game of `posting` is not added to this list yet.
    fn begin(&mut self, posting: Posting) -> Result<()> {
        self.end()?;
        self.position = Some(posting.position());
        self.key = posting.key();
        self.digits.clear();
        layout::put_number(&mut self.digits, self.key);
        let batch = &mut self.batch;
        while write_due(&mut batch.waiting, &self.digits, &mut batch.entries) {}
        self.last_id = None;
        let bytes = self.batch.entries.begin(&self.digits);
        self.value_start = bytes.len();
        Ok(())
    }

    /// Adds the game of `posting` to the current position's list of games and statistics. The posting must belong to
    /// the current position. A game that reached the position several times is counted once.
    #[inline]
    fn add(&mut self, posting: Posting) -> Result<()> {
        let id = posting.id();
        if self.last_id != Some(id) {
            self.last_id = Some(id);
            self.add_id(id)?;
            self.stats.games += 1;
            match posting.winner() {
                Some(Color::White) => self.stats.white_score += 1,
                Some(Color::Black) => self.stats.white_score -= 1,
                None => self.stats.draws += 1,
            }
        }
        if self.with_stats {
            let mv = posting.book_move();
            // A position has few different moves, so a linear search is fastest.
            if mv != BookMove::NONE && !self.stats.moves.contains(&mv) {
                self.stats.moves.push(mv);
            }
        }
        Ok(())
    }

    /// Appends a game id to the current position's list of games. If the list is longer than [`MAX_LIST_IN_MEMORY`],
    /// moves it to a temporary file.
    #[inline]
    fn add_id(&mut self, id: u32) -> Result<()> {
        let bytes = self.batch.entries.open_bytes();
        layout::write_id(bytes, id);
        if bytes.len() - self.value_start > MAX_LIST_IN_MEMORY {
            return self.batch.entries.spill(self.digits.len(), self.temp_dir);
        }
        Ok(())
    }

    /// Ends the entry of the current position. If the index will contain statistics, also keeps the statistics of the
    /// position to write them later. Does nothing if no entry was begun.
    fn end(&mut self) -> Result<()> {
        if self.position.is_none() {
            return Ok(());
        }
        self.batch.positions += 1;
        self.batch.postings += self.stats.games;
        let entries = &mut self.batch.entries;
        entries.end_spilled(self.digits.len(), self.temp_dir)?;
        let mut stats = std::mem::take(&mut self.stats);
        if self.with_stats {
            stats.moves.sort_unstable();
            self.batch.waiting.push(WaitingStats {
                key: self.key,
                stats,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::storage::sort::SHARDS;

    fn keys() -> impl Strategy<Value = u64> {
        // Keys of all lengths, many with a common prefix.
        (any::<u64>(), 0..20u32).prop_map(|(key, digits)| key / 10_u64.pow(digits))
    }

    proptest! {
        #[test]
        fn what_is_packed_comes_back(key in keys(), id in 0..u32::MAX - 9, mv: u16) {
            for winner in [Some(Color::White), Some(Color::Black), None] {
                let posting = Posting::new(key, id, BookMove(mv), winner).shifted_by(9);
                prop_assert_eq!(posting.key(), key);
                prop_assert_eq!(posting.id(), id + 9);
                prop_assert_eq!(posting.book_move(), BookMove(mv));
                prop_assert_eq!(posting.winner(), winner);
            }
        }

        #[test]
        fn postings_are_in_the_order_of_the_text(mut keys in proptest::collection::vec(keys(), 2..50)) {
            let pack = |key: &u64| Posting::new(*key, 0, BookMove::NONE, None);
            keys.sort_by_key(|key| key.to_string());
            prop_assert!(keys.is_sorted_by_key(pack));
            let place = |key: &u64| (pack(key).shard(), pack(key).bucket(11));
            prop_assert!(keys.is_sorted_by_key(place));
            prop_assert!(keys.iter().all(|key| place(key).0 < SHARDS));
        }
    }

    #[test]
    fn shards_are_filled_evenly() {
        let mut sizes = [0; SHARDS];
        for i in 0..1_000_000u64 {
            let key = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            sizes[Posting::new(key, 0, BookMove::NONE, None).shard()] += 1;
        }
        let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
        assert!(*least > 2_500 && *most < 6_000, "{least} to {most}");
    }
}

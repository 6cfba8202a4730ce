//! A record of the results of a move: the wins, draws and losses, together with the position and the move. Batches of
//! records are added to a tally.
//!
//! A record has 128 bits:
//!
//! | bits | meaning |
//! |---|---|
//! | 64-127 | the key of the position |
//! | 48-63 | the move |
//! | 47 | whether Black is to move |
//! | 32-46 | wins |
//! | 16-31 | draws |
//! | 0-15 | losses |
//!
//! The number of games is not limited: results that do not fit into one record are split into several records with the
//! same key and move, which are added up later.
//!
//! [`MoveFilter`] selects moves by the number of their games and by their results.

use std::{collections::BTreeMap, path::Path};

use shakmaty::Color;

use crate::{
    chess::position::BookMove,
    error::{Error, Result},
    games::results::Wdl,
    provenance::{option_text, valued},
    storage::sort::{Fold, PACKED_SIZE, Record, SHARDS},
};

/// A move in a position, with the results of the games in which it was played.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct MoveCount {
    /// The move.
    pub mv: BookMove,
    /// The results of the games in which the move was played.
    pub stats: Wdl,
}

const MAX_WINS: u64 = (1 << 15) - 1;
const MAX_OTHER: u64 = (1 << 16) - 1;

/// A bit mask that selects the position key, the move and the side to move in a record.
const SAME_MOVE_MASK: u128 = !0 << 47;

/// The number of low bits of a record that store the wins, draws and losses.
const RESULT_BITS: u32 = 47;

/// The number of bits of a position key that a packed record stores. The other eight bits of the key select one of the
/// 256 shards, so they need not be stored.
const KEY_BITS: u32 = u64::BITS - SHARDS.ilog2();
const KEY_MASK: u64 = (1 << KEY_BITS) - 1;

/// A 128-bit record of the wins, draws and losses of one move in one position. Records are ordered by position key,
/// then by move.
///
/// ```
/// use polybook::{position::BookMove, counts::CountRecord, results::Wdl};
/// use shakmaty::Color;
///
/// let won = Wdl { wins: 1, draws: 0, losses: 0 };
/// let record = CountRecord::new(7, BookMove(796), Color::White, won);
/// assert_eq!((record.key(), record.stats()), (7, won));
/// ```
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct CountRecord(pub(super) u128);

impl CountRecord {
    /// Creates a record of the results of one move. `key` identifies the position, and `turn` is the side to move.
    ///
    /// The results must not exceed 32,767 wins, 65,535 draws and 65,535 losses. With larger numbers, the record is
    /// invalid. Use [`CountBatch::push`](super::CountBatch::push) for results of any size.
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

    /// Returns how many records are needed to store `stats`, the results of one move.
    pub(super) fn records_for(stats: Wdl) -> u64 {
        let wins = stats.wins.div_ceil(MAX_WINS);
        let others = stats.draws.max(stats.losses).div_ceil(MAX_OTHER);
        wins.max(others).max(1)
    }

    /// Appends the results of one move to `records`, in as many records as necessary. `key` identifies the position,
    /// and `turn` is the side to move. `stats` contains the results from the view of that side.
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

    /// Returns the move that was played.
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

impl From<CountRecord> for MoveCount {
    #[inline]
    fn from(record: CountRecord) -> MoveCount {
        MoveCount {
            mv: record.book_move(),
            stats: record.stats(),
        }
    }
}

/// Returns `true` if `stats`, the results of one move, can be stored in one record.
#[inline]
fn fits(stats: Wdl) -> bool {
    stats.wins <= MAX_WINS && stats.draws <= MAX_OTHER && stats.losses <= MAX_OTHER
}

/// Splits the results `stats` into parts, each of which can be stored in one record. Calls `emit` with each part.
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
    type Bytes = [u8; 16];

    #[inline]
    fn from_bytes(bytes: [u8; 16]) -> CountRecord {
        CountRecord(u128::from_le_bytes(bytes))
    }

    #[inline]
    fn to_bytes(self) -> [u8; 16] {
        self.0.to_le_bytes()
    }

    /// Returns the position key. Its first byte selects the shard (one of the 256 parts of the store) that holds the
    /// record. Keys are hashes, so all shards get about the same number of records.
    #[inline]
    fn rank(self) -> u64 {
        self.key()
    }

    /// Encodes a record of exactly one game in fewer bytes. Returns `None` for any other record.
    ///
    /// The encoded record contains the position key without its first byte, the result, the side to move, and the
    /// move. The result is 0 for a loss, 1 for a draw and 2 for a win.
    #[inline]
    fn packed(self) -> Option<[u8; PACKED_SIZE]> {
        let low = self.0 as u64;
        let numbers = low & ((1 << RESULT_BITS) - 1);
        let result = match numbers {
            1 => 0,
            0x1_0000 => 1,
            0x1_0000_0000 => 2,
            _ => return None,
        };
        let short = low >> RESULT_BITS << 2 | result;
        let first = self.key() & KEY_MASK | short << KEY_BITS;
        let last = (short >> (u64::BITS - KEY_BITS)) as u16;
        let bytes = u128::from(first) | u128::from(last) << u64::BITS;
        bytes.to_le_bytes().first_chunk().copied()
    }

    #[inline]
    fn from_packed(shard: usize, packed: [u8; PACKED_SIZE]) -> CountRecord {
        let [first @ .., a, b] = packed;
        let first = u64::from_le_bytes(first);
        let last = u64::from(u16::from_le_bytes([a, b]));
        let key = first & KEY_MASK | (shard as u64) << KEY_BITS;
        let short = first >> KEY_BITS | last << (u64::BITS - KEY_BITS);
        let low = short >> 2 << RESULT_BITS | 1 << (16 * (short & 3));
        CountRecord(u128::from(key) << 64 | u128::from(low))
    }
}

/// A [`Fold`] that adds up the results of sorted records of the same move in the same position.
#[derive(Clone, Default, Debug)]
pub struct SumUp {
    /// The key, move and side that the current records share, and the sum of their results. It is `None` before the
    /// first record.
    open: Option<(u128, Wdl)>,
}

impl Fold for SumUp {
    type Record = CountRecord;

    // This function is called for every record that is sorted or merged, so it must be inlined.
    #[inline(always)]
    fn take(&mut self, record: CountRecord, out: &mut impl FnMut(CountRecord)) {
        let kind = record.0 & SAME_MOVE_MASK;
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

/// The maximum number of records that one call of [`push`](CountBatch::push) adds to a batch. Results that need more
/// records are stored in a separate list, which takes less memory.
const MAX_RECORDS_PER_PUSH: u64 = 16;

/// The maximum number of moves in [`LargeCounts`], a map that is held in memory. The map contains only moves with more
/// than about half a million games, whose results do not fit into [`MAX_RECORDS_PER_PUSH`] records. The largest
/// collections of games have a few thousand such moves.
const MAX_LARGE_RESULTS: usize = 1 << 18;

/// A batch of results of moves, which can be added to a [`Tally`](super::Tally) in one call. Its size depends on the
/// number of moves, not on the number of games in which they were played.
#[derive(PartialEq, Eq, Default, Debug)]
pub struct CountBatch {
    pub(super) records: Vec<CountRecord>,
    pub(super) large: Vec<(CountRecord, Wdl)>,
}

impl CountBatch {
    /// Adds the results of one move to the batch. `key` identifies the position, and `turn` is the side to move.
    /// `stats` contains the results from the view of that side.
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
        if CountRecord::records_for(stats) <= MAX_RECORDS_PER_PUSH {
            CountRecord::extend(&mut self.records, key, mv, turn, stats);
            return;
        }
        // The results are stored separately. A record without games lists the move among the moves of the position.
        let record = CountRecord::new(key, mv, turn, Wdl::default());
        self.records.push(record);
        self.large.push((record, stats));
    }
}

/// A map from a position key and a move to the results of the move. The map contains only the most frequent moves,
/// whose results do not fit into a [`CountBatch`]. A batch stores at most 16 records for a move, and each record can
/// count about 32,000 games.
#[derive(Default, Debug)]
pub(super) struct LargeCounts(BTreeMap<(u64, u16), Wdl>);

impl LargeCounts {
    /// Checks that the map contains at most [`MAX_LARGE_RESULTS`] moves, because it is held in memory. No real
    /// collection of games exceeds this limit. The error names `source`, the path of the counts directory that was
    /// read.
    pub(super) fn check_count(&self, source: &Path) -> Result<()> {
        if self.0.len() <= MAX_LARGE_RESULTS {
            return Ok(());
        }
        let problem = format!(
            "more than {MAX_LARGE_RESULTS} moves have over half a million games each, which is impossible: correct the counts"
        );
        Err(Error::too_large(source, problem))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds to this map the results in `batch` that do not fit into [`MAX_RECORDS_PER_PUSH`] records. The batch stores
    /// these results in a separate list.
    pub(super) fn extend(&mut self, batch: &CountBatch) {
        for (record, stats) in &batch.large {
            let kind = (record.key(), record.book_move().0);
            *self.0.entry(kind).or_default() += *stats;
        }
    }

    /// Returns `true` if the map contains results of any move of a position. `position` contains all records of this
    /// position.
    pub(super) fn has_any(&self, position: &[CountRecord]) -> bool {
        let kind = |record: &CountRecord| (record.key(), record.book_move().0);
        !self.is_empty()
            && position
                .iter()
                .any(|record| self.0.contains_key(&kind(record)))
    }

    /// Adds the results in this map to those in `moves`, which must contain all moves of the position with the key
    /// `key`.
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

/// A filter that selects moves by their score and by the number of games in which they were played. By default, the
/// filter selects moves with at least 3 games, as the program Polyglot does.
///
/// ```
/// use polybook::{counts::MoveFilter, results::Wdl};
/// use shakmaty::Color;
///
/// let filter = MoveFilter::default();
/// let often = Wdl { wins: 2, draws: 1, losses: 4 };
/// assert!(filter.selects(Color::White, often));
/// let seldom = Wdl { wins: 2, draws: 0, losses: 0 };
/// assert!(!filter.selects(Color::White, seldom));
/// assert!(MoveFilter::every_move().selects(Color::White, seldom));
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct MoveFilter {
    /// The minimum number of times that a move must have been played. A move can be played several times in one game if
    /// the game repeats a position. Default: 3.
    pub min_game: u64,
    /// The minimum score of a move for the side that plays it, in percent from 0 to 100. Default: 0.
    pub min_score: f64,
    /// The side whose moves are selected, or `None` for both sides, which is the default.
    pub only: Option<Color>,
}

impl Default for MoveFilter {
    fn default() -> MoveFilter {
        MoveFilter {
            min_game: 3,
            min_score: 0.0,
            only: None,
        }
    }
}

impl MoveFilter {
    /// Creates a filter that selects every move that was played at least once.
    pub fn every_move() -> MoveFilter {
        MoveFilter {
            min_game: 1,
            ..MoveFilter::default()
        }
    }

    /// Returns `true` if the filter selects a move by the side `turn` with the results `stats`, which are from the view
    /// of this side.
    #[inline]
    pub fn selects(&self, turn: Color, stats: Wdl) -> bool {
        stats.games() >= self.min_game
            && self.only.is_none_or(|only| only == turn)
            && (self.min_score <= 0.0 || stats.score() >= self.min_score / 100.0)
    }

    /// Restricts the filter to moves that `other` also selects. If the filters are limited to different sides, this
    /// filter keeps its own side.
    pub fn narrow(&mut self, other: &MoveFilter) {
        self.min_game = self.min_game.max(other.min_game);
        self.min_score = self.min_score.max(other.min_score);
        self.only = self.only.or(other.only);
    }

    /// Extends the filter, so that it selects every move that `self` or `other` selects. Each condition is relaxed
    /// separately, so the result may also select moves that neither filter selected.
    pub fn widen(&mut self, other: &MoveFilter) {
        self.min_game = self.min_game.min(other.min_game);
        self.min_score = self.min_score.min(other.min_score);
        self.only = self.only.filter(|_| self.only == other.only);
    }

    /// Returns the command-line options that set this filter. Unlike [`option_text`](MoveFilter::option_text), returns
    /// `--min-game 3` for the default filter. Returns `None` for a filter that selects every move.
    pub fn pruning_text(&self) -> Option<String> {
        if *self == MoveFilter::every_move() {
            return None;
        }
        let options = self.option_text();
        Some(if options.is_empty() {
            format!("--min-game {}", self.min_game)
        } else {
            options
        })
    }

    /// Returns the command-line options that set this filter, such as `--min-score 55`. Leaves out options with their
    /// default values, so the result is empty for the default filter. Books and databases store this text, so it is
    /// part of their formats.
    pub fn option_text(&self) -> String {
        let MoveFilter {
            min_game,
            min_score,
            only,
        } = self;
        let is_least = *min_game == MoveFilter::default().min_game;
        option_text([
            valued("min-game", (!is_least).then_some(min_game)),
            valued("min-score", (*min_score > 0.0).then_some(min_score)),
            only.map(|side| format!("--only-{side}")),
        ])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_number_of_frequent_moves_is_limited() {
        let results = Wdl {
            wins: 1 << 20,
            ..Wdl::default()
        };
        let moves = (0..=MAX_LARGE_RESULTS as u64).map(|key| ((key, 1), results));
        let mut counts = LargeCounts(moves.collect());
        let err = counts.check_count("counts".as_ref()).unwrap_err();
        let advice = "correct the counts";
        assert!(err.to_string().contains(advice), "{err}");
        // Correct counts have fewer of these moves.
        counts.0.pop_last();
        counts.check_count("counts".as_ref()).unwrap();
    }

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
            let low = if result < 3 { low >> RESULT_BITS << RESULT_BITS | 1 << (16 * result) } else { low };
            let record = CountRecord(u128::from(key) << 64 | u128::from(low));
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
        assert!(batch.records.len() <= 5 * MAX_RECORDS_PER_PUSH as usize);
        assert_eq!(batch.large.len(), 3);
    }

    const STATS: Wdl = Wdl {
        wins: 3,
        draws: 0,
        losses: 2,
    };

    #[test]
    fn bounds_are_met_exactly() {
        let mut filter = MoveFilter {
            min_score: 60.0,
            ..MoveFilter::default()
        };
        assert!(filter.selects(Color::White, STATS));
        filter.min_score = 60.1;
        assert!(!filter.selects(Color::White, STATS));
        filter.min_score = 0.0;
        filter.min_game = 5;
        assert!(filter.selects(Color::White, STATS));
        filter.min_game = 6;
        assert!(!filter.selects(Color::White, STATS));
    }

    #[test]
    fn side_filters_keep_one_side() {
        let filter = MoveFilter {
            only: Some(Color::Black),
            ..MoveFilter::default()
        };
        assert!(filter.selects(Color::Black, STATS));
        assert!(!filter.selects(Color::White, STATS));
    }

    #[test]
    fn narrowing_takes_the_stricter_bound() {
        let mut filter = MoveFilter {
            min_game: 2,
            min_score: 50.0,
            only: None,
        };
        filter.narrow(&MoveFilter {
            min_game: 7,
            min_score: 40.0,
            only: Some(Color::White),
        });
        assert_eq!(
            filter.option_text(),
            "--min-game 7 --min-score 50 --only-white"
        );
        assert_eq!(MoveFilter::default().option_text(), "");
    }
}

//! The statistics of a position, which `make-book --index-stats` adds to an index.

use super::put_number;
use crate::{index::entries::Entries, position::BookMove};

/// The statistics of a position: the number of games, the results and the moves. An index contains them only if it was
/// made with `--index-stats`.
///
/// Unfinished games count as draws, unless they were excluded when the index was made. The key of each entry is the
/// decimal position key with a suffix:
///
/// | key | value |
/// |---|---|
/// | `<key>_draws` | the number of drawn games |
/// | `<key>_freq` | the number of games that reached the position |
/// | `<key>_moves` | the moves that were played in the position as 16-bit Polyglot numbers, ascending, each followed by a comma |
/// | `<key>_white_score` | the number of White's wins minus the number of Black's wins |
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct PositionStats {
    /// The number of games that reached the position.
    pub games: u64,
    /// The number of White's wins minus the number of Black's wins.
    pub white_score: i64,
    /// The number of drawn games.
    pub draws: u64,
    /// The moves that were played in the position, deduplicated and sorted by number.
    pub moves: Vec<BookMove>,
}

const DRAWS: &[u8] = b"_draws";
const FREQ: &[u8] = b"_freq";
const MOVES: &[u8] = b"_moves";
const WHITE_SCORE: &[u8] = b"_white_score";

impl PositionStats {
    /// The suffixes of the four LevelDB keys that hold the statistics of a position, in ascending order. A position
    /// has either all four entries or none.
    pub(in crate::index) const NAMES: [&[u8]; 4] = [DRAWS, FREQ, MOVES, WHITE_SCORE];

    /// Returns the number of games that White won. Returns 0 if the statistics are inconsistent and the number would
    /// be negative.
    pub fn white_wins(&self) -> u64 {
        self.decided(self.white_score)
    }

    /// Returns the number of games that Black won. Returns 0 if the statistics are inconsistent and the number would
    /// be negative.
    pub fn black_wins(&self) -> u64 {
        self.decided(self.white_score.saturating_neg())
    }

    fn decided(&self, score: i64) -> u64 {
        let decided = i128::from(self.games) - i128::from(self.draws);
        u64::try_from((decided + i128::from(score)) / 2).unwrap_or(0)
    }

    /// Parses `value`, which contains one statistic of a position, and stores the statistic in `self`. `name` is the
    /// suffix of the statistic's LevelDB key, such as `_draws`. Returns `None` if the value is malformed or the suffix
    /// is unknown.
    pub(in crate::index) fn read(&mut self, name: &[u8], value: &[u8]) -> Option<()> {
        match name {
            DRAWS => self.draws = super::parse_number(value)?,
            FREQ => self.games = super::parse_number(value)?,
            MOVES => self.moves = parse_moves(value)?,
            WHITE_SCORE => self.white_score = super::parse_number(value)?,
            _ => return None,
        }
        Some(())
    }

    /// Returns `true` if the statistics are consistent: White's score (wins minus losses) is possible with the numbers
    /// of games and draws, and the moves are sorted and contain no duplicates.
    pub(in crate::index) fn is_possible(&self) -> bool {
        let decided = i128::from(self.games) - i128::from(self.draws);
        let score = i128::from(self.white_score);
        score.abs() <= decided
            && (decided + score) % 2 == 0
            && self.moves.is_sorted_by(|a, b| a < b)
    }

    /// Appends the four entries of a position's statistics to `out`, sorted by key: draws, games, moves and White's
    /// score. Each key begins with `number`, the position key in decimal digits.
    pub(in crate::index) fn write(&self, number: &[u8], out: &mut Entries) {
        for name in PositionStats::NAMES {
            out.begin(number);
            let value = out.begin(name);
            match name {
                DRAWS => put_number(value, self.draws),
                FREQ => put_number(value, self.games),
                MOVES => put_moves(value, &self.moves),
                _ => put_number(value, self.white_score),
            }
            out.end(number.len() + name.len());
        }
    }
}

fn put_moves(value: &mut Vec<u8>, moves: &[BookMove]) {
    for mv in moves {
        put_number(value, mv.0);
        value.push(b',');
    }
}

/// Combines the values that several indexes store for one statistic of a position. Numbers are added up, and lists of
/// moves are merged. `key` is the LevelDB key of the statistic. Returns `None` if `key` does not end with the name of a
/// statistic, or if a value is malformed.
pub(in crate::index) fn joined_stats(key: &[u8], values: &[&[u8]]) -> Option<Vec<u8>> {
    let mut joined = Vec::new();
    if key.ends_with(MOVES) {
        let mut moves = Vec::new();
        for value in values {
            moves.extend(parse_moves(value)?);
        }
        moves.sort_unstable();
        moves.dedup();
        put_moves(&mut joined, &moves);
    } else if [DRAWS, FREQ, WHITE_SCORE]
        .iter()
        .any(|name| key.ends_with(name))
    {
        let mut sum = 0i64;
        for value in values {
            sum = sum.checked_add(super::parse_number(value)?)?;
        }
        put_number(&mut joined, sum);
    } else {
        return None;
    }
    Some(joined)
}

/// Parses a list of moves, in which each move is written as a 16-bit number in decimal digits and a comma. Returns
/// `None` if the list is malformed.
fn parse_moves(mut value: &[u8]) -> Option<Vec<BookMove>> {
    let mut moves = Vec::new();
    while !value.is_empty() {
        let comma = memchr::memchr(b',', value)?;
        moves.push(BookMove(super::parse_number(&value[..comma])?));
        value = &value[comma + 1..];
    }
    Some(moves)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::index::entries::Value;

    /// Returns the encoded entries of a position.
    fn written(stats: &PositionStats, key: u64) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut entries = Entries::default();
        stats.write(key.to_string().as_bytes(), &mut entries);
        let value = |number| match entries.value(number) {
            Value::Held(value) => value.to_vec(),
            Value::Spilled(_) => unreachable!("statistics are short"),
        };
        (0..entries.len())
            .map(|number| (entries.key(number).to_vec(), value(number)))
            .collect()
    }

    #[test]
    fn results_follow_from_the_statistics() {
        let stats = PositionStats {
            games: 10,
            white_score: -2,
            draws: 4,
            moves: vec![],
        };
        assert_eq!((stats.white_wins(), stats.black_wins()), (2, 4));
        let hostile = PositionStats {
            games: 1,
            white_score: i64::MIN,
            draws: 9,
            moves: vec![],
        };
        assert_eq!(hostile.white_wins(), 0);
    }

    #[test]
    fn malformed_moves() {
        for value in ["7", "7,,", ",", "x,", "65536,", "-1,"] {
            assert_eq!(parse_moves(value.as_bytes()), None, "{value}");
        }
        assert_eq!(parse_moves(b""), Some(vec![]));
    }

    proptest! {
        #[test]
        fn statistics_come_back(games: u64, white_score: i64, draws: u64, moves in proptest::collection::vec(any::<u16>(), 0..9), key: u64) {
            let stats = PositionStats { games, white_score, draws, moves: moves.into_iter().map(BookMove).collect() };
            let entries = written(&stats, key);
            prop_assert!(entries.is_sorted());
            let names: Vec<_> = entries.iter().map(|entry| entry.0.clone()).collect();
            let number = key.to_string();
            let keys = PositionStats::NAMES.map(|name| [number.as_bytes(), name].concat());
            prop_assert_eq!(names, keys);
            prop_assert_eq!(super::super::parse_number(&entries[0].1), Some(draws));
            prop_assert_eq!(super::super::parse_number(&entries[1].1), Some(games));
            prop_assert_eq!(parse_moves(&entries[2].1), Some(stats.moves));
            prop_assert_eq!(super::super::parse_number(&entries[3].1), Some(white_score));
        }

        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>) {
            let _ = parse_moves(&bytes);
        }
    }
}

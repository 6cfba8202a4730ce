//! Scores of positions: centipawns, or a mate.

use std::fmt;

use serde::{Serialize, Serializer, ser::SerializeMap};
use shakmaty::Color;

/// A number of centipawns or of moves to mate, seen from White. Scores that are better for White are greater: a mate by
/// White is greater than any number of centipawns, and a shorter mate is greater than a longer one.
///
/// A score prints as people write it: `+0.35`, `-1.20`, `0.00`, `#3`, `#-3`.
///
/// ```
/// use polybook::evals::Score;
/// let mate = Score::mate(3).expect("it is not 0");
/// assert!(mate > Score::centipawns(900) && mate < Score::mate(2).expect("it is not 0"));
/// assert_eq!(Score::centipawns(-120).to_string(), "-1.20");
/// ```
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Score(i16);

/// The maximum number of centipawns. Greater codes are mates.
const MOST: i16 = 32000;

/// The code of a mate in one, plus one.
const MATE: i32 = 1 << 15;

/// The maximum number of moves to a mate.
const LONGEST: i32 = MATE - 1 - MOST as i32;

impl Score {
    /// Creates a score of centipawns, limited to 32,000 for either side.
    pub fn centipawns(centipawns: i64) -> Score {
        Score(centipawns.clamp((-MOST).into(), MOST.into()) as i16)
    }

    /// Creates the score of a mate by White in `moves` moves, or by Black if `moves` is negative, limited to 767 moves.
    /// Returns `None` for 0, because only the position says who is mated.
    pub fn mate(moves: i64) -> Option<Score> {
        let most = i64::from(LONGEST);
        let code = MATE - moves.clamp(-most, most).abs() as i32;
        (moves != 0).then_some(Score((code * moves.signum() as i32) as i16))
    }

    /// Returns the centipawns, or `None` for a mate.
    pub fn as_centipawns(self) -> Option<i16> {
        (self.0.abs() <= MOST).then_some(self.0)
    }

    /// Returns the moves to mate, negative if Black mates, or `None` for centipawns.
    pub fn as_mate(self) -> Option<i16> {
        let moves = (MATE - i32::from(self.0).abs()) as i16;
        (self.0.abs() > MOST).then_some(moves * self.0.signum())
    }

    /// Converts a score seen from White to one seen from `side`, or the other way round.
    pub fn seen_from(self, side: Color) -> Score {
        side.fold_wb(self, Score(-self.0))
    }

    /// Returns the number that a store has for this score: centipawns from -32,000 to 32,000, 32,768 - N if White mates in
    /// N moves, or N - 32,768 if Black does. Codes have the order of scores.
    pub fn to_code(self) -> i16 {
        self.0
    }

    /// Returns the score of a number of a store, or `None` if no score has that number.
    pub(super) fn from_code(code: i16) -> Option<Score> {
        (code != i16::MIN).then_some(Score(code))
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(moves) = self.as_mate() {
            return write!(f, "#{moves}");
        }
        let sign = match self.0.signum() {
            1 => "+",
            -1 => "-",
            _ => "",
        };
        let centipawns = self.0.unsigned_abs();
        write!(f, "{sign}{}.{:02}", centipawns / 100, centipawns % 100)
    }
}

/// Serializes as `{"cp": 35}` or `{"mate": -3}`, as Lichess does.
impl Serialize for Score {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        match self.as_mate() {
            Some(moves) => map.serialize_entry("mate", &moves)?,
            None => map.serialize_entry("cp", &self.0)?,
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn scores_are_printed_and_ordered() {
        let ascending = [
            Score::mate(-1).unwrap(),
            Score::mate(-767).unwrap(),
            Score::centipawns(-32_000),
            Score::centipawns(-5),
            Score::centipawns(0),
            Score::centipawns(135),
            Score::mate(12).unwrap(),
            Score::mate(1).unwrap(),
        ];
        assert!(ascending.is_sorted());
        let texts = ascending.map(|score| score.to_string());
        let expected = [
            "#-1", "#-767", "-320.00", "-0.05", "0.00", "+1.35", "#12", "#1",
        ];
        assert_eq!(texts, expected);
        let json = serde_json::to_string(&ascending[3..7]).unwrap();
        assert_eq!(json, r#"[{"cp":-5},{"cp":0},{"cp":135},{"mate":12}]"#);
        assert_eq!(Score::mate(0), None);
    }

    proptest! {
        #[test]
        fn a_score_is_centipawns_or_a_mate(code in -i16::MAX..=i16::MAX) {
            let score = Score::from_code(code).unwrap();
            let again = match (score.as_centipawns(), score.as_mate()) {
                (Some(centipawns), None) => Score::centipawns(centipawns.into()),
                (None, Some(moves)) => Score::mate(moves.into()).unwrap(),
                both => panic!("{both:?}"),
            };
            prop_assert_eq!(again, score);
            prop_assert_eq!(score.seen_from(Color::Black).seen_from(Color::Black), score);
        }
    }
}

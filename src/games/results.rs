//! The results of games as numbers, by color or from the view of a side or player, and the means of other numbers such
//! as ratings.

use std::ops::{Add, AddAssign};

use serde::{Serialize, Serializer};
use shakmaty::Color;

use crate::{
    games::pgn::{GameResult, HIGHEST_RATING, RatingGroup},
    json::is_zero,
};

/// The numbers of games with each result.
///
/// An unfinished game is not counted as a draw, with two exceptions: in the form that Lichess's explorer uses, and if
/// the results of a counts directory are added to those of games. A counts directory contains no unfinished games,
/// because they were counted as draws or left out when it was made.
///
/// ```
/// use polybook::{pgn::GameResult, results::{Results, Wdl}};
/// use shakmaty::Color;
///
/// let mut results = Results::default();
/// results.add(GameResult::BlackWins);
/// results.add(GameResult::Unknown);
/// assert_eq!((results.games(), results.finished()), (2, 1));
/// assert_eq!(results.for_side(Color::Black), Wdl { wins: 1, draws: 0, losses: 0 });
/// ```
#[derive(Copy, Clone, PartialEq, Eq, Hash, Default, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(into = "AllResults")]
pub struct Results {
    /// The number of games that White won.
    pub white: u64,
    /// The number of drawn games.
    pub draws: u64,
    /// The number of games that Black won.
    pub black: u64,
    /// The number of games without a result.
    pub unfinished: u64,
}

impl Results {
    /// Adds one game with the result `result`.
    #[inline]
    pub fn add(&mut self, result: GameResult) {
        // Results are unpredictable, so branches would often be mispredicted.
        self.white += u64::from(result == GameResult::WhiteWins);
        self.draws += u64::from(result == GameResult::Draw);
        self.black += u64::from(result == GameResult::BlackWins);
        self.unfinished += u64::from(result == GameResult::Unknown);
    }

    /// Returns the number of games, including unfinished games. Returns [`u64::MAX`] if the number is greater.
    #[inline]
    pub fn games(self) -> u64 {
        self.finished().saturating_add(self.unfinished)
    }

    /// Returns the number of games that have a result. Returns [`u64::MAX`] if the number is greater.
    #[inline]
    pub fn finished(self) -> u64 {
        let decided = self.white.saturating_add(self.black);
        decided.saturating_add(self.draws)
    }

    /// Returns the results of the finished games from the view of the side `side`.
    #[inline]
    pub fn for_side(self, side: Color) -> Wdl {
        let white = Wdl {
            wins: self.white,
            draws: self.draws,
            losses: self.black,
        };
        white.turned(side)
    }

    /// Converts `stats`, the results of finished games from the view of the side `side`, to results by color.
    #[inline]
    pub fn from_side(side: Color, stats: Wdl) -> Results {
        let white = stats.turned(side);
        Results {
            white: white.wins,
            draws: white.draws,
            black: white.losses,
            unfinished: 0,
        }
    }

    /// Returns the score of the side `side`, from 0 to 1, or `None` if no game has a result.
    pub fn score(self, side: Color) -> Option<f64> {
        let stats = self.for_side(side);
        (stats.games() > 0).then(|| stats.score())
    }

    /// Returns these results with each unfinished game as a draw, as counts directories store them.
    pub fn with_unfinished_as_draws(self) -> Results {
        Results {
            draws: self.draws.saturating_add(self.unfinished),
            unfinished: 0,
            ..self
        }
    }

    /// Serializes the fields `white`, `draws`, `black` and, if there are unfinished games, `unfinished`.
    ///
    /// # Errors
    ///
    /// Returns the error of `serializer`.
    pub(crate) fn without_total<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Results {
            white,
            draws,
            black,
            unfinished,
        } = *self;
        let numbers = EachResult {
            white,
            draws,
            black,
            unfinished,
        };
        numbers.serialize(serializer)
    }

    /// Serializes the numbers in the form of Lichess's explorer. Its clients add up `white`, `draws` and `black` to get
    /// the number of all games, so `draws` includes the unfinished games. If there are any, their number is also
    /// written as `unfinished`, a field that Lichess does not have.
    ///
    /// # Errors
    ///
    /// Returns the error of `serializer`.
    pub(crate) fn lichess_form<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let lichess = Results {
            draws: self.draws + self.unfinished,
            ..*self
        };
        lichess.without_total(serializer)
    }

    /// Serializes the fields `wins`, `draws` and `losses` from the view of the side `side` and, if there are unfinished
    /// games, `unfinished`.
    ///
    /// # Errors
    ///
    /// Returns the error of `serializer`.
    pub(crate) fn of_side<S: Serializer>(
        &self,
        side: Color,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let Wdl {
            wins,
            draws,
            losses,
        } = self.for_side(side);
        let numbers = ResultsOfSide {
            wins,
            draws,
            losses,
            unfinished: self.unfinished,
        };
        numbers.serialize(serializer)
    }
}

/// The serialized form of [`Results`] without the number of all games.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct EachResult {
    /// The number of games that White won.
    white: u64,
    /// The number of drawn games. On the routes of Lichess's API, it includes the games without a result.
    draws: u64,
    /// The number of games that Black won.
    black: u64,
    /// The number of games without a result, unless it is 0.
    #[serde(skip_serializing_if = "is_zero")]
    unfinished: u64,
}

/// The serialized form of [`Results`].
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct AllResults {
    /// The number of games.
    games: u64,
    /// The number of games that White won.
    white: u64,
    /// The number of drawn games.
    draws: u64,
    /// The number of games that Black won.
    black: u64,
    /// The number of games without a result, unless it is 0.
    #[serde(skip_serializing_if = "is_zero")]
    unfinished: u64,
}

/// The serialized form of [`Results`] from the view of a side.
#[derive(Serialize)]
struct ResultsOfSide {
    wins: u64,
    draws: u64,
    losses: u64,
    #[serde(skip_serializing_if = "is_zero")]
    unfinished: u64,
}

impl From<Results> for AllResults {
    fn from(results: Results) -> AllResults {
        let Results {
            white,
            draws,
            black,
            unfinished,
        } = results;
        AllResults {
            games: results.games(),
            white,
            draws,
            black,
            unfinished,
        }
    }
}

/// Adds the results of other games. A sum that overflows is replaced with [`u64::MAX`].
impl AddAssign for Results {
    #[inline]
    fn add_assign(&mut self, other: Results) {
        self.white = self.white.saturating_add(other.white);
        self.draws = self.draws.saturating_add(other.draws);
        self.black = self.black.saturating_add(other.black);
        self.unfinished = self.unfinished.saturating_add(other.unfinished);
    }
}

/// The numbers of games won, drawn and lost, from the view of one side or of a player. In books and counts directories,
/// this is the side to move.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Default, Debug, Serialize)]
pub struct Wdl {
    /// The number of games that the side won.
    pub wins: u64,
    /// The number of games that neither side won.
    pub draws: u64,
    /// The number of games that the side lost.
    pub losses: u64,
}

/// The mean of a property of games, such as a rating, over the games in which the property is known. The mean is stored as
/// two numbers: the sum of the known values, and the number of games with a known value.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct Mean {
    /// The sum of the known numbers.
    pub sum: u64,
    /// The number of games in which the number is known.
    pub games: u64,
}

impl Mean {
    /// Adds the number of one game. Does nothing if `value` is 0, which means that the number is unknown.
    #[inline]
    pub fn add(&mut self, value: u16) {
        self.sum += u64::from(value);
        self.games += u64::from(value > 0);
    }

    /// Returns the mean, rounded down like the ratings in Lichess's explorer. Returns 0 if no number is known.
    pub fn rounded_down(self) -> u64 {
        self.sum.checked_div(self.games).unwrap_or(0)
    }

    /// Returns the mean, rounded half up like FIDE's averages. Returns `None` if no number is known.
    pub fn rounded(self) -> Option<u64> {
        (2 * self.sum + self.games).checked_div(2 * self.games)
    }
}

/// Adds the mean over other games. A sum that overflows is replaced with [`u64::MAX`].
impl AddAssign for Mean {
    #[inline]
    fn add_assign(&mut self, other: Mean) {
        self.sum = self.sum.saturating_add(other.sum);
        self.games = self.games.saturating_add(other.games);
    }
}

/// A number that every game has, such as the rating of the player who moved. Counts directories with classes and the
/// explorer's indexes contain its [`Mean`] for each move.
#[derive(Debug)]
pub struct Measure {
    /// The names of two columns in a counts directory: the sum of the known numbers, and the number of games in which
    /// the number is known.
    pub columns: [&'static str; 2],
    /// The greatest possible number. The lowest is 1, because 0 means unknown.
    pub highest: u16,
    /// Estimates the mean of the number in games of a rating group. An index stores only the difference to this
    /// estimate, which takes few bits.
    pub(crate) estimate: fn(Option<RatingGroup>) -> u64,
    /// The base-2 logarithm of the typical difference between the estimate and the number of a single game.
    pub(crate) deviation_bits: u32,
}

impl Measure {
    /// Returns `true` if the mean is possible: if it is between 1 and the greatest possible number, or if no number is
    /// known.
    #[inline]
    pub(crate) fn can_be(&self, mean: Mean) -> bool {
        let highest = mean.games.saturating_mul(self.highest.into());
        (mean.games..=highest).contains(&mean.sum)
    }
}

/// All measures, in the order in which files contain them. New measures are added at the end.
pub const MEASURES: [Measure; 1] = [Measure {
    columns: ["rating_sum", "rated"],
    highest: HIGHEST_RATING,
    estimate: |group| group.map_or(0, |group| u64::from(group.floor()) + 100),
    deviation_bits: 7,
}];

/// The values of all [`MEASURES`] in one game. An unknown value is 0.
pub type Measured = [u16; MEASURES.len()];

/// The means of all [`MEASURES`] over the games in which a move was played.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct Means(pub(crate) [Mean; MEASURES.len()]);

impl Means {
    /// Returns the mean of the ratings of the players who moved.
    pub fn rating(self) -> Mean {
        let [rating] = self.0;
        rating
    }

    /// Adds the values of one game.
    #[inline]
    pub fn add(&mut self, game: Measured) {
        self.0
            .iter_mut()
            .zip(game)
            .for_each(|(mean, value)| mean.add(value));
    }
}

impl AddAssign for Means {
    #[inline]
    fn add_assign(&mut self, other: Means) {
        self.0
            .iter_mut()
            .zip(other.0)
            .for_each(|(mean, other)| *mean += other);
    }
}

/// The quantile of the standard normal distribution that belongs to a two-sided 99 percent confidence interval.
const QUANTILE: f64 = 2.576;

/// The serialized form of [`Wdl`] without the draws.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Decisive {
    /// The number of games that the player won.
    wins: u64,
    /// The number of games that the player lost.
    losses: u64,
}

impl Wdl {
    /// Returns the result of a single game from the view of the side `turn`. `winner` is the side that won, or `None`
    /// if neither side won.
    #[inline]
    pub fn of_game(winner: Option<Color>, turn: Color) -> Wdl {
        let (wins, draws, losses) = match winner {
            None => (0, 1, 0),
            Some(winner) if winner == turn => (1, 0, 0),
            Some(_) => (0, 0, 1),
        };
        Wdl {
            wins,
            draws,
            losses,
        }
    }

    /// Converts results between White's view and the view of `side`, in either direction. Swaps wins and losses if
    /// `side` is Black.
    #[inline]
    #[must_use]
    pub fn turned(self, side: Color) -> Wdl {
        match side {
            Color::White => self,
            Color::Black => Wdl {
                wins: self.losses,
                losses: self.wins,
                ..self
            },
        }
    }

    /// Returns the number of games: the sum of wins, draws and losses.
    #[inline]
    pub fn games(self) -> u64 {
        self.wins + self.draws + self.losses
    }

    /// Returns the points of the side, in half points: two for a win, one for a draw.
    #[inline]
    pub fn half_points(self) -> u64 {
        2 * self.wins + self.draws
    }

    /// Serializes the fields `wins` and `losses`. The number of draws is left out because answers already contain it in
    /// [`Results`].
    ///
    /// # Errors
    ///
    /// Returns the error of `serializer`.
    pub(crate) fn without_draws<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let decisive = Decisive {
            wins: self.wins,
            losses: self.losses,
        };
        decisive.serialize(serializer)
    }

    /// Returns the score of the side, from 0 to 1. The score is the share of the points that this side won; a
    /// draw counts as half a point. Returns 0 if there are no games.
    ///
    /// The score is rounded in the same way as in Polyglot, so that a minimum score such as 60 percent selects the same
    /// moves as in Polyglot.
    pub fn score(self) -> f64 {
        if self.games() == 0 {
            return 0.0;
        }
        let half_points = self.wins as f64 * 2.0 + self.draws as f64;
        half_points / self.games() as f64 / 2.0
    }

    /// Returns the lower bound of the 99 percent confidence interval of the score, from 0 to 1. Returns 0 if there
    /// are no games.
    ///
    /// The interval is Wilson's score interval (E. B. Wilson, Probable inference, the law of succession, and
    /// statistical inference, 1927). A draw counts as half a win, which makes the interval wider than necessary.
    pub fn lower_bound(self) -> f64 {
        let (games, score) = (self.games() as f64, self.score());
        if games == 0.0 {
            return 0.0;
        }
        let square = QUANTILE * QUANTILE / games;
        let spread = QUANTILE * (score * (1.0 - score) / games + square / games / 4.0).sqrt();
        (score + square / 2.0 - spread) / (1.0 + square)
    }
}

impl Add for Wdl {
    type Output = Wdl;

    #[inline]
    fn add(self, other: Wdl) -> Wdl {
        Wdl {
            wins: self.wins + other.wins,
            draws: self.draws + other.draws,
            losses: self.losses + other.losses,
        }
    }
}

impl AddAssign for Wdl {
    #[inline]
    fn add_assign(&mut self, other: Wdl) {
        *self = *self + other;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_numbers_do_not_change_a_mean() {
        let mut mean = Mean::default();
        assert_eq!((mean.rounded_down(), mean.rounded()), (0, None));
        [2000, 0, 2001]
            .into_iter()
            .for_each(|rating| mean.add(rating));
        assert_eq!((mean.rounded_down(), mean.rounded()), (2000, Some(2001)));
        for (sum, is_possible) in [(1, false), (2, true), (8000, true), (8001, false)] {
            let mean = Mean { sum, games: 2 };
            assert_eq!(MEASURES[0].can_be(mean), is_possible, "{sum}");
        }
    }

    #[test]
    fn an_unfinished_game_is_a_draw_only_in_the_form_of_lichess() {
        let mut results = Results::default();
        for (result, games) in GameResult::ALL.into_iter().zip([2, 3, 4, 1]) {
            (0..games).for_each(|_| results.add(result));
        }
        assert_eq!((results.games(), results.finished()), (10, 9));
        let black = results.for_side(Color::Black);
        assert_eq!((black.wins, black.draws, black.losses), (4, 2, 3));
        let plain = json!({ "games": 10, "white": 3, "draws": 2, "black": 4, "unfinished": 1 });
        assert_eq!(json!(results), plain);
        let lichess = |results: Results| results.lichess_form(serde_json::value::Serializer);
        assert_eq!(
            lichess(results).unwrap(),
            json!({ "white": 3, "draws": 3, "black": 4, "unfinished": 1 })
        );
        results.unfinished = 0;
        assert_eq!(
            lichess(results).unwrap(),
            json!({ "white": 3, "draws": 2, "black": 4 })
        );
    }

    #[test]
    fn sums_that_overflow_are_the_greatest_number() {
        let mut results = Results {
            white: u64::MAX - 1,
            draws: 1,
            ..Results::default()
        };
        assert_eq!(results.games(), u64::MAX);
        results += results;
        assert_eq!((results.white, results.draws), (u64::MAX, 2));
        assert_eq!(results.games(), u64::MAX);
    }

    #[test]
    fn two_lucky_games_do_not_beat_a_thousand() {
        let lower = |wins, draws, losses| {
            let stats = Wdl {
                wins,
                draws,
                losses,
            };
            stats.lower_bound()
        };
        assert!(lower(2, 0, 0) < lower(600, 0, 400));
        assert_eq!(lower(0, 0, 0), 0.0);
        // The interval of 10 wins in 20 games is 25.0 to 75.0 percent.
        assert!((lower(10, 0, 10) - 0.2504).abs() < 1e-4);
        assert!((lower(5, 10, 5) - 0.2504).abs() < 1e-4);
    }
}

//! Wins, draws and losses, and the scores that are calculated from them.

use std::ops::{Add, AddAssign};

use serde::Serialize;
use shakmaty::Color;

use crate::position::BookMove;

/// The numbers of games won, drawn and lost, from the view of the side to move.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Default, Debug, Serialize)]
pub struct Wdl {
    /// The number of games that the side to move won.
    pub wins: u64,
    /// The number of games that neither side won.
    pub draws: u64,
    /// The number of games that the side to move lost.
    pub losses: u64,
}

/// A move in a position, with the results of the games in which it was played.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct MoveCount {
    /// The move.
    pub mv: BookMove,
    /// The results of the games in which the move was played.
    pub stats: Wdl,
}

/// The quantile of the standard normal distribution for a two-sided 99 percent confidence interval.
const QUANTILE: f64 = 2.576;

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

    /// Returns the score of the side to move, from 0 to 1. The score is the share of the points that this side won; a
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

    /// Returns the center of the confidence interval of the score, from 0 to 1. The center is close to 0.5 for few
    /// games, and close to the score for many games. Returns 0.5 if there are no games.
    /// [`lower_bound`](Wdl::lower_bound) returns the lower end of the interval.
    pub(crate) fn interval_center(self) -> f64 {
        let square = QUANTILE * QUANTILE;
        (self.score() * self.games() as f64 + square / 2.0) / (self.games() as f64 + square)
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
    use super::*;

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

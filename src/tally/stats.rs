//! Wins, draws and losses.

use std::ops::{Add, AddAssign};

use serde::Serialize;
use shakmaty::Color;

use crate::position::BookMove;

/// How many games were won, drawn and lost, seen from the side to move.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Default, Debug, Serialize)]
pub struct Stats {
    /// Games that the side to move won.
    pub wins: u64,
    /// Games that neither side won.
    pub draws: u64,
    /// Games that the side to move lost.
    pub losses: u64,
}

/// A move of a position and its games.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct MoveCount {
    /// The move.
    pub mv: BookMove,
    /// The games in which it was played.
    pub stats: Stats,
}

impl Stats {
    /// One game that `winner` won, or that neither side did.
    #[inline]
    pub fn of_game(winner: Option<Color>, turn: Color) -> Stats {
        let (wins, draws, losses) = match winner {
            None => (0, 1, 0),
            Some(winner) if winner == turn => (1, 0, 0),
            Some(_) => (0, 0, 1),
        };
        Stats {
            wins,
            draws,
            losses,
        }
    }

    /// White's results as those of a side, or those of a side as White's.
    #[inline]
    #[must_use]
    pub fn turned(self, side: Color) -> Stats {
        match side {
            Color::White => self,
            Color::Black => Stats {
                wins: self.losses,
                losses: self.wins,
                ..self
            },
        }
    }

    /// All games.
    #[inline]
    pub fn games(self) -> u64 {
        self.wins + self.draws + self.losses
    }

    /// The share of the points that the side to move scored, from 0 to 1; 0 without games.
    ///
    /// Computed in the order of operations of Polyglot, so that a bound such as 60 percent admits
    /// the same moves.
    pub fn score(self) -> f64 {
        if self.games() == 0 {
            return 0.0;
        }
        let half_points = self.wins as f64 * 2.0 + self.draws as f64;
        half_points / self.games() as f64 / 2.0
    }
}

impl Add for Stats {
    type Output = Stats;

    #[inline]
    fn add(self, other: Stats) -> Stats {
        Stats {
            wins: self.wins + other.wins,
            draws: self.draws + other.draws,
            losses: self.losses + other.losses,
        }
    }
}

impl AddAssign for Stats {
    #[inline]
    fn add_assign(&mut self, other: Stats) {
        *self = *self + other;
    }
}

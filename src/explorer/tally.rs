//! Adding up games.

use std::ops::AddAssign;

use shakmaty::Color;

use super::games::Hot;
use crate::index::layout::{counted::CountedRow, sums::MoveSum};

/// How many games each side won, and how many neither.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Results {
    /// By the numbers of results: drawn, won by White, won by Black, not known.
    by_result: [u64; 4],
}

impl Results {
    /// Adds a game by the number of its result.
    #[inline]
    pub(super) fn add(&mut self, result: usize) {
        self.by_result[result % 4] += 1;
    }

    /// Adds games by the numbers of their results.
    pub(super) fn add_all<N: Into<u64>>(&mut self, games: impl IntoIterator<Item = N>) {
        for (sum, more) in self.by_result.iter_mut().zip(games) {
            *sum += more.into();
        }
    }

    pub(super) fn white(self) -> u64 {
        self.by_result[1]
    }

    pub(super) fn draws(self) -> u64 {
        self.by_result[0] + self.by_result[3]
    }

    pub(super) fn black(self) -> u64 {
        self.by_result[2]
    }

    pub(super) fn games(self) -> u64 {
        self.by_result.iter().sum()
    }
}

impl AddAssign for Results {
    fn add_assign(&mut self, other: Results) {
        for (sum, more) in self.by_result.iter_mut().zip(other.by_result) {
            *sum += more;
        }
    }
}

/// Ratings of one color, added up.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct RatingSum {
    pub sum: u64,
    /// How many games have one.
    pub games: u64,
}

impl RatingSum {
    #[inline]
    pub(super) fn add(&mut self, rating: u16) {
        self.sum += u64::from(rating);
        self.games += u64::from(rating > 0);
    }

    /// The mean, 0 of none.
    pub(super) fn mean(self) -> u64 {
        self.known_mean().unwrap_or(0)
    }

    /// The mean, if any game has one.
    pub(super) fn known_mean(self) -> Option<u64> {
        self.sum.checked_div(self.games)
    }
}

impl AddAssign for RatingSum {
    fn add_assign(&mut self, other: RatingSum) {
        self.sum += other.sum;
        self.games += other.games;
    }
}

/// What is known of the games that played a move.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct MoveTally {
    pub results: Results,
    /// The ratings of the color that the question is about.
    pub ratings: RatingSum,
    /// How the player did, in the player's view.
    pub player: PlayerTally,
    /// The number of one of the games, `None` of counts.
    pub game: Option<u64>,
}

/// How a player did in some games.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct PlayerTally {
    pub wins: u64,
    pub losses: u64,
    /// The opponents' ratings in the games that have a result, and twice the player's points in these.
    pub opponents: RatingSum,
    pub half_points: u64,
    /// The player's own ratings.
    pub own: RatingSum,
    /// When the last game was played, as [`Hot::date`].
    pub last: u32,
}

impl PlayerTally {
    /// Adds a game in which the player has a color.
    pub(super) fn add(&mut self, hot: &Hot, player: Color) {
        let winner = hot.winner();
        self.wins += u64::from(winner == Some(player));
        self.losses += u64::from(winner == Some(!player));
        self.own.add(hot.elo_of(player));
        if hot.has_result() && hot.elo_of(!player) > 0 {
            self.opponents.add(hot.elo_of(!player));
            self.half_points += match winner {
                Some(winner) => 2 * u64::from(winner == player),
                None => 1,
            };
        }
        self.last = self.last.max(hot.date);
    }
}

impl AddAssign for PlayerTally {
    fn add_assign(&mut self, other: PlayerTally) {
        self.wins += other.wins;
        self.losses += other.losses;
        self.opponents += other.opponents;
        self.half_points += other.half_points;
        self.own += other.own;
        self.last = self.last.max(other.last);
    }
}

impl MoveTally {
    /// Adds a game with the rating of the color that the question is about.
    #[inline]
    pub(super) fn add(&mut self, hot: &Hot, rating: u16, number: u64) {
        self.results.add(hot.result());
        self.ratings.add(rating);
        self.game = Some(number);
    }

    /// Adds the games of a sum, which are numbered from `first`.
    pub(super) fn add_sum(&mut self, sum: &MoveSum, first: u64) {
        self.results.add_all(sum.games);
        self.ratings.sum += sum.ratings;
        self.ratings.games += u64::from(sum.rated);
        self.game = Some(first + u64::from(sum.game));
    }

    /// Adds the games of a row of counts.
    pub(super) fn add_row(&mut self, row: &CountedRow) {
        self.results.add_all(row.games);
        self.ratings.sum += row.ratings;
        self.ratings.games += row.rated;
        self.game = None;
    }
}

impl AddAssign for MoveTally {
    fn add_assign(&mut self, other: MoveTally) {
        self.results += other.results;
        self.ratings += other.ratings;
        self.player += other.player;
        if other.results.games() > 0 {
            self.game = other.game;
        }
    }
}

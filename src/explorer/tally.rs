//! Adding up games.

use std::ops::AddAssign;

use shakmaty::Color;

use super::games::Hot;
use crate::index::layout::sums::MoveSum;

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
    pub(super) fn add_all(&mut self, games: [u32; 4]) {
        for (sum, more) in self.by_result.iter_mut().zip(games) {
            *sum += u64::from(more);
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

    /// Twice the points of a color.
    pub(super) fn half_points(self, color: Color) -> u64 {
        2 * color.fold_wb(self.white(), self.black()) + self.draws()
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
pub(super) struct Ratings {
    pub sum: u64,
    /// How many games have one.
    pub games: u64,
}

impl Ratings {
    #[inline]
    pub(super) fn add(&mut self, rating: u16) {
        self.sum += u64::from(rating);
        self.games += u64::from(rating > 0);
    }

    /// The mean, 0 of none.
    pub(super) fn mean(self) -> u64 {
        self.sum.checked_div(self.games).unwrap_or(0)
    }
}

impl AddAssign for Ratings {
    fn add_assign(&mut self, other: Ratings) {
        self.sum += other.sum;
        self.games += other.games;
    }
}

/// What is known of the games that played a move.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct MoveTally {
    pub results: Results,
    /// The ratings of the color that the question is about.
    pub ratings: Ratings,
    /// The results of the games that have one and in which that color has a rating.
    pub rated: Results,
    /// The sum of these ratings.
    pub rated_sum: u64,
    /// The number of one of the games.
    pub game: u64,
}

impl MoveTally {
    /// Adds a game with the rating of the color that the question is about.
    #[inline]
    pub(super) fn add(&mut self, hot: &Hot, rating: u16, number: u64) {
        self.results.add(hot.result());
        self.ratings.add(rating);
        if rating > 0 && hot.has_result() {
            self.rated.add(hot.result());
            self.rated_sum += u64::from(rating);
        }
        self.game = number;
    }

    /// Adds the games of a sum, which are numbered from `first`.
    pub(super) fn add_sum(&mut self, sum: &MoveSum, first: u64) {
        self.results.add_all(sum.games);
        self.ratings.sum += sum.ratings;
        self.ratings.games += u64::from(sum.rated);
        self.game = first + u64::from(sum.game);
    }
}

impl AddAssign for MoveTally {
    fn add_assign(&mut self, other: MoveTally) {
        self.results += other.results;
        self.ratings += other.ratings;
        self.rated += other.rated;
        self.rated_sum += other.rated_sum;
        if other.results.games() > 0 {
            self.game = other.game;
        }
    }
}

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

/// What is known of the games that played a move.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct MoveTally {
    pub results: Results,
    /// The sum of the ratings of the color that the question is about, and how many games have one.
    ratings: (u64, u64),
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
        self.ratings.0 += u64::from(rating);
        self.ratings.1 += u64::from(rating > 0);
        if rating > 0 && hot.has_result() {
            self.rated.add(hot.result());
            self.rated_sum += u64::from(rating);
        }
        self.game = number;
    }

    /// Adds the games of a sum, which are numbered from `first`.
    pub(super) fn add_sum(&mut self, sum: &MoveSum, first: u64) {
        self.results.add_all(sum.games);
        self.ratings.0 += sum.ratings;
        self.ratings.1 += u64::from(sum.rated);
        self.game = first + u64::from(sum.game);
    }

    /// The mean rating, 0 of none.
    pub(super) fn mean_rating(&self) -> u64 {
        let (sum, games) = self.ratings;
        sum.checked_div(games).unwrap_or(0)
    }
}

impl AddAssign for MoveTally {
    fn add_assign(&mut self, other: MoveTally) {
        self.results += other.results;
        self.ratings.0 += other.ratings.0;
        self.ratings.1 += other.ratings.1;
        self.rated += other.rated;
        self.rated_sum += other.rated_sum;
        if other.results.games() > 0 {
            self.game = other.game;
        }
    }
}

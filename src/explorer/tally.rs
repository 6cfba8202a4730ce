//! Adding up games.

use std::ops::AddAssign;

use shakmaty::Color;

use super::games::Hot;
use crate::index::layout::{counted::CountedRow, sums::MoveSum};

/// The numbers of games by result.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct ResultSum {
    /// Indexed as [`GameResult::ALL`](crate::pgn::GameResult::ALL): drawn, won by White, won by Black, without a result.
    by_result: [u64; 4],
}

impl ResultSum {
    /// Adds a game whose result has the index `result` in [`GameResult::ALL`](crate::pgn::GameResult::ALL).
    #[inline]
    pub(super) fn add(&mut self, result: usize) {
        self.by_result[result % 4] += 1;
    }

    /// Adds numbers of games, one for each result, in the order of [`GameResult::ALL`](crate::pgn::GameResult::ALL).
    pub(super) fn add_all<N: Into<u64>>(&mut self, games: impl IntoIterator<Item = N>) {
        for (sum, more) in self.by_result.iter_mut().zip(games) {
            *sum += more.into();
        }
    }

    pub(super) fn white(self) -> u64 {
        self.by_result[1]
    }

    pub(super) fn draws(self) -> u64 {
        self.by_result[0]
    }

    /// Returns the number of games without a result.
    pub(super) fn unfinished(self) -> u64 {
        self.by_result[3]
    }

    /// Returns the number of draws for an answer in Lichess's form, which includes games without a result, because
    /// clients add wins, draws and losses to get the number of all games.
    pub(super) fn not_won(self) -> u64 {
        self.draws() + self.unfinished()
    }

    pub(super) fn black(self) -> u64 {
        self.by_result[2]
    }

    pub(super) fn games(self) -> u64 {
        self.by_result.iter().sum()
    }
}

impl AddAssign for ResultSum {
    fn add_assign(&mut self, other: ResultSum) {
        for (sum, more) in self.by_result.iter_mut().zip(other.by_result) {
            *sum += more;
        }
    }
}

/// The sum of the known ratings of one side.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct RatingSum {
    pub sum: u64,
    /// The number of games in which the rating is known.
    pub games: u64,
}

impl RatingSum {
    /// Adds a game; the rating is 0 if it is not known.
    #[inline]
    pub(super) fn add(&mut self, rating: u16) {
        self.sum += u64::from(rating);
        self.games += u64::from(rating > 0);
    }

    /// Returns the mean rounded down, as Lichess's explorer has it; 0 if no rating is known.
    pub(super) fn mean(self) -> u64 {
        self.sum.checked_div(self.games).unwrap_or(0)
    }

    /// Returns the mean rounded half up, as FIDE does, or `None` if no rating is known.
    pub(super) fn rounded_mean(self) -> Option<u64> {
        (2 * self.sum + self.games).checked_div(2 * self.games)
    }
}

impl AddAssign for RatingSum {
    fn add_assign(&mut self, other: RatingSum) {
        self.sum += other.sum;
        self.games += other.games;
    }
}

/// The results and ratings in the games in which a move was played.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct MoveTally {
    pub results: ResultSum,
    /// The ratings of the side that moved.
    pub ratings: RatingSum,
    /// The results and ratings of the player, if the query is about one.
    pub player: PlayerTally,
    /// The number of one of the games, or `None` if the source has counts.
    pub game: Option<u64>,
}

/// The results and ratings of a player in some games.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct PlayerTally {
    pub wins: u64,
    pub losses: u64,
    /// The opponents' ratings in the games with a result.
    pub opponents: RatingSum,
    /// Twice the player's points in the games with a result and a rated opponent.
    pub half_points: u64,
    /// The player's own ratings.
    pub own: RatingSum,
    /// The date of the last game, in the form of [`Hot::date`].
    pub last: u32,
}

impl PlayerTally {
    /// Adds a game in which the player has the color `player`.
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
    /// Adds a game. `rating` is the rating of the side that moved, or 0 if it is unknown.
    #[inline]
    pub(super) fn add(&mut self, hot: &Hot, rating: u16, number: u64) {
        self.results.add(hot.result());
        self.ratings.add(rating);
        self.game = Some(number);
    }

    /// Adds the games that a stored sum contains. `first` is the number of the first game of the source.
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

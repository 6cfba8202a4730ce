//! A filter that selects moves by the number of their games and by their results.

use shakmaty::Color;

use super::record::Wdl;
use crate::provenance::{option_text, valued};

/// A filter that selects moves by their score and by the number of games in which they were played. By default, it
/// selects moves with at least 3 games, like the program Polyglot.
///
/// ```
/// use polybook::counts::{MoveFilter, Wdl};
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
    /// The minimum number of times that a move must have been played. A game that repeats a position may play a move
    /// there several times. Default: 3.
    pub min_game: u64,
    /// The minimum score of a move for the side that plays it, in percent from 0 to 100. Default: 0.
    pub min_score: f64,
    /// Selects only moves of this side. `None` selects moves of both sides, and is the default.
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

    /// Returns `true` if the filter selects a move of the side `turn`. `stats` contains the results of the move from
    /// the view of this side.
    #[inline]
    pub fn selects(&self, turn: Color, stats: Wdl) -> bool {
        stats.games() >= self.min_game
            && self.only.is_none_or(|only| only == turn)
            && (self.min_score <= 0.0 || stats.score() >= self.min_score / 100.0)
    }

    /// Restricts the filter to moves that `other` selects too. If the two filters select moves of different sides, no
    /// move meets both conditions; the filter then keeps its own side.
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

    /// Returns the command-line options that set this filter, or `None` if the filter selects every move. Unlike
    /// [`option_text`](MoveFilter::option_text), returns `--min-game 3` for the default filter.
    pub fn pruning_text(&self) -> Option<String> {
        if *self == MoveFilter::every_move() {
            return None;
        }
        let options = self.option_text();
        Some(match options.is_empty() {
            true => format!("--min-game {}", self.min_game),
            false => options,
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
    use super::*;

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

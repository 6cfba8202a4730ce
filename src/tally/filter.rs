//! Which moves of the counts are kept.

use shakmaty::Color;

use super::stats::Stats;
use crate::provenance::{option_text, valued};

/// Selects moves by their games. The default is Polyglot's.
///
/// ```
/// use polybook::tally::{MoveFilter, Stats};
/// use shakmaty::Color;
///
/// let filter = MoveFilter::default();
/// let often = Stats { wins: 2, draws: 1, losses: 4 };
/// assert!(filter.selects(Color::White, often));
/// let seldom = Stats { wins: 2, draws: 0, losses: 0 };
/// assert!(!filter.selects(Color::White, seldom));
/// assert!(MoveFilter::every_move().selects(Color::White, seldom));
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct MoveFilter {
    /// How many times a move must have been played at least: a game that comes back to a position may play a move there
    /// several times. Default: 3.
    pub min_game: u64,
    /// The lowest score of a move for the side that played it, in percent from 0 to 100. Default: 0.
    pub min_score: f64,
    /// Select the moves of this side only. Default: both sides.
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
    /// Selects every move that was played.
    pub fn every_move() -> MoveFilter {
        MoveFilter {
            min_game: 1,
            ..MoveFilter::default()
        }
    }

    /// Whether a move of the side `turn` is selected.
    #[inline]
    pub fn selects(&self, turn: Color, stats: Stats) -> bool {
        stats.games() >= self.min_game
            && self.only.is_none_or(|only| only == turn)
            && (self.min_score <= 0.0 || stats.score() >= self.min_score / 100.0)
    }

    /// Selects a move only if the other filter selects it too.
    pub fn narrowed_by(&mut self, other: &MoveFilter) {
        self.min_game = self.min_game.max(other.min_game);
        self.min_score = self.min_score.max(other.min_score);
        self.only = self.only.or(other.only);
    }

    /// Selects every move that one of both filters selects, and their sums.
    pub fn widened_by(&mut self, other: &MoveFilter) {
        self.min_game = self.min_game.min(other.min_game);
        self.min_score = self.min_score.min(other.min_score);
        self.only = self.only.filter(|_| self.only == other.only);
    }

    /// The options that prune moves, `None` if every move is selected.
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

    /// What differs from the defaults, spelled as options of the command line. Book headers and
    /// databases store this text, so it is part of their formats.
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

    const STATS: Stats = Stats {
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
    fn sides() {
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
        filter.narrowed_by(&MoveFilter {
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

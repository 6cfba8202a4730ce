//! Which moves a book keeps, and what they weigh.

use shakmaty::Color;

use crate::tally::Stats;

/// What a win, a draw and a loss of the side to move add to a move's weight.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Factors {
    /// For each win.
    pub win: u32,
    /// For each draw.
    pub draw: u32,
    /// For each loss.
    pub loss: u32,
}

/// Polyglot's: 2 for a win, 1 for a draw, nothing for a loss.
impl Default for Factors {
    fn default() -> Factors {
        Factors {
            win: 2,
            draw: 1,
            loss: 0,
        }
    }
}

impl Factors {
    /// What games weigh before scaling.
    #[inline]
    pub fn weight(self, stats: Stats) -> u64 {
        stats
            .wins
            .saturating_mul(self.win.into())
            .saturating_add(stats.draws.saturating_mul(self.draw.into()))
            .saturating_add(stats.losses.saturating_mul(self.loss.into()))
    }
}

/// What weights over 65535 are scaled against.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Scale {
    /// The largest weight of the book, so that weights compare from one position to another.
    #[default]
    Global,
    /// The largest weight of the same position, so that fewer weights get lost in rounding.
    Position,
}

/// Which moves are kept and how they are weighed. The default is Polyglot's.
///
/// ```
/// use polybook::{book::Weighting, tally::Stats};
/// use shakmaty::Color;
///
/// let weighting = Weighting::default();
/// let stats = Stats { wins: 2, draws: 1, losses: 4 };
/// assert_eq!(weighting.weight(Color::White, stats), Some(5));
/// let seldom = Stats { wins: 2, draws: 0, losses: 0 };
/// assert_eq!(weighting.weight(Color::White, seldom), None);
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Weighting {
    /// In how many games a move must have been played.
    pub min_game: u64,
    /// How many percent of the points it must have made, from 0 to 100.
    pub min_score: f64,
    /// Keep the moves of one side only.
    pub only: Option<Color>,
    /// Give every kept move weight 1.
    pub uniform: bool,
    /// What results are worth.
    pub factors: Factors,
    /// What large weights are scaled against.
    pub scale: Scale,
}

impl Default for Weighting {
    fn default() -> Weighting {
        Weighting {
            min_game: 3,
            min_score: 0.0,
            only: None,
            uniform: false,
            factors: Factors::default(),
            scale: Scale::Global,
        }
    }
}

impl Weighting {
    /// The weight of a move before scaling, `None` if it is not kept. A move that its results give no
    /// weight is not kept, whether weights are uniform or not.
    #[inline]
    pub fn weight(&self, turn: Color, stats: Stats) -> Option<u64> {
        let weight = self.factors.weight(stats);
        if weight == 0 || !self.selects(turn, stats) {
            return None;
        }
        Some(if self.uniform { 1 } else { weight })
    }

    /// Whether a move is kept, whatever it weighs.
    #[inline]
    pub fn selects(&self, turn: Color, stats: Stats) -> bool {
        stats.games() >= self.min_game
            && self.only.is_none_or(|only| only == turn)
            && (self.min_score <= 0.0 || stats.score() >= self.min_score / 100.0)
    }

    /// Keeps a move only if the other keeps it too. What that weighs does not matter.
    pub fn narrowed_by(&mut self, other: &Weighting) {
        self.min_game = self.min_game.max(other.min_game);
        self.min_score = self.min_score.max(other.min_score);
        self.only = self.only.or(other.only);
    }

    /// The options that are not the defaults, as they are written on a command line.
    pub fn option_text(&self) -> String {
        let mut options = Vec::new();
        let mut say = |text: String| options.push(text);
        let Weighting {
            min_game,
            min_score,
            only,
            uniform,
            factors,
            scale,
        } = self;
        if *min_game != Weighting::default().min_game {
            say(format!("--min-game {min_game}"));
        }
        if *min_score > 0.0 {
            say(format!("--min-score {min_score}"));
        }
        match only {
            Some(Color::White) => say("--only-white".to_owned()),
            Some(Color::Black) => say("--only-black".to_owned()),
            None => {}
        }
        if *uniform {
            say("--uniform".to_owned());
        }
        let Factors { win, draw, loss } = *factors;
        if *factors != Factors::default() {
            say(format!(
                "--win-factor {win} --draw-factor {draw} --loss-factor {loss}"
            ));
        }
        if *scale == Scale::Position {
            say("--scale position".to_owned());
        }
        options.join(" ")
    }

    /// The weight formula in words.
    pub fn formula(&self) -> String {
        if self.uniform {
            return "1 for every move".to_owned();
        }
        let Factors { win, draw, loss } = self.factors;
        format!("{win} x wins + {draw} x draws + {loss} x losses of the side to move")
    }
}

/// Brings weights into 16 bits.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Scaling {
    largest: u64,
}

impl Scaling {
    /// For weights of which `largest` is the largest.
    pub fn new(largest: u64) -> Scaling {
        Scaling { largest }
    }

    /// What weights are multiplied with, 1 if they fit as they are.
    pub fn factor(self) -> f64 {
        if self.largest > u64::from(u16::MAX) {
            f64::from(u16::MAX) / self.largest as f64
        } else {
            1.0
        }
    }

    /// The weight in a record. What weighs anything weighs at least 1.
    ///
    /// ```
    /// use polybook::book::Scaling;
    /// assert_eq!(Scaling::new(65_535).apply(1_000), 1_000);
    /// assert_eq!(Scaling::new(131_070).apply(131_070), 65_535);
    /// assert_eq!(Scaling::new(131_070).apply(1_001), 500);
    /// assert_eq!(Scaling::new(1 << 40).apply(1), 1);
    /// ```
    #[inline]
    pub fn apply(self, weight: u64) -> u16 {
        let weight = if self.largest > u64::from(u16::MAX) {
            let scaled = u128::from(weight) * u128::from(u16::MAX) / u128::from(self.largest);
            scaled.max(1)
        } else {
            u128::from(weight)
        };
        u16::try_from(weight).unwrap_or(u16::MAX)
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
        let mut weighting = Weighting {
            min_score: 60.0,
            ..Weighting::default()
        };
        assert_eq!(weighting.weight(Color::White, STATS), Some(6));
        weighting.min_score = 60.1;
        assert_eq!(weighting.weight(Color::White, STATS), None);
        weighting.min_score = 0.0;
        weighting.min_game = 5;
        assert!(weighting.weight(Color::White, STATS).is_some());
        weighting.min_game = 6;
        assert!(weighting.weight(Color::White, STATS).is_none());
    }

    #[test]
    fn sides_and_factors() {
        let weighting = Weighting {
            only: Some(Color::Black),
            factors: Factors {
                win: 10,
                draw: 5,
                loss: 1,
            },
            ..Weighting::default()
        };
        assert_eq!(weighting.weight(Color::Black, STATS), Some(32));
        assert_eq!(weighting.weight(Color::White, STATS), None);
    }

    #[test]
    fn a_lost_move_is_not_kept_even_with_uniform_weights() {
        let lost = Stats {
            losses: 9,
            ..Stats::default()
        };
        let weighting = Weighting {
            uniform: true,
            ..Weighting::default()
        };
        assert_eq!(weighting.weight(Color::White, lost), None);
        assert_eq!(weighting.weight(Color::White, STATS), Some(1));
    }
}

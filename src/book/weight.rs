//! What moves weigh in a book.

use crate::{
    provenance::{option_text, switch, valued},
    tally::Stats,
};

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

/// How much moves weigh. The default is Polyglot's.
///
/// ```
/// use polybook::{book::Weights, tally::Stats};
///
/// let weights = Weights::default();
/// assert_eq!(weights.weight(Stats { wins: 2, draws: 1, losses: 4 }), 5);
/// assert_eq!(weights.weight(Stats { wins: 0, draws: 0, losses: 4 }), 0);
/// ```
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Weights {
    /// Give every move weight 1.
    pub uniform: bool,
    /// What results add to a weight.
    pub factors: Factors,
    /// What large weights are scaled against.
    pub scale: Scale,
    /// Lowers the weight of a move by what the counts show after it: one that is worse than the best of its position by this
    /// many percent of a point, or more, weighs nothing. Default: no.
    pub minimax: Option<u8>,
}

impl Weights {
    /// The weight of a move before scaling. A move whose results add up to 0 weighs 0 even if weights
    /// are uniform, and a book does not keep it.
    #[inline]
    pub fn weight(&self, stats: Stats) -> u64 {
        let weight = self.factors.weight(stats);
        if self.uniform { weight.min(1) } else { weight }
    }

    /// What differs from the defaults, spelled as options of the command line. Book headers store
    /// this text, so it is part of their format.
    pub fn option_text(&self) -> String {
        let Weights {
            uniform,
            factors,
            scale,
            minimax,
        } = self;
        let Factors { win, draw, loss } = *factors;
        let has_factors = *factors != Factors::default();
        option_text([
            switch("uniform", *uniform),
            valued("win-factor", has_factors.then_some(win)),
            valued("draw-factor", has_factors.then_some(draw)),
            valued("loss-factor", has_factors.then_some(loss)),
            switch("scale position", *scale == Scale::Position),
            minimax.map(|percent| format!("--minimax={percent}")),
        ])
    }

    /// The weight formula in words, as book headers store it.
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
    /// A scaling for weights up to `largest`.
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
        if self.largest <= u64::from(u16::MAX) {
            return u16::try_from(weight).unwrap_or(u16::MAX);
        }
        let scaled = match weight.checked_mul(u16::MAX.into()) {
            Some(product) => product / self.largest,
            None => (u128::from(weight) * u128::from(u16::MAX) / u128::from(self.largest)) as u64,
        };
        u16::try_from(scaled.max(1)).unwrap_or(u16::MAX)
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
    fn factors_add_up() {
        let weights = Weights {
            factors: Factors {
                win: 10,
                draw: 5,
                loss: 1,
            },
            ..Weights::default()
        };
        assert_eq!(weights.weight(STATS), 32);
    }

    #[test]
    fn a_lost_move_has_no_weight_even_with_uniform_weights() {
        let lost = Stats {
            losses: 9,
            ..Stats::default()
        };
        let weights = Weights {
            uniform: true,
            ..Weights::default()
        };
        assert_eq!(weights.weight(lost), 0);
        assert_eq!(weights.weight(STATS), 1);
    }
}

//! The weights of moves in a book.

use crate::{
    counts::Wdl,
    provenance::{option_text, switch, valued},
};

/// The numbers that a win, a draw and a loss add to the weight of a move. Wins and losses are those of the side that
/// plays the move.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Factors {
    /// The weight of a win.
    pub win: u32,
    /// The weight of a draw.
    pub draw: u32,
    /// The weight of a loss.
    pub loss: u32,
}

/// Returns Polyglot's factors: 2 for a win, 1 for a draw, 0 for a loss.
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
    /// Returns the weight, before scaling, of a move with the results `stats`. Saturates at `u64::MAX`.
    #[inline]
    pub fn weight(self, stats: Wdl) -> u64 {
        stats
            .wins
            .saturating_mul(self.win.into())
            .saturating_add(stats.draws.saturating_mul(self.draw.into()))
            .saturating_add(stats.losses.saturating_mul(self.loss.into()))
    }
}

/// The scope in which weights are scaled down by a common factor. If a weight exceeds 65535, all weights in the same
/// scope are scaled down so that the largest becomes 65535.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Scale {
    /// All moves of the book. The weights of different positions stay comparable.
    #[default]
    Global,
    /// The moves of one position. Fewer weights are lost in rounding.
    Position,
}

/// Settings for computing the weights of moves from their results. The default is Polyglot's formula.
///
/// ```
/// use polybook::{book::Weights, counts::Wdl};
///
/// let weights = Weights::default();
/// assert_eq!(weights.weight(Wdl { wins: 2, draws: 1, losses: 4 }), 5);
/// assert_eq!(weights.weight(Wdl { wins: 0, draws: 0, losses: 4 }), 0);
/// ```
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Weights {
    /// Gives every move the weight 1.
    pub uniform: bool,
    /// The number that each result adds to a weight.
    pub factors: Factors,
    /// The range of moves that are scaled together when weights exceed 65535.
    pub scale: Scale,
    /// If set, lowers the weight of a move if the moves after it score badly according to the counts. A move gets the
    /// weight 0 if its score is lower than the score of the best move in its position by at least this many percent of
    /// a point. Default: `None`.
    pub minimax: Option<u8>,
}

impl Weights {
    /// Returns the weight, before scaling, of a move with the results `stats`. A book does not contain moves whose
    /// weight is 0. If the settings request uniform weights, returns 1 for every weight above 0.
    #[inline]
    pub fn weight(&self, stats: Wdl) -> u64 {
        let weight = self.factors.weight(stats);
        if self.uniform { weight.min(1) } else { weight }
    }

    /// Returns the settings that differ from the defaults, as command-line options. Book headers store this text, so it
    /// is part of their format.
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

    /// Returns a description of the formula that computes weights. Book headers store this text.
    pub fn formula(&self) -> String {
        if self.uniform {
            return "1 for every move".to_owned();
        }
        let Factors { win, draw, loss } = self.factors;
        format!("{win} x wins + {draw} x draws + {loss} x losses of the side to move")
    }
}

/// A scaling that makes weights fit into 16 bits. It changes weights only if the largest one exceeds 65535.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Scaling {
    largest: u64,
}

impl Scaling {
    /// Creates a scaling for a book or position whose largest weight is `largest`.
    pub fn new(largest: u64) -> Scaling {
        Scaling { largest }
    }

    /// Returns the factor by which weights are multiplied. It is 1 if the largest weight fits into 16 bits.
    pub fn factor(self) -> f64 {
        if self.largest > u64::from(u16::MAX) {
            f64::from(u16::MAX) / self.largest as f64
        } else {
            1.0
        }
    }

    /// Scales `weight` to 16 bits. If the largest weight exceeds 65535, the result is at least 1. The result is at most
    /// 65535.
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

    const STATS: Wdl = Wdl {
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
        let lost = Wdl {
            losses: 9,
            ..Wdl::default()
        };
        let weights = Weights {
            uniform: true,
            ..Weights::default()
        };
        assert_eq!(weights.weight(lost), 0);
        assert_eq!(weights.weight(STATS), 1);
    }
}

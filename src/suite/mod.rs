//! Opening suites: the lines or positions that games begin with, for matches between engines.
//!
//! Of a database or a book, a `SuiteOf` walks the moves that are known. Of games, `GameLines` counts the lines as
//! they were played. Both rank what they find, and write it in the same way.

mod games;
mod known;
mod lines;
mod positions;
mod ranking;
mod starts;
mod write;

use std::path::Path;

use shakmaty::variant::VariantPosition;

pub(crate) use self::known::{SuiteOf, Written};
use self::ranking::Ranking;
pub(crate) use self::{
    games::{GameLine, GameLines},
    starts::is_chess960_start,
    write::begin,
};
pub use self::{starts::read_starts, write::SuiteFormat};
use crate::{error::Error, tally::Stats};

/// What a suite has in it.
#[derive(Clone, PartialEq, Debug)]
pub struct Suite {
    /// Half-moves of each line. Default: 8.
    pub plies: usize,
    /// The most lines or positions, none for all: the first in their order.
    pub limit: Option<usize>,
    /// Puts them into an order that looks random, which this number and the moves alone decide. Default: the commonest
    /// first.
    pub seed: Option<u64>,
    /// White's score in percent in all games that came to the position after a line, from the one to the other, both
    /// among them.
    pub balance: Option<(f64, f64)>,
    /// Leaves lines out that lead to the position of one before them.
    pub unique: bool,
    /// Whether EPDs say the counters of moves, as `hmvc` and `fmvn`; of several ways to a position, the smallest.
    pub opcodes: bool,
    /// Where lines start, none for the starting position.
    pub starts: Vec<VariantPosition>,
}

impl Default for Suite {
    fn default() -> Suite {
        Suite {
            plies: 8,
            limit: None,
            seed: None,
            balance: None,
            unique: false,
            opcodes: false,
            starts: Vec::new(),
        }
    }
}

impl Suite {
    /// Whether the games of a position are balanced as asked; `stats` are White's.
    fn is_balanced(&self, stats: Option<Stats>) -> bool {
        self.balance.is_none_or(|(low, high)| {
            stats.is_some_and(|stats| {
                // Without a division, so that a score on a bound is within.
                let games = stats.games() as f64;
                let points = 50.0 * (2 * stats.wins + stats.draws) as f64;
                games > 0.0 && low * games <= points && points <= high * games
            })
        })
    }
}

fn too_many(path: &Path, suite: &Suite) -> Error {
    let plies = suite.plies;
    Error::too_large(
        path,
        format!(
            "would have more than {} lines of {plies} half-moves: choose fewer half-moves, or keep only moves of more \
             games",
            Ranking::MOST
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_on_a_bound_is_balanced() {
        for games in 1..=200 {
            for wins in (0..=games).filter(|wins| wins * 100 % games == 0) {
                let stats = Stats {
                    wins,
                    draws: 0,
                    losses: games - wins,
                };
                let bound = (wins * 100 / games) as f64;
                let balanced = |low: f64, high: f64| {
                    let balance = Some((low, high));
                    let suite = Suite {
                        balance,
                        ..Suite::default()
                    };
                    suite.is_balanced(Some(stats))
                };
                assert!(balanced(bound, bound), "{wins} of {games}");
                assert!(!balanced(bound + 0.01, 100.0) && !balanced(0.0, bound - 0.01));
            }
        }
    }
}

//! Opening suites: the lines or positions that games begin with, for matches between engines.
//!
//! Of a database or a book, a `SuiteOf` walks the moves that are known. Of games, `GameLines` counts the lines as
//! they were played. Both rank what they find, and write it in the same way.

mod evaluated;
mod game_stats;
mod games;
mod lines;
mod positions;
mod ranking;
mod report;
mod write;

use shakmaty::variant::VariantPosition;

pub use self::{
    evaluated::EvalRange,
    report::{Encounter, ExitResults, MatchReport, Pentanomial, ReportOptions, SuiteFile},
    write::SuiteFormat,
};
use self::{
    evaluated::{Evaluated, without_evaluation},
    write::write_ranked,
};
pub(crate) use self::{
    games::{GameLine, GameLines},
    write::begin,
};
use crate::{
    error::{Error, Result},
    openings::{self, Opening},
    output::BufferedFile,
    position::{Keyed, LineError, Variant},
    progress::Meter,
    sort::Memory,
    tally::Stats,
    walk::Source,
};

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
    /// The draws in percent of all games that came to the position after a line, from the one to the other, both among
    /// them.
    pub draw_rate: Option<(f64, f64)>,
    /// The evaluations of the positions, none for all. Positions without one are left out. EPDs say them as `acd` and `ce`.
    pub evals: Option<EvalRange>,
    /// The most lines or positions of one ECO code, none for all: the first in their order. Those without a code are not
    /// limited.
    pub per_eco: Option<u64>,
    /// Writes the opening of each: as the tags `ECO` and `Opening` of a line, as the operation `id` of a position. It is
    /// the last named position on the way, of games on the line that most of them played.
    pub tags: bool,
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
            draw_rate: None,
            evals: None,
            per_eco: None,
            tags: false,
            unique: false,
            opcodes: false,
            starts: Vec::new(),
        }
    }
}

impl Suite {
    /// Whether the results of a position are as asked; `stats` are White's.
    fn keeps(&self, stats: Option<Stats>) -> bool {
        // Without a division, so that a share on a bound is within.
        let is_within = |range: Option<(f64, f64)>, share: fn(Stats) -> u64| {
            range.is_none_or(|(low, high)| {
                stats.is_some_and(|stats| {
                    let (games, share) = (stats.games() as f64, 50.0 * share(stats) as f64);
                    games > 0.0 && low * games <= share && share <= high * games
                })
            })
        };
        is_within(self.balance, |stats| 2 * stats.wins + stats.draws)
            && is_within(self.draw_rate, |stats| 2 * stats.draws)
    }

    /// Whether the evaluation of a position is as asked.
    fn evaluated(&self, pos: &VariantPosition) -> Result<Evaluated> {
        let range = self.evals.as_ref();
        range.map_or(Ok(Evaluated::Kept(String::new())), |range| range.judge(pos))
    }

    /// The option that goes by results, if one is used.
    pub(crate) fn goes_by_results(&self) -> Option<&'static str> {
        let balance = self.balance.map(|_| "--balance");
        balance.or(self.draw_rate.map(|_| "--draw-rate"))
    }

    /// The options that can leave out all.
    fn ranges(&self) -> String {
        let options = [
            self.balance.map(|_| "--balance"),
            self.draw_rate.map(|_| "--draw-rate"),
            self.evals.as_ref().map(EvalRange::option),
        ];
        let given: Vec<&str> = options.into_iter().flatten().collect();
        given.join(" and ")
    }

    /// Whether openings are asked for.
    fn names_openings(&self) -> bool {
        self.tags || self.per_eco.is_some()
    }

    /// The code and the name of a position, or else the opening before it, if openings are asked for.
    fn opening(&self, pos: &VariantPosition, before: &str) -> String {
        if !self.names_openings() {
            return String::new();
        }
        openings::name_of(pos).map_or_else(
            || before.to_owned(),
            |Opening { eco, name }| format!("{eco} {name}"),
        )
    }

    /// Whether the commonest are wanted of all, and not others.
    fn takes_the_commonest(&self) -> bool {
        self.limit.is_some() && self.seed.is_none() && self.per_eco.is_none()
    }

    /// Returns why it has no entries, if its longest line has `longest` half-moves, some have no evaluation, and after
    /// `over` the game is over.
    fn why_empty(&self, longest: usize, unevaluated: u64, over: u64) -> String {
        let plies = self.plies;
        match longest {
            0 => "no move of the starting position is kept: keep moves of fewer games".to_owned(),
            longest if longest < plies => format!(
                "no line has {plies} half-moves; the longest has {longest}: take fewer half-moves, or keep moves of fewer \
                 games"
            ),
            _ if over > 0 && self.ranges().is_empty() => over_everywhere(plies),
            _ => format!(
                "no line is within {}: widen the range{}",
                self.ranges(),
                without_evaluation(unevaluated)
            ),
        }
    }
}

/// Returns why a suite is empty if the game is over after each of its lines.
fn over_everywhere(plies: usize) -> String {
    format!("the game is over after every line of {plies} half-moves: take fewer half-moves")
}

/// What making a suite came to.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct SuiteSummary {
    /// Its lines or positions.
    pub entries: u64,
    /// Whether lines were left that nobody looked at.
    pub is_cut: bool,
    /// Those that were left out because they have no evaluation, if they are chosen by it.
    pub unevaluated: Option<u64>,
}

/// White's results in all games that came to a position, `None` where games are not counted.
pub(crate) type ResultsOf<'a> = &'a dyn Fn(&Keyed<VariantPosition>) -> Result<Option<Stats>>;

/// A suite that is made of the moves that a source has after some positions, at least one.
pub(crate) struct SuiteOf<'a, S> {
    pub source: &'a S,
    pub results: ResultsOf<'a>,
    pub starts: &'a [VariantPosition],
    pub suite: &'a Suite,
    /// For the lines and positions on the way.
    pub memory: Memory,
    pub meter: &'a Meter,
}

impl<S: Source> SuiteOf<'_, S> {
    /// Writes the suite, and puts it in place.
    pub(crate) fn write(&self, file: BufferedFile, format: SuiteFormat) -> Result<SuiteSummary> {
        let path = file.target().to_owned();
        let (mut ranking, is_cut) = match format {
            SuiteFormat::Pgn => self.rank_lines(&path)?,
            SuiteFormat::Epd => (self.rank_positions(&path)?, false),
        };
        let start_of = |start: &[u8]| {
            let number = start.try_into().map_or(0, u64::from_le_bytes);
            self.starts[number as usize].clone()
        };
        let (file, entries) = write_ranked(file, format, self.suite, &mut ranking, start_of)?;
        if entries == 0 {
            return Err(Error::empty(
                path,
                self.suite
                    .why_empty(ranking.longest, ranking.unevaluated, ranking.over),
            ));
        }
        file.commit()?;
        Ok(SuiteSummary {
            entries,
            is_cut,
            unevaluated: self.suite.evals.as_ref().map(|_| ranking.unevaluated),
        })
    }
}

/// Reads positions, one a line: a FEN, or an EPD with or without operations. `hmvc` and `fmvn` are its counters of moves.
/// Blank lines and lines that begin with `#` are passed over.
///
/// # Errors
///
/// The number of the first line that is no position, from 1, and what is wrong with it.
///
/// ```
/// use polybook::{position::Variant, suite::read_starts};
/// use shakmaty::Position;
///
/// let text = "# after 1. e4 e5 2. Ke2\nrnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPPKPPP/RNBQ1BNR b kq - hmvc 1; fmvn 2;\n";
/// let starts = read_starts(text, Variant::Standard).unwrap();
/// assert_eq!(starts[0].fullmoves().get(), 2);
/// assert_eq!(read_starts("8/8/8 w - -", Variant::Standard).unwrap_err().0, 1);
/// ```
pub fn read_starts(
    text: &str,
    variant: Variant,
) -> Result<Vec<VariantPosition>, (usize, LineError)> {
    let lines = (1..).zip(text.trim_start_matches('\u{feff}').lines());
    let lines = lines.map(|(number, line)| (number, line.trim()));
    lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(number, line)| read_start(line, variant).map_err(|err| (number, err)))
        .collect()
}

fn read_start(line: &str, variant: Variant) -> Result<VariantPosition, LineError> {
    // Some programs leave out the last semicolon.
    variant
        .parse_position(line)
        .or_else(|err| variant.parse_position(&format!("{line};")).map_err(|_| err))
}

/// Whether games of Chess960 start from an EPD: all pawns at home, the pieces behind them, and all castling rights.
pub(crate) fn is_chess960_start(epd: &str) -> bool {
    epd.contains("/pppppppp/8/8/8/8/PPPPPPPP/") && epd.ends_with(" w KQkq -")
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
                    suite.keeps(Some(stats))
                };
                assert!(balanced(bound, bound), "{wins} of {games}");
                assert!(!balanced(bound + 0.01, 100.0) && !balanced(0.0, bound - 0.01));
                let drawn = Stats {
                    draws: wins,
                    wins: 0,
                    losses: games - wins,
                };
                let draws = |low: f64, high: f64| {
                    let draw_rate = Some((low, high));
                    let suite = Suite {
                        draw_rate,
                        ..Suite::default()
                    };
                    suite.keeps(Some(drawn))
                };
                assert!(draws(bound, bound), "{wins} of {games}");
                assert!(!draws(bound + 0.01, 100.0) && !draws(0.0, bound - 0.01));
            }
        }
    }
}

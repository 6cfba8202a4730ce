//! Opening suites, which are the lines or positions from which the games of a match between engines start.
//!
//! A suite is made in one of two ways. `SourceSuite` follows the moves of a database or a book. `GameLines` counts the
//! lines that were played in games. In both cases, the candidates are passed to a `Ranking`, which sorts, samples and
//! limits them, and the suite is written as PGN or as EPDs. `SuiteFile` reads a suite, to check the suite or to report
//! the results of a match.
//!
//! Positions can be filtered by their evaluations ([`EvalRange`]).

mod format;
mod games;
mod ranking;
mod report;
mod source;
mod strength;

use std::{ops::RangeInclusive, sync::Arc};

use shakmaty::{Color, Position, variant::VariantPosition};

use crate::{
    chess::position::{LineError, Rules, Variant, is_epd_comment, is_quiet},
    error::{Advice, Diagnosis, Result, plural},
    formats::evals::Evals,
    games::{
        board_query::BoardQuery,
        openings::{self, Opening},
        results::Results,
    },
};

pub(crate) use self::{
    games::{GameLine, GameLines},
    source::{SourceAdvice, SourceSuite},
};

pub use self::{
    format::{SUITE_EVENT, SuiteCheck, SuiteFault, SuiteFormat, begin_suite},
    report::{Encounter, ExitResults, MatchReport, Pentanomial, ReportOptions, SuiteFile},
    strength::{Sample, Sprt, SprtModel, Strength},
};

/// The options for making an opening suite: the length of its lines, the conditions on its lines or positions, and how
/// they are written.
#[derive(Clone, PartialEq, Debug)]
pub struct Suite {
    /// The range of the lengths of lines, in half-moves. The suite contains lines of each length in this range.
    /// Default: only 8.
    pub plies: RangeInclusive<usize>,
    /// The maximum number of lines or positions, or `None` for no limit. Entries that come first in the order of the
    /// suite are kept.
    pub limit: Option<usize>,
    /// The seed for a random order of the entries, which depends only on the seed and the positions. If `None`, which
    /// is the default, entries are sorted by number of games in descending order.
    pub seed: Option<u64>,
    /// The range of White's score, in percent, in all games that reached the last position of a line. Both bounds are
    /// inclusive. `None` admits every score.
    pub balance: Option<(f64, f64)>,
    /// The range of the share of draws, in percent, in all games that reached the last position of a line. Both
    /// bounds are inclusive. `None` admits every share.
    pub draw_rate: Option<(f64, f64)>,
    /// The range of the evaluations of last positions, or `None` for all positions. Positions without an evaluation
    /// are left out. EPDs contain the evaluation as the operations `acd` and `ce`.
    pub evals: Option<EvalRange>,
    /// Whether to keep only lines with a quiet end: the last move is not a capture, promotion or check, and no capture
    /// in the last position wins material. A position is kept if at least one line that leads to it has a quiet end.
    pub quiet: bool,
    /// The condition that the last position of a line must meet, or `None` for all positions. The condition is
    /// evaluated in this position alone, without the moves before and after it.
    pub position: Option<BoardQuery>,
    /// The maximum number of lines or positions for each ECO code, or `None` for no limit. Entries that come first in
    /// the order of the suite are kept. Entries without a code are not limited.
    pub per_eco: Option<u64>,
    /// Whether to write the opening of each entry, as the tags `ECO` and `Opening` of a line or as the operation `id`
    /// of a position. The opening is that of the last position on the line that has a name. If several lines lead to a
    /// position, the opening comes from the line with the most games.
    pub tags: bool,
    /// Whether to leave out a line if an earlier line of the suite leads to the same position.
    pub unique: bool,
    /// Whether to write the move counters in EPDs, as the operations `hmvc` and `fmvn`. If several lines lead to a
    /// position, the EPD contains the smallest counters.
    pub opcodes: bool,
    /// The positions in which lines start, or an empty list for the starting position of the variant.
    pub starts: Vec<VariantPosition>,
}

impl Default for Suite {
    fn default() -> Suite {
        Suite {
            plies: 8..=8,
            limit: None,
            seed: None,
            balance: None,
            draw_rate: None,
            evals: None,
            quiet: false,
            position: None,
            per_eco: None,
            tags: false,
            unique: false,
            opcodes: false,
            starts: Vec::new(),
        }
    }
}

impl Suite {
    /// Returns `true` if White's results in a position are within the ranges [`balance`](Suite::balance) and
    /// [`draw_rate`](Suite::draw_rate). `results` contains these results, or `None` if they are unknown. Unknown
    /// results are accepted only if neither range is set.
    fn keeps(&self, results: Option<Results>) -> bool {
        // Compares products instead of quotients, so that a share that equals a bound lies within the range.
        let is_within = |range: Option<(f64, f64)>, share: fn(Results) -> u64| {
            range.is_none_or(|(low, high)| {
                results.is_some_and(|results| {
                    let (games, share) = (results.finished() as f64, 50.0 * share(results) as f64);
                    games > 0.0 && low * games <= share && share <= high * games
                })
            })
        };
        is_within(self.balance, |results| {
            results.for_side(Color::White).half_points()
        }) && is_within(self.draw_rate, |results| 2 * results.draws)
    }

    /// Returns `true` if the last position of a line meets the conditions [`quiet`](Suite::quiet) and
    /// [`position`](Suite::position). `has_quiet_move` tells whether the last move of the line is neither a capture nor
    /// a promotion.
    fn accepts(&self, pos: &VariantPosition, has_quiet_move: bool) -> bool {
        let holds = |query: &BoardQuery| {
            let mut matcher = query.matcher();
            matcher.begin(pos.rules());
            matcher.visit(pos, None)
        };
        (!self.quiet || (has_quiet_move && is_quiet(pos)))
            && self.position.as_ref().is_none_or(holds)
    }

    /// Looks up the evaluation of a position, and checks whether it lies in the range that the suite accepts. Without
    /// such a range, every position is accepted.
    fn evaluated(&self, pos: &VariantPosition) -> Result<RangeCheck> {
        let range = self.evals.as_ref();
        range.map_or(Ok(RangeCheck::Kept(String::new())), |range| {
            range.check_evaluation(pos)
        })
    }

    /// Returns the name of an option that filters positions by their results, such as `balance`. Returns `None` if no
    /// such option is set.
    pub(crate) fn results_option(&self) -> Option<&'static str> {
        let balance = self.balance.map(|_| "balance");
        balance.or(self.draw_rate.map(|_| "draw-rate"))
    }

    /// Returns the conditions that the suite sets on the last positions of lines. Each element contains the name of the
    /// option, and advice for the user if no line meets the conditions.
    fn given_conditions(&self) -> Vec<(&'static str, Advice)> {
        let range = |name| (name, Advice::option("widen the range of {}", name));
        let options = [
            self.balance.map(|_| range("balance")),
            self.draw_rate.map(|_| range("draw-rate")),
            self.evals.as_ref().map(|evals| range(evals.option())),
            self.quiet.then(|| {
                (
                    "quiet-positions",
                    Advice::option("leave {} out", "quiet-positions"),
                )
            }),
            self.position.is_some().then(|| {
                (
                    "position",
                    Advice::option("give another query with {}", "position"),
                )
            }),
        ];
        options.into_iter().flatten().collect()
    }

    /// Returns the names of the options that set conditions on the last positions of lines.
    pub(crate) fn conditions(&self) -> Vec<&'static str> {
        let given = self.given_conditions().into_iter();
        given.map(|(name, _)| name).collect()
    }

    /// Creates the error message for a suite whose conditions no entry meets. `entry` is the word for an entry in this
    /// message, and `unevaluated` is the number of positions that have no evaluation.
    fn no_entry_meets(&self, entry: &str, unevaluated: u64) -> Diagnosis {
        let unknown = without_evaluation(unevaluated);
        let problem = Diagnosis::new(format!("no {entry} meets the conditions{unknown}"));
        let given = self.given_conditions().into_iter();
        given.fold(problem, |problem, (_, advice)| problem.advise(advice))
    }

    /// Returns `true` if the suite needs the ECO code or the name of each entry's opening.
    fn names_openings(&self) -> bool {
        self.tags || self.per_eco.is_some()
    }

    /// Returns the ECO code and the name of a position's opening, separated by a space. If the position has no name,
    /// returns `before`, the opening of the previous position in the line. Returns an empty string if the suite does
    /// not need openings.
    fn opening(&self, pos: &VariantPosition, before: &str) -> String {
        if !self.names_openings() {
            return String::new();
        }
        openings::name_of(pos).map_or_else(
            || before.to_owned(),
            |Opening { eco, name }| format!("{eco} {name}"),
        )
    }

    /// Returns `true` if the suite contains only a limited number of entries, those with the most games. A search for
    /// lines may then skip rare lines.
    fn takes_the_commonest(&self) -> bool {
        self.limit.is_some() && self.seed.is_none() && self.per_eco.is_none()
    }

    /// Returns the error message for a suite that would be empty. The message states the most likely reason and a
    /// remedy.
    ///
    /// - `advice`: advice on how to get other lines from the source
    /// - `longest`: the length in half-moves of the longest line that was found
    /// - `unevaluated`: the number of positions that were left out because they have no evaluation
    /// - `over`: the number of positions that were left out because the game is over
    fn why_empty(
        &self,
        advice: &SourceAdvice,
        longest: usize,
        unevaluated: u64,
        over: u64,
    ) -> Diagnosis {
        let shortest = *self.plies.start();
        let problem = match longest {
            0 => Diagnosis::new("no move is kept in the starting position").advise(OTHER_STARTS),
            longest if longest < shortest => Diagnosis::new(format!(
                "the longest line has only {}, but lines of {shortest} are requested",
                plural(longest as u64, "half-move")
            ))
            .advise(Advice::smaller("plies")),
            _ if over > 0 && self.conditions().is_empty() => return self.over_everywhere(),
            _ => return self.no_entry_meets("line", unevaluated),
        };
        match &advice.more {
            Some(more) => problem.advise(more.clone()),
            None => problem,
        }
    }

    /// Returns the error message for a suite that is empty because the game is over after every line.
    fn over_everywhere(&self) -> Diagnosis {
        let advice = match self.plies.end() {
            1 => OTHER_STARTS,
            _ => Advice::smaller("plies"),
        };
        let length = half_moves(&self.plies);
        Diagnosis::new(format!("the game is over after every line of {length}")).advise(advice)
    }
}

/// Returns a range of lengths as text, such as `8 half-moves` or `8 to 12 half-moves`.
pub fn half_moves(plies: &RangeInclusive<usize>) -> String {
    let (least, most) = (*plies.start(), plural(*plies.end() as u64, "half-move"));
    if least == *plies.end() {
        most
    } else {
        format!("{least} to {most}")
    }
}

/// Advice for a user whose suite is empty because no line begins in the given starting positions.
const OTHER_STARTS: Advice = Advice::option("give other starting positions with {}", "from");

/// A summary of a suite that was made from a database or a book.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct SuiteSummary {
    /// The number of lines or positions.
    pub entries: u64,
    /// Whether the search for lines stopped early, before it had examined all lines.
    pub is_cut: bool,
    /// The number of lines or positions that were left out because they have no evaluation, or `None` if the suite
    /// does not filter by evaluation.
    pub unevaluated: Option<u64>,
    /// The number of lines that were left out because another line leads to the same position, or `None` if several
    /// lines of the suite may lead to the same position.
    pub repeated: Option<u64>,
}

/// Parses text that contains one position per line, as a FEN or as an EPD with or without operations. The operations
/// `hmvc` and `fmvn` set the move counters. Blank lines and lines that begin with `#` are skipped.
///
/// # Errors
///
/// If a line is not a position, returns its number, counted from 1, and the error in the line.
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
        .filter(|(_, line)| !is_epd_comment(line.as_bytes()))
        .map(|(number, line)| match read_start(line, variant) {
            Ok((start, _)) => Ok(start),
            Err(err) => Err((number, err)),
        })
        .collect()
}

/// Parses one line of text, which contains a FEN or an EPD. The semicolon after the last operation may be missing.
/// Returns the position, and `true` if castling rights were dropped because the king or a rook is not on its initial
/// square.
fn read_start(line: &str, variant: Variant) -> Result<(VariantPosition, bool), LineError> {
    // Some programs omit the semicolon after the last operation.
    variant
        .game_start(line)
        .or_else(|err| variant.game_start(&format!("{line};")).map_err(|_| err))
}

/// Returns `true` if the game is over in `pos`, the last position of a line, by the rules of the variant, the 75-move
/// rule or threefold repetition. `identities` contains the identity (a hash) of each position of the line.
fn is_over(identities: &[u64], pos: &VariantPosition) -> bool {
    let mut identities = identities.to_vec();
    identities.sort_unstable();
    let has_threefold = identities.windows(3).any(|three| three[0] == three[2]);
    has_threefold || pos.is_game_over() || pos.halfmoves() >= SEVENTY_FIVE_MOVES
}

/// The length of the 75-move rule in half-moves: a game is drawn after this number of half-moves without a capture or a
/// pawn move.
const SEVENTY_FIVE_MOVES: u32 = 150;

/// Returns `true` if `epd` can be a starting position of Chess960. In such a position, all pawns are on their initial
/// squares, all pieces are behind them, and all castling rights exist.
pub(crate) fn is_chess960_start(epd: &str) -> bool {
    epd.contains("/pppppppp/8/8/8/8/PPPPPPPP/") && epd.ends_with(" w KQkq -")
}

/// An inclusive range of evaluations that a suite accepts. Mate scores are outside every range.
#[derive(Clone, PartialEq, Debug)]
pub struct EvalRange {
    /// The store of evaluations in which positions are looked up.
    pub evals: Arc<Evals>,
    /// The lowest and the highest accepted evaluation, in centipawns.
    pub centipawns: (i16, i16),
    /// Whether the range applies to the absolute value of the evaluation, that is, to the advantage of either side. If
    /// `false`, it applies to the evaluation from White's point of view.
    pub of_either: bool,
}

impl EvalRange {
    /// Returns the name of the option that sets the range: `eval-abs` if it applies to the absolute value of the
    /// evaluation, otherwise `eval`.
    pub(super) fn option(&self) -> &'static str {
        if self.of_either { "eval-abs" } else { "eval" }
    }

    /// Looks up the evaluation of a position, and checks whether it lies in this range.
    ///
    /// # Errors
    ///
    /// Returns an error if the evaluations cannot be read.
    pub(super) fn check_evaluation(&self, pos: &VariantPosition) -> Result<RangeCheck> {
        let Some(eval) = self.evals.of_position(pos)? else {
            return Ok(RangeCheck::Unknown);
        };
        let (low, high) = self.centipawns;
        let centipawns = eval.score.as_centipawns().filter(|own| {
            let own = if self.of_either { own.abs() } else { *own };
            low <= own && own <= high
        });
        Ok(centipawns.map_or(RangeCheck::LeftOut, |own| {
            let ce = pos.turn().fold_wb(own, -own);
            let depth = match eval.depth {
                0 => String::new(),
                depth => format!(" acd {depth};"),
            };
            RangeCheck::Kept(format!("{depth} ce {ce};"))
        }))
    }
}

/// The result of comparing the evaluation of a position with the range that a suite accepts.
pub(super) enum RangeCheck {
    /// The evaluation is in the range, or the suite does not filter by evaluation. Holds the EPD operations `acd` and
    /// `ce` of the evaluation, or an empty string without a filter.
    Kept(String),
    /// The evaluation is outside the range.
    LeftOut,
    /// The position has no evaluation.
    Unknown,
}

/// Returns a phrase for the end of an error message: that `count` positions were left out because they have no
/// evaluation. Returns an empty string if `count` is 0.
pub(super) fn without_evaluation(count: u64) -> String {
    match count {
        0 => String::new(),
        count => format!(" ({count} without an evaluation, which polybook evals adds)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_exit_comes_after_the_end_of_a_game() {
        let shuffle = |times: u64| Vec::from_iter((0..3 * times).map(|at| at % 3));
        let start = "4k3/8/8/8/8/8/8/4K2R w K - 0 1";
        for (variant, fen, identities, expected) in [
            (Variant::Standard, start, shuffle(2), false),
            (Variant::Standard, start, shuffle(3), true),
            (
                Variant::Standard,
                "4k3/8/8/8/8/8/8/4K2R w - - 149 99",
                vec![],
                false,
            ),
            (
                Variant::Standard,
                "4k3/8/8/8/8/8/8/4K2R w - - 150 99",
                vec![],
                true,
            ),
            (
                Variant::Crazyhouse,
                "4k3/8/8/8/8/8/8/4K2R[] w - - 151 99",
                vec![],
                true,
            ),
            (
                Variant::Standard,
                "4k3/8/8/8/8/8/8/4KB2 w - - 0 1",
                vec![],
                true,
            ),
            (
                Variant::Standard,
                "5k2/5P2/5K2/8/8/8/8/8 b - - 0 1",
                vec![],
                true,
            ),
            (
                Variant::KingOfTheHill,
                "4k3/8/8/8/4K3/8/8/7R b - - 0 1",
                vec![],
                true,
            ),
        ] {
            let pos = variant.parse_fen(fen).unwrap();
            assert_eq!(is_over(&identities, &pos), expected, "{fen} {identities:?}");
        }
    }

    #[test]
    fn a_score_on_a_bound_is_balanced() {
        for games in 1..=200 {
            for wins in (0..=games).filter(|wins| wins * 100 % games == 0) {
                let decisive = Results {
                    white: wins,
                    black: games - wins,
                    ..Results::default()
                };
                let bound = (wins * 100 / games) as f64;
                let balanced = |low: f64, high: f64| {
                    let balance = Some((low, high));
                    let suite = Suite {
                        balance,
                        ..Suite::default()
                    };
                    suite.keeps(Some(decisive))
                };
                assert!(balanced(bound, bound), "{wins} of {games}");
                assert!(!balanced(bound + 0.01, 100.0) && !balanced(0.0, bound - 0.01));
                let drawn = Results {
                    draws: wins,
                    black: games - wins,
                    ..Results::default()
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

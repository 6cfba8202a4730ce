//! Computes the weights of moves in a book from the results of the moves.
//!
//! [`MinimaxFactors`] lower the weights of moves whose continuations scored badly in the counted games.

use std::{cell::RefCell, path::Path};

use shakmaty::{Color, Move, Position, variant::VariantPosition};

use super::{
    move_graph::{GraphMove, MoveGraph},
    records::key_and_move,
};
use crate::{
    chess::position::{BookMove, Keyed},
    error::{Advice, Diagnosis, Error, Result},
    formats::{
        counts::{Counts, Finder, LookUpBuffers, MoveCount, MoveFilter},
        walk::{MoveSource, TreeMove},
    },
    games::results::{Results, Wdl},
    provenance::{option_text, switch, valued},
    storage::sort::Memory,
};

/// The numbers that a win, a draw and a loss add to the weight of a move. A win is a win of the side that plays the
/// move.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Factors {
    /// The number that a win adds.
    pub win: u32,
    /// The number that a draw adds.
    pub draw: u32,
    /// The number that a loss adds.
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
        let Wdl {
            wins,
            draws,
            losses,
        } = stats;
        let (win, draw, loss) = (
            u64::from(self.win),
            u64::from(self.draw),
            u64::from(self.loss),
        );
        // The sum of three products of numbers of 30 and 32 bits fits into 64 bits.
        if wins | draws | losses < 1 << 30 {
            return wins * win + draws * draw + losses * loss;
        }
        wins.saturating_mul(win)
            .saturating_add(draws.saturating_mul(draw))
            .saturating_add(losses.saturating_mul(loss))
    }
}

/// The scope in which weights are scaled down by a common factor. If a weight exceeds 65535, all weights in the same
/// scope are scaled down so that the largest becomes 65535.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Scale {
    /// All moves of the book, so that the weights of different positions stay comparable.
    #[default]
    Global,
    /// The moves of one position, so that fewer differences between weights are lost in rounding.
    Position,
}

/// Settings for computing the weights of moves from their results. The default is Polyglot's formula.
///
/// ```
/// use polybook::{book::Weights, results::Wdl};
///
/// let weights = Weights::default();
/// assert_eq!(weights.weight(Wdl { wins: 2, draws: 1, losses: 4 }), 5);
/// assert_eq!(weights.weight(Wdl { wins: 0, draws: 0, losses: 4 }), 0);
/// ```
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Weights {
    /// If set, every move gets the weight 1.
    pub uniform: bool,
    /// The numbers that a win, a draw and a loss add to a weight.
    pub factors: Factors,
    /// The moves that are scaled together if a weight exceeds 65535.
    pub scale: Scale,
    /// If set, lowers the weight of a move whose continuations scored badly in the counted games. A move gets the
    /// weight 0 if its score is lower than that of the best move in its position by at least this many percentage
    /// points. Default: `None`.
    pub minimax: Option<u8>,
}

impl Weights {
    /// Returns the weight, before scaling, of a move with the results `stats`. A book does not contain moves whose
    /// weight is 0. If [`uniform`](Weights::uniform) is set, the result is 1 for every move whose weight would be above
    /// 0.
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

    /// Scales `weight` to 16 bits. The result is at most 65535, and at least 1 if weights are scaled down.
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

/// Statistics about the option `--minimax`, which lowers the weights of moves whose continuations score badly.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, serde::Serialize)]
pub struct MinimaxSummary {
    /// The number of moves whose weight was lowered, but not to 0.
    pub lowered: u64,
    /// The number of moves whose weight became 0, so that the book does not contain them.
    pub left_out: u64,
    /// The number of moves in the book that keep their weight because moves with enough games do not reach their
    /// position.
    pub unreached: u64,
    /// The percentage that remains of the total weight of the moves in the starting position.
    pub first_percent: u8,
}

/// A table of the factors, from 0 to 1, with which the option `--minimax` multiplies the weights of moves. A move gets
/// a low factor if its continuations scored badly in the counted games.
///
/// The factors depend on values of positions, from 0 to 1. The value of a position is the highest cautious score of its
/// moves. The cautious score of a move is the smaller of two numbers: the lower bound of the confidence interval of its
/// score ([`Wdl::lower_bound`]), and 1 minus the value of the position after the move. The lower bound prevents a move
/// that scored well in only a few games from determining a value. Moves with fewer games than the filter requires are
/// ignored. Because moves can form cycles, only the next 256 half-moves are considered.
#[derive(Clone, Debug)]
pub(super) struct MinimaxFactors {
    /// Pairs of a key and a move, packed by [`key_and_move`] and sorted, each with the factor of the move. Moves that
    /// keep all of their weight have no entry.
    shares: Vec<(u128, f64)>,
    pub summary: MinimaxSummary,
}

impl MinimaxFactors {
    /// Computes the factors of all moves that are reached from the positions `starts` and were played in enough games.
    /// `counts` contains the games, and `filter` contains the required number of games. `base` returns the weight of a
    /// move before the factors are applied, by the key of the position, the move and its results; this weight is needed
    /// for the statistics. Error messages name `path`, the path of the book.
    ///
    /// The factor is `1 - loss / percent`, or 0 if this number is negative. `loss` is the value of the position before
    /// the move minus the score of the move, in percent of a point, and `percent` is the value of the option
    /// `--minimax`. The score of a move is the smaller of two numbers: the mean result of its games, and 1 minus the
    /// value of the position after the move.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file with counted games cannot be read, or if the positions and moves exceed the
    /// budget `memory`.
    pub(super) fn of(
        counts: &Counts,
        filter: &MoveFilter,
        base: &dyn Fn(u64, BookMove, Wdl) -> u64,
        percent: u8,
        starts: impl Iterator<Item = Result<VariantPosition>>,
        memory: &Memory,
        path: &Path,
    ) -> Result<MinimaxFactors> {
        let source = FrequentMoves::of(counts, filter.min_game)?;
        let selects = |key, turn, count: &MoveCount| {
            base(key, count.mv, count.stats) > 0 && filter.selects(turn, count.stats)
        };
        let (positions, moves, selected) = source.sizes(counts, selects)?;
        source.refuse_large(
            FrequentGraph::bytes(positions, moves),
            "minimax",
            memory,
            path,
        )?;
        let describe = |pos: &Keyed<VariantPosition>| {
            let moves = source.kept(pos)?.into_iter();
            let moves = moves.map(|(count, mv)| {
                let (stats, sure) = (count.stats, count.stats.lower_bound());
                (count.mv, mv, FrequentMove { stats, sure })
            });
            Ok((pos.position().turn(), moves.collect()))
        };
        let graph = FrequentGraph::build(&source, starts, positions, memory.share(4), describe)?;
        let values = expected_scores(&graph);
        let mut shares = Vec::new();
        for (number, node) in graph.nodes().iter().enumerate() {
            for edge in graph.edges(number) {
                let score = edge.data.stats.score().min(edge.score_bound(&values));
                let share = 1.0 - (values[number] - score) * 100.0 / f64::from(percent);
                if share < 1.0 {
                    shares.push((key_and_move(node.key, edge.mv), share.max(0.0)));
                }
            }
        }
        shares.sort_unstable_by_key(|(place, _)| *place);
        let mut lowered = MinimaxFactors {
            shares,
            summary: MinimaxSummary::default(),
        };
        lowered.summary = lowered.summary(&graph, filter, base, selected);
        Ok(lowered)
    }

    /// Counts the moves of `graph` whose weights the factors change. `filter` and `base` determine which moves the book
    /// contains, and the weights before the factors are applied. `selected` is the number of moves in the book before
    /// the factors are applied, including moves in positions that are not nodes of the graph.
    fn summary(
        &self,
        graph: &FrequentGraph,
        filter: &MoveFilter,
        base: &dyn Fn(u64, BookMove, Wdl) -> u64,
        selected: u64,
    ) -> MinimaxSummary {
        let mut summary = MinimaxSummary {
            unreached: selected,
            first_percent: self.first_percent(graph, filter, base),
            ..MinimaxSummary::default()
        };
        for (number, node) in graph.nodes().iter().enumerate() {
            for edge in graph.edges(number) {
                let weight = base(node.key, edge.mv, edge.data.stats);
                if weight > 0 && filter.selects(node.data, edge.data.stats) {
                    let lowered = self.lowered(node.key, edge.mv, weight);
                    summary.lowered += u64::from(0 < lowered && lowered < weight);
                    summary.left_out += u64::from(lowered == 0);
                    summary.unreached = summary.unreached.saturating_sub(1);
                }
            }
        }
        summary
    }

    /// Returns how many percent of the total weight of the starting position's moves remain after the factors are
    /// applied, or 100 if the book contains none of these moves. The starting position is the first node of `graph`.
    /// `filter` and `base` determine the weights before the factors are applied.
    fn first_percent(
        &self,
        graph: &FrequentGraph,
        filter: &MoveFilter,
        base: &dyn Fn(u64, BookMove, Wdl) -> u64,
    ) -> u8 {
        let Some(node) = graph.nodes().first() else {
            return 100;
        };
        let (mut all, mut left) = (0_u64, 0);
        for edge in graph.edges(0) {
            if filter.selects(node.data, edge.data.stats) {
                let weight = base(node.key, edge.mv, edge.data.stats);
                all = all.saturating_add(weight);
                left += self.lowered(node.key, edge.mv, weight);
            }
        }
        match all {
            0 => 100,
            all => (100.0 * left as f64 / all as f64) as u8,
        }
    }

    /// Multiplies `weight` by the factor of the move `mv` in the position with the key `key`. The result is at least 1,
    /// unless the weight or the factor is 0. Returns `weight` unchanged if the table has no factor for the move.
    pub(super) fn lowered(&self, key: u64, mv: BookMove, weight: u64) -> u64 {
        let move_of = |(place, _): &(u128, f64)| *place;
        match self
            .shares
            .binary_search_by_key(&key_and_move(key, mv), move_of)
        {
            Ok(found) if self.shares[found].1 == 0.0 => 0,
            Ok(found) => {
                let left = (weight as f64 * self.shares[found].1).round();
                (left as u64).max(weight.min(1))
            }
            Err(_) => weight,
        }
    }
}

/// A graph of positions and the frequent moves between them. A move is frequent if it has at least the required number
/// of games. The data of a node is the side to move.
type FrequentGraph = MoveGraph<Color, FrequentMove>;

/// The data of a move in a [`FrequentGraph`].
struct FrequentMove {
    stats: Wdl,
    /// The lower bound of the confidence interval of the score.
    sure: f64,
}

impl GraphMove<FrequentMove> {
    /// Returns an upper bound on the score of this move for the side that plays it: 1 minus the value of the position
    /// after the move. `values` contains the values of the graph's positions. If the graph does not contain the
    /// position after the move, returns 1.
    fn score_bound(&self, values: &[f64]) -> f64 {
        1.0 - self.after(values).unwrap_or(&0.0)
    }
}

/// Computes the value of each position in the graph: the score, from 0 to 1, that the side to move can expect if it
/// plays well. Returns the values in the order of the graph's nodes.
fn expected_scores(graph: &FrequentGraph) -> Vec<f64> {
    graph.values(vec![0.0; graph.nodes().len()], |number, values| {
        let moves = graph.edges(number).iter();
        let scores = moves.map(|edge| edge.data.sure.min(edge.score_bound(values)));
        scores.fold(0.0, f64::max)
    })
}

/// A source of moves for a walk through positions. It returns the legal moves of a position that were played in at
/// least `min_game` games.
pub(super) struct FrequentMoves<'a> {
    finder: Finder<'a>,
    min_game: u64,
    scratch: RefCell<LookUpBuffers>,
}

impl<'a> FrequentMoves<'a> {
    pub(super) fn of(counts: &'a Counts, min_game: u64) -> Result<FrequentMoves<'a>> {
        Ok(FrequentMoves {
            finder: counts.finder()?,
            min_game,
            scratch: RefCell::default(),
        })
    }

    /// Returns an error if a graph that needs `bytes` bytes exceeds the budget `memory`. The error message names
    /// `path`, the path of the book, and `operation`, the operation that needs the graph.
    pub(super) fn refuse_large(
        &self,
        bytes: usize,
        operation: &str,
        memory: &Memory,
        path: &Path,
    ) -> Result<()> {
        if bytes <= memory.bytes {
            return Ok(());
        }
        let problem = Diagnosis::new(format!(
            "{operation} needs {} MiB more memory for the moves that were played in at least {} games",
            (bytes - memory.bytes).div_ceil(1 << 20),
            self.min_game
        ));
        let problem = problem
            .advise(Advice::larger("memory"))
            .advise(Advice::larger("min-game"));
        Err(Error::too_large(path, problem))
    }

    fn keeps(&self, stats: Wdl) -> bool {
        stats.games() >= self.min_game
    }

    /// Returns an upper bound on the size of a graph of the frequent moves in `counts`: the number of positions with a
    /// move that was played in at least `min_game` games, and the number of such moves. Also returns for how many of
    /// these moves `selects` returns `true`. The arguments of `selects` are the key of the position, the side to move,
    /// and the move with its results.
    pub(super) fn sizes(
        &self,
        counts: &Counts,
        selects: impl Fn(u64, Color, &MoveCount) -> bool,
    ) -> Result<(usize, usize, u64)> {
        let (mut positions, mut moves, mut selected) = (0, 0, 0);
        for shard in 0..counts.shard_count() {
            counts.for_each_position(shard, |key, turn, counts| {
                let kept = || counts.iter().filter(|count| self.keeps(count.stats));
                if key != 0 && kept().count() > 0 {
                    positions += 1;
                    moves += kept().count();
                    selected += kept().filter(|count| selects(key, turn, count)).count() as u64;
                }
            })?;
        }
        Ok((positions, moves, selected))
    }

    pub(super) fn kept(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<(MoveCount, Move)>> {
        let mut scratch = self.scratch.borrow_mut();
        let found = self
            .finder
            .find(self.finder.range_of(pos.key()), &mut scratch)?;
        let moves = found.as_ref().map_or(&[][..], |found| found.moves).iter();
        let kept = moves.filter(|count| self.keeps(count.stats));
        let legal = kept.filter_map(|count| Some((*count, count.mv.to_move(pos.position())?)));
        Ok(legal.collect())
    }
}

impl MoveSource for FrequentMoves<'_> {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        let kept = self.kept(pos)?.into_iter();
        Ok(kept
            .map(|(count, mv)| {
                let results = Results::from_side(pos.position().turn(), count.stats);
                TreeMove::without_evaluation(mv, count.stats.games(), Some(results))
            })
            .collect())
    }

    fn position_id(&self, pos: &Keyed<VariantPosition>) -> u64 {
        pos.exact_identity()
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

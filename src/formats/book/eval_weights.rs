//! Computes the weights of book moves from evaluations of positions.
//!
//! [`EvaluatedMoves`] finds the values of the moves by minimax, and [`EvalWeights`] converts the values to weights.

use std::{fmt, path::Path, sync::Arc};

use rustc_hash::FxHashMap;
use shakmaty::{Move, Position, variant::VariantPosition};

use super::{
    lines::{LegalMoves, PlayableMoves},
    move_graph::{GraphMove, MoveGraph, NodeData},
    reader::Book,
    records::{Entry, key_and_move},
    weights::{FrequentMoves, Weights},
};
use crate::{
    chess::position::{BookMove, Keyed, Variant},
    error::{Advice, Diagnosis, Error, Result},
    formats::{
        counts::{Counts, MoveCount, MoveFilter},
        evals::{Evals, Value},
    },
    progress::Meter,
    storage::sort::Memory,
};

/// The loss of expected score that halves the weight of a move: one percentage point, which is about eleven centipawns
/// in an equal position.
const HALVING_LOSS: f64 = 0.01;

/// The minimum total weight of a position in which every move has a value. With a smaller total, such as that of two
/// moves with a few games each, integer weights could not express the intended ratios.
const MIN_EVALUATED_SUM: u64 = 1000;

/// A rule that computes the weights of moves from a store of evaluations.
///
/// The value of a move for the side that plays it is the value of the position after it. The value of a position is the
/// best of its evaluation and the values of its book moves, so evaluations of later positions influence earlier moves.
/// A position without an evaluation has a value only if all of its book moves have one. The value of a move is ignored
/// if it comes from an evaluation less than half as deep as that of the position, unless one of the two is a forced
/// mate. When a book is filtered, moves of weight 0 are ignored. In cycles, only the next 256 half-moves are
/// considered.
///
/// Values are converted to expected scores from 0 to 1. A weight is halved for each percentage point by which the
/// expected score of the move is lower than that of the best move of the book in its position. Moves without a value
/// keep their weights.
#[derive(Clone, PartialEq, Debug)]
pub struct EvalWeights {
    evals: Arc<Evals>,
    times_results: bool,
}

/// The numbers of moves that got their weights from evaluations, and of moves that did not.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, serde::Serialize)]
pub struct EvalWeightsSummary {
    /// The number of moves whose weights come from evaluations.
    pub evaluated: u64,
    /// The number of moves that keep their weights because they have no value.
    pub unevaluated: u64,
    /// The number of moves that keep their weights because no line of the book reaches their position.
    pub unreached: u64,
}

impl EvalWeights {
    /// Creates a rule that computes the weights of moves from the evaluations in `evals`. In each position, the total
    /// weight of the moves with a known value is redistributed among these moves.
    pub fn new(evals: impl Into<Arc<Evals>>) -> EvalWeights {
        EvalWeights {
            evals: evals.into(),
            times_results: false,
        }
    }

    /// Sets whether the rule multiplies each weight by a factor from the evaluations, instead of redistributing the
    /// total weight of a position. The best move of a position then keeps its weight. Default: `false`.
    #[must_use]
    pub fn times_results(self, times_results: bool) -> EvalWeights {
        EvalWeights {
            times_results,
            ..self
        }
    }

    /// Returns a description of the formula that computes weights. `results` describes the formula without evaluations.
    /// The header of a book contains this description.
    pub(super) fn formula(&self, results: &str) -> String {
        if self.times_results {
            format!(
                "{results}, halved for each percent of expected score that evaluations say a move loses"
            )
        } else {
            format!(
                "evaluations, halved for each percent of expected score that a move loses; without one {results}"
            )
        }
    }

    /// Changes the weights of the moves of one position. Each element of `moves` contains the weight of a move and, if
    /// known, its expected score from evaluations.
    ///
    /// The factor of a move is 2^(-loss / [`HALVING_LOSS`]), where the loss is the difference between its expected
    /// score and that of the best move. By default, the total weight of the moves with an expected score is divided
    /// among them in proportion to their factors. If the rule [multiplies](EvalWeights::times_results) weights instead,
    /// each weight is multiplied by its factor. Moves without an expected score keep their weights. If all moves have
    /// an expected score, the total to divide is raised to at least [`MIN_EVALUATED_SUM`]. A weight above 0 stays above
    /// 0.
    pub(super) fn weigh(&self, moves: &mut [(u64, Option<f64>)]) {
        let scores = moves.iter().filter_map(|(_, score)| *score);
        let Some(best) = scores.clone().reduce(f64::max) else {
            return;
        };
        let factor = |score: f64| ((score - best) / HALVING_LOSS).exp2();
        let evaluated = scores.clone().count() as u64;
        let factors: f64 = scores.map(factor).sum();
        if self.times_results {
            for (weight, score) in moves {
                if let Some(score) = score.filter(|score| *score < best) {
                    let product = (*weight as f64 * factor(score)).round() as u64;
                    *weight = product.max((*weight).min(1));
                }
            }
            return;
        }
        let is_complete = evaluated == moves.len() as u64;
        let least = if is_complete { MIN_EVALUATED_SUM } else { 1 };
        let mut scored: Vec<(&mut u64, f64)> = moves
            .iter_mut()
            .filter_map(|(weight, score)| Some((weight, (*score)?)))
            .collect();
        let sum = scored
            .iter()
            .fold(0, |sum: u64, (weight, _)| sum.saturating_add(**weight));
        let sum = sum.max(least).max(evaluated);
        // The best move gets the remainder, so that rounding cannot make another move heavier.
        let (mut left, mut heaviest) = (sum, 1);
        let first_best = scored.iter().position(|(_, score)| *score == best);
        for (number, (weight, score)) in scored.iter_mut().enumerate() {
            if Some(number) != first_best {
                let share = (sum as f64 * (factor(*score) / factors)).floor() as u64;
                **weight = share.max(1);
                left = left.saturating_sub(**weight);
                heaviest = heaviest.max(**weight);
            }
        }
        if let Some(number) = first_best {
            *scored[number].0 = left.max(heaviest);
        }
    }

    /// Computes weights from evaluations for the moves in `counts` that were played in enough games, in all positions
    /// that such moves reach from `starts`. `filter` and `weights` select the moves of the book and determine their
    /// weights without evaluations. Error messages name `path`, the path of the book.
    ///
    /// # Errors
    ///
    /// Returns an error if the store or a temporary file cannot be read, or if the positions and moves exceed the
    /// budget `memory`.
    pub(super) fn of_counts(
        &self,
        counts: &Counts,
        filter: &MoveFilter,
        weights: &Weights,
        starts: impl Iterator<Item = Result<VariantPosition>>,
        memory: &Memory,
        path: &Path,
    ) -> Result<CountedEvalWeights> {
        let source = FrequentMoves::of(counts, filter.min_game)?;
        let is_kept = |_, turn, count: &MoveCount| {
            weights.weight(count.stats) > 0 && filter.selects(turn, count.stats)
        };
        let (positions, moves, kept) = source.sizes(counts, is_kept)?;
        let bytes = EvalGraph::bytes(positions, moves) + positions * VALUE_SIZE;
        source.refuse_large(bytes, "weighing moves by evaluations", memory, path)?;
        let describe = |pos: &Keyed<VariantPosition>| {
            let turn = pos.position().turn();
            let moves = source.kept(pos)?.into_iter();
            let moves = moves.map(|(count, mv)| {
                let weight = weights.weight(count.stats);
                (count.mv, mv, weight, filter.selects(turn, count.stats))
            });
            self.describe(pos, moves)
        };
        let graph = EvalGraph::build(&source, starts, positions, memory.share(4), describe)?;
        let moves = EvaluatedMoves::of(&graph);
        let mut table = Vec::new();
        let mut summary = EvalWeightsSummary::default();
        let mut reached = 0;
        for (number, node) in graph.nodes().iter().enumerate() {
            let kept = graph.edges(number).iter().filter(|edge| edge.data.is_kept);
            let scored = kept.map(|edge| (edge, moves.score(node.key, edge.mv)));
            // A move without a value and without a weight is not in the book.
            let scored = scored.filter(|(edge, score)| edge.data.weight > 0 || score.is_some());
            let scored: Vec<(&GraphMove<EvalMove>, Option<f64>)> = scored.collect();
            let weighed = scored
                .iter()
                .map(|(edge, score)| (edge.data.weight, *score));
            let mut weighed: Vec<(u64, Option<f64>)> = weighed.collect();
            self.weigh(&mut weighed);
            for ((edge, score), (weight, _)) in scored.iter().zip(&weighed) {
                reached += u64::from(edge.data.weight > 0);
                if score.is_some() {
                    table.push((key_and_move(node.key, edge.mv), *weight));
                    summary.evaluated += u64::from(*weight > 0);
                } else {
                    summary.unevaluated += 1;
                }
            }
        }
        table.sort_unstable();
        summary.unreached = kept - reached;
        Ok(CountedEvalWeights {
            rule: self.clone(),
            weights: table,
            values: moves.values,
            summary,
        })
    }

    /// Finds the values of the moves of `book` in the positions that lines of the book reach from the starting position
    /// of `variant`. Each position of `book` must contain a move at most once, except for two spellings of castling.
    /// Records of weight 0 are ignored, because their moves must not be played.
    ///
    /// # Errors
    ///
    /// Returns an error if the book, the store or a temporary file cannot be read, or if the positions and moves of the
    /// book exceed the budget `memory`.
    pub(super) fn of_book(
        &self,
        book: &Book,
        variant: Variant,
        memory: &Memory,
        meter: &Meter,
    ) -> Result<EvaluatedMoves> {
        let records = book.len_without_header()?;
        let moves = PlayableMoves::within(book, meter, memory.bytes / 4)?;
        let positions = moves.positions();
        let bytes = EvalGraph::bytes(positions, records as usize) + positions * VALUE_SIZE;
        if bytes > memory.bytes {
            let problem = Diagnosis::new(format!(
                "weighing moves by evaluations needs {} MiB more memory",
                (bytes - memory.bytes).div_ceil(1 << 20),
            ));
            let problem = problem.advise(Advice::larger("memory"));
            return Err(Error::too_large(book.path(), problem));
        }
        let legal = LegalMoves::new(moves, records);
        let describe = |pos: &Keyed<VariantPosition>| {
            let mut moves: Vec<(BookMove, Move, u64, bool)> = Vec::new();
            let played = legal.of(pos)?.into_iter();
            for (entry, mv) in played.filter(|(entry, _)| entry.weight > 0) {
                let spelled = BookMove::from(mv);
                match moves.iter_mut().find(|(other, ..)| *other == spelled) {
                    Some((_, _, weight, _)) => *weight += u64::from(entry.weight),
                    None => moves.push((spelled, mv, entry.weight.into(), true)),
                }
            }
            self.describe(pos, moves.into_iter())
        };
        let starts = [Ok(variant.start())].into_iter();
        let graph = EvalGraph::build(&legal, starts, positions, memory.share(4), describe)?;
        Ok(EvaluatedMoves::of(&graph))
    }

    /// Returns the data and the moves of the position `pos` for a graph. Each of `moves` contains the move, its weight
    /// without evaluations, and whether the book contains it.
    fn describe(
        &self,
        pos: &Keyed<VariantPosition>,
        moves: impl Iterator<Item = (BookMove, Move, u64, bool)>,
    ) -> Result<NodeData<Option<Value>, EvalMove>> {
        let own = self.evals.value(pos.position())?;
        let moves = moves.map(|(book_move, mv, weight, is_kept)| {
            let mut after = pos.position().clone();
            after.play_unchecked(mv);
            let data = EvalMove {
                after: self.evals.value(&after)?,
                weight,
                is_kept,
            };
            Ok((book_move, mv, data))
        });
        Ok((own, moves.collect::<Result<_>>()?))
    }
}

/// Formats the rule as a command-line option. The header of a book contains this text.
impl fmt::Display for EvalWeights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = if self.times_results { "both" } else { "evals" };
        write!(f, "--weights {source}")
    }
}

/// The weights that moves in counted games get from evaluations.
#[derive(Clone, Debug)]
pub(super) struct CountedEvalWeights {
    pub rule: EvalWeights,
    /// Pairs of a key and a move, packed by [`key_and_move`] and sorted, each with the weight of the move before
    /// scaling.
    weights: Vec<(u128, u64)>,
    pub values: Arc<FxHashMap<u64, Value>>,
    pub summary: EvalWeightsSummary,
}

impl CountedEvalWeights {
    /// Returns the weight of the move `mv` in the position with the key `key` before scaling. Returns `weight` if the
    /// move has no value.
    pub(super) fn weight(&self, key: u64, mv: BookMove, weight: u64) -> u64 {
        found(&self.weights, key, mv).unwrap_or(weight)
    }
}

/// A graph of the positions and moves of a book. The data of a node is the evaluation of the position for the side to
/// move, or `None` if it has no evaluation.
type EvalGraph = MoveGraph<Option<Value>, EvalMove>;

/// The data of a move in an [`EvalGraph`].
struct EvalMove {
    /// The evaluation of the position after the move, for the side to move in that position.
    after: Option<Value>,
    /// The weight of the move without evaluations.
    weight: u64,
    /// Whether the book keeps the move. Otherwise, only the graph contains it.
    is_kept: bool,
}

impl GraphMove<EvalMove> {
    /// Returns the value of this move for the side that plays it. `values` contains the values of the graph's
    /// positions.
    fn value(&self, values: &[Option<Value>]) -> Option<Value> {
        let after = self.after(values).copied().unwrap_or(self.data.after);
        after.map(Value::for_opponent)
    }
}

/// The size in bytes of an entry of [`EvaluatedMoves::values`], including the free space of the table.
const VALUE_SIZE: usize = 32;

/// The values of the positions and moves of a book, as far as they are known from evaluations.
pub(super) struct EvaluatedMoves {
    /// Pairs of a key and a move, packed by [`key_and_move`] and sorted, each with the expected score of the move.
    scores: Vec<(u128, f64)>,
    /// The keys of the positions that lines of the book reach and in which the book has moves, sorted ascending.
    reached: Vec<u64>,
    /// The values, for the side to move, of the positions in which the book has moves, by position key.
    pub values: Arc<FxHashMap<u64, Value>>,
}

impl EvaluatedMoves {
    fn of(graph: &EvalGraph) -> EvaluatedMoves {
        let values = position_values(graph);
        let mut scores = Vec::new();
        for (number, node) in graph.nodes().iter().enumerate() {
            let edges = graph.edges(number).iter();
            scores.extend(edges.filter_map(|edge| {
                let value = edge.value(&values)?;
                Some((key_and_move(node.key, edge.mv), value.expected_score()))
            }));
        }
        scores.sort_unstable_by_key(|(place, _)| *place);
        let mut reached = Vec::from_iter(graph.nodes().iter().map(|node| node.key));
        reached.sort_unstable();
        let nodes = graph.nodes().iter().zip(values);
        let values = nodes.filter_map(|(node, value)| Some((node.key, value?)));
        EvaluatedMoves {
            scores,
            reached,
            values: Arc::new(values.collect()),
        }
    }

    /// Returns the expected score, from 0 to 1, of the move `mv` in the position with the key `key`. Returns `None` if
    /// the move has no value.
    pub(super) fn score(&self, key: u64, mv: BookMove) -> Option<f64> {
        found(&self.scores, key, mv)
    }

    /// Adds the moves of `entries`, the records of one position, to the statistics in `summary`. Ignores moves of
    /// weight 0.
    pub(super) fn count(&self, entries: &[Entry], summary: &mut EvalWeightsSummary) {
        for entry in entries.iter().filter(|entry| entry.weight > 0) {
            let number = if self.score(entry.key, entry.mv).is_some() {
                &mut summary.evaluated
            } else if self.reaches(entry.key) {
                &mut summary.unevaluated
            } else {
                &mut summary.unreached
            };
            *number += 1;
        }
    }

    /// Returns `true` if a line of the book reaches the position with the key `key`.
    fn reaches(&self, key: u64) -> bool {
        self.reached.binary_search(&key).is_ok()
    }
}

/// Looks up the move `mv` of the position with the key `key` in a sorted table. Returns `None` if the table does not
/// contain the move.
fn found<T: Copy>(table: &[(u128, T)], key: u64, mv: BookMove) -> Option<T> {
    let place = key_and_move(key, mv);
    let index = table.binary_search_by_key(&place, |(place, _)| *place);
    index.ok().map(|index| table[index].1)
}

/// Computes the value of each position in the graph for the side to move, in the order of the graph's nodes. The value
/// is the best of the position's evaluation and the values of its moves. The value of a move is ignored if it may not
/// be [compared](Value::counts_for) with the position's evaluation, because it comes from a much shallower one. A
/// position without an evaluation has a value only if each of its moves leads to a position that has a value, or from
/// which moves of the graph continue.
fn position_values(graph: &EvalGraph) -> Vec<Option<Value>> {
    let nodes = graph.nodes();
    // If a move has no value, the best of the other moves may be a mistake, which says nothing about the position.
    let is_unknown = graph.values(vec![false; nodes.len()], |number, is_unknown| {
        let leads_nowhere = |edge: &GraphMove<EvalMove>| match edge.after(is_unknown) {
            Some(is_unknown) => *is_unknown,
            None => edge.data.after.is_none(),
        };
        nodes[number].data.is_none() && graph.edges(number).iter().any(leads_nowhere)
    });
    let first = nodes.iter().map(|node| node.data).collect();
    graph.values(first, |number, values| {
        if is_unknown[number] {
            return None;
        }
        let moves = graph.edges(number).iter();
        let moves = moves.filter_map(|edge| edge.value(values));
        let own = nodes[number].data;
        let moves = moves.filter(|mv| own.is_none_or(|own| mv.counts_for(own)));
        moves.chain(own).max()
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;
    use crate::formats::evals::Score;

    fn rule(times_results: bool) -> EvalWeights {
        let dir = tempfile::tempdir().unwrap();
        let (pgn, out) = (dir.path().join("a.pgn"), dir.path().join("a.evals"));
        std::fs::write(&pgn, "1. e4 {[%eval 0.1]} *").unwrap();
        let make = crate::formats::evals::MakeEvals::new([crate::games::pgn::Input::file(&pgn)]);
        make.run(&out, crate::formats::evals::EvalsFormat::Store)
            .unwrap();
        EvalWeights::new(Evals::open(&out).unwrap()).times_results(times_results)
    }

    #[test]
    fn weights_are_halved_for_each_lost_percent() {
        let weighed = |times_results, moves: &[(u64, Option<f64>)]| {
            let mut moves = moves.to_vec();
            rule(times_results).weigh(&mut moves);
            Vec::from_iter(moves.into_iter().map(|(weight, _)| weight))
        };
        let moves = [(10, Some(0.01)), (4000, Some(0.0)), (990, Some(0.01))];
        assert_eq!(weighed(false, &moves), [2000, 1000, 2000]);
        assert_eq!(weighed(true, &moves), [10, 2000, 990]);
        // A move without a value keeps its weight and, because the others share theirs, its part of the whole.
        let partly = [(10, Some(0.0)), (70, None), (50, Some(0.01))];
        assert_eq!(weighed(false, &partly), [20, 70, 40]);
        assert_eq!(weighed(true, &partly), [5, 70, 50]);
        let alone = [(5, Some(0.1)), (9, None)];
        assert_eq!(weighed(false, &alone), [5, 9]);
        assert_eq!(weighed(true, &alone), [5, 9]);
        // Small sums do not hide small losses if no move has to keep its weight.
        let small = [(0, Some(0.01)), (2, Some(0.0)), (1, None)];
        assert_eq!(weighed(false, &small[..2]), [667, 333]);
        assert_eq!(weighed(false, &small), [1, 1, 1]);
        // A bad move keeps a weight above 0, and only a move that had a weight gets one by multiplication.
        assert_eq!(
            weighed(false, &[(99, Some(0.9)), (99, Some(0.1))]),
            [999, 1]
        );
        assert_eq!(
            weighed(true, &[(99, Some(0.9)), (99, Some(0.1)), (0, Some(0.1))]),
            [99, 1, 0]
        );
        assert_eq!(weighed(false, &[(7, None), (0, None)]), [7, 0]);
        let huge = [(u64::MAX, Some(0.5)), (u64::MAX, Some(0.5))];
        assert_eq!(weighed(true, &huge), [u64::MAX; 2]);
        assert!(
            weighed(false, &huge)
                .iter()
                .all(|weight| *weight > u64::MAX / 4)
        );
    }

    proptest! {
        /// The best move is the heaviest of those with a value, and their sum is kept.
        #[test]
        fn a_better_move_is_not_lighter(
            moves in proptest::collection::vec((0..9999_u64, proptest::option::weighted(0.8, 0.0..=1.0_f64)), 1..12),
        ) {
            let mut weighed = moves.clone();
            rule(false).weigh(&mut weighed);
            let scored = Vec::from_iter(weighed.iter().filter_map(|(weight, score)| Some(((*score)?, *weight))));
            for (score, weight) in &scored {
                prop_assert!(*weight > 0);
                for (other, other_weight) in &scored {
                    prop_assert!(score <= other || weight >= other_weight, "{weighed:?}");
                }
            }
            for (before, after) in moves.iter().zip(&weighed) {
                prop_assert!(before.1.is_some() || before.0 == after.0);
            }
        }
    }

    /// A random graph: for each position, its evaluation, and its moves. A move leads to another position, or to a leaf
    /// with or without an evaluation. Evaluations are seen from the side to move in their position.
    type RandomGraph = Vec<(Option<RandomEval>, Vec<RandomMove>)>;

    /// A score and a depth. Scores from [`MATE`] on, and their negatives, are forced mates.
    type RandomEval = (i64, u8);

    #[derive(Copy, Clone, Debug)]
    enum RandomMove {
        Inner(usize),
        Leaf(Option<RandomEval>),
    }

    const MATE: i64 = 1000;

    fn value((score, depth): RandomEval) -> Value {
        let score = match score {
            MATE.. => Score::mate(3).unwrap(),
            ..=-1000 => Score::mate(-3).unwrap(),
            centipawns => Score::centipawns(centipawns),
        };
        Value::new(score, depth)
    }

    fn graph_of(random: &RandomGraph) -> EvalGraph {
        let lists = random.iter().map(|(own, moves)| {
            let moves = moves.iter().map(|mv| {
                let (after, inner) = match *mv {
                    RandomMove::Leaf(after) => (after.map(value), None),
                    // The evaluation of an inner position belongs to its node.
                    RandomMove::Inner(after) => (random[after].0.map(value), Some(after)),
                };
                let data = EvalMove {
                    after,
                    weight: 1,
                    is_kept: true,
                };
                (data, inner)
            });
            (own.map(value), moves.collect())
        });
        EvalGraph::of_lists(lists)
    }

    /// Searches all lines of up to `depth` half-moves from the position `number` by negamax, top down, and returns the
    /// value for the side to move. `known` contains results of earlier calls.
    fn searched(
        random: &RandomGraph,
        unknown: &[bool],
        number: usize,
        depth: usize,
        known: &mut HashMap<(usize, usize), Option<RandomEval>>,
    ) -> Option<RandomEval> {
        let (own, moves) = &random[number];
        if unknown[number] || depth == 0 {
            return *own;
        }
        if let Some(found) = known.get(&(number, depth)) {
            return *found;
        }
        let mut best = *own;
        for mv in moves {
            let after = match *mv {
                RandomMove::Inner(after) => searched(random, unknown, after, depth - 1, known),
                RandomMove::Leaf(after) => after,
            };
            // A move loses its say if the position was examined more than twice as deeply, except about mates.
            if let Some((score, plies)) = after
                && own.is_none_or(|(own_score, own_plies)| {
                    own_plies.div_ceil(2) <= plies || own_score.abs().max(score.abs()) >= MATE
                })
            {
                best = best.max(Some((-score, plies)));
            }
        }
        known.insert((number, depth), best);
        best
    }

    /// Returns for each position whether a line of positions without evaluations leads from it to a leaf without an
    /// evaluation.
    fn unknown(random: &RandomGraph) -> Vec<bool> {
        let reaches = |start: usize| {
            let mut seen = vec![false; random.len()];
            let mut open = vec![start];
            while let Some(number) = open.pop() {
                let (own, moves) = &random[number];
                if own.is_some() || std::mem::replace(&mut seen[number], true) {
                    continue;
                }
                for mv in moves {
                    match *mv {
                        RandomMove::Inner(after) => open.push(after),
                        RandomMove::Leaf(None) => return true,
                        RandomMove::Leaf(Some(_)) => (),
                    }
                }
            }
            false
        };
        (0..random.len()).map(reaches).collect()
    }

    fn has_cycle(random: &RandomGraph) -> bool {
        let inner = |number: usize| {
            random[number].1.iter().filter_map(|mv| match *mv {
                RandomMove::Inner(after) => Some(after),
                RandomMove::Leaf(_) => None,
            })
        };
        (0..random.len()).any(|start| {
            let mut seen = vec![false; random.len()];
            let mut open = Vec::from_iter(inner(start));
            while let Some(number) = open.pop() {
                if number == start {
                    return true;
                }
                if !std::mem::replace(&mut seen[number], true) {
                    open.extend(inner(number));
                }
            }
            false
        })
    }

    fn compare(random: &RandomGraph) {
        let found = position_values(&graph_of(random));
        let unknown = unknown(random);
        let mut known = HashMap::new();
        for (number, found) in found.into_iter().enumerate() {
            let expected = searched(random, &unknown, number, 256, &mut known);
            assert_eq!(found, expected.map(value), "{number}: {random:?}");
        }
    }

    /// Creates a random graph from numbers. `next` returns a random number below its argument.
    fn random_graph(mut next: impl FnMut(usize) -> usize) -> RandomGraph {
        let size = 1 + next(12);
        // Some graphs have few evaluations, and others nearly all.
        let share = 1 + next(10);
        let eval = |next: &mut dyn FnMut(usize) -> usize| {
            (next(10) < share).then(|| {
                let score = match next(20) {
                    0 => MATE,
                    1 => -MATE,
                    _ => next(600) as i64 - 300,
                };
                (score, [1, 9, 10, 19, 20, 40][next(6)])
            })
        };
        (0..size)
            .map(|_| {
                let own = eval(&mut next);
                let moves = (0..1 + next(4)).map(|_| match next(3) {
                    0 => RandomMove::Leaf(eval(&mut next)),
                    _ => RandomMove::Inner(next(size)),
                });
                let moves = moves.collect();
                (own, moves)
            })
            .collect()
    }

    #[test]
    fn values_are_those_of_a_search_of_all_lines() {
        let mut state = 38_u64;
        let mut next = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let mut with_cycles = 0;
        while with_cycles < 200 {
            let random = random_graph(&mut next);
            with_cycles += u32::from(has_cycle(&random));
            compare(&random);
        }
    }

    proptest! {
        #[test]
        fn values_of_any_graph_are_those_of_a_search(numbers in proptest::collection::vec(any::<u16>(), 300)) {
            let mut numbers = numbers.into_iter().cycle();
            compare(&random_graph(|below| usize::from(numbers.next().unwrap()) % below));
        }
    }

    #[test]
    fn a_leaf_decides_about_the_first_move() {
        use RandomMove::{Inner, Leaf};
        // The second of the two first moves has the better evaluation, but the opponent's best reply refutes this move.
        let random = vec![
            (Some((20, 10)), vec![Inner(1), Inner(2)]),
            (Some((-10, 10)), vec![Leaf(Some((15, 10)))]),
            (Some((-40, 10)), vec![Leaf(Some((30, 10))), Inner(3)]),
            (None, vec![Leaf(Some((200, 10))), Leaf(Some((120, 10)))]),
        ];
        compare(&random);
        let graph = graph_of(&random);
        let values = position_values(&graph);
        let of_moves = graph.edges(0).iter().map(|edge| edge.value(&values));
        let expected = [10, -120].map(|score| Some(value((score, 10))));
        assert_eq!(Vec::from_iter(of_moves), expected);
        assert_eq!(values[0], Some(value((20, 10))));
    }
}

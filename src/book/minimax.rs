//! Lowers the weights of moves whose continuations, according to the counts, score badly.

use std::{cell::RefCell, path::Path};

use rustc_hash::FxHashMap;
use shakmaty::{Color, Move, Position, variant::VariantPosition};

use super::{records::key_and_move, weights::Weights};
use crate::{
    counts::{Counts, Finder, LookUpBuffers, MoveCount, MoveFilter, Wdl},
    error::{Error, Result},
    position::{BookMove, Keyed},
    progress::Meter,
    storage::sort::Memory,
    walk::{Source, TreeMove, each_position},
};

/// The maximum number of half-moves by which the computation of `--minimax` looks ahead to determine the value of a
/// position.
const MAX_LOOKAHEAD: usize = 256;

/// Statistics about the option `--minimax`, which lowers the weights of moves whose continuations score badly.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, serde::Serialize)]
pub struct MinimaxSummary {
    /// The number of moves whose weight was lowered, but not to 0.
    pub lowered: u64,
    /// The number of moves whose weight became 0, so that the book does not contain them.
    pub left_out: u64,
    /// The number of moves that keep their weight because their position cannot be reached by moves with enough
    /// games.
    pub unreached: u64,
    /// The share of the total weight of the starting position's moves that remains, in percent.
    pub first_percent: u8,
}

/// A table of the factors, from 0 to 1, with which the option `--minimax` multiplies the weights of moves. A move gets
/// a low factor if its continuations score badly in the counts.
///
/// The factors depend on values of positions, from 0 to 1. The value of a position is the highest cautious score of its
/// moves. The cautious score of a move is the smaller of two numbers: the lower bound of the confidence interval of its
/// results ([`Wdl::lower_bound`]), and 1 minus the value of the position after the move. Because of the lower bound, a
/// move that scored well in only a few games does not determine a value. Moves with fewer games than the filter
/// requires are ignored. Because moves can form cycles, only the next 256 half-moves are considered.
#[derive(Clone, Debug)]
pub(super) struct MinimaxFactors {
    /// Pairs of a key and a move, packed by [`key_and_move`] and sorted, each with the factor of the move. Moves that
    /// keep all of their weight have no entry.
    shares: Vec<(u128, f64)>,
    pub summary: MinimaxSummary,
}

impl MinimaxFactors {
    /// Computes the factors of all moves that are reached from the positions `starts` and were played in enough games.
    /// `counts` contains the games, `filter` contains the required number of games, and `weights` is needed for the
    /// statistics. Error messages name `path`, the path of the book.
    ///
    /// The factor is `1 - loss / percent`, or 0 if this number is negative. `loss` is the value of the position before
    /// the move minus the score of the move, in percent of a point, and `percent` is the value of the option
    /// `--minimax`. The score of a move is the smaller of two numbers: the mean result of its games, and 1 minus the
    /// value of the position after the move.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file of the counts cannot be read, or if the positions and moves exceed the
    /// budget `memory`.
    pub(super) fn of(
        counts: &Counts,
        filter: &MoveFilter,
        weights: &Weights,
        percent: u8,
        starts: impl Iterator<Item = Result<VariantPosition>>,
        memory: &Memory,
        path: &Path,
    ) -> Result<MinimaxFactors> {
        let graph = Graph::of(counts, filter, starts, memory, path)?;
        let values = graph.values();
        let mut shares = Vec::new();
        let mut summary = MinimaxSummary {
            unreached: graph.unreached,
            ..MinimaxSummary::default()
        };
        for (number, node) in graph.nodes.iter().enumerate() {
            for edge in graph.edges(number) {
                let score = edge.stats.score().min(edge.score_bound(&values));
                let share = 1.0 - (values[number] - score) * 100.0 / f64::from(percent);
                if share < 1.0 {
                    shares.push((key_and_move(node.key, edge.mv), share.max(0.0)));
                    let selected = u64::from(filter.selects(node.turn, edge.stats));
                    summary.lowered += selected * u64::from(share > 0.0);
                    summary.left_out += selected * u64::from(share <= 0.0);
                }
            }
        }
        shares.sort_unstable_by_key(|(place, _)| *place);
        let mut lowered = MinimaxFactors { shares, summary };
        lowered.summary.first_percent = lowered.first_percent(&graph, filter, weights);
        Ok(lowered)
    }

    /// Returns the total weight of all moves in the starting position after the factors are applied, in percent of
    /// their total weight before. The starting position is the first node of `graph`. `filter` and `weights` determine
    /// the weights before the factors are applied.
    fn first_percent(&self, graph: &Graph, filter: &MoveFilter, weights: &Weights) -> u8 {
        let Some(node) = graph.nodes.first() else {
            return 100;
        };
        let (mut all, mut left) = (0_u64, 0);
        for edge in graph.edges(0) {
            if filter.selects(node.turn, edge.stats) {
                let weight = weights.weight(edge.stats);
                all = all.saturating_add(weight);
                left += self.lowered(node.key, edge.mv, weight);
            }
        }
        (100.0 * left as f64 / all.max(1) as f64) as u8
    }

    /// Returns `weight`, multiplied by the factor of the move `mv` in the position with the key `key`. The result is at
    /// least 1, unless the weight or the factor is 0. If the table has no factor for the move, returns `weight`
    /// unchanged.
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
/// of games. The nodes are the positions with a frequent move, and the edges are the frequent moves.
struct Graph {
    nodes: Vec<MinimaxNode>,
    edges: Vec<MinimaxEdge>,
    /// The number of moves in positions that the walk did not reach.
    unreached: u64,
}

struct MinimaxNode {
    key: u64,
    turn: Color,
    /// The end of the position's range in the list of edges. The range begins where the range of the previous node
    /// ends.
    end: usize,
}

#[derive(Copy, Clone)]
struct MinimaxEdge {
    mv: BookMove,
    stats: Wdl,
    /// The lower bound of the confidence interval of the score.
    sure: f64,
    /// The position after the move: its key while the graph is built, then its index in `nodes`, or
    /// [`MinimaxEdge::NOWHERE`] if it has no moves.
    after: u64,
}

impl MinimaxEdge {
    const NOWHERE: u64 = u64::MAX;

    /// Returns an upper bound on the score of this move for the side that plays it: 1 minus the value of the position
    /// after the move. `values` contains the values of the graph's positions. If the graph does not contain the
    /// position after the move, returns 1.
    fn score_bound(&self, values: &[f64]) -> f64 {
        let after = usize::try_from(self.after).ok();
        let value = after.and_then(|after| values.get(after));
        1.0 - value.unwrap_or(&0.0)
    }
}

impl Graph {
    fn of(
        counts: &Counts,
        filter: &MoveFilter,
        starts: impl Iterator<Item = Result<VariantPosition>>,
        memory: &Memory,
        path: &Path,
    ) -> Result<Graph> {
        let source = KeptMoves {
            finder: counts.finder()?,
            min_game: filter.min_game,
            scratch: RefCell::default(),
        };
        let (positions, moves) = source.sizes(counts)?;
        // Twice the memory of the graph is needed, because each position also has an entry in the map of numbers, and
        // each move may get an entry in `shares`.
        let bytes = 2 * (positions * size_of::<MinimaxNode>() + moves * size_of::<MinimaxEdge>());
        if bytes > memory.bytes {
            let problem = format!(
                "--minimax needs {} MiB more memory for the moves that were played in at least {} games: use a larger \
                 --memory or a larger --min-game",
                (bytes - memory.bytes).div_ceil(1 << 20),
                filter.min_game
            );
            return Err(Error::too_large(path, problem));
        }
        let mut graph = Graph {
            nodes: Vec::new(),
            edges: Vec::new(),
            unreached: 0,
        };
        let mut numbers: FxHashMap<u64, u64> = FxHashMap::default();
        let (memory, meter) = (memory.share(4), Meter::default());
        each_position(&source, starts, memory, &meter, &mut |pos| {
            if !numbers.contains_key(&pos.key()) && graph.add(pos, &source.kept(pos)?) {
                numbers.insert(pos.key(), graph.nodes.len() as u64 - 1);
            }
            Ok(graph.nodes.len() < positions)
        })?;
        for edge in &mut graph.edges {
            edge.after = numbers
                .get(&edge.after)
                .copied()
                .unwrap_or(MinimaxEdge::NOWHERE);
        }
        graph.unreached = (moves - graph.edges.len()) as u64;
        Ok(graph)
    }

    /// Adds the position `pos` and its moves to the graph, and returns `true`. If `moves` is empty, adds nothing and
    /// returns `false`.
    fn add(&mut self, pos: &Keyed<VariantPosition>, moves: &[(MoveCount, Move)]) -> bool {
        for (count, mv) in moves {
            let mut after = pos.clone();
            after.play(*mv);
            self.edges.push(MinimaxEdge {
                mv: count.mv,
                stats: count.stats,
                sure: count.stats.lower_bound(),
                after: after.key(),
            });
        }
        if !moves.is_empty() {
            self.nodes.push(MinimaxNode {
                key: pos.key(),
                turn: pos.position().turn(),
                end: self.edges.len(),
            });
        }
        !moves.is_empty()
    }

    fn edges(&self, node: usize) -> &[MinimaxEdge] {
        let first = node
            .checked_sub(1)
            .map_or(0, |before| self.nodes[before].end);
        &self.edges[first..self.nodes[node].end]
    }

    /// Computes the value of each position in the graph: the score, from 0 to 1, that the side to move can expect if it
    /// plays well. Returns the values in the order of the graph's nodes.
    fn values(&self) -> Vec<f64> {
        let mut values = vec![0.0; self.nodes.len()];
        for _ in 0..MAX_LOOKAHEAD {
            let best = |number| {
                let moves = self.edges(number).iter();
                let scores = moves.map(|edge| edge.sure.min(edge.score_bound(&values)));
                scores.fold(0.0, f64::max)
            };
            let next: Vec<f64> = (0..self.nodes.len()).map(best).collect();
            if next == values {
                break;
            }
            values = next;
        }
        values
    }
}

/// A source of moves for a walk through positions. It returns the legal moves of a position that were played in at
/// least `min_game` games.
struct KeptMoves<'a> {
    finder: Finder<'a>,
    min_game: u64,
    scratch: RefCell<LookUpBuffers>,
}

impl KeptMoves<'_> {
    fn keeps(&self, stats: Wdl) -> bool {
        stats.games() >= self.min_game
    }

    /// Returns an upper bound on the size of the graph of `counts`: the number of positions with a move that was played
    /// in at least `min_game` games, and the number of such moves.
    fn sizes(&self, counts: &Counts) -> Result<(usize, usize)> {
        let (mut positions, mut moves) = (0, 0);
        for shard in 0..counts.shard_count() {
            counts.for_each_position(shard, |key, _, counts| {
                let kept = counts
                    .iter()
                    .filter(|count| self.keeps(count.stats))
                    .count();
                if key != 0 && kept > 0 {
                    positions += 1;
                    moves += kept;
                }
            })?;
        }
        Ok((positions, moves))
    }

    fn kept(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<(MoveCount, Move)>> {
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

impl Source for KeptMoves<'_> {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        let kept = self.kept(pos)?.into_iter();
        Ok(kept
            .map(|(count, mv)| {
                TreeMove::without_evaluation(mv, count.stats.games(), Some(count.stats))
            })
            .collect())
    }

    fn position_id(&self, pos: &Keyed<VariantPosition>) -> u64 {
        pos.exact_identity()
    }
}

//! Weights that are lowered by what the counts show after each move.

use std::{cell::RefCell, path::Path};

use rustc_hash::FxHashMap;
use shakmaty::{Color, Move, Position, variant::VariantPosition};

use super::losses::place;
use crate::{
    error::{Error, Result},
    position::{BookMove, Keyed},
    progress::Meter,
    sort::Memory,
    tally::{Counts, Finder, MoveCount, MoveFilter, Scratch, Stats},
    walk::{Event, Limits, Order, Source, Tree, TreeMove, every_way},
};

/// How many half-moves values look ahead at most.
const HALF_MOVES: usize = 256;

/// What became of a book's moves.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, serde::Serialize)]
pub struct MinimaxSummary {
    /// Moves that weigh less.
    pub lowered: u64,
    /// Moves that weigh nothing, so the book does not have them.
    pub left_out: u64,
    /// Moves that keep their weight, because no line of moves of enough games comes to their position.
    pub unreached: u64,
}

/// What is left of the weights of moves.
///
/// Moves of fewer games than the filter asks for are ignored. All values are scores of White. A move has the value of the
/// position after it if that has moves, or else the mean score of its games. A position has the value of its best move for
/// the side to move. Where moves go in circles, values look 256 half-moves ahead, and there a position has the mean score of
/// its games.
#[derive(Clone, Debug)]
pub(super) struct BackedUp {
    /// Keys and moves, in ascending order, with the share of the weight that is left.
    shares: Vec<(u128, f64)>,
    pub summary: MinimaxSummary,
}

impl BackedUp {
    /// A move that is worse than the best of its position by some percent of a point weighs less by as much of its
    /// weight as these are of `percent`.
    pub(super) fn of(
        counts: &Counts,
        filter: &MoveFilter,
        percent: u8,
        starts: impl Iterator<Item = Result<VariantPosition>>,
        memory: &Memory,
        path: &Path,
    ) -> Result<BackedUp> {
        let graph = Graph::of(counts, filter, starts, memory, path)?;
        let values = graph.values();
        let mut shares = Vec::new();
        let mut summary = MinimaxSummary {
            unreached: graph.unreached,
            ..MinimaxSummary::default()
        };
        for (number, node) in graph.nodes.iter().enumerate() {
            for edge in graph.edges(number) {
                let loss = (values[number] - edge.value(&values)).abs() * 100.0;
                let share = 1.0 - loss / f64::from(percent);
                if share < 1.0 {
                    shares.push((place(node.key, edge.mv), share.max(0.0)));
                    let selected = u64::from(filter.selects(node.turn, edge.stats));
                    summary.lowered += selected * u64::from(share > 0.0);
                    summary.left_out += selected * u64::from(share <= 0.0);
                }
            }
        }
        shares.sort_unstable_by_key(|(place, _)| *place);
        Ok(BackedUp { shares, summary })
    }

    /// What is left of a move's weight, at least 1 if anything is.
    pub(super) fn lowered(&self, key: u64, mv: BookMove, weight: u64) -> u64 {
        let move_of = |(place, _): &(u128, f64)| *place;
        match self.shares.binary_search_by_key(&place(key, mv), move_of) {
            Ok(found) if self.shares[found].1 == 0.0 => 0,
            Ok(found) => {
                let left = (weight as f64 * self.shares[found].1).round();
                (left as u64).max(weight.min(1))
            }
            Err(_) => weight,
        }
    }
}

/// The positions that have moves of enough games, and these.
struct Graph {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    /// Moves of positions that were not found.
    unreached: u64,
}

struct Node {
    key: u64,
    turn: Color,
    /// The mean score of White in the games of its moves.
    mean: f64,
    /// Where its moves end; they begin where those of the node before it end.
    end: usize,
}

#[derive(Copy, Clone)]
struct Edge {
    mv: BookMove,
    stats: Stats,
    /// The mean score of White.
    mean: f64,
    /// The position after it: its key, then its number, [`Edge::NOWHERE`] if it has no moves.
    after: u64,
}

impl Edge {
    const NOWHERE: u64 = u64::MAX;

    fn value(&self, values: &[f64]) -> f64 {
        let value = usize::try_from(self.after)
            .ok()
            .and_then(|after| values.get(after));
        *value.unwrap_or(&self.mean)
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
        // A position is in the map too, and a move leaves a share at last.
        let bytes = 2 * (positions * size_of::<Node>() + moves * size_of::<Edge>());
        if bytes > memory.bytes {
            let problem = format!(
                "--minimax needs {} MiB more memory for moves of {} games: give more --memory, or a larger --min-game",
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
        let limits = Limits {
            memory: memory.share(4),
            ..Limits::default()
        };
        let meter = Meter::default();
        for start in starts {
            let start = start?;
            for way in every_way(&source) {
                // Once all positions are there, no other walk finds more.
                if graph.nodes.len() == positions {
                    break;
                }
                let tree = Tree::new(way, start.clone(), limits.clone(), &meter);
                tree.walk(Order::Positions, &mut |event| {
                    if let Event::Position { pos, .. } = event
                        && !numbers.contains_key(&pos.key())
                        && graph.add(pos, &source.kept(pos)?)
                    {
                        numbers.insert(pos.key(), graph.nodes.len() as u64 - 1);
                    }
                    Ok(())
                })?;
            }
        }
        for edge in &mut graph.edges {
            edge.after = numbers.get(&edge.after).copied().unwrap_or(Edge::NOWHERE);
        }
        graph.unreached = (moves - graph.edges.len()) as u64;
        Ok(graph)
    }

    /// Adds a position, if it has moves.
    fn add(&mut self, pos: &Keyed<VariantPosition>, moves: &[(MoveCount, Move)]) -> bool {
        let turn = pos.position().turn();
        let mut all = Stats::default();
        for (count, mv) in moves {
            all += count.stats;
            let mut after = pos.clone();
            after.play(*mv);
            self.edges.push(Edge {
                mv: count.mv,
                stats: count.stats,
                mean: count.stats.turned(turn).score(),
                after: after.key(),
            });
        }
        if !moves.is_empty() {
            self.nodes.push(Node {
                key: pos.key(),
                turn,
                mean: all.turned(turn).score(),
                end: self.edges.len(),
            });
        }
        !moves.is_empty()
    }

    fn edges(&self, node: usize) -> &[Edge] {
        let first = node
            .checked_sub(1)
            .map_or(0, |before| self.nodes[before].end);
        &self.edges[first..self.nodes[node].end]
    }

    /// The values of the positions.
    fn values(&self) -> Vec<f64> {
        let mut values: Vec<f64> = self.nodes.iter().map(|node| node.mean).collect();
        for _ in 0..HALF_MOVES {
            let best = |(number, node): (usize, &Node)| {
                let values = self.edges(number).iter().map(|edge| edge.value(&values));
                let best = match node.turn {
                    Color::White => values.reduce(f64::max),
                    Color::Black => values.reduce(f64::min),
                };
                best.expect("a position has moves")
            };
            let next: Vec<f64> = self.nodes.iter().enumerate().map(best).collect();
            if next == values {
                break;
            }
            values = next;
        }
        values
    }
}

/// The moves of enough games.
struct KeptMoves<'a> {
    finder: Finder<'a>,
    min_game: u64,
    scratch: RefCell<Scratch>,
}

impl KeptMoves<'_> {
    fn keeps(&self, stats: Stats) -> bool {
        stats.games() >= self.min_game
    }

    /// How many positions have such moves, and how many of these there are.
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
            .find(self.finder.part(pos.key()), &mut scratch)?;
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
            .map(|(count, mv)| TreeMove::known(mv, count.stats.games(), Some(count.stats)))
            .collect())
    }
}

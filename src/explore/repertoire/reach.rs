//! Computes the reach of positions, which is the probability that a game reaches each position of a repertoire. The
//! computation follows the player's moves in the repertoire, and the opponent's replies in a source of games.
//!
//! It visits positions level by level, one half-move at a time. The probabilities of all paths of one length to a
//! position are added before the moves of the position are followed. If a longer path reaches the position later, its
//! probability is passed on to all following positions as well. The reach is therefore the sum over all paths of any
//! length.
//!
//! A move that would close a cycle of positions is not followed. The moves that are followed therefore form an acyclic
//! graph, and the computation ends.
//!
//! The walk of `formats::walk` does not suit this purpose, because it asks for the moves of each position only once.
//! In this computation, the moves of a position may depend on its probability, which grows with every further path.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use shakmaty::{Color, Move, Position, variant::VariantPosition};

use super::position_after;
use crate::{
    chess::position::{BookMove, Keyed},
    error::{Advice, Diagnosis, Error, ErrorKind, Result},
    explore::tree::{Limits, MoveSource, TreeMove},
    games::results::Results,
    progress::{FractionalProgress, Meter},
};

/// An estimate of the memory, in bytes, for one position of a [`ReachGraph`] with its moves.
const BYTES_PER_NODE: usize = 512;

/// The maximum number of positions that are visited to find out whether a move closes a cycle. Each reversible move of
/// a repertoire requires such a search, so the limit bounds the total time.
const MAX_CYCLE_SEARCH: usize = 2000;

/// Computes how likely a game is to reach each position of a repertoire. Where the side `color` is to move, the moves
/// of the repertoire are followed. Where the other side is to move, the replies in `source` are followed.
pub(super) struct Propagation<'a> {
    pub start: &'a VariantPosition,
    pub color: Color,
    pub source: &'a dyn MoveSource,
    /// A function that returns the weights of the replies in a position, or `None` if each game has the same weight.
    pub weights: Option<ReplyWeights<'a>>,
    /// The maximum length of lines in half-moves, or `None` for no limit. A line always ends with a move of the player.
    pub max_ply: Option<usize>,
    /// The maximum memory for positions, in bytes.
    pub memory: usize,
    pub meter: &'a Meter,
}

/// A function that returns the weights of the replies in a position, from which their shares follow.
pub(super) type ReplyWeights<'a> = &'a dyn Fn(&VariantPosition) -> Result<FxHashMap<BookMove, f64>>;

/// A function that returns the moves of the repertoire's side in a position, or `None` if the repertoire has no answer
/// there. The second argument is the probability that a game reaches the position by the paths that have been followed
/// so far. If another path leads to a position without an answer, the function is called again with the higher
/// probability.
pub(super) type AnswerOf<'a> =
    &'a mut dyn FnMut(&Keyed<VariantPosition>, f64) -> Result<Option<Vec<TreeMove>>>;

/// The graph of positions that a [`Propagation`] through a repertoire has visited. Node 0 is the start position.
pub(super) struct ReachGraph {
    start: VariantPosition,
    /// Maps the identity of a position to the index of its node.
    ids: FxHashMap<u64, u32>,
    pub nodes: Vec<ReachNode>,
    /// The share of games that reached a position without an answer at each half-move. If the player has several moves
    /// in a position, they are considered equally likely.
    lost: BTreeMap<usize, f64>,
    /// The share of games that reached a position after which the source contains no more games, at each half-move.
    ended: BTreeMap<usize, f64>,
    /// The last half-move at which the repertoire has an answer.
    last: usize,
}

/// A position in a [`ReachGraph`], with the probability that a game reaches it.
pub(super) struct ReachNode {
    /// The sum of the probabilities of all paths to the position. It can exceed 1 if the player has several moves in
    /// a position.
    pub reach: f64,
    /// The index of the predecessor of the node, and the move that leads from there to the node. After the walk, this
    /// is the predecessor on the likeliest path.
    parent: (u32, BookMove),
    /// The moves of the position, or `None` for a position without an answer.
    pub edges: Option<Vec<Edge>>,
    /// Whether the source contains no reply in the position, although the maximum length of lines would allow one.
    pub is_source_end: bool,
}

/// A move between two positions in a [`ReachGraph`], with the probability that it is played.
pub(super) struct Edge {
    pub to: u32,
    pub mv: BookMove,
    pub games: u64,
    /// The results of the games, or `None` if the source contains no results.
    pub results: Option<Results>,
    /// The probability that the move is played, from 0 to 1. It is 1 for each move of the player.
    pub share: f64,
    /// The probability that the move is played if several moves of the player in a position are considered equally
    /// likely, so that their probabilities add up to 1. For a move of the opponent, it equals `share`.
    share_of_games: f64,
    /// Whether the walk follows the move. It does not follow a move that would close a cycle.
    is_followed: bool,
    /// Whether later moves may lead back to the position before the move.
    is_reversible: bool,
}

/// The share of all games that a repertoire still covers after a certain half-move of the opponent. A repertoire covers
/// a game as long as it answers every move of the opponent.
#[derive(Copy, Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Coverage {
    /// The number of the opponent's half-move, counted from 1 over the half-moves of both sides.
    pub ply: usize,
    /// The share of the games, from 0 to 1, in which the repertoire answers every move up to this half-move. Several
    /// moves of the player in a position are taken as equally likely.
    pub share: f64,
    /// The part of `share` for which the source contains no further moves of the opponent, so that it is unknown
    /// whether the repertoire would answer them.
    pub ended: f64,
}

impl Propagation<'_> {
    /// Walks from the start position until every path ends. Returns the graph of the visited positions with their
    /// probabilities. `answer` returns the moves of the repertoire's side.
    ///
    /// # Errors
    ///
    /// Returns an error if the walk is cancelled, if the positions exceed the memory budget, if the source cannot be
    /// read, or if `answer` returns an error.
    pub(super) fn run(&self, answer: AnswerOf<'_>) -> Result<ReachGraph> {
        let mut graph = ReachGraph {
            start: self.start.clone(),
            ids: FxHashMap::default(),
            nodes: Vec::new(),
            lost: BTreeMap::new(),
            ended: BTreeMap::new(),
            last: 0,
        };
        let mut done = FractionalProgress::new(self.meter);
        graph.id_of(&Keyed::new(self.start.clone()), (0, BookMove::NONE));
        while self.propagate(&mut graph, &mut done, answer)? {
            graph.nodes.iter_mut().for_each(|node| node.reach = 0.0);
            graph.lost.clear();
            graph.ended.clear();
        }
        done.finish();
        graph.find_likeliest();
        Ok(graph)
    }

    /// Computes the probabilities of all positions in `graph`, level by level. The start position has the
    /// probability 1. Each move adds to the probability of the position after it: the probability of the position
    /// before it, times the share of the move. `progress` advances with each path that ends. `answer` returns the moves
    /// of the repertoire's side.
    ///
    /// Returns `true` if the computation must be repeated. This is necessary if `answer` returned no moves when a
    /// position was first reached, but returned moves when the position was reached again with a higher probability.
    /// The positions after it then lack the probability of the first visit.
    fn propagate(
        &self,
        graph: &mut ReachGraph,
        progress: &mut FractionalProgress<'_>,
        answer: AnswerOf<'_>,
    ) -> Result<bool> {
        let mut is_late = false;
        let mut ends = Vec::new();
        let mut arriving = BTreeMap::from([(0, [1.0; 2])]);
        for ply in 0..self.max_ply.unwrap_or(Limits::MAX_PLIES) {
            if arriving.is_empty() {
                break;
            }
            let mut next: BTreeMap<u32, [f64; 2]> = BTreeMap::new();
            for (id, [share, games]) in std::mem::take(&mut arriving) {
                self.meter.check()?;
                let node = &mut graph.nodes[id as usize];
                node.reach += share;
                if node.edges.is_none() {
                    let is_met_again = node.reach > share;
                    if !self.expand(graph, id, ply, answer)? {
                        *graph.lost.entry(ply).or_default() += games;
                        progress.add(share);
                        continue;
                    }
                    is_late |= is_met_again;
                }
                let edges = graph.nodes[id as usize]
                    .edges
                    .as_deref()
                    .unwrap_or_default();
                if edges.is_empty() {
                    progress.add(share);
                    ends.push(id);
                    if graph.nodes[id as usize].is_source_end {
                        *graph.ended.entry(ply + 1).or_default() += games;
                    }
                }
                for edge in edges.iter().filter(|edge| edge.is_followed) {
                    let [next_share, next_games] = next.entry(edge.to).or_default();
                    *next_share += share * edge.share;
                    *next_games += games * edge.share_of_games;
                }
                graph.last = ply;
            }
            if graph.nodes.len() > self.memory / BYTES_PER_NODE {
                let problem = Diagnosis::new(format!(
                    "the repertoire contains more than {} positions",
                    self.memory / BYTES_PER_NODE
                ))
                .advise(Advice::larger("memory"))
                .advise(Advice::smaller("max-ply"));
                return Err(Error::option(ErrorKind::TooLarge, "memory", problem));
            }
            arriving = next;
        }
        if is_late {
            // In the repetition, a line may end at an earlier half-move, where its maximum length still allows replies.
            ends.iter()
                .for_each(|id| graph.nodes[*id as usize].edges = None);
        }
        Ok(is_late)
    }

    /// Adds the moves in the position of the node `id` to `graph`. `ply` is the number of half-moves from the start to
    /// the position. Returns `false` if the repertoire's side is to move and `answer` returns no moves for it,
    /// otherwise `true`.
    fn expand(
        &self,
        graph: &mut ReachGraph,
        id: u32,
        ply: usize,
        answer: AnswerOf<'_>,
    ) -> Result<bool> {
        let pos = graph.position(id);
        let is_own = pos.position().turn() == self.color;
        let moves = if pos.position().legal_moves().is_empty() {
            Vec::new()
        } else if is_own {
            match answer(&pos, graph.nodes[id as usize].reach)? {
                Some(moves) => moves,
                None => return Ok(false),
            }
        } else if self.max_ply.is_some_and(|most| ply + 2 > most) {
            // A reply would leave no half-move for its answer.
            Vec::new()
        } else {
            let mut moves = self.source.moves(&pos)?;
            moves.retain(|mv| mv.games() > 0);
            graph.nodes[id as usize].is_source_end = moves.is_empty();
            moves
        };
        let weights = match self.weights {
            Some(weights) if !is_own => Some(weights(pos.position())?),
            _ => None,
        };
        let weight = |mv: &TreeMove| match &weights {
            Some(weights) => weights.get(&BookMove::from(mv.mv)).copied().unwrap_or(0.0),
            None => mv.games() as f64,
        };
        let all: f64 = moves.iter().map(weight).sum();
        let number = moves.len() as f64;
        let mut edges = Vec::with_capacity(moves.len());
        for mv in moves {
            let mut after = pos.clone();
            after.play(mv.mv);
            let to = graph.id_of(&after, (id, mv.mv.into()));
            // In crazyhouse a captured piece can be dropped again, so any move can be part of a cycle.
            let is_crazyhouse = matches!(pos.position(), VariantPosition::Crazyhouse(_));
            let is_reversible = is_crazyhouse || !mv.mv.is_zeroing();
            let share = if is_own { 1.0 } else { weight(&mv) / all };
            edges.push(Edge {
                to,
                mv: mv.mv.into(),
                games: mv.games(),
                results: mv.results,
                share,
                share_of_games: if is_own { 1.0 / number } else { share },
                is_followed: !(is_reversible && graph.leads_to(to, id)),
                is_reversible,
            });
        }
        graph.nodes[id as usize].edges = Some(edges);
        Ok(true)
    }
}

impl ReachGraph {
    /// Returns the index of the node for the position `pos`. If the graph does not contain the position yet, adds a
    /// node for it. `parent` contains the index of the node before the new node, and the move that leads from there to
    /// `pos`.
    fn id_of(&mut self, pos: &Keyed<VariantPosition>, parent: (u32, BookMove)) -> u32 {
        *self.ids.entry(pos.identity()).or_insert_with(|| {
            self.nodes.push(ReachNode {
                reach: 0.0,
                parent,
                edges: None,
                is_source_end: false,
            });
            self.nodes.len() as u32 - 1
        })
    }

    /// Returns `true` if a path of reversible moves leads from the node `from` to the node `to`. Only moves that the
    /// walk follows are searched, and no irreversible moves, because they cannot be part of a cycle. Also returns
    /// `true` if the search exceeds [`MAX_CYCLE_SEARCH`] positions, so that no cycle is missed.
    fn leads_to(&self, from: u32, to: u32) -> bool {
        let mut seen = FxHashSet::default();
        let mut waiting = vec![from];
        while let Some(id) = waiting.pop() {
            if id == to || seen.len() == MAX_CYCLE_SEARCH {
                return true;
            }
            if seen.insert(id) {
                let edges = self.nodes[id as usize].edges.iter().flatten();
                let edges = edges.filter(|edge| edge.is_followed && edge.is_reversible);
                waiting.extend(edges.map(|edge| edge.to));
            }
        }
        false
    }

    /// Returns the probability that a game reaches each position of the graph, in the order of the nodes. Unlike
    /// [`ReachNode::reach`], it includes paths of the maximum length. The walk ends such a path one move early, before
    /// it visits the last position.
    pub(super) fn reach(&self) -> Vec<f64> {
        let mut reach = vec![0.0; self.nodes.len()];
        reach[0] = 1.0;
        for node in &self.nodes {
            let edges = node.edges.iter().flatten();
            edges.filter(|edge| edge.is_followed).for_each(|edge| {
                reach[edge.to as usize] += node.reach * edge.share;
            });
        }
        reach
    }

    /// Returns the probability, at most 1, that a game reaches the position whose identity (a hash) is `pos`. Returns
    /// `None` if the walk did not visit the position.
    pub(super) fn reach_of(&self, pos: u64) -> Option<f64> {
        let id = self.ids.get(&pos)?;
        Some(self.nodes[*id as usize].reach.min(1.0))
    }

    /// Sets the parent of each node to the predecessor that contributes most to the probability of the node.
    fn find_likeliest(&mut self) {
        let mut best = vec![0.0; self.nodes.len()];
        for from in 0..self.nodes.len() {
            let edges = self.nodes[from].edges.take();
            for edge in edges.iter().flatten().filter(|edge| edge.is_followed) {
                let share = self.nodes[from].reach * edge.share;
                let to = edge.to as usize;
                if share > best[to] {
                    best[to] = share;
                    self.nodes[to].parent = (from as u32, edge.mv);
                }
            }
            self.nodes[from].edges = edges;
        }
    }

    /// Returns the node before the node `id` on the most likely path to it, and the move that leads from there to `id`.
    /// For the start node 0, returns 0 and [`BookMove::NONE`].
    pub(super) fn before(&self, id: u32) -> (u32, BookMove) {
        self.nodes[id as usize].parent
    }

    /// Returns the moves of the most likely path from the start position to the node `id`.
    pub(super) fn line(&self, id: u32) -> Vec<Move> {
        let mut way = Vec::new();
        let mut at = id;
        while at != 0 {
            let (before, mv) = self.before(at);
            way.push(mv);
            at = before;
        }
        let mut pos = self.start.clone();
        let play = |mv: BookMove| {
            let mv = mv.to_move(&pos).expect("a legal move led there");
            pos.play_unchecked(mv);
            mv
        };
        way.into_iter().rev().map(play).collect()
    }

    /// Returns the moves of the likeliest path to the position whose identity (a hash) is `pos`. Returns `None` if the
    /// walk did not visit the position.
    pub(super) fn line_to(&self, pos: u64) -> Option<Vec<Move>> {
        self.ids.get(&pos).map(|id| self.line(*id))
    }

    pub(super) fn position(&self, id: u32) -> Keyed<VariantPosition> {
        position_after(&self.start, self.line(id))
    }

    /// Returns the share of games in which the repertoire of the side `color` has answered every move of the opponent
    /// so far, for each half-move of the opponent in order.
    pub(super) fn coverage(&self, color: Color) -> Vec<Coverage> {
        let first = usize::from(self.start.turn() == color) + 1;
        let mut share = 1.0 - self.lost.get(&0).copied().unwrap_or(0.0);
        let mut ended = 0.0;
        let last = self.lost.keys().chain(self.ended.keys()).max();
        let last = self.last.max(last.copied().unwrap_or(0));
        let plies = (first..=last).step_by(2);
        let coverage = plies.map(|ply| {
            share -= self.lost.get(&ply).copied().unwrap_or(0.0);
            ended += self.ended.get(&ply).copied().unwrap_or(0.0);
            Coverage {
                ply,
                share: f64::max(share, 0.0),
                ended,
            }
        });
        coverage.collect()
    }
}

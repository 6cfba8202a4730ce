//! The reach of positions: a walk through a repertoire along the opponent's replies of a source.
//!
//! The walk visits positions level by level, one half-move at a time. The probabilities of all paths of one length to a
//! position are added before its moves are followed. A longer path that comes to the position later passes its share on
//! to all that follows. So the reach is the sum over all paths, whatever their lengths.
//!
//! A move that would close a cycle of positions is not followed. The moves that are followed form an acyclic graph, so
//! the walk ends.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use shakmaty::{Color, Move, Position, variant::VariantPosition};

use super::position_after;
use crate::{
    counts::Wdl,
    error::{Error, Result},
    position::{BookMove, Keyed},
    progress::{Meter, Portions},
    tree::{Limits, Source, TreeMove},
};

/// An estimate of the memory that a position and its moves take, in bytes.
const BYTES: usize = 512;

/// The maximum number of positions that are visited to find a cycle. It bounds the time of long lines without pawn
/// moves and captures.
const FARTHEST: usize = 2000;

/// The input of a walk.
pub(super) struct Walk<'a> {
    pub start: &'a VariantPosition,
    pub color: Color,
    pub source: &'a dyn Source,
    /// The maximum length of lines in half-moves, or `None` for no limit. The last half-move of a line is the player's.
    pub max_ply: Option<usize>,
    /// The memory for positions, in bytes.
    pub memory: usize,
    pub meter: &'a Meter,
}

/// Returns the player's moves in a position, given its reach so far, or `None` if there is no answer. It is called
/// again if the walk comes back to a position without an answer, when the reach is higher.
pub(super) type AnswerOf<'a> =
    &'a mut dyn FnMut(&Keyed<VariantPosition>, f64) -> Result<Option<Vec<TreeMove>>>;

/// The graph of the positions that a walk visited. Node 0 is the start.
pub(super) struct ReachGraph {
    start: VariantPosition,
    /// Maps the identity of a position to the index of its node.
    ids: FxHashMap<u64, u32>,
    pub nodes: Vec<Node>,
    /// The share of the games that came to a position without an answer, by half-move. Several moves of the player in a
    /// position are equally likely here.
    lost: BTreeMap<usize, f64>,
    /// The share of the games that came to the end of the source, by half-move.
    ended: BTreeMap<usize, f64>,
    /// The last half-move at which a position had an answer.
    last: usize,
}

/// A position in the graph.
pub(super) struct Node {
    /// The sum of the probabilities of all paths to the position. It can exceed 1 where the player has several moves.
    pub reach: f64,
    /// The node before the position, and the move from there to it. After the walk it is on the likeliest path.
    parent: (u32, BookMove),
    /// The moves of the position, or `None` for a position without an answer.
    pub edges: Option<Vec<Edge>>,
    /// Whether the source has no reply, although the length of lines allowed one.
    pub is_source_end: bool,
}

/// A move in the graph.
pub(super) struct Edge {
    pub to: u32,
    pub mv: BookMove,
    pub games: u64,
    /// The results for the side that moves, or `None` if the source has none.
    pub stats: Option<Wdl>,
    /// The number of games without a result; see [`TreeMove::unfinished`].
    pub unfinished: u64,
    /// The probability that the move is played, from 0 to 1. It is 1 for each move of the player.
    pub share: f64,
    /// Like `share`, but several moves of the player share the probability equally.
    share_of_games: f64,
    /// Whether the walk follows the move. It does not if the move would close a cycle.
    is_followed: bool,
    /// Whether later moves can lead back to the position before the move.
    is_reversible: bool,
}

/// The share of the games that is still in a repertoire after a half-move.
#[derive(Copy, Clone, PartialEq, Debug, Serialize)]
pub struct Coverage {
    /// The number of the half-move, from 1. It is one of the opponent's.
    pub ply: usize,
    /// The share of the games in which the repertoire answers every move up to here, from 0 to 1. Several moves of the
    /// player in a position are equally likely.
    pub share: f64,
    /// The part of `share` for which the source has no more games, so that nothing is known about the repertoire.
    pub ended: f64,
}

impl Walk<'_> {
    /// Walks from the start until every path ends, and returns the graph of the positions.
    ///
    /// # Errors
    ///
    /// Returns an error if the source or `answer` does, if the walk was cancelled, or if the positions take more than
    /// the memory.
    pub(super) fn run(&self, answer: AnswerOf<'_>) -> Result<ReachGraph> {
        let mut met = ReachGraph {
            start: self.start.clone(),
            ids: FxHashMap::default(),
            nodes: Vec::new(),
            lost: BTreeMap::new(),
            ended: BTreeMap::new(),
            last: 0,
        };
        let mut done = Portions::new(self.meter);
        met.id_of(&Keyed::new(self.start.clone()), (0, BookMove::NONE));
        while self.pass_on(&mut met, &mut done, answer)? {
            met.nodes.iter_mut().for_each(|node| node.reach = 0.0);
            met.lost.clear();
            met.ended.clear();
        }
        done.finish();
        met.find_likeliest();
        Ok(met)
    }

    /// Passes the reach of the start on through the moves, level by level. Returns `true` if the walk has to be
    /// repeated: a position got its answer only when it was visited again, so what came there before was not passed on.
    fn pass_on(
        &self,
        met: &mut ReachGraph,
        done: &mut Portions<'_>,
        answer: AnswerOf<'_>,
    ) -> Result<bool> {
        let mut is_late = false;
        let mut ends = Vec::new();
        let mut arriving = BTreeMap::from([(0, [1.0; 2])]);
        for ply in 0..self.max_ply.unwrap_or(Limits::LONGEST) {
            if arriving.is_empty() {
                break;
            }
            let mut next: BTreeMap<u32, [f64; 2]> = BTreeMap::new();
            for (id, [share, games]) in std::mem::take(&mut arriving) {
                self.meter.check()?;
                let node = &mut met.nodes[id as usize];
                node.reach += share;
                if node.edges.is_none() {
                    let is_met_again = node.reach > share;
                    if !self.expand(met, id, ply, answer)? {
                        *met.lost.entry(ply).or_default() += games;
                        done.add(share);
                        continue;
                    }
                    is_late |= is_met_again;
                }
                let edges = met.nodes[id as usize].edges.as_deref().unwrap_or_default();
                if edges.is_empty() {
                    done.add(share);
                    ends.push(id);
                    if met.nodes[id as usize].is_source_end {
                        *met.ended.entry(ply + 1).or_default() += games;
                    }
                }
                for edge in edges.iter().filter(|edge| edge.is_followed) {
                    let [next_share, next_games] = next.entry(edge.to).or_default();
                    *next_share += share * edge.share;
                    *next_games += games * edge.share_of_games;
                }
                met.last = ply;
            }
            if met.nodes.len() > self.memory / BYTES {
                let problem = format!(
                    "the repertoire has more than {} positions: give more --memory or a lower --max-ply",
                    self.memory / BYTES
                );
                return Err(Error::too_large("--memory", problem));
            }
            arriving = next;
        }
        if is_late {
            // The repetition may come to the end of a line earlier, where the length of lines allows replies.
            ends.iter()
                .for_each(|id| met.nodes[*id as usize].edges = None);
        }
        Ok(is_late)
    }

    /// Adds the moves of a position to the graph. Returns `false` if the player is to move and there is no answer.
    fn expand(
        &self,
        met: &mut ReachGraph,
        id: u32,
        ply: usize,
        answer: AnswerOf<'_>,
    ) -> Result<bool> {
        let pos = met.position(id);
        let is_own = pos.position().turn() == self.color;
        let moves = if pos.position().legal_moves().is_empty() {
            Vec::new()
        } else if is_own {
            match answer(&pos, met.nodes[id as usize].reach)? {
                Some(moves) => moves,
                None => return Ok(false),
            }
        } else if self.max_ply.is_some_and(|most| ply + 2 > most) {
            // A reply would leave no half-move for its answer.
            Vec::new()
        } else {
            let mut moves = self.source.moves(&pos)?;
            moves.retain(|mv| mv.games() > 0);
            met.nodes[id as usize].is_source_end = moves.is_empty();
            moves
        };
        let games: u64 = moves.iter().map(TreeMove::games).sum();
        let number = moves.len() as f64;
        let mut edges = Vec::with_capacity(moves.len());
        for mv in moves {
            let mut after = pos.clone();
            after.play(mv.mv);
            let to = met.id_of(&after, (id, mv.mv.into()));
            // In crazyhouse a captured piece can come back by a drop.
            let is_crazyhouse = matches!(pos.position(), VariantPosition::Crazyhouse(_));
            let is_reversible = is_crazyhouse || !mv.mv.is_zeroing();
            let share = match is_own {
                true => 1.0,
                false => mv.games() as f64 / games as f64,
            };
            edges.push(Edge {
                to,
                mv: mv.mv.into(),
                games: mv.games(),
                stats: mv.stats,
                unfinished: mv.unfinished,
                share,
                share_of_games: if is_own { 1.0 / number } else { share },
                is_followed: !(is_reversible && met.leads_to(to, id)),
                is_reversible,
            });
        }
        met.nodes[id as usize].edges = Some(edges);
        Ok(true)
    }
}

impl ReachGraph {
    /// Returns the index of a position's node. A new position gets a node with `parent` as its predecessor.
    fn id_of(&mut self, pos: &Keyed<VariantPosition>, parent: (u32, BookMove)) -> u32 {
        *self.ids.entry(pos.identity()).or_insert_with(|| {
            self.nodes.push(Node {
                reach: 0.0,
                parent,
                edges: None,
                is_source_end: false,
            });
            self.nodes.len() as u32 - 1
        })
    }

    /// Returns `true` if reversible moves that the walk follows lead from one position to another. Also returns `true`
    /// after [`FARTHEST`] positions, so that a cycle is never missed.
    fn leads_to(&self, from: u32, to: u32) -> bool {
        let mut seen = FxHashSet::default();
        let mut waiting = vec![from];
        while let Some(id) = waiting.pop() {
            if id == to || seen.len() == FARTHEST {
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

    /// Returns the reach of each node, including nodes after the last half-moves, which the walk did not expand.
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

    /// Returns the reach of the position with an identity, at most 1, or `None` if the walk did not visit it.
    pub(super) fn reach_of(&self, pos: u64) -> Option<f64> {
        let id = self.ids.get(&pos)?;
        Some(self.nodes[*id as usize].reach.min(1.0))
    }

    /// Sets the parent of each node to the one on the likeliest path.
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

    /// Returns the node before a position on the likeliest path, and the move from there to it.
    pub(super) fn before(&self, id: u32) -> (u32, BookMove) {
        self.nodes[id as usize].parent
    }

    /// Returns the moves of the likeliest path from the start to a position.
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

    /// Returns the moves of the likeliest path to the position with an identity, or `None` if the walk did not visit it.
    pub(super) fn line_to(&self, pos: u64) -> Option<Vec<Move>> {
        self.ids.get(&pos).map(|id| self.line(*id))
    }

    pub(super) fn position(&self, id: u32) -> Keyed<VariantPosition> {
        position_after(&self.start, self.line(id))
    }

    /// Returns the share of the games that is still in the repertoire after each half-move of the opponent of `color`,
    /// in ascending order.
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

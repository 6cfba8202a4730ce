//! How likely positions are met: the walk through a repertoire along the replies of a source.
//!
//! Positions are gone through level by level. What comes to a position by ways of one length is added up before the
//! moves from there are followed; a longer way that comes there later adds its share to all that follows. So reach is
//! summed over all ways, whatever their lengths. A move that would close a circle of positions is not followed, so the
//! moves that are make no circle, and the sum ends.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use shakmaty::{Color, Move, Position, variant::VariantPosition};

use super::position_after;
use crate::{
    error::{Error, Result},
    position::{BookMove, Keyed},
    progress::{Meter, Portions},
    tally::Stats,
    tree::{Limits, Source, TreeMove},
};

/// About how many bytes of memory a position and its moves take.
const BYTES: usize = 512;

/// How many positions are looked at to find a circle. Lines of games without pawn moves and captures could have more.
const FARTHEST: usize = 2000;

/// What is walked.
pub(super) struct Walk<'a> {
    pub start: &'a VariantPosition,
    pub color: Color,
    pub source: &'a dyn Source,
    /// How many half-moves lines have at most; the last is an own move.
    pub max_ply: Option<usize>,
    /// How many bytes positions may take.
    pub memory: usize,
    pub meter: &'a Meter,
}

/// The own moves in a position that is met with this reach; `None` if there is no answer, at least not yet.
pub(super) type Answer<'a> =
    &'a mut dyn FnMut(&Keyed<VariantPosition>, f64) -> Result<Option<Vec<TreeMove>>>;

/// The positions that are met.
pub(super) struct Met {
    start: VariantPosition,
    /// The numbers of positions.
    ids: FxHashMap<u64, u32>,
    pub nodes: Vec<Node>,
    /// The share that met no answer at each half-move, if several own moves are equally likely.
    lost: BTreeMap<usize, f64>,
    /// The share for which the source has no reply at each half-move.
    ended: BTreeMap<usize, f64>,
    /// The last half-move that was met.
    last: usize,
}

pub(super) struct Node {
    /// The chance to meet it.
    pub reach: f64,
    /// The position before it, and the move from there.
    parent: (u32, BookMove),
    /// Its moves; `None` for a position without an answer.
    pub edges: Option<Vec<Edge>>,
    /// Whether the source has no reply, and there was room for one.
    pub is_source_end: bool,
}

/// A move.
pub(super) struct Edge {
    pub to: u32,
    pub mv: BookMove,
    pub games: u64,
    /// For the side that moves.
    pub stats: Option<Stats>,
    /// The chance that it is played, own moves being certain.
    pub share: f64,
    /// The same, several own moves being equally likely.
    share_of_games: f64,
    /// Whether it is followed.
    is_followed: bool,
    /// Whether the position before it can come back.
    is_reversible: bool,
}

/// How much of the games is still in a repertoire.
#[derive(Copy, Clone, PartialEq, Debug, Serialize)]
pub struct Coverage {
    /// Up to this half-move, from 1: one of the opponent's.
    pub ply: usize,
    /// The share of the games in which every move up to here has an answer, from 0 to 1. Several own moves are equally
    /// likely.
    pub share: f64,
    /// The part of `share` for which the source has no game any more, so that it says nothing of the repertoire.
    pub ended: f64,
}

impl Walk<'_> {
    pub(super) fn run(&self, answer: Answer<'_>) -> Result<Met> {
        let mut met = Met {
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

    /// Passes the reach of the first position on through the moves. Returns whether a position got its answer only when
    /// it was met again: what came there before was not passed on, and a limit of half-moves may cut it if it is late.
    fn pass_on(&self, met: &mut Met, done: &mut Portions<'_>, answer: Answer<'_>) -> Result<bool> {
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
            // An end may be met earlier next time, where there is room for replies.
            ends.iter()
                .for_each(|id| met.nodes[*id as usize].edges = None);
        }
        Ok(is_late)
    }

    /// Adds the moves of a position, and says whether it has an answer or needs none.
    fn expand(&self, met: &mut Met, id: u32, ply: usize, answer: Answer<'_>) -> Result<bool> {
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
            // There would be no room for the answers.
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
            // A piece that was captured can come back in crazyhouse.
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

impl Met {
    /// The number of a position, which is entered if it is new.
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

    /// Whether moves that can be taken back lead from one position to another. Beyond a limit, it is taken that they do.
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

    /// The chance to meet each position, those after the last half-moves too.
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

    /// The chance to meet the position with an identity, if it is met.
    pub(super) fn reach_of(&self, pos: u64) -> Option<f64> {
        let id = self.ids.get(&pos)?;
        Some(self.nodes[*id as usize].reach.min(1.0))
    }

    /// Chooses the likeliest way to each position as the one that is shown.
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

    /// The position before one and the number of the move from there, on the likeliest way.
    pub(super) fn before(&self, id: u32) -> (u32, BookMove) {
        self.nodes[id as usize].parent
    }

    /// The moves of the likeliest way to a position.
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

    pub(super) fn position(&self, id: u32) -> Keyed<VariantPosition> {
        position_after(&self.start, self.line(id))
    }

    /// The share of the games that is still in the repertoire after each half-move of the opponent.
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

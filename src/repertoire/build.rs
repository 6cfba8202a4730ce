//! Building a repertoire: one own move in each position, and the replies that matter.

use std::cmp::Reverse;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use shakmaty::{Color, Position, variant::VariantPosition};

use super::{
    Known,
    reach::{Met, Node, Walk},
};
use crate::{
    error::{Error, Result},
    position::{BookMove, Keyed},
    progress::Meter,
    tally::Stats,
    tree::{Branch, Source, TreeMove},
};

/// How own moves are chosen. Of equal moves, that of more games is chosen.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum By {
    /// The score: the lower end of its Wilson interval, so that a few lucky games decide nothing.
    Score,
    /// The most games.
    Games,
    /// The highest weight.
    Weight,
}

impl By {
    /// The way of choosing that a source allows.
    pub fn default_of(source: &Known) -> By {
        match source.has_results() {
            true => By::Score,
            false => By::Weight,
        }
    }

    fn best(self, moves: Vec<TreeMove>) -> Option<TreeMove> {
        let value = |mv: &TreeMove| match self {
            By::Score => mv.stats.map_or(0.0, Stats::lower_bound),
            By::Games => mv.games() as f64,
            By::Weight => mv.weight as f64,
        };
        moves.into_iter().reduce(|best, mv| {
            let order = value(&mv).total_cmp(&value(&best));
            match order.then(mv.games().cmp(&best.games())).is_gt() {
                true => mv,
                false => best,
            }
        })
    }
}

/// The best of the moves that a source has. Where it has none, its games ended: the move that leads back to most of its
/// games. `None` if no move does.
///
/// # Errors
///
/// A file that cannot be read, and a choice by results of a source that has none.
pub(super) fn answer_of(
    source: &Known,
    moves: Vec<TreeMove>,
    pos: &Keyed<VariantPosition>,
    by: By,
) -> Result<Option<TreeMove>> {
    if by != By::Weight && !source.has_results() {
        let problem = "a book has weights and no results: choose its moves with --by weight";
        return Err(Error::file("--by", problem));
    }
    if let Some(best) = by.best(moves) {
        return Ok(Some(best));
    }
    let mut best: Option<(u64, TreeMove)> = None;
    for mv in pos.position().legal_moves() {
        let mut after = pos.clone();
        after.play(mv);
        let games = source.moves(&after)?.iter().map(TreeMove::games).sum();
        if games > 0 && best.as_ref().is_none_or(|(most, _)| games > *most) {
            best = Some((games, TreeMove::known(mv, 0, None)));
        }
    }
    Ok(best.map(|(_, mv)| mv))
}

/// What a repertoire is built of.
pub struct Build<'a> {
    /// Where lines start.
    pub start: &'a VariantPosition,
    /// The side of the repertoire.
    pub color: Color,
    /// What was played.
    pub source: &'a Known,
    /// Moves that are chosen already.
    pub keep: Option<&'a Known>,
    /// How other own moves are chosen.
    pub by: By,
    /// Replies are answered if one game in this many comes to the position after them.
    pub one_in: f64,
    /// How many games an own move that is chosen has at least. Lines end where there is none.
    pub min_game: u64,
    /// How many half-moves lines have at most; the last is an own move.
    pub max_ply: Option<usize>,
    /// How many bytes positions may take.
    pub memory: usize,
    /// How far it is.
    pub meter: &'a Meter,
}

/// A repertoire that was built: a source of its moves, with replies.
#[derive(Debug)]
pub struct Built {
    moves: FxHashMap<u64, Vec<TreeMove>>,
    /// How likely games come to the position after each move.
    reach: FxHashMap<(u64, BookMove), f64>,
    /// What came of it.
    pub summary: BuildSummary,
}

/// What came of building a repertoire.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, Serialize)]
pub struct BuildSummary {
    /// Positions with an own move.
    pub positions: u64,
    /// Own moves that were chosen already.
    pub kept: u64,
    /// Own moves that no game of the source played there: they lead back to its games.
    pub without_games: u64,
    /// Likely replies without an answer, because the games of the source end there.
    pub unanswered: u64,
}

/// A little less than one, for rounding.
const ALMOST: f64 = 1.0 - 1e-9;

/// Builds a repertoire: one own move in each position, those of `keep` first, and each reply that is likely enough.
///
/// # Errors
///
/// A file that cannot be read, more positions than memory may hold, a choice by results of a source without any, and a
/// source that does not know the first position.
pub fn build(build: &Build<'_>) -> Result<Built> {
    let walk = Walk {
        start: build.start,
        color: build.color,
        source: build.source,
        max_ply: build.max_ply,
        memory: build.memory,
        meter: build.meter,
    };
    let start = Keyed::new(build.start.clone());
    if build.source.moves(&start)?.is_empty() {
        let problem = "the source knows no move in the first position: choose another with --from";
        return Err(Error::file("--from", problem));
    }
    let mut summary = BuildSummary::default();
    let mut unanswered = FxHashSet::default();
    let met = walk.run(&mut |pos, reach| {
        let kept = match build.keep {
            Some(keep) => keep.moves(pos)?,
            None => Vec::new(),
        };
        if !kept.is_empty() {
            summary.positions += 1;
            summary.kept += kept.len() as u64;
            let known = build.source.moves(pos)?;
            let with_results = kept.into_iter().map(|mv| {
                let known = known.iter().find(|known| known.mv == mv.mv);
                known.cloned().unwrap_or(TreeMove::known(mv.mv, 0, None))
            });
            return Ok(Some(with_results.collect()));
        }
        let mut known = build.source.moves(pos)?;
        known.retain(|mv| mv.games() >= build.min_game);
        let is_end = known.is_empty() && build.min_game > 0;
        if reach * build.one_in < ALMOST || is_end {
            return Ok(None);
        }
        let Some(answer) = answer_of(build.source, known, pos, build.by)? else {
            unanswered.insert(pos.identity());
            return Ok(None);
        };
        summary.positions += 1;
        summary.without_games += u64::from(answer.games() == 0);
        Ok(Some(vec![answer]))
    })?;
    summary.unanswered = unanswered.len() as u64;
    Ok(Built::of(&met, build.color, summary))
}

impl Built {
    fn of(met: &Met, color: Color, summary: BuildSummary) -> Built {
        let mut built = Built {
            moves: FxHashMap::default(),
            reach: FxHashMap::default(),
            summary,
        };
        let is_answered = |node: &Node| node.edges.is_some();
        let reach = met.reach();
        for (id, node) in met.nodes.iter().enumerate() {
            let Some(edges) = &node.edges else { continue };
            let pos = met.position(id as u32);
            let identity = pos.identity();
            let mut edges: Vec<_> = edges.iter().collect();
            let is_own = pos.position().turn() == color;
            edges.retain(|edge| is_own || is_answered(&met.nodes[edge.to as usize]));
            edges.sort_by_key(|edge| Reverse(edge.games));
            let moves = edges.into_iter().filter_map(|edge| {
                let reach = reach[edge.to as usize];
                built.reach.insert((identity, edge.mv), reach);
                let mv = edge.mv.to_move(pos.position())?;
                Some(TreeMove::known(mv, edge.games.max(1), edge.stats))
            });
            let moves: Vec<TreeMove> = moves.collect();
            if !moves.is_empty() {
                built.moves.insert(identity, moves);
            }
        }
        built
    }

    /// What a comment says of a move: its games, its score, and how often games come to the position after it. Moves of
    /// others were kept.
    pub fn comment(&self, branch: &Branch<'_>) -> String {
        let reach = self
            .reach
            .get(&(branch.pos.identity(), branch.mv.mv.into()));
        let Some(reach) = reach else {
            return "kept".to_owned();
        };
        let games = match branch.mv.stats {
            None => "no games".to_owned(),
            Some(stats) => {
                let s = if stats.games() == 1 { "" } else { "s" };
                let score = stats.score() * 100.0;
                format!("{} game{s}, {score:.1}%", stats.games())
            }
        };
        format!("{games}, 1 in {:.1}", 1.0 / reach.min(1.0))
    }
}

impl Source for Built {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        let moves = self.moves.get(&pos.identity());
        Ok(moves.cloned().unwrap_or_default())
    }
}

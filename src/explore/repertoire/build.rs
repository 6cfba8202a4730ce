//! Builds a repertoire: one move of the player in each position, for all replies of the opponent that are likely
//! enough.

use std::cmp::Reverse;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use shakmaty::{Color, Position, variant::VariantPosition};

use super::{
    OpenedSource,
    reach::{Propagation, ReachGraph, ReachNode},
};
use crate::{
    chess::position::{BookMove, Keyed},
    error::{Advice, Diagnosis, Error, ErrorKind, Result, plural},
    explore::tree::{Branch, MoveSource, TreeMove},
    games::{openings, results::Wdl},
    progress::Meter,
};

/// A rule by which [`build`] chooses the repertoire's move in a position from the moves that were played there. Of
/// several equally good moves, the one with the most games is chosen.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum OwnMoveRule {
    /// Chooses the move with the highest score, measured by the lower bound of its Wilson interval, so that a few lucky
    /// games do not decide. A move that was played in fewer than 1 % of the games of the position is chosen only if no
    /// move was played in more.
    Score,
    /// Chooses the move that was played in the most games.
    Games,
    /// Chooses the move with the highest weight.
    Weight,
}

impl OwnMoveRule {
    /// Returns the default rule for `source`: [`Score`](OwnMoveRule::Score) if the source contains results, and
    /// [`Weight`](OwnMoveRule::Weight) if it contains only weights.
    pub fn default_of(source: &OpenedSource) -> OwnMoveRule {
        if source.has_results() {
            OwnMoveRule::Score
        } else {
            OwnMoveRule::Weight
        }
    }

    /// Returns the best of `moves` by this rule, or `None` if `moves` is empty. All `moves` must belong to the same
    /// position, in which `turn` is the side to move.
    fn best(self, moves: Vec<TreeMove>, turn: Color) -> Option<TreeMove> {
        let games: u64 = moves.iter().map(TreeMove::games).sum();
        let is_rare = |mv: &TreeMove| mv.games().saturating_mul(100) < games;
        let value = |mv: &TreeMove| match self {
            OwnMoveRule::Score if is_rare(mv) => -1.0,
            OwnMoveRule::Score => mv.stats(turn).map_or(0.0, Wdl::lower_bound),
            OwnMoveRule::Games => mv.games() as f64,
            OwnMoveRule::Weight => mv.weight as f64,
        };
        moves.into_iter().reduce(|best, mv| {
            let order = value(&mv).total_cmp(&value(&best));
            if order.then(mv.games().cmp(&best.games())).is_gt() {
                mv
            } else {
                best
            }
        })
    }
}

/// Chooses a move for the repertoire's side in the position `pos` by the rule `by`. The candidates are `moves`, which
/// are all or some of the moves of `source` in `pos`. If `moves` is empty, chooses the legal move after which `source`
/// has the most games. Returns `None` if `source` has no games after any legal move.
///
/// # Errors
///
/// Returns an error if the source cannot be read, or if the rule `by` needs results or games but the source contains
/// only weights.
pub(super) fn answer_of(
    source: &OpenedSource,
    moves: Vec<TreeMove>,
    pos: &Keyed<VariantPosition>,
    by: OwnMoveRule,
) -> Result<Option<TreeMove>> {
    if by != OwnMoveRule::Weight && !source.has_results() {
        let problem = Diagnosis::new("a book contains weights but no results")
            .advise(Advice::option("choose the moves with {}", "by").with_value("weight"));
        return Err(Error::option(ErrorKind::Unsuitable, "by", problem));
    }
    if let Some(best) = by.best(moves, pos.position().turn()) {
        return Ok(Some(best));
    }
    let mut best: Option<(u64, TreeMove)> = None;
    for mv in pos.position().legal_moves() {
        let mut after = pos.clone();
        after.play(mv);
        let games = source.moves(&after)?.iter().map(TreeMove::games).sum();
        if games > 0 && best.as_ref().is_none_or(|(most, _)| games > *most) {
            best = Some((games, TreeMove::without_evaluation(mv, 0, None)));
        }
    }
    Ok(best.map(|(_, mv)| mv))
}

/// The options for building a repertoire with [`build`].
pub struct Build<'a> {
    /// The position in which all lines start.
    pub start: &'a VariantPosition,
    /// The side for which the repertoire is built.
    pub color: Color,
    /// The source of the moves that were played in games.
    pub source: &'a OpenedSource,
    /// An earlier repertoire whose moves are kept, if any. Where it contains a move, no new move is chosen.
    pub keep: Option<&'a OpenedSource>,
    /// The rule by which all other moves of the player are chosen.
    pub by: OwnMoveRule,
    /// Determines how likely a reply must be to get an answer: 1 in `one_in` games must be expected to reach the
    /// position after the reply.
    pub one_in: f64,
    /// The minimum number of games of a chosen move. A line ends where no move reaches this minimum.
    ///
    /// `None` means a minimum that grows with the number of games in the first position: the square root of this
    /// number, divided by 25 and rounded down. This is 0 for up to 624 games, 10 for 67,000, and 40 for a million. With
    /// this default, a move without games may be chosen if it leads to a position with games.
    pub min_game: Option<u64>,
    /// The maximum length of lines in half-moves, or `None` for no limit. A line always ends with a move of the player.
    pub max_ply: Option<usize>,
    /// The maximum memory for positions, in bytes.
    pub memory: usize,
    /// Receives the progress, and can cancel the build.
    pub meter: &'a Meter,
}

/// A repertoire that [`build`] has built. As a [`MoveSource`], it returns the moves of the repertoire's side, and those
/// replies of the opponent that the repertoire answers.
#[derive(Debug)]
pub struct Built {
    /// The side of the repertoire.
    color: Color,
    moves: FxHashMap<u64, Vec<TreeMove>>,
    /// The probability that a game reaches the position after each move. A key is the move, with the identity (a hash)
    /// of the position before it.
    reach: FxHashMap<(u64, BookMove), f64>,
    /// The numbers of positions and moves in the repertoire.
    pub summary: BuildSummary,
    /// The opening families that the repertoire covers. The family with the most answers comes first.
    pub openings: Vec<CoveredOpening>,
}

/// An opening family that a repertoire covers.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CoveredOpening {
    /// The name of the family, such as `Sicilian Defense`.
    pub name: &'static str,
    /// The number of answers after which the likeliest line is in this family. A line is in the family of its last
    /// position that has a name.
    pub answers: u64,
}

/// The numbers of positions and moves in a repertoire that [`build`] has built.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, Serialize)]
pub struct BuildSummary {
    /// The minimum number of games of a chosen move that was in effect.
    pub min_game: u64,
    /// The number of positions in which the player has a move. Positions of the kept repertoire `Build::keep` that the
    /// games do not reach are not counted.
    pub answers: u64,
    /// The number of the player's moves in these positions that were kept from an earlier repertoire.
    pub kept: u64,
    /// The number of the player's moves that were never played in their position. They lead to positions that other
    /// games of the source reached.
    pub without_games: u64,
    /// The number of chosen moves that were played in only one game of the source.
    pub single_game: u64,
    /// The number of positions that are likely enough for an answer but have none, because the games of the source
    /// end there.
    pub unanswered: u64,
}

/// A number slightly below 1, with which products of probabilities are compared instead of 1, because rounding errors
/// can make a product slightly too small.
const ALMOST_ONE: f64 = 1.0 - 1e-9;

/// Builds a repertoire for one side. In each position with this side to move, keeps the moves of the repertoire
/// `build.keep` or, if it has none there, chooses one move. Follows each reply of the opponent that is likely enough
/// (see [`Build::one_in`]).
///
/// # Errors
///
/// Returns an error if a source cannot be read, if the source contains no move in the first position, or if the
/// positions need more memory than `build.memory`. Also returns an error if moves are chosen by results but the source
/// contains only weights.
pub fn build(build: &Build<'_>) -> Result<Built> {
    let walk = Propagation {
        start: build.start,
        color: build.color,
        source: build.source,
        weights: None,
        max_ply: build.max_ply,
        memory: build.memory,
        meter: build.meter,
    };
    let start = Keyed::new(build.start.clone());
    let first = build.source.moves(&start)?;
    if first.is_empty() {
        return Err(if *build.start == build.source.variant().start() {
            let problem = Diagnosis::new("no game has a move in the starting position").advise(
                Advice::option("give a position of the games with {}", "from"),
            );
            Error::file("the source", problem)
        } else {
            let problem =
                "no game of the source has a move in this position: give another position";
            Error::option(ErrorKind::Unsuitable, "from", problem)
        });
    }
    let games: u64 = first.iter().map(TreeMove::games).sum();
    let by_weight = !build.source.has_results();
    let usual = if by_weight { 0 } else { games.isqrt() / 25 };
    let min_game = build.min_game.unwrap_or(usual);
    let mut summary = BuildSummary {
        min_game,
        ..BuildSummary::default()
    };
    let mut unanswered = FxHashSet::default();
    let graph = walk.run(&mut |pos, reach| {
        let kept = match build.keep {
            Some(keep) => keep.moves(pos)?,
            None => Vec::new(),
        };
        if !kept.is_empty() {
            summary.answers += 1;
            summary.kept += kept.len() as u64;
            let known = build.source.moves(pos)?;
            let with_results = kept.into_iter().map(|mv| {
                let known = known.iter().find(|known| known.mv == mv.mv);
                known
                    .cloned()
                    .unwrap_or(TreeMove::without_evaluation(mv.mv, 0, None))
            });
            return Ok(Some(with_results.collect()));
        }
        let mut known = build.source.moves(pos)?;
        let had_games = !known.is_empty();
        known.retain(|mv| mv.games() >= min_game);
        let is_end = match build.min_game {
            Some(least) => known.is_empty() && least > 0,
            None => known.is_empty() && had_games,
        };
        if reach * build.one_in < ALMOST_ONE || is_end {
            return Ok(None);
        }
        let Some(answer) = answer_of(build.source, known, pos, build.by)? else {
            unanswered.insert(pos.identity());
            return Ok(None);
        };
        summary.answers += 1;
        summary.without_games += u64::from(answer.games() == 0);
        summary.single_game += u64::from(!by_weight && answer.games() == 1);
        Ok(Some(vec![answer]))
    })?;
    summary.unanswered = unanswered.len() as u64;
    Ok(Built {
        openings: covered_openings(&graph, build.color),
        ..Built::of(&graph, build.color, summary)
    })
}

/// Returns the families of the openings that the moves of the side `color` reach.
fn covered_openings(graph: &ReachGraph, color: Color) -> Vec<CoveredOpening> {
    let mut answers: FxHashMap<&str, u64> = FxHashMap::default();
    for (id, node) in (0..).zip(&graph.nodes) {
        let edges = node.edges.as_deref().unwrap_or_default();
        if edges.is_empty() || graph.position(id).position().turn() != color {
            continue;
        }
        for edge in edges {
            let mut pos = graph.position(0).position().clone();
            let mut opening = openings::name_of(&pos);
            for mv in graph.line(edge.to) {
                pos.play_unchecked(mv);
                opening = openings::name_of(&pos).or(opening);
            }
            if let Some(opening) = opening {
                *answers.entry(opening.family()).or_default() += 1;
            }
        }
    }
    let covered = answers
        .into_iter()
        .map(|(name, answers)| CoveredOpening { name, answers });
    let mut covered: Vec<CoveredOpening> = covered.collect();
    covered.sort_by_key(|opening| (Reverse(opening.answers), opening.name));
    covered
}

impl Built {
    /// Creates the repertoire of the side `color` from `graph`, the graph of positions that a walk has visited. The
    /// repertoire contains the moves of this side, and those replies of the opponent that this side answers. The moves
    /// in each position are sorted by number of games in descending order. `summary` is stored in the result.
    pub(super) fn of(graph: &ReachGraph, color: Color, summary: BuildSummary) -> Built {
        let mut built = Built {
            color,
            moves: FxHashMap::default(),
            reach: FxHashMap::default(),
            summary,
            openings: Vec::new(),
        };
        let is_answered = |node: &ReachNode| node.edges.is_some();
        let reach = graph.reach();
        for (id, node) in graph.nodes.iter().enumerate() {
            let Some(edges) = &node.edges else { continue };
            let pos = graph.position(id as u32);
            let identity = pos.identity();
            let mut edges: Vec<_> = edges.iter().collect();
            let is_own = pos.position().turn() == color;
            edges.retain(|edge| is_own || is_answered(&graph.nodes[edge.to as usize]));
            edges.sort_by_key(|edge| Reverse(edge.games));
            let moves = edges.into_iter().filter_map(|edge| {
                let reach = reach[edge.to as usize];
                built.reach.insert((identity, edge.mv), reach);
                let mv = edge.mv.to_move(pos.position())?;
                Some(TreeMove::without_evaluation(
                    mv,
                    edge.games.max(1),
                    edge.results,
                ))
            });
            let moves: Vec<TreeMove> = moves.collect();
            if !moves.is_empty() {
                built.moves.insert(identity, moves);
            }
        }
        built
    }

    /// Returns the comment on the move `branch` for a PGN file. `comments` says how detailed it is:
    ///
    /// - A full comment contains the number of games and the score of the move. For a move of the opponent, it also
    ///   says how likely the position after the move is: `1 in 12.5` means one game in 12.5.
    /// - A [short](CommentDetail::Short) comment contains only the score of a move of the repertoire's side, or only
    ///   the likelihood after a move of the opponent.
    /// - With [`CommentDetail::None`], the comment is empty.
    ///
    /// The comment is `kept` for a move that was taken from the earlier repertoire `build.keep`.
    pub fn comment(&self, branch: &Branch<'_>, comments: CommentDetail) -> String {
        if comments == CommentDetail::None {
            return String::new();
        }
        let reach = self
            .reach
            .get(&(branch.pos.identity(), branch.mv.mv.into()));
        let Some(reach) = reach else {
            return "kept".to_owned();
        };
        let mv = branch.mv;
        let turn = branch.pos.position().turn();
        let is_own = turn == self.color;
        let finished = mv.stats(turn).filter(|stats| stats.games() > 0);
        let score = finished.map(|stats| format!("{:.1}%", stats.score() * 100.0));
        let one_in = (!is_own).then(|| format!("1 in {:.1}", 1.0 / reach.min(1.0)));
        if comments == CommentDetail::Short {
            return one_in.or(score).unwrap_or_default();
        }
        let games = match mv.results {
            None => "no games".to_owned(),
            Some(_) => plural(mv.games(), "game"),
        };
        let unfinished = mv.results.map_or(0, |results| results.unfinished);
        let unfinished = (unfinished > 0).then(|| format!("{unfinished} without result"));
        let parts = [Some(games), unfinished, score, one_in];
        Vec::from_iter(parts.into_iter().flatten()).join(", ")
    }
}

/// The level of detail of the comments on moves in a repertoire that is written as PGN.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum CommentDetail {
    /// The moves have no comments.
    None,
    /// The score of each move of the repertoire's side, and how likely the position after each reply of the opponent
    /// is. For example, `1 in 12.5` means that one of 12.5 games is expected to reach it.
    Short,
    /// The number of games and the score of each move, and how likely the position after each reply of the opponent is.
    #[default]
    Full,
}

impl MoveSource for Built {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        let moves = self.moves.get(&pos.identity());
        Ok(moves.cloned().unwrap_or_default())
    }
}

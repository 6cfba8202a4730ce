//! Reports what a repertoire contains in the last position of a line. The command `serve` shows the report next to the
//! board.

use rustc_hash::FxHashSet;
use serde::Serialize;
use shakmaty::{Color, Position, variant::VariantPosition};

use super::{OpenedSource, reach::Propagation, san};
use crate::{
    chess::position::{BookMove, Keyed, Variant},
    error::Result,
    explore::{
        explorer::{Explorer, Line, Reply, Selection},
        tree::{Limits, LinesOf, MoveSource, Order, Tree, TreeEvent, TreeMove, played},
    },
    progress::Meter,
};

/// An index of the predecessors of each position in a repertoire. A predecessor is a position from which one move of
/// the repertoire leads to the position.
#[derive(Debug)]
pub struct Predecessors {
    color: Color,
    /// Pairs of the identities (hashes) of a position and of one of its predecessors, sorted ascending and
    /// deduplicated.
    before: Vec<(u64, u64)>,
}

impl Predecessors {
    /// Builds the index for all positions that the lines of a repertoire reach. `color` is the side of the repertoire.
    /// `meter` can cancel the walk through the lines.
    ///
    /// # Errors
    ///
    /// Returns an error if the repertoire cannot be read, or if `meter` cancels the walk.
    pub fn new(repertoire: &OpenedSource, color: Color, meter: &Meter) -> Result<Predecessors> {
        let mut before = Vec::new();
        for start in repertoire.starts() {
            let lines = LinesOf(repertoire, color);
            let tree = Tree::new(lines, start, Limits::default(), meter);
            tree.walk(Order::Positions, &mut |event| {
                if let TreeEvent::Move(branch) = event {
                    before.push((branch.after.identity(), branch.pos.identity()));
                }
                Ok(())
            })?;
        }
        before.sort_unstable();
        before.dedup();
        Ok(Predecessors { color, before })
    }

    /// Returns `true` if the repertoire has no moves.
    pub fn is_empty(&self) -> bool {
        self.before.is_empty()
    }

    /// Returns the predecessors of the position `pos`: the positions from which one move of the repertoire leads to it.
    /// All positions are given by their identities (hashes).
    fn before(&self, pos: u64) -> impl Iterator<Item = u64> {
        let first = self.before.partition_point(|(after, _)| *after < pos);
        let of_pos = self.before[first..].iter();
        let of_pos = of_pos.take_while(move |(after, _)| *after == pos);
        of_pos.map(|(_, before)| *before)
    }

    /// Returns all positions from which a sequence of one or more moves of the repertoire leads to the position `pos`.
    /// All positions are given by their identities (hashes).
    fn leading_to(&self, pos: u64) -> FxHashSet<u64> {
        let (mut found, mut waiting) = (FxHashSet::default(), vec![pos]);
        while let Some(pos) = waiting.pop() {
            waiting.extend(self.before(pos).filter(|before| found.insert(*before)));
        }
        found
    }
}

/// A report on the position at the end of a line of moves. It says how likely games are to reach the position, and
/// lists the moves that a repertoire contains there and the opponent's replies that it does not answer.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LineReport {
    /// Whether the position belongs to the repertoire: the repertoire contains moves there, or one of its moves leads
    /// there.
    pub is_known: bool,
    /// The rarity of the position: one in this many games is expected to reach it by the lines of the repertoire.
    /// `None` if no game is expected to reach it.
    pub one_in: Option<f64>,
    /// If the player is to move, the moves of the repertoire; otherwise the replies that the repertoire answers.
    pub moves: Vec<KnownMove>,
    /// The gaps of the repertoire in the position (see [`Reply`]), the most played first. Empty if the player is to
    /// move.
    pub gaps: Vec<LineGap>,
    /// The opponent's moves in the position if a line of the repertoire ends there, the most played first. Otherwise
    /// empty.
    pub line_ends: Vec<LineGap>,
}

/// A move in UCI notation and in SAN.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LineMove {
    /// The move in UCI notation, with castling as the king capturing its rook.
    pub uci: String,
    /// The move in SAN.
    pub san: String,
}

/// A move that a repertoire contains. If it is a move of the opponent, the repertoire's answers to it are included.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct KnownMove {
    /// The move.
    #[serde(flatten)]
    pub mv: LineMove,
    /// If the opponent plays the move, the repertoire's answers to it; otherwise empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<LineMove>,
    /// Whether the file of the repertoire does not contain the move, but lines that the user added do. Always `false`
    /// for a reply of the opponent.
    #[serde(rename = "added", skip_serializing_if = "std::ops::Not::not")]
    pub is_added: bool,
}

/// A reply of the opponent that was played in games, and that a repertoire does not answer.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LineGap {
    /// The reply.
    #[serde(flatten)]
    pub mv: LineMove,
    /// The rarity of the reply: one in this many games is expected to reach the position and to continue with the
    /// reply. `None` if no game is expected to reach the position.
    pub one_in: Option<f64>,
    /// The number of games with the reply.
    pub games: u64,
}

/// Creates a report on the position at the end of `line`. The report says how likely games are to reach the position.
/// It lists the moves that the repertoire contains there, and the opponent's replies that the repertoire does not
/// answer.
///
/// The opponent's replies and their probabilities come from the games of `explorer` that pass `filters`. Replies in
/// fewer than `min_games` games are left out. `predecessors` must have been built from `repertoire`.
///
/// # Errors
///
/// Returns an error if the repertoire or the explorer cannot be read, or if the filters name a source that does not
/// exist.
pub fn line_report(
    line: &Line,
    repertoire: &OpenedSource,
    predecessors: &Predecessors,
    explorer: &Explorer,
    filters: &Selection,
    min_games: u64,
) -> Result<LineReport> {
    let pos = Keyed::new(line.position().clone());
    let paths = PathsTo {
        pos: pos.identity(),
        before: predecessors.leading_to(pos.identity()),
        explorer,
        variant: line.variant(),
        filters,
    };
    let start = repertoire.start(line.variant(), predecessors.color)?;
    let reach = paths.reach_from(&start, repertoire, predecessors.color)?;
    let one_in = |share: f64| {
        let reach = reach * share;
        (reach > 0.0).then(|| 1.0 / reach)
    };
    let named = |pos: &Keyed<VariantPosition>, mv: &TreeMove| LineMove {
        uci: BookMove::from(mv.mv).to_string(),
        san: san(pos.position(), mv.mv),
    };
    let is_own = pos.position().turn() == predecessors.color;
    let added = if is_own {
        repertoire.added_moves(&pos)?
    } else {
        Vec::new()
    };
    let answered = |mv: &TreeMove| {
        let mut after = pos.clone();
        after.play(mv.mv);
        let answers = if is_own {
            Vec::new()
        } else {
            repertoire.moves(&after)?
        };
        Ok(KnownMove {
            mv: named(&pos, mv),
            answers: answers.iter().map(|answer| named(&after, answer)).collect(),
            is_added: added.contains(&mv.mv),
        })
    };
    let known = LinesOf(repertoire, predecessors.color).moves(&pos)?;
    let mut report = LineReport {
        is_known: !known.is_empty()
            || predecessors.before(pos.identity()).next().is_some()
            || ends_with_own_move(line, predecessors.color, repertoire)?,
        one_in: one_in(1.0),
        moves: known.iter().map(answered).collect::<Result<_>>()?,
        gaps: Vec::new(),
        line_ends: Vec::new(),
    };
    if report.is_known && !is_own {
        let moves = played(explorer, line.variant(), pos.position(), filters)?;
        let games: u64 = moves.iter().map(TreeMove::games).sum();
        for mv in &moves {
            let mut after = pos.position().clone();
            after.play_unchecked(mv.mv);
            let is_answered = known.iter().any(|known| known.mv == mv.mv);
            let answers_another = || Ok(!known.is_empty());
            let list = match Reply::of(&after, mv.games(), min_games, is_answered, answers_another)?
            {
                Reply::Gap => &mut report.gaps,
                Reply::LineEnd => &mut report.line_ends,
                Reply::Rare | Reply::Answered => continue,
            };
            list.push(LineGap {
                mv: named(&pos, mv),
                one_in: one_in(mv.games() as f64 / games.max(1) as f64),
                games: mv.games(),
            });
        }
    }
    Ok(report)
}

/// A source of the opponent's replies, used to compute the probability that a game reaches a target position. It
/// returns replies only in positions from which moves of the repertoire can lead to the target, so a walk visits only
/// the positions on lines to the target and those one move away from these lines.
struct PathsTo<'a> {
    pos: u64,
    /// The positions from which moves of the repertoire lead to the target, given by their identities (hashes).
    before: FxHashSet<u64>,
    explorer: &'a Explorer,
    variant: Variant,
    filters: &'a Selection,
}

impl PathsTo<'_> {
    /// Returns the probability, from 0 to 1, that a game from the position `start` reaches the target position.
    /// Assumes that the side `color` plays the moves of the repertoire, and that the opponent plays the replies of
    /// this source.
    fn reach_from(
        &self,
        start: &VariantPosition,
        repertoire: &OpenedSource,
        color: Color,
    ) -> Result<f64> {
        let walk = Propagation {
            start,
            color,
            source: self,
            weights: None,
            max_ply: None,
            // The walk visits no more than the positions of the repertoire and the replies to them.
            memory: usize::MAX,
            meter: &Meter::default(),
        };
        let met = walk.run(&mut |pos, _| {
            let moves = if self.leads_on(pos) {
                repertoire.moves(pos)?
            } else {
                Vec::new()
            };
            Ok((!moves.is_empty()).then_some(moves))
        })?;
        Ok(met.reach_of(self.pos).unwrap_or(0.0))
    }

    /// Returns `true` if a sequence of one or more moves of the repertoire leads from `pos` to the target position.
    fn leads_on(&self, pos: &Keyed<VariantPosition>) -> bool {
        pos.identity() != self.pos && self.before.contains(&pos.identity())
    }
}

impl MoveSource for PathsTo<'_> {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        if self.leads_on(pos) {
            played(self.explorer, self.variant, pos.position(), self.filters)
        } else {
            Ok(Vec::new())
        }
    }
}

/// Returns `true` if the side `color` played the last move of `line` and the repertoire contains this move.
fn ends_with_own_move(line: &Line, color: Color, repertoire: &OpenedSource) -> Result<bool> {
    let Some(mv) = line.moves().last() else {
        return Ok(false);
    };
    let before = &line.positions()[line.moves().len() - 1];
    if before.turn() != color {
        return Ok(false);
    }
    let known = repertoire.moves(&Keyed::new(before.clone()))?;
    Ok(known.iter().any(|known| known.mv == *mv))
}

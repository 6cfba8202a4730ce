//! Finding the gaps of a repertoire: moves of the opponent that the repertoire does not answer. Also finds the
//! positions in which a repertoire contains several moves of its own side.

use rustc_hash::FxHashMap;
use serde::Serialize;
use shakmaty::{Color, Move, Position, variant::VariantPosition};

use super::{
    OpenedSource, OwnMoveRule,
    build::answer_of,
    reach::{Coverage, ReachGraph, Walk},
    san,
};
use crate::{
    error::Result,
    position::{Keyed, fen_of, line_text, uci},
    progress::Meter,
    tree::{Limits, LinesOf, MoveSource, Order, Tree, TreeEvent, TreeMove},
};

/// The options for [`gaps`], which finds the opponent's moves that a repertoire does not answer.
pub struct FindGaps<'a> {
    /// The repertoire.
    pub repertoire: &'a OpenedSource,
    /// The side of the repertoire.
    pub color: Color,
    /// The source of the moves that opponents play.
    pub source: &'a OpenedSource,
    /// The position in which lines start.
    pub start: &'a VariantPosition,
    /// The maximum length of lines in half-moves, or `None` for no limit. The last half-move of a line is the player's.
    pub max_ply: Option<usize>,
    /// The minimum number of games of a gap. Gaps with fewer games are left out.
    pub min_game: u64,
    /// The number of gaps that get an answer, the likeliest first, and the rule that chooses the answers. A gap after
    /// which the source contains no games gets no answer.
    pub add: (usize, OwnMoveRule),
    /// The maximum memory for positions, in bytes.
    pub memory: usize,
    /// Reports progress, and can cancel the search.
    pub meter: &'a Meter,
}

/// A move of the opponent that a repertoire does not answer. If several such moves lead to the same position, only the
/// most likely one counts as a gap.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Gap {
    /// The FEN of the position before the move.
    pub fen: String,
    /// The likeliest line to the position before the move, in SAN with move numbers.
    pub line: String,
    /// The move in SAN, or `None` if the repertoire contains no move in the first position.
    #[serde(rename = "move")]
    pub mv: Option<String>,
    /// The move in UCI notation, or `None` as for `mv`.
    pub uci: Option<String>,
    /// The line and the move after it, in SAN with move numbers. Empty if there is no move.
    pub moves: String,
    /// The reciprocal of the share of games that are expected to reach the position after the move. The value 12.5
    /// means that one in 12.5 games is expected to reach it.
    pub one_in: f64,
    /// The number of games with the move.
    pub games: u64,
    /// Whether the repertoire answers no reply in the position before the move, so that its line ends there.
    pub is_line_end: bool,
    /// The answer that was added, in SAN, or `None` if no answer was added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The number of games with the answer, or its weight if the source is a book. `None` if no answer was added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_games: Option<u64>,
}

/// A line of a repertoire that ends because the source of games contains no reply of the opponent after it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SourceEnd {
    /// The line in SAN with move numbers.
    pub line: String,
    /// The reciprocal of the share of games that are expected to reach the position after the line. The value 12.5
    /// means that one in 12.5 games is expected to reach it.
    pub one_in: f64,
}

/// The result of [`gaps`]: the opponent's moves that a repertoire does not answer, and the share of games that
/// the repertoire covers.
#[derive(Debug, Serialize)]
pub struct Gaps {
    /// The FEN of the position in which lines start, or `None` if it is the start of the variant.
    pub start: Option<String>,
    /// The number of positions that games reach and in which the repertoire contains a move.
    pub positions: u64,
    /// The number of these positions in which the repertoire contains several moves. Each of these moves counts as
    /// certain.
    pub contradictions: u64,
    /// The positions in which the repertoire contains several moves, the likeliest first.
    pub several_moves: Vec<SeveralMoves>,
    /// The share of the games that are still in the repertoire after each half-move of the opponent, in ascending
    /// order of half-moves.
    pub coverage: Vec<Coverage>,
    /// The likeliest line of the repertoire after which the source contains no games, or `None` if there is no such
    /// line.
    pub source_end: Option<SourceEnd>,
    /// The gaps, sorted from the likeliest to the least likely.
    pub gaps: Vec<Gap>,
    /// The answers that were added.
    #[serde(skip)]
    pub added: Additions,
}

/// The moves that are added to a repertoire, for example the answers that `gaps --add` chooses.
#[derive(Debug, Default)]
pub struct Additions {
    /// The answers, each with its position. Keys are the identities of the positions.
    pub(super) answers: FxHashMap<u64, (VariantPosition, TreeMove)>,
    /// The likeliest line to each answer, with the answer, in the order of the gaps.
    pub(super) lines: Vec<String>,
}

impl Additions {
    /// Creates additions to a repertoire in PGN from lines of legal moves. Each line begins in the position `start`.
    /// Such additions cannot be used for a book.
    pub fn from_lines<'a>(
        start: &VariantPosition,
        lines: impl IntoIterator<Item = &'a [Move]>,
    ) -> Additions {
        let lines = lines.into_iter().map(|line| line_text(start, line).0);
        Additions {
            lines: lines.collect(),
            ..Additions::default()
        }
    }
}

impl MoveSource for Additions {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        let answer = self.answers.get(&pos.identity());
        Ok(answer
            .map(|(_, answer)| answer.clone())
            .into_iter()
            .collect())
    }
}

/// Finds the opponent's moves that a repertoire does not answer. Also chooses answers to the most likely of these
/// moves; `find.add` contains the maximum number of answers, and the rule that chooses them.
///
/// # Errors
///
/// Returns an error if a source cannot be read, if the positions exceed `find.memory`, or if answers are chosen by
/// results but the source has only weights.
pub fn gaps(find: &FindGaps<'_>) -> Result<Gaps> {
    let walk = Walk {
        start: find.start,
        color: find.color,
        source: find.source,
        max_ply: find.max_ply,
        memory: find.memory,
        meter: find.meter,
    };
    let mut positions = 0;
    let mut several: Vec<(u64, String, Vec<String>)> = Vec::new();
    let graph = walk.run(&mut |pos, _| {
        let moves = find.repertoire.moves(pos)?;
        positions += u64::from(!moves.is_empty());
        if moves.len() > 1 {
            let moves = moves.iter().map(|mv| san(pos.position(), mv.mv));
            several.push((pos.identity(), fen_of(pos.position()), moves.collect()));
        }
        Ok((!moves.is_empty()).then_some(moves))
    })?;
    let unanswered = |id: &u32| {
        let node = &graph.nodes[*id as usize];
        node.edges.is_none() && node.reach > 0.0
    };
    let mut found: Vec<(u32, Gap)> = (0..graph.nodes.len() as u32)
        .filter(unanswered)
        .map(|id| Ok((id, gap(find, &graph, id)?)))
        .collect::<Result<_>>()?;
    found.retain(|(_, gap)| gap.mv.is_none() || gap.games >= find.min_game);
    found.sort_by(|(_, a), (_, b)| {
        let by_line = || (&a.line, &a.mv).cmp(&(&b.line, &b.mv));
        a.one_in.total_cmp(&b.one_in).then_with(by_line)
    });
    let mut added = Additions::default();
    let (wanted, by) = find.add;
    for (id, gap) in found.iter_mut().take(wanted) {
        let pos = graph.position(*id);
        if let Some(answer) = answer_of(find.source, find.source.moves(&pos)?, &pos, by)? {
            gap.answer = Some(san(pos.position(), answer.mv));
            gap.answer_games = Some(answer.games());
            let mut line = graph.line(*id);
            line.push(answer.mv);
            let remark = if answer.games() == 0 {
                " {no games}"
            } else {
                ""
            };
            added.lines.push(line_text(find.start, &line).0 + remark);
            let answer = (pos.position().clone(), answer);
            added.answers.insert(pos.identity(), answer);
        }
    }
    several.sort_unstable();
    several.dedup_by_key(|(pos, ..)| *pos);
    let contradictions = several.len() as u64;
    let reach = |pos: &u64| graph.reach_of(*pos).unwrap_or(0.0);
    several.sort_by(|(a, ..), (b, ..)| reach(b).total_cmp(&reach(a)));
    let several_moves = several.into_iter().filter_map(|(pos, fen, moves)| {
        let line = line_text(find.start, &graph.line_to(pos)?).0;
        Some(SeveralMoves { fen, line, moves })
    });
    let usual = VariantPosition::new(find.start.variant());
    Ok(Gaps {
        start: (*find.start != usual).then(|| fen_of(find.start)),
        positions,
        contradictions,
        several_moves: several_moves.collect(),
        coverage: graph.coverage(find.color),
        source_end: source_end(find, &graph),
        gaps: found.into_iter().map(|(_, gap)| gap).collect(),
        added,
    })
}

/// Returns the most likely line after which the source of games contains no reply of the opponent. `graph` contains the
/// positions that a walk through the repertoire has visited. Returns `None` if the source contains a reply after every
/// line. If several lines are equally likely, returns the one whose text sorts first.
fn source_end(find: &FindGaps<'_>, graph: &ReachGraph) -> Option<SourceEnd> {
    let ends = (0..).zip(&graph.nodes);
    let ends = ends.filter(|(_, node)| node.is_source_end && node.reach > 0.0);
    let most = ends.clone().map(|(_, node)| node.reach).reduce(f64::max)?;
    let likeliest = ends.filter(|(_, node)| node.reach == most);
    let line = |(id, _)| line_text(find.start, &graph.line(id)).0;
    Some(SourceEnd {
        line: likeliest.map(line).min()?,
        one_in: 1.0 / most.min(1.0),
    })
}

/// Returns a description of the opponent's move that leads to a position without an answer in the repertoire. `id` is
/// the index of this position in `graph`, which contains the positions that a walk through the repertoire has visited.
fn gap(find: &FindGaps<'_>, graph: &ReachGraph, id: u32) -> Result<Gap> {
    let whole = graph.line(id);
    let (last, line) = match whole.split_last() {
        Some((last, line)) => (Some(*last), line),
        None => (None, &[][..]),
    };
    let (text, pos) = line_text(find.start, line);
    let pos = &pos;
    let (before, mv) = graph.before(id);
    let edges = graph.nodes[before as usize].edges.iter().flatten();
    let mut edges = edges.filter(|edge| edge.to == id && edge.mv == mv);
    debug_assert!(last.is_none() || pos.turn() != find.color);
    let lines = LinesOf(find.repertoire, find.color);
    Ok(Gap {
        fen: fen_of(pos),
        line: text,
        mv: last.map(|mv| san(pos, mv)),
        uci: last.map(|mv| uci(pos, mv)),
        moves: line_text(find.start, &whole).0,
        one_in: 1.0 / graph.nodes[id as usize].reach.min(1.0),
        games: edges.next().map_or(0, |edge| edge.games),
        is_line_end: last.is_some() && lines.moves(&Keyed::new(pos.clone()))?.is_empty(),
        answer: None,
        answer_games: None,
    })
}

/// A position in which a repertoire contains more than one move for the repertoire's side.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SeveralMoves {
    /// The FEN of the position.
    pub fen: String,
    /// A line to the position, in SAN with move numbers.
    pub line: String,
    /// The moves of the repertoire in SAN.
    pub moves: Vec<String>,
}

/// Returns the positions in which a repertoire contains more than one move for the side `color`, in the order of the
/// repertoire's lines. A position that several lines reach is listed once, with the first of these lines.
///
/// # Errors
///
/// Returns an error if the repertoire cannot be read.
pub fn several_moves(repertoire: &OpenedSource, color: Color) -> Result<Vec<SeveralMoves>> {
    let mut found: Vec<SeveralMoves> = Vec::new();
    let mut numbers: FxHashMap<u64, usize> = FxHashMap::default();
    let meter = Meter::default();
    for start in repertoire.starts() {
        let mut line = Vec::new();
        let lines = LinesOf(repertoire, color);
        let tree = Tree::new(lines, start.clone(), Limits::default(), &meter);
        tree.walk(Order::Lines, &mut |event| {
            let TreeEvent::Move(branch) = event else {
                return Ok(());
            };
            let pos = branch.pos.position();
            line.truncate(branch.ply);
            if pos.turn() == color {
                let number = *numbers.entry(branch.pos.identity()).or_insert_with(|| {
                    found.push(SeveralMoves {
                        fen: fen_of(pos),
                        line: line_text(&start, &line).0,
                        moves: Vec::new(),
                    });
                    found.len() - 1
                });
                let mv = san(pos, branch.mv.mv);
                if !found[number].moves.contains(&mv) {
                    found[number].moves.push(mv);
                }
            }
            line.push(branch.mv.mv);
            Ok(())
        })?;
    }
    found.retain(|position| position.moves.len() > 1);
    Ok(found)
}

//! Finds the gaps of a repertoire, which are moves of the opponent that the repertoire does not answer (see [`Reply`]).
//! Also finds the positions in which a repertoire contains several moves of its own side.

use rustc_hash::FxHashMap;
use serde::Serialize;
use shakmaty::{Color, Move, Position, variant::VariantPosition};

use super::{
    OpenedSource, OwnMoveRule,
    build::answer_of,
    reach::{Coverage, Edge, Propagation, ReachGraph},
    san,
};
use crate::{
    chess::position::{Keyed, fen_of, line_text, uci},
    error::Result,
    explore::{
        explorer::{MIN_REPLY_GAMES, Reply},
        tree::{Limits, LinesOf, MoveSource, Order, Tree, TreeEvent, TreeMove},
    },
    progress::Meter,
};

/// The options for [`gaps`], which finds the gaps of a repertoire.
pub struct FindGaps<'a> {
    /// The repertoire.
    pub repertoire: &'a OpenedSource,
    /// The side for which the repertoire contains moves.
    pub color: Color,
    /// The source of the moves that opponents play.
    pub source: &'a OpenedSource,
    /// The position in which all lines start.
    pub start: &'a VariantPosition,
    /// The maximum length of lines in half-moves, or `None` for no limit. A line always ends with a move of the player.
    /// If there is a limit, the user has decided where lines end, so the result contains no
    /// [`line_ends`](Gaps::line_ends).
    pub max_ply: Option<usize>,
    /// The minimum number of games in which the opponent's move must have been played to count as a gap. `None` means
    /// [`MIN_REPLY_GAMES`] or, if the source contains only weights, no minimum.
    pub min_game: Option<u64>,
    /// The maximum number of gaps that get an answer, and the rule that chooses the answers. The likeliest gaps are
    /// answered first and then, if there are fewer gaps, the likeliest ends of lines. A gap after which the source
    /// contains no games gets no answer.
    pub add: (usize, OwnMoveRule),
    /// The maximum memory for positions, in bytes.
    pub memory: usize,
    /// Receives the progress, and can cancel the search.
    pub meter: &'a Meter,
}

/// A move of the opponent that a repertoire does not answer: a [gap](Reply::Gap), or a move [after the end of a
/// line](Reply::LineEnd). If several such moves lead to the same position, only the most likely one is listed.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
    /// The answer that was added, in SAN, or `None` if no answer was added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The number of games with the answer, or its weight if the source is a book. `None` if no answer was added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_games: Option<u64>,
}

/// A line of a repertoire that ends because the source of games contains no reply of the opponent after it.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SourceEnd {
    /// The line in SAN with move numbers.
    pub line: String,
    /// The reciprocal of the share of games that are expected to reach the position after the line. The value 12.5
    /// means that one in 12.5 games is expected to reach it.
    pub one_in: f64,
    /// The number of games with the last move of the line that the opponent played, or `None` if the line contains no
    /// such move.
    pub games: Option<u64>,
}

/// The result of [`gaps`]: the opponent's moves that a repertoire does not answer, and the share of games that
/// the repertoire covers.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
    /// The gaps, sorted from the likeliest to the least likely. If the repertoire contains no move in the first
    /// position, this position is the only gap.
    pub gaps: Vec<Gap>,
    /// The opponent's moves after the ends of the repertoire's lines, sorted from the likeliest to the least likely.
    /// Empty if the search has a maximum length of lines.
    pub line_ends: Vec<Gap>,
    /// The answers that were added to the repertoire.
    #[serde(skip)]
    pub added: Additions,
}

/// Moves that are added to a repertoire, for example the answers that `gaps --add` chooses.
#[derive(Debug, Default)]
pub struct Additions {
    /// The answers, each with its position. A key is the identity (a hash) of the position.
    pub(super) answers: FxHashMap<u64, (VariantPosition, TreeMove)>,
    /// For each answer, the likeliest line that ends with it, in the order of the gaps.
    pub(super) lines: Vec<String>,
}

impl Additions {
    /// Creates additions from lines of legal moves, each of which begins in the position `start`. The result can be
    /// added only to a repertoire in PGN, not to a book.
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

/// Finds the gaps of a repertoire, and the opponent's moves after the ends of its lines. Also chooses answers to the
/// likeliest of these moves: `find.add` contains the maximum number of answers, and the rule that chooses them.
///
/// # Errors
///
/// Returns an error if a source cannot be read, if the positions need more memory than `find.memory`, or if answers are
/// chosen by results but the source contains only weights.
pub fn gaps(find: &FindGaps<'_>) -> Result<Gaps> {
    let walk = Propagation {
        start: find.start,
        color: find.color,
        source: find.source,
        weights: None,
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
    let unanswered = (0..graph.nodes.len() as u32).filter(unanswered);
    let mut search = GapSearch::new(find, &graph);
    let mut found: [Vec<(u32, Gap)>; 2] = Default::default();
    for id in unanswered {
        let [gaps, line_ends] = &mut found;
        match search.reply(id)? {
            (Reply::Gap, last) => gaps.push((id, search.gap(id, last))),
            (Reply::LineEnd, last) if find.max_ply.is_none() => {
                line_ends.push((id, search.gap(id, last)));
            }
            _ => {}
        }
    }
    for list in &mut found {
        list.sort_by(|(_, a), (_, b)| {
            let by_line = || (&a.line, &a.mv).cmp(&(&b.line, &b.mv));
            a.one_in.total_cmp(&b.one_in).then_with(by_line)
        });
    }
    let mut added = Additions::default();
    let (wanted, by) = find.add;
    for (id, gap) in found.iter_mut().flatten().take(wanted) {
        let pos = graph.position(*id);
        if let Some(answer) = answer_of(find.source, find.source.moves(&pos)?, &pos, by)? {
            gap.answer = Some(san(pos.position(), answer.mv));
            gap.answer_games = Some(answer.games());
            let (_, last) = search.reply(*id)?;
            let mut line = last.map_or_else(Vec::new, |(from, _)| graph.line(from));
            line.extend(
                last.and_then(|(from, edge)| edge.mv.to_move(graph.position(from).position())),
            );
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
    let [gaps, line_ends] = found.map(|list| list.into_iter().map(|(_, gap)| gap).collect());
    Ok(Gaps {
        start: (*find.start != usual).then(|| fen_of(find.start)),
        positions,
        contradictions,
        several_moves: several_moves.collect(),
        coverage: graph.coverage(find.color),
        source_end: source_end(find, &graph),
        gaps,
        line_ends,
        added,
    })
}

/// Returns the likeliest line of the repertoire after which no game contains a reply of the opponent. Returns `None` if
/// some game contains a reply after every line. Of several equally likely lines, returns the one whose text sorts
/// first. `graph` contains the positions that a walk through the repertoire has visited.
fn source_end(find: &FindGaps<'_>, graph: &ReachGraph) -> Option<SourceEnd> {
    let ends = (0..).zip(&graph.nodes);
    let ends = ends.filter(|(_, node)| node.is_source_end && node.reach > 0.0);
    let most = ends.clone().map(|(_, node)| node.reach).reduce(f64::max)?;
    let likeliest = ends.filter(|(_, node)| node.reach == most);
    let line = |(id, _)| (line_text(find.start, &graph.line(id)).0, id);
    let (line, id) = likeliest.map(line).min()?;
    // The last move is the player's; the one before it is the opponent's.
    let (before, _) = graph.before(id);
    let (opponent, mv) = graph.before(before);
    let edges = graph.nodes[opponent as usize].edges.iter().flatten();
    let mut edges = edges.filter(|edge| edge.to == before && edge.mv == mv && before != 0);
    Some(SourceEnd {
        line,
        one_in: 1.0 / most.min(1.0),
        games: edges.next().map(|edge| edge.games),
    })
}

/// A search for moves of the opponent after which the repertoire contains no answer.
struct GapSearch<'a> {
    find: &'a FindGaps<'a>,
    min_game: u64,
    /// The positions that a walk through the repertoire has visited.
    graph: &'a ReachGraph,
    /// For each node without an answer, the nodes and moves that lead to it.
    edges_to: FxHashMap<u32, Vec<(u32, &'a Edge)>>,
    /// Whether the repertoire answers at least one move in the position of a node. An entry is added when it is first
    /// needed.
    answers_some: FxHashMap<u32, bool>,
}

impl<'a> GapSearch<'a> {
    fn new(find: &'a FindGaps<'a>, graph: &'a ReachGraph) -> GapSearch<'a> {
        let mut edges_to: FxHashMap<u32, Vec<(u32, &Edge)>> = FxHashMap::default();
        for (from, node) in (0..).zip(&graph.nodes) {
            let edges = node.edges.iter().flatten();
            for edge in edges.filter(|edge| graph.nodes[edge.to as usize].edges.is_none()) {
                edges_to.entry(edge.to).or_default().push((from, edge));
            }
        }
        let default = if find.source.has_results() {
            MIN_REPLY_GAMES
        } else {
            0
        };
        GapSearch {
            find,
            min_game: find.min_game.unwrap_or(default),
            graph,
            edges_to,
            answers_some: FxHashMap::default(),
        }
    }

    /// Returns whether the repertoire is prepared for the moves that lead to the node `id`, and one of these moves,
    /// with the node before it. A move that is a gap is preferred to one at the end of a line; of several such moves,
    /// the likeliest is returned. The first node, to which no move leads, counts as a gap.
    fn reply(&mut self, id: u32) -> Result<(Reply, Option<(u32, &'a Edge)>)> {
        let after = self.graph.position(id);
        let mut best: Option<(Reply, f64, (u32, &Edge))> = None;
        for (from, edge) in self.edges_to.get(&id).cloned().unwrap_or_default() {
            let (find, graph) = (self.find, self.graph);
            let answers_some = &mut self.answers_some;
            let answers_another = || {
                if let Some(known) = answers_some.get(&from) {
                    return Ok(*known);
                }
                let lines = LinesOf(find.repertoire, find.color);
                let answered = !lines.moves(&graph.position(from))?.is_empty();
                answers_some.insert(from, answered);
                Ok(answered)
            };
            let min_game = self.min_game;
            let reply = Reply::of(
                after.position(),
                edge.games,
                min_game,
                false,
                answers_another,
            )?;
            let share = graph.nodes[from as usize].reach * edge.share;
            let is_better = |(best, most, _): &(Reply, f64, _)| {
                reply.cmp(best).then(most.total_cmp(&share)).is_lt()
            };
            if best.as_ref().is_none_or(is_better) {
                best = Some((reply, share, (from, edge)));
            }
        }
        Ok(match best {
            Some((reply, _, edge)) => (reply, Some(edge)),
            None => (Reply::Gap, None),
        })
    }

    /// Returns a description of the opponent's move that leads to the node `id`. `last` contains this move and the node
    /// before it, or is `None` if `id` is the first node.
    fn gap(&self, id: u32, last: Option<(u32, &Edge)>) -> Gap {
        let before = last.map_or_else(Vec::new, |(from, _)| self.graph.line(from));
        let (line, pos) = line_text(self.find.start, &before);
        let mv = last.and_then(|(_, edge)| edge.mv.to_move(&pos));
        let mut whole = before;
        whole.extend(mv);
        Gap {
            fen: fen_of(&pos),
            line,
            mv: mv.map(|mv| san(&pos, mv)),
            uci: mv.map(|mv| uci(&pos, mv)),
            moves: line_text(self.find.start, &whole).0,
            one_in: 1.0 / self.graph.nodes[id as usize].reach.min(1.0),
            games: last.map_or(0, |(_, edge)| edge.games),
            answer: None,
            answer_games: None,
        }
    }
}

/// A position in which a repertoire contains more than one move for the repertoire's side.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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

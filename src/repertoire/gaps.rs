//! The opponent's moves that a repertoire does not answer.

use rustc_hash::FxHashMap;
use serde::Serialize;
use shakmaty::{Color, Position, variant::VariantPosition};

use super::{
    By, Known,
    build::answer_of,
    line_text,
    reach::{Coverage, Met, Walk},
    san,
};
use crate::{
    error::Result,
    position::{Keyed, fen_of, uci},
    progress::Meter,
    tree::{LinesOf, Source, TreeMove},
};

/// Where gaps are looked for.
pub struct FindGaps<'a> {
    /// The repertoire.
    pub repertoire: &'a Known,
    /// Its side.
    pub color: Color,
    /// What opponents play.
    pub source: &'a Known,
    /// Where lines start.
    pub start: &'a VariantPosition,
    /// How many half-moves lines have at most; the last is an own move.
    pub max_ply: Option<usize>,
    /// How many games a gap has at least.
    pub min_game: u64,
    /// How many of the gaps get an answer if a game has one, and how it is chosen.
    pub add: (usize, By),
    /// How many bytes positions may take.
    pub memory: usize,
    /// How far it is.
    pub meter: &'a Meter,
}

/// A move of the opponent without an answer. If several lead to the same position, the likeliest.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Gap {
    /// The position before it.
    pub fen: String,
    /// The likeliest line to that position.
    pub line: String,
    /// The move in SAN; `None` if the repertoire has no move in the first position.
    #[serde(rename = "move")]
    pub mv: Option<String>,
    /// The same in UCI notation.
    pub uci: Option<String>,
    /// The line and the move; empty without a move.
    pub moves: String,
    /// One game in this many comes to the position after the move.
    pub one_in: f64,
    /// The games of the move.
    pub games: u64,
    /// Whether the line ends before it: the repertoire answers no reply there.
    pub is_line_end: bool,
    /// The answer that was added, in SAN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The games of that answer; its weight in a book.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_games: Option<u64>,
}

/// A line after which a source has no games.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SourceEnd {
    /// The likeliest line.
    pub line: String,
    /// One game in this many comes there.
    pub one_in: f64,
}

/// The gaps of a repertoire.
#[derive(Debug, Serialize)]
pub struct Gaps {
    /// Where lines start; `None` if it is the start of the variant.
    pub start: Option<String>,
    /// How many positions it answers that games come to.
    pub positions: u64,
    /// In how many of them it has several moves. Each counts as certain.
    pub contradictions: u64,
    /// The share of the games that is still in it after each half-move of the opponent.
    pub coverage: Vec<Coverage>,
    /// The likeliest line of the repertoire after which the source has no games.
    pub source_end: Option<SourceEnd>,
    /// The gaps, the likeliest first.
    pub gaps: Vec<Gap>,
    /// The answers that were added.
    #[serde(skip)]
    pub added: Added,
}

/// Answers that were added.
#[derive(Debug, Default)]
pub struct Added {
    /// The positions and their answers.
    pub(super) answers: FxHashMap<u64, (VariantPosition, TreeMove)>,
    /// The likeliest line to each answer, those to the likeliest gaps first.
    pub(super) lines: Vec<String>,
}

impl Source for Added {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        let answer = self.answers.get(&pos.identity());
        Ok(answer
            .map(|(_, answer)| answer.clone())
            .into_iter()
            .collect())
    }
}

/// Finds the opponent's moves without an answer, and answers the likeliest of them if that is asked for.
///
/// # Errors
///
/// A file that cannot be read, more positions than memory may hold, and answers that cannot be chosen as asked.
pub fn gaps(find: &FindGaps<'_>) -> Result<Gaps> {
    let walk = Walk {
        start: find.start,
        color: find.color,
        source: find.source,
        max_ply: find.max_ply,
        memory: find.memory,
        meter: find.meter,
    };
    let (mut positions, mut contradictions) = (0, 0);
    let met = walk.run(&mut |pos, _| {
        let moves = find.repertoire.moves(pos)?;
        positions += u64::from(!moves.is_empty());
        contradictions += u64::from(moves.len() > 1);
        Ok((!moves.is_empty()).then_some(moves))
    })?;
    let unanswered = |id: &u32| {
        let node = &met.nodes[*id as usize];
        node.edges.is_none() && node.reach > 0.0
    };
    let mut found: Vec<(u32, Gap)> = (0..met.nodes.len() as u32)
        .filter(unanswered)
        .map(|id| Ok((id, gap(find, &met, id)?)))
        .collect::<Result<_>>()?;
    found.retain(|(_, gap)| gap.mv.is_none() || gap.games >= find.min_game);
    found.sort_by(|(_, a), (_, b)| {
        let by_line = || (&a.line, &a.mv).cmp(&(&b.line, &b.mv));
        a.one_in.total_cmp(&b.one_in).then_with(by_line)
    });
    let mut added = Added::default();
    let (wanted, by) = find.add;
    for (id, gap) in found.iter_mut().take(wanted) {
        let pos = met.position(*id);
        if let Some(answer) = answer_of(find.source, find.source.moves(&pos)?, &pos, by)? {
            gap.answer = Some(san(pos.position(), answer.mv));
            gap.answer_games = Some(answer.games());
            let mut line = met.line(*id);
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
    let usual = VariantPosition::new(find.start.variant());
    Ok(Gaps {
        start: (*find.start != usual).then(|| fen_of(find.start)),
        positions,
        contradictions,
        coverage: met.coverage(find.color),
        source_end: source_end(find, &met),
        gaps: found.into_iter().map(|(_, gap)| gap).collect(),
        added,
    })
}

fn source_end(find: &FindGaps<'_>, met: &Met) -> Option<SourceEnd> {
    let ends = (0..).zip(&met.nodes);
    let ends = ends.filter(|(_, node)| node.is_source_end && node.reach > 0.0);
    let most = ends.clone().map(|(_, node)| node.reach).reduce(f64::max)?;
    let likeliest = ends.filter(|(_, node)| node.reach == most);
    let line = |(id, _)| line_text(find.start, &met.line(id)).0;
    Some(SourceEnd {
        line: likeliest.map(line).min()?,
        one_in: 1.0 / most.min(1.0),
    })
}

fn gap(find: &FindGaps<'_>, met: &Met, id: u32) -> Result<Gap> {
    let whole = met.line(id);
    let (last, line) = match whole.split_last() {
        Some((last, line)) => (Some(*last), line),
        None => (None, &[][..]),
    };
    let (text, pos) = line_text(find.start, line);
    let pos = &pos;
    let (before, mv) = met.before(id);
    let edges = met.nodes[before as usize].edges.iter().flatten();
    let mut edges = edges.filter(|edge| edge.to == id && edge.mv == mv);
    debug_assert!(last.is_none() || pos.turn() != find.color);
    let lines = LinesOf(find.repertoire, find.color);
    Ok(Gap {
        fen: fen_of(pos),
        line: text,
        mv: last.map(|mv| san(pos, mv)),
        uci: last.map(|mv| uci(pos, mv)),
        moves: line_text(find.start, &whole).0,
        one_in: 1.0 / met.nodes[id as usize].reach.min(1.0),
        games: edges.next().map_or(0, |edge| edge.games),
        is_line_end: last.is_some() && lines.moves(&Keyed::new(pos.clone()))?.is_empty(),
        answer: None,
        answer_games: None,
    })
}

//! What a repertoire says of the last position of a line.

use serde::Serialize;
use shakmaty::{Color, Position, variant::VariantPosition};

use super::{Known, san};
use crate::{
    error::Result,
    explorer::{Explorer, Filters, Line},
    position::{BookMove, Keyed},
    tree::{LinesOf, Source, TreeMove, played},
};

/// What a repertoire says of the last position of a line.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LineReport {
    /// Whether the position is in the repertoire: it has moves, or its own move led there.
    pub is_known: bool,
    /// One game in this many comes here along the line, if it plays the own moves; `None` if no game plays the others.
    pub one_in: Option<f64>,
    /// The own moves, or the replies that it answers.
    pub moves: Vec<LineMove>,
    /// The replies that were played and that it does not answer, those of most games first.
    pub gaps: Vec<LineGap>,
}

/// A move of a repertoire.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LineMove {
    /// In UCI notation, castling as king takes rook.
    pub uci: String,
    /// In SAN.
    pub san: String,
}

/// A reply without an answer.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LineGap {
    /// The reply.
    #[serde(flatten)]
    pub mv: LineMove,
    /// One game in this many comes to the position after it along the line.
    pub one_in: Option<f64>,
    /// The games of the reply.
    pub games: u64,
}

/// What a repertoire says where a line has come. Replies are those of the games that pass the filters.
///
/// # Errors
///
/// A file that cannot be read, or a source that does not exist.
pub fn along(
    line: &Line,
    color: Color,
    repertoire: &Known,
    explorer: &Explorer,
    filters: &Filters,
) -> Result<LineReport> {
    let replies = |pos: &VariantPosition| played(explorer, line.variant(), pos, filters);
    let share = |moves: &[TreeMove], games: u64| {
        games as f64 / moves.iter().map(TreeMove::games).sum::<u64>().max(1) as f64
    };
    let mut reach = 1.0;
    for (pos, mv) in line.positions().iter().zip(line.moves()) {
        if reach > 0.0 && pos.turn() != color {
            let moves = replies(pos)?;
            let of_move = moves.iter().find(|played| played.mv == *mv);
            reach *= share(&moves, of_move.map_or(0, TreeMove::games));
        }
    }
    let one_in = |reach: f64| (reach > 0.0).then(|| 1.0 / reach);
    let pos = Keyed::new(line.position().clone());
    let named = |mv: &TreeMove| LineMove {
        uci: BookMove::from(mv.mv).to_string(),
        san: san(pos.position(), mv.mv),
    };
    let known = LinesOf(repertoire, color).moves(&pos)?;
    let mut report = LineReport {
        is_known: !known.is_empty() || led_here(line, color, repertoire)?,
        one_in: one_in(reach),
        moves: known.iter().map(named).collect(),
        gaps: Vec::new(),
    };
    if report.is_known && pos.position().turn() != color {
        let moves = replies(pos.position())?;
        let is_gap = |mv: &&TreeMove| known.iter().all(|known| known.mv != mv.mv);
        let gaps = moves.iter().filter(is_gap).map(|mv| LineGap {
            mv: named(mv),
            one_in: one_in(reach * share(&moves, mv.games())),
            games: mv.games(),
        });
        report.gaps = gaps.collect();
    }
    Ok(report)
}

/// Whether the last move of a line is an own move of the repertoire.
fn led_here(line: &Line, color: Color, repertoire: &Known) -> Result<bool> {
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

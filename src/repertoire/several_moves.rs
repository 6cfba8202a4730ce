//! The positions in which a repertoire has several moves of its side.

use rustc_hash::FxHashMap;
use serde::Serialize;
use shakmaty::{Color, Position};

use super::{MoveSource, line_text, san};
use crate::{
    error::Result,
    position::fen_of,
    progress::Meter,
    tree::{Limits, LinesOf, Order, Tree, TreeEvent},
};

/// A position in which a repertoire has more than one move for its own side.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SeveralMoves {
    /// The FEN of the position.
    pub fen: String,
    /// A line to the position, in SAN with move numbers.
    pub line: String,
    /// The moves of the repertoire in SAN.
    pub moves: Vec<String>,
}

/// Returns the positions in which a repertoire has more than one move for the side `color`. The positions are in the
/// order of the repertoire's lines. A position that several lines reach is listed once, with the first of these lines.
///
/// # Errors
///
/// Returns an error if the repertoire cannot be read.
pub fn several_moves(repertoire: &MoveSource, color: Color) -> Result<Vec<SeveralMoves>> {
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

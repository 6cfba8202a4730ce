//! Writing trees as indented text and as JSON lines, and movetext.

use std::{
    io::{self, Write},
    path::Path,
};

use serde::Serialize;
use shakmaty::{Move, Position, variant::VariantPosition};

use crate::{
    counts::Stats,
    error::{At, Result},
    evals::Eval,
    position::{Keyed, san, uci},
    walk::{Branch, Order, Source, Tree, TreeEvent},
};

/// Returns the number of the next move of a position as movetext has it: `12.` for White, `12...` for Black.
pub(crate) fn move_number(pos: &VariantPosition) -> String {
    let dots = if pos.turn().is_white() { "." } else { "..." };
    format!("{}{dots}", pos.fullmoves())
}

/// Appends a move to movetext such as `1. e4 c5 2. Nf3`. The first move and White's moves get their numbers.
pub(crate) fn push_move(text: &mut String, pos: &VariantPosition, mv: Move) {
    if !text.is_empty() {
        text.push(' ');
    }
    if text.is_empty() || pos.turn().is_white() {
        *text += &move_number(pos);
        text.push(' ');
    }
    *text += &san(pos, mv).to_string();
}

impl<S: Source> Tree<'_, S> {
    /// Writes the tree to `out` as text, one move a line, and returns the number of moves. `path` names the output in
    /// error messages.
    ///
    /// A line is indented by two blanks for each half-move before it. It has the move, its evaluation if there is one,
    /// its weight or its results, its share in percent, and `transposition` if the tree continues the position
    /// elsewhere.
    ///
    /// # Errors
    ///
    /// Returns an error if the source does, or if the output cannot be written.
    pub fn write_text(&self, out: &mut impl Write, path: &Path) -> Result<u64> {
        let mut moves = 0;
        self.walk(Order::Lines, &mut |event| {
            let TreeEvent::Move(branch) = event else {
                return Ok(());
            };
            moves += 1;
            writeln!(out, "{}", line(&branch)).at(path, "write")
        })?;
        Ok(moves)
    }
}

/// Returns the line of text for a move of the tree: the move, its numbers, and a mark for a transposition.
fn line(branch: &Branch<'_>) -> String {
    let pos = branch.pos.position();
    let number = move_number(pos);
    let san = san(pos, branch.mv.mv);
    let mark = match branch.is_transposition {
        true => "  transposition",
        false => "",
    };
    let indent = 2 * branch.ply;
    let eval = branch.mv.eval.map(|eval| format!("  {}", eval.score));
    let (remark, eval) = (remark(branch), eval.unwrap_or_default());
    format!("{:indent$}{number} {san}{eval}  {remark}{mark}", "")
}

/// Returns the statistics of a move: `weight 12, 8.5%`, or `+8 =20 -14, 30.0%` from the view of the side that moves.
/// Games without a result follow: `+8 =20 -14 *3, 32.1%`.
pub(super) fn remark(branch: &Branch<'_>) -> String {
    let mv = branch.mv;
    let share = format!("{:.1}%", branch.share);
    match mv.stats {
        _ if !mv.is_known => "any reply".to_owned(),
        Some(stats) => {
            let unfinished = match mv.unfinished {
                0 => String::new(),
                games => format!(" *{games}"),
            };
            format!(
                "+{} ={} -{}{unfinished}, {share}",
                stats.wins, stats.draws, stats.losses
            )
        }
        None => format!("weight {}, {share}", mv.weight),
    }
}

/// A position of a tree and its moves, as a JSON document.
#[derive(Serialize)]
struct TextLine {
    key: String,
    fen: String,
    /// The number of half-moves from the start.
    ply: usize,
    moves: Vec<TextMove>,
}

#[derive(Serialize)]
struct TextMove {
    uci: String,
    san: String,
    weight: u64,
    /// The share of the move in the weights of the position, in percent.
    probability: f64,
    #[serde(flatten)]
    stats: Option<Stats>,
    /// The number of games without a result.
    #[serde(skip_serializing_if = "Option::is_none")]
    unfinished: Option<u64>,
    /// Whether the source has the move; see [`TreeMove::is_known`](crate::walk::TreeMove::is_known).
    known: bool,
    /// Whether the tree continues the position after the move elsewhere.
    transposition: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    eval: Option<Eval>,
}

impl TextLine {
    fn new(pos: &Keyed<VariantPosition>, ply: usize) -> TextLine {
        let fen = crate::position::fen_of(pos.position());
        TextLine {
            key: format!("{:016x}", pos.key()),
            fen: fen.to_string(),
            ply,
            moves: Vec::new(),
        }
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut text = serde_json::to_vec(self)?;
        text.push(b'\n');
        out.write_all(&text)
    }
}

impl TextMove {
    fn new(branch: &Branch<'_>) -> TextMove {
        let pos = branch.pos.position();
        TextMove {
            uci: uci(pos, branch.mv.mv),
            san: san(pos, branch.mv.mv).to_string(),
            weight: branch.mv.weight,
            probability: branch.share,
            stats: branch.mv.stats,
            unfinished: Some(branch.mv.unfinished).filter(|games| *games > 0),
            known: branch.mv.is_known,
            transposition: branch.is_transposition,
            eval: branch.mv.eval,
        }
    }
}

impl<S: Source> Tree<'_, S> {
    /// Writes the tree to `out` as JSON lines, one document for each position with moves, and returns the number of
    /// moves. `path` names the output in error messages.
    ///
    /// # Errors
    ///
    /// Returns an error if the source does, or if the output cannot be written.
    pub fn write_jsonl(&self, out: &mut impl Write, path: &Path) -> Result<u64> {
        let mut moves = 0;
        let mut line: Option<TextLine> = None;
        self.walk(Order::Positions, &mut |event| {
            match event {
                TreeEvent::Position { pos, ply } => {
                    if let Some(line) = line.replace(TextLine::new(pos, ply)) {
                        line.write(out).at(path, "write")?;
                    }
                }
                TreeEvent::Move(branch) => {
                    moves += 1;
                    if let Some(line) = &mut line {
                        line.moves.push(TextMove::new(&branch));
                    }
                }
                TreeEvent::Game(_) | TreeEvent::Open | TreeEvent::Close => {}
            }
            Ok(())
        })?;
        if let Some(line) = line {
            line.write(out).at(path, "write")?;
        }
        Ok(moves)
    }
}

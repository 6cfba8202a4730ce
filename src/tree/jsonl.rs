//! Trees as JSON lines.

use std::{
    io::{self, Write},
    path::Path,
};

use serde::Serialize;
use shakmaty::{EnPassantMode, fen::Fen, san::SanPlus, variant::VariantPosition};

use super::{
    source::Source,
    walk::{Branch, Event, Limits, Order, walk},
};
use crate::{
    error::{At, Result},
    position::uci,
};

/// A position of a tree and the moves that are known there.
#[derive(Serialize)]
struct Line {
    key: String,
    fen: String,
    /// Half-moves from the start.
    ply: usize,
    moves: Vec<LineMove>,
}

#[derive(Serialize)]
struct LineMove {
    uci: String,
    san: String,
    weight: u64,
    /// The share of the weights of the position.
    percent: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    wins: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    draws: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    losses: Option<u64>,
    /// Whether the source has the move.
    known: bool,
    /// Whether the position behind it has a line elsewhere.
    transposition: bool,
}

impl LineMove {
    fn new(branch: &Branch<'_>) -> LineMove {
        let pos = branch.pos.position();
        let stats = branch.mv.stats;
        LineMove {
            uci: uci(pos, branch.mv.mv),
            san: SanPlus::from_move(pos.clone(), branch.mv.mv).to_string(),
            weight: branch.mv.weight,
            percent: branch.share,
            wins: stats.map(|stats| stats.wins),
            draws: stats.map(|stats| stats.draws),
            losses: stats.map(|stats| stats.losses),
            known: branch.mv.is_known,
            transposition: branch.is_transposition,
        }
    }
}

/// Writes a tree to `out`, which errors call `path`: a JSON document on a line for each position with its moves.
/// Answers how many moves there are.
///
/// # Errors
///
/// What the source answers, or an output that cannot be written.
pub fn write_jsonl(
    source: &impl Source,
    start: &VariantPosition,
    limits: &Limits,
    out: &mut impl Write,
    path: &Path,
) -> Result<u64> {
    let mut moves = 0;
    let mut line: Option<Line> = None;
    let mut write = |line: &mut Option<Line>| {
        let Some(line) = line.take() else {
            return Ok(());
        };
        moves += line.moves.len() as u64;
        let text = serde_json::to_vec(&line).map_err(io::Error::from);
        let written = text.and_then(|mut text| {
            text.push(b'\n');
            out.write_all(&text)
        });
        written.at(path, "write")
    };
    walk(source, start, limits, Order::Positions, &mut |event| {
        match event {
            Event::Position { pos, ply } => {
                write(&mut line)?;
                let fen = Fen::from_position(pos.position(), EnPassantMode::Legal);
                line = Some(Line {
                    key: format!("{:016x}", pos.key()),
                    fen: fen.to_string(),
                    ply,
                    moves: Vec::new(),
                });
            }
            Event::Move(branch) => {
                if let Some(line) = &mut line {
                    line.moves.push(LineMove::new(&branch));
                }
            }
            Event::Game(_) | Event::Open | Event::Close => {}
        }
        Ok(())
    })?;
    write(&mut line)?;
    Ok(moves)
}

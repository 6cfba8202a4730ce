//! Trees as indented text.

use std::{io::Write, path::Path};

use shakmaty::{san::SanPlus, variant::VariantPosition};

use super::{
    games::move_number,
    source::Source,
    walk::{Branch, Event, Limits, Order, walk},
};
use crate::error::{At, Result};

/// Writes a tree to `out`, which errors call `path`: a line for each move, two blanks further in for each half-move
/// before it, with its weight or its games, its share in percent, and `transposition` where the tree goes on
/// elsewhere. Answers how many moves there are.
///
/// # Errors
///
/// What the source answers, or an output that cannot be written.
pub fn write_text(
    source: &impl Source,
    start: &VariantPosition,
    limits: &Limits,
    out: &mut impl Write,
    path: &Path,
) -> Result<u64> {
    let mut moves = 0;
    walk(source, start, limits, Order::Lines, &mut |event| {
        let Event::Move(branch) = event else {
            return Ok(());
        };
        moves += 1;
        let pos = branch.pos.position();
        let number = move_number(pos);
        let san = SanPlus::from_move(pos.clone(), branch.mv.mv);
        let mark = if branch.is_transposition {
            "  transposition"
        } else {
            ""
        };
        let indent = 2 * branch.ply;
        let remark = remark(&branch);
        writeln!(out, "{:indent$}{number} {san}  {remark}{mark}", "").at(path, "write")
    })?;
    Ok(moves)
}

/// What is known of a move: `weight 12, 8.5%`, or `+8 =20 -14, 30%` for the side that moves.
pub(super) fn remark(branch: &Branch<'_>) -> String {
    let mv = branch.mv;
    let share = format!("{:.1}%", branch.share);
    match mv.stats {
        _ if !mv.is_known => "any reply".to_owned(),
        Some(stats) => format!(
            "+{} ={} -{}, {share}",
            stats.wins, stats.draws, stats.losses
        ),
        None => format!("weight {}, {share}", mv.weight),
    }
}

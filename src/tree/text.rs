//! Trees as indented text.

use std::{io::Write, path::Path};

use shakmaty::san::SanPlus;

use super::{
    Tree,
    games::move_number,
    source::Source,
    walk::{Branch, Event, Order},
};
use crate::error::{At, Result};

impl<S: Source> Tree<'_, S> {
    /// Writes the tree to `out`, which errors call `path`: a line for each move, two blanks further in for each
    /// half-move before it, with its weight or its games, its share in percent, and `transposition` where the tree goes
    /// on elsewhere. Returns how many moves there are.
    ///
    /// # Errors
    ///
    /// What the source answers, or an output that cannot be written.
    pub fn write_text(&self, out: &mut impl Write, path: &Path) -> Result<u64> {
        let mut moves = 0;
        self.walk(Order::Lines, &mut |event| {
            let Event::Move(branch) = event else {
                return Ok(());
            };
            moves += 1;
            writeln!(out, "{}", line(&branch)).at(path, "write")
        })?;
        Ok(moves)
    }
}

/// The line of a move.
fn line(branch: &Branch<'_>) -> String {
    let pos = branch.pos.position();
    let number = move_number(pos);
    let san = SanPlus::from_move(pos.clone(), branch.mv.mv);
    let mark = match branch.is_transposition {
        true => "  transposition",
        false => "",
    };
    let indent = 2 * branch.ply;
    format!("{:indent$}{number} {san}  {}{mark}", "", remark(branch))
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

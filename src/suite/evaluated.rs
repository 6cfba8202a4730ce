//! Positions by their evaluations.

use std::sync::Arc;

use shakmaty::{Position, variant::VariantPosition};

use crate::{error::Result, evals::Evals};

/// A range of evaluations, both ends among them. A mate is in none.
#[derive(Clone, PartialEq, Debug)]
pub struct EvalRange {
    /// The evaluations.
    pub evals: Arc<Evals>,
    /// The least and the most centipawns.
    pub centipawns: (i16, i16),
    /// Whether the better side's view counts, whichever it is. Otherwise it is White's.
    pub of_either: bool,
}

impl EvalRange {
    /// Its option of the command line.
    pub(super) fn option(&self) -> &'static str {
        match self.of_either {
            true => "--eval-abs",
            false => "--eval",
        }
    }

    /// Whether a position has an evaluation in the range.
    pub(super) fn judge(&self, pos: &VariantPosition) -> Result<Evaluated> {
        let Some(eval) = self.evals.of_position(pos)? else {
            return Ok(Evaluated::Unknown);
        };
        let (low, high) = self.centipawns;
        let centipawns = eval.score.as_centipawns().filter(|own| {
            let own = if self.of_either { own.abs() } else { *own };
            low <= own && own <= high
        });
        Ok(centipawns.map_or(Evaluated::LeftOut, |own| {
            let ce = pos.turn().fold_wb(own, -own);
            let depth = match eval.depth {
                0 => String::new(),
                depth => format!(" acd {depth};"),
            };
            Evaluated::Kept(format!("{depth} ce {ce};"))
        }))
    }
}

/// How a position fares by its evaluation.
pub(super) enum Evaluated {
    /// It is as asked. With the operations of an EPD that say so, if one was asked for.
    Kept(String),
    /// It is not.
    LeftOut,
    /// There is none.
    Unknown,
}

/// How many have no evaluation, after the reason why none is left.
pub(super) fn without_evaluation(count: u64) -> String {
    match count {
        0 => String::new(),
        count => format!("; {count} without an evaluation"),
    }
}

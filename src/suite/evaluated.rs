//! Filtering positions by their evaluations.

use std::sync::Arc;

use shakmaty::{Position, variant::VariantPosition};

use crate::{error::Result, evals::Evals};

/// A range of evaluations with inclusive bounds. Mate scores are outside of every range.
#[derive(Clone, PartialEq, Debug)]
pub struct EvalRange {
    /// The evaluations of positions.
    pub evals: Arc<Evals>,
    /// The lowest and the highest accepted evaluation, in centipawns.
    pub centipawns: (i16, i16),
    /// Whether evaluations are taken from the view of the side that is better, so that they are never negative. If
    /// `false`, they are taken from White's view.
    pub of_either: bool,
}

impl EvalRange {
    /// Returns the command-line option of the range.
    pub(super) fn option(&self) -> &'static str {
        match self.of_either {
            true => "--eval-abs",
            false => "--eval",
        }
    }

    /// Looks up the evaluation of a position, and compares it with the range.
    pub(super) fn judge(&self, pos: &VariantPosition) -> Result<RangeCheck> {
        let Some(eval) = self.evals.of_position(pos)? else {
            return Ok(RangeCheck::Unknown);
        };
        let (low, high) = self.centipawns;
        let centipawns = eval.score.as_centipawns().filter(|own| {
            let own = if self.of_either { own.abs() } else { *own };
            low <= own && own <= high
        });
        Ok(centipawns.map_or(RangeCheck::LeftOut, |own| {
            let ce = pos.turn().fold_wb(own, -own);
            let depth = match eval.depth {
                0 => String::new(),
                depth => format!(" acd {depth};"),
            };
            RangeCheck::Kept(format!("{depth} ce {ce};"))
        }))
    }
}

/// The result of comparing a position with a range of evaluations.
pub(super) enum RangeCheck {
    /// The evaluation is in the range. Contains the EPD operations `acd` and `ce` of the evaluation, or an empty text
    /// if the suite does not filter by evaluation.
    Kept(String),
    /// The evaluation is outside of the range.
    LeftOut,
    /// The position has no evaluation.
    Unknown,
}

/// Returns the part of an error message that states how many positions have no evaluation, or an empty text if `count`
/// is 0.
pub(super) fn without_evaluation(count: u64) -> String {
    match count {
        0 => String::new(),
        count => format!("; {count} without an evaluation"),
    }
}

//! Positions by their evaluations.

use std::sync::Arc;

use shakmaty::variant::VariantPosition;

use crate::{
    error::Result,
    evals::{Evals, Score},
};

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
    pub(super) fn contains(&self, pos: &VariantPosition) -> Result<bool> {
        let eval = self.evals.of_position(pos)?;
        let centipawns = eval.and_then(|eval| Score::as_centipawns(eval.score));
        let (low, high) = self.centipawns;
        Ok(centipawns.is_some_and(|own| {
            let own = if self.of_either { own.abs() } else { own };
            low <= own && own <= high
        }))
    }
}

//! What writes evaluations in one format.

use super::layout::EvalRecord;
use crate::{error::Result, output::Finished};

/// An output that is open.
pub(super) trait EvalsWriter: Send {
    /// Writes a record. Those before it have smaller keys. `origins` has the names of all.
    fn push(&mut self, record: &EvalRecord, origins: &[String]) -> Result<()>;

    /// Ends the output.
    fn finish(self: Box<Self>, origins: &[String]) -> Result<Finished>;
}

//! The interface of the formats in which evaluations are written.

use super::layout::EvalRecord;
use crate::{error::Result, output::Finished};

/// A writer of evaluations in one format.
pub(super) trait EvalsWriter: Send {
    /// Writes a record, whose key must be greater than the keys of all records before. `origins` has the names of all
    /// origins.
    fn push(&mut self, record: &EvalRecord, origins: &[String]) -> Result<()>;

    /// Writes the end of the output and returns it, to be committed.
    fn finish(self: Box<Self>, origins: &[String]) -> Result<Finished>;
}

//! Stands in for `database.rs` where the feature `obs` is left out: no run makes a database then.

use super::{MakeBook, report::Report, sealed::SealedCounts, starts::Starts};
use crate::{error::Result, output::Finished, provenance::Provenance};

/// There is none.
pub(super) enum Writer {}

impl MakeBook {
    pub(super) fn begin_obs(&self) -> Result<Option<Writer>> {
        Ok(None)
    }

    pub(super) fn write_obs(
        &self,
        writer: Writer,
        _counts: &SealedCounts,
        _starts: &Starts,
        _has_index: bool,
        _provenance: &Provenance,
        _report: &mut Report,
    ) -> Result<Finished> {
        match writer {}
    }
}

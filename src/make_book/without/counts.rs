//! Stands in for `counts.rs` where the feature `parquet` is left out: no run writes counts then.

use super::{MakeBook, report::Report, sealed::SealedCounts, starts::Starts};
use crate::{error::Result, output::Finished, provenance::Provenance};

/// There is none.
pub(super) enum Writer {}

impl MakeBook {
    pub(super) fn begin_counts(&self) -> Result<Option<Writer>> {
        Ok(None)
    }

    pub(super) fn write_counts(
        &self,
        writer: Writer,
        _sealed: &SealedCounts,
        _starts: &Starts,
        _provenance: &Provenance,
        _report: &mut Report,
    ) -> Result<Finished> {
        match writer {}
    }
}

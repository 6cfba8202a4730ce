//! The OOBS database among the outputs of a run.
//!
//! `without/database.rs` stands in for this file where the feature `obs` is left out.

use std::iter::once;

use shakmaty::Chess;

use super::{
    MakeBook, Phase,
    report::{ObsReport, Report},
    sealed::SealedCounts,
    starts::Starts,
};
use crate::{
    error::Result,
    obs::{self, Info, ObsWriter},
    output::Finished,
    position::{Keyed, Rules, Variant, parse_fen},
    provenance::Provenance,
    sort::Memory,
    tally::{Counts, SharedKeys},
};

pub(super) type Writer = ObsWriter;

impl MakeBook {
    /// Begins the database, if there is to be one.
    pub(super) fn begin_obs(&self) -> Result<Option<Writer>> {
        self.obs
            .as_ref()
            .map(|path| ObsWriter::create(path, |old| obs::check_replaceable(old, self.force)))
            .transpose()
    }

    /// The memory that is left for sorting the rows of a database.
    fn memory_for_rows(&self, counts: &SealedCounts, has_index: bool) -> Memory {
        let tables = counts.by_key.iter().chain(&counts.by_identity);
        let pairs = counts.pairs.as_ref().map_or(0, SharedKeys::bytes_in_memory);
        let counts = (tables.map(Counts::bytes_in_memory).sum::<u64>() + pairs) as usize;
        // Finding positions takes a byte a record more.
        let mut held = counts + counts / 8;
        if has_index {
            held += self.memory / 2;
        }
        let left = self.memory.saturating_sub(held).max(self.memory / 8);
        Memory {
            // The rest is for what sorting needs meanwhile.
            bytes: left / 4 * 3,
            temp_dir: self.temp_dir.clone(),
        }
    }

    /// Writes the OOBS database. An index that is still to be written keeps its part of the memory.
    pub(super) fn write_obs(
        &self,
        writer: Writer,
        counts: &SealedCounts,
        starts: &Starts,
        has_index: bool,
        provenance: &Provenance,
        report: &mut Report,
    ) -> Result<Finished> {
        let memory = &self.memory_for_rows(counts, has_index);
        let counts = counts.by_identity.as_ref().or(counts.by_key.as_ref());
        let counts = counts.expect("a run with a database counts moves");
        let meter = self.progress.enter(Phase::Database);
        meter.expect(2 * report.positions);
        let met = report.totals.variants.keys().next().copied();
        let variant = self.variant.only().or(met).unwrap_or_default();
        let info = Info::new(variant, provenance.clone(), &self.move_filter);
        let path = self.obs.clone().expect("the run writes a database");
        let (written, database) = if variant == Variant::Standard {
            let others = starts.all().map(|start| Ok(parse_fen(&start?.0).ok()));
            let all = once(Ok(Some(Chess::default()))).chain(others);
            writer.write(counts, positions(all), &info, memory, &self.stop, meter)?
        } else {
            let others = starts
                .all()
                .map(|start| Ok(variant.parse_fen(&start?.0).ok()));
            writer.write(counts, positions(others), &info, memory, &self.stop, meter)?
        };
        if written.strays > 0 {
            report.warnings.push(format!(
                "{}: {} positions or moves are missing, because two positions share a key",
                path.display(),
                written.strays
            ));
        }
        report.obs = Some(ObsReport {
            path,
            rows: written.rows,
        });
        Ok(database)
    }
}

/// The starts that could be read, which are all: they were written from positions.
fn positions<P: Rules>(
    starts: impl Iterator<Item = Result<Option<P>>>,
) -> impl Iterator<Item = Result<Keyed<P>>> {
    starts.filter_map(|start| start.map(|start| start.map(Keyed::new)).transpose())
}

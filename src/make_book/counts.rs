//! The counts among the outputs of a run.
//!
//! `without/counts.rs` stands in for this file where the feature `parquet` is left out.

use std::path::PathBuf;

use super::{
    MakeBook, Phase,
    report::{CountsReport, Report},
    sealed::SealedCounts,
    starts::Starts,
};
use crate::{
    counts::{self, About, CountsWriter, Source, Start},
    error::Result,
    output::Finished,
    provenance::{Provenance, Rejection},
    sort::SHARDS,
};

pub(super) type Writer = CountsWriter;

impl MakeBook {
    /// Begins the counts, if they are to be written.
    pub(super) fn begin_counts(&self) -> Result<Option<Writer>> {
        let begin =
            |path| CountsWriter::create(path, |old| counts::check_replaceable(old, self.force));
        self.counts.as_deref().map(begin).transpose()
    }

    /// Writes the counts of all moves.
    pub(super) fn write_counts(
        &self,
        writer: Writer,
        sealed: &SealedCounts,
        starts: &Starts,
        provenance: &Provenance,
        report: &mut Report,
    ) -> Result<Finished> {
        let meter = self.progress.enter(Phase::Counts);
        meter.expect(SHARDS as u64);
        let by_key = || {
            let counts = sealed.by_key.as_ref();
            Source::Keys(counts.expect("counts of standard chess are by key"))
        };
        let source = match (&sealed.by_identity, &sealed.pairs) {
            (Some(counts), Some(keys)) => Source::Identities {
                finder: counts.finder()?,
                keys,
            },
            _ => by_key(),
        };
        let rows = match &sealed.by_identity {
            Some(counts) => counts.size()?.1,
            None => report.entries,
        };
        let starts = starts.all().map(|start| {
            let (epd, games) = start?;
            Ok(Start { epd, games })
        });
        let about = self.about(provenance, report);
        let (written, finished) = writer.write(&source, rows, starts, about, &self.stop, meter)?;
        report.counts = Some(CountsReport {
            path: self.counts.clone().expect("the run writes counts"),
            rows: written.rows,
            parts: written.parts,
        });
        Ok(finished)
    }

    /// What there is to tell of the counts.
    fn about(&self, provenance: &Provenance, report: &Report) -> About {
        let totals = &report.totals;
        // Where the files lie is not of the counts.
        let without_directory = |rejection: &Rejection| Rejection {
            file: PathBuf::from(rejection.file.file_name().unwrap_or_default()),
            ..rejection.clone()
        };
        About {
            inputs: provenance.inputs.clone(),
            games: provenance.games,
            options: provenance.options.clone(),
            variant: self.variant.to_string(),
            plies: totals.plies,
            left_out: totals.left_out,
            null_moves: totals.null_moves,
            unplayable_variations: totals.unplayable_variations,
            castling_dropped: totals.castling_dropped,
            contradicted_results: totals.contradicted_results,
            filtered_by: totals
                .filtered_by
                .iter()
                .map(|(condition, games)| (condition.name().to_owned(), *games))
                .collect(),
            variants: totals
                .variants
                .iter()
                .map(|(variant, games)| (variant.name().to_owned(), *games))
                .collect(),
            rejected: report.rejected.iter().map(without_directory).collect(),
        }
    }
}

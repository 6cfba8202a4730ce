//! The counts among the outputs of a run.

use std::path::{Path, PathBuf};

use crate::{
    counts::{About, CountsWriter, RowSource, Start},
    error::Result,
    make_book::{
        counted::Counted,
        needs::Needs,
        options::MakeBook,
        progress::Phase,
        report::CountsReport,
        sink::{Plan, Sink},
    },
    output::Finished,
    provenance::Rejection,
    sort::SHARDS,
};

struct CountsSink<'a> {
    options: &'a MakeBook,
    path: &'a Path,
    writer: CountsWriter,
}

/// The counts, if they are to be written.
pub(super) fn plan<'a>(options: &'a MakeBook, needs: &mut Needs) -> Option<Plan<'a>> {
    let path = options.counts.as_deref()?;
    needs.all_positions(options);
    // Books are made of counts.
    needs.shared_keys |= options.distinguishes_variants();
    needs.numbered_variants = true;
    Some(Plan::of_counts(path, move || {
        Ok(CountsSink {
            options,
            path,
            writer: CountsWriter::create(path, options.force)?,
        })
    }))
}

impl Sink for CountsSink<'_> {
    fn cost(&self) -> Option<(Phase, u64)> {
        Some((Phase::Counts, 700))
    }

    fn write(self: Box<Self>, counted: &mut Counted<'_>) -> Result<Finished> {
        let meter = self.options.progress.enter(Phase::Counts);
        meter.add_total(SHARDS as u64);
        let counts = counted.counts.by_position();
        let (source, rows) = match &counted.counts.shared_keys {
            Some(keys) => {
                let finder = counts.finder()?;
                (RowSource::Identities { finder, keys }, counts.size()?.1)
            }
            None => (RowSource::Keys(counts), counted.report.pairs),
        };
        let starts = counted.starts.all().map(|start| {
            let (epd, games) = start?;
            Ok(Start { epd, games })
        });
        let about = self.about(counted);
        let stop = &self.options.stop;
        let (written, finished) = self
            .writer
            .write(&source, rows, starts, about, stop, meter)?;
        counted.report.counts = Some(CountsReport {
            path: self.path.to_owned(),
            rows: written.rows,
            parts: written.parts,
        });
        Ok(finished)
    }
}

impl CountsSink<'_> {
    /// The facts that the sidecar states.
    fn about(&self, counted: &Counted<'_>) -> About {
        let totals = &counted.report.totals;
        // Where the files lie is not of the counts.
        let without_directory = |rejection: &Rejection| Rejection {
            file: PathBuf::from(rejection.file.file_name().unwrap_or_default()),
            ..rejection.clone()
        };
        let rejected = counted.report.rejected.iter();
        About {
            inputs: counted.provenance.inputs.clone(),
            games: counted.provenance.games,
            options: counted.provenance.options.clone(),
            variant: self.options.variant.to_string(),
            plies: totals.plies,
            left_out: totals.ambiguous_castling,
            null_moves: totals.null_moves,
            unplayable_variations: totals.unplayable_variations,
            castling_dropped: totals.castling_dropped,
            contradicted_results: totals.contradicted_results,
            filtered_by: totals
                .filtered_by
                .iter()
                .map(|(condition, games)| (condition.to_string(), *games))
                .collect(),
            variants: totals
                .variants
                .iter()
                .map(|(variant, games)| (variant.name().to_owned(), *games))
                .collect(),
            rejected: rejected.map(without_directory).collect(),
        }
    }
}

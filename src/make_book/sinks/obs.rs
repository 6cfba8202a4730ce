//! Writes an OOBS database as an output of a run.

use std::{collections::BTreeMap, iter::once, path::Path};

use shakmaty::Chess;

use crate::{
    chess::position::{Variant, parse_fen},
    error::Result,
    formats::{
        counts::keyed_starts,
        obs::{Info, ObsWriter},
    },
    make_book::{
        budget::Budget,
        data::CollectedData,
        inputs::Inputs,
        needs::Needs,
        options::MakeBook,
        report::{ObsReport, Phase},
        sink::{Plan, Sink, refuse_several_variants},
    },
    storage::output::Finished,
};

struct ObsSink<'a> {
    options: &'a MakeBook,
    path: &'a Path,
    writer: ObsWriter,
}

/// Returns a plan for writing an OOBS database, or `None` if the options request none. Adds the data that the database
/// needs to `needs`.
pub(super) fn plan<'a>(
    options: &'a MakeBook,
    _: &'a Inputs<'_>,
    needs: &mut Needs,
) -> Option<Plan<'a>> {
    let path = options.obs.as_deref()?;
    needs.add_all_positions(options);
    needs.weights = true;
    Some(Plan::of_counts(path, move || {
        Ok(ObsSink {
            options,
            path,
            writer: ObsWriter::create(path, options.force)?,
        })
    }))
}

impl Sink for ObsSink<'_> {
    fn check_variants(&self, met: &BTreeMap<Variant, u64>) -> Result<()> {
        refuse_several_variants(self.path, "an OOBS database", met)
    }

    fn cost(&self) -> Option<(Phase, u64)> {
        let keeps_all = self.options.move_filter.min_game <= 1;
        Some((Phase::Database, if keeps_all { 9000 } else { 4300 }))
    }

    fn check(&self, counted: &CollectedData<'_>) -> Result<()> {
        // A database also contains moves that only lost, whose weight is 0.
        counted.refuse_without_moves(self.options, true)
    }

    fn write(self: Box<Self>, counted: &mut CollectedData<'_>) -> Result<Finished> {
        let counts = counted.counts.bytes_in_memory() as usize;
        let memory = &Budget::memory_left(self.options, counts, counted.held_bytes);
        let MakeBook {
            progress,
            stop,
            move_filter,
            ..
        } = self.options;
        let report = &mut counted.games.report;
        let meter = progress.enter(Phase::Database);
        meter.add_total(2 * report.positions);
        let met = report.totals.variants.keys().next().copied();
        let variant = self.options.variant.only().or(met).unwrap_or_default();
        let info = Info::new(variant, counted.provenance.clone(), move_filter);
        let counts = counted.counts.by_position();
        let starts = || counted.games.starts.all();
        let (written, database) = if variant == Variant::Standard {
            let others = starts().map(|start| Ok(parse_fen(&start?.0).ok()));
            let all = once(Ok(Some(Chess::default()))).chain(others);
            let all = keyed_starts(all);
            self.writer.write(counts, all, &info, memory, stop, meter)?
        } else {
            let others = starts().map(|start| Ok(variant.parse_fen(&start?.0).ok()));
            let others = keyed_starts(others);
            self.writer
                .write(counts, others, &info, memory, stop, meter)?
        };
        if written.strays > 0 {
            report.warnings.push(format!(
                "{}: {} positions or moves are missing from the database, because two positions have the same key or, \
                 with incomplete counts, because no counted moves lead to them",
                self.path.display(),
                written.strays
            ));
        }
        report.obs = Some(ObsReport {
            path: self.path.to_owned(),
            rows: written.rows,
            rare: written.rare,
            min_game: info.move_filter.min_game,
            first: written.first,
        });
        Ok(database)
    }
}

//! The outputs of a run: begun before anything is read, put in place together as the last act.

use std::path::Path;

use super::{
    MakeBook, Phase, counts, database, indexing,
    report::{BookReport, Report},
    run::Collected,
};
use crate::{
    book::{self, BookMaker, BookSummary},
    error::{Error, Result},
    output::{AtomicFile, Finished, refuse_clashes},
    position::{Variant, VariantChoice},
    provenance::Provenance,
};

/// The outputs that a run writes.
pub(super) struct Outputs {
    bin: Option<AtomicFile>,
    index: Option<indexing::Writer>,
    obs: Option<database::Writer>,
    counts: Option<counts::Writer>,
    suite: Option<AtomicFile>,
}

impl MakeBook {
    /// Begins the outputs, so that what cannot be written is known before games are read.
    pub(super) fn begin_outputs(&self) -> Result<Outputs> {
        let suite = self.suite.as_ref().map(|output| output.path.as_path());
        let outputs: Vec<&Path> = [&self.bin, &self.leveldb, &self.obs, &self.counts]
            .into_iter()
            .filter_map(|path| path.as_deref())
            .chain(suite)
            .collect();
        let inputs: Vec<&Path> = self.inputs.iter().map(|input| input.path()).collect();
        refuse_clashes(&outputs, &inputs)?;
        let begin_bin =
            |path| AtomicFile::create_over(path, |old| book::check_replaceable(old, self.force));
        Ok(Outputs {
            bin: self.bin.as_deref().map(begin_bin).transpose()?,
            index: self.begin_index()?,
            obs: self.begin_obs()?,
            counts: self.begin_counts()?,
            suite: self.begin_suite()?,
        })
    }

    /// Makes the outputs of what has been collected. They are complete then, but not in place.
    // The order of the outputs matters, and this is where it stands.
    pub(super) fn write_outputs(
        &self,
        collected: Collected,
        outputs: Outputs,
    ) -> Result<(Report, Vec<Finished>)> {
        let Collected {
            counts: sealed,
            provenance,
            starts,
            index: indexed,
            lines,
            mut report,
        } = collected;
        // A book counts by keys. A run without one may have counts by identities only.
        let counts = sealed.by_key.as_ref().or(sealed.by_identity.as_ref());
        let weighs_moves = self.bin.is_some() || self.obs.is_some();
        let maker = counts
            .filter(|_| weighs_moves)
            .map(|counts| BookMaker::new(counts, &self.move_filter, &self.weights))
            .transpose()?;
        let summary = maker.as_ref().map(BookMaker::summary).unwrap_or_default();
        (report.positions, report.entries) = match (&maker, counts) {
            (None, Some(counts)) => counts.size()?,
            _ => (summary.positions, summary.counted_entries),
        };
        self.check_moves(summary.entries, counts)?;
        self.correct_progress(&report, summary.entries);
        // A header that cannot be is known before anything is written.
        let header = self.book_header(maker.as_ref(), &report, &provenance)?;
        self.refuse_if_stopped()?;

        let mut finished = Vec::new();
        if let (Some(file), Some(lines)) = (outputs.suite, lines) {
            let (written, suite) = self.write_suite(file, lines)?;
            report.suite = Some(written);
            finished.push(suite);
        }
        if let Some(writer) = outputs.obs {
            let has_index = indexed.is_some();
            let obs = self.write_obs(
                writer,
                &sealed,
                &starts,
                has_index,
                &provenance,
                &mut report,
            )?;
            finished.push(obs);
        }
        if let Some(writer) = outputs.counts {
            let counts = self.write_counts(writer, &sealed, &starts, &provenance, &mut report)?;
            finished.push(counts);
        }
        if let (Some(writer), Some(indexed)) = (outputs.index, indexed) {
            let (written, index) = self.write_index(writer, indexed)?;
            report.index = Some(written);
            finished.push(index);
        }
        self.refuse_if_stopped()?;
        if let (Some(mut bin), Some(maker)) = (outputs.bin, maker) {
            self.progress.enter(Phase::Book);
            maker.write(header.as_deref(), &mut bin)?;
            drop(maker);
            // The disk takes its time, and so does giving all that memory back.
            let (book, ()) = rayon::join(|| bin.finish(), || drop(sealed));
            finished.push(book?);
            report.book = Some(self.book_report(summary));
        }
        Ok((report, finished))
    }

    fn book_report(&self, summary: BookSummary) -> BookReport {
        BookReport {
            path: self.bin.clone().expect("the run writes a book"),
            entries: summary.entries,
            largest_weight: summary.largest_weight,
            scale: summary.scale,
        }
    }

    /// The header of the book, `None` if it is to have none.
    fn book_header(
        &self,
        maker: Option<&BookMaker<'_>>,
        report: &Report,
        provenance: &Provenance,
    ) -> Result<Option<String>> {
        let (Some(bin), Some(maker), true) = (&self.bin, maker, self.header) else {
            return Ok(None);
        };
        let met = &report.totals.variants;
        let variants: Vec<&str> = match self.variant {
            VariantChoice::Only(variant) => vec![variant.name()],
            VariantChoice::Auto if met.is_empty() => vec![Variant::Standard.name()],
            VariantChoice::Auto => met.keys().map(|met| met.name()).collect(),
        };
        maker
            .header(&variants, self.comment.as_deref(), provenance)
            .map(Some)
            .map_err(|err| Error::format(bin, err))
    }
}

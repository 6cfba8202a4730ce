//! The outputs of a run: begun before anything is read, put in place together as the last act.

use std::path::Path;

use super::{
    MakeBook, Phase,
    read::Collected,
    report::{BookReport, IndexReport, Report},
};
use crate::{
    book::{self, BookMaker},
    error::{At, Error, Result},
    index::{self, IndexWriter, IndexedFile},
    output::{AtomicFile, Finished, refuse_clashes},
    position::{Variant, VariantChoice},
    tally::Tally,
};

/// The outputs that a run writes.
pub(super) struct Outputs {
    bin: Option<AtomicFile>,
    index: Option<IndexWriter>,
    #[cfg(feature = "obs")]
    obs: Option<crate::obs::ObsWriter>,
}

impl MakeBook {
    /// Begins the outputs, so that what cannot be written is known before games are read.
    pub(super) fn begin_outputs(&self) -> Result<Outputs> {
        let outputs: Vec<&Path> = [&self.bin, &self.leveldb, &self.obs]
            .into_iter()
            .flatten()
            .map(|path| path.as_path())
            .collect();
        let inputs: Vec<&Path> = self.inputs.iter().map(|input| input.path()).collect();
        refuse_clashes(&outputs, &inputs)?;
        Ok(Outputs {
            bin: self
                .bin
                .as_ref()
                .map(|path| {
                    AtomicFile::create_over(path, |old| book::check_replaceable(old, self.force))
                })
                .transpose()?,
            index: self
                .leveldb
                .as_ref()
                .map(|path| {
                    IndexWriter::create(path, self.index_stats, |old| {
                        index::check_replaceable(old, self.force)
                    })
                })
                .transpose()?,
            #[cfg(feature = "obs")]
            obs: self.begin_obs()?,
        })
    }

    /// Makes the outputs of what has been collected. They are complete then, but not in place.
    pub(super) fn write_outputs(
        &self,
        collected: Collected,
        outputs: Outputs,
    ) -> Result<(Report, Vec<Finished>)> {
        let Collected {
            tally,
            identities,
            starts,
            index: indexed,
            mut report,
        } = collected;
        self.progress.enter(Phase::Sorting);
        let keyed = tally.map(Tally::seal).transpose()?;
        let identities = identities.map(Tally::seal).transpose()?;
        // Without a tally by keys, that by identities gives the figures. It tells apart positions that share a key.
        let counts = keyed.as_ref().or(identities.as_ref());
        let maker = counts
            .map(|counts| BookMaker::new(counts, &self.move_filter, &self.weights))
            .transpose()?;
        let summary = maker.as_ref().map(BookMaker::summary).unwrap_or_default();
        report.positions = summary.positions;
        report.entries = summary.counted_entries;
        self.check_moves(summary.entries, counts)?;
        self.correct_progress(&report, summary.entries);
        // A header that cannot be is known before anything is written.
        let header = self.book_header(maker.as_ref(), &report)?;
        self.refuse_if_stopped()?;

        let mut finished = Vec::new();
        #[cfg(feature = "obs")]
        if let Some(writer) = outputs.obs {
            let tables = keyed.iter().chain(&identities);
            let memory = self.memory_for_rows(tables, indexed.is_some());
            let counts = identities.as_ref().or(keyed.as_ref());
            let counts = counts.expect("a run with a database counts moves");
            finished.push(self.write_obs(writer, counts, &starts, &memory, &mut report)?);
        }
        if let (Some(writer), Some(indexed)) = (outputs.index, indexed) {
            let meter = self.progress.enter(Phase::Index);
            let postings = indexed.postings.seal()?;
            let files = self.indexed_files(&indexed.first_ids)?;
            let (written, index) = writer.write(
                &postings,
                &indexed.records,
                &files,
                self.variant,
                &self.stop,
                meter,
            )?;
            finished.push(index);
            report.index = Some(IndexReport {
                path: self.leveldb.clone().expect("the run writes an index"),
                games: written.games,
                positions: written.positions,
                postings: written.postings,
            });
        }
        self.refuse_if_stopped()?;
        if let (Some(mut bin), Some(maker)) = (outputs.bin, maker) {
            self.progress.enter(Phase::Book);
            maker.write(header.as_deref(), &mut bin)?;
            drop(maker);
            // The disk takes its time, and so does giving all that memory back.
            let (book, ()) = rayon::join(|| bin.finish(), || drop((keyed, identities)));
            finished.push(book?);
            report.book = Some(BookReport {
                path: self.bin.clone().expect("the run writes a book"),
                entries: summary.entries,
                largest_weight: summary.largest_weight,
                scale: summary.scale,
            });
        }
        Ok((report, finished))
    }

    /// The header of the book, `None` if it is to have none.
    fn book_header(
        &self,
        maker: Option<&BookMaker<'_>>,
        report: &Report,
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
            .header(&variants, self.comment.as_deref(), &self.provenance(report))
            .map(Some)
            .map_err(|err| Error::format(bin, err))
    }

    /// The inputs as the index names them.
    fn indexed_files(&self, first_ids: &[u64]) -> Result<Vec<IndexedFile>> {
        self.inputs
            .iter()
            .zip(first_ids)
            .map(|(input, first_id)| {
                let path = if input.is_stdin() {
                    input.path().to_owned()
                } else {
                    std::path::absolute(input.path()).at(input.path(), "find")?
                };
                Ok(IndexedFile {
                    path,
                    first_id: *first_id,
                })
            })
            .collect()
    }
}

//! The outputs of a run: begun before anything is read, put in place together as the last act.

use std::{iter::once, path::Path};

use shakmaty::Chess;

use super::{
    MakeBook,
    read::Collected,
    report::{BookReport, IndexReport, ObsReport, Report},
    starts::Starts,
};
use crate::{
    book::{self, BookMaker, BookSummary},
    error::{At, Error, Result},
    index::{self, IndexWriter, IndexedFile},
    obs::{self, Info, ObsWriter},
    output::{AtomicFile, Finished, refuse_clashes},
    position::{Keyed, Rules, Variant, VariantChoice, parse_fen},
    sort::Memory,
    tally::{Counts, Tally},
};

/// The outputs that a run writes.
pub(super) struct Outputs {
    bin: Option<AtomicFile>,
    index: Option<IndexWriter>,
    obs: Option<ObsWriter>,
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
            obs: self
                .obs
                .as_ref()
                .map(|path| ObsWriter::create(path, |old| obs::check_replaceable(old, self.force)))
                .transpose()?,
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
        let keyed = tally.map(Tally::seal).transpose()?;
        let identities = identities.map(Tally::seal).transpose()?;
        // Positions that share a key are told apart where somebody may ask.
        let counts = keyed.as_ref().or(identities.as_ref());
        let maker = counts
            .map(|counts| BookMaker::new(counts, &self.weighting))
            .transpose()?;
        let summary = maker.as_ref().map(BookMaker::summary).unwrap_or_default();
        report.positions = summary.positions;
        report.entries = summary.counted_entries;
        // A header that cannot be is known before anything is written.
        let header = self.book_header(&report, &summary)?;
        self.refuse_if_stopped()?;

        let mut finished = Vec::new();
        if let Some(writer) = outputs.obs {
            let tables = keyed.iter().chain(&identities);
            let memory = self.memory_for_rows(tables, indexed.is_some());
            let counts = identities.as_ref().or(keyed.as_ref());
            let counts = counts.expect("a run with a database counts moves");
            finished.push(self.write_obs(writer, counts, &starts, &memory, &mut report)?);
        }
        if let (Some(writer), Some(indexed)) = (outputs.index, indexed) {
            let postings = indexed.postings.seal()?;
            let files = self.indexed_files(&indexed.first_ids)?;
            let (written, index) =
                writer.write(&postings, &indexed.records, &files, self.variant)?;
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

    /// The memory that is left for sorting the rows of a database.
    fn memory_for_rows<'a>(
        &self,
        tables: impl Iterator<Item = &'a Counts>,
        has_index: bool,
    ) -> Memory {
        let counts: usize = tables.map(Counts::bytes_in_memory).sum();
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

    /// Writes the OOBS database.
    fn write_obs(
        &self,
        writer: ObsWriter,
        counts: &Counts,
        starts: &Starts,
        memory: &Memory,
        report: &mut Report,
    ) -> Result<Finished> {
        let met = report.totals.variants.keys().next().copied();
        let variant = self.variant.only().or(met).unwrap_or_default();
        let info = Info::new(variant, self.provenance(report), &self.weighting);
        let path = self.obs.clone().expect("the run writes a database");
        let (written, database) = if variant == Variant::Standard {
            let others = starts.epds().map(|epd| Ok(parse_fen(&epd?).ok()));
            let all = once(Ok(Some(Chess::default()))).chain(others);
            writer.write(counts, positions(all), &info, memory, &self.stop)?
        } else {
            let others = starts.epds().map(|epd| Ok(variant.parse_fen(&epd?).ok()));
            writer.write(counts, positions(others), &info, memory, &self.stop)?
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

    /// The header of the book, `None` if it is to have none.
    fn book_header(&self, report: &Report, summary: &BookSummary) -> Result<Option<String>> {
        let Some(bin) = self.bin.as_ref().filter(|_| self.header) else {
            return Ok(None);
        };
        let met = &report.totals.variants;
        let variants: Vec<&str> = match self.variant {
            VariantChoice::Only(variant) => vec![variant.name()],
            VariantChoice::Auto if met.is_empty() => vec![Variant::Standard.name()],
            VariantChoice::Auto => met.keys().map(|met| met.name()).collect(),
        };
        self.provenance(report)
            .header(&variants, self.comment.as_deref(), &self.weighting, summary)
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

/// The starts that could be read, which are all: they were written from positions.
fn positions<P: Rules>(
    starts: impl Iterator<Item = Result<Option<P>>>,
) -> impl Iterator<Item = Result<Keyed<P>>> {
    starts.filter_map(|start| start.map(|start| start.map(Keyed::new)).transpose())
}

//! The pipeline from PGN to a book and an index: one thread reads, unpacks and [cuts](crate::pgn::Cutter) the
//! stream, all threads replay the batches and count, and the results are put in order behind them.

mod options;
mod read;
mod replay;
mod report;
mod sequence;
mod starts;

use std::{
    iter::once,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

use rayon::ThreadPoolBuilder;
use shakmaty::Chess;

pub use self::{
    options::{MakeBook, Unfinished},
    report::{BookReport, IndexReport, ObsReport, Rejection, Report},
};
use self::{read::Collected, starts::Starts};
use crate::{
    book::BookMaker,
    error::{At, Error, Result},
    index::{IndexWriter, IndexedFile},
    obs::{Info, ObsWriter},
    output::AtomicFile,
    position::{Keyed, Rules, Variant, parse_fen},
    tally::{Counts, Memory, Shards, Tally},
};

/// What stands for every game's own variant.
const AUTO: &str = "auto";

/// How far a run has come, for whoever shows it.
#[derive(Debug, Default)]
pub struct Progress {
    /// Bytes taken from the inputs.
    pub taken: AtomicU64,
    /// Bytes of all inputs, 0 if that is not known.
    pub total: AtomicU64,
    /// Games read.
    pub games: AtomicU64,
    /// Set when all games are read and the outputs are being written.
    pub writing: AtomicBool,
}

impl MakeBook {
    /// Reads the games and makes the outputs.
    ///
    /// # Errors
    ///
    /// An input that cannot be read or is not PGN, an output that cannot be written, the first
    /// rejected game if the run is [strict](MakeBook::strict), or [`Error::Interrupted`]. No output is
    /// changed then.
    pub fn run(&self) -> Result<Report> {
        for input in &self.inputs {
            input.check()?;
        }
        // These fail now rather than after an hour of counting.
        if let (Some(bin), Some(variant)) = (&self.bin, self.variant)
            && variant.number().is_none()
        {
            return Err(Error::file(
                bin,
                format!(
                    "cannot be made: the Polyglot format has no number for {variant}, so its positions have no keys; \
                     --leveldb and --obs work"
                ),
            ));
        }
        if !self.temp_dir.is_dir() {
            return Err(Error::file(
                &self.temp_dir,
                "is no directory for temporary files: name another with --temp-dir",
            ));
        }
        let bin = self.bin.as_ref().map(AtomicFile::create).transpose()?;
        let index = self.index_writer()?;
        let obs = match &self.obs {
            Some(path) => Some(ObsWriter::create(path, self.force)?),
            None => None,
        };
        let pool = ThreadPoolBuilder::new()
            .num_threads(self.threads)
            .thread_name(|i| format!("replay-{i}"))
            .build()
            .map_err(|err| Error::file("threads", err.to_string()))?;

        let collected = self.collect(&pool)?;
        self.progress.writing.store(true, Ordering::Relaxed);
        pool.install(|| self.write(collected, bin, index, obs))
    }

    /// Makes the outputs of what has been collected.
    fn write(
        &self,
        collected: Collected,
        bin: Option<AtomicFile>,
        index: Option<IndexWriter>,
        obs: Option<ObsWriter>,
    ) -> Result<Report> {
        let mut report = collected.report;
        let keyed = collected.tally.seal()?;
        let identities = collected.identities.map(Tally::seal).transpose()?;
        let counts = match &identities {
            Some(identities) if !self.counts_keys() => identities,
            _ => &keyed,
        };
        let maker = BookMaker::new(counts, &self.move_filter, &self.weights)?;
        let summary = maker.summary();
        report.positions = summary.positions;
        report.entries = summary.counted_entries;
        // A header that cannot be is known before anything is written.
        let header = self.book_header(&maker, &report)?;
        self.refuse_if_stopped()?;

        if let Some(obs) = obs {
            let counts = identities.as_ref().unwrap_or(&keyed);
            self.write_obs(obs, counts, &collected.starts, &mut report)?;
        }
        let postings = collected.postings.map(Shards::seal).transpose()?;
        if let (Some(index), Some(postings), Some(records)) = (index, postings, &collected.records)
        {
            let files = self.indexed_files(&collected.first_ids)?;
            let variant = match self.variant {
                Some(Variant::Standard) => None,
                Some(variant) => Some(variant.name()),
                None => Some(AUTO),
            };
            let written = index.write(&postings, records, &files, variant)?;
            report.index = Some(IndexReport {
                path: self.leveldb.clone().unwrap_or_default(),
                games: written.games,
                positions: written.positions,
                postings: written.postings,
            });
        }
        self.refuse_if_stopped()?;
        if let Some(mut bin) = bin {
            maker.write(header.as_deref(), &mut bin)?;
            drop(maker);
            // The disk takes its time, and so does giving all that memory back.
            rayon::join(|| bin.commit(), || drop((keyed, identities))).0?;
            report.book = Some(BookReport {
                path: self.bin.clone().unwrap_or_default(),
                entries: summary.entries,
                largest_weight: summary.largest_weight,
                scale: summary.scale,
            });
        }
        Ok(report)
    }

    /// Writes the OOBS database.
    fn write_obs(
        &self,
        obs: ObsWriter,
        counts: &Counts,
        starts: &Starts,
        report: &mut Report,
    ) -> Result<()> {
        let met = report.variants.keys().next().copied();
        let variant = self.variant.or(met).unwrap_or_default();
        let info = Info::new(variant, self.provenance(report), &self.move_filter);
        let memory = Memory {
            bytes: self.memory / 2,
            temp_dir: self.temp_dir.clone(),
        };
        let path = self.obs.clone().unwrap_or_default();
        let written = if variant == Variant::Standard {
            let others = starts.epds().map(|epd| Ok(parse_fen(&epd?).ok()));
            let all = once(Ok(Some(Chess::default()))).chain(others);
            obs.write(counts, positions(all), &info, &memory, &self.stop)?
        } else {
            let others = starts.epds().map(|epd| Ok(variant.parse_fen(&epd?).ok()));
            obs.write(counts, positions(others), &info, &memory, &self.stop)?
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
        Ok(())
    }

    /// The header of the book, `None` if it is to have none.
    fn book_header(&self, maker: &BookMaker<'_>, report: &Report) -> Result<Option<String>> {
        let Some(bin) = self.bin.as_ref().filter(|_| self.header) else {
            return Ok(None);
        };
        let variants: Vec<&str> = match self.variant {
            Some(variant) => vec![variant.name()],
            None if report.variants.is_empty() => vec![Variant::Standard.name()],
            None => report.variants.keys().map(|met| met.name()).collect(),
        };
        maker
            .header(&variants, self.comment.as_deref(), &self.provenance(report))
            .map(Some)
            .map_err(|source| Error::Header {
                path: bin.clone(),
                source,
            })
    }

    /// The index to be written, if there is to be one.
    fn index_writer(&self) -> Result<Option<IndexWriter>> {
        let Some(target) = &self.leveldb else {
            return Ok(None);
        };
        if !self.force && target.symlink_metadata().is_ok() {
            return Err(Error::file(
                target,
                "exists: remove it, or have it replaced with --force",
            ));
        }
        IndexWriter::create(target, self.index_stats).map(Some)
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
                    std::path::absolute(input.path()).at(input.path(), "find it")?
                };
                Ok(IndexedFile {
                    path,
                    first_id: *first_id,
                })
            })
            .collect()
    }

    fn refuse_if_stopped(&self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        Ok(())
    }
}

/// The starts that could be read, which are all: they were written from positions.
fn positions<P: Rules>(
    starts: impl Iterator<Item = Result<Option<P>>>,
) -> impl Iterator<Item = Result<Keyed<P>>> {
    starts.filter_map(|start| start.map(|start| start.map(Keyed::new)).transpose())
}

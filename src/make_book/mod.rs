//! The pipeline from PGN to a book and an index: one thread reads, unpacks and [cuts](crate::pgn::Cutter) the
//! stream, all threads replay the batches and count, and the results are put in order behind them.

mod comment;
mod options;
mod read;
mod replay;
mod report;
mod sequence;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rayon::ThreadPoolBuilder;

use self::read::Collected;
pub use self::{
    options::{MakeBook, Unfinished},
    report::{BookReport, Games, IndexReport, Rejection, Report},
};
use crate::{
    book::BookMaker,
    error::{At, Error, Result},
    index::{IndexWriter, IndexedFile},
    output::AtomicFile,
    tally::Shards,
};

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
        if !self.temp_dir.is_dir() {
            return Err(Error::file(
                &self.temp_dir,
                "is no directory for temporary files: name another with --temp-dir",
            ));
        }
        let bin = self.bin.as_ref().map(AtomicFile::create).transpose()?;
        let index = self.index_writer()?;
        let pool = ThreadPoolBuilder::new()
            .num_threads(self.threads)
            .thread_name(|i| format!("replay-{i}"))
            .build()
            .map_err(|err| Error::file("threads", err.to_string()))?;

        let collected = self.collect(&pool)?;
        self.progress.writing.store(true, Ordering::Relaxed);
        pool.install(|| self.write(collected, bin, index))
    }

    /// Makes the outputs of what has been collected.
    fn write(
        &self,
        collected: Collected,
        bin: Option<AtomicFile>,
        index: Option<IndexWriter>,
    ) -> Result<Report> {
        let mut report = collected.report;
        let counts = collected.tally.seal()?;
        let maker = BookMaker::new(&counts, &self.weighting)?;
        let summary = maker.summary();
        report.positions = summary.positions;
        report.entries = summary.counted_entries;
        self.refuse_if_stopped()?;

        let postings = collected.postings.map(Shards::seal).transpose()?;
        if let (Some(index), Some(postings), Some(records)) = (index, postings, &collected.records)
        {
            let files = self.indexed_files(&collected.first_ids)?;
            let written = index.write(&postings, records, &files)?;
            report.index = Some(IndexReport {
                path: self.leveldb.clone().unwrap_or_default(),
                games: written.games,
                positions: written.positions,
                postings: written.postings,
            });
        }
        self.refuse_if_stopped()?;
        if let Some(mut bin) = bin {
            let path = bin.target().to_owned();
            let header = self.header(&report, &summary)?;
            maker.write(header.as_deref(), &mut bin)?;
            drop(maker);
            // The disk takes its time, and so does giving all that memory back.
            rayon::join(|| bin.commit(), || drop(counts)).0?;
            report.book = Some(BookReport {
                path,
                entries: summary.entries,
                largest_weight: summary.largest_weight,
                scale: summary.scale,
            });
        }
        Ok(report)
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

//! The pipeline from PGN to a book, an index and a database: one thread reads, unpacks and
//! [cuts](crate::pgn::Cutter) the stream, all threads replay the batches and count, and the results are put in
//! order behind them.

mod job;
mod options;
mod outputs;
mod read;
mod replay;
mod report;
mod sequence;
mod starts;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rayon::ThreadPoolBuilder;

pub use self::{
    options::{MakeBook, Unfinished},
    report::{BookReport, IndexReport, ObsReport, Rejection, Report, Totals},
};
use crate::{
    error::{Error, Result},
    output::commit_all,
    position::VariantChoice,
};

/// How far a run has come, for another thread that shows it.
#[derive(Debug, Default)]
pub struct Progress {
    /// Bytes read from the inputs.
    pub taken: AtomicU64,
    /// Bytes of all inputs, 0 if that is not known.
    pub total: AtomicU64,
    /// Games read.
    pub games: AtomicU64,
    /// Set when all games are read and the outputs are being written.
    pub writing: AtomicBool,
}

impl Progress {
    /// Sets everything back to the start of a run.
    fn reset(&self) {
        let Progress {
            taken,
            total,
            games,
            writing,
        } = self;
        for number in [taken, total, games] {
            number.store(0, Ordering::Relaxed);
        }
        writing.store(false, Ordering::Relaxed);
    }
}

impl MakeBook {
    /// Reads the games and makes the outputs. Each run begins anew.
    ///
    /// # Errors
    ///
    /// An input that cannot be read or is not PGN, an output that cannot be written, the first
    /// rejected game if the run is [strict](MakeBook::strict), or [`Error::Interrupted`]. No output is
    /// changed then, unless an output could not be put in place after another was, which the error says.
    pub fn run(&self) -> Result<Report> {
        self.progress.reset();
        self.check()?;
        let outputs = self.begin_outputs()?;
        let pool = ThreadPoolBuilder::new()
            .num_threads(self.threads)
            .thread_name(|i| format!("replay-{i}"))
            .build()
            .map_err(|err| Error::file("threads", err.to_string()))?;
        let collected = self.collect(&pool)?;
        self.progress.writing.store(true, Ordering::Relaxed);
        let (report, finished) = pool.install(|| self.write_outputs(collected, outputs))?;
        self.refuse_if_stopped()?;
        commit_all(finished)?;
        Ok(report)
    }

    /// Refuses what would fail after an hour of counting.
    fn check(&self) -> Result<()> {
        for input in &self.inputs {
            input.check()?;
        }
        if let (Some(bin), VariantChoice::Only(variant)) = (&self.bin, self.variant)
            && variant.number().is_none()
        {
            return Err(Error::file(
                bin,
                format!(
                    "no book of {variant} can be made, because the Polyglot format has no number for it and so its positions \
                     have no keys; an index or a database can"
                ),
            ));
        }
        if !self.temp_dir.is_dir() {
            return Err(Error::file(
                &self.temp_dir,
                "no directory for temporary files: name another",
            ));
        }
        Ok(())
    }

    fn refuse_if_stopped(&self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        Ok(())
    }
}

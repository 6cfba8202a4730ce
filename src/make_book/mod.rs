//! The pipeline from PGN, or from counts, to a book, an index, a database and counts: one thread reads, unpacks and
//! [cuts](crate::pgn::Cutter) the stream, all threads replay the batches and count, and the results are put in
//! order behind them.

#[cfg_attr(not(feature = "parquet"), path = "without/adding.rs")]
mod adding;
mod costs;
#[cfg_attr(not(feature = "parquet"), path = "without/counted.rs")]
mod counted;
mod counting;
#[cfg_attr(not(feature = "parquet"), path = "without/counts.rs")]
mod counts;
#[cfg_attr(not(feature = "obs"), path = "without/database.rs")]
mod database;
mod duplicates;
mod empty;
mod explored_game;
mod indexing;
mod job;
mod line_starts;
mod main_line;
#[cfg(feature = "parquet")]
mod merging;
mod options;
mod outcome;
mod outputs;
mod progress;
mod read;
mod replay;
mod report;
mod run;
mod sealed;
mod sequence;
mod space;
mod starts;
mod suite;
mod variations;

use std::sync::atomic::Ordering;

use self::counted::CountedInputs;
pub use self::{
    options::{MakeBook, Unfinished},
    progress::{Phase, Progress},
    report::{
        BookReport, CountsReport, IndexReport, ObsReport, Rejection, Report, SuiteReport, Totals,
    },
};
use crate::{
    error::{Error, Result},
    output::{commit_all, repeated},
    pgn::Input,
    position::VariantChoice,
    task,
};

impl MakeBook {
    /// Reads the games and makes the outputs. Each run begins anew.
    ///
    /// # Errors
    ///
    /// An input that cannot be read or is neither PGN nor counts, an output that cannot be written, the first
    /// rejected game if the run is [strict](MakeBook::strict), or [`Error::Interrupted`]. No output is
    /// changed then, unless an output could not be put in place after another was, which the error says.
    pub fn run(&self) -> Result<Report> {
        task::caught(|| {
            let counted = CountedInputs::open(self)?;
            counted.adapted(self)?.run_with(&counted)
        })
    }

    /// Runs with the counts among the inputs, whose variant the options have.
    fn run_with(&self, counted: &CountedInputs) -> Result<Report> {
        self.begin_progress(counted);
        self.check(counted)?;
        let outputs = self.begin_outputs()?;
        let repeated = self.repeated_inputs();
        let pool = task::pool(self.threads)?;
        let collected = self.collect(&pool, counted)?;
        self.check_games(&collected.report)?;
        let (mut report, finished) = pool.install(|| self.write_outputs(collected, outputs))?;
        self.refuse_if_stopped()?;
        task::fault("put in place");
        commit_all(finished)?;
        report.warnings.splice(0..0, repeated);
        self.progress.end();
        Ok(report)
    }

    /// Refuses what would fail after an hour of counting.
    fn check(&self, counted: &CountedInputs) -> Result<()> {
        for (number, input) in self.inputs.iter().enumerate() {
            if !counted.has(number) {
                input.check()?;
            }
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

    /// A warning for each input that was named before.
    fn repeated_inputs(&self) -> Vec<String> {
        let repeated = repeated(self.inputs.iter().map(Input::path));
        repeated
            .map(|path| {
                let path = path.display();
                format!("{path}: named twice, so its games count twice")
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

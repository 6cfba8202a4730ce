//! The pipeline from PGN, or from counts, to a book, an index, a database and counts: one thread reads, unpacks and
//! [cuts](crate::pgn::Cutter) the stream, all threads replay the batches and count, and then the results
//! are put in order.

mod duplicates;
mod empty;
mod inputs;
mod main_line;
mod merging;
mod options;
mod outcome;
mod progress;
mod read;
mod replay;
mod report;
mod run;
mod sequence;
mod sinks;
mod space;
mod starts;
mod variations;
mod write;

use std::{path::Path, sync::atomic::Ordering};

use self::{
    inputs::Inputs,
    progress::Amounts,
    run::Run,
    sinks::{Needs, Plan, Sink},
};
pub use self::{
    options::{MakeBook, Unfinished},
    progress::{Phase, Progress},
    report::{
        BookReport, CountsReport, IndexReport, ObsReport, Rejection, Report, SuiteReport, Totals,
    },
};
use crate::{
    error::{Error, Result},
    output::{commit_all, refuse_clashes, repeated},
    pgn::Input,
    sort::Memory,
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
            let inputs = Inputs::open(self)?;
            let mut options = self.clone();
            options.variant = inputs.variant;
            options.run_with(&inputs)
        })
    }

    /// Runs with opened inputs, whose variant the options have.
    fn run_with(&self, inputs: &Inputs<'_>) -> Result<Report> {
        let (plans, needs) = sinks::plans(self);
        inputs.refuse_for(&plans)?;
        self.check(inputs)?;
        let repeated = self.repeated_inputs();
        let pool = task::pool(self.threads)?;
        let share = self.memory_share(&needs, &plans);
        let sinks = self.begin(plans, &share)?;
        let expected = Amounts::expected(self.move_filter.min_game);
        self.progress.begin(inputs.size(), expected.costs(&sinks));
        let threads = pool.current_num_threads();
        let run = Run::new(self, &needs, &sinks, inputs, share, threads);
        let collected = self.collect(&pool, run)?;
        if !sinks.is_empty() {
            self.refuse_without_games(&collected.1.report)?;
        }
        let written = pool.install(|| self.write_outputs(inputs, &needs, collected, sinks));
        let (mut report, finished, counts) = written?;
        self.refuse_if_stopped()?;
        // The disk takes its time, and so does giving all that memory back.
        let (committed, ()) = pool.join(|| commit_all(finished), || drop(counts));
        committed?;
        report.warnings.splice(0..0, repeated);
        self.progress.end();
        Ok(report)
    }

    /// Begins the outputs, so that one that cannot be written fails before games are read.
    fn begin<'a>(&self, plans: Vec<Plan<'a>>, share: &Memory) -> Result<Vec<Box<dyn Sink + 'a>>> {
        let outputs: Vec<&Path> = plans.iter().map(|plan| plan.path).collect();
        let inputs: Vec<&Path> = self.inputs.iter().map(Input::path).collect();
        refuse_clashes(&outputs, &inputs)?;
        let begin = |plan: Plan<'a>| {
            (plan.begin)(Memory {
                bytes: share.bytes * plan.memory_shares,
                temp_dir: share.temp_dir.clone(),
            })
        };
        plans.into_iter().map(begin).collect()
    }

    /// The part of the memory that each kind of record gets which the run collects.
    fn memory_share(&self, needs: &Needs, plans: &[Plan<'_>]) -> Memory {
        let inputs = self.inputs.iter();
        let unpacking = inputs.map(|input| input.unpacking_memory(self.memory));
        let other = unpacking.max().unwrap_or(0) + self.duplicates_memory();
        let of_outputs = plans.iter().map(|plan| plan.memory_shares);
        let shares = needs.tallies() + of_outputs.sum::<usize>();
        Memory {
            bytes: self.memory.saturating_sub(other) / shares,
            temp_dir: self.temp_dir.clone(),
        }
    }

    /// Refuses options that would fail after an hour of counting.
    fn check(&self, inputs: &Inputs<'_>) -> Result<()> {
        inputs.all.iter().try_for_each(|input| input.check())?;
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

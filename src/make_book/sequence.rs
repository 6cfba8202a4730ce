//! Putting the results of batches in the order of the inputs.
//!
//! Batches are done when they are done. What depends on their order (the numbers of games, which
//! games are the first rejected) waits here until all batches before are done too.

use std::collections::BTreeMap;

use super::{
    Job, MakeBook,
    replay::Outcome,
    report::{Report, stray_text},
};
use crate::error::{Error, Result};

/// Collects the outcomes of batches.
pub(super) struct Sequencer<'a> {
    options: &'a MakeBook,
    /// The batch whose turn it is.
    next: u64,
    /// Outcomes of later batches, with the number of their input.
    waiting: BTreeMap<u64, (usize, Outcome)>,
    inputs: Vec<InputState>,
    report: Report,
}

/// What is known of an input so far.
#[derive(Clone, Default)]
struct InputState {
    games: u64,
    recognised: bool,
    has_text: bool,
    stray_text: Option<u64>,
}

impl<'a> Sequencer<'a> {
    pub(super) fn new(options: &'a MakeBook) -> Sequencer<'a> {
        Sequencer {
            options,
            next: 0,
            waiting: BTreeMap::new(),
            inputs: vec![InputState::default(); options.inputs.len()],
            report: Report::default(),
        }
    }

    /// Takes the outcome of a batch, and puts in order what can be.
    pub(super) fn submit(&mut self, job: &Job, outcome: Outcome) -> Result<()> {
        self.waiting.insert(job.number, (job.input, outcome));
        while let Some((input, outcome)) = self.waiting.remove(&self.next) {
            self.next += 1;
            self.place(input, outcome)?;
        }
        Ok(())
    }

    fn place(&mut self, input: usize, outcome: Outcome) -> Result<()> {
        let state = &mut self.inputs[input];
        let room = Report::DESCRIBED.saturating_sub(self.report.rejected.len());
        for mut rejection in outcome.rejected.into_iter().take(room) {
            rejection.game += state.games;
            if self.options.strict {
                return Err(Error::Rejected(Box::new(rejection)));
            }
            self.report.rejected.push(rejection);
        }
        state.games += outcome.games.read;
        state.recognised |= outcome.recognised;
        state.has_text |= outcome.has_text;
        if state.stray_text.is_none() {
            state.stray_text = outcome.stray_text;
        }
        self.report.games.add(outcome.games);
        self.report.plies += outcome.plies;
        Ok(())
    }

    /// The report so far, after the last batch.
    pub(super) fn finish(mut self) -> Result<Report> {
        for (state, input) in self.inputs.iter().zip(&self.options.inputs) {
            if state.has_text && !state.recognised {
                return Err(Error::file(
                    input.path(),
                    "holds no game: name a PGN file, plain or packed with gzip, bzip2, zstd or zip",
                ));
            }
            if !state.has_text {
                let warning = format!("{}: is empty", input.path().display());
                self.report.warnings.push(warning);
            }
            if let Some(offset) = state.stray_text {
                self.report.warnings.push(stray_text(input.path(), offset));
            }
        }
        Ok(self.report)
    }
}

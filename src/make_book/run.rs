//! The state of a `make-book` run that its threads share.
//!
//! A run watches the [disk space](TemporarySpace) for temporary files, so that a shortage is reported early instead of
//! after hours.

use std::{
    path::PathBuf,
    sync::{
        Condvar, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use rayon::Scope;

use super::{
    budget::Budget,
    data::{OrderedResults, SortedCounts},
    needs::Needs,
    options::MakeBook,
    replay::{Outcome, Replayer},
    report::Phase,
    sequence::{BatchId, Sequencer},
    sink::{Sink, are_satisfied},
};
use crate::{
    error::{Advice, Diagnosis, Error, Result},
    formats::counts::{CountRecord, Counts, KeyedIdentity, Tally},
    games::pgn::Batch,
    storage::sort::Shards,
    task::{self, Failure},
};

/// The state of a `make-book` run that its threads share while the inputs are read.
pub(super) struct Run<'a> {
    pub options: &'a MakeBook,
    pub needs: &'a Needs,
    pub sinks: &'a [Box<dyn Sink + 'a>],
    /// The tally of results by position key, if an output needs it.
    pub tally: Option<Tally>,
    /// The tally of results by identity (a hash that distinguishes positions with equal keys), if an output needs it.
    pub identities: Option<Tally>,
    /// The pairs of a position key and an identity, if an output needs them.
    pub pairs: Option<Shards<KeyedIdentity>>,
    /// Whether input counts that are already sorted are merged with the tally after all other inputs have been read.
    pub merges_ordered: bool,
    /// The result of merging the tally by position key with input counts that are already sorted.
    pub merged: Option<Counts>,
    space: TemporarySpace,
    sequencer: Mutex<Sequencer<'a>>,
    /// Notifies waiting threads when a batch has been sequenced, and when a job has failed.
    sequenced: Condvar,
    /// The first error or panic of a job, with which the run fails.
    pub failure: Failure,
    /// The number of half-moves in all counts among the inputs.
    pub counted_plies: AtomicU64,
    /// The number of half-moves in counts without a sidecar, whose number is unknown before they are read.
    pub plies_without_sidecar: AtomicU64,
}

impl<'a> Run<'a> {
    pub(super) fn new(
        options: &'a MakeBook,
        needs: &'a Needs,
        sinks: &'a [Box<dyn Sink + 'a>],
        budget: &Budget,
    ) -> Run<'a> {
        let tally = || Tally::new(budget.tally.clone());
        let pairs = || Shards::new(budget.tally.clone());
        Run {
            options,
            needs,
            sinks,
            tally: needs.keys.then(tally),
            merges_ordered: budget.merging.is_some(),
            merged: None,
            identities: needs.identities.then(tally),
            pairs: needs.shared_keys.then(pairs),
            space: TemporarySpace::new(options.memory.temp_dir.clone()),
            sequencer: Mutex::new(Sequencer::new(options, sinks, budget)),
            sequenced: Condvar::new(),
            failure: Failure::default(),
            counted_plies: AtomicU64::new(0),
            plies_without_sidecar: AtomicU64::new(0),
        }
    }

    /// Blocks until the batch with the number `number` may be started, because fewer than `in_flight` earlier batches
    /// are still unprocessed, or until the run fails.
    pub(super) fn wait_for_turn(&self, number: u64, in_flight: u64) {
        let sequencer = task::lock(&self.sequencer);
        let is_full = |sequencer: &mut Sequencer<'_>| {
            number >= sequencer.processed_batches() + in_flight && !self.failure.is_set()
        };
        let waited = self.sequenced.wait_while(sequencer, is_full);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Returns an error if the temporary files of the run will probably not fit on the disk. `merged` is the number of
    /// bytes that merging the sorted input counts has written to temporary files so far. The run itself knows how much
    /// its other parts have written.
    pub(super) fn check_space(&self, merged: u64) -> Result<()> {
        let tallies = [&self.tally, &self.identities].into_iter().flatten();
        let counts: u64 = tallies.map(Tally::spilled_bytes).sum();
        let pairs = self.pairs.as_ref().map_or(0, Shards::spilled_bytes);
        let sinks: u64 = self.sinks.iter().map(|sink| sink.spilled_bytes()).sum();
        let read = self.options.progress.phase_fraction();
        self.space.check(counts + pairs + sinks + merged, read)
    }

    /// Returns `true` if further games do not change any output.
    pub(super) fn is_satisfied(&self) -> bool {
        are_satisfied(self.sinks)
    }

    /// Calls `job`, which does a part of the run's work. If `job` returns an error or panics, the whole run fails, and
    /// a thread that waits in [`wait_for_turn`](Run::wait_for_turn) is woken.
    pub(super) fn watch(&self, job: impl FnOnce() -> Result<()>) {
        self.failure.watch(job);
        if self.failure.is_set() {
            // Notify under the lock, so that the reading thread cannot miss it between checking the condition and
            // waiting.
            let _sequencer = task::lock(&self.sequencer);
            self.sequenced.notify_all();
        }
    }

    /// Passes `outcome`, the data collected from the batch `id`, to the sequencer, which restores the order of the
    /// inputs. The sequencer returns the data of all batches whose turn has come, if any. Their records are then added
    /// to the counts of the run, and their other data to the outputs.
    pub(super) fn submit(&self, id: BatchId, outcome: Outcome<'a>) -> Result<()> {
        self.options.progress.add_games(outcome.totals.games.read);
        let in_order = task::lock(&self.sequencer).submit(id, outcome)?;
        self.sequenced.notify_all();
        for batch in in_order {
            self.add_records(&batch.records, &batch.identity_records)?;
            let mut collectors = batch.collectors.into_iter();
            collectors.try_for_each(|collector| collector.add())?;
        }
        Ok(())
    }

    /// Adds the results of moves to the tallies (the stores that add up results). `records` contains results by
    /// position key, and `identities` contains results by identity (a hash that distinguishes positions with equal
    /// keys).
    pub(super) fn add_records(
        &self,
        records: &[CountRecord],
        identities: &[CountRecord],
    ) -> Result<()> {
        if let Some(tally) = &self.tally {
            tally.add_records(records)?;
        }
        if let Some(tally) = &self.identities {
            tally.add_records(identities)?;
        }
        Ok(())
    }

    /// Replays the games of `batch`, and adds the results of their moves to the counts. All other data of the games,
    /// such as the rejected games, depends on the order of the inputs, so it is submitted to the sequencer as the
    /// outcome of the batch `id`. Does nothing if the run has failed.
    ///
    /// If duplicates are dropped, the results of the moves are also submitted to the sequencer, which removes the
    /// results of duplicates, instead of being added to the counts here.
    pub(super) fn replay(&self, batch: &Batch, id: BatchId) -> Result<()> {
        if self.failure.is_set() {
            return Ok(());
        }
        task::fault("replay");
        let input = &self.options.inputs[id.input];
        let replayer = Replayer::new(self.options, self.needs, input, batch.offset);
        let new_collectors = |plies| {
            let sinks = self.sinks.iter();
            sinks.filter_map(|sink| sink.batch(plies)).collect()
        };
        let mut outcome = replayer.replay(&batch.text, new_collectors);
        if !self.options.selection.counts_once() {
            // An outcome may have to wait for earlier batches. Take its records out, so that they do not occupy memory
            // meanwhile.
            let records = std::mem::take(&mut outcome.records);
            self.add_records(&records, &std::mem::take(&mut outcome.identity_records))?;
        }
        if let Some(pairs) = &self.pairs {
            pairs.append(&std::mem::take(&mut outcome.pairs))?;
        }
        self.submit(id, outcome)
    }

    /// Completes the counts of the run after all batches have been processed. Returns the sorted counts, and the data
    /// that depends on the order of the games, such as the report of the run. Uses all threads of the current rayon
    /// pool.
    pub(super) fn finish(self) -> Result<(SortedCounts, OrderedResults)> {
        self.options.refuse_if_stopped()?;
        // Counts that were already sorted have been merged before, as a part of the reading phase.
        self.options.progress.enter(Phase::Sorting);
        let counts = SortedCounts {
            by_key: match self.tally {
                Some(tally) => Some(tally.sort()?),
                None => self.merged,
            },
            by_identity: self.identities.map(Tally::sort).transpose()?,
            shared_keys: self.pairs.map(Shards::sort).transpose()?,
        };
        let mut games = task::unlocked(self.sequencer).finish()?;
        games.report.totals.plies += self.plies_without_sidecar.into_inner();
        Ok((counts, games))
    }
}

/// Numbers the batches of all inputs consecutively, and gives access to the threads that process them.
pub(super) struct BatchDispatcher<'s, 'scope, 'run> {
    pub run: &'scope Run<'run>,
    pub scope: &'s Scope<'scope>,
    pub next: BatchId,
    /// The maximum number of batches that may be started before the first of them is sequenced.
    pub in_flight: u64,
}

impl<'run> BatchDispatcher<'_, '_, 'run> {
    /// Returns the id of the next batch, which consists of its number and its input. First blocks until fewer than the
    /// maximum number of earlier batches are unprocessed, or until the run fails.
    pub(super) fn next_id(&mut self) -> BatchId {
        let id = self.next;
        self.next.number += 1;
        self.run.wait_for_turn(id.number, self.in_flight);
        id
    }

    /// Submits `outcome` to the [sequencer](Sequencer) as the data of the next batch of the current input. Used for
    /// data that does not come from replayed games, such as the data of a counts directory.
    pub(super) fn submit(&mut self, outcome: Outcome<'run>) -> Result<()> {
        let id = self.next_id();
        self.run.submit(id, outcome)
    }
}

/// The approximate number of bytes that may be written to temporary files between two checks of the free disk space.
const BYTES_BETWEEN_SPACE_CHECKS: u64 = 64 << 20;

/// The minimum fraction of the inputs that must have been read before the final size of the temporary files is
/// estimated.
const MIN_READ_FRACTION: f64 = 0.02;

/// The tolerance of the check for free disk space. The estimate of the needed space is inexact, so the run fails only
/// if the estimate exceeds the free space times this factor.
const TOLERANCE: f64 = 1.25;

/// Monitors the free disk space for the temporary files of a run.
#[derive(Debug)]
pub(super) struct TemporarySpace {
    directory: PathBuf,
    /// The number of spilled bytes at which the free space is checked next.
    next: AtomicU64,
}

impl TemporarySpace {
    pub(super) fn new(directory: PathBuf) -> TemporarySpace {
        TemporarySpace {
            directory,
            next: AtomicU64::new(BYTES_BETWEEN_SPACE_CHECKS),
        }
    }

    /// Checks whether the temporary files will probably fit on the disk. `spilled` is the number of bytes that were
    /// written to them so far. `read` is the fraction of the inputs that has been read, from 0 to 1, or `None` if it is
    /// unknown.
    ///
    /// # Errors
    ///
    /// Returns an error that states the needed and the free space if the files will not fit.
    pub(super) fn check(&self, spilled: u64, read: Option<f64>) -> Result<()> {
        if spilled < self.next.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.next
            .store(spilled + BYTES_BETWEEN_SPACE_CHECKS, Ordering::Relaxed);
        // If the free space is unknown, the write that fills the disk will fail.
        let Ok(free) = fs4::available_space(&self.directory) else {
            return Ok(());
        };
        match read.map(|read| still_needed(spilled, read)) {
            Some(Some(needed)) if needed as f64 > free as f64 * TOLERANCE => Err(Error::too_large(
                &self.directory,
                Diagnosis::new(format!(
                    "the temporary files need about {} MiB more, but only {} MiB are free",
                    needed >> 20,
                    free >> 20
                ))
                .advise("choose a directory with more space")
                .advise(Advice::larger("memory")),
            )),
            _ => Ok(()),
        }
    }
}

/// Estimates how many more bytes the run will spill to temporary files. `spilled` is the number of bytes spilled so
/// far, and `read` is the fraction of the input that has been read. Returns `None` if `read` is less than
/// [`MIN_READ_FRACTION`], because an estimate would be too inexact.
fn still_needed(spilled: u64, read: f64) -> Option<u64> {
    (read >= MIN_READ_FRACTION).then(|| (spilled as f64 * (1.0 / read - 1.0)) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_need_is_estimated_from_the_part_that_was_read() {
        assert_eq!(still_needed(100, 0.25), Some(300));
        assert_eq!(still_needed(100, 1.0), Some(0));
        assert_eq!(still_needed(100, 0.01), None);
    }

    #[test]
    fn a_shortage_is_reported_with_needed_and_free_space() {
        let space = TemporarySpace::new(std::env::temp_dir());
        space
            .check(BYTES_BETWEEN_SPACE_CHECKS - 1, Some(0.5))
            .unwrap();
        space.check(BYTES_BETWEEN_SPACE_CHECKS, Some(1.0)).unwrap();
        // No disk has this much free space.
        let err = space.check(1 << 60, Some(0.05)).unwrap_err().to_string();
        assert!(err.contains("MiB more, but only"), "{err}");
        let advice = "choose a directory with more space, or use a larger memory";
        assert!(err.contains(advice), "{err}");
        // A directory with enough space passes the check, and with a larger budget, less is spilled.
        let enough = TemporarySpace::new(std::env::temp_dir());
        enough
            .check(BYTES_BETWEEN_SPACE_CHECKS, Some(0.99))
            .unwrap();
        let larger_budget = TemporarySpace::new(std::env::temp_dir());
        larger_budget.check(0, Some(0.05)).unwrap();
        space
            .check(u64::MAX - BYTES_BETWEEN_SPACE_CHECKS, None)
            .unwrap();
    }
}

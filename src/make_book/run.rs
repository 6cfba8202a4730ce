//! A run: the data that its threads share, and the counts at its end.

use std::sync::{Condvar, Mutex, PoisonError, atomic::AtomicU64};

use super::{
    MakeBook, Phase,
    inputs::Inputs,
    merging::Merging,
    outcome::Outcome,
    read::Place,
    sequence::{Sequenced, Sequencer},
    sinks::{Needs, Sink},
    space::TemporarySpace,
    write::SealedCounts,
};
use crate::{
    error::Result,
    sort::Memory,
    tally::{CountRecord, Counts, IdentityTally, Tally},
    task::{self, Failure},
};

/// The data that the threads of a run share.
pub(super) struct Run<'a> {
    pub options: &'a MakeBook,
    pub needs: &'a Needs,
    pub sinks: &'a [Box<dyn Sink + 'a>],
    pub inputs: &'a Inputs<'a>,
    pub tally: Option<Tally>,
    pub identities: Option<Tally>,
    pub pairs: Option<IdentityTally>,
    /// How counts that are in order are added up, `None` if the tallies take them.
    pub merging: Option<Merging>,
    /// The merged tally by keys and ordered counts.
    pub merged: Option<Counts>,
    space: TemporarySpace,
    sequencer: Mutex<Sequencer<'a>>,
    /// Signalled when the results of a batch are in order, and when a job failed.
    placed: Condvar,
    pub failure: Failure,
    /// Half-moves of all counts among the inputs.
    pub counted_plies: AtomicU64,
    /// Half-moves of those that have no sidecar, which would say how many there are.
    pub plies_without_sidecar: AtomicU64,
}

impl<'a> Run<'a> {
    /// A run of this many `threads`, in which each tally gets a `share` of the memory.
    pub(super) fn new(
        options: &'a MakeBook,
        needs: &'a Needs,
        sinks: &'a [Box<dyn Sink + 'a>],
        inputs: &'a Inputs<'a>,
        share: Memory,
        threads: usize,
    ) -> Run<'a> {
        let (share, merging) = Merging::plan(options, needs, inputs, share, threads);
        let tally = || Tally::new(share.clone());
        Run {
            options,
            needs,
            sinks,
            inputs,
            tally: needs.keys.then(tally),
            merging,
            merged: None,
            identities: needs.identities.then(tally),
            pairs: needs.shared_keys.then(|| IdentityTally::new(share.clone())),
            space: TemporarySpace::new(options.temp_dir.clone()),
            sequencer: Mutex::new(Sequencer::new(options, sinks)),
            placed: Condvar::new(),
            failure: Failure::default(),
            counted_plies: AtomicU64::new(0),
            plies_without_sidecar: AtomicU64::new(0),
        }
    }

    /// Waits until fewer than `in_flight` batches before batch `number` are not in order, or the run failed.
    pub(super) fn wait_for_place(&self, number: u64, in_flight: u64) {
        let sequencer = task::lock(&self.sequencer);
        let is_full = |sequencer: &mut Sequencer<'_>| {
            number >= sequencer.in_order() + in_flight && !self.failure.is_set()
        };
        let waited = self.placed.wait_while(sequencer, is_full);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Ends the run early if the temporary files will not fit. `merged` bytes are there already of the sum.
    pub(super) fn check_space(&self, merged: u64) -> Result<()> {
        let tallies = [&self.tally, &self.identities].into_iter().flatten();
        let counts: u64 = tallies.map(Tally::spilled_bytes).sum();
        let pairs = self.pairs.as_ref().map_or(0, IdentityTally::spilled_bytes);
        let sinks: u64 = self.sinks.iter().map(|sink| sink.spilled_bytes()).sum();
        let read = self.options.progress.phase_fraction();
        self.space.check(counts + pairs + sinks + merged, read)
    }

    /// Does a job. Its error or panic ends the run.
    pub(super) fn watch(&self, job: impl FnOnce() -> Result<()>) {
        self.failure.watch(job);
        if self.failure.is_set() {
            // Under the lock, so that the reader cannot miss it between its look and its wait.
            let _sequencer = task::lock(&self.sequencer);
            self.placed.notify_all();
        }
    }

    /// Hands the outcome of a batch to the sequencer, and counts the games that had to wait for it.
    pub(super) fn submit(&self, place: Place, outcome: Outcome<'a>) -> Result<()> {
        self.options.progress.add_games(outcome.totals.games.read);
        let in_order = task::lock(&self.sequencer).submit(place, outcome)?;
        self.placed.notify_all();
        for batch in in_order {
            self.add_records(&batch.records, &batch.identity_records)?;
            let mut taken = batch.taken.into_iter();
            taken.try_for_each(|taken| taken.add())?;
        }
        Ok(())
    }

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

    /// Ends the run when all threads are done. Works on all threads of the rayon pool that it is called in.
    pub(super) fn finish(self) -> Result<(SealedCounts, Sequenced)> {
        self.options.refuse_if_stopped()?;
        // Merging is reported as reading, and is done.
        self.options.progress.enter(Phase::Sorting);
        let counts = SealedCounts {
            by_key: match self.tally {
                Some(tally) => Some(tally.seal()?),
                None => self.merged,
            },
            by_identity: self.identities.map(Tally::seal).transpose()?,
            shared_keys: self.pairs.map(IdentityTally::seal).transpose()?,
        };
        let mut games = task::unlocked(self.sequencer).finish()?;
        games.report.totals.plies += self.plies_without_sidecar.into_inner();
        Ok((counts, games))
    }
}

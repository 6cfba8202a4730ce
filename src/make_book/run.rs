//! A run: the data that its threads share, and the counts at its end.

use std::sync::{Condvar, Mutex, PoisonError, atomic::AtomicU64};

use rayon::Scope;

use super::{
    budget::Budget,
    counted::SealedCounts,
    needs::Needs,
    options::MakeBook,
    outcome::Outcome,
    progress::Phase,
    replay::Replayer,
    sequence::{BatchPlace, Sequenced, Sequencer},
    sink::Sink,
    space::TemporarySpace,
};
use crate::{
    error::Result,
    pgn::Batch,
    sort::Shards,
    tally::{CountRecord, Counts, KeyedIdentity, Tally},
    task::{self, Failure},
};

/// The data that the threads of a run share.
pub(super) struct Run<'a> {
    pub options: &'a MakeBook,
    pub needs: &'a Needs,
    pub sinks: &'a [Box<dyn Sink + 'a>],
    pub tally: Option<Tally>,
    pub identities: Option<Tally>,
    pub pairs: Option<Shards<KeyedIdentity>>,
    /// Whether counts that are in order are merged with the tally when all else is read.
    pub merges_ordered: bool,
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
        let pairs = self.pairs.as_ref().map_or(0, Shards::spilled_bytes);
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
    pub(super) fn submit(&self, place: BatchPlace, outcome: Outcome<'a>) -> Result<()> {
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

    /// Counts the games of a batch.
    pub(super) fn replay(&self, batch: &Batch, place: BatchPlace) -> Result<()> {
        if self.failure.is_set() {
            return Ok(());
        }
        task::fault("replay");
        let input = self.options.inputs[place.input].path();
        let replayer = Replayer::new(self.options, self.needs, input, batch.offset);
        let taken = |plies| {
            let sinks = self.sinks.iter();
            sinks.filter_map(|sink| sink.batch(plies)).collect()
        };
        let mut outcome = replayer.replay(&batch.text, taken);
        if !self.options.drop_duplicates {
            // Taken out: an outcome may have to wait for its turn, and should not hold them meanwhile.
            let records = std::mem::take(&mut outcome.records);
            self.add_records(&records, &std::mem::take(&mut outcome.identity_records))?;
        }
        if let Some(pairs) = &self.pairs {
            pairs.append(&std::mem::take(&mut outcome.pairs))?;
        }
        self.submit(place, outcome)
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
            shared_keys: self.pairs.map(Shards::seal).transpose()?,
        };
        let mut games = task::unlocked(self.sequencer).finish()?;
        games.report.totals.plies += self.plies_without_sidecar.into_inner();
        Ok((counts, games))
    }
}

/// The batches of all inputs, on their way to the threads.
pub(super) struct Batches<'s, 'scope, 'run> {
    pub run: &'scope Run<'run>,
    pub scope: &'s Scope<'scope>,
    pub next: BatchPlace,
    /// The most batches before the first of them is in order.
    pub in_flight: u64,
}

impl<'run> Batches<'_, '_, 'run> {
    /// The place of another batch of the present input. Waits until few batches before it are not in order, or the run
    /// failed.
    pub(super) fn next_place(&mut self) -> BatchPlace {
        let place = self.next;
        self.next.number += 1;
        self.run.wait_for_place(place.number, self.in_flight);
        place
    }

    /// Hands over the outcome of another batch of the present input.
    pub(super) fn submit(&mut self, outcome: Outcome<'run>) -> Result<()> {
        let place = self.next_place();
        self.run.submit(place, outcome)
    }
}

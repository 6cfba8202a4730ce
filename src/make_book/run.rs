//! A run: what its threads share, and what has been collected at its end.

use std::sync::{Condvar, Mutex, PoisonError, atomic::AtomicU64};

#[cfg(feature = "parquet")]
use super::merging::Merging;
use super::{
    MakeBook, Phase,
    counted::CountedInputs,
    indexing::{CollectedIndex, Postings},
    job::Job,
    outcome::Outcome,
    report::Report,
    sealed::SealedCounts,
    sequence::{Sequenced, Sequencer},
    space::TemporarySpace,
    starts::Starts,
};
use crate::{
    error::Result,
    provenance::Provenance,
    sort::Memory,
    suite::{GameLine, GameLines},
    tally::{CountRecord, Counts, IdentityTally, Tally},
    task::{self, Failure},
};

/// What has been collected when all inputs are read.
pub(super) struct Collected {
    pub counts: SealedCounts,
    /// What the counts are made of.
    pub provenance: Provenance,
    /// Where games started.
    pub starts: Starts,
    /// What goes into the index, if there is to be one.
    pub index: Option<CollectedIndex>,
    /// The lines of games, if there is to be a suite.
    pub lines: Option<GameLines>,
    pub report: Report,
}

/// What the threads of a run share.
pub(super) struct Run<'a> {
    pub options: &'a MakeBook,
    pub counted: &'a CountedInputs,
    pub tally: Option<Tally>,
    pub identities: Option<Tally>,
    pub pairs: Option<IdentityTally>,
    /// How counts that are in order are added up, `None` if the tallies take them.
    #[cfg(feature = "parquet")]
    pub merging: Option<Merging>,
    /// What the tally by keys and the ordered counts came to.
    pub merged: Option<Counts>,
    postings: Option<Postings>,
    lines: Option<GameLines>,
    space: TemporarySpace,
    sequencer: Mutex<Sequencer<'a>>,
    /// Signalled when the results of a batch are in order, and when a job failed.
    placed: Condvar,
    pub failure: Failure,
    /// Half-moves of all counts among the inputs.
    #[cfg(feature = "parquet")]
    pub counted_plies: AtomicU64,
    /// Half-moves of those that do not tell how many they are.
    pub untold_plies: AtomicU64,
}

impl<'a> Run<'a> {
    /// A run of so many `threads`.
    pub(super) fn new(
        options: &'a MakeBook,
        counted: &'a CountedInputs,
        #[cfg_attr(not(feature = "parquet"), expect(unused_variables))] threads: usize,
    ) -> Run<'a> {
        let kinds = [
            options.counts_keys(),
            options.counts_identities(),
            options.pairs_keys(),
            options.leveldb.is_some(),
        ];
        // Each kind of record that is collected gets its share.
        let tables = kinds.into_iter().filter(|wanted| *wanted).count().max(1)
            + usize::from(options.explores())
            + usize::from(options.suite.is_some());
        let unpacking = options.inputs.iter();
        let unpacking = unpacking.map(|input| input.unpacking_memory(options.memory));
        let other = unpacking.max().unwrap_or(0) + options.duplicates_memory();
        let memory = Memory {
            bytes: options.memory.saturating_sub(other) / tables,
            temp_dir: options.temp_dir.clone(),
        };
        #[cfg(feature = "parquet")]
        let (memory, merging) = Merging::plan(options, counted, memory, threads);
        let [keys, identities, pairs, postings] = kinds;
        let shares = 1 + usize::from(options.explores());
        let postings_memory = Memory {
            bytes: shares * memory.bytes,
            ..memory.clone()
        };
        Run {
            options,
            counted,
            tally: keys.then(|| Tally::new(memory.clone())),
            #[cfg(feature = "parquet")]
            merging,
            merged: None,
            identities: identities.then(|| Tally::new(memory.clone())),
            pairs: pairs.then(|| IdentityTally::new(memory.clone())),
            postings: postings.then(|| Postings::new(options, postings_memory)),
            lines: options.suite.is_some().then(|| GameLines::new(&memory)),
            space: TemporarySpace::new(options.temp_dir.clone()),
            sequencer: Mutex::new(Sequencer::new(options)),
            placed: Condvar::new(),
            failure: Failure::default(),
            #[cfg(feature = "parquet")]
            counted_plies: AtomicU64::new(0),
            untold_plies: AtomicU64::new(0),
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
        let postings = self.postings.as_ref().map_or(0, Postings::spilled_bytes);
        let lines = self.lines.as_ref().map_or(0, GameLines::spilled_bytes);
        let read = self.options.progress.phase_fraction();
        let pairs = self.pairs.as_ref().map_or(0, IdentityTally::spilled_bytes);
        self.space
            .check(counts + pairs + postings + lines + merged, read)
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

    /// Hands the outcome of a batch to the sequencer, and counts what had to wait for it.
    pub(super) fn submit(&self, job: &Job, outcome: Outcome) -> Result<()> {
        self.options.progress.add_games(outcome.totals.games.read);
        let in_order = task::lock(&self.sequencer).submit(job, outcome)?;
        self.placed.notify_all();
        for batch in in_order {
            self.add_records(&batch.records, &batch.identity_records)?;
            self.add_lines(&batch.lines)?;
            if let (Some(postings), Some(batch)) = (&self.postings, batch.postings) {
                postings.add(batch)?;
            }
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

    pub(super) fn add_lines(&self, added: &[GameLine]) -> Result<()> {
        self.lines.as_ref().map_or(Ok(()), |lines| lines.add(added))
    }

    /// Ends the run when all threads are done. Works on all threads of the rayon pool that it is called in.
    pub(super) fn finish(self) -> Result<Collected> {
        self.options.refuse_if_stopped()?;
        // Merging tells its progress as reading does, and is done.
        self.options.progress.enter(Phase::Sorting);
        let counts = SealedCounts {
            by_key: match self.tally {
                Some(tally) => Some(tally.seal()?),
                None => self.merged,
            },
            by_identity: self.identities.map(Tally::seal).transpose()?,
            pairs: self.pairs.map(IdentityTally::seal).transpose()?,
        };
        let Sequenced {
            mut report,
            indexed,
            first_ids,
            starts,
        } = task::unlocked(self.sequencer).finish()?;
        let index = self
            .postings
            .zip(indexed)
            .map(|(postings, games)| CollectedIndex::new(postings, games, first_ids));
        report.totals.plies += self.untold_plies.into_inner();
        Ok(Collected {
            counts,
            provenance: self.counted.provenance(self.options, report.totals.games),
            starts,
            index,
            lines: self.lines,
            report,
        })
    }
}

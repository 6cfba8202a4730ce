//! Reading the inputs: cutting them on one thread, replaying the batches on all.

use std::sync::{
    Arc, Condvar, Mutex,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use rayon::{Scope, ThreadPool};

use super::{
    MakeBook,
    counted::CountedInputs,
    indexing::{CollectedIndex, Postings},
    job::{BATCH_SIZE, Job},
    replay::{Outcome, Replayer},
    report::Report,
    sequence::{Sequenced, Sequencer},
    space::TemporarySpace,
    starts::Starts,
};
use crate::{
    error::{Error, Result},
    pgn::{Batch, Cutter, Input, Stream, StreamOptions},
    provenance::Provenance,
    sort::Memory,
    tally::{CountRecord, IdentityTally, Tally},
};

/// Why the locks of a run are never poisoned.
const LOCK: &str = "a thread that panics ends the run";

/// What has been collected when all inputs are read.
pub(super) struct Collected {
    /// Counts by the keys of positions, if the run needs them.
    pub tally: Option<Tally>,
    /// Counts by the identities of positions, if the run needs them.
    pub identities: Option<Tally>,
    /// Which identities share a key, if the run needs to know.
    pub pairs: Option<IdentityTally>,
    /// What the counts are made of.
    pub provenance: Provenance,
    /// Where games started.
    pub starts: Starts,
    /// What goes into the index, if there is to be one.
    pub index: Option<CollectedIndex>,
    pub report: Report,
}

impl MakeBook {
    /// Reads all inputs and collects what the outputs are made of.
    pub(super) fn collect(&self, pool: &ThreadPool, counted: &CountedInputs) -> Result<Collected> {
        let run = Run::new(self, counted);
        let in_flight = 2 * pool.current_num_threads() as u64;
        pool.in_place_scope(|scope| run.read_inputs(scope, in_flight))?;
        if let Some(failure) = run.failure.into_inner().expect(LOCK) {
            return Err(failure);
        }
        self.refuse_if_stopped()?;
        let Sequenced {
            mut report,
            indexed,
            first_ids,
            starts,
        } = run.sequencer.into_inner().expect(LOCK).finish()?;
        let index = run
            .postings
            .zip(indexed)
            .map(|(postings, games)| CollectedIndex::new(postings, games, first_ids));
        report.totals.plies += run.untold_plies.into_inner();
        Ok(Collected {
            tally: run.tally,
            identities: run.identities,
            pairs: run.pairs,
            provenance: counted.provenance(self, report.totals.games),
            starts,
            index,
            report,
        })
    }
}

/// What the threads of a run share.
pub(super) struct Run<'a> {
    pub options: &'a MakeBook,
    pub counted: &'a CountedInputs,
    pub tally: Option<Tally>,
    pub identities: Option<Tally>,
    pub pairs: Option<IdentityTally>,
    postings: Option<Postings>,
    space: TemporarySpace,
    sequencer: Mutex<Sequencer<'a>>,
    /// Signalled when the results of a batch are in order.
    placed: Condvar,
    /// The first error of a thread.
    failure: Mutex<Option<Error>>,
    pub failed: AtomicBool,
    /// Half-moves of all counts among the inputs.
    #[cfg(feature = "parquet")]
    pub counted_plies: AtomicU64,
    /// Half-moves of those that do not tell how many they are.
    pub untold_plies: AtomicU64,
}

impl<'a> Run<'a> {
    fn new(options: &'a MakeBook, counted: &'a CountedInputs) -> Run<'a> {
        let kinds = [
            options.counts_keys(),
            options.counts_identities(),
            options.pairs_keys(),
            options.leveldb.is_some(),
        ];
        // Each kind of record that is collected gets its share.
        let tables = kinds.into_iter().filter(|wanted| *wanted).count().max(1)
            + usize::from(options.explores());
        let unpacking = options.inputs.iter();
        let unpacking = unpacking.map(|input| input.unpacking_memory(options.memory));
        let other = unpacking.max().unwrap_or(0) + options.duplicates_memory();
        let memory = Memory {
            bytes: options.memory.saturating_sub(other) / tables,
            temp_dir: options.temp_dir.clone(),
        };
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
            identities: identities.then(|| Tally::new(memory.clone())),
            pairs: pairs.then(|| IdentityTally::new(memory.clone())),
            postings: postings.then(|| Postings::new(options, postings_memory)),
            space: TemporarySpace::new(options.temp_dir.clone()),
            sequencer: Mutex::new(Sequencer::new(options)),
            placed: Condvar::new(),
            failure: Mutex::new(None),
            failed: AtomicBool::new(false),
            #[cfg(feature = "parquet")]
            counted_plies: AtomicU64::new(0),
            untold_plies: AtomicU64::new(0),
        }
    }

    /// Cuts the inputs and hands the batches to the threads, at most `in_flight` before the first of them is
    /// in order.
    fn read_inputs<'scope>(&'scope self, scope: &Scope<'scope>, in_flight: u64) -> Result<()> {
        let mut number = 0;
        for (index, input) in self.options.inputs.iter().enumerate() {
            if self.counted.has(index) {
                self.read_counts(scope, index, &mut number, in_flight)?;
                continue;
            }
            let stream = input.open(&StreamOptions {
                stop: Arc::clone(&self.options.stop),
                memory: input.unpacking_memory(self.options.memory),
            })?;
            let taken = Arc::clone(&stream.taken);
            let mut told = 0;
            let mut cutter = Cutter::new(stream, BATCH_SIZE);
            while let Some(batch) = next_batch(&mut cutter, input)? {
                let so_far = taken.load(Ordering::Relaxed);
                self.options.progress.add_bytes(so_far - told);
                told = so_far;
                self.wait_for_place(number, in_flight);
                if self.failed.load(Ordering::Relaxed) {
                    return Ok(());
                }
                self.options.refuse_if_stopped()?;
                self.check_space()?;
                let job = Job {
                    batch,
                    number,
                    input: index,
                };
                number += 1;
                scope.spawn(move |_| {
                    if let Err(err) = self.replay(&job) {
                        self.fail(err);
                    }
                });
            }
        }
        Ok(())
    }

    /// Waits until fewer than `in_flight` batches before batch `number` are not in order, or the run failed.
    pub(super) fn wait_for_place(&self, number: u64, in_flight: u64) {
        let sequencer = self.sequencer.lock().expect(LOCK);
        let is_full = |sequencer: &mut Sequencer<'_>| {
            number >= sequencer.in_order() + in_flight && !self.failed.load(Ordering::Relaxed)
        };
        drop(self.placed.wait_while(sequencer, is_full).expect(LOCK));
    }

    /// Ends the run early if the temporary files will not fit.
    pub(super) fn check_space(&self) -> Result<()> {
        let tallies = [&self.tally, &self.identities].into_iter().flatten();
        let counts: u64 = tallies.map(Tally::spilled_bytes).sum();
        let postings = self.postings.as_ref().map_or(0, Postings::spilled_bytes);
        let read = self.options.progress.phase_fraction();
        let pairs = self.pairs.as_ref().map_or(0, IdentityTally::spilled_bytes);
        self.space.check(counts + pairs + postings, read)
    }

    pub(super) fn fail(&self, err: Error) {
        self.failure.lock().expect(LOCK).get_or_insert(err);
        // Under the lock, so that the reader cannot miss it between its look and its wait.
        let _sequencer = self.sequencer.lock().expect(LOCK);
        self.failed.store(true, Ordering::Relaxed);
        self.placed.notify_all();
    }

    fn replay(&self, job: &Job) -> Result<()> {
        if self.failed.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut outcome = Replayer::new(self.options).replay(job);
        if !self.options.drop_duplicates {
            // Taken out: an outcome may have to wait for its turn, and should not hold them meanwhile.
            let records = std::mem::take(&mut outcome.records);
            self.add_records(&records, &std::mem::take(&mut outcome.identity_records))?;
        }
        if let Some(pairs) = &self.pairs {
            pairs.add(&std::mem::take(&mut outcome.pairs))?;
        }
        self.submit(job, outcome)
    }

    /// Hands the outcome of a batch to the sequencer, and counts what had to wait for it.
    pub(super) fn submit(&self, job: &Job, outcome: Outcome) -> Result<()> {
        self.options.progress.add_games(outcome.totals.games.read);
        let in_order = self.sequencer.lock().expect(LOCK).submit(job, outcome)?;
        self.placed.notify_all();
        for batch in in_order {
            self.add_records(&batch.records, &batch.identity_records)?;
            if let (Some(postings), Some(batch)) = (&self.postings, batch.postings) {
                postings.add(batch)?;
            }
        }
        Ok(())
    }

    fn add_records(&self, records: &[CountRecord], identities: &[CountRecord]) -> Result<()> {
        if let Some(tally) = &self.tally {
            tally.add_records(records)?;
        }
        if let Some(tally) = &self.identities {
            tally.add_records(identities)?;
        }
        Ok(())
    }
}

fn next_batch(cutter: &mut Cutter<Stream>, input: &Input) -> Result<Option<Batch>> {
    cutter.next_batch().map_err(|err| input.error(err))
}

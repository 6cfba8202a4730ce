//! Reading the inputs: cutting them on one thread, replaying the batches on all.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
    mpsc,
};

use rayon::{Scope, ThreadPool};

use super::{
    MakeBook,
    replay::Replayer,
    report::Report,
    sequence::{Sequenced, Sequencer},
    starts::Starts,
};
use crate::{
    error::{Error, Result},
    index::{
        GameRecords,
        posting::{self, Once},
    },
    pgn::{Batch, Cutter, Input, Stream, StreamOptions},
    tally::{Memory, Partition, Shards, Tally},
};

/// About how many bytes of PGN are replayed at once.
const BATCH_SIZE: usize = 1 << 19;

/// What has been collected when all inputs are read.
pub(super) struct Collected {
    /// By the keys of positions.
    pub tally: Tally,
    /// By the identities of positions, if these are wanted.
    pub identities: Option<Tally>,
    /// Where games started.
    pub starts: Starts,
    /// Which games reached which positions, if there is to be an index.
    pub postings: Option<Shards<Once>>,
    /// The index records of all games, if there is to be one.
    pub records: Option<GameRecords>,
    /// The id of each input's first game.
    pub first_ids: Vec<u64>,
    pub report: Report,
}

impl MakeBook {
    /// Reads all inputs and collects what the outputs are made of.
    pub(super) fn collect(&self, pool: &ThreadPool) -> Result<Collected> {
        // Each kind of record that is collected gets its share.
        let kinds = [
            self.counts_keys(),
            self.counts_identities(),
            self.leveldb.is_some(),
        ];
        let tables = kinds.into_iter().filter(|wanted| *wanted).count().max(1);
        let unpacking = self
            .inputs
            .iter()
            .map(|input| input.unpacking_memory(self.memory));
        let memory = Memory {
            bytes: (self.memory - unpacking.max().unwrap_or(0)) / tables,
            temp_dir: self.temp_dir.clone(),
        };
        let run = Run {
            options: self,
            tally: Tally::new(memory.clone()),
            identities: self.counts_identities().then(|| Tally::new(memory.clone())),
            postings: self.leveldb.as_ref().map(|_| Shards::new(memory)),
            sequencer: Mutex::new(Sequencer::new(self)),
            failure: Mutex::new(None),
            failed: AtomicBool::new(false),
        };
        let total = self.inputs.iter().map(Input::size).sum::<Option<u64>>();
        self.progress
            .total
            .store(total.unwrap_or(0), Ordering::Relaxed);
        let in_flight = 2 * pool.current_num_threads();
        pool.in_place_scope(|scope| run.read_inputs(scope, in_flight))?;
        let failure = run.failure.into_inner();
        if let Some(failure) = failure.unwrap_or_else(PoisonError::into_inner) {
            return Err(failure);
        }
        self.refuse_if_stopped()?;
        let sequencer = run.sequencer.into_inner();
        let Sequenced {
            report,
            records,
            first_ids,
            starts,
        } = sequencer.unwrap_or_else(PoisonError::into_inner).finish()?;
        Ok(Collected {
            tally: run.tally,
            identities: run.identities,
            starts,
            postings: run.postings,
            records,
            first_ids,
            report,
        })
    }
}

/// What the threads of a run share.
struct Run<'a> {
    options: &'a MakeBook,
    tally: Tally,
    identities: Option<Tally>,
    postings: Option<Shards<Once>>,
    sequencer: Mutex<Sequencer<'a>>,
    /// The first thing that went wrong in a thread.
    failure: Mutex<Option<Error>>,
    failed: AtomicBool,
}

/// A batch and its place in the run.
pub(super) struct Job {
    pub batch: Batch,
    /// Counts all batches of the run.
    pub number: u64,
    /// Which input it comes from.
    pub input: usize,
}

impl Run<'_> {
    /// Cuts the inputs and hands the batches to the threads, not too many at a time.
    fn read_inputs<'scope>(&'scope self, scope: &Scope<'scope>, in_flight: usize) -> Result<()> {
        let (acquire, release) = mpsc::sync_channel::<()>(in_flight);
        let release = Arc::new(Mutex::new(release));
        let mut number = 0;
        for (index, input) in self.options.inputs.iter().enumerate() {
            let options = StreamOptions {
                stop: Arc::clone(&self.options.stop),
                memory: input.unpacking_memory(self.options.memory),
            };
            let stream = input.open(&options)?;
            let taken = Arc::clone(&stream.taken);
            let before = self.options.progress.taken.load(Ordering::Relaxed);
            let mut cutter = Cutter::new(stream, BATCH_SIZE);
            while let Some(batch) = next_batch(&mut cutter, input)? {
                if self.failed.load(Ordering::Relaxed) {
                    return Ok(());
                }
                self.options.refuse_if_stopped()?;
                let so_far = before + taken.load(Ordering::Relaxed);
                self.options.progress.taken.store(so_far, Ordering::Relaxed);
                // Waits while enough batches are on their way. The other end lives as long as this.
                let _ = acquire.send(());
                let job = Job {
                    batch,
                    number,
                    input: index,
                };
                number += 1;
                let release = Arc::clone(&release);
                scope.spawn(move |_| {
                    if let Err(err) = self.replay(&job) {
                        self.fail(err);
                    }
                    let release = release.lock().unwrap_or_else(PoisonError::into_inner);
                    let _ = release.recv();
                });
            }
        }
        Ok(())
    }

    fn fail(&self, err: Error) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert(err);
        self.failed.store(true, Ordering::Relaxed);
    }

    fn replay(&self, job: &Job) -> Result<()> {
        if self.failed.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut outcome = Replayer::new(self.options).replay(job);
        // Taken out: an outcome may have to wait for its turn, and should not hold them meanwhile.
        self.tally
            .add_records(&std::mem::take(&mut outcome.records))?;
        if let Some(identities) = &self.identities {
            identities.add_records(&std::mem::take(&mut outcome.identity_records))?;
        }
        self.options
            .progress
            .games
            .fetch_add(outcome.games.read, Ordering::Relaxed);
        let placed = self
            .sequencer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .submit(job, outcome)?;
        if let Some(shards) = &self.postings {
            for mut some in placed {
                for record in &mut some.postings {
                    *record = posting::add_to_id(*record, some.first_id);
                }
                shards.append(&Partition::new(&some.postings))?;
            }
        }
        Ok(())
    }
}

fn next_batch(cutter: &mut Cutter<Stream>, input: &Input) -> Result<Option<Batch>> {
    cutter.next_batch().map_err(|err| input.error(err))
}

//! Reading the inputs: cutting them on one thread, replaying the batches on all.

use std::sync::{Arc, atomic::Ordering};

use rayon::{Scope, ThreadPool};

use super::{
    MakeBook,
    replay::Replayer,
    run::{Collected, Run},
};
use crate::{
    error::Result,
    pgn::{Batch, Cutter, Input, Stream, StreamOptions},
    task,
};

/// About how many bytes of PGN are replayed at once.
pub(super) const BATCH_SIZE: usize = 1 << 19;

/// A batch and its place in the run.
#[derive(Debug)]
pub(super) struct Job {
    pub batch: Batch,
    /// Counts all batches of the run.
    pub number: u64,
    /// Which input it comes from.
    pub input: usize,
}

impl MakeBook {
    /// Reads all inputs and collects what the outputs are made of.
    pub(super) fn collect(&self, pool: &ThreadPool, mut run: Run<'_>) -> Result<Collected> {
        let in_flight = 2 * pool.current_num_threads() as u64;
        let has_counts = (0..self.inputs.len()).any(|input| run.counted.has(input));
        let read = pool.in_place_scope(|scope| {
            match task::caught(|| run.read_inputs(scope, in_flight)) {
                // Whole parts of counts may wait to be read. Batches are few, and an earlier one may have an error.
                Err(err) if has_counts => {
                    run.failure.set(err);
                    Ok(())
                }
                read => read,
            }
        });
        // If a job failed, that is why reading ended.
        run.failure.take().and(read)?;
        pool.install(|| {
            run.merge_ordered()?;
            run.finish()
        })
    }
}

impl<'a> Run<'a> {
    /// Cuts the inputs and hands the batches to the threads, at most `in_flight` before the first of them is
    /// in order.
    fn read_inputs<'scope>(&'scope self, scope: &Scope<'scope>, in_flight: u64) -> Result<()> {
        let mut number = 0;
        for (index, input) in self.options.inputs.iter().enumerate() {
            if self.counted.has(index) {
                self.read_counts(scope, index, &mut number, in_flight)?;
                continue;
            }
            let options = StreamOptions {
                stop: Arc::clone(&self.options.stop),
                memory: input.unpacking_memory(self.options.memory),
            };
            // A pipe that gives nothing must not hold up the end of a run that failed.
            let stream = input.open_until(&options, self.failure.flag())?;
            let taken = Arc::clone(&stream.taken);
            let mut told = 0;
            let mut cutter = Cutter::new(stream, BATCH_SIZE);
            while let Some(batch) = next_batch(&mut cutter, input)? {
                let so_far = taken.load(Ordering::Relaxed);
                self.options.progress.add_bytes(so_far - told);
                told = so_far;
                self.wait_for_place(number, in_flight);
                if self.failure.is_set() {
                    return Ok(());
                }
                self.options.refuse_if_stopped()?;
                self.check_space(0)?;
                let job = Job {
                    batch,
                    number,
                    input: index,
                };
                number += 1;
                scope.spawn(move |_| self.watch(|| self.replay(&job)));
            }
        }
        Ok(())
    }

    fn replay(&self, job: &Job) -> Result<()> {
        if self.failure.is_set() {
            return Ok(());
        }
        task::fault("replay");
        let mut outcome = Replayer::new(self.options, self.needs).replay(job, self.sinks);
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
}

fn next_batch(cutter: &mut Cutter<Stream>, input: &Input) -> Result<Option<Batch>> {
    task::fault("cut");
    cutter.next_batch().map_err(|err| input.error(err))
}

#[cfg(all(test, feature = "parquet"))]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn counts_are_not_read_to_their_end_when_an_input_fails() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let counting = MakeBook::new([Input::file("data/famous.pgn")]).counts(at("counts"));
        counting.run().unwrap();
        let files = fs::read_dir(at("counts")).unwrap();
        let part = files
            .map(|file| file.unwrap().path())
            .find(|path| path.to_string_lossy().contains("part-"))
            .unwrap();
        fs::create_dir(at("parts")).unwrap();
        for number in 0..300 {
            fs::copy(&part, at("parts").join(format!("part-{number}.parquet"))).unwrap();
        }
        fs::write(at("games.pgn.gz"), b"\x1f\x8b\x08 cut off").unwrap();
        let inputs = [at("parts"), at("games.pgn.gz")].map(Input::file);
        let run = MakeBook::new(inputs).bin(at("book.bin")).threads(1);
        let progress = run.progress();
        let err = run.run().unwrap_err().to_string();
        assert!(err.contains("games.pgn.gz"), "{err}");
        let (read, _) = progress.bytes();
        let all = 300 * fs::metadata(&part).unwrap().len();
        assert!(read < all, "all {all} bytes are read after the failure");
    }
}

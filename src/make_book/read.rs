//! Reading the inputs on one thread, replaying their batches on all.

use rayon::{Scope, ThreadPool};

use super::{
    MakeBook, outcome::Outcome, replay::Replayer, run::Run, sequence::Sequenced,
    write::SealedCounts,
};
use crate::{error::Result, pgn::Batch, task};

/// About how many bytes of PGN are replayed at once.
pub(super) const BATCH_SIZE: usize = 1 << 19;

/// The place of a batch in a run.
#[derive(Copy, Clone, Debug)]
pub(super) struct Place {
    /// Counts all batches of the run.
    pub number: u64,
    /// Which input it comes from.
    pub input: usize,
}

/// The batches of all inputs, on their way to the threads.
pub(super) struct Batches<'s, 'scope, 'run> {
    pub run: &'scope Run<'run>,
    pub scope: &'s Scope<'scope>,
    next: Place,
    /// The most batches before the first of them is in order.
    in_flight: u64,
}

impl<'run> Batches<'_, '_, 'run> {
    /// The place of another batch of the present input. Waits until few batches before it are not in order, or the run
    /// failed.
    pub(super) fn next_place(&mut self) -> Place {
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

impl MakeBook {
    /// Reads all inputs and collects the data of the outputs.
    pub(super) fn collect(
        &self,
        pool: &ThreadPool,
        mut run: Run<'_>,
    ) -> Result<(SealedCounts, Sequenced)> {
        let in_flight = 2 * pool.current_num_threads() as u64;
        let has_counts = run.inputs.has_counts();
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
    /// Reads the inputs and hands their batches to the threads.
    fn read_inputs<'scope>(&'scope self, scope: &Scope<'scope>, in_flight: u64) -> Result<()> {
        let next = Place {
            number: 0,
            input: 0,
        };
        let mut batches = Batches {
            run: self,
            scope,
            next,
            in_flight,
        };
        for (number, input) in self.inputs.all.iter().enumerate() {
            if self.failure.is_set() {
                break;
            }
            batches.next.input = number;
            input.read(&mut batches)?;
        }
        Ok(())
    }

    /// Counts the games of a batch.
    pub(super) fn replay(&self, batch: &Batch, place: Place) -> Result<()> {
        if self.failure.is_set() {
            return Ok(());
        }
        task::fault("replay");
        let input = self.options.inputs[place.input].path();
        let replayer = Replayer::new(self.options, self.needs, input, batch.offset);
        let mut outcome = replayer.replay(&batch.text, self.sinks);
        if !self.options.drop_duplicates {
            // Taken out: an outcome may have to wait for its turn, and should not hold them meanwhile.
            let records = std::mem::take(&mut outcome.records);
            self.add_records(&records, &std::mem::take(&mut outcome.identity_records))?;
        }
        if let Some(pairs) = &self.pairs {
            pairs.add(&std::mem::take(&mut outcome.pairs))?;
        }
        self.submit(place, outcome)
    }
}

#[cfg(all(test, feature = "parquet"))]
mod tests {
    use std::fs;

    use super::*;
    use crate::pgn::Input;

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

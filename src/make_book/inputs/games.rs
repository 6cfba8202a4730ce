//! Inputs that are games. One thread cuts them into batches, and all threads replay the batches.

use std::sync::{Arc, atomic::Ordering};

use crate::{
    error::Result,
    make_book::{input::RunInput, outcome::Outcome, replay::BATCH_SIZE, run::Batches},
    pgn::{Batch, Cutter, Input, SkippedParts, Stream, StreamOptions},
    task,
};

/// A PGN file as an input.
pub(super) struct GamesInput<'a>(pub &'a Input);

impl RunInput for GamesInput<'_> {
    fn check(&self) -> Result<()> {
        self.0.check()
    }

    fn size(&self) -> Option<u64> {
        self.0.size()
    }

    fn read<'scope>(&'scope self, batches: &mut Batches<'_, 'scope, '_>) -> Result<()> {
        let (input, run) = (self.0, batches.run);
        let options = StreamOptions {
            stop: Arc::clone(&run.options.stop),
            memory: input.unpacking_memory(run.options.memory.bytes),
        };
        // A silent pipe must not delay the end of a failed run.
        let stream = input.open_until(&options, run.failure.flag())?;
        let taken = Arc::clone(&stream.taken);
        let left_out = Arc::clone(&stream.left_out);
        let mut reported = 0;
        let mut cutter = Cutter::new(stream, BATCH_SIZE);
        while let Some(batch) = next_batch(&mut cutter, input)? {
            let so_far = taken.load(Ordering::Relaxed);
            run.options.progress.add_bytes(so_far - reported);
            reported = so_far;
            let id = batches.next_id();
            if run.failure.is_set() {
                return Ok(());
            }
            run.options.refuse_if_stopped()?;
            run.check_space(0)?;
            batches
                .scope
                .spawn(move |_| run.watch(|| run.replay(&batch, id)));
        }
        match left_out.get() {
            Some(left_out) => batches.submit(Outcome {
                skipped: SkippedParts {
                    files: Some(left_out.clone()),
                    ..SkippedParts::default()
                },
                ..Outcome::default()
            }),
            None => Ok(()),
        }
    }
}

/// Returns the next batch, or `None` at the end of the input.
fn next_batch(cutter: &mut Cutter<Stream>, input: &Input) -> Result<Option<Batch>> {
    task::fault("cut");
    cutter.next_batch().map_err(|err| input.error(err))
}

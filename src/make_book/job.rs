//! A batch of games on its way through a run.

use crate::pgn::Batch;

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

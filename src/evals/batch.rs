//! What comes of a batch of games, lines or records.

use super::{EvalsReport, layout::Ranked};
use crate::provenance::shortened;

/// The longest reason that is kept. A line may have 16 MiB, and its error may quote it.
pub(super) const LONGEST_REASON: usize = 300;

/// What was read of a batch.
#[derive(Default)]
pub(super) struct BatchRead {
    pub records: Vec<Ranked>,
    /// Games, lines, or records of a store.
    pub entries: u64,
    pub filtered: u64,
    pub ignored: u64,
    pub rejected: u64,
    /// The first that were rejected: the number in the batch, the place in the batch, and what is wrong.
    pub described: Vec<(u64, usize, String)>,
}

impl BatchRead {
    /// Counts the entry that is read as bad.
    pub(super) fn reject(&mut self, offset: usize, reason: String) {
        self.rejected += 1;
        if self.described.len() < EvalsReport::DESCRIBED {
            let reason = shortened(&reason, LONGEST_REASON);
            self.described.push((self.entries, offset, reason));
        }
    }
}

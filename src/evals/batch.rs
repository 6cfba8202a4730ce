//! The result of reading a batch of games, lines or records.

use super::{EvalsReport, layout::RankedBytes};
use crate::{pgn::UnknownVariants, provenance::shortened};

/// The maximum length of a reason, in characters. A line may have 16 MiB, and its error may quote it.
pub(super) const LONGEST_REASON: usize = 300;

/// The result of reading a batch.
#[derive(Default)]
pub(super) struct BatchRead {
    pub records: Vec<RankedBytes>,
    /// The number of games, lines, or records of a store.
    pub entries: u64,
    pub filtered: u64,
    /// The filtered games whose variant is unknown.
    pub unknown_variants: UnknownVariants,
    pub ignored: u64,
    pub rejected: u64,
    /// The first rejected entries: the number in the batch, the offset in the batch in bytes, and the reason.
    pub described: Vec<(u64, usize, String)>,
}

impl BatchRead {
    /// Counts the current entry as rejected.
    pub(super) fn reject(&mut self, offset: usize, reason: String) {
        self.rejected += 1;
        if self.described.len() < EvalsReport::DESCRIBED {
            let reason = shortened(&reason, LONGEST_REASON);
            self.described.push((self.entries, offset, reason));
        }
    }
}

//! The counts of a run when all games are read.

use crate::tally::Counts;

/// The counts of a run, sorted.
pub(super) struct SealedCounts {
    /// Those by the keys of positions, if the run needs them.
    pub by_key: Option<Counts>,
    /// Those by the identities of positions, if the run needs them.
    pub by_identity: Option<Counts>,
}

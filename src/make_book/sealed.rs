//! The counts of a run when all games are read.

use crate::tally::Counts;
use crate::tally::SharedKeys;

/// The counts of a run, sorted.
pub(super) struct SealedCounts {
    /// Those by the keys of positions, if the run needs them.
    pub by_key: Option<Counts>,
    /// Those by the identities of positions, if the run needs them.
    pub by_identity: Option<Counts>,
    /// Which identities share a key, if the run needs to know.
    pub pairs: Option<SharedKeys>,
}

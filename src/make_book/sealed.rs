//! The counts of a run when all games are read.

use crate::tally::{Counts, SharedKeys};

/// The counts of a run, sorted.
pub(super) struct SealedCounts {
    /// Those by the keys of positions, if the run needs them.
    pub by_key: Option<Counts>,
    /// Those by the identities of positions, if the run needs them.
    pub by_identity: Option<Counts>,
    /// Which identities share a key, if the run needs to know.
    #[cfg_attr(not(any(feature = "obs", feature = "parquet")), expect(dead_code))]
    pub pairs: Option<SharedKeys>,
}

//! What a server tells a log.

use std::{sync::Arc, time::Duration};

/// A request that was answered, for a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Served {
    /// `GET`, `HEAD`, ...
    pub method: String,
    /// The path and what stands behind its `?`.
    pub path: String,
    /// The status of the answer.
    pub status: u16,
    /// How long the answer took.
    pub time: Duration,
}

/// Takes note of requests.
pub(super) type Log = Arc<dyn Fn(&Served) + Send + Sync>;

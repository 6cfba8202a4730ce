//! What the threads hand over of a batch of games.

use std::collections::BTreeMap;

use super::{
    indexing::BatchIndex,
    report::{FilteredVariant, Rejection, Totals},
};
use crate::{
    suite::GameLine,
    tally::{CountRecord, KeyedIdentity},
};

/// What came out of a batch.
#[derive(Default)]
pub(super) struct Outcome {
    pub totals: Totals,
    /// A record for each half-move that counts, if the run counts by keys.
    pub records: Vec<CountRecord>,
    /// The same under the [identity](Keyed::identity) of each position instead of its key, if the run counts
    /// by identities.
    pub identity_records: Vec<CountRecord>,
    /// The key of each position, 0 if it is not for books, and its identity, if the run pairs them.
    pub pairs: Vec<KeyedIdentity>,
    /// The lines of games that count, if there is to be a suite.
    pub lines: Vec<GameLine>,
    /// Positions other than the usual one in which games started that may count, if the run needs to know: the EPD of
    /// each, and how many games.
    pub starts: Vec<(Vec<u8>, u64)>,
    /// Games that were filtered for their variant.
    pub filtered_variants: BTreeMap<FilteredVariant, u64>,
    /// The first rejected games, numbered from the first game of the batch.
    pub rejected: Vec<Rejection>,
    /// Whether anything in the batch looked like PGN.
    pub recognised: bool,
    /// Whether there was more than blanks.
    pub has_text: bool,
    /// Where text first stood that belongs to no game.
    pub stray_text: Option<u64>,
    /// What an index needs, if there is to be one.
    pub index: BatchIndex,
    /// All games that count, if duplicates are dropped: their totals are here alone, and all records are theirs, in
    /// this order.
    pub candidates: Vec<Candidate>,
}

/// A game that counts unless one before it is the same.
pub(super) struct Candidate {
    pub fingerprint: Option<u128>,
    /// Its number in the batch.
    pub id: u32,
    /// What it adds to the totals.
    pub totals: Totals,
    /// How many records it added to the outcome of its batch, by keys and by identities.
    pub records: usize,
    pub identity_records: usize,
    /// How many lines of a suite.
    pub lines: usize,
}

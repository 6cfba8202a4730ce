//! Sorted records in pieces that are made into entries in parallel.

use std::ops::{ControlFlow, Range};

use crate::{
    error::Result,
    sort::{Record, SHARDS, Sealed},
};

/// How many records are read at once.
const READ: usize = 1 << 12;

/// Some records of a shard, by their numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    pub shard: usize,
    pub range: Range<usize>,
}

impl Piece {
    /// How many records it has.
    pub(super) fn len(&self) -> usize {
        self.range.len()
    }
}

/// All records in pieces of `size`, in order.
pub(super) fn pieces<R: Record>(
    records: &Sealed<R>,
    size: usize,
) -> impl Iterator<Item = Piece> + use<'_, R> {
    (0..SHARDS).flat_map(move |shard| {
        let len = len_of(records, shard);
        (0..len).step_by(size).map(move |start| Piece {
            shard,
            range: start..len.min(start + size),
        })
    })
}

/// How many records a shard has.
fn len_of<R: Record>(records: &Sealed<R>, shard: usize) -> usize {
    usize::try_from(records.shard_len(shard)).expect("a shard has fewer records")
}

/// Calls `f` with the records of a shard from the one numbered `start` on.
pub(super) fn scan<R: Record>(
    records: &Sealed<R>,
    shard: usize,
    start: usize,
    mut f: impl FnMut(R) -> ControlFlow<()>,
) -> Result<()> {
    let len = len_of(records, shard);
    let mut buffer = Vec::new();
    for from in (start..len).step_by(READ) {
        let some = records.range(shard, from..len.min(from + READ), &mut buffer)?;
        if some.iter().any(|record| f(*record).is_break()) {
            break;
        }
    }
    Ok(())
}

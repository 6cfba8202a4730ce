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

/// Calls `f` with the numbers and the records of the groups whose first record lies in a piece, which may go on after
/// it. Returns the number after the last of them.
pub(super) fn scan_groups<R: Record, G: PartialEq>(
    records: &Sealed<R>,
    piece: &Piece,
    group_of: impl Fn(R) -> G,
    mut f: impl FnMut(usize, R) -> Result<()>,
) -> Result<usize> {
    // The record before says whether the first group began earlier.
    let mut number = piece.range.start.saturating_sub(1);
    let (mut earlier, mut present) = (None, None);
    let mut passed = Ok(());
    scan(records, piece.shard, number, |record| {
        let group = Some(group_of(record));
        if number < piece.range.start {
            earlier = group;
        } else if group != earlier {
            if group != present && number >= piece.range.end {
                return ControlFlow::Break(());
            }
            present = group;
            passed = f(number, record);
        }
        number += 1;
        // A group that began earlier may go on for long.
        match passed.is_err() || (present.is_none() && number >= piece.range.end) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    })?;
    passed.map(|()| number)
}

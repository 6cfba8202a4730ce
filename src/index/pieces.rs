//! Sorted records in pieces that are made into entries in parallel.

use std::ops::Range;

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

/// Calls `f` with the records of the groups whose first record lies in a piece, which may go on after it.
pub(super) fn scan_groups<R: Record, G: PartialEq>(
    records: &Sealed<R>,
    piece: &Piece,
    group_of: impl Fn(R) -> G,
    mut f: impl FnMut(R) -> Result<()>,
) -> Result<()> {
    // The record before says whether the first group began earlier.
    let first = piece.range.start.saturating_sub(1);
    let len = len_of(records, piece.shard);
    let (mut earlier, mut present) = (None, None);
    let mut buffer = Vec::new();
    for from in (first..len).step_by(READ) {
        let some = records.range(piece.shard, from..len.min(from + READ), &mut buffer)?;
        for (number, record) in (from..).zip(some) {
            let group = Some(group_of(*record));
            if number < piece.range.start {
                earlier = group;
            } else if group != earlier {
                if group != present && number >= piece.range.end {
                    return Ok(());
                }
                present = group;
                f(*record)?;
            }
            // A group that began earlier may go on for long.
            if present.is_none() && number + 1 >= piece.range.end {
                return Ok(());
            }
        }
    }
    Ok(())
}

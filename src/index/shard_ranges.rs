//! Divides sorted records into ranges that are turned into index entries in parallel.

use std::ops::Range;

use crate::{
    error::Result,
    storage::sort::{Record, SHARDS, Sealed},
};

/// The number of records that are read from a shard at a time, which limits the memory for them. A shard is one of the
/// parts into which sorted records are divided by key.
const RECORDS_PER_READ: usize = 1 << 12;

/// A range of sorted records within one shard, which one job turns into index entries. A shard is one of the parts into
/// which sorted records are divided by key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ShardRange {
    pub shard: usize,
    pub indices: Range<usize>,
}

impl ShardRange {
    /// Returns the number of records in this range.
    pub(super) fn len(&self) -> usize {
        self.indices.len()
    }
}

/// Divides all records in `records` into ranges, and returns an iterator over the ranges in the order of the records.
/// Each range contains at most `size` records, all from one shard. A shard is one of the parts into which sorted
/// records are divided by key.
pub(super) fn shard_ranges<R: Record>(
    records: &Sealed<R>,
    size: usize,
) -> impl Iterator<Item = ShardRange> + use<'_, R> {
    (0..SHARDS).flat_map(move |shard| {
        let len = len_of(records, shard);
        (0..len).step_by(size).map(move |start| ShardRange {
            shard,
            indices: start..len.min(start + size),
        })
    })
}

/// Returns the number of records in shard `shard`. Sorted records are divided by key into parts, called shards.
fn len_of<R: Record>(records: &Sealed<R>, shard: usize) -> usize {
    usize::try_from(records.shard_len(shard)).expect("a shard has fewer records")
}

/// Calls `f` with each record of every group that begins in `range`, and with no other records. A group consists of
/// consecutive records for which `group_of` returns equal values. If the first records of `range` belong to a group
/// that begins earlier, they are skipped. If the last group continues after `range`, `f` also receives its later
/// records.
///
/// # Errors
///
/// Returns an error if `f` fails or if a temporary file cannot be read.
pub(super) fn scan_groups<R: Record, G: PartialEq>(
    records: &Sealed<R>,
    range: &ShardRange,
    group_of: impl Fn(R) -> G,
    mut f: impl FnMut(R) -> Result<()>,
) -> Result<()> {
    // The record before the range shows whether the first group of the range began earlier.
    let first = range.indices.start.saturating_sub(1);
    let len = len_of(records, range.shard);
    let (mut earlier, mut present) = (None, None);
    let mut buffer = Vec::new();
    for from in (first..len).step_by(RECORDS_PER_READ) {
        let some = records.range(
            range.shard,
            from..len.min(from + RECORDS_PER_READ),
            &mut buffer,
        )?;
        for (number, record) in (from..).zip(some) {
            let group = Some(group_of(*record));
            if number < range.indices.start {
                earlier = group;
            } else if group != earlier {
                if group != present && number >= range.indices.end {
                    return Ok(());
                }
                present = group;
                f(*record)?;
            }
            // If a group that began earlier fills the whole range, stops here instead of reading to the group's end.
            if present.is_none() && number + 1 >= range.indices.end {
                return Ok(());
            }
        }
    }
    Ok(())
}

//! Divides the memory budget of a run among the stores in which the run collects data.
//!
//! `Budget::divide` first reserves memory for the metadata of counts and for decompression, and an eighth of the budget
//! for `--duplicates once`. It divides the rest into equal shares for the tallies and for the outputs that collect
//! data. After the last game, the outputs are written one after the other. The output that is being written may then
//! use the whole budget for sorting, except the memory that the counts and the other unwritten outputs still need
//! (`Budget::memory_left`).

use super::options::MakeBook;
use crate::storage::sort::{Memory, SHARDS};

/// The approximate memory, in bytes, that a thread needs to read one counts directory in the order of keys. This
/// includes buffered pages of the Parquet columns and decoded rows, but not the metadata of the files.
pub(super) const BYTES_PER_DIRECTORY: usize = 2 << 20;

/// The maximum number of Parquet files that may be open at the same time while counts are merged. Each thread merges
/// one range of keys, for which it keeps one file of every input counts directory open. The limit is low because some
/// systems allow a process to open only 256 files.
const MAX_OPEN_FILES: usize = 128;

/// The preferred number of rows in a range of keys. Threads merge sorted counts in parallel, one range at a time.
/// Smaller ranges are slower, because a Parquet row group that two ranges share is read twice.
const ROWS_PER_RANGE: u64 = 1 << 22;

/// The memory limits of the stores in which a `make-book` run collects data. A store that reaches its limit writes data
/// to temporary files.
#[derive(Default)]
pub(super) struct Budget {
    /// The budget of each tally, a store that adds up the results of moves.
    pub tally: Memory,
    /// The budget of one memory share. While games are read, each output takes one or more of these shares, which have
    /// equal sizes.
    pub share: Memory,
    /// The budget for the game records of an index.
    pub games: Memory,
    /// The budget for the positions in which games started.
    pub starts: Memory,
    /// The budget for the keys by which duplicate games are recognized. It is 0 unless duplicates are dropped.
    pub duplicates: Memory,
    /// The plan for merging input counts that are already sorted, or `None` if the tallies sort them again.
    pub merging: Option<Merging>,
}

/// A plan for merging input counts that are already sorted by key, so that they need not be sorted again.
pub(super) struct Merging {
    /// The number of ranges into which the keys are divided. Each range is merged by one thread.
    pub ranges: usize,
    /// The budget for the merged counts.
    pub memory: Memory,
}

/// The size of the input counts that are already sorted by key. It decides whether the memory suffices for merging them
/// without sorting them again.
pub(super) struct OrderedSize {
    /// The approximate memory, in bytes, that one thread needs to read all sorted counts.
    pub memory: usize,
    pub rows: u64,
    /// The number of directories that contain sorted counts.
    pub directories: usize,
    /// Whether all inputs are counts that are already sorted.
    pub is_all: bool,
}

impl Budget {
    /// Divides the memory budget of `run` among its stores. First reserves memory for decompression, for the detection
    /// of duplicates, and for the metadata of input counts (`metadata` bytes). Then divides the rest into `shares`
    /// equal parts for the outputs and for the tallies (the stores that add up the results of moves).
    ///
    /// `ordered` is the size of the input counts that are already sorted, or `None` if no counts can be merged without
    /// sorting. `threads` is the number of threads of the run.
    pub(super) fn divide(
        run: &MakeBook,
        metadata: usize,
        shares: usize,
        ordered: Option<OrderedSize>,
        threads: usize,
    ) -> Budget {
        let memory = &run.memory;
        let files = run.inputs.iter();
        let unpacking = files
            .map(|input| input.unpacking_memory(memory.bytes))
            .max();
        let duplicates = if run.selection.counts_once() {
            memory.share(8)
        } else {
            memory.with_bytes(0)
        };
        let other = unpacking.unwrap_or(0) + duplicates.bytes + metadata;
        let share = memory.bytes.saturating_sub(other) / shares.max(1);
        let merging = ordered.and_then(|ordered| merging(share, &ordered, threads));
        let merged = merging.as_ref().map_or(0, |(bytes, ..)| *bytes);
        Budget {
            tally: memory.with_bytes(share - merged),
            share: memory.with_bytes(share),
            games: memory.share(8),
            starts: memory.share(16),
            duplicates,
            merging: merging.map(|(_, ranges, for_sum)| Merging {
                ranges,
                memory: memory.with_bytes(for_sum),
            }),
        }
    }

    /// Returns the part of the run's memory budget that an output may use for sorting or checking its contents while it
    /// is written. `counts` is the memory for the counts of moves, and `outputs` is the memory that other outputs take
    /// until they are written, both in bytes.
    pub(super) fn memory_left(run: &MakeBook, counts: usize, outputs: usize) -> Memory {
        // Finding positions needs one more byte for each record.
        let held = counts + counts / 8 + outputs;
        let memory = &run.memory;
        let left = memory.bytes.saturating_sub(held).max(memory.bytes / 8);
        // Sorting needs memory in addition to the rows.
        memory.with_bytes(left / 4 * 3)
    }

    /// Returns how many Parquet files of the output counts may be written at the same time, at least 1. Each file is
    /// written by its own thread, which needs `memory_per_file` bytes of memory for reading the input counts.
    pub(super) fn parts_at_once(run: &MakeBook, memory_per_file: usize) -> usize {
        (run.memory.bytes / 2 / memory_per_file.max(BYTES_PER_DIRECTORY)).max(1)
    }
}

/// Plans how `threads` threads merge counts that are already sorted, in at most `share` bytes of memory. `ordered` is
/// the size of these counts. Returns three numbers: the memory for the whole merge, the number of key ranges, and the
/// memory for the merged counts. Both amounts of memory are in bytes.
///
/// Returns `None` if the counts must be sorted after all, because the memory is too small or too many files would be
/// open.
fn merging(share: usize, ordered: &OrderedSize, threads: usize) -> Option<(usize, usize, usize)> {
    // Counts that are not sorted yet are sorted first. They stay in memory while they are merged with the sorted
    // counts.
    let bytes = if ordered.is_all { share } else { share / 2 };
    let at_once = (bytes / 2 / ordered.memory).min(MAX_OPEN_FILES / ordered.directories);
    let (ranges, at_once) = ranges(ordered.rows, threads, at_once)?;
    Some((bytes, ranges, bytes - at_once * ordered.memory))
}

/// Divides the keys of `rows` rows of sorted counts into ranges, which `threads` threads merge in parallel. Returns the
/// number of ranges, and how many of them are merged at the same time (at most `max_at_once`). Returns `None` if fewer
/// than two ranges are possible.
///
/// At least two ranges are necessary because two orders must agree: rows are sorted by key as a signed number, but
/// shards by key as an unsigned number. The orders agree only within each half of the keys.
fn ranges(rows: u64, threads: usize, max_at_once: usize) -> Option<(usize, usize)> {
    if threads <= max_at_once {
        let wanted = usize::try_from(rows / ROWS_PER_RANGE).unwrap_or(SHARDS);
        let ranges = wanted.max(threads).min(SHARDS / 2).next_power_of_two();
        return Some((ranges.max(2), threads));
    }
    let ranges = 1 << max_at_once.checked_ilog2()?;
    (ranges >= 2).then_some((ranges, ranges))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_memory_limit_the_number_of_ranges() {
        assert_eq!(ranges(10, 1, 8), Some((2, 1)));
        assert_eq!(ranges(10, 6, 8), Some((8, 6)));
        assert_eq!(ranges(9 * ROWS_PER_RANGE, 2, 8), Some((16, 2)));
        assert_eq!(ranges(u64::MAX, 2, 8), Some((128, 2)));
        assert_eq!(ranges(10, 64, 7), Some((4, 4)));
        assert_eq!(ranges(10, 64, 1), None);
        assert_eq!(ranges(10, 64, 0), None);
    }
}

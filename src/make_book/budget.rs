//! How the memory of a run is divided.

use super::options::MakeBook;
use crate::sort::{Memory, SHARDS};

/// About how much memory a directory of ordered counts takes while it is read, but for its metadata: the pages of its
/// columns, and rows.
pub(super) const BYTES_OF_DIRECTORY: usize = 2 << 20;

/// The most files of ordered counts that are open at a time. A range has a file of each directory open, and a limit of 256
/// open files must be enough for a run.
const MOST_FILES: usize = 128;

/// How many rows a range of keys should have at least: a row group at its edge is read twice.
const ROWS_OF_RANGE: u64 = 1 << 22;

/// The parts of the memory.
#[derive(Default)]
pub(super) struct Budget {
    /// Of each tally.
    pub tally: Memory,
    /// Of each of the shares of an output.
    pub share: Memory,
    /// Of the records of games, which the index keeps.
    pub games: Memory,
    /// Of the positions in which games started.
    pub starts: Memory,
    /// Of the games that were met, if duplicates are dropped.
    pub duplicates: Memory,
    /// Of ordered counts, `None` if the tallies take them.
    pub merging: Option<Merging>,
}

/// How ordered counts are merged.
pub(super) struct Merging {
    /// Into how many ranges keys are cut; a thread merges a range.
    pub ranges: usize,
    /// For the sum.
    pub memory: Memory,
}

/// The counts among the inputs that are in order.
pub(super) struct OrderedSize {
    /// About how much memory one thread takes to read all of them.
    pub memory: usize,
    pub rows: u64,
    /// How many directories they are in.
    pub directories: usize,
    /// Whether there are no other inputs.
    pub is_all: bool,
}

impl Budget {
    /// Divides the memory of a run but for the metadata of counts. Its tallies and outputs take this many equal `shares`.
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
        let duplicates = match run.drop_duplicates {
            true => memory.share(8),
            false => memory.part(0),
        };
        let other = unpacking.unwrap_or(0) + duplicates.bytes + metadata;
        let share = memory.bytes.saturating_sub(other) / shares.max(1);
        let merging = ordered.and_then(|ordered| merging(share, &ordered, threads));
        let merged = merging.as_ref().map_or(0, |(bytes, ..)| *bytes);
        Budget {
            tally: memory.part(share - merged),
            share: memory.part(share),
            games: memory.share(8),
            starts: memory.share(16),
            duplicates,
            merging: merging.map(|(_, ranges, for_sum)| Merging {
                ranges,
                memory: memory.part(for_sum),
            }),
        }
    }

    /// The memory that is left for sorting the rows of an output, next to this many bytes of
    /// counts and of other outputs.
    pub(super) fn left(run: &MakeBook, counts: usize, outputs: usize) -> Memory {
        // Finding positions takes a byte a record more.
        let held = counts + counts / 8 + outputs;
        let memory = &run.memory;
        let left = memory.bytes.saturating_sub(held).max(memory.bytes / 8);
        // The rest is for what sorting needs meanwhile.
        memory.part(left / 4 * 3)
    }

    /// How many parts of counts are written at a time. Each reads a range of keys, which takes this much memory.
    pub(super) fn parts_at_once(run: &MakeBook, for_each: usize) -> usize {
        (run.memory.bytes / 2 / for_each.max(BYTES_OF_DIRECTORY)).max(1)
    }
}

/// How much of a tally's memory merging ordered counts takes, in how many ranges, and what it leaves for the sum. `None`
/// if the counts are to be sorted, because there is too little memory, or because there are too many files, to read all of
/// them at a time.
fn merging(share: usize, ordered: &OrderedSize, threads: usize) -> Option<(usize, usize, usize)> {
    // All other counts are sorted first, and are in memory while they are merged with the ordered ones.
    let bytes = match ordered.is_all {
        true => share,
        false => share / 2,
    };
    let at_once = (bytes / 2 / ordered.memory).min(MOST_FILES / ordered.directories);
    let (ranges, at_once) = ranges(ordered.rows, threads, at_once)?;
    Some((bytes, ranges, bytes - at_once * ordered.memory))
}

/// Into how many ranges this many rows are cut, and how many of these are read at a time, at most `most`. At least
/// two, because the order of keys as signed numbers is that of shards only within either half.
fn ranges(rows: u64, threads: usize, most: usize) -> Option<(usize, usize)> {
    if threads <= most {
        let wanted = usize::try_from(rows / ROWS_OF_RANGE).unwrap_or(SHARDS);
        let ranges = wanted.max(threads).min(SHARDS / 2).next_power_of_two();
        return Some((ranges.max(2), threads));
    }
    let ranges = 1 << most.checked_ilog2()?;
    (ranges >= 2).then_some((ranges, ranges))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_rows_are_cut_into_few_ranges_and_many_threads_into_what_memory_allows() {
        assert_eq!(ranges(10, 1, 8), Some((2, 1)));
        assert_eq!(ranges(10, 6, 8), Some((8, 6)));
        assert_eq!(ranges(9 * ROWS_OF_RANGE, 2, 8), Some((16, 2)));
        assert_eq!(ranges(u64::MAX, 2, 8), Some((128, 2)));
        assert_eq!(ranges(10, 64, 7), Some((4, 4)));
        assert_eq!(ranges(10, 64, 1), None);
        assert_eq!(ranges(10, 64, 0), None);
    }
}

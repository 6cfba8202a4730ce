//! Counts among the inputs that are in order: merged by ranges of keys with all that was counted, without sorting them.

use std::{ops::Range, sync::atomic::Ordering};

use super::{MakeBook, inputs::Inputs, run::Run, sinks::Needs};
use crate::{
    error::{Error, Result},
    sort::{Memory, SHARDS},
};

/// About how much memory a directory takes while it is read: the pages of its columns, and rows.
const BYTES_OF_DIRECTORY: usize = 2 << 20;

/// How many rows a range of keys should have at least: a row group at its edge is read twice.
const ROWS_OF_RANGE: u64 = 1 << 22;

/// How ordered counts are merged.
pub(super) struct Merging {
    /// Into how many ranges keys are cut; a thread merges a range.
    pub ranges: usize,
    /// In how many games a move of a position must have been played, so that the position is kept.
    pub fewest: u64,
    /// For the sum.
    pub memory: Memory,
}

impl Merging {
    /// Shares out `memory` between the merging and all else. `None` if the counts are to be sorted: because they are
    /// in no order, because the run needs another order, or because memory does not suffice to read all of them
    /// at a time.
    pub(super) fn plan(
        run: &MakeBook,
        needs: &Needs,
        inputs: &Inputs<'_>,
        memory: Memory,
        threads: usize,
    ) -> (Memory, Option<Merging>) {
        let directories = inputs.ordered().count();
        if directories == 0 || !needs.keys || needs.identities || needs.shared_keys {
            return (memory, None);
        }
        // All other counts are sorted first, and are in memory while they are merged with the ordered ones.
        let bytes = match directories == inputs.all.len() {
            true => memory.bytes,
            false => memory.bytes / 2,
        };
        let rows = inputs.ordered().map(|counts| counts.rows()).sum();
        let for_each = directories * BYTES_OF_DIRECTORY;
        let Some((ranges, at_once)) = ranges(rows, threads, bytes / 2 / for_each) else {
            return (memory, None);
        };
        let with = |bytes: usize| Memory {
            bytes,
            temp_dir: memory.temp_dir.clone(),
        };
        let merging = Merging {
            ranges,
            fewest: if needs.rare_positions {
                0
            } else {
                run.move_filter.min_game
            },
            memory: with(bytes - at_once * for_each),
        };
        (with(memory.bytes - bytes), Some(merging))
    }
}

impl Run<'_> {
    /// Adds the counts that are in order to the others. Works on all threads of the rayon pool that it is called in.
    pub(super) fn merge_ordered(&mut self) -> Result<()> {
        let is_wanted = self.merging.is_some();
        let Some(tally) = self.tally.take_if(|_| is_wanted) else {
            return Ok(());
        };
        let run = &*self;
        let Merging {
            ranges,
            fewest,
            memory,
        } = run.merging.as_ref().expect("it is some");
        let open = |shards: Range<usize>| {
            let inputs = run.inputs.ordered();
            inputs
                .map(|counts| counts.open(run, shards.clone()))
                .collect()
        };
        let watch = |spilled| {
            run.options.refuse_if_stopped()?;
            run.check_space(spilled)
        };
        let merged = tally
            .seal_with(memory, *ranges, *fewest, open, watch)
            .map_err(|err| self.reason_of(err))?;
        for input in &self.inputs.all {
            let Some(counts) = input.ordered() else {
                continue;
            };
            let plies = counts.check_read()?;
            if input
                .counted()
                .is_some_and(|counted| counted.origin.is_none())
            {
                self.plies_without_sidecar
                    .fetch_add(plies, Ordering::Relaxed);
            }
        }
        self.merged = Some(merged);
        Ok(())
    }

    /// Why ordered counts cannot be merged: if some were altered, that and no other.
    fn reason_of(&self, err: Error) -> Error {
        if matches!(err, Error::Interrupted | Error::Io { .. }) {
            return err;
        }
        let checked = self
            .inputs
            .ordered()
            .try_for_each(|counts| counts.check_bytes());
        checked.err().unwrap_or(err)
    }
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

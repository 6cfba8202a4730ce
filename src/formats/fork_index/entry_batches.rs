//! Creates batches of index entries from ranges of sorted records.
//!
//! An index is written in groups of batches, each of which contains a few megabytes. Sorted records are divided into
//! ranges, which are converted to batches in parallel.

use std::{
    iter,
    ops::Range,
    path::{Path, PathBuf},
};

use rayon::prelude::*;

use super::{
    entries::Entries,
    layout::{self, PositionStats},
};
use crate::{
    chess::position::{Variant, VariantChoice},
    error::Result,
    storage::sort::{Record, SHARDS, Sorted},
};

/// A batch of index entries in ascending order of keys, which is the result of one of several parallel jobs. It also
/// contains the number of positions in these entries, and the number of postings, which are pairs of a position and a
/// game that reached it.
#[derive(Default, Debug)]
pub(crate) struct EntryBatch {
    pub entries: Entries,
    /// Statistics that must not be written yet, because their keys may be greater than keys in later batches. They are
    /// sorted by the number of digits of their position keys, ascending.
    pub waiting: Vec<WaitingStats>,
    /// The number of positions in the batch.
    pub positions: u64,
    /// The number of postings. A position has one posting for each game that reached it.
    pub postings: u64,
    /// The number of units of progress that the batch represents.
    pub steps: u64,
}

/// The statistics of a position that cannot be written to an index yet, because the entries of an index are sorted by
/// key. For example, the statistics of the position key `12` have keys such as `12_draws`. These keys sort after all
/// position keys that begin with `12`, such as `129`, so the entries of those positions must be written first.
#[derive(Clone, Default, Debug)]
pub(crate) struct WaitingStats {
    pub key: u64,
    pub stats: PositionStats,
}

/// Removes the last element from `waiting` and writes its statistics to `out`, if they need not wait any longer. This
/// is the case if their LevelDB keys sort before `next`, the key of the next entry to be written.
///
/// Returns `true` if statistics were written. The caller must then call the function again, because the next element of
/// `waiting` may also be due.
pub(crate) fn write_due(waiting: &mut Vec<WaitingStats>, next: &[u8], out: &mut Entries) -> bool {
    let Some(last) = waiting.last() else {
        return false;
    };
    let mut number = itoa::Buffer::new();
    let number = number.format(last.key).as_bytes();
    let is_due = layout::ends_before(number, next);
    if is_due {
        last.stats.write(number, out);
        waiting.pop();
    }
    is_due
}

/// Calls `make` with each job, and returns an iterator over the resulting batches. Each item is a group of batches in
/// the order of the jobs, which run in parallel.
///
/// `size_of` returns the size of a job, in any unit. A group contains as many jobs as are needed for a total size of at
/// least `size`, in the same unit.
pub(crate) fn batches_of<J: Sync + Send>(
    jobs: impl IntoIterator<Item = J, IntoIter: Send>,
    size: usize,
    size_of: impl Fn(&J) -> usize + Send,
    make: impl Fn(&J) -> Result<EntryBatch> + Send + Sync,
) -> impl Iterator<Item = Result<Vec<EntryBatch>>> + Send {
    let mut jobs = jobs.into_iter();
    iter::from_fn(move || {
        let (mut some, mut sum) = (Vec::new(), 0);
        while sum < size
            && let Some(job) = jobs.next()
        {
            sum += size_of(&job);
            some.push(job);
        }
        (!some.is_empty()).then(|| some.par_iter().map(&make).collect())
    })
}

/// Returns an iterator over batches of entries that `fill` creates. Each item is a group with a single batch, which one
/// call of `fill` has filled. The iterator ends when `fill` adds no entry.
pub(crate) fn filled_batches(
    mut fill: impl FnMut(&mut Entries) -> Result<()> + Send,
) -> impl Iterator<Item = Result<Vec<EntryBatch>>> + Send {
    iter::from_fn(move || {
        let mut entries = Entries::default();
        if let Err(err) = fill(&mut entries) {
            return Some(Err(err));
        }
        (entries.len() > 0).then(|| Ok(single_batch(entries)))
    })
}

/// Creates a group that consists of a single batch without positions. `entries` may contain game records, for example.
/// In the displayed progress, each entry counts as one step.
fn single_batch(entries: Entries) -> Vec<EntryBatch> {
    vec![EntryBatch {
        steps: entries.len() as u64,
        entries,
        ..EntryBatch::default()
    }]
}

/// The description of an input file, which an index stores for each file from which it was made.
#[derive(Clone, Debug)]
pub(crate) struct IndexedFile {
    /// The absolute path.
    pub path: PathBuf,
    /// The id of the input's first game.
    pub first_id: u64,
    /// The variant of games without a `Variant` tag.
    pub untagged: Variant,
    /// The command-line options that selected the games of the input, or an empty string if all options have their
    /// default values.
    pub options: String,
}

/// Creates the entries that describe an index as a whole: its input files, its number of games, and the variant of the
/// games. The entries are sorted by key.
pub(crate) fn file_entries(
    files: &[IndexedFile],
    games: u64,
    variant: VariantChoice,
) -> Vec<EntryBatch> {
    let bytes = |path: &Path| path.as_os_str().as_encoded_bytes().to_vec();
    let mut entries = vec![(layout::TOTAL_GAMES.to_vec(), games.to_string().into_bytes())];
    if let Some(first) = files.first() {
        entries.push((layout::FILE_NAME.to_vec(), bytes(&first.path)));
    }
    if files.len() > 1 {
        let count = files.len().to_string().into_bytes();
        entries.push((layout::FILE_COUNT.to_vec(), count));
        for (i, file) in files.iter().enumerate() {
            let value = layout::file_value(file.first_id, &bytes(&file.path));
            entries.push((layout::file_key(i), value));
        }
    }
    for (i, file) in files.iter().enumerate() {
        if file.untagged != Variant::Standard {
            let name = file.untagged.to_string().into_bytes();
            entries.push((layout::untagged_key(i), name));
        }
        if !file.options.is_empty() {
            entries.push((layout::options_key(i), file.options.clone().into_bytes()));
        }
    }
    if !variant.is_standard() {
        let name = variant.to_string().into_bytes();
        entries.push((layout::VARIANT.to_vec(), name));
    }
    entries.sort();
    let mut sorted = Entries::default();
    for (key, value) in entries {
        sorted.push(&key, &value);
    }
    single_batch(sorted)
}

/// The number of records that are read from a shard at a time, which limits the memory for them. A shard is one of the
/// parts into which sorted records are divided by key.
const RECORDS_PER_READ: usize = 1 << 12;

/// A range of sorted records within one shard, which one job converts to index entries. A shard is one of the parts
/// into which sorted records are divided by key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ShardRange {
    pub shard: usize,
    pub indices: Range<usize>,
}

impl ShardRange {
    /// Returns the number of records in this range.
    pub(crate) fn len(&self) -> usize {
        self.indices.len()
    }
}

/// Divides all records in `records` into ranges, and returns an iterator over the ranges in the order of the records.
/// Each range contains at most `size` records, all from one shard. A shard is one of the parts into which sorted
/// records are divided by key.
pub(crate) fn shard_ranges<R: Record>(
    records: &Sorted<R>,
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

/// Returns the number of records in the shard with the number `shard`. Sorted records are divided by key into parts,
/// called shards.
fn len_of<R: Record>(records: &Sorted<R>, shard: usize) -> usize {
    usize::try_from(records.shard_len(shard)).expect("a shard has fewer records")
}

/// Calls `f` with the records of all groups that begin in `range`. A group consists of consecutive records for which
/// `group_of` returns equal values. Records at the start of `range` that belong to an earlier group are skipped, and
/// the last group is completed even if it continues after `range`.
///
/// # Errors
///
/// Returns an error if `f` fails or if a temporary file cannot be read.
pub(crate) fn scan_groups<R: Record, G: PartialEq>(
    records: &Sorted<R>,
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

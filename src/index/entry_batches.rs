//! Batches of entries. An index is written one group of batches of a few megabytes at a time.

use std::{
    iter,
    path::{Path, PathBuf},
};

use rayon::prelude::*;

use super::{
    entries::Entries,
    layout::{self, PositionStats},
    store::{self, Contents},
};
use crate::{
    error::Result,
    position::{Variant, VariantChoice},
};

/// The entries that one job has created for an index, in ascending order of keys, with the numbers of positions and
/// postings (records that a game reached a position) in them.
#[derive(Default, Debug)]
pub(super) struct EntryBatch {
    pub entries: Entries,
    /// Statistics whose keys may be greater than keys in following batches, so that they must not be written yet. The
    /// one whose number has the most digits is last.
    pub waiting: Vec<WaitingStats>,
    /// The number of positions in the batch.
    pub positions: u64,
    /// The number of postings: the sum, over these positions, of the number of games that reached each.
    pub postings: u64,
    /// The number of units of progress that the batch represents.
    pub steps: u64,
}

/// The statistics of a position that are waiting to be written. Their keys are greater than the key of the position, so
/// the entries whose keys lie between are written first.
#[derive(Clone, Default, Debug)]
pub(super) struct WaitingStats {
    pub key: u64,
    pub stats: PositionStats,
}

/// Writes the last element of `waiting` to `out` and removes it from `waiting`, if the keys of these statistics are
/// less than `next`. `next` is the key of the entry that is about to be written. Returns `true` if statistics were
/// written.
pub(super) fn write_due(waiting: &mut Vec<WaitingStats>, next: &[u8], out: &mut Entries) -> bool {
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

/// Divides `jobs` into groups of consecutive jobs, and runs `make` for the jobs of a group on all threads. Returns an
/// iterator over the batches of each group.
///
/// `size_of` returns the size of a job. A group is complete when the sizes of its jobs add up to at least `size`.
pub(super) fn batches_of<J: Sync + Send>(
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

/// Returns an iterator over groups of batches that are written together. Each group contains the entries that one call
/// of `fill` adds. The iterator ends when `fill` adds no entry.
pub(super) fn filled_batches(
    mut fill: impl FnMut(&mut Entries) -> Result<()> + Send,
) -> impl Iterator<Item = Result<Vec<EntryBatch>>> + Send {
    iter::from_fn(move || {
        let mut entries = Entries::default();
        if let Err(err) = fill(&mut entries) {
            return Some(Err(err));
        }
        (entries.len() > 0).then(|| Ok(other_entries(entries)))
    })
}

/// Creates a group of one batch from entries that belong to no position. Each entry
/// counts as one unit of progress.
fn other_entries(entries: Entries) -> Vec<EntryBatch> {
    vec![EntryBatch {
        steps: entries.len() as u64,
        entries,
        ..EntryBatch::default()
    }]
}

/// Returns the key and the value of the last entry of an explorer's index, which describes the index. `contents` is the
/// description, and `positions` the number of positions in the index.
pub(super) fn last_entry(contents: Contents, positions: u64) -> (&'static [u8], Vec<u8>) {
    let contents = Contents {
        positions,
        ..contents
    };
    (store::CONTENTS, contents.write())
}

/// The description of one input file in an index that was made from it.
#[derive(Clone, Debug)]
pub(crate) struct IndexedFile {
    /// The absolute path.
    pub path: PathBuf,
    /// The id of the input's first game.
    pub first_id: u64,
    /// The variant of games without a `Variant` tag.
    pub untagged: Variant,
    /// The options by which games of the input were selected, as on the command line; empty if all are defaults.
    pub options: String,
}

/// Returns the entries about the index as a whole, sorted by key: its input files, the number of its games, and their
/// variant.
pub(super) fn file_entries(
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
    other_entries(sorted)
}

//! The entries of an index in waves of some megabytes each, and the pieces of records that they are made of in parallel.

use std::{
    iter,
    ops::Range,
    path::{Path, PathBuf},
};

use rayon::prelude::*;

use super::{entries::Entries, layout, positions::Made};
use crate::{
    error::Result,
    position::VariantChoice,
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

/// The next entries, in order.
pub(super) type Wave = Vec<Made>;

/// Waves of entries that are made of jobs on all threads, each wave of jobs whose sizes are `size` together.
pub(super) fn made_of<J: Sync + Send>(
    jobs: impl IntoIterator<Item = J, IntoIter: Send>,
    size: usize,
    size_of: impl Fn(&J) -> usize + Send,
    make: impl Fn(&J) -> Result<Made> + Send + Sync,
) -> impl Iterator<Item = Result<Wave>> + Send {
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

/// Waves of entries that `fill` appends to those it is given, until it appends none.
pub(super) fn filled(
    mut fill: impl FnMut(&mut Entries) -> Result<()> + Send,
) -> impl Iterator<Item = Result<Wave>> + Send {
    iter::from_fn(move || {
        let mut entries = Entries::default();
        if let Err(err) = fill(&mut entries) {
            return Some(Err(err));
        }
        (entries.len() > 0).then(|| Ok(others(entries)))
    })
}

/// A wave of entries that are not of positions, each a step.
fn others(entries: Entries) -> Wave {
    vec![Made {
        steps: entries.len() as u64,
        entries,
        ..Made::default()
    }]
}

/// The totals of the lists of an index for the explorer.
#[derive(Copy, Clone)]
pub(super) struct ListTotals {
    pub items: u64,
    pub names: u32,
}

/// An input as the index names it.
#[derive(Clone, Debug)]
pub(crate) struct IndexedFile {
    /// The absolute path.
    pub path: PathBuf,
    /// The id of its first game.
    pub first_id: u64,
}

/// The entries about the inputs, in order.
pub(super) fn file_wave(files: &[IndexedFile], games: u64, variant: VariantChoice) -> Wave {
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
    if !variant.is_standard() {
        let name = variant.to_string().into_bytes();
        entries.push((layout::VARIANT.to_vec(), name));
    }
    entries.sort();
    let mut sorted = Entries::default();
    for (key, value) in entries {
        sorted.push(&key, &value);
    }
    others(sorted)
}

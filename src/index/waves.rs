//! The entries of an index in waves, some megabytes each.

use std::{
    iter,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    entries::{Entries, Parts},
    layout,
    positions::PositionEntries,
};
use crate::{error::Result, position::VariantChoice};

/// The next entries.
pub(super) enum Wave {
    Positions(Vec<PositionEntries>),
    Others {
        parts: Parts,
        positions: u64,
        postings: u64,
        /// How much of the work they are.
        steps: u64,
    },
}

impl Wave {
    /// Entries that are not of positions.
    pub(super) fn others(made: impl IntoIterator<Item = Entries>, steps: u64) -> Wave {
        let made = made.into_iter();
        Wave::Others {
            parts: made
                .map(|entries| {
                    let all = 0..entries.len();
                    (Arc::new(entries), all)
                })
                .collect(),
            positions: 0,
            postings: 0,
            steps,
        }
    }
}

/// Waves of entries that `fill` appends to those it is given, until it appends none.
pub(super) fn filled(
    room: impl Fn() -> Entries + Send,
    mut fill: impl FnMut(&mut Entries) -> Result<()> + Send,
) -> impl Iterator<Item = Result<Wave>> + Send {
    iter::from_fn(move || {
        let mut entries = room();
        if let Err(err) = fill(&mut entries) {
            return Some(Err(err));
        }
        let len = entries.len() as u64;
        (len > 0).then(|| Ok(Wave::others([entries], len)))
    })
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
pub(super) fn file_entries(files: &[IndexedFile], games: u64, variant: VariantChoice) -> Entries {
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
    sorted
}

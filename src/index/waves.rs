//! The entries of an index in waves: what makes them, and those that stand behind the records of games.

use std::path::{Path, PathBuf};

use super::{
    entries::{Entries, Parts},
    explored::ListEntries,
    layout::{self, Contents, played::Paging},
    positions::PositionEntries,
};
use crate::{error::Result, position::VariantChoice};

/// Makes the entries of an index, in order.
pub(super) trait Waves: Send {
    /// The next entries.
    fn next_wave(&mut self) -> Result<Wave>;

    /// What comes behind all others, when it is known how many positions there are.
    fn last(&self, positions: u64) -> Option<Entries>;
}

/// The next entries.
pub(super) enum Wave {
    Positions(Vec<PositionEntries>),
    Entries(Entries),
    Lists(Vec<ListEntries>),
    /// Entries of several indexes, in parts.
    Joined {
        parts: Parts,
        positions: u64,
        postings: u64,
        /// How much of the work they are.
        steps: u64,
    },
    End,
}

/// Makes the entries for the explorer, in order.
pub(super) trait ExploredWaves: Send {
    /// The next entries.
    fn next_wave(&mut self) -> Result<Wave>;

    /// How many items all lists have.
    fn items(&self) -> u64;

    /// How many names there are.
    fn names(&self) -> u32;
}

/// The entries behind the records of games: what tells of the inputs, and what the explorer needs.
pub(super) struct LastWaves<E> {
    pub files: Option<Entries>,
    pub explored: Option<E>,
}

impl<E: ExploredWaves> Waves for LastWaves<E> {
    fn next_wave(&mut self) -> Result<Wave> {
        if let Some(files) = self.files.take() {
            return Ok(Wave::Entries(files));
        }
        match &mut self.explored {
            Some(explored) => explored.next_wave(),
            None => Ok(Wave::End),
        }
    }

    fn last(&self, positions: u64) -> Option<Entries> {
        let explored = self.explored.as_ref()?;
        let contents = Contents {
            paging: Paging::for_items(explored.items()),
            positions,
            items: explored.items(),
            names: explored.names(),
        };
        let mut entries = Entries::default();
        entries.push(layout::CONTENTS, &contents.write());
        Some(entries)
    }
}

/// An input as the index names it.
#[derive(Clone, Debug)]
pub(crate) struct IndexedFile {
    /// The absolute path.
    pub path: PathBuf,
    /// The id of its first game.
    pub first_id: u64,
}

/// The entries that tell of the inputs, in order.
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

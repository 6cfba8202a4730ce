//! Encodes the table of player and event names in an explorer index, and reads it with a cache.
//!
//! Rows of games refer to names by numbers, which are assigned in the order in which names first occur. A name may be
//! repeated under a later number. An entry contains [`NAMES_PER_ENTRY`] names; the last entry may contain fewer. Each
//! name is stored as the varint of its length in bytes and its UTF-8 text.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use crate::{
    error::Result,
    formats::leveldb::{put_varint, take_size},
    task,
};

/// The number of player and event names that are stored in one entry of the index.
pub const NAMES_PER_ENTRY: u32 = 64;

/// The maximum length in bytes of a stored player or event name. Longer names are truncated.
pub const LONGEST_NAME: usize = 1024;

/// Appends a name to the value of an index entry: the length of the name as a varint, then its text.
pub fn write_name(out: &mut Vec<u8>, name: &str) {
    put_varint(out, name.len() as u64);
    out.extend_from_slice(name.as_bytes());
}

/// Parses the value of a LevelDB entry that contains player and event names. Returns the names, or `None` if the value
/// is malformed.
pub fn parse_names(value: &[u8]) -> Option<Vec<Box<str>>> {
    let mut names = Vec::new();
    let mut rest = value;
    while !rest.is_empty() {
        let len = take_size(&mut rest)?;
        let name = rest.split_off(..len)?;
        names.push(str::from_utf8(name).ok()?.into());
    }
    Some(names)
}

/// The number of entries that the cache of a [`NameReader`] can contain. Each entry contains several names. When the
/// cache is full, it is emptied.
const MAX_CACHED_ENTRIES: usize = 4096;

/// A reader of the player and event names of an index. The reader caches entries with names that were used recently. If
/// another thread is using the cache, the reader does not wait, but reads from the index.
#[derive(Debug)]
pub(crate) struct NameReader {
    /// The number of names in the index.
    names: u32,
    entries: Mutex<HashMap<u32, Arc<[Box<str>]>>>,
}

impl NameReader {
    /// Creates a reader for an index that contains `names` names.
    pub(crate) fn new(names: u32) -> NameReader {
        NameReader {
            names,
            entries: Mutex::default(),
        }
    }

    /// Returns the player or event name with the number `number`, or `None` if no name has this number. If the entry
    /// with this name is not cached, calls `read` to read it from the index. `read` receives the number of the entry
    /// and the total number of names in the index.
    ///
    /// # Errors
    ///
    /// Returns the error of `read`.
    pub(crate) fn name(
        &self,
        number: u32,
        read: impl FnOnce(u32, u32) -> Result<Vec<Box<str>>>,
    ) -> Result<Option<Box<str>>> {
        let (entry, rank) = (
            number / NAMES_PER_ENTRY,
            (number % NAMES_PER_ENTRY) as usize,
        );
        let cached = task::try_lock(&self.entries);
        let cached = cached.and_then(|entries| entries.get(&entry).cloned());
        let names = match cached {
            Some(names) => names,
            None => {
                let names: Arc<[Box<str>]> = read(entry, self.names)?.into();
                if let Some(mut entries) = task::try_lock(&self.entries) {
                    if entries.len() >= MAX_CACHED_ENTRIES {
                        entries.clear();
                    }
                    entries.insert(entry, Arc::clone(&names));
                }
                names
            }
        };
        Ok(names.get(rank).cloned())
    }

    /// Calls `f` with the number and the text of each name in the index, in ascending order of numbers. Calls `read` to
    /// read one entry at a time. `read` receives the number of the entry and the total number of names in the index.
    pub(crate) fn for_each(
        &self,
        read: impl Fn(u32, u32) -> Result<Vec<Box<str>>>,
        mut f: impl FnMut(u32, &str),
    ) -> Result<()> {
        for entry in 0..self.names.div_ceil(NAMES_PER_ENTRY) {
            let names = read(entry, self.names)?;
            for (number, name) in (entry * NAMES_PER_ENTRY..).zip(&names) {
                f(number, name);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn names_come_back(names in proptest::collection::vec(".{0,200}", 0..9)) {
            let mut value = Vec::new();
            names.iter().for_each(|name| write_name(&mut value, name));
            let found = parse_names(&value).unwrap();
            prop_assert!(found.iter().map(|name| &**name).eq(names.iter().map(String::as_str)));
        }

        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>) {
            let _ = parse_names(&bytes);
        }
    }
}

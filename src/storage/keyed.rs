//! Records of a fixed size, sorted by key, in a file or in memory, and the search for a key.
//!
//! A record begins with its key, a big-endian `u64`. Keys of positions are hashes, so they are distributed evenly, and
//! interpolation finds the offset of a key in a few reads. If keys are not distributed evenly, the search falls back to
//! binary search after [`GUESSES`] rounds.

use std::{borrow::Cow, io};

use crate::storage::positioned::StoredFile;

/// The number of records that a search reads at once. For a book, whose records have 16 bytes, this is 4 KiB, the page
/// size of most disks and of the page cache.
const BLOCK: u64 = 256;

/// The number of rounds in which a search guesses the offset of a key by interpolation. After these rounds, the search
/// bisects the remaining range.
const GUESSES: usize = 6;

/// An array of records of `SIZE` bytes each, sorted by key, in memory or in a file. `File` also contains the number of
/// records, because other data may follow them in the file.
#[derive(Debug)]
pub(crate) enum Storage<const SIZE: usize> {
    Memory(Vec<u8>),
    File(StoredFile, u64),
}

impl<const SIZE: usize> Storage<SIZE> {
    /// Returns the number of records.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Storage::Memory(bytes) => (bytes.len() / SIZE) as u64,
            Storage::File(_, len) => *len,
        }
    }

    /// Returns the storage with its records moved into memory if they take at most `memory` bytes, and otherwise
    /// unchanged.
    pub(crate) fn within(self, memory: u64) -> io::Result<Storage<SIZE>> {
        let len = self.len();
        if len > memory / SIZE as u64 {
            return Ok(self);
        }
        let bytes = self.bytes(0, len)?.into_owned();
        Ok(Storage::Memory(bytes))
    }

    /// Returns the bytes of `count` consecutive records, starting at the record with index `start`.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read or ends before the last of the records.
    ///
    /// # Panics
    ///
    /// Panics if the records are in memory and there are fewer than `start + count`.
    pub(crate) fn bytes(&self, start: u64, count: u64) -> io::Result<Cow<'_, [u8]>> {
        match self {
            Storage::Memory(bytes) => {
                let [start, end] = [start, start + count].map(|record| record as usize);
                Ok(Cow::Borrowed(&bytes[start * SIZE..end * SIZE]))
            }
            Storage::File(file, _) => {
                let mut bytes = vec![0; count as usize * SIZE];
                file.read_exact_at(&mut bytes, start * SIZE as u64)?;
                Ok(Cow::Owned(bytes))
            }
        }
    }

    /// Returns the index of the first record whose key is `key`, or `None` if no record has this key.
    pub(crate) fn find(&self, key: u64) -> io::Result<Option<u64>> {
        let (number, is_found) = self.lower_bound(key)?;
        Ok(is_found.then_some(number))
    }

    /// Returns the index of the first record whose key is greater than or equal to `key`, and `true` if its key equals
    /// `key`. If all keys are less than `key`, the index is the number of records.
    pub(crate) fn lower_bound(&self, key: u64) -> io::Result<(u64, bool)> {
        let len = self.len();
        if len == 0 {
            return Ok((0, false));
        }
        // Records before `low` have keys below `key`, records from `high` on do not.
        let (mut low, mut high) = (0, len);
        let (mut low_key, mut high_key) = (0, u64::MAX);
        for round in 0.. {
            let width = (high - low).min(BLOCK);
            let guess = if round < GUESSES && low_key <= key && key <= high_key {
                low + share(key, low_key, high_key, high - low)
            } else {
                low + (high - low) / 2
            };
            let start = guess.saturating_sub(width / 2).clamp(low, high - width);
            let bytes = self.bytes(start, width)?;
            let block = bytes.as_chunks::<SIZE>().0;
            // Most blocks but the last have the key before or after them, which their ends show.
            let below = match block {
                [first, ..] if key_of(first) >= key => 0,
                [.., last] if key_of(last) < key => block.len(),
                _ => block.partition_point(|record| key_of(record) < key),
            };
            if below == 0 && start > low {
                (high, high_key) = (start, key_of(&block[0]));
            } else if below == block.len() && start + width < high {
                (low, low_key) = (start + width, key_of(&block[below - 1]));
            } else {
                let found = match block.get(below) {
                    Some(record) => Some(key_of(record)),
                    None => (high < len).then_some(high_key),
                };
                return Ok((start + below as u64, found == Some(key)));
            }
        }
        unreachable!("each round narrows the range")
    }
}

/// Returns an estimate of how many of `len` records have keys below `key`. Assumes that their keys are distributed
/// evenly between `low_key` and `high_key`. `key` must be within these bounds.
#[inline]
fn share(key: u64, low_key: u64, high_key: u64, len: u64) -> u64 {
    let share = u128::from(key - low_key) * u128::from(len) / (u128::from(high_key - low_key) + 1);
    share as u64
}

/// Returns the key of a record: its first 8 bytes as a big-endian integer.
///
/// # Panics
///
/// Panics if the record has fewer than 8 bytes.
#[inline]
pub(crate) fn key_of(record: &[u8]) -> u64 {
    u64::from_be_bytes(*record.first_chunk().expect("a record has a key"))
}

//! Arrays of fixed-size records that are sorted by key, in a file or in memory, and can be searched by key.
//!
//! Each record begins with its key, a big-endian `u64`. Position keys are hashes and therefore evenly distributed, so
//! interpolation search finds a key in a few reads. After [`MAX_INTERPOLATIONS`] rounds, the search falls back to
//! binary search, in case the keys are not evenly distributed.

use std::{borrow::Cow, io};

use crate::storage::positioned::StoredFile;

/// The number of consecutive records that a search reads from the file at once. With the 16-byte records of a book,
/// this takes 4 KiB, the page size of most disks and of the page cache.
const RECORDS_PER_READ: u64 = 256;

/// The maximum number of interpolation steps of a search. After these steps, the search continues with bisection.
const MAX_INTERPOLATIONS: usize = 6;

/// An array of fixed-size records, sorted by key. Each record has `SIZE` bytes. The variant `Memory` contains the bytes
/// of all records. The variant `File` contains a file and the number of records at its beginning; other data may follow
/// them.
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

    /// Loads the records into memory if they take at most `memory` bytes. Otherwise, returns the storage unchanged.
    pub(crate) fn load_if_fits(self, memory: u64) -> io::Result<Storage<SIZE>> {
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
    /// Panics if the records are in memory and there are fewer than `start + count` records.
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

    /// Returns the index of the first record whose key is at least `key`, and `true` if its key equals `key`. If all
    /// keys are less than `key`, the index is the number of records.
    pub(crate) fn lower_bound(&self, key: u64) -> io::Result<(u64, bool)> {
        let len = self.len();
        if len == 0 {
            return Ok((0, false));
        }
        // Invariant: the keys of records before `low` are less than `key`; those of records from `high` on are not.
        let (mut low, mut high) = (0, len);
        let (mut low_key, mut high_key) = (0, u64::MAX);
        for round in 0.. {
            let width = (high - low).min(RECORDS_PER_READ);
            let guess = if round < MAX_INTERPOLATIONS && low_key <= key && key <= high_key {
                low + estimate_rank(key, low_key, high_key, high - low)
            } else {
                low + (high - low) / 2
            };
            let start = guess.saturating_sub(width / 2).clamp(low, high - width);
            let bytes = self.bytes(start, width)?;
            let block = bytes.as_chunks::<SIZE>().0;
            // Usually all keys of a block are on one side of `key`, so comparing its first and last key suffices.
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

/// Estimates how many of `len` records have keys less than `key`, by linear interpolation between `low_key` and
/// `high_key`. These are the smallest and the largest key that the records can have. `key` must not be outside of this
/// range.
#[inline]
fn estimate_rank(key: u64, low_key: u64, high_key: u64, len: u64) -> u64 {
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

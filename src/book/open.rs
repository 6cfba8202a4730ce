//! Opening a book and looking up positions.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{
    entry::Entry,
    header::{self, Header},
};
use crate::{
    error::{At, Error, Result},
    position::{Rules, key},
};

/// A book, held in memory.
///
/// ```
/// use polybook::{book::{Book, Entry}, position::{BookMove, key}};
///
/// let start = shakmaty::Chess::default();
/// let e4 = Entry { key: key(&start), mv: BookMove(0o1434), weight: 7, learn: 0 };
/// let book = Book::from_bytes(e4.to_bytes().to_vec()).unwrap();
/// assert_eq!(book.moves_of(&start).collect::<Vec<_>>(), [e4]);
/// assert_eq!(book.moves(42).len(), 0);
/// ```
#[derive(Clone, Debug)]
pub struct Book {
    path: PathBuf,
    bytes: Vec<u8>,
}

/// The records of one position, in the order of the book.
#[derive(Clone, Debug)]
pub struct Moves<'a> {
    records: std::slice::ChunksExact<'a, u8>,
}

impl Book {
    /// Reads a book into memory.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, or whose size is not a multiple of 16.
    pub fn open(path: impl AsRef<Path>) -> Result<Book> {
        let path = path.as_ref();
        let bytes = fs::read(path).at(path, "read")?;
        let mut book = Book::from_bytes(bytes).ok_or_else(|| {
            Error::file(
                path,
                "is no Polyglot book, or was cut short: its size is not a multiple of 16",
            )
        })?;
        book.path = path.to_owned();
        Ok(book)
    }

    /// A book of bytes; `None` if their number is not a multiple of 16.
    pub fn from_bytes(bytes: Vec<u8>) -> Option<Book> {
        bytes.len().is_multiple_of(Entry::SIZE).then(|| Book {
            path: PathBuf::from("book"),
            bytes,
        })
    }

    /// How many records there are, those of the header among them.
    pub fn len(&self) -> usize {
        self.bytes.len() / Entry::SIZE
    }

    /// Whether there is no record at all.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// A record by its number.
    #[inline]
    pub fn get(&self, index: usize) -> Option<Entry> {
        let bytes = self.bytes.get(index * Entry::SIZE..)?;
        Some(Entry::from_bytes(*bytes.first_chunk()?))
    }

    /// All records, those of the header among them.
    pub fn iter(&self) -> Moves<'_> {
        Moves {
            records: self.bytes.chunks_exact(Entry::SIZE),
        }
    }

    /// The header.
    ///
    /// # Errors
    ///
    /// [`Error::Format`] if there is none or it is malformed.
    pub fn header(&self) -> Result<Header> {
        let text = header::extract(&self.bytes).and_then(|(text, _)| header::parse(&text));
        text.map_err(|source| Error::format(&self.path, source))
    }

    /// The records of a position.
    pub fn moves_of<P: Rules>(&self, pos: &P) -> Moves<'_> {
        self.moves(key(pos))
    }

    /// The records of a position by its key. The null key has none: its records are the header.
    pub fn moves(&self, key: u64) -> Moves<'_> {
        let start = if key == 0 {
            self.len()
        } else {
            self.lower_bound(key)
        };
        let rest = &self.bytes[start * Entry::SIZE..];
        let len = rest
            .chunks_exact(Entry::SIZE)
            .take_while(|record| key_of(record) == key)
            .count();
        Moves {
            records: rest[..len * Entry::SIZE].chunks_exact(Entry::SIZE),
        }
    }

    /// The first record whose key is not smaller.
    ///
    /// Keys are spread evenly, so where one stands can be guessed. A few guesses leave little to
    /// halve; in a book whose keys are not spread, halving does it all.
    fn lower_bound(&self, key: u64) -> usize {
        let (mut low, mut high) = (0, self.len());
        // All records before `low` have keys below `key`, all from `high` on have not. So have the
        // keys that are known for the two ends.
        let (mut low_key, mut high_key) = (0, u64::MAX);
        for _ in 0..4 {
            if high - low < 16 || key < low_key || high_key <= low_key {
                break;
            }
            let share = u128::from(key - low_key) * (high - low) as u128
                / (u128::from(high_key - low_key) + 1);
            // A step past the guess on the side where more is left, so that both ends move.
            let guess = (low + share as usize).min(high - 1);
            for probe in [guess.saturating_sub(8).max(low), (guess + 8).min(high - 1)] {
                if probe < low || probe >= high {
                    continue;
                }
                let found = self.key_at(probe);
                if found < key {
                    (low, low_key) = (probe + 1, found);
                } else {
                    (high, high_key) = (probe, found);
                }
            }
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if self.key_at(middle) < key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    #[inline]
    fn key_at(&self, index: usize) -> u64 {
        key_of(&self.bytes[index * Entry::SIZE..])
    }
}

#[inline]
fn key_of(record: &[u8]) -> u64 {
    record.first_chunk().copied().map_or(0, u64::from_be_bytes)
}

impl Iterator for Moves<'_> {
    type Item = Entry;

    #[inline]
    fn next(&mut self) -> Option<Entry> {
        Some(Entry::from_bytes(*self.records.next()?.first_chunk()?))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.records.size_hint()
    }
}

impl ExactSizeIterator for Moves<'_> {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::position::BookMove;

    fn book(keys: &[u64]) -> Book {
        let bytes = keys
            .iter()
            .enumerate()
            .flat_map(|(i, key)| {
                let entry = Entry {
                    key: *key,
                    mv: BookMove(i as u16),
                    weight: 1,
                    learn: 0,
                };
                entry.to_bytes()
            })
            .collect();
        Book::from_bytes(bytes).unwrap()
    }

    proptest! {
        #[test]
        fn every_key_is_found_however_keys_are_spread(
            mut keys in proptest::collection::vec(prop_oneof![1..50u64, any::<u64>(), u64::MAX - 50..=u64::MAX], 0..300),
            others in proptest::collection::vec(any::<u64>(), 5),
        ) {
            keys.sort_unstable();
            let book = book(&keys);
            for key in keys.iter().chain(&others).copied().filter(|key| *key != 0) {
                let expected: Vec<u16> = (0..keys.len()).filter(|i| keys[*i] == key).map(|i| i as u16).collect();
                let found: Vec<u16> = book.moves(key).map(|entry| entry.mv.0).collect();
                prop_assert_eq!(found, expected);
            }
        }

        #[test]
        fn books_of_any_bytes_are_probed_without_panic(bytes: Vec<u8>, keys: [u64; 4]) {
            if let Some(book) = Book::from_bytes(bytes) {
                for key in keys.into_iter().chain([0, u64::MAX]) {
                    let _ = book.moves(key).count();
                }
                let _ = book.header();
            }
        }
    }
}

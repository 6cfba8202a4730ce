//! Defines the records of a book, and an iterator over all of them.

use std::{
    cmp::Reverse,
    io::{self, ErrorKind, Read, Write},
    iter,
    path::Path,
    vec,
};

use crate::{
    chess::position::{BookMove, Rules},
    error::{At, Result},
    storage::keyed,
};

/// A record of a Polyglot book: a move in a position, with its weight. A record takes 16 bytes in the file; all numbers
/// are big-endian. The records of a book are sorted by key.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Entry {
    /// The [key](crate::chess::position::key) of the position. Records with the key 0 hold the header.
    pub key: u64,
    /// The move.
    pub mv: BookMove,
    /// The weight of the move: the larger it is, the more often a program plays the move. A move of weight 0 is never
    /// played.
    pub weight: u16,
    /// A number in which a chess program can store what it has learned about the move. polybook writes 0.
    pub learn: u32,
}

impl Entry {
    /// The size of a record in bytes.
    pub const SIZE: usize = 16;

    /// Decodes a record from its 16 bytes.
    #[inline]
    pub fn from_bytes(bytes: [u8; Entry::SIZE]) -> Entry {
        let bits = u128::from_be_bytes(bytes);
        Entry {
            key: (bits >> 64) as u64,
            mv: BookMove((bits >> 48) as u16),
            weight: (bits >> 32) as u16,
            learn: bits as u32,
        }
    }

    /// Encodes the record as 16 bytes.
    ///
    /// ```
    /// use polybook::{book::Entry, position::BookMove};
    /// let entry = Entry { key: 0x0102, mv: BookMove(0x0304), weight: 5, learn: 6 };
    /// let bytes = entry.to_bytes();
    /// assert_eq!(bytes, [0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 0, 5, 0, 0, 0, 6]);
    /// assert_eq!(Entry::from_bytes(bytes), entry);
    /// ```
    #[inline]
    pub fn to_bytes(self) -> [u8; Entry::SIZE] {
        let bits = u128::from(self.key) << 64
            | u128::from(self.mv.0) << 48
            | u128::from(self.weight) << 32
            | u128::from(self.learn);
        bits.to_be_bytes()
    }
}

/// Decodes consecutive records of 16 bytes. Ignores bytes after the last whole record.
#[inline]
pub(super) fn entries_of(bytes: &[u8]) -> Vec<Entry> {
    let records = bytes.as_chunks().0.iter();
    records.map(|bytes| Entry::from_bytes(*bytes)).collect()
}

/// Writes records to `out`, one after the other.
pub(super) fn write_entries(entries: &[Entry], out: &mut (impl Write + ?Sized)) -> io::Result<()> {
    entries
        .iter()
        .try_for_each(|entry| out.write_all(&entry.to_bytes()))
}

/// Merges the records of each move in `records`, the records of the position `pos`. Returns one record for each move,
/// sorted by descending weight. The weights of merged records are added up, to at most 65535. The field `learn` comes
/// from the first record. Castling is respelled as king takes rook, as the format requires.
pub(crate) fn each_move_once<P: Rules>(
    pos: &P,
    records: impl IntoIterator<Item = Entry>,
) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for mut entry in records {
        entry.mv = with_format_castling(pos, entry.mv);
        match entries.iter_mut().find(|other| other.mv == entry.mv) {
            Some(other) => other.weight = other.weight.saturating_add(entry.weight),
            None => entries.push(entry),
        }
    }
    entries.sort_by_key(|entry| Reverse(entry.weight));
    entries
}

/// Returns the move `mv` in the spelling of the book format, in which castling is king takes rook. An illegal move is
/// returned unchanged.
pub(crate) fn with_format_castling<P: Rules>(pos: &P, mv: BookMove) -> BookMove {
    mv.to_move(pos).map_or(mv, BookMove::from)
}

/// Packs a position key and a move into one number. Such numbers are ordered by key and then by move.
pub(super) fn key_and_move(key: u64, mv: BookMove) -> u128 {
    u128::from(key) << 64 | u128::from(mv.0)
}

/// The number of records that an iterator over a book reads at once: 4096 records, which are 64 KiB.
const STREAM_BUFFER: u64 = 1 << 12;

/// The storage of a book's records, in a file or in memory.
pub(super) type BookStorage = keyed::Storage<{ Entry::SIZE }>;

/// An iterator over all records of a book, in the order of the book.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    storage: &'a BookStorage,
    path: &'a Path,
    buffer: vec::IntoIter<Entry>,
    /// The first record after the buffer.
    next: u64,
}

impl<'a> Records<'a> {
    /// Creates an iterator over the records in `storage`. Error messages name `path`.
    pub(super) fn new(storage: &'a BookStorage, path: &'a Path) -> Records<'a> {
        Records {
            storage,
            path,
            buffer: Vec::new().into_iter(),
            next: 0,
        }
    }
}

impl Iterator for Records<'_> {
    type Item = Result<Entry>;

    #[inline]
    fn next(&mut self) -> Option<Result<Entry>> {
        if let Some(entry) = self.buffer.next() {
            return Some(Ok(entry));
        }
        let count = (self.storage.len() - self.next).min(STREAM_BUFFER);
        if count == 0 {
            return None;
        }
        match self.storage.bytes(self.next, count) {
            Ok(bytes) => {
                self.next += count;
                self.buffer = entries_of(&bytes).into_iter();
                self.buffer.next().map(Ok)
            }
            Err(err) => {
                // After an error, the iterator is at its end.
                self.next = self.storage.len();
                Some(Err(err).at(self.path, "read"))
            }
        }
    }
}

/// Returns an iterator that reads records from `file` until the end of the file. Bytes after the last whole record are
/// ignored.
pub(super) fn records_of(mut file: impl Read) -> impl Iterator<Item = io::Result<Entry>> {
    iter::from_fn(move || {
        let mut record = [0; Entry::SIZE];
        match file.read_exact(&mut record) {
            Ok(()) => Some(Ok(Entry::from_bytes(record))),
            Err(err) if err.kind() == ErrorKind::UnexpectedEof => None,
            Err(err) => Some(Err(err)),
        }
    })
}

/// Creates records of one position for tests: one record for each weight in `weights`. The code of its move is the
/// index of the weight.
#[cfg(test)]
pub(super) fn of_weights(weights: &[u16]) -> Vec<Entry> {
    let entry = |(mv, weight): (usize, &u16)| Entry {
        key: 1,
        mv: BookMove(mv as u16),
        weight: *weight,
        learn: 0,
    };
    weights.iter().enumerate().map(entry).collect()
}

/// Converts the weights of a position's moves to shares of their sum, in percent. The share of a move is the
/// probability that a program plays it. An illegal move has the weight `None`, and gets no share.
///
/// ```
/// use polybook::book::shares;
///
/// // The second move is not legal.
/// assert_eq!(shares(&[Some(30), None, Some(10)]), [Some(75.0), None, Some(25.0)]);
/// assert_eq!(shares(&[Some(0), None]), [Some(0.0), None]);
/// ```
pub fn shares(weights: &[Option<u64>]) -> Vec<Option<f64>> {
    let sum: u64 = weights.iter().flatten().sum();
    let share = |weight| weight as f64 * 100.0 / sum.max(1) as f64;
    weights.iter().map(|weight| weight.map(share)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn shares_are_of_the_legal_moves_and_add_up(
            weights in proptest::collection::vec(proptest::option::of(0..u64::from(u16::MAX)), 0..20),
        ) {
            let found = shares(&weights);
            let has_share: Vec<bool> = found.iter().map(Option::is_some).collect();
            let is_legal: Vec<bool> = weights.iter().map(Option::is_some).collect();
            prop_assert_eq!(has_share, is_legal);
            let sum: f64 = found.iter().flatten().sum();
            let expected = if weights.iter().flatten().any(|weight| *weight > 0) { 100.0 } else { 0.0 };
            prop_assert!((sum - expected).abs() < 1e-9, "{}", sum);
            for (weight, share) in weights.iter().zip(&found) {
                prop_assert!(*weight != Some(0) || *share == Some(0.0));
            }
        }
    }
}

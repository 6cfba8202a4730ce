//! One record of a book.

use std::io::{self, Write};

use crate::position::BookMove;

/// A record: a move of a position. Books hold them in the order of their keys, 16 bytes each, all
/// numbers with the highest byte first.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The [key](crate::position::key) of the position, not 0: null records hold the header.
    pub key: u64,
    /// The move.
    pub mv: BookMove,
    /// How good the move is, from 1 to 65535; 0 if it is never to be played.
    pub weight: u16,
    /// Left to programs that learn; polybook writes 0.
    pub learn: u32,
}

impl Entry {
    /// The size of a record in bytes.
    pub const SIZE: usize = 16;

    /// Reads a record.
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

    /// Writes a record.
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

/// Writes records one after another.
pub(super) fn write_entries(entries: &[Entry], out: &mut impl Write) -> io::Result<()> {
    entries
        .iter()
        .try_for_each(|entry| out.write_all(&entry.to_bytes()))
}

/// Records of one position with these weights and moves of the numbers from 0, for tests.
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

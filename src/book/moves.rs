//! The records of one position.

use std::cmp::Reverse;

use super::entry::Entry;
use crate::position::{BookMove, Rules};

/// The records of one position, in the order of the book.
#[derive(Clone, Debug)]
pub struct Moves<'a> {
    records: Held<'a>,
    next: usize,
}

impl<'a> Moves<'a> {
    #[inline]
    pub(super) fn new(records: Held<'a>) -> Moves<'a> {
        Moves { records, next: 0 }
    }
}

/// The records of a position with each move once, the heaviest first. Some programs write castling as the king's two
/// steps, so a book of several origins may have both spellings. They become one move in the format's spelling. Weights
/// of a move add up, to 65535 at most; `learn` is that of its first record.
pub(crate) fn each_move_once<P: Rules>(
    pos: &P,
    records: impl Iterator<Item = Entry>,
) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for mut entry in records {
        entry.mv = as_the_format_says(pos, entry.mv);
        match entries.iter_mut().find(|other| other.mv == entry.mv) {
            Some(other) => other.weight = other.weight.saturating_add(entry.weight),
            None => entries.push(entry),
        }
    }
    entries.sort_by_key(|entry| Reverse(entry.weight));
    entries
}

/// A move as the format spells it: castling as king takes rook. A move that is not legal stays as it is.
pub(crate) fn as_the_format_says<P: Rules>(pos: &P, mv: BookMove) -> BookMove {
    mv.to_move(pos).map_or(mv, BookMove::from)
}

/// Records of a book in memory, or read from a file.
#[derive(Clone, Debug)]
pub(super) enum Held<'a> {
    Borrowed(&'a [u8]),
    Owned(Vec<u8>),
}

impl Held<'_> {
    #[inline]
    fn bytes(&self) -> &[u8] {
        match self {
            Held::Borrowed(bytes) => bytes,
            Held::Owned(bytes) => bytes,
        }
    }
}

impl Iterator for Moves<'_> {
    type Item = Entry;

    #[inline]
    fn next(&mut self) -> Option<Entry> {
        let bytes = self.records.bytes()[self.next..].first_chunk()?;
        self.next += Entry::SIZE;
        Some(Entry::from_bytes(*bytes))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.records.bytes().len() - self.next) / Entry::SIZE;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Moves<'_> {}

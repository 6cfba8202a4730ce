//! The records of one position.

use super::entry::Entry;

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

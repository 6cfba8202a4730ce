//! The null records that hold the text of a header.

use std::io::{self, Read};

use super::error::HeaderError;
use crate::book::entry::Entry;

/// The longest header that is read here: 1 MiB.
pub const LONGEST: usize = 1 << 20;

/// The null records that hold a header, to be written before the records of a book.
///
/// ```
/// use polybook::book::header::create_raw;
/// let raw = create_raw("@PG@");
/// assert_eq!(raw, b"\0\0\0\0\0\0\0\0@PG@\0\0\0\0");
/// ```
pub fn create_raw(header: &str) -> Vec<u8> {
    let mut raw = Vec::with_capacity((header.len() / 8 + 1) * Entry::SIZE);
    let mut text = header.as_bytes().to_vec();
    text.push(0);
    for part in text.chunks(8) {
        raw.extend_from_slice(&[0; 8]);
        raw.extend_from_slice(part);
    }
    raw.resize(raw.len().next_multiple_of(Entry::SIZE), 0);
    raw
}

/// The null records at the start of a book.
pub(in crate::book) struct NullRecords {
    /// The text after their keys, at most [`LONGEST`] bytes of it.
    pub data: Vec<u8>,
    /// How many bytes the records take in the book.
    pub size: u64,
}

impl NullRecords {
    /// Reads the null records of a book, and at least the record after them.
    pub(in crate::book) fn read(mut book: impl Read) -> io::Result<NullRecords> {
        let mut null = NullRecords {
            data: Vec::new(),
            size: 0,
        };
        let mut record = Vec::with_capacity(Entry::SIZE);
        loop {
            record.clear();
            let mut next = book.by_ref().take(Entry::SIZE as u64);
            let filled = next.read_to_end(&mut record)?;
            if filled < Entry::SIZE || record[..8] != [0; 8] {
                return Ok(null);
            }
            if null.data.len() < LONGEST {
                null.data.extend_from_slice(&record[8..]);
            }
            null.size += Entry::SIZE as u64;
        }
    }

    /// Whether anything but null bytes follows the text.
    pub(in crate::book) fn has_more_than_text(&self) -> bool {
        let end = self.data.iter().position(|byte| *byte == 0);
        let rest = &self.data[end.unwrap_or(self.data.len())..];
        rest.iter().any(|byte| *byte != 0)
    }

    /// The text before the first null byte of the data.
    pub(in crate::book) fn text(&self) -> Result<&str, HeaderError> {
        if self.size == 0 {
            return Err(HeaderError::NoHeader);
        }
        let Some(end) = self.data.iter().position(|byte| *byte == 0) else {
            return Err(HeaderError::BadHeader(if self.data.len() >= LONGEST {
                "it is longer than 1 MiB"
            } else {
                "no null character ends it"
            }));
        };
        std::str::from_utf8(&self.data[..end])
            .map_err(|_| HeaderError::BadHeader("it is not UTF-8"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(text in "[^\0]{0,60}", records in 0..3usize) {
            let raw = create_raw(&text);
            let book = [&raw[..], &[7; Entry::SIZE].repeat(records)].concat();
            let null = NullRecords::read(&book[..]).unwrap();
            prop_assert_eq!(null.text(), Ok(&*text));
            prop_assert_eq!(null.size, raw.len() as u64);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let mut book = vec![0; 8];
            book.extend_from_slice(&bytes);
            let _ = NullRecords::read(&book[..]).unwrap().text();
            let _ = NullRecords::read(&bytes[..]).unwrap().text();
        }
    }
}

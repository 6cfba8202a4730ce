//! All records of a book, and where they are.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use super::entry::Entry;
use crate::{
    error::{At, Result},
    positioned::read_exact_at,
};

/// Bytes that are read at once when all records are read.
const STREAM_BUFFER: usize = 1 << 16;

/// Where the records of a book are, and how many.
#[derive(Debug)]
pub(super) enum Storage {
    Memory(Vec<u8>),
    File(File, u64),
}

impl Storage {
    /// How many records there are.
    pub(super) fn len(&self) -> u64 {
        match self {
            Storage::Memory(bytes) => (bytes.len() / Entry::SIZE) as u64,
            Storage::File(_, len) => *len,
        }
    }

    /// Fills `buffer` with bytes of the book.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        match self {
            Storage::Memory(bytes) => {
                let start = usize::try_from(offset).expect("the bytes are in memory");
                buffer.copy_from_slice(&bytes[start..start + buffer.len()]);
                Ok(())
            }
            Storage::File(file, _) => read_exact_at(file, buffer, offset),
        }
    }
}

/// All records of a book, in its order.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    storage: &'a Storage,
    path: &'a Path,
    /// The first record after the buffer.
    next: u64,
    buffer: Vec<u8>,
    at: usize,
}

impl<'a> Records<'a> {
    /// All records of a book, which errors call `path`.
    pub(super) fn new(storage: &'a Storage, path: &'a Path) -> Records<'a> {
        Records {
            storage,
            path,
            next: 0,
            buffer: Vec::new(),
            at: 0,
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        let records = (self.storage.len() - self.next).min((STREAM_BUFFER / Entry::SIZE) as u64);
        self.at = 0;
        self.buffer.resize(records as usize * Entry::SIZE, 0);
        let read = self
            .storage
            .read_at(&mut self.buffer, self.next * Entry::SIZE as u64);
        match read {
            Ok(()) => self.next += records,
            Err(_) => {
                // No record follows an error.
                self.buffer.clear();
                self.next = self.storage.len();
            }
        }
        read
    }
}

impl Iterator for Records<'_> {
    type Item = Result<Entry>;

    #[inline]
    fn next(&mut self) -> Option<Result<Entry>> {
        if self.at == self.buffer.len()
            && let Err(err) = self.fill()
        {
            return Some(Err(err).at(self.path, "read"));
        }
        let bytes = self.buffer[self.at..].first_chunk()?;
        self.at += Entry::SIZE;
        Some(Ok(Entry::from_bytes(*bytes)))
    }
}

/// The bytes of a book from its start.
pub(super) struct Bytes<'a> {
    storage: &'a Storage,
    next: u64,
}

impl<'a> Bytes<'a> {
    pub(super) fn new(storage: &'a Storage) -> io::BufReader<Bytes<'a>> {
        io::BufReader::new(Bytes { storage, next: 0 })
    }
}

impl Read for Bytes<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.storage.len() * Entry::SIZE as u64 - self.next;
        let read = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
        self.storage.read_at(&mut buffer[..read], self.next)?;
        self.next += read as u64;
        Ok(read)
    }
}

//! Bytes that are written once and read in order: in memory first, past a limit in a temporary file.

use std::{
    fs::File,
    io::{self, Write},
    path::PathBuf,
};

use crate::{
    error::{At, Result},
    positioned::read_exact_at,
};

/// How many bytes are read or written at once.
const BUFFER: usize = 1 << 14;

/// A sequence of bytes. Past the memory it may take, all of it goes to a temporary file without a name.
#[derive(Debug)]
pub(crate) struct Spool {
    memory: usize,
    temp_dir: PathBuf,
    /// Bytes that are not in the file.
    tail: Vec<u8>,
    file: Option<File>,
    /// How many bytes the file has.
    filed: u64,
}

impl Spool {
    /// Keeps at most `memory` bytes in memory.
    pub(crate) fn new(memory: usize, temp_dir: PathBuf) -> Spool {
        Spool {
            memory,
            temp_dir,
            tail: Vec::new(),
            file: None,
            filed: 0,
        }
    }

    /// How many bytes there are.
    pub(crate) fn len(&self) -> u64 {
        self.filed + self.tail.len() as u64
    }

    /// Appends bytes.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be written.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.tail.extend_from_slice(bytes);
        let room = if self.file.is_some() {
            BUFFER
        } else {
            self.memory
        };
        if self.tail.len() <= room {
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(
                tempfile::tempfile_in(&self.temp_dir)
                    .at(&self.temp_dir, "make a temporary file in")?,
            ),
        };
        file.write_all(&self.tail)
            .at(&self.temp_dir, "write a temporary file in")?;
        self.filed += self.tail.len() as u64;
        self.tail = Vec::with_capacity(2 * BUFFER);
        Ok(())
    }

    /// Appends a text with its length, for [`SpoolReader::read_text`].
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be written.
    pub(crate) fn append_text(&mut self, text: &[u8]) -> Result<()> {
        let length = u32::try_from(text.len()).expect("texts are short");
        self.append(&length.to_le_bytes())?;
        self.append(text)
    }

    /// Reads from a place on.
    pub(crate) fn reader(&self, start: u64) -> SpoolReader<'_> {
        SpoolReader {
            spool: self,
            next: start,
            buffer: Vec::new(),
            at: 0,
        }
    }
}

/// Reads a [`Spool`] in order.
#[derive(Debug)]
pub(crate) struct SpoolReader<'a> {
    spool: &'a Spool,
    /// The first byte behind the buffer.
    next: u64,
    buffer: Vec<u8>,
    at: usize,
}

impl SpoolReader<'_> {
    /// Fills `out`.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be read, or fewer bytes than asked for.
    pub(crate) fn read_exact(&mut self, mut out: &mut [u8]) -> Result<()> {
        while !out.is_empty() {
            if self.at == self.buffer.len() {
                self.fill()?;
            }
            let some = out.len().min(self.buffer.len() - self.at);
            out[..some].copy_from_slice(&self.buffer[self.at..self.at + some]);
            out = &mut out[some..];
            self.at += some;
        }
        Ok(())
    }

    /// Passes over bytes.
    pub(crate) fn skip(&mut self, bytes: u64) {
        let buffered = (self.buffer.len() - self.at) as u64;
        if bytes <= buffered {
            self.at += bytes as usize;
        } else {
            self.next += bytes - buffered;
            self.at = self.buffer.len();
        }
    }

    /// The next text; `None` behind the last.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be read.
    pub(crate) fn read_text(&mut self) -> Result<Option<Vec<u8>>> {
        if self.at == self.buffer.len() && self.next == self.spool.len() {
            return Ok(None);
        }
        let mut length = [0; 4];
        self.read_exact(&mut length)?;
        let mut text = vec![0; u32::from_le_bytes(length) as usize];
        self.read_exact(&mut text)?;
        Ok(Some(text))
    }

    fn fill(&mut self) -> Result<()> {
        let spool = self.spool;
        self.at = 0;
        self.buffer.clear();
        match &spool.file {
            Some(file) if self.next < spool.filed => {
                let some = (spool.filed - self.next).min(BUFFER as u64);
                self.buffer.resize(some as usize, 0);
                read_exact_at(file, &mut self.buffer, self.next)
                    .at(&spool.temp_dir, "read a temporary file in")?;
            }
            _ => {
                let from = usize::try_from(self.next - spool.filed).ok();
                let rest = from.and_then(|from| spool.tail.get(from..));
                let rest = rest.unwrap_or_default();
                self.buffer
                    .extend_from_slice(&rest[..rest.len().min(BUFFER)]);
            }
        }
        if self.buffer.is_empty() {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof))
                .at(&spool.temp_dir, "read a temporary file in");
        }
        self.next += self.buffer.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_appended_is_read(
            parts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..9000), 0..9),
            memory in 0..20_000usize,
            start in 0.0..1.0f64,
            skipped in 0.0..1.0f64,
        ) {
            let mut spool = Spool::new(memory, std::env::temp_dir());
            for part in &parts {
                spool.append(part).unwrap();
            }
            let all = parts.concat();
            prop_assert_eq!(spool.len(), all.len() as u64);
            let start = (all.len() as f64 * start) as usize;
            let mut found = vec![0; all.len() - start];
            let mut reader = spool.reader(start as u64);
            reader.read_exact(&mut found).unwrap();
            prop_assert_eq!(&found, &all[start..]);
            prop_assert!(reader.read_exact(&mut [0]).is_err());
            let mut reader = spool.reader(0);
            let some = start.min(100);
            reader.read_exact(&mut found[..0]).unwrap();
            reader.read_exact(&mut vec![0; some]).unwrap();
            let skipped = ((all.len() - some) as f64 * skipped) as usize;
            reader.skip(skipped as u64);
            found.resize(all.len() - some - skipped, 0);
            reader.read_exact(&mut found).unwrap();
            prop_assert_eq!(&found, &all[some + skipped..]);
            reader.skip(1);
            prop_assert!(reader.read_exact(&mut [0]).is_err());
        }

        #[test]
        fn texts_keep_their_bounds(
            texts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..900), 0..90),
            memory in 0..20_000usize,
        ) {
            let mut spool = Spool::new(memory, std::env::temp_dir());
            for text in &texts {
                spool.append_text(text).unwrap();
            }
            let mut reader = spool.reader(0);
            let found = std::iter::from_fn(|| reader.read_text().unwrap());
            prop_assert_eq!(found.collect::<Vec<_>>(), texts);
        }
    }
}

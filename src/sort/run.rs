//! Sorted runs of records in a temporary file.
//!
//! The file has no name once it is open, so it is gone when the program ends, however it ends.

use std::{
    fs::File,
    marker::PhantomData,
    ops::Range,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use super::{
    packed::{LONGEST, Packing, Unpacking},
    record::Record,
};
use crate::{
    error::{At, Result},
    positioned::{read_exact_at, write_all_at},
};

/// Bytes of a record in the file.
const RECORD: usize = size_of::<u128>();

/// About how many bytes a packed record has.
const PACKED: usize = 9;

/// Bytes that are read or written at once.
const BUFFER: usize = 1 << 14;

/// Where a run stands in its file.
#[derive(Copy, Clone, Debug)]
pub(super) struct Run {
    /// Its first byte, and how many it has.
    start: u64,
    bytes: u64,
    /// How many records it has.
    len: u64,
    /// Whether they are packed.
    is_packed: bool,
}

impl Run {
    /// How many records it has.
    pub(super) fn len(self) -> u64 {
        self.len
    }

    /// A run that is not packed.
    fn plain(start: u64, len: u64) -> Run {
        Run {
            start,
            bytes: len * RECORD as u64,
            len,
            is_packed: false,
        }
    }

    /// This run and the one that stands behind it as one, neither of them packed.
    pub(super) fn joined(self, behind: Run) -> Run {
        debug_assert_eq!(self.start + self.bytes, behind.start);
        debug_assert!(!self.is_packed && !behind.is_packed);
        Run::plain(self.start, self.len + behind.len)
    }
}

/// A temporary file of runs. Several threads may append runs at the same time.
#[derive(Debug)]
pub(super) struct RunFile {
    file: File,
    /// Bytes in the file.
    end: AtomicU64,
    temp_dir: PathBuf,
}

impl RunFile {
    pub(super) fn create(temp_dir: &Path) -> Result<RunFile> {
        Ok(RunFile {
            file: tempfile::tempfile_in(temp_dir).at(temp_dir, "make a temporary file in")?,
            end: AtomicU64::new(0),
            temp_dir: temp_dir.to_owned(),
        })
    }

    /// How many bytes the file has.
    pub(super) fn size(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }

    /// Appends `len` sorted records as a run.
    pub(super) fn append<R: Record>(
        &self,
        len: usize,
        records: impl IntoIterator<Item = R>,
    ) -> Result<Run> {
        let run = |start| Run::plain(start, len as u64);
        let start = self.end.fetch_add(run(0).bytes, Ordering::Relaxed);
        let mut buffer = Vec::with_capacity(BUFFER);
        let mut at = start;
        for record in records {
            buffer.extend_from_slice(&record.to_bits().to_le_bytes());
            if buffer.len() == BUFFER {
                self.write(&buffer, at)?;
                at += BUFFER as u64;
                buffer.clear();
            }
        }
        self.write(&buffer, at)?;
        Ok(run(start))
    }

    /// Appends sorted records as a run that can only be read from its beginning, packed if some have short forms.
    pub(super) fn append_packed<R: Record>(
        &self,
        len: usize,
        records: impl IntoIterator<Item = R>,
    ) -> Result<Run> {
        if !R::HAS_SHORT {
            return self.append(len, records);
        }
        let mut bytes = Vec::with_capacity(len * PACKED + LONGEST);
        let mut packing = Packing::default();
        for record in records {
            packing.push(record, &mut bytes);
        }
        let length = bytes.len() as u64;
        let start = self.end.fetch_add(length, Ordering::Relaxed);
        self.write(&bytes, start)?;
        Ok(Run {
            start,
            bytes: length,
            len: len as u64,
            is_packed: true,
        })
    }

    /// Writes a run whose length is not known yet, at the end of the file.
    pub(super) fn start_run(&mut self) -> RunWriter<'_> {
        RunWriter {
            start: *self.end.get_mut(),
            buffer: Vec::with_capacity(BUFFER + RECORD),
            file: self,
        }
    }

    pub(super) fn reader<R: Record>(&self, run: Run) -> RunReader<'_, R> {
        RunReader {
            file: self,
            next: run.start,
            end: run.start + run.bytes,
            buffer: Vec::new(),
            at: 0,
            length: 0,
            unpacking: run.is_packed.then(Unpacking::default),
            kind: PhantomData,
        }
    }

    /// Replaces `out` with some records of a run.
    pub(super) fn read<R: Record>(
        &self,
        run: Run,
        range: Range<usize>,
        out: &mut Vec<R>,
    ) -> Result<()> {
        debug_assert!(!run.is_packed);
        let mut bytes = vec![0; range.len() * RECORD];
        let start = run.start + (range.start * RECORD) as u64;
        read_exact_at(&self.file, &mut bytes, start)
            .at(&self.temp_dir, "read a temporary file in")?;
        let (records, _) = bytes.as_chunks();
        out.clear();
        out.extend(
            records
                .iter()
                .map(|record| R::from_bits(u128::from_le_bytes(*record))),
        );
        Ok(())
    }

    fn write(&self, bytes: &[u8], start: u64) -> Result<()> {
        write_all_at(&self.file, bytes, start).at(&self.temp_dir, "write a temporary file in")
    }
}

/// Writes one run.
pub(super) struct RunWriter<'a> {
    file: &'a mut RunFile,
    start: u64,
    buffer: Vec<u8>,
}

impl RunWriter<'_> {
    #[inline]
    pub(super) fn push(&mut self, record: impl Record) {
        self.buffer
            .extend_from_slice(&record.to_bits().to_le_bytes());
    }

    #[inline]
    pub(super) fn flush_if_full(&mut self) -> Result<()> {
        if self.buffer.len() >= BUFFER {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let end = *self.file.end.get_mut();
        self.file.write(&self.buffer, end)?;
        *self.file.end.get_mut() += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Run> {
        self.flush()?;
        let bytes = *self.file.end.get_mut() - self.start;
        Ok(Run::plain(self.start, bytes / RECORD as u64))
    }
}

/// Reads one run.
#[derive(Debug)]
pub(super) struct RunReader<'a, R> {
    file: &'a RunFile,
    /// The next byte to read into the buffer, and the end of the run.
    next: u64,
    end: u64,
    buffer: Vec<u8>,
    /// What is still to be taken from the buffer.
    at: usize,
    length: usize,
    /// Unpacks the records, if they are packed.
    unpacking: Option<Unpacking>,
    kind: PhantomData<R>,
}

impl<R: Record> Iterator for RunReader<'_, R> {
    type Item = Result<R>;

    #[inline]
    fn next(&mut self) -> Option<Result<R>> {
        // A whole record, whatever it takes.
        if self.length - self.at < LONGEST
            && self.next < self.end
            && let Err(err) = self.fill()
        {
            return Some(Err(err));
        }
        if self.at == self.length {
            return None;
        }
        let bytes = self.buffer[self.at..]
            .first_chunk::<LONGEST>()
            .expect("there are more bytes behind the last record");
        let (record, length) = match &mut self.unpacking {
            Some(unpacking) => unpacking.take(bytes),
            None => {
                let bits = *bytes.first_chunk().expect("it is longer");
                (R::from_bits(u128::from_le_bytes(bits)), RECORD)
            }
        };
        self.at += length;
        Some(Ok(record))
    }
}

impl<R> RunReader<'_, R> {
    /// Reads on behind what is left in the buffer.
    #[cold]
    fn fill(&mut self) -> Result<()> {
        let left = self.length - self.at;
        self.buffer.copy_within(self.at..self.length, 0);
        let more = (self.end - self.next).min((BUFFER - left) as u64) as usize;
        self.at = 0;
        self.length = left + more;
        self.buffer.resize(BUFFER + LONGEST, 0);
        read_exact_at(
            &self.file.file,
            &mut self.buffer[left..self.length],
            self.next,
        )
        .at(&self.file.temp_dir, "read a temporary file in")?;
        self.next += more as u64;
        Ok(())
    }
}

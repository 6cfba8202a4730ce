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

use super::record::Record;
use crate::{
    error::{At, Result},
    positioned::{read_exact_at, write_all_at},
};

/// Bytes of a record in the file.
const RECORD: usize = size_of::<u128>();

/// Bytes that are read or written at once.
const BUFFER: usize = 1 << 14;

/// Where a run stands in its file, in records.
#[derive(Copy, Clone, Debug)]
pub(super) struct Run {
    start: u64,
    len: u64,
}

impl Run {
    /// How many records it has.
    pub(super) fn len(self) -> u64 {
        self.len
    }

    /// This run and the one that stands behind it as one.
    #[cfg(feature = "parquet")]
    pub(super) fn joined(self, behind: Run) -> Run {
        debug_assert_eq!(self.start + self.len, behind.start);
        Run {
            start: self.start,
            len: self.len + behind.len,
        }
    }
}

/// A temporary file of runs. Several threads may append runs at the same time.
#[derive(Debug)]
pub(super) struct RunFile {
    file: File,
    /// Records in the file.
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
        self.end.load(Ordering::Relaxed) * RECORD as u64
    }

    /// Appends `len` sorted records as a run.
    pub(super) fn append<R: Record>(
        &self,
        len: usize,
        records: impl IntoIterator<Item = R>,
    ) -> Result<Run> {
        let len = len as u64;
        let start = self.end.fetch_add(len, Ordering::Relaxed);
        let mut buffer = Vec::with_capacity(BUFFER);
        let mut at = start;
        for record in records {
            buffer.extend_from_slice(&record.to_bits().to_le_bytes());
            if buffer.len() == BUFFER {
                self.write(&buffer, at)?;
                at += (BUFFER / RECORD) as u64;
                buffer.clear();
            }
        }
        self.write(&buffer, at)?;
        Ok(Run { start, len })
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
            end: run.start + run.len,
            buffer: Vec::new(),
            at: 0,
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
        let mut bytes = vec![0; range.len() * RECORD];
        let start = (run.start + range.start as u64) * RECORD as u64;
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

    fn write(&self, bytes: &[u8], record: u64) -> Result<()> {
        write_all_at(&self.file, bytes, record * RECORD as u64)
            .at(&self.temp_dir, "write a temporary file in")
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
        *self.file.end.get_mut() += (self.buffer.len() / RECORD) as u64;
        self.buffer.clear();
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Run> {
        self.flush()?;
        Ok(Run {
            start: self.start,
            len: *self.file.end.get_mut() - self.start,
        })
    }
}

/// Reads one run.
#[derive(Debug)]
pub(super) struct RunReader<'a, R> {
    file: &'a RunFile,
    /// The next record to read into the buffer, and the end of the run.
    next: u64,
    end: u64,
    buffer: Vec<u8>,
    at: usize,
    kind: PhantomData<R>,
}

impl<R: Record> Iterator for RunReader<'_, R> {
    type Item = Result<R>;

    #[inline]
    fn next(&mut self) -> Option<Result<R>> {
        if self.at == self.buffer.len() {
            match self.fill() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(err) => return Some(Err(err)),
            }
        }
        let bytes = self.buffer[self.at..]
            .first_chunk::<RECORD>()
            .expect("the buffer holds whole records");
        self.at += RECORD;
        Some(Ok(R::from_bits(u128::from_le_bytes(*bytes))))
    }
}

impl<R> RunReader<'_, R> {
    #[cold]
    fn fill(&mut self) -> Result<bool> {
        let records = (self.end - self.next).min((BUFFER / RECORD) as u64);
        self.buffer.resize(records as usize * RECORD, 0);
        self.at = 0;
        read_exact_at(&self.file.file, &mut self.buffer, self.next * RECORD as u64)
            .at(&self.file.temp_dir, "read a temporary file in")?;
        self.next += records;
        Ok(records > 0)
    }
}

//! Sorted runs of records in a temporary file.
//!
//! The file has no name once it is open, so it is gone when the program ends, however it ends.

use std::{
    fs::File,
    io::{self, Write},
    ops::Range,
    path::{Path, PathBuf},
};

use crate::error::{At, Result};

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
}

/// A temporary file of runs.
#[derive(Debug)]
pub(super) struct RunFile {
    file: File,
    runs: Vec<Run>,
    end: u64,
    temp_dir: PathBuf,
}

impl RunFile {
    pub(super) fn create(temp_dir: &Path) -> Result<RunFile> {
        Ok(RunFile {
            file: tempfile::tempfile_in(temp_dir).at(temp_dir, "make a temporary file in it")?,
            runs: Vec::new(),
            end: 0,
            temp_dir: temp_dir.to_owned(),
        })
    }

    pub(super) fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Appends sorted records as a run.
    pub(super) fn append(&mut self, records: &[u128]) -> Result<()> {
        let mut writer = self.start_run();
        for chunk in records.chunks(BUFFER / RECORD) {
            for record in chunk {
                writer.push(*record);
            }
            writer.flush_if_full()?;
        }
        writer.finish()
    }

    pub(super) fn start_run(&mut self) -> RunWriter<'_> {
        RunWriter {
            start: self.end,
            buffer: Vec::with_capacity(2 * BUFFER),
            file: self,
        }
    }

    pub(super) fn reader(&self, run: Run) -> RunReader<'_> {
        RunReader {
            file: self,
            next: run.start,
            end: run.start + run.len,
            buffer: Vec::new(),
            at: 0,
        }
    }
}

impl RunFile {
    /// Appends some records of a run to `out`.
    pub(super) fn read(&self, run: Run, range: Range<usize>, out: &mut Vec<u128>) -> Result<()> {
        let mut bytes = vec![0; range.len() * RECORD];
        let start = (run.start + range.start as u64) * RECORD as u64;
        read_at(&self.file, &mut bytes, start).at(&self.temp_dir, "read a temporary file in it")?;
        let (records, _) = bytes.as_chunks();
        out.extend(records.iter().map(|record| u128::from_le_bytes(*record)));
        Ok(())
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
    pub(super) fn push(&mut self, record: u128) {
        self.buffer.extend_from_slice(&record.to_le_bytes());
    }

    #[inline]
    pub(super) fn flush_if_full(&mut self) -> Result<()> {
        if self.buffer.len() >= BUFFER {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.file
            .file
            .write_all(&self.buffer)
            .at(&self.file.temp_dir, "write a temporary file in it")?;
        self.file.end += (self.buffer.len() / RECORD) as u64;
        self.buffer.clear();
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<()> {
        self.flush()?;
        let len = self.file.end - self.start;
        if len > 0 {
            self.file.runs.push(Run {
                start: self.start,
                len,
            });
        }
        Ok(())
    }
}

/// Reads one run.
pub(super) struct RunReader<'a> {
    file: &'a RunFile,
    /// The next record to read into the buffer, and the end of the run.
    next: u64,
    end: u64,
    buffer: Vec<u8>,
    at: usize,
}

impl RunReader<'_> {
    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<u128>> {
        if self.at == self.buffer.len() && !self.fill()? {
            return Ok(None);
        }
        let bytes = self.buffer[self.at..]
            .first_chunk::<RECORD>()
            .copied()
            .unwrap_or_default();
        self.at += RECORD;
        Ok(Some(u128::from_le_bytes(bytes)))
    }

    #[cold]
    fn fill(&mut self) -> Result<bool> {
        let records = (self.end - self.next).min((BUFFER / RECORD) as u64);
        self.buffer.resize(records as usize * RECORD, 0);
        self.at = 0;
        read_at(&self.file.file, &mut self.buffer, self.next * RECORD as u64)
            .at(&self.file.temp_dir, "read a temporary file in it")?;
        self.next += records;
        Ok(records > 0)
    }
}

#[cfg(unix)]
pub(super) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
}

#[cfg(windows)]
pub(super) fn read_at(file: &File, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
    use std::os::windows::fs::FileExt;
    while !buffer.is_empty() {
        match file.seek_read(buffer, offset)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                buffer = &mut buffer[read..];
                offset += read as u64;
            }
        }
    }
    Ok(())
}

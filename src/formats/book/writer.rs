//! Writes books, with a checksum in the header.

use std::{
    fs::File,
    io::{self, BufWriter, Seek, Write},
    path::Path,
};

use super::{
    foreign::is_own_or_empty,
    header::{create_raw, renewed},
    reader::Book,
    records::{BookStorage, Entry, write_entries},
};
use crate::{
    error::{At, Error, Result},
    storage::checksum::Checksum,
    storage::output::AtomicFile,
    storage::positioned::{StoredFile, write_all_at},
};

/// Creates a temporary book in an unnamed file in the directory `temp_dir`, calls `write` to write its records, and
/// opens it. An error message about writing names `temp_dir`, because the file has no name. Error messages about the
/// content of the new book name `source`, the path of the book from which the records come.
pub(super) fn temporary_book(
    temp_dir: &Path,
    source: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<()>,
) -> Result<Book> {
    let file = tempfile::tempfile_in(temp_dir).at(temp_dir, "create a temporary file in")?;
    let mut out = BufWriter::with_capacity(1 << 16, file);
    write(&mut out)?;
    let file = out.into_inner().map_err(io::IntoInnerError::into_error);
    let file = file.at(temp_dir, "write a temporary file in")?;
    let size = file.metadata().at(temp_dir, "open")?.len();
    Ok(Book {
        path: source.to_owned(),
        storage: BookStorage::File(
            StoredFile::Open {
                file,
                stamp: None,
                is_counted: false,
            },
            size / Entry::SIZE as u64,
        ),
    })
}

/// Creates the output file for a new book at the path `out`. The new book may replace an empty file, or a book that
/// polybook wrote, which is recognized by the checksum in its header. If `force` is `true`, the book may replace any
/// file.
///
/// # Errors
///
/// Returns [`Error::Exists`] if `out` exists and may not be replaced. Otherwise, fails for the same reasons as
/// [`AtomicFile::create_over`].
pub fn begin_book(out: impl AsRef<Path>, force: bool) -> Result<AtomicFile> {
    AtomicFile::create_over(out, |old| {
        if force || is_own_or_empty(old)? {
            Ok(())
        } else {
            Err(Error::exists(old))
        }
    })
}

/// A writer of a book. If the header has a line for the checksum, the writer fills in the checksum after the last
/// record.
pub(super) struct BookWriter<'a> {
    file: &'a mut AtomicFile,
    header: Option<&'a str>,
    records: BufWriter<File>,
    /// The offset of the first record in the file `records`.
    start: u64,
    /// The directory of the temporary file that holds the records until the book is complete. `None` if they are
    /// written directly, because the output can be written at any offset.
    waiting: Option<&'a Path>,
    sum: Checksum,
}

impl<'a> BookWriter<'a> {
    /// Begins a book, and returns a writer for its records. `header` is the text of the header, or `None` for a book
    /// without a header.
    ///
    /// If the output is a pipe, the records are first written to a temporary file in `temp_dir`, because the checksum
    /// in the header is known only after the last record, and because records may be written in any order.
    pub(super) fn begin(
        file: &'a mut AtomicFile,
        header: Option<&'a str>,
        temp_dir: &'a Path,
    ) -> Result<BookWriter<'a>> {
        let waiting = (!file.is_seekable()).then_some(temp_dir);
        let (records, start) = match waiting {
            Some(dir) => {
                let file = tempfile::tempfile_in(dir);
                (file.at(dir, "create a temporary file in")?, 0)
            }
            None => {
                let target = file.target().to_owned();
                let raw = header.map_or_else(Vec::new, create_raw);
                file.write_all(&raw).at(&target, "write")?;
                let file = file.file().try_clone();
                (file.at(&target, "write")?, raw.len() as u64)
            }
        };
        Ok(BookWriter {
            file,
            header,
            records: BufWriter::with_capacity(1 << 16, records),
            start,
            waiting,
            sum: Checksum::default(),
        })
    }

    /// Writes `records`, the bytes of whole records, and returns their checksum. The first of them gets the index
    /// `first` in the book, not counting the header. Several threads may call this function at the same time. The
    /// caller must pass the sum of all checksums to [`add_checksum`](BookWriter::add_checksum).
    pub(super) fn write_at(&self, records: &[u8], first: u64) -> Result<Checksum> {
        let offset = self.start + first * Entry::SIZE as u64;
        let written = write_all_at(self.records.get_ref(), records, offset);
        written.at(self.written_path(), "write")?;
        Ok(checksum_of(records))
    }

    /// Adds the checksum of records that [`write_at`](BookWriter::write_at) wrote to the checksum of the book.
    pub(super) fn add_checksum(&mut self, sum: Checksum) {
        self.sum = self.sum.plus(sum);
    }

    /// Returns the path that error messages name if records cannot be written.
    fn written_path(&self) -> &Path {
        self.waiting.unwrap_or(self.file.target())
    }

    /// Copies the records of the positions of `book` that `is_kept` accepts. Calls `is_kept` once for each position,
    /// with its key; the header counts as a position with the key 0. Returns the numbers of copied positions, omitted
    /// positions and copied records.
    pub(super) fn copy(
        &mut self,
        book: &Book,
        mut is_kept: impl FnMut(u64) -> Result<bool>,
    ) -> Result<Copied> {
        let target = self.file.target().to_owned();
        let mut copied = Copied::default();
        let (mut last_key, mut is_copied) = (None, false);
        for entry in book {
            let entry = entry?;
            if last_key.replace(entry.key) != Some(entry.key) {
                is_copied = is_kept(entry.key)?;
                copied.positions += u64::from(is_copied);
                copied.left_out += u64::from(!is_copied);
            }
            if is_copied {
                write_entries(&[entry], self).at(&target, "write")?;
                copied.records += u64::from(entry.key != 0);
            }
        }
        Ok(copied)
    }

    /// Writes the remaining records, and fills in the checksum. Does not [commit](AtomicFile::commit) the file.
    pub(super) fn finish(self) -> Result<()> {
        let target = self.file.target().to_owned();
        let written_path = self.written_path().to_owned();
        let records = self.records.into_inner().map_err(|err| err.into_error());
        let mut records = records.at(written_path, "write")?;
        let header = self.header.map(|text| create_raw(&renewed(text, self.sum)));
        let header = header.unwrap_or_default();
        if self.waiting.is_none() {
            return self.file.write_at(&header, 0);
        }
        self.file.write_all(&header).at(&target, "write")?;
        records
            .rewind()
            .and_then(|()| io::copy(&mut records, self.file))
            .at(&target, "write")?;
        Ok(())
    }
}

/// The numbers of positions and records that [`BookWriter::copy`] copied, and of positions that it omitted.
#[derive(Default)]
pub(super) struct Copied {
    pub positions: u64,
    /// The number of positions that were omitted.
    pub left_out: u64,
    /// The number of records, without those of the header.
    pub records: u64,
}

/// Returns the checksum of `records`, the bytes of whole records.
#[inline]
pub(super) fn checksum_of(records: &[u8]) -> Checksum {
    let mut sum = Checksum::default();
    let (records, rest) = records.as_chunks::<{ Entry::SIZE }>();
    debug_assert!(rest.is_empty(), "part of a record");
    records.iter().for_each(|record| sum.add_short(record));
    sum
}

/// Appends records to the book. Every call must write whole records.
impl Write for BookWriter<'_> {
    fn write(&mut self, records: &[u8]) -> io::Result<usize> {
        self.records.write_all(records)?;
        self.add_checksum(checksum_of(records));
        Ok(records.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.records.flush()
    }
}

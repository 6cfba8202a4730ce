//! Opening a Parquet file, with limits on the memory that its metadata and pages take.

use std::{
    fs::{self, File},
    io::{self, Read},
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::Arc,
};

use bytes::Bytes;
use parquet::{
    basic::Compression,
    column::reader::{ColumnReader, get_column_reader},
    errors::ParquetError,
    file::{
        metadata::{ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData},
        reader::{ChunkReader, Length},
        serialized_reader::SerializedPageReader,
    },
    schema::types::SchemaDescriptor,
};

use super::error::CountsError;
use crate::{
    error::{At, Error, Result},
    positioned::read_exact_at,
};

/// The greatest size of a page in bytes, compressed or not. Writers usually make pages of about 1 MiB.
const MOST_OF_PAGE: u64 = 4 << 20;

/// The greatest size of a file's metadata in bytes. polybook's metadata for a million rows take some 10 KiB.
const MOST_OF_METADATA: u64 = 16 << 20;

/// The number of bytes after the metadata: their length, and the magic `PAR1`.
const FOOTER: u64 = 8;

/// An estimate of the bytes of memory that a byte of metadata takes while it is parsed.
const PARSED: u64 = 16;

/// Calls `read` and converts a panic to an error, because the crate `parquet` panics at some damaged files.
///
/// # Errors
///
/// Returns the error of `read`, or [`CountsError::Damaged`] if it panics.
pub(super) fn caught<T>(read: impl FnOnce() -> Result<T, CountsError>) -> Result<T, CountsError> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| {
        Err(CountsError::Damaged(
            "its numbers do not fit together".to_owned(),
        ))
    })
}

/// Returns the size of a file in bytes.
///
/// # Errors
///
/// Returns an error if the file cannot be examined or is not a regular file. A pipe is refused because opening it would
/// wait for its writer.
pub(super) fn file_size(path: &Path) -> Result<u64> {
    let metadata = fs::metadata(path).at(path, "open")?;
    match metadata.is_file() {
        true => Ok(metadata.len()),
        false => Err(Error::file(path, "not a file")),
    }
}

/// Estimates the memory in bytes that parsing the metadata of a file of `size` bytes takes.
///
/// Returns 0 if the file is too short or does not end with the magic, because opening it will then report what is
/// wrong.
///
/// # Errors
///
/// Returns an error if the file cannot be read or the metadata exceed [`MOST_OF_METADATA`].
pub(super) fn metadata_memory(file: &File, size: u64) -> Result<u64, CountsError> {
    let Some(footer) = size.checked_sub(FOOTER) else {
        return Ok(0);
    };
    let mut bytes = [0; 8];
    read_exact_at(file, &mut bytes, footer)?;
    let [a, b, c, d, magic @ ..] = bytes;
    let length = u64::from(u32::from_le_bytes([a, b, c, d]));
    if magic != *b"PAR1" || length > footer {
        return Ok(0);
    }
    if length > MOST_OF_METADATA {
        return Err(CountsError::Metadata {
            bytes: length,
            most: MOST_OF_METADATA,
        });
    }
    Ok(PARSED * length)
}

/// An open Parquet file and its metadata.
pub(super) struct ParquetFile {
    file: Arc<File>,
    size: u64,
    metadata: ParquetMetaData,
}

impl ParquetFile {
    /// Parses the metadata of a file.
    ///
    /// # Errors
    ///
    /// Returns an error if the metadata are damaged or too large, or if a column uses a compression that is not
    /// supported.
    pub(super) fn open(file: File) -> Result<ParquetFile, CountsError> {
        let size = file.metadata()?.len();
        metadata_memory(&file, size)?;
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&file)?;
        let columns = metadata
            .row_groups()
            .iter()
            .flat_map(|group| group.columns());
        for column in columns {
            let codec = match column.compression() {
                Compression::BROTLI(_) => "Brotli",
                Compression::LZ4 | Compression::LZ4_RAW => "LZ4",
                Compression::LZO => "LZO",
                _ => continue,
            };
            return Err(CountsError::Codec(codec));
        }
        Ok(ParquetFile {
            file: Arc::new(file),
            size,
            metadata,
        })
    }

    /// Returns the schema of the file.
    pub(super) fn schema(&self) -> &SchemaDescriptor {
        self.metadata.file_metadata().schema_descr()
    }

    /// Returns the metadata of the row groups.
    pub(super) fn groups(&self) -> &[RowGroupMetaData] {
        self.metadata.row_groups()
    }

    /// Returns the number of rows in a row group.
    ///
    /// # Errors
    ///
    /// Returns an error if the metadata state a negative number.
    pub(super) fn rows(&self, group: usize) -> Result<usize, CountsError> {
        usize::try_from(self.groups()[group].num_rows())
            .map_err(|_| CountsError::Damaged("a row group of negative length".to_owned()))
    }

    /// Returns the number of rows that the metadata state for the whole file.
    pub(super) fn all_rows(&self) -> i64 {
        self.metadata.file_metadata().num_rows()
    }

    /// Creates a reader of the values of the column with index `place` in a row group.
    ///
    /// # Errors
    ///
    /// Returns an error if the metadata of the column are damaged.
    pub(super) fn column(&self, group: usize, place: usize) -> Result<ColumnReader, CountsError> {
        let bytes = PageBytes {
            file: Arc::clone(&self.file),
            size: self.size,
        };
        let column = self.groups()[group].column(place);
        let rows = self.rows(group)?;
        let pages = SerializedPageReader::new(Arc::new(bytes), column, rows, None)?;
        let column = self.schema().column(place);
        Ok(get_column_reader(column, Box::new(pages)))
    }
}

/// Gives the crate `parquet` access to the bytes of pages, and refuses pages that are too large.
#[derive(Clone)]
struct PageBytes {
    file: Arc<File>,
    size: u64,
}

impl PageBytes {
    /// Reads `length` bytes from `start` on.
    fn read(&self, start: u64, length: usize) -> io::Result<Bytes> {
        let mut bytes = vec![0; length];
        read_exact_at(&self.file, &mut bytes, start)?;
        Ok(Bytes::from(bytes))
    }
}

impl Length for PageBytes {
    fn len(&self) -> u64 {
        self.size
    }
}

impl ChunkReader for PageBytes {
    type T = PageHeader;

    fn get_read(&self, start: u64) -> Result<PageHeader, ParquetError> {
        Ok(PageHeader {
            bytes: self.clone(),
            next: start,
            read: Bytes::new(),
            is_checked: false,
        })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        check_page(length as u64)?;
        Ok(self.read(start, length)?)
    }
}

/// Reads the header of a page, and checks the page's decompressed size before anything is decompressed.
struct PageHeader {
    bytes: PageBytes,
    /// The offset in the file of the next read.
    next: u64,
    /// The bytes that were read but not returned yet.
    read: Bytes,
    /// Whether the decompressed size was checked.
    is_checked: bool,
}

impl PageHeader {
    /// The number of bytes to read at once. Most headers have about 50.
    const STEP: u64 = 256;
}

impl Read for PageHeader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.read.is_empty() {
            let length = self
                .bytes
                .size
                .saturating_sub(self.next)
                .min(PageHeader::STEP);
            self.read = self.bytes.read(self.next, length as usize)?;
            self.next += length;
        }
        if !self.is_checked {
            self.is_checked = true;
            let no_header = || io::Error::other("a page does not begin with its sizes");
            let size = unpacked_size(&self.read).ok_or_else(no_header)?;
            check_page(size)?;
        }
        let length = out.len().min(self.read.len());
        out[..length].copy_from_slice(&self.read.split_to(length));
        Ok(length)
    }
}

/// Returns an error if a page of this many bytes would exceed [`MOST_OF_PAGE`].
fn check_page(bytes: u64) -> io::Result<()> {
    if bytes <= MOST_OF_PAGE {
        return Ok(());
    }
    Err(io::Error::other(CountsError::Page {
        bytes,
        most: MOST_OF_PAGE,
    }))
}

/// Returns the decompressed size of a page: the second field of its header, in Thrift's compact encoding. Returns
/// `None` if the header does not begin with two non-negative 32-bit integers.
fn unpacked_size(header: &[u8]) -> Option<u64> {
    /// The tag of a 32-bit field whose number is one greater than that of the previous field.
    const NEXT_I32: u8 = 0x15;
    let mut bytes = header.iter().copied();
    let mut number = || {
        let mut number = 0;
        (bytes.next()? == NEXT_I32).then_some(())?;
        for shift in (0..35).step_by(7) {
            let byte = u64::from(bytes.next()?);
            number |= (byte & 0x7f) << shift;
            if byte < 0x80 {
                // The zigzag encoding of a negative number is odd.
                return (number & 1 == 0).then_some(number >> 1);
            }
        }
        None
    };
    let _kind = number()?;
    number()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_gives_the_size_of_a_page() {
        assert_eq!(unpacked_size(&[0x15, 0, 0x15, 0x80, 1, 0x15]), Some(64));
        assert_eq!(unpacked_size(&[0x15, 4, 0x15, 6]), Some(3));
        for header in [
            &[][..],
            &[0x15],
            &[0x15, 0],
            &[0x15, 0, 0x25, 2],
            &[0x15, 0, 0x15, 3],
            &[0x15, 0, 0x15, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
        ] {
            assert_eq!(unpacked_size(header), None, "{header:?}");
        }
    }
}

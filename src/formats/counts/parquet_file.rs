//! Opens Parquet files and reads their columns, in limited memory even if a file has large metadata or pages. Accepts
//! the variations that other programs write: integers of 32 or 64 bits, and nullable columns that contain no nulls.

use std::{
    fs::{self, File},
    io::{self, Read},
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::Arc,
};

use bytes::Bytes;
use parquet::{
    basic::{Compression, LogicalType, Type},
    column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader},
    data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type},
    errors::ParquetError,
    file::{
        metadata::{ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData},
        reader::{ChunkReader, Length},
        serialized_reader::SerializedPageReader,
    },
    schema::types::{ColumnDescriptor, SchemaDescriptor},
};

use super::error::CountsError;
use crate::{
    error::{At, Error, Result},
    storage::positioned::read_exact_at,
};

/// The maximum size of a Parquet page in bytes. The limit applies to both the compressed and the decompressed page.
/// Writers usually make pages of about 1 MiB.
const MAX_PAGE_SIZE: u64 = 4 << 20;

/// The maximum size of the metadata of a Parquet file, in bytes. The metadata of a file that polybook writes takes
/// about 10 KiB for a million rows.
const MAX_METADATA_SIZE: u64 = 16 << 20;

/// The size of the footer of a Parquet file in bytes. The footer consists of the length of the metadata and the magic
/// `PAR1`, with 4 bytes each.
const FOOTER_SIZE: u64 = 8;

/// The estimated number of bytes of memory that parsing takes for each byte of Parquet metadata.
const MEMORY_PER_METADATA_BYTE: u64 = 16;

/// Calls `read`, and converts a panic to an error. This is necessary because the crate `parquet` panics on some
/// damaged files.
///
/// # Errors
///
/// Returns the error of `read`, or [`CountsError::Damaged`] if `read` panics.
pub(super) fn caught<T>(read: impl FnOnce() -> Result<T, CountsError>) -> Result<T, CountsError> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| {
        Err(CountsError::Damaged(
            "the numbers in the file contradict each other".to_owned(),
        ))
    })
}

/// Returns the size of a file in bytes.
///
/// # Errors
///
/// Returns an error if the size cannot be read, or if `path` is not a regular file. Pipes are rejected because
/// opening a pipe blocks until a program writes to it.
pub(super) fn file_size(path: &Path) -> Result<u64> {
    let metadata = fs::metadata(path).at(path, "open")?;
    if metadata.is_file() {
        Ok(metadata.len())
    } else {
        Err(Error::file(path, "not a file"))
    }
}

/// Estimates how many bytes of memory are needed to parse the metadata of a Parquet file. `size` is the size of the
/// file in bytes.
///
/// Returns 0 if the file is too short or does not end with the magic `PAR1`. [`ParquetFile::open`] returns an error
/// for such a file.
///
/// # Errors
///
/// Returns an error if the file cannot be read, or if its metadata is larger than [`MAX_METADATA_SIZE`].
pub(super) fn metadata_memory(file: &File, size: u64) -> Result<u64, CountsError> {
    let Some(footer) = size.checked_sub(FOOTER_SIZE) else {
        return Ok(0);
    };
    let mut bytes = [0; 8];
    read_exact_at(file, &mut bytes, footer)?;
    let [a, b, c, d, magic @ ..] = bytes;
    let length = u64::from(u32::from_le_bytes([a, b, c, d]));
    if magic != *b"PAR1" || length > footer {
        return Ok(0);
    }
    if length > MAX_METADATA_SIZE {
        return Err(CountsError::Metadata {
            bytes: length,
            most: MAX_METADATA_SIZE,
        });
    }
    Ok(MEMORY_PER_METADATA_BYTE * length)
}

/// An open Parquet file and its parsed metadata.
pub(super) struct ParquetFile {
    file: Arc<File>,
    size: u64,
    metadata: ParquetMetaData,
}

impl ParquetFile {
    /// Parses the metadata of an open Parquet file.
    ///
    /// # Errors
    ///
    /// Returns an error if the metadata is damaged or too large, or if a column is compressed with a method that is not
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

    /// Returns the metadata of all row groups, in the order of the file.
    pub(super) fn groups(&self) -> &[RowGroupMetaData] {
        self.metadata.row_groups()
    }

    /// Returns the number of rows in the row group with the index `group`.
    ///
    /// # Errors
    ///
    /// Returns an error if the number in the metadata is negative.
    pub(super) fn rows(&self, group: usize) -> Result<usize, CountsError> {
        usize::try_from(self.groups()[group].num_rows())
            .map_err(|_| CountsError::Damaged("a row group has a negative length".to_owned()))
    }

    /// Returns the number of rows in the file, according to its metadata.
    pub(super) fn all_rows(&self) -> i64 {
        self.metadata.file_metadata().num_rows()
    }

    /// Creates a reader of the values of one column in one row group. `group` is the index of the row group, and
    /// `index` is the index of the column.
    ///
    /// # Errors
    ///
    /// Returns an error if the metadata of the column is damaged.
    pub(super) fn column(&self, group: usize, index: usize) -> Result<ColumnReader, CountsError> {
        let bytes = PageBytes {
            file: Arc::clone(&self.file),
            size: self.size,
        };
        let column = self.groups()[group].column(index);
        let rows = self.rows(group)?;
        let pages = SerializedPageReader::new(Arc::new(bytes), column, rows, None)?;
        let column = self.schema().column(index);
        Ok(get_column_reader(column, Box::new(pages)))
    }
}

/// A file from which the crate `parquet` reads pages. Reading a page that is larger than [`MAX_PAGE_SIZE`] fails.
#[derive(Clone)]
struct PageBytes {
    file: Arc<File>,
    size: u64,
}

impl PageBytes {
    /// Reads `length` bytes at the offset `start` of the file.
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

/// A reader of the header of a Parquet page. If the header states a decompressed size of more than [`MAX_PAGE_SIZE`],
/// reading the header returns an error, so the page is never decompressed.
struct PageHeader {
    bytes: PageBytes,
    /// The offset of the next read in the file.
    next: u64,
    /// The bytes that have been read from the file but have not been returned yet.
    read: Bytes,
    /// Whether the decompressed size has been checked.
    is_checked: bool,
}

impl PageHeader {
    /// The number of bytes that are read at a time to get the header of a page. Most headers take about 50 bytes.
    const HEADER_READ_SIZE: u64 = 256;
}

impl Read for PageHeader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.read.is_empty() {
            let length = self
                .bytes
                .size
                .saturating_sub(self.next)
                .min(PageHeader::HEADER_READ_SIZE);
            self.read = self.bytes.read(self.next, length as usize)?;
            self.next += length;
        }
        if !self.is_checked {
            self.is_checked = true;
            let no_header =
                || io::Error::other("a page does not begin with the header that states its size");
            let size = unpacked_size(&self.read).ok_or_else(no_header)?;
            check_page(size)?;
        }
        let length = out.len().min(self.read.len());
        out[..length].copy_from_slice(&self.read.split_to(length));
        Ok(length)
    }
}

/// Checks that a page of `bytes` bytes does not exceed [`MAX_PAGE_SIZE`].
fn check_page(bytes: u64) -> io::Result<()> {
    if bytes <= MAX_PAGE_SIZE {
        return Ok(());
    }
    Err(io::Error::other(CountsError::Page {
        bytes,
        most: MAX_PAGE_SIZE,
    }))
}

/// Returns the decompressed size in bytes that the header of a page states. `header` contains the first bytes of the
/// header, in Thrift's compact encoding. The size is the second field of the header. Returns `None` if the header does
/// not begin with two non-negative 32-bit integers.
fn unpacked_size(header: &[u8]) -> Option<u64> {
    /// The byte that precedes a 32-bit integer field in Thrift's compact encoding. It means that the id of the field
    /// is the previous id plus 1.
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

/// The name and the index of a column in a Parquet file.
#[derive(Copy, Clone, Debug)]
pub(super) struct FoundColumn {
    name: &'static str,
    place: usize,
}

/// The type that the values of a column must have.
#[derive(Copy, Clone)]
pub(super) enum ValueType {
    Integers,
    Booleans,
    Texts,
}

impl FoundColumn {
    /// Finds the column with the name `name`. Returns `None` if the file has no such column. `column_type` is the type
    /// that the values of the column must have.
    ///
    /// # Errors
    ///
    /// Returns an error if several columns have the name, or if the column has a different type.
    pub(super) fn find(
        schema: &SchemaDescriptor,
        name: &'static str,
        column_type: ValueType,
    ) -> Result<Option<FoundColumn>, CountsError> {
        let is_it =
            |column: &ColumnDescriptor| matches!(column.path().parts(), [only] if only == name);
        let columns = schema.columns().iter().enumerate();
        let mut places = columns
            .filter(|(_, column)| is_it(column))
            .map(|(place, _)| place);
        let Some(place) = places.next() else {
            return Ok(None);
        };
        if places.next().is_some() {
            return Err(CountsError::Columns(name));
        }
        let column = &schema.columns()[place];
        let of_type = column.physical_type();
        let (wanted, is_wanted) = match column_type {
            ValueType::Integers => ("a 64-bit or 32-bit integer", is_plain_integer(column)),
            ValueType::Booleans => ("a boolean", of_type == Type::BOOLEAN),
            ValueType::Texts => ("a text", of_type == Type::BYTE_ARRAY),
        };
        if column.max_rep_level() > 0 || !is_wanted {
            let found = match column.logical_type_ref() {
                Some(logical) => format!("{of_type} as {logical:?}"),
                None => of_type.to_string(),
            };
            return Err(CountsError::Type {
                column: name,
                found,
                wanted,
            });
        }
        Ok(Some(FoundColumn { name, place }))
    }

    /// Finds the column with the name `name`, which the file must have. `column_type` is the type that the values of
    /// the column must have.
    ///
    /// # Errors
    ///
    /// Returns an error if no column or several columns have the name, or if the column has a different type.
    pub(super) fn required(
        schema: &SchemaDescriptor,
        name: &'static str,
        column_type: ValueType,
    ) -> Result<FoundColumn, CountsError> {
        FoundColumn::find(schema, name, column_type)?.ok_or(CountsError::NoColumn(name))
    }

    /// Returns the index of the column in the file.
    pub(super) fn index(&self) -> usize {
        self.place
    }

    /// Returns `true` if the values of the column are unsigned integers.
    pub(super) fn is_unsigned(&self, schema: &SchemaDescriptor) -> bool {
        matches!(
            schema.column(self.place).logical_type_ref(),
            Some(LogicalType::Integer(integer)) if !integer.is_signed
        )
    }

    /// Creates a reader of the values of the column in the row group with the index `group`.
    ///
    /// # Errors
    ///
    /// Returns an error if the metadata of the column is damaged.
    pub(super) fn open(&self, file: &ParquetFile, group: usize) -> Result<Values, CountsError> {
        Ok(Values {
            column: self.name,
            reader: file.column(group, self.place)?,
            is_unsigned: self.is_unsigned(file.schema()),
            narrow: Vec::new(),
            levels: Vec::new(),
        })
    }
}

/// Returns `true` if the column contains plain integers. Returns `false` for dates, times and decimal numbers, although
/// they are also stored as integers.
fn is_plain_integer(column: &ColumnDescriptor) -> bool {
    use parquet::basic::ConvertedType;
    let is_integer = matches!(column.physical_type(), Type::INT32 | Type::INT64);
    let is_plain = matches!(
        column.logical_type_ref(),
        None | Some(LogicalType::Integer(_))
    );
    let is_other = matches!(
        column.converted_type(),
        ConvertedType::DECIMAL
            | ConvertedType::DATE
            | ConvertedType::TIME_MILLIS
            | ConvertedType::TIME_MICROS
            | ConvertedType::TIMESTAMP_MILLIS
            | ConvertedType::TIMESTAMP_MICROS
    );
    is_integer && is_plain && !is_other
}

/// A reader of the values of one column in one row group, in the order of the rows.
pub(super) struct Values {
    column: &'static str,
    reader: ColumnReader,
    /// Whether 32-bit values are unsigned.
    is_unsigned: bool,
    /// A buffer for 32-bit values.
    narrow: Vec<i32>,
    /// A buffer for definition levels.
    levels: Vec<i16>,
}

impl Values {
    /// Reads the next `rows` integers of the column into `values`, replacing its content. `row` is the number of the
    /// first of these rows in the file, for error messages.
    ///
    /// # Errors
    ///
    /// Returns an error if a value is null, if fewer than `rows` values are left, or if the file is damaged.
    pub(super) fn integers(
        &mut self,
        rows: usize,
        row: u64,
        values: &mut Vec<i64>,
    ) -> Result<(), CountsError> {
        match &mut self.reader {
            ColumnReader::Int64ColumnReader(reader) => {
                read::<Int64Type>(self.column, reader, rows, row, values, &mut self.levels)
            }
            ColumnReader::Int32ColumnReader(reader) => {
                let narrow = &mut self.narrow;
                read::<Int32Type>(self.column, reader, rows, row, narrow, &mut self.levels)?;
                values.clear();
                if self.is_unsigned {
                    values.extend(narrow.iter().map(|value| i64::from(value.cast_unsigned())));
                } else {
                    values.extend(narrow.iter().map(|value| i64::from(*value)));
                }
                Ok(())
            }
            _ => Err(self.other_type()),
        }
    }

    /// Reads the next `rows` booleans of the column into `values`, replacing its content. `row` is the number of the
    /// first of these rows in the file, for error messages.
    ///
    /// Fails for the same reasons as [`integers`](Values::integers).
    pub(super) fn booleans(
        &mut self,
        rows: usize,
        row: u64,
        values: &mut Vec<bool>,
    ) -> Result<(), CountsError> {
        match &mut self.reader {
            ColumnReader::BoolColumnReader(reader) => {
                read::<BoolType>(self.column, reader, rows, row, values, &mut self.levels)
            }
            _ => Err(self.other_type()),
        }
    }

    /// Reads the next `rows` strings of the column into `values`, replacing its content. `row` is the number of the
    /// first of these rows in the file, for error messages.
    ///
    /// Fails for the same reasons as [`integers`](Values::integers).
    pub(super) fn texts(
        &mut self,
        rows: usize,
        row: u64,
        values: &mut Vec<ByteArray>,
    ) -> Result<(), CountsError> {
        match &mut self.reader {
            ColumnReader::ByteArrayColumnReader(reader) => {
                read::<ByteArrayType>(self.column, reader, rows, row, values, &mut self.levels)
            }
            _ => Err(self.other_type()),
        }
    }

    /// Creates the error for a column whose type in a row group differs from its type in the schema.
    fn other_type(&self) -> CountsError {
        CountsError::Damaged(format!("the column \"{}\" changes its type", self.column))
    }
}

/// Reads the next `rows` values of a column into `values`, and their definition levels into `levels`. Replaces the
/// content of both vectors. `column` is the name of the column and `row` the number of the first row, for error
/// messages.
///
/// # Errors
///
/// Returns an error if a value is null, if fewer than `rows` values are left, or if the file is damaged.
fn read<T: DataType>(
    column: &'static str,
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    row: u64,
    values: &mut Vec<T::T>,
    levels: &mut Vec<i16>,
) -> Result<(), CountsError> {
    values.clear();
    levels.clear();
    let (records, found, _) = reader.read_records(rows, Some(levels), None, values)?;
    if found < records {
        return Err(CountsError::Null { column, row });
    }
    if records != rows || values.len() != rows {
        let problem = format!(
            "the column \"{column}\" ends at row {}",
            row + records as u64
        );
        return Err(CountsError::Damaged(problem));
    }
    Ok(())
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

//! Writes tables as Parquet files, one row group at a time.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use parquet::{
    basic::{Compression, ZstdLevel},
    data_type::{DataType, Int32Type},
    errors::ParquetError,
    file::{
        properties::{WriterProperties, WriterPropertiesBuilder},
        writer::{SerializedFileWriter, SerializedRowGroupWriter},
    },
    schema::parser::parse_message_type,
};

use crate::error::{Error, Result};

/// The number of rows in a row group of a Parquet file. It is small because every thread keeps a whole row group in
/// memory.
pub(crate) const ROWS_PER_GROUP: usize = 1 << 16;

/// A writer of a Parquet file that appends one row group at a time.
pub(crate) struct TableWriter<W: Write> {
    file: SerializedFileWriter<W>,
    /// The path of the file, for error messages.
    target: PathBuf,
}

/// Returns the writer properties that all Parquet files of polybook share: zstd compression, and the version of
/// polybook as the creator.
pub(crate) fn properties() -> WriterPropertiesBuilder {
    WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by(concat!("polybook ", env!("CARGO_PKG_VERSION")).to_owned())
}

impl<W: Write + Send> TableWriter<W> {
    /// Creates a writer that writes a Parquet file to `out`. Error messages name the path `target`. `schema` is a
    /// message type in Parquet's schema language. `properties` contains settings such as the compression.
    ///
    /// # Errors
    ///
    /// Returns an error if `schema` cannot be parsed, or if the first bytes cannot be written.
    pub(crate) fn new(
        out: W,
        target: &Path,
        schema: &str,
        properties: WriterProperties,
    ) -> Result<TableWriter<W>> {
        let file = parse_message_type(schema).and_then(|schema| {
            SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))
        });
        Ok(TableWriter {
            file: file.map_err(|err| not_written(target, err))?,
            target: target.to_owned(),
        })
    }

    /// Appends a row group to the file. Calls `write` with the new row group. `write` must write all columns of the row
    /// group, in the order of the schema.
    ///
    /// # Errors
    ///
    /// Returns an error that names the file if a column cannot be written.
    pub(crate) fn write_group(
        &mut self,
        write: impl FnOnce(&mut SerializedRowGroupWriter<'_, W>) -> Result<(), ParquetError>,
    ) -> Result<()> {
        let written = || {
            let mut group = self.file.next_row_group()?;
            write(&mut group)?;
            group.close()
        };
        written().map_err(|err| not_written(&self.target, err))?;
        Ok(())
    }

    /// Writes the footer of the file, and returns the underlying writer.
    ///
    /// # Errors
    ///
    /// Returns an error that names the file if the footer cannot be written.
    pub(crate) fn finish(self) -> Result<W> {
        let out = self.file.into_inner();
        out.map_err(|err| not_written(&self.target, err))
    }
}

/// Writes the next column of a row group. It must be a required column with the physical type `T`. `values` contains
/// the value of every row.
pub(crate) fn write_column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    values: impl Iterator<Item = T::T>,
) -> Result<(), ParquetError> {
    let mut column = group.next_column()?.expect("the schema has the column");
    let values: Vec<T::T> = values.collect();
    column.typed::<T>().write_batch(&values, None, None)?;
    column.close()
}

/// Writes the next column of a row group. It must be an optional column whose values are stored as 32-bit integers.
/// `values` contains the value of every row. `None` is written as null.
pub(crate) fn write_optional(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    values: impl Iterator<Item = Option<i16>> + Clone,
) -> Result<(), ParquetError> {
    let mut column = group.next_column()?.expect("the schema has the column");
    let levels: Vec<i16> = values.clone().map(|value| value.is_some().into()).collect();
    let values: Vec<i32> = values.flatten().map(i32::from).collect();
    column
        .typed::<Int32Type>()
        .write_batch(&values, Some(&levels), None)?;
    column.close()
}

/// Returns the operating system's error that caused an error of the `parquet` crate. Returns `None` if the error has
/// another cause, such as a damaged file.
pub(crate) fn system_error(err: ParquetError) -> Option<io::Error> {
    let ParquetError::External(inner) = err else {
        return None;
    };
    let inner = inner.downcast::<io::Error>().ok()?;
    // Only errors of the operating system have an error number. Others come from a decoder.
    inner.raw_os_error().is_some().then_some(*inner)
}

/// Converts an error of the `parquet` crate into an [`Error::Io`], which says that the file `target` could not be
/// written.
fn not_written(target: &Path, err: ParquetError) -> Error {
    let source = match err {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(err) => *err,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    };
    Error::Io {
        path: target.to_owned(),
        doing: "write",
        source,
    }
}

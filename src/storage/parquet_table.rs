//! Writing a table as a Parquet file: columns in, row groups out.

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

/// The number of rows in a row group of a Parquet file. It is small, because every thread holds one row group in
/// memory.
pub(crate) const ROWS_OF_GROUP: usize = 1 << 16;

/// A writer of a table to a Parquet file, one row group at a time.
pub(crate) struct TableWriter<W: Write> {
    file: SerializedFileWriter<W>,
    /// The path that errors contain.
    target: PathBuf,
}

/// Returns the properties that all Parquet files of polybook share: zstd compression, and polybook's version as the
/// creator.
pub(crate) fn properties() -> WriterPropertiesBuilder {
    WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by(concat!("polybook ", env!("CARGO_PKG_VERSION")).to_owned())
}

impl<W: Write + Send> TableWriter<W> {
    /// Creates a writer of a Parquet file to `out`. `target` is the path that error messages contain. `schema` is a
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

    /// Appends a row group to the file. `write` must write all of its columns, in the order of the schema.
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

/// Writes all values of the next column of a row group, a required column of the type `T`.
pub(crate) fn write_column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    values: impl Iterator<Item = T::T>,
) -> Result<(), ParquetError> {
    let mut column = group.next_column()?.expect("the schema has the column");
    let values: Vec<T::T> = values.collect();
    column.typed::<T>().write_batch(&values, None, None)?;
    column.close()
}

/// Writes all values of the next column of a row group, an optional column of integers. `None` becomes a null.
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

/// Returns the error of the operating system that caused an error of the crate `parquet`. Returns `None` for any other
/// error, such as damage.
pub(crate) fn system_error(err: ParquetError) -> Option<io::Error> {
    let ParquetError::External(inner) = err else {
        return None;
    };
    let inner = inner.downcast::<io::Error>().ok()?;
    // Only errors of the operating system have a number; the others are of a decoder.
    inner.raw_os_error().is_some().then_some(*inner)
}

/// Converts an error of the crate `parquet` to one that names the file `target`.
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

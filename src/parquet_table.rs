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

/// How many rows a row group has: few, because every thread holds one in memory.
pub(crate) const ROWS_OF_GROUP: usize = 1 << 16;

/// Writes a file.
pub(crate) struct TableWriter<W: Write> {
    file: SerializedFileWriter<W>,
    /// The path that errors name.
    target: PathBuf,
}

/// How all files are packed.
pub(crate) fn properties() -> WriterPropertiesBuilder {
    WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by(concat!("polybook ", env!("CARGO_PKG_VERSION")).to_owned())
}

impl<W: Write + Send> TableWriter<W> {
    /// Starts a file with a schema in the language of Parquet.
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

    /// Appends a row group, whose columns `write` writes.
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

    /// Ends the file.
    pub(crate) fn finish(self) -> Result<W> {
        let out = self.file.into_inner();
        out.map_err(|err| not_written(&self.target, err))
    }
}

/// Writes the values of the next column.
pub(crate) fn write_column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    values: impl Iterator<Item = T::T>,
) -> Result<(), ParquetError> {
    let mut column = group.next_column()?.expect("the schema has the column");
    let values: Vec<T::T> = values.collect();
    column.typed::<T>().write_batch(&values, None, None)?;
    column.close()
}

/// Writes the next column, which may have nulls.
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

/// Adds the path to an error of the crate `parquet`.
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

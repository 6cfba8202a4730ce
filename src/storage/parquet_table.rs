//! Writes tables as Parquet files, one row group at a time.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use parquet::{
    basic::{Compression, ZstdLevel},
    data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type},
    errors::ParquetError,
    file::{
        properties::{WriterProperties, WriterPropertiesBuilder},
        writer::{SerializedFileWriter, SerializedRowGroupWriter},
    },
    schema::parser::parse_message_type,
};

#[cfg(feature = "obs")]
use super::{
    column::{Cell, Column, ColumnType},
    output::{AtomicFile, BufferedFile},
};
use crate::{
    error::{Error, Result},
    task,
};

/// The number of rows in a row group of a Parquet file. It is small because every thread keeps a whole row group in
/// memory.
pub(crate) const ROWS_PER_GROUP: usize = 1 << 16;

/// A writer of a Parquet file that appends one row group at a time.
pub(crate) struct TableWriter<W: Write> {
    file: SerializedFileWriter<W>,
    /// The path of the file for error messages.
    target: PathBuf,
}

/// Returns the settings that all Parquet files of polybook share: zstd compression, and the version of polybook as the
/// creator.
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

    /// Appends a row group to the file. Calls `write` with the new row group. `write` must write all of its columns, in
    /// the order of the schema.
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
/// `values` contains the value of every row, and `None` is written as null.
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

/// The values of one column that [`ParquetRows`] has collected for the current row group.
#[cfg(feature = "obs")]
struct CollectedColumn {
    /// The definition level of each row: 1 if the row has a value, otherwise 0.
    levels: Vec<i16>,
    values: CollectedValues,
}

#[cfg(feature = "obs")]
enum CollectedValues {
    Texts(Vec<ByteArray>),
    Moves(Vec<i32>),
    Integers(Vec<i64>),
    Numbers(Vec<f64>),
    Flags(Vec<bool>),
}

#[cfg(feature = "obs")]
impl CollectedColumn {
    fn new(kind: ColumnType) -> CollectedColumn {
        CollectedColumn {
            levels: Vec::new(),
            values: match kind {
                ColumnType::Text => CollectedValues::Texts(Vec::new()),
                ColumnType::Move => CollectedValues::Moves(Vec::new()),
                ColumnType::Key | ColumnType::Integer => CollectedValues::Integers(Vec::new()),
                ColumnType::Number => CollectedValues::Numbers(Vec::new()),
                ColumnType::Flag => CollectedValues::Flags(Vec::new()),
            },
        }
    }

    fn push(&mut self, cell: &Cell<'_>) {
        match (&mut self.values, cell) {
            (CollectedValues::Texts(texts), Cell::Text(text)) => {
                texts.push(ByteArray::from(text.as_bytes().to_vec()));
            }
            (CollectedValues::Moves(moves), Cell::Integer(mv)) => moves.push(*mv as i32),
            (CollectedValues::Integers(all), Cell::Integer(number)) => all.push(*number),
            (CollectedValues::Integers(all), Cell::Key(key)) => all.push(key.cast_signed()),
            (CollectedValues::Numbers(all), Cell::Number(number)) => all.push(*number),
            (CollectedValues::Flags(all), Cell::Flag(flag)) => all.push(*flag),
            _ => return self.levels.push(0),
        }
        self.levels.push(1);
    }

    /// Writes the collected values as the next column of the row group `group`, and clears them.
    fn write(
        &mut self,
        group: &mut SerializedRowGroupWriter<'_, BufferedFile>,
    ) -> Result<(), ParquetError> {
        let mut column = group.next_column()?.expect("the schema has the column");
        let levels = std::mem::take(&mut self.levels);
        let levels = Some(&levels[..]);
        match &mut self.values {
            CollectedValues::Texts(texts) => {
                column
                    .typed::<ByteArrayType>()
                    .write_batch(texts, levels, None)?;
                texts.clear();
            }
            CollectedValues::Moves(moves) => {
                column
                    .typed::<Int32Type>()
                    .write_batch(moves, levels, None)?;
                moves.clear();
            }
            CollectedValues::Integers(all) => {
                column.typed::<Int64Type>().write_batch(all, levels, None)?;
                all.clear();
            }
            CollectedValues::Numbers(all) => {
                column
                    .typed::<DoubleType>()
                    .write_batch(all, levels, None)?;
                all.clear();
            }
            CollectedValues::Flags(all) => {
                column.typed::<BoolType>().write_batch(all, levels, None)?;
                all.clear();
            }
        }
        column.close()
    }
}

/// A writer of a Parquet file that receives the table row by row. It collects rows in memory until they fill a row
/// group.
#[cfg(feature = "obs")]
pub(super) struct ParquetRows {
    file: TableWriter<BufferedFile>,
    columns: Vec<CollectedColumn>,
    rows: usize,
}

#[cfg(feature = "obs")]
impl ParquetRows {
    /// Creates a writer that writes a table with the columns `columns` to `file`.
    pub(super) fn begin(file: AtomicFile, columns: &[Column]) -> Result<ParquetRows> {
        let fields = columns.iter().map(|column| {
            let (kind, annotation) = match column.kind {
                ColumnType::Text => ("binary", " (UTF8)"),
                ColumnType::Move => ("int32", ""),
                ColumnType::Key | ColumnType::Integer => ("int64", ""),
                ColumnType::Number => ("double", ""),
                ColumnType::Flag => ("boolean", ""),
            };
            format!("optional {kind} {}{annotation};", column.name)
        });
        let schema = format!(
            "message table {{ {} }}",
            fields.collect::<Vec<_>>().join(" ")
        );
        let path = file.target().to_owned();
        Ok(ParquetRows {
            file: TableWriter::new(
                BufferedFile::new(file),
                &path,
                &schema,
                properties().build(),
            )?,
            columns: columns
                .iter()
                .map(|column| CollectedColumn::new(column.kind))
                .collect(),
            rows: 0,
        })
    }

    /// Appends a row to the file. `row` contains one cell for each column.
    pub(super) fn push(&mut self, row: &[Cell<'_>]) -> Result<()> {
        for (column, cell) in self.columns.iter_mut().zip(row) {
            column.push(cell);
        }
        self.rows += 1;
        if self.rows == ROWS_PER_GROUP {
            self.write_group()
        } else {
            Ok(())
        }
    }

    fn write_group(&mut self) -> Result<()> {
        task::fault("write rows");
        self.rows = 0;
        let mut columns = self.columns.iter_mut();
        self.file
            .write_group(|group| columns.try_for_each(|column| column.write(group)))
    }

    /// Writes the remaining rows and the footer, and renames the file to its target.
    pub(super) fn commit(mut self) -> Result<()> {
        if self.rows > 0 {
            self.write_group()?;
        }
        self.file.finish()?.commit()
    }
}

/// Returns the error of the operating system that caused an error of the crate `parquet`. Returns `None` if the error
/// has another cause, such as a damaged file.
pub(crate) fn system_error(err: ParquetError) -> Option<io::Error> {
    let ParquetError::External(inner) = err else {
        return None;
    };
    let inner = inner.downcast::<io::Error>().ok()?;
    // Only errors of the operating system have an error number. Others come from a decoder.
    inner.raw_os_error().is_some().then_some(*inner)
}

/// Converts an error of the crate `parquet` to an [`Error::Io`] with the message that `target` could not be written.
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

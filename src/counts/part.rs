//! Writing one Parquet file: rows in, row groups out.

use std::{
    fs::File,
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parquet::{
    basic::{Compression, Encoding, ZstdLevel},
    data_type::{BoolType, DataType, Int32Type, Int64Type},
    errors::ParquetError,
    file::{
        metadata::SortingColumn,
        properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder},
        writer::{SerializedFileWriter, SerializedRowGroupWriter},
    },
    schema::{parser::parse_message_type, types::ColumnPath},
};

use super::{
    about::Listed,
    layout::{BLACK, IDENTITY, KEY, MOVE, PART_SCHEMA, ROWS_OF_GROUP, Row, VARIANT_SCHEMA},
    summed::SummedFile,
};
use crate::error::{At, Error, Result};

/// Adds the path to an error of the crate `parquet`.
pub(super) fn not_written(target: &Path, err: ParquetError) -> Error {
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

/// How all files are packed.
pub(super) fn properties() -> Result<WriterPropertiesBuilder, ParquetError> {
    Ok(WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_created_by(concat!("polybook ", env!("CARGO_PKG_VERSION")).to_owned()))
}

/// Writes the values of the next column.
pub(super) fn write_column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, SummedFile>,
    values: impl Iterator<Item = T::T>,
) -> Result<(), ParquetError> {
    let mut column = group.next_column()?.expect("the schema has the column");
    let values: Vec<T::T> = values.collect();
    column.typed::<T>().write_batch(&values, None, None)?;
    column.close()
}

/// Writes a part.
pub(super) struct PartWriter<'a> {
    file: SerializedFileWriter<SummedFile>,
    name: String,
    /// The path that errors name.
    target: &'a Path,
    stop: &'a AtomicBool,
    with_identities: bool,
    /// Those of the present row group.
    rows: Vec<Row>,
    written: u64,
    plies: u64,
}

impl<'a> PartWriter<'a> {
    /// Starts the part `name` in a directory that will be `target`.
    pub(super) fn create(
        directory: &Path,
        name: String,
        target: &'a Path,
        with_identities: bool,
        stop: &'a AtomicBool,
    ) -> Result<PartWriter<'a>> {
        let file = File::create_new(directory.join(&name)).at(target, "write")?;
        let open = || {
            let schema = if with_identities {
                VARIANT_SCHEMA
            } else {
                PART_SCHEMA
            };
            let sorted = |column_idx| SortingColumn {
                column_idx,
                descending: false,
                nulls_first: false,
            };
            // Sorted keys differ little from one to the next, and no two are alike for long.
            let mut properties =
                properties()?.set_sorting_columns(Some(vec![sorted(0), sorted(1)]));
            // Readers look for keys. The range of other columns is nearly all there can be in each group.
            properties = properties
                .set_statistics_enabled(EnabledStatistics::None)
                .set_column_statistics_enabled(KEY.into(), EnabledStatistics::Page);
            // Each page costs its reader a beginning.
            properties = properties.set_data_page_row_count_limit(ROWS_OF_GROUP);
            // These are as long when they are packed, and take longer to read.
            for column in [KEY, MOVE, BLACK, IDENTITY].map(ColumnPath::from) {
                properties = properties.set_column_compression(column, Compression::UNCOMPRESSED);
            }
            for column in [KEY, IDENTITY].map(ColumnPath::from) {
                properties = properties
                    .set_column_dictionary_enabled(column.clone(), false)
                    .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
            }
            let schema = Arc::new(parse_message_type(schema)?);
            let file = SummedFile::new(file);
            SerializedFileWriter::new(file, schema, Arc::new(properties.build()))
        };
        Ok(PartWriter {
            file: open().map_err(|err| not_written(target, err))?,
            name,
            target,
            stop,
            with_identities,
            rows: Vec::new(),
            written: 0,
            plies: 0,
        })
    }

    /// Appends a row.
    pub(super) fn push(&mut self, row: Row) -> Result<()> {
        self.plies += row.stats.games();
        self.rows.push(row);
        if self.rows.len() == ROWS_OF_GROUP {
            self.write_group()?;
        }
        Ok(())
    }

    /// Writes the rows so far as a row group.
    fn write_group(&mut self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        self.written += self.rows.len() as u64;
        let (file, rows) = (&mut self.file, &self.rows);
        let mut write = || {
            let mut group = file.next_row_group()?;
            let rows = || rows.iter();
            let integers = |group: &mut _, value: fn(&Row) -> u64| {
                write_column::<Int64Type>(group, rows().map(|row| value(row).cast_signed()))
            };
            integers(&mut group, |row| row.key)?;
            write_column::<Int32Type>(&mut group, rows().map(|row| i32::from(row.mv.0)))?;
            write_column::<BoolType>(&mut group, rows().map(|row| row.turn.is_black()))?;
            integers(&mut group, |row| row.stats.wins)?;
            integers(&mut group, |row| row.stats.draws)?;
            integers(&mut group, |row| row.stats.losses)?;
            if self.with_identities {
                integers(&mut group, |row| row.identity)?;
            }
            group.close()
        };
        write().map_err(|err| not_written(self.target, err))?;
        self.rows.clear();
        Ok(())
    }

    /// Ends the part.
    pub(super) fn finish(mut self) -> Result<Listed> {
        if !self.rows.is_empty() {
            self.write_group()?;
        }
        self.file
            .finish()
            .map_err(|err| not_written(self.target, err))?;
        Ok(Listed {
            file: self.name,
            rows: self.written,
            bytes: self.file.bytes_written() as u64,
            plies: self.plies,
            crc32: Some(self.file.inner().crc32()),
        })
    }
}

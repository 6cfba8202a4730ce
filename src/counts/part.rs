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
    about::ListedFile,
    layout::{
        BLACK, ClassRow, IDENTITY, KEY, MONTH, MOVE, RATED, RATING_GROUP, RATING_SUM,
        ROWS_OF_GROUP, Row, SPEED, part_schema, rating_groups,
    },
    summed::SummedFile,
};
use crate::{
    error::{At, Error, Result},
    tally::{By, Class, Ratings},
};

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

/// Writes the columns of classes.
fn write_classes(
    group: &mut SerializedRowGroupWriter<'_, SummedFile>,
    by: By,
    classes: &[(Class, Ratings)],
) -> Result<(), ParquetError> {
    let groups: Vec<i32> = rating_groups().collect();
    let classes = || classes.iter();
    let mut narrow = |wanted: bool, value: &dyn Fn(Class) -> i32| match wanted {
        true => write_column::<Int32Type>(group, classes().map(|(class, _)| value(*class))),
        false => Ok(()),
    };
    narrow(by.speed, &|class| class.speed.into())?;
    narrow(by.rating, &|class| groups[usize::from(class.group)])?;
    narrow(by.month, &|class| class.month.cast_signed())?;
    write_column::<BoolType>(group, classes().map(|(class, _)| class.book_only))?;
    let ratings = || classes().map(|(_, ratings)| ratings);
    write_column::<Int64Type>(group, ratings().map(|of| of.sum.cast_signed()))?;
    write_column::<Int64Type>(group, ratings().map(|of| of.games.cast_signed()))
}

/// How many rows a page has of counts by class: adding them up reads a page of each column of each directory.
const ROWS_OF_CLASSED_PAGE: usize = 1 << 13;

/// Writes a part.
pub(super) struct PartWriter<'a> {
    file: SerializedFileWriter<SummedFile>,
    name: String,
    /// The path that errors name.
    target: &'a Path,
    stop: &'a AtomicBool,
    with_identities: bool,
    by: By,
    /// Those of the present row group.
    rows: Vec<Row>,
    /// Their classes, if they have some.
    classes: Vec<(Class, Ratings)>,
    written: u64,
    plies: u64,
}

impl<'a> PartWriter<'a> {
    /// Starts the part `name` in a directory that will be `target`.
    pub(super) fn create(
        directory: &Path,
        name: String,
        target: &'a Path,
        (with_identities, by): (bool, By),
        stop: &'a AtomicBool,
    ) -> Result<PartWriter<'a>> {
        let file = File::create_new(directory.join(&name)).at(target, "write")?;
        let open = || {
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
            let rows_of_page = if by.is_none() {
                ROWS_OF_GROUP
            } else {
                ROWS_OF_CLASSED_PAGE
            };
            properties = properties.set_data_page_row_count_limit(rows_of_page);
            // These are as long when they are packed, and take longer to read.
            let packed_already = [
                KEY,
                MOVE,
                BLACK,
                IDENTITY,
                SPEED,
                RATING_GROUP,
                MONTH,
                RATING_SUM,
            ];
            for column in packed_already.map(ColumnPath::from) {
                properties = properties.set_column_compression(column, Compression::UNCOMPRESSED);
            }
            for column in [KEY, IDENTITY, SPEED, RATING_SUM, RATED].map(ColumnPath::from) {
                properties = properties
                    .set_column_dictionary_enabled(column.clone(), false)
                    .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
            }
            let schema = Arc::new(parse_message_type(&part_schema(with_identities, by))?);
            let file = SummedFile::new(file);
            SerializedFileWriter::new(file, schema, Arc::new(properties.build()))
        };
        Ok(PartWriter {
            file: open().map_err(|err| not_written(target, err))?,
            name,
            target,
            stop,
            with_identities,
            by,
            rows: Vec::new(),
            classes: Vec::new(),
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

    /// Appends a row with its class.
    pub(super) fn push_classed(&mut self, row: &ClassRow) -> Result<()> {
        self.classes.push((row.class, row.ratings));
        self.push(row.row)
    }

    /// Writes the rows so far as a row group.
    fn write_group(&mut self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        self.written += self.rows.len() as u64;
        let (file, rows, by, classes) = (&mut self.file, &self.rows, self.by, &self.classes);
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
            if !by.is_none() {
                write_classes(&mut group, by, classes)?;
            }
            group.close()
        };
        write().map_err(|err| not_written(self.target, err))?;
        self.rows.clear();
        self.classes.clear();
        Ok(())
    }

    /// Ends the part.
    pub(super) fn finish(mut self) -> Result<ListedFile> {
        if !self.rows.is_empty() {
            self.write_group()?;
        }
        self.file
            .finish()
            .map_err(|err| not_written(self.target, err))?;
        Ok(ListedFile {
            file: self.name,
            rows: self.written,
            bytes: self.file.bytes_written() as u64,
            plies: self.plies,
            crc32: Some(self.file.inner().crc32()),
        })
    }
}

//! Writing one part: a Parquet file of sorted rows.

use std::{
    fs::File,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use parquet::{
    basic::{Compression, Encoding},
    data_type::{BoolType, Int32Type, Int64Type},
    errors::ParquetError,
    file::{
        metadata::SortingColumn, properties::EnabledStatistics, writer::SerializedRowGroupWriter,
    },
    schema::types::ColumnPath,
};

use super::{
    about::ListedFile,
    error::CountsError,
    layout::{
        BLACK, ClassRow, DRAWS, IDENTITY, KEY, LOSSES, MONTH, MOVE, RATED, RATING_GROUP,
        RATING_SUM, Row, SPEED, WINS, part_schema, rating_groups,
    },
    rows::{MOST_GAMES, MOST_OF_RESULT},
};
use crate::{
    error::{At, Error, Result},
    parquet_table::{ROWS_OF_GROUP, TableWriter, properties, write_column},
    tally::{CountClass, Grouping, Ratings, Stats},
};

/// Writes the columns of classes and ratings of a row group.
fn write_classes(
    group: &mut SerializedRowGroupWriter<'_, File>,
    by: Grouping,
    classes: &[(CountClass, Ratings)],
) -> Result<(), ParquetError> {
    let groups: Vec<i32> = rating_groups().collect();
    let classes = || classes.iter();
    let mut narrow = |wanted: bool, value: &dyn Fn(CountClass) -> i32| match wanted {
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

/// The number of rows in a page of counts by class. Merging directories keeps one page of each column of each directory
/// in memory, so pages are smaller than those of other counts.
const ROWS_OF_CLASSED_PAGE: usize = 1 << 13;

/// Writes a part, one row group at a time.
pub(super) struct PartWriter<'a> {
    file: TableWriter<File>,
    directory: &'a Path,
    name: String,
    /// The path that errors name.
    target: &'a Path,
    stop: &'a AtomicBool,
    with_identities: bool,
    by: Grouping,
    /// The rows of the current row group.
    rows: Vec<Row>,
    /// The classes and ratings of `rows`; empty if the counts are not by class.
    classes: Vec<(CountClass, Ratings)>,
    /// The number of rows in the finished row groups.
    written: u64,
    /// The number of half-moves in all rows.
    plies: u64,
}

impl<'a> PartWriter<'a> {
    /// Creates the part `name` in `directory`, which will be renamed to `target`.
    ///
    /// # Errors
    ///
    /// Returns an error if the file exists or cannot be created.
    pub(super) fn create(
        directory: &'a Path,
        name: String,
        target: &'a Path,
        (with_identities, by): (bool, Grouping),
        stop: &'a AtomicBool,
    ) -> Result<PartWriter<'a>> {
        let file = File::create_new(directory.join(&name)).at(target, "write")?;
        let sorted = |column_idx| SortingColumn {
            column_idx,
            descending: false,
            nulls_first: false,
        };
        // Columns 0 and 1 are the key and the move.
        let mut properties = properties().set_sorting_columns(Some(vec![sorted(0), sorted(1)]));
        // Readers filter by key. In other columns, each group's minimum and maximum span nearly the whole range and
        // help no reader.
        properties = properties
            .set_statistics_enabled(EnabledStatistics::None)
            .set_column_statistics_enabled(KEY.into(), EnabledStatistics::Page);
        // Opening a page costs its reader time, so a row group of counts that are not by class has one page per column.
        let rows_of_page = if by.is_none() {
            ROWS_OF_GROUP
        } else {
            ROWS_OF_CLASSED_PAGE
        };
        properties = properties.set_data_page_row_count_limit(rows_of_page);
        // Compression makes these encoded columns no smaller, and slower to read.
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
        // Rows by class have few games, so a dictionary of results would cost more time than it saves space.
        let results = [WINS, DRAWS, LOSSES].into_iter();
        let results = results.filter(|_| !by.is_none());
        let numbers = [KEY, IDENTITY, SPEED, RATING_SUM, RATED].into_iter();
        for column in numbers.chain(results).map(ColumnPath::from) {
            properties = properties
                .set_column_dictionary_enabled(column.clone(), false)
                .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
        }
        let schema = part_schema(with_identities, by);
        Ok(PartWriter {
            file: TableWriter::new(file, target, &schema, properties.build())?,
            directory,
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
    ///
    /// # Errors
    ///
    /// Returns an error if the results exceed [`MOST_OF_RESULT`], if writing a full row group fails, or if the run was
    /// interrupted.
    pub(super) fn push(&mut self, row: Row) -> Result<()> {
        let Stats {
            wins,
            draws,
            losses,
        } = row.stats;
        if wins.max(draws).max(losses) > MOST_OF_RESULT {
            return Err(Error::format(self.target, CountsError::Overflow));
        }
        self.plies += row.plies();
        self.rows.push(row);
        if self.rows.len() == ROWS_OF_GROUP {
            self.write_group()?;
        }
        Ok(())
    }

    /// Appends a row with its class and ratings. Otherwise like [`push`](PartWriter::push).
    pub(super) fn push_classed(&mut self, row: &ClassRow) -> Result<()> {
        if row.ratings.sum > MOST_GAMES {
            return Err(Error::format(self.target, CountsError::Overflow));
        }
        self.classes.push((row.class, row.ratings));
        self.push(row.row)
    }

    /// Writes the collected rows as a row group.
    ///
    /// # Errors
    ///
    /// Returns an error if writing fails, or [`Error::Interrupted`] if `stop` is set.
    fn write_group(&mut self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        self.written += self.rows.len() as u64;
        let (rows, by, classes) = (&self.rows, self.by, &self.classes);
        self.file.write_group(|group| {
            let rows = || rows.iter();
            let integers = |group: &mut _, value: fn(&Row) -> u64| {
                write_column::<Int64Type>(group, rows().map(|row| value(row).cast_signed()))
            };
            integers(group, |row| row.key)?;
            write_column::<Int32Type>(group, rows().map(|row| i32::from(row.mv.0)))?;
            write_column::<BoolType>(group, rows().map(|row| row.turn.is_black()))?;
            integers(group, |row| row.stats.wins)?;
            integers(group, |row| row.stats.draws)?;
            integers(group, |row| row.stats.losses)?;
            if self.with_identities {
                integers(group, |row| row.identity)?;
            }
            match by.is_none() {
                true => Ok(()),
                false => write_classes(group, by, classes),
            }
        })?;
        self.rows.clear();
        self.classes.clear();
        Ok(())
    }

    /// Writes the last row group and the metadata, and returns the sidecar's entry for the part.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written, or read again for its checksum.
    pub(super) fn finish(mut self) -> Result<ListedFile> {
        if !self.rows.is_empty() {
            self.write_group()?;
        }
        self.file.finish()?;
        let listed = ListedFile::of(self.directory, self.name, self.written, self.plies);
        listed.at(self.target, "read")
    }
}

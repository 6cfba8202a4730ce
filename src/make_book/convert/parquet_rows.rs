//! Writes tables as Parquet files, which DuckDB, Spark, pandas and polars can read.

use parquet::{
    data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type},
    errors::ParquetError,
    file::writer::SerializedRowGroupWriter,
};
use serde_json::Value;

use crate::{
    error::Result,
    storage::{
        output::{AtomicFile, BufferedFile},
        parquet_table::{ROWS_PER_GROUP, TableWriter, properties, write_column},
    },
    task,
};

/// The names of the table columns that contain text. All other columns contain numbers.
const TEXTS: [&str; 3] = ["fen", "san", "uci"];

/// The name of the column that contains moves as 16-bit numbers. The column stores 32-bit integers, like the column of
/// moves in the Parquet files of counts, because polars and Arrow can join only columns of the same type.
const MOVE: &str = "move";

/// The values of one column that have been collected for the current row group of a Parquet file.
enum ColumnValues {
    Numbers(Vec<i64>),
    Moves(Vec<i32>),
    /// Texts, where `None` is written as null.
    Texts(Vec<Option<String>>),
}

impl ColumnValues {
    /// Writes the collected values as the next column of the row group `group`, and clears them.
    fn write(
        &mut self,
        group: &mut SerializedRowGroupWriter<'_, BufferedFile>,
    ) -> Result<(), ParquetError> {
        match self {
            ColumnValues::Numbers(numbers) => write_column::<Int64Type>(group, numbers.drain(..)),
            ColumnValues::Moves(moves) => write_column::<Int32Type>(group, moves.drain(..)),
            ColumnValues::Texts(texts) => {
                let levels: Vec<i16> = texts.iter().map(|text| text.is_some().into()).collect();
                let texts = texts.drain(..).flatten();
                let texts: Vec<ByteArray> = texts.map(|text| text.into_bytes().into()).collect();
                let mut column = group.next_column()?.expect("the schema has the column");
                let values = column.typed::<ByteArrayType>();
                values.write_batch(&texts, Some(&levels), None)?;
                column.close()
            }
        }
    }
}

/// A Parquet file that is written row by row. Rows are collected in memory until they fill a row group.
pub(super) struct ParquetRows {
    file: TableWriter<BufferedFile>,
    columns: Vec<(String, ColumnValues)>,
    rows: usize,
}

impl ParquetRows {
    /// Begins a Parquet file in `file`. `names` contains the names of the columns.
    pub(super) fn begin<'a>(
        file: AtomicFile,
        names: impl Iterator<Item = &'a str>,
    ) -> Result<ParquetRows> {
        let (mut columns, mut fields) = (Vec::new(), String::new());
        for name in names.map(str::to_ascii_lowercase) {
            let (kind, column) = match &*name {
                name if TEXTS.contains(&name) => (
                    format!("optional binary {name} (UTF8)"),
                    ColumnValues::Texts(Vec::new()),
                ),
                MOVE => (
                    format!("required int32 {MOVE}"),
                    ColumnValues::Moves(Vec::new()),
                ),
                name => (
                    format!("required int64 {name}"),
                    ColumnValues::Numbers(Vec::new()),
                ),
            };
            fields += &format!("{kind}; ");
            columns.push((name, column));
        }
        let path = file.target().to_owned();
        let (schema, out) = (
            format!("message moves {{ {fields}}}"),
            BufferedFile::new(file),
        );
        Ok(ParquetRows {
            file: TableWriter::new(out, &path, &schema, properties().build())?,
            columns,
            rows: 0,
        })
    }

    /// Appends a row to the file. `row` is a JSON object with one field for each column. Its position key is a string
    /// of 16 hex digits, which the file stores as a signed integer with the same bits, as in [counts](crate::formats::counts).
    pub(super) fn push(&mut self, row: &Value) -> Result<()> {
        for (name, column) in &mut self.columns {
            let value = &row[&**name];
            match column {
                ColumnValues::Texts(texts) => texts.push(value.as_str().map(str::to_owned)),
                ColumnValues::Moves(moves) => {
                    let bits = value.as_i64().and_then(|bits| i32::try_from(bits).ok());
                    moves.push(bits.unwrap_or(0));
                }
                ColumnValues::Numbers(numbers) => numbers.push(match value.as_str() {
                    Some(key) => u64::from_str_radix(key, 16).map_or(0, u64::cast_signed),
                    None => value.as_i64().unwrap_or(i64::MAX),
                }),
            }
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
            .write_group(|group| columns.try_for_each(|(_, column)| column.write(group)))
    }

    /// Writes the remaining rows and the footer, and renames the file to its target.
    pub(super) fn commit(mut self) -> Result<()> {
        if self.rows > 0 {
            self.write_group()?;
        }
        self.file.finish()?.commit()
    }
}

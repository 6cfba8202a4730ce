//! Writes tables to files as comma-separated values, JSON lines or Parquet.
//!
//! A table has typed [columns](Column), and is written row by row. Every command that writes tables uses [`Table`], so
//! numbers, keys and missing values have the same form in all tables:
//!
//! | value | CSV | JSON lines | Parquet |
//! |---|---|---|---|
//! | missing | an empty cell | `null` | null |
//! | text | as it is, but safe for spreadsheets | a string | a UTF-8 string |
//! | key | 16 hexadecimal digits | 16 hexadecimal digits | the same bits as a signed integer of 64 bits |
//! | integer | decimal | a number | an integer of 64 bits, or of 32 bits for [moves](ColumnType::Move) |
//! | number | decimal | a number | a double |
//! | flag | `true` or `false` | `true` or `false` | a boolean |

use std::{
    borrow::Cow,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::Value;

pub use super::column::{Cell, Column, ColumnType};
use super::output::{AtomicFile, BufferedFile};
#[cfg(feature = "parquet")]
use super::parquet_table::ParquetRows;
use crate::{
    error::{At, Result},
    task,
    text::CsvWriter,
};

/// The file format of a table.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum TableFormat {
    /// Comma-separated values. The first line contains the names of the columns.
    Csv,
    /// JSON lines: one JSON document for each row.
    Jsonl,
    /// A Parquet file, which DuckDB, Spark and data frame libraries can read.
    #[cfg(feature = "parquet")]
    Parquet,
}

impl TableFormat {
    /// Returns the format for the extension of a file: `.csv`, `.jsonl` or `.parquet`, in upper or lower case. Returns
    /// `None` for any other extension.
    pub fn of_path(path: &Path) -> Option<TableFormat> {
        let ending = path.extension()?.to_str()?.to_ascii_lowercase();
        match &*ending {
            "csv" => Some(TableFormat::Csv),
            "jsonl" => Some(TableFormat::Jsonl),
            #[cfg(feature = "parquet")]
            "parquet" => Some(TableFormat::Parquet),
            _ => None,
        }
    }
}

/// A table that is being written to a file. The file replaces its target when the table is complete.
pub struct Table {
    path: PathBuf,
    columns: Arc<[Column]>,
    rows: RowWriter,
}

enum RowWriter {
    Csv(Box<CsvWriter<AtomicFile>>),
    Jsonl(Box<BufferedFile>),
    #[cfg(feature = "parquet")]
    Parquet(Box<ParquetRows>),
}

impl Table {
    /// Creates a table that is written to `file`.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written.
    pub fn begin(
        file: AtomicFile,
        format: TableFormat,
        columns: impl IntoIterator<Item = Column>,
    ) -> Result<Table> {
        let columns = Arc::from_iter(columns);
        let path = file.target().to_owned();
        let rows = match format {
            TableFormat::Jsonl => RowWriter::Jsonl(Box::new(BufferedFile::new(file))),
            #[cfg(feature = "parquet")]
            TableFormat::Parquet => {
                RowWriter::Parquet(Box::new(ParquetRows::begin(file, &columns)?))
            }
            TableFormat::Csv => {
                let mut writer = CsvWriter::new(file);
                let names = columns.iter().map(|column| column.name);
                writer.write_row(names.map(Cow::from)).at(&path, "write")?;
                RowWriter::Csv(Box::new(writer))
            }
        };
        Ok(Table {
            path,
            columns,
            rows,
        })
    }

    /// Writes a row. `row` contains one cell for each column. The cell must have the type of the column or be missing.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written.
    pub fn write(&mut self, row: &[Cell<'_>]) -> Result<()> {
        debug_assert_eq!(row.len(), self.columns.len());
        let written = match &mut self.rows {
            RowWriter::Csv(writer) => writer.write_row(row.iter().map(|cell| match cell {
                Cell::Missing => Cow::from(""),
                Cell::Text(text) => Cow::from(&**text),
                Cell::Key(key) => format!("{key:016x}").into(),
                cell => cell.to_json().to_string().into(),
            })),
            RowWriter::Jsonl(out) => {
                task::fault("write lines");
                write_document(out, &self.columns, row)
            }
            #[cfg(feature = "parquet")]
            RowWriter::Parquet(rows) => return rows.push(row),
        };
        written.at(&self.path, "write")
    }

    /// Writes the row that a JSON document describes. Leaves out values for which the table has no column.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written.
    pub fn write_document(&mut self, document: &Value) -> Result<()> {
        let columns = Arc::clone(&self.columns);
        let row = columns.iter().map(|column| column.cell(document));
        self.write(&row.collect::<Vec<_>>())
    }

    /// Flushes the complete table to disk and renames the file to its target.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written or renamed.
    pub fn commit(self) -> Result<()> {
        match self.rows {
            RowWriter::Csv(writer) => writer.into_inner().at(&self.path, "write")?.commit(),
            RowWriter::Jsonl(out) => out.commit(),
            #[cfg(feature = "parquet")]
            RowWriter::Parquet(rows) => rows.commit(),
        }
    }
}

/// Writes a row as a JSON document on a line of its own.
fn write_document(out: &mut impl Write, columns: &[Column], row: &[Cell<'_>]) -> io::Result<()> {
    for (number, (column, cell)) in columns.iter().zip(row).enumerate() {
        out.write_all(if number == 0 { b"{" } else { b"," })?;
        serde_json::to_writer(&mut *out, column.name)?;
        out.write_all(b":")?;
        match cell {
            Cell::Text(text) => serde_json::to_writer(&mut *out, text)?,
            cell => serde_json::to_writer(&mut *out, &cell.to_json())?,
        }
    }
    out.write_all(b"}\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::storage::output::begin_text;

    const COLUMNS: [Column; 7] = [
        Column::new("key", ColumnType::Key),
        Column::new("move", ColumnType::Move),
        Column::new("white", ColumnType::Text),
        Column::new("games", ColumnType::Integer),
        Column::at("score", ColumnType::Number, "/scores/0"),
        Column::at("eco", ColumnType::Text, "/opening/eco"),
        Column::new("active", ColumnType::Flag),
    ];

    fn written(name: &str) -> Vec<u8> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        let format = TableFormat::of_path(&path).unwrap();
        let mut table = Table::begin(begin_text(&path, false).unwrap(), format, COLUMNS).unwrap();
        let full = json!({
            "key": "f63b96181691fc9c", "move": 796, "white": "=Tal, \"M\"\n", "games": 9_007_199_254_740_993_u64,
            "scores": [0.1, 2], "opening": {"eco": "B20", "name": "x"}, "active": true, "more": [1],
        });
        table.write_document(&full).unwrap();
        table
            .write_document(&json!({"games": "x", "opening": null}))
            .unwrap();
        table.commit().unwrap();
        std::fs::read(path).unwrap()
    }

    #[test]
    fn text_formats_have_exact_numbers_and_missing_values() {
        let csv = String::from_utf8(written("a.CSV")).unwrap();
        let expected = "key,move,white,games,score,eco,active\n\
            f63b96181691fc9c,796,\"'=Tal, \"\"M\"\"\\u000a\",9007199254740993,0.1,B20,true\n,,,,,,\n";
        assert_eq!(csv, expected);
        let lines = String::from_utf8(written("a.jsonl")).unwrap();
        let expected = "{\"key\":\"f63b96181691fc9c\",\"move\":796,\"white\":\"=Tal, \\\"M\\\"\\n\",\
            \"games\":9007199254740993,\"score\":0.1,\"eco\":\"B20\",\"active\":true}\n\
            {\"key\":null,\"move\":null,\"white\":null,\"games\":null,\"score\":null,\"eco\":null,\"active\":null}\n";
        assert_eq!(lines, expected);
    }

    #[cfg(feature = "parquet")]
    #[test]
    fn parquet_files_have_typed_columns() {
        use parquet::file::reader::{FileReader as _, SerializedFileReader};

        let bytes = bytes::Bytes::from(written("a.parquet"));
        let reader = SerializedFileReader::new(bytes).unwrap();
        let rows = reader.get_row_iter(None).unwrap();
        let rows: Vec<String> = rows.map(|row| row.unwrap().to_string()).collect();
        let key = 0xf63b_9618_1691_fc9c_u64.cast_signed();
        let full = format!(
            "{{key: {key}, move: 796, white: \"=Tal, \"M\"\n\", games: 9007199254740993, score: 0.1, eco: \"B20\", \
             active: true}}"
        );
        let empty = "{key: null, move: null, white: null, games: null, score: null, eco: null, active: null}";
        assert_eq!(rows, [full.as_str(), empty]);
    }

    #[test]
    fn other_endings_are_no_tables() {
        for name in ["a", "a.json", "a.csv.gz", "csv", ".csv"] {
            assert_eq!(TableFormat::of_path(Path::new(name)), None, "{name}");
        }
    }
}

//! Writes tables of databases and books for spreadsheets and scripts, as comma-separated values, JSON lines or Parquet
//! files.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use serde::Serialize;
use shakmaty::{Color, Position, variant::VariantPosition};

#[cfg(feature = "parquet")]
use super::parquet_rows::ParquetRows;
use super::{Convert, Converted};
use crate::{
    chess::position::{BookMove, Variant, fen_of, key},
    error::{At, Result},
    formats::{
        book::{Scale, Scaling, Weights},
        counts::MoveFilter,
        obs::{ObsRow, SkippedRows, legal_move, position_of},
    },
    games::results::Wdl,
    storage::output::{AtomicFile, BufferedFile},
    task,
    text::CsvWriter,
};

/// The file format of a table.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum TableFormat {
    /// Comma-separated values. The first line contains the names of the columns.
    Csv,
    /// JSON lines, with one document per row.
    Jsonl,
    /// A Parquet file, which DuckDB, Spark and data frame libraries can read.
    #[cfg(feature = "parquet")]
    Parquet,
}

/// A table that is being written to a file in one of the [formats](TableFormat). The file replaces its target when the
/// table is complete.
pub(super) struct TableOutput {
    path: PathBuf,
    rows: RowWriter,
}

enum RowWriter {
    Csv(Box<CsvWriter<AtomicFile>>),
    Jsonl(Box<BufferedFile>),
    #[cfg(feature = "parquet")]
    Parquet(Box<ParquetRows>),
}

impl TableOutput {
    /// Begins a table in `file`. `columns` contains the names of the columns, separated by commas. A table in JSON lines
    /// does not need them, because each of its rows contains the names.
    pub(super) fn begin(
        file: AtomicFile,
        format: TableFormat,
        columns: &str,
    ) -> Result<TableOutput> {
        let path = file.target().to_owned();
        let rows = match format {
            TableFormat::Jsonl => RowWriter::Jsonl(Box::new(BufferedFile::new(file))),
            #[cfg(feature = "parquet")]
            TableFormat::Parquet => {
                RowWriter::Parquet(Box::new(ParquetRows::begin(file, columns.split(','))?))
            }
            TableFormat::Csv => {
                let mut writer = CsvWriter::new(file);
                let columns: Vec<&str> = columns.split(',').collect();
                writer.write(&columns).at(&path, "write")?;
                RowWriter::Csv(Box::new(writer))
            }
        };
        Ok(TableOutput { path, rows })
    }

    /// Writes a row. In comma-separated values, the columns have the order of the fields of `row`. This order must
    /// agree with the column names passed to [`begin`](Self::begin).
    pub(super) fn write(&mut self, row: &impl Serialize) -> Result<()> {
        let written = match &mut self.rows {
            RowWriter::Csv(writer) => writer.write(row),
            RowWriter::Jsonl(out) => {
                task::fault("write lines");
                let written = serde_json::to_writer(&mut *out, row).map_err(io::Error::from);
                written.and_then(|()| out.write_all(b"\n"))
            }
            #[cfg(feature = "parquet")]
            RowWriter::Parquet(rows) => match serde_json::to_value(row) {
                Ok(row) => return rows.push(&row),
                Err(err) => Err(err.into()),
            },
        };
        written.at(&self.path, "write")
    }

    /// Flushes the complete table to disk and renames the file to its target.
    pub(super) fn commit(self) -> Result<()> {
        match self.rows {
            RowWriter::Csv(writer) => writer.into_inner().at(&self.path, "write")?.commit(),
            RowWriter::Jsonl(out) => out.commit(),
            #[cfg(feature = "parquet")]
            RowWriter::Parquet(rows) => rows.commit(),
        }
    }
}

/// A move of an OOBS database as a row of a table with comma-separated values.
#[derive(Serialize)]
struct CsvRow<'a> {
    epd: &'a str,
    mv: &'a str,
    stats: Wdl,
    weight: u16,
    /// The move in SAN, or an empty string if the move is not legal. `None` if the table has no column for SAN.
    #[serde(skip_serializing_if = "Option::is_none")]
    san: Option<String>,
}

/// A move of an OOBS database as a row of a JSON lines or Parquet table.
#[derive(Serialize)]
struct JsonRow<'a> {
    /// The position key as 16 hex digits, for Parquet files.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// The move as a 16-bit number, or 0 if it is not legal, for Parquet files.
    #[serde(rename = "move", skip_serializing_if = "Option::is_none")]
    number: Option<u16>,
    fen: String,
    /// The move in SAN, or `None` if it is not legal.
    san: Option<String>,
    /// The move in UCI notation, or as the database contains it if it is not legal.
    uci: &'a str,
    #[serde(flatten)]
    stats: Wdl,
    /// The weight of the move in a book made from the database, or 0 if the book would not contain it.
    weight: u16,
}

/// Writes the table of [`Convert::to_table`] in the format `format` to `out`.
pub(super) fn write_table(
    convert: &Convert,
    out: AtomicFile,
    format: TableFormat,
) -> Result<Converted> {
    let columns = match format {
        TableFormat::Csv if convert.with_san => "EPD,Move,Win,Draw,Loss,Weight,SAN",
        TableFormat::Csv => "EPD,Move,Win,Draw,Loss,Weight",
        _ => "key,move,fen,san,uci,wins,draws,losses,weight",
    };
    let file = TableOutput::begin(out, format, columns)?;
    let variant = convert.obs.variant(convert.variant)?;
    let filter = convert.combined_filter(MoveFilter::every_move());
    let passes = 1 + u64::from(convert.weights.scale == Scale::Global);
    convert.meter.add_total(passes * convert.obs.about_rows());
    let mut table = DatabaseTable {
        scaling: global_scaling(convert, &filter)?,
        filter: &filter,
        weights: &convert.weights,
        variant,
        format,
        with_san: convert.with_san,
        file,
        converted: Converted::default(),
    };
    let mut position: Vec<ObsRow> = Vec::new();
    let mut rows = convert.obs.rows_by_epd(&convert.memory)?;
    for row in &mut rows {
        let row = row?;
        convert.meter.advance(1);
        if position.first().is_some_and(|first| first.epd != row.epd) {
            table.write(&mut position)?;
        }
        if row.is_active() {
            position.push(row);
        }
    }
    table.write(&mut position)?;
    table
        .converted
        .skipped_rows
        .add(rows.skipped_rows().clone());
    table.file.commit()?;
    Ok(table.converted)
}

/// Returns the scaling that makes all weights of a table fit into 16 bits. Reads all rows of the database, and finds
/// the largest weight of a move that `filter` selects.
///
/// If each position is scaled separately, this function reads no rows, and returns a scaling that leaves weights
/// unchanged.
fn global_scaling(convert: &Convert, filter: &MoveFilter) -> Result<Scaling> {
    let mut largest = 0;
    if convert.weights.scale == Scale::Global {
        for row in convert.obs.rows()? {
            let row = row?;
            convert.meter.advance(1);
            if row.is_active() && turn(&row.epd).is_some_and(|turn| filter.selects(turn, row.stats))
            {
                largest = largest.max(convert.weights.weight(row.stats));
            }
        }
    }
    Ok(Scaling::new(largest))
}

/// The state of a conversion of a database to a table.
struct DatabaseTable<'a> {
    filter: &'a MoveFilter,
    weights: &'a Weights,
    variant: Variant,
    scaling: Scaling,
    format: TableFormat,
    with_san: bool,
    file: TableOutput,
    converted: Converted,
}

impl DatabaseTable<'_> {
    /// Writes the rows of one position to the table, and clears `rows`. The vector must contain all rows of the
    /// position, sorted by number of games in descending order.
    fn write(&mut self, rows: &mut Vec<ObsRow>) -> Result<()> {
        let Some(first) = rows.first() else {
            return Ok(());
        };
        let pos = match position_of(self.variant, &first.epd) {
            Ok(pos) => pos,
            Err(err) => {
                let mut skipped_rows = SkippedRows::default();
                for row in rows.drain(..) {
                    skipped_rows.row(&row, &err.to_string());
                }
                self.converted.skipped_rows.add(skipped_rows);
                return Ok(());
            }
        };
        let turn = pos.turn();
        let before = rows.len();
        rows.retain(|row| self.filter.selects(turn, row.stats));
        self.converted.filtered_rows += (before - rows.len()) as u64;
        rows.sort_by(ObsRow::by_games);
        let scaling = match self.weights.scale {
            Scale::Global => self.scaling,
            Scale::Position => {
                let weights = rows.iter().map(|row| self.weights.weight(row.stats));
                Scaling::new(weights.max().unwrap_or(0))
            }
        };
        for row in rows.drain(..) {
            let weight = match self.weights.weight(row.stats) {
                0 => 0,
                weight => scaling.apply(weight),
            };
            self.write_row(&pos, &row, weight)?;
            self.converted.entries += 1;
        }
        Ok(())
    }

    fn write_row(&mut self, pos: &VariantPosition, row: &ObsRow, weight: u16) -> Result<()> {
        let ObsRow { epd, mv, stats, .. } = row;
        let stats = *stats;
        let san = || legal_move(pos, mv).and_then(|mv| mv.san(pos));
        if self.format == TableFormat::Csv {
            return self.file.write(&CsvRow {
                epd,
                mv,
                stats,
                weight,
                san: self.with_san.then(|| san().unwrap_or_default()),
            });
        }
        let legal = legal_move(pos, mv);
        let uci = legal.map(|mv| mv.uci(pos));
        let has_numbers = self.format != TableFormat::Jsonl;
        self.file.write(&JsonRow {
            key: has_numbers.then(|| format!("{:016x}", key(pos))),
            number: has_numbers.then(|| legal.map_or(BookMove::NONE, BookMove::from).0),
            fen: fen_of(pos),
            san: san(),
            uci: uci.as_deref().unwrap_or(mv),
            stats,
            weight,
        })
    }
}

/// Returns the side to move in an EPD, or `None` if the EPD does not contain it.
fn turn(epd: &str) -> Option<Color> {
    match epd.split_ascii_whitespace().nth(1)? {
        "w" => Some(Color::White),
        "b" => Some(Color::Black),
        _ => None,
    }
}

//! Writes tables of databases and books for spreadsheets and scripts, as comma-separated values, JSON lines or Parquet
//! files.

use shakmaty::{Color, Position, variant::VariantPosition};

use super::{Convert, Converted};
use crate::{
    chess::position::{BookMove, Variant, fen_of, key},
    error::Result,
    formats::{
        book::{Scale, Scaling, Weights},
        counts::MoveFilter,
        obs::{ObsRow, SkippedRows, legal_move, position_of},
    },
    storage::{
        output::AtomicFile,
        table::{Cell, Column, ColumnType, Table, TableFormat},
    },
};

/// The columns of a database's table with comma-separated values, named as in the database. The last column is
/// optional.
const CSV_COLUMNS: [Column; 7] = [
    Column::new("EPD", ColumnType::Text),
    Column::new("Move", ColumnType::Text),
    Column::new("Win", ColumnType::Integer),
    Column::new("Draw", ColumnType::Integer),
    Column::new("Loss", ColumnType::Integer),
    Column::new("Weight", ColumnType::Integer),
    Column::new("SAN", ColumnType::Text),
];

/// The columns of a database's table in other formats. Only Parquet files contain the first [`JOINED`] columns.
const COLUMNS: [Column; 9] = [
    Column::new("key", ColumnType::Key),
    Column::new("move", ColumnType::Move),
    Column::new("fen", ColumnType::Text),
    Column::new("san", ColumnType::Text),
    Column::new("uci", ColumnType::Text),
    Column::new("wins", ColumnType::Integer),
    Column::new("draws", ColumnType::Integer),
    Column::new("losses", ColumnType::Integer),
    Column::new("weight", ColumnType::Integer),
];

/// The number of columns by which Parquet files can be joined with a counts directory: the key and the move.
const JOINED: usize = 2;

/// Writes the table of [`Convert::to_table`] to `out` in the given format.
pub(super) fn write_table(
    convert: &Convert,
    out: AtomicFile,
    format: TableFormat,
) -> Result<Converted> {
    let columns = match format {
        TableFormat::Csv if convert.with_san => &CSV_COLUMNS[..],
        TableFormat::Csv => &CSV_COLUMNS[..6],
        TableFormat::Jsonl => &COLUMNS[JOINED..],
        #[cfg(feature = "parquet")]
        TableFormat::Parquet => &COLUMNS,
    };
    let file = Table::begin(out, format, columns.iter().copied())?;
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

/// Returns the scaling that makes all weights of a table fit into 16 bits. To find the largest weight of a move that
/// `filter` keeps, reads all rows of the database.
///
/// If each position is scaled separately, reads no rows, and returns a scaling that leaves weights unchanged.
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
    file: Table,
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
        let legal = legal_move(pos, &row.mv);
        // Databases of other programs spell castling in several ways.
        let uci = legal.map_or_else(|| row.mv.clone(), |mv| mv.uci(pos));
        let san = legal.and_then(|mv| mv.san(pos));
        let results = [row.stats.wins, row.stats.draws, row.stats.losses].map(Cell::from);
        let mut cells: Vec<Cell<'_>> = Vec::with_capacity(COLUMNS.len());
        if self.format == TableFormat::Csv {
            cells.extend([Cell::from(&*row.epd), uci.into()]);
            cells.extend(results);
            cells.push(weight.into());
            cells.extend(self.with_san.then(|| san.into()));
        } else {
            if self.format != TableFormat::Jsonl {
                let number = legal.map_or(BookMove::NONE, BookMove::from).0;
                cells.extend([Cell::Key(key(pos)), number.into()]);
            }
            cells.extend([fen_of(pos).into(), san.into(), uci.into()]);
            cells.extend(results);
            cells.push(weight.into());
        }
        self.file.write(&cells)
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

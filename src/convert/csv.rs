//! Tables of books, for spreadsheets and scripts.

use std::{io, path::Path};

use shakmaty::{Color, Position};

use super::{
    Convert, Converted,
    replace::{Kind, check_replaceable},
};
use crate::{
    book::{Scale, Scaling, Weights},
    error::{At, Result},
    obs::{PassedOver, Row},
    output::AtomicFile,
    position::Variant,
    tally::MoveFilter,
    task,
};

/// A row of a table.
pub(super) struct WeighedRow<'a> {
    pub pos: &'a shakmaty::variant::VariantPosition,
    pub row: &'a Row,
    pub weight: u16,
}

/// Writes the rows of a table in its format.
pub(super) trait RowWriter {
    fn write_row(&mut self, row: &WeighedRow<'_>) -> Result<()>;

    /// Puts the file in its place.
    fn commit(self) -> Result<()>;
}

impl Convert {
    /// Writes the rows that are selected as a table, in the order of EPDs: EPD, move, wins, draws and
    /// losses of the side to move, and the weight that the move has in a book, 0 if a book leaves it
    /// out.
    ///
    /// # Errors
    ///
    /// A database that cannot be read or a file that cannot be written.
    pub fn to_csv(&self, path: &Path) -> Result<Converted> {
        task::caught(|| self.write_table(Csv::create(path, "EPD,Move,Win,Draw,Loss,Weight")?))
    }

    /// Writes the rows that are selected.
    pub(super) fn write_table(&self, writer: impl RowWriter) -> Result<Converted> {
        let variant = self.played_variant()?;
        let filter = self.narrowed(MoveFilter::every_move());
        let passes = if self.weights.scale == Scale::Global {
            2
        } else {
            1
        };
        self.meter.add_total(passes * self.obs.about_rows());
        let mut table = Table {
            scaling: self.global_scaling(&filter)?,
            filter: &filter,
            weights: &self.weights,
            variant,
            writer,
            converted: Converted::default(),
        };
        let mut position: Vec<Row> = Vec::new();
        let mut rows = self.obs.rows_by_epd(&self.memory)?;
        for row in &mut rows {
            let row = row?;
            self.meter.advance(1);
            if position.first().is_some_and(|first| first.epd != row.epd) {
                table.write(&mut position)?;
            }
            if row.is_active() {
                position.push(row);
            }
        }
        table.write(&mut position)?;
        table.converted.passed_over.add(rows.passed_over().clone());
        table.writer.commit()?;
        Ok(table.converted)
    }

    /// The scaling of all weights together. Where each position has its own, it is not needed.
    fn global_scaling(&self, filter: &MoveFilter) -> Result<Scaling> {
        let mut largest = 0;
        if self.weights.scale == Scale::Global {
            for row in self.obs.rows()? {
                let row = row?;
                self.meter.advance(1);
                if row.is_active()
                    && turn(&row.epd).is_some_and(|turn| filter.selects(turn, row.stats))
                {
                    largest = largest.max(self.weights.weight(row.stats));
                }
            }
        }
        Ok(Scaling::new(largest))
    }
}

/// The table of a database.
struct Table<'a, W> {
    filter: &'a MoveFilter,
    weights: &'a Weights,
    variant: Variant,
    scaling: Scaling,
    writer: W,
    converted: Converted,
}

impl<W: RowWriter> Table<'_, W> {
    /// Writes the rows of a position, the most games first.
    fn write(&mut self, rows: &mut Vec<Row>) -> Result<()> {
        let Some(first) = rows.first() else {
            return Ok(());
        };
        let pos = match self.variant.parse_position(&first.epd) {
            Ok(pos) => pos,
            Err(err) => {
                let mut passed_over = PassedOver::default();
                for row in rows.drain(..) {
                    passed_over.row(&row, &err.to_string());
                }
                self.converted.passed_over.add(passed_over);
                return Ok(());
            }
        };
        let turn = pos.turn();
        let before = rows.len();
        rows.retain(|row| self.filter.selects(turn, row.stats));
        self.converted.left_out += (before - rows.len()) as u64;
        rows.sort_by(Row::by_games);
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
            self.writer.write_row(&WeighedRow {
                pos: &pos,
                row: &row,
                weight,
            })?;
            self.converted.entries += 1;
        }
        Ok(())
    }
}

/// The side to move in an EPD.
fn turn(epd: &str) -> Option<Color> {
    match epd.split_ascii_whitespace().nth(1)? {
        "w" => Some(Color::White),
        "b" => Some(Color::Black),
        _ => None,
    }
}

/// A file of comma-separated values that replaces its target when it is committed.
pub(super) struct Csv<'a> {
    path: &'a Path,
    writer: csv::Writer<AtomicFile>,
    digits: itoa::Buffer,
}

impl<'a> Csv<'a> {
    pub(super) fn create(path: &'a Path, columns: &'static str) -> Result<Csv<'a>> {
        let kind = Kind::FirstLine(columns);
        let file = AtomicFile::create_over(path, |old| check_replaceable(old, kind))?;
        let mut writer = csv::WriterBuilder::new()
            .buffer_capacity(1 << 16)
            .from_writer(file);
        writer
            .write_record(columns.split(','))
            .map_err(io_error)
            .at(path, "write")?;
        Ok(Csv {
            path,
            writer,
            digits: itoa::Buffer::new(),
        })
    }

    pub(super) fn text(&mut self, text: &str) -> Result<()> {
        let written = self.writer.write_field(text);
        written.map_err(io_error).at(self.path, "write")
    }

    pub(super) fn number(&mut self, number: u64) -> Result<()> {
        let written = self.writer.write_field(self.digits.format(number));
        written.map_err(io_error).at(self.path, "write")
    }

    pub(super) fn end_row(&mut self) -> Result<()> {
        let written = self.writer.write_record(None::<&[u8]>);
        written.map_err(io_error).at(self.path, "write")
    }
}

/// The operating system's error itself, so that a closed pipe is known as one.
fn io_error(err: csv::Error) -> io::Error {
    match err.into_kind() {
        csv::ErrorKind::Io(err) => err,
        kind => io::Error::other(format!("{kind:?}")),
    }
}

impl RowWriter for Csv<'_> {
    fn write_row(&mut self, row: &WeighedRow<'_>) -> Result<()> {
        let Row { epd, mv, stats, .. } = row.row;
        self.text(epd)?;
        self.text(mv)?;
        for number in [stats.wins, stats.draws, stats.losses] {
            self.number(number)?;
        }
        self.number(row.weight.into())?;
        self.end_row()
    }

    fn commit(self) -> Result<()> {
        let flushed = self.writer.into_inner().map_err(|err| err.into_error());
        flushed.at(self.path, "write")?.commit()
    }
}

//! Tables of books, for spreadsheets and scripts.

use std::io::{BufWriter, Write};
use std::path::Path;

use shakmaty::{Color, Position};

use super::{Convert, Converted};
use crate::{
    book::{Book, Entry, Scale, Scaling, Weighting},
    error::{At, Result},
    obs::{PassedOver, Row},
    output::AtomicFile,
    position::Variant,
};

/// Writes the records of a Polyglot book as a table: key (16 hex digits), move (castling as the king
/// taking its rook), weight and learn.
///
/// # Errors
///
/// A book that cannot be read or a file that cannot be written.
pub fn book_to_csv(book: &Book, path: &Path) -> Result<Converted> {
    let mut file = AtomicFile::create(path)?;
    let mut out = BufWriter::with_capacity(1 << 16, &mut file);
    let mut entries = 0;
    let doing = "write";
    writeln!(out, "Key,Move,Weight,Learn").at(path, doing)?;
    // The null key is the header's.
    for entry in book.iter().filter(|entry| entry.key != 0) {
        let Entry {
            key,
            mv,
            weight,
            learn,
        } = entry;
        writeln!(out, "{key:016x},{mv},{weight},{learn}").at(path, doing)?;
        entries += 1;
    }
    out.flush().at(path, doing)?;
    drop(out);
    file.commit()?;
    Ok(Converted {
        entries,
        ..Converted::default()
    })
}

impl Convert {
    /// Writes the rows that are selected as a table, in the order of EPDs: EPD, move, wins, draws and
    /// losses of the side to move, and the weight that the move has in a book, 0 if it is too bad for one.
    ///
    /// # Errors
    ///
    /// A database that cannot be read or a file that cannot be written.
    pub fn to_csv(&self, path: &Path) -> Result<Converted> {
        let variant = self.played_variant()?;
        let weighting = self.narrowed();
        let mut largest = 0;
        if weighting.scale == Scale::Global {
            for row in self.obs.rows()? {
                let row = row?;
                if row.is_active()
                    && let Some(turn) = turn(&row.epd)
                    && let Some(weight) = weighting.weight(turn, row.stats)
                {
                    largest = largest.max(weight);
                }
            }
        }
        let mut table = Table {
            weighting: &weighting,
            variant,
            path,
            scaling: Scaling::new(largest),
            converted: Converted::default(),
        };
        let mut file = AtomicFile::create(path)?;
        let mut out = BufWriter::with_capacity(1 << 16, &mut file);
        writeln!(out, "EPD,Move,Win,Draw,Loss,Weight").at(path, "write")?;
        let mut position: Vec<Row> = Vec::new();
        let mut rows = self.obs.rows_by_epd()?;
        for row in &mut rows {
            let row = row?;
            if position.first().is_some_and(|first| first.epd != row.epd) {
                table.write(&mut position, &mut out)?;
            }
            if row.is_active() {
                position.push(row);
            }
        }
        table.write(&mut position, &mut out)?;
        table.converted.passed_over.add(rows.passed_over().clone());
        out.flush().at(path, "write")?;
        drop(out);
        file.commit()?;
        Ok(table.converted)
    }
}

/// A table being written.
struct Table<'a> {
    weighting: &'a Weighting,
    variant: Variant,
    path: &'a Path,
    scaling: Scaling,
    converted: Converted,
}

impl Table<'_> {
    /// Writes the rows of a position, the most games first.
    fn write(&mut self, rows: &mut Vec<Row>, out: &mut impl Write) -> Result<()> {
        let Some(first) = rows.first() else {
            return Ok(());
        };
        let turn = match self.variant.parse_fen(&first.epd) {
            Ok(pos) => pos.turn(),
            Err(err) => {
                let mut passed_over = PassedOver::default();
                for row in rows.drain(..) {
                    passed_over.row(&row, &err.to_string());
                }
                self.converted.passed_over.add(passed_over);
                return Ok(());
            }
        };
        rows.sort_by(Row::by_games);
        let weights = rows
            .iter()
            .filter_map(|row| self.weighting.weight(turn, row.stats));
        let scaling = match self.weighting.scale {
            Scale::Global => self.scaling,
            Scale::Position => Scaling::new(weights.max().unwrap_or(0)),
        };
        for row in rows.drain(..) {
            if !self.weighting.selects(turn, row.stats) {
                continue;
            }
            let weight = self.weighting.weight(turn, row.stats);
            writeln!(
                out,
                "{},{},{},{},{},{}",
                quoted(&row.epd),
                quoted(&row.mv),
                row.stats.wins,
                row.stats.draws,
                row.stats.losses,
                weight.map_or(0, |weight| scaling.apply(weight))
            )
            .at(self.path, "write")?;
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

/// A value that may hold anything, as RFC 4180 has it.
fn quoted(value: &str) -> String {
    if value.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", value.replace('"', "\"\""))
    } else {
        value.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_values_are_quoted() {
        assert_eq!(quoted("e2e4"), "e2e4");
        assert_eq!(quoted("a,\"b\""), "\"a,\"\"b\"\"\"");
    }
}

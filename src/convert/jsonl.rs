//! Tables as JSON lines.

use std::{
    io::{self, BufWriter, Write},
    path::Path,
};

use serde::Serialize;
use shakmaty::variant::VariantPosition;

use super::{
    Convert, ConvertBook, Converted,
    csv::{RowWriter, WeighedRow},
    replace::{Kind, check_replaceable},
};
use crate::{
    error::{At, Result},
    obs::legal_move,
    output::AtomicFile,
    task,
};

/// A record of a book.
#[derive(Serialize)]
struct BookLine {
    key: String,
    /// `None` where no line comes to the position.
    fen: Option<String>,
    /// `None` there too, and where the move is not legal.
    san: Option<String>,
    uci: String,
    weight: u16,
    learn: u32,
}

/// A row of a database.
#[derive(Serialize)]
struct RowLine<'a> {
    fen: String,
    /// `None` where the move is not legal.
    san: Option<String>,
    /// As the database has it where it is not legal.
    uci: &'a str,
    wins: u64,
    draws: u64,
    losses: u64,
    /// The weight in a book, 0 if a book leaves it out.
    weight: u16,
}

impl ConvertBook<'_> {
    /// Writes the records, a JSON document a line, in the order of [`to_csv`](ConvertBook::to_csv).
    ///
    /// # Errors
    ///
    /// A book that cannot be read or a file that cannot be written.
    pub fn to_jsonl(&self, path: &Path, starts: &[VariantPosition]) -> Result<Converted> {
        task::caught(|| {
            let mut lines = Lines::create(path)?;
            let entries = self.rows(starts, &mut |row| {
                lines.write(&BookLine {
                    key: format!("{:016x}", row.entry.key),
                    fen: row.fen(),
                    san: row.san(),
                    uci: row.uci(),
                    weight: row.entry.weight,
                    learn: row.entry.learn,
                })
            })?;
            lines.commit()?;
            Ok(Converted {
                entries,
                ..Converted::default()
            })
        })
    }
}

impl Convert {
    /// Writes the rows of [`to_csv`](Convert::to_csv), a JSON document a line, with FEN, SAN and UCI.
    ///
    /// # Errors
    ///
    /// A database that cannot be read or a file that cannot be written.
    pub fn to_jsonl(&self, path: &Path) -> Result<Converted> {
        task::caught(|| self.write_table(Lines::create(path)?))
    }
}

/// A file of JSON documents that replaces its target when it is committed.
struct Lines<'a> {
    path: &'a Path,
    out: BufWriter<AtomicFile>,
}

impl<'a> Lines<'a> {
    fn create(path: &'a Path) -> Result<Lines<'a>> {
        let file = AtomicFile::create_over(path, |old| check_replaceable(old, Kind::Json))?;
        Ok(Lines {
            path,
            out: BufWriter::with_capacity(1 << 16, file),
        })
    }

    fn write(&mut self, line: &impl Serialize) -> Result<()> {
        task::fault("write lines");
        let written = serde_json::to_writer(&mut self.out, line).map_err(io::Error::from);
        written
            .and_then(|()| self.out.write_all(b"\n"))
            .at(self.path, "write")
    }
}

impl RowWriter for Lines<'_> {
    fn write_row(&mut self, row: &WeighedRow<'_>) -> Result<()> {
        let legal = legal_move(row.pos, &row.row.mv);
        let uci = legal.map(|mv| mv.uci(row.pos));
        let stats = row.row.stats;
        self.write(&RowLine {
            fen: crate::position::fen_of(row.pos),
            san: legal.and_then(|mv| mv.san(row.pos)),
            uci: uci.as_deref().unwrap_or(&row.row.mv),
            wins: stats.wins,
            draws: stats.draws,
            losses: stats.losses,
            weight: row.weight,
        })
    }

    fn commit(self) -> Result<()> {
        let path = self.path;
        let file = self
            .out
            .into_inner()
            .map_err(io::IntoInnerError::into_error);
        file.at(path, "write")?.commit()
    }
}

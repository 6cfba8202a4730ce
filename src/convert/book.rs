//! Suites and tables of a Polyglot book.

use std::path::Path;

use rustc_hash::FxHashSet;
use shakmaty::{Color, EnPassantMode, fen::Fen, variant::VariantPosition};

use super::{
    Converted,
    csv::{Csv, RowWriter},
    source::PlayedMoves,
    suite::{Suite, write_lines, write_positions},
};
use crate::{
    book::{Book, Entry},
    error::{Error, Result},
    position::Variant,
    tree::{Event, Limits, LinesOf, Order, Replies, Source, walk},
};

/// Suites and tables of a book.
#[derive(Debug)]
pub struct ConvertBook<'a> {
    book: &'a Book,
    variant: Variant,
}

/// A record of a book and what is known of it.
pub(super) struct BookRow<'a> {
    pub entry: Entry,
    /// The position, where a line comes to it.
    pub pos: Option<&'a VariantPosition>,
}

impl BookRow<'_> {
    pub(super) fn fen(&self) -> Option<String> {
        let pos = self.pos?;
        Some(Fen::from_position(pos, EnPassantMode::Legal).to_string())
    }

    pub(super) fn san(&self) -> Option<String> {
        self.entry.mv.san(self.pos?)
    }

    /// In coordinates; where the position is not known, castling is the king taking its rook.
    pub(super) fn uci(&self) -> String {
        match self.pos {
            Some(pos) => self.entry.mv.uci(pos),
            None => self.entry.mv.to_string(),
        }
    }
}

impl<'a> ConvertBook<'a> {
    /// A conversion of a book for a variant.
    pub fn new(book: &'a Book, variant: Variant) -> ConvertBook<'a> {
        ConvertBook { book, variant }
    }

    /// Writes lines, the heaviest first, as [`Convert::to_pgn`](super::Convert::to_pgn) does: the weight of a move
    /// stands for its games.
    ///
    /// # Errors
    ///
    /// A book that cannot be read, a file that cannot be written, a suite that would be empty or beyond all measure, or
    /// one that is to be balanced: a book has no scores.
    pub fn to_pgn(&self, path: &Path, suite: &Suite) -> Result<Converted> {
        self.check(suite)?;
        write_lines(
            &PlayedMoves(self.book),
            &self.starts(&suite.starts),
            suite,
            path,
        )
    }

    /// Writes positions, the heaviest first, as [`Convert::to_epd`](super::Convert::to_epd) does.
    ///
    /// # Errors
    ///
    /// As [`to_pgn`](ConvertBook::to_pgn).
    pub fn to_epd(&self, path: &Path, suite: &Suite) -> Result<Converted> {
        self.check(suite)?;
        write_positions(
            &PlayedMoves(self.book),
            &self.starts(&suite.starts),
            suite,
            path,
        )
    }

    /// Writes the records as a table: key (16 hex digits), FEN, SAN and UCI of the move, weight and learn. Positions
    /// come in the order in which lines from the `starts`, none for the starting position, come to them; then, without
    /// FEN and SAN, the records of those to which none comes. Takes some 16 bytes for each position.
    ///
    /// # Errors
    ///
    /// A book that cannot be read or a file that cannot be written.
    pub fn to_csv(&self, path: &Path, starts: &[VariantPosition]) -> Result<Converted> {
        let mut csv = Csv::create(path, "Key,FEN,SAN,UCI,Weight,Learn")?;
        let entries = self.rows(starts, &mut |row| {
            csv.text(&format!("{:016x}", row.entry.key))?;
            csv.text(&row.fen().unwrap_or_default())?;
            csv.text(&row.san().unwrap_or_default())?;
            csv.text(&row.uci())?;
            csv.number(row.entry.weight.into())?;
            csv.number(row.entry.learn.into())?;
            csv.end_row()
        })?;
        csv.commit()?;
        Ok(Converted {
            entries,
            ..Converted::default()
        })
    }

    /// Calls `f` with all records, those of the header aside; answers how many.
    pub(super) fn rows(
        &self,
        starts: &[VariantPosition],
        f: &mut dyn FnMut(BookRow<'_>) -> Result<()>,
    ) -> Result<u64> {
        let mut reached = FxHashSet::default();
        let mut rows = 0;
        let mut reach = |source: &dyn Source, start: &VariantPosition| {
            let limits = Limits::default();
            walk(&source, start, &limits, Order::Positions, &mut |event| {
                let Event::Position { pos, .. } = event else {
                    return Ok(());
                };
                let entries = self.book.moves(pos.key())?;
                if entries.len() == 0 || !reached.insert(pos.key()) {
                    return Ok(());
                }
                for entry in entries {
                    rows += 1;
                    let pos = Some(pos.position());
                    f(BookRow { entry, pos })?;
                }
                Ok(())
            })
        };
        for start in &self.starts(starts) {
            reach(&Replies(self.book), start)?;
            for side in Color::ALL {
                reach(&LinesOf(self.book, side), start)?;
            }
        }
        for entry in self.book {
            let entry = entry?;
            // The null key is the header's.
            if entry.key != 0 && !reached.contains(&entry.key) {
                rows += 1;
                f(BookRow { entry, pos: None })?;
            }
        }
        Ok(rows)
    }

    fn starts(&self, given: &[VariantPosition]) -> Vec<VariantPosition> {
        match given {
            [] => vec![self.variant.start()],
            given => given.to_vec(),
        }
    }

    fn check(&self, suite: &Suite) -> Result<()> {
        if suite.balance.is_some() {
            let problem = "a Polyglot book has no scores, so no suite of it can be balanced: make it of a database";
            return Err(Error::file(self.book.path(), problem));
        }
        Ok(())
    }
}

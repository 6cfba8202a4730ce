//! Suites and tables of a Polyglot book.

use std::{path::Path, sync::Arc};

use shakmaty::variant::VariantPosition;

use super::{
    Converted,
    csv::{Csv, RowWriter},
    source::PlayedMoves,
};
use crate::{
    book::{Book, Entry, each_move_once},
    error::{Error, Result},
    position::Variant,
    progress::Meter,
    sort::{Memory, Seen},
    suite::{self, Suite, SuiteFormat, SuiteOf},
    task,
    walk::{Event, Limits, Order, Source, Tree, every_way},
};

/// Suites and tables of a book.
#[derive(Debug)]
pub struct ConvertBook<'a> {
    book: &'a Book,
    variant: Variant,
    memory: Memory,
    meter: Arc<Meter>,
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
        Some(crate::position::fen_of(pos))
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
        ConvertBook {
            book,
            variant,
            memory: Memory::default(),
            meter: Arc::default(),
        }
    }

    /// How much memory lines and positions may take before they go to temporary files.
    pub fn memory(mut self, memory: Memory) -> ConvertBook<'a> {
        self.memory = memory;
        self
    }

    /// Says how far a conversion has come.
    pub fn meter(&self) -> Arc<Meter> {
        Arc::clone(&self.meter)
    }

    /// Writes lines, the heaviest first, as [`Convert::to_pgn`](super::Convert::to_pgn) does: the weight of a move
    /// stands for its games.
    ///
    /// # Errors
    ///
    /// A book that cannot be read, a file that cannot be written, a suite that would be empty or beyond all measure, or
    /// one that is to be balanced: a book has no scores.
    pub fn to_pgn(&self, path: &Path, suite: &Suite) -> Result<Converted> {
        task::caught(|| self.to_suite(path, suite, SuiteFormat::Pgn))
    }

    /// Writes positions, the heaviest first, as [`Convert::to_epd`](super::Convert::to_epd) does.
    ///
    /// # Errors
    ///
    /// As [`to_pgn`](ConvertBook::to_pgn).
    pub fn to_epd(&self, path: &Path, suite: &Suite) -> Result<Converted> {
        task::caught(|| self.to_suite(path, suite, SuiteFormat::Epd))
    }

    /// Writes the records as a table: key (16 hex digits), FEN, SAN and UCI of the move, weight and learn. Positions
    /// come in the order in which lines from the `starts`, none for the starting position, come to them, each move of one
    /// once, whatever the spellings of castling, the heaviest first; then, without FEN and SAN, the records of those to which
    /// none comes.
    ///
    /// # Errors
    ///
    /// A book that cannot be read or a file that cannot be written.
    pub fn to_csv(&self, path: &Path, starts: &[VariantPosition]) -> Result<Converted> {
        task::caught(|| {
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
        })
    }

    /// Calls `f` with all records, those of the header aside; returns how often. Where the position is known, castling in
    /// two spellings is one move.
    pub(super) fn rows(
        &self,
        starts: &[VariantPosition],
        f: &mut dyn FnMut(BookRow<'_>) -> Result<()>,
    ) -> Result<u64> {
        self.book.refuse_changed()?;
        let records = self.records()?;
        let (mut rows, mut seen) = (0, 0);
        let mut reached = Seen::new(self.memory.share(4));
        for start in &self.starts(starts) {
            for source in every_way(self.book) {
                // Once all are there, no other walk finds more.
                if seen < records {
                    let (found, of) = self.reached_rows(source, start, &mut reached, f)?;
                    (rows, seen) = (rows + found, seen + of);
                }
            }
        }
        if seen == records {
            return Ok(rows);
        }
        for entry in self.book {
            let entry = entry?;
            if entry.key != 0 && !reached.contains(place(entry.key))? {
                rows += 1;
                f(BookRow { entry, pos: None })?;
            }
        }
        Ok(rows)
    }

    /// Calls `f` with the records of the positions that a walk comes to, but for those reached before; returns how often,
    /// and how many records these have.
    fn reached_rows(
        &self,
        source: Box<dyn Source + '_>,
        start: &VariantPosition,
        reached: &mut Seen,
        f: &mut dyn FnMut(BookRow<'_>) -> Result<()>,
    ) -> Result<(u64, u64)> {
        let (mut rows, mut records) = (0, 0);
        let limits = Limits {
            memory: self.memory.share(4),
            ..Limits::default()
        };
        let tree = Tree::new(source, start.clone(), limits, &self.meter);
        tree.walk(Order::Positions, &mut |event| {
            let Event::Position { pos, .. } = event else {
                return Ok(());
            };
            let entries = self.book.moves(pos.key())?;
            if entries.len() == 0 || !reached.insert(place(pos.key()))? {
                return Ok(());
            }
            records += entries.len() as u64;
            let pos = pos.position();
            for entry in each_move_once(pos, entries) {
                rows += 1;
                let pos = Some(pos);
                f(BookRow { entry, pos })?;
            }
            Ok(())
        })?;
        Ok((rows, records))
    }

    /// How many records there are, those of the header aside.
    fn records(&self) -> Result<u64> {
        let mut header = 0;
        for entry in self.book {
            if entry?.key != 0 {
                break;
            }
            header += 1;
        }
        Ok(self.book.len() - header)
    }

    fn starts(&self, given: &[VariantPosition]) -> Vec<VariantPosition> {
        match given {
            [] => vec![self.variant.start()],
            given => given.to_vec(),
        }
    }

    fn to_suite(&self, path: &Path, suite: &Suite, format: SuiteFormat) -> Result<Converted> {
        if suite.balance.is_some() {
            let problem = "a Polyglot book has no scores, so no suite of it can be balanced: make it of a database";
            return Err(Error::file(self.book.path(), problem));
        }
        self.book.refuse_changed()?;
        let file = suite::begin(path, format)?;
        let suite = SuiteOf {
            source: &PlayedMoves(self.book),
            results: &|_| Ok(None),
            starts: &self.starts(&suite.starts),
            suite,
            memory: self.memory.clone(),
            meter: &self.meter,
        };
        Ok(suite.write(file, format)?.into())
    }
}

/// The fingerprint of a position.
fn place(key: u64) -> u128 {
    u128::from(key) << 64
}

//! Suites and tables of a Polyglot book.

use std::{path::Path, sync::Arc};

use serde::Serialize;
use shakmaty::variant::VariantPosition;

use super::{
    Converted,
    table::{TableFile, TableFormat},
};
use crate::{
    book::{Book, Entry, each_move_once},
    error::{Error, Result},
    position::{Keyed, Variant, fen_of},
    progress::Meter,
    sort::{Memory, SpillingSet},
    suite::{self, Suite, SuiteFormat, SuiteOf},
    task,
    walk::{Source, TreeMove, each_position},
};

/// Suites and tables of a book.
#[derive(Debug)]
pub struct ConvertBook<'a> {
    /// The book.
    pub book: &'a Book,
    /// The variant of its positions.
    pub variant: Variant,
    /// How much memory lines and positions may take before they go to temporary files.
    pub memory: Memory,
    /// Whether to replace a file that polybook did not write. Default: no.
    pub force: bool,
    /// Says how far the conversion has come.
    pub meter: Arc<Meter>,
}

/// A record of a book and what is known of it.
#[derive(Serialize)]
struct BookRow {
    key: String,
    /// `None` where no line comes to the position.
    fen: Option<String>,
    /// `None` there too, and where the move is not legal.
    san: Option<String>,
    /// Where the position is not known, castling is the king taking its rook.
    uci: String,
    weight: u16,
    learn: u32,
}

impl BookRow {
    fn new(entry: Entry, pos: Option<&VariantPosition>) -> BookRow {
        BookRow {
            key: format!("{:016x}", entry.key),
            fen: pos.map(fen_of),
            san: pos.and_then(|pos| entry.mv.san(pos)),
            uci: pos.map_or_else(|| entry.mv.to_string(), |pos| entry.mv.uci(pos)),
            weight: entry.weight,
            learn: entry.learn,
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
            force: false,
            meter: Arc::default(),
        }
    }

    /// Writes the records as a table: key (16 hex digits), FEN, SAN and UCI of the move, weight and learn. Positions
    /// come in the order in which lines from the `starts`, none for the starting position, come to them, each move of one
    /// once, whatever the spellings of castling, the heaviest first; then, without FEN and SAN, the records of those to which
    /// none comes.
    ///
    /// # Errors
    ///
    /// A book that cannot be read or a file that cannot be written.
    pub fn to_table(
        &self,
        path: &Path,
        starts: &[VariantPosition],
        format: TableFormat,
    ) -> Result<Converted> {
        task::caught(|| self.write_table(path, starts, format))
    }

    fn write_table(
        &self,
        path: &Path,
        starts: &[VariantPosition],
        format: TableFormat,
    ) -> Result<Converted> {
        let mut file = TableFile::create(path, format, "Key,FEN,SAN,UCI,Weight,Learn", self.force)?;
        let mut entries = 0;
        let mut write = |entry, pos: Option<&VariantPosition>| {
            entries += 1;
            file.write(&BookRow::new(entry, pos))
        };
        self.book.refuse_changed()?;
        let mut unseen = self.book.len_without_header()?;
        let mut reached = SpillingSet::new(self.memory.share(4));
        let (starts, memory) = (self.starts(starts), self.memory.share(4));
        let starts = starts.into_iter().map(Ok);
        each_position(self.book, starts, memory, &self.meter, &mut |pos| {
            let entries = self.book.moves(pos.key())?;
            if !entries.is_empty() && reached.insert_key(pos.key())? {
                unseen -= entries.len() as u64;
                let pos = pos.position();
                for entry in each_move_once(pos, entries) {
                    write(entry, Some(pos))?;
                }
            }
            Ok(unseen > 0)
        })?;
        if unseen > 0 {
            for entry in self.book {
                let entry = entry?;
                if entry.key != 0 && !reached.contains_key(entry.key)? {
                    write(entry, None)?;
                }
            }
        }
        file.commit()?;
        Ok(Converted {
            entries,
            ..Converted::default()
        })
    }

    fn starts(&self, given: &[VariantPosition]) -> Vec<VariantPosition> {
        match given {
            [] => vec![self.variant.start()],
            given => given.to_vec(),
        }
    }

    /// Writes a suite, the heaviest lines or positions first, as [`Convert::to_suite`](super::Convert::to_suite) does: the
    /// weight of a move is taken for its number of games.
    ///
    /// # Errors
    ///
    /// A book that cannot be read, a file that cannot be written, a suite that would be empty or beyond all measure, or
    /// one that goes by results: a book has none.
    pub fn to_suite(&self, path: &Path, suite: &Suite, format: SuiteFormat) -> Result<Converted> {
        task::caught(|| {
            if let Some(option) = suite.goes_by_results() {
                let problem = format!(
                    "a Polyglot book has no results, so its suites have no {option}: make the suite of a database"
                );
                return Err(Error::file(self.book.path(), problem));
            }
            self.book.refuse_changed()?;
            let file = suite::begin(path, self.force)?;
            let suite = SuiteOf {
                source: &PlayedMoves(self.book),
                results: &|_| Ok(None),
                starts: &self.starts(&suite.starts),
                suite,
                memory: self.memory.clone(),
                meter: &self.meter,
            };
            let written = suite.write(file, format)?;
            Ok(written.into())
        })
    }
}

/// The moves of a book that are played: those of a weight.
struct PlayedMoves<'a>(&'a Book);

impl Source for PlayedMoves<'_> {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        let mut moves = Source::moves(self.0, pos)?;
        moves.retain(|mv| mv.weight > 0);
        Ok(moves)
    }

    fn node(&self, pos: &Keyed<VariantPosition>) -> u64 {
        self.0.node(pos)
    }
}

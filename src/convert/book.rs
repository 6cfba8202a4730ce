//! Converts a Polyglot book to opening suites and tables.

use std::sync::Arc;

use serde::Serialize;
use shakmaty::variant::VariantPosition;

use super::{
    Converted,
    table::{TableFormat, TableOutput},
};
use crate::{
    book::{Book, Entry, each_move_once},
    error::{Error, Result},
    position::{BookMove, Keyed, Variant, fen_of},
    progress::Meter,
    storage::output::{AtomicFile, BufferedFile},
    storage::sort::{Memory, SpillingSet},
    suite::{SourceAdvice, SourceSuite, Suite, SuiteFormat},
    task,
    walk::{Source, TreeMove, each_position},
};

/// A conversion of a Polyglot book to an opening suite or a table.
#[derive(Debug)]
pub struct ConvertBook<'a> {
    /// The book to convert.
    pub book: &'a Book,
    /// The variant of the positions in the book.
    pub variant: Variant,
    /// The memory budget for lines and positions. Data beyond it are spilled to temporary files.
    pub memory: Memory,
    /// The meter that reports progress and can cancel the conversion.
    pub meter: Arc<Meter>,
}

/// A row of the table that [`ConvertBook::to_table`] writes. It describes one record of the book. If the conversion
/// reached the position of the record by playing moves of the book, the row also contains the FEN of this position and
/// the move in SAN.
#[derive(Serialize)]
struct BookRow {
    key: String,
    /// The move as a 16-bit number, for Parquet files. A legal castling move always has the same number, even if the
    /// record uses another form.
    #[serde(rename = "move", skip_serializing_if = "Option::is_none")]
    number: Option<u16>,
    /// The FEN of the position, or `None` if no moves of the book lead to it.
    fen: Option<String>,
    /// The move in SAN, or `None` if the position is unknown or the move is not legal.
    san: Option<String>,
    /// The move in UCI notation. If the position is unknown, castling is written as the king capturing its own rook.
    uci: String,
    weight: u16,
    learn: u32,
}

impl BookRow {
    fn new(entry: Entry, pos: Option<&VariantPosition>, has_number: bool) -> BookRow {
        let legal = pos.and_then(|pos| entry.mv.to_move(pos));
        BookRow {
            key: format!("{:016x}", entry.key),
            number: has_number.then(|| legal.map_or(entry.mv, BookMove::from).0),
            fen: pos.map(fen_of),
            san: pos.and_then(|pos| entry.mv.san(pos)),
            uci: pos.map_or_else(|| entry.mv.to_string(), |pos| entry.mv.uci(pos)),
            weight: entry.weight,
            learn: entry.learn,
        }
    }
}

impl<'a> ConvertBook<'a> {
    /// Creates a conversion of `book`, whose positions belong to `variant`.
    pub fn new(book: &'a Book, variant: Variant) -> ConvertBook<'a> {
        ConvertBook {
            book,
            variant,
            memory: Memory::default(),
            meter: Arc::default(),
        }
    }

    /// Converts the book to a table, and writes it to `out`. Each record becomes a row with the key (16 hex digits),
    /// the FEN, the move in SAN and in UCI notation, the weight, and the learn field. Parquet files also contain the
    /// 16-bit number of the move.
    ///
    /// The conversion plays the moves of the book from the positions `starts`, or from the starting position if
    /// `starts` is empty. It writes the positions in the order in which it reaches them. The moves of a position are
    /// sorted by weight, in descending order. If the book contains a castling move both as the king's move and as the
    /// king capturing its own rook, the move is written once. Records of positions that are not reached follow at the
    /// end, without FEN and SAN.
    ///
    /// # Errors
    ///
    /// Returns an error if the book cannot be read, or if the file cannot be written.
    pub fn to_table(
        &self,
        out: AtomicFile,
        starts: &[VariantPosition],
        format: TableFormat,
    ) -> Result<Converted> {
        task::caught(|| self.write_table(out, starts, format))
    }

    fn write_table(
        &self,
        out: AtomicFile,
        starts: &[VariantPosition],
        format: TableFormat,
    ) -> Result<Converted> {
        let has_number = !matches!(format, TableFormat::Csv | TableFormat::Jsonl);
        let columns = match has_number {
            true => "key,move,fen,san,uci,weight,learn",
            false => "Key,FEN,SAN,UCI,Weight,Learn",
        };
        let mut file = TableOutput::begin(out, format, columns)?;
        let mut entries = 0;
        let mut write = |entry, pos: Option<&VariantPosition>| {
            entries += 1;
            file.write(&BookRow::new(entry, pos, has_number))
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

    /// Returns the starting positions in `given`. If `given` is empty, returns only the starting position of the
    /// variant.
    fn starts(&self, given: &[VariantPosition]) -> Vec<VariantPosition> {
        match given {
            [] => vec![self.variant.start()],
            given => given.to_vec(),
        }
    }

    /// Converts the book to an opening suite, and writes it to `out`. This works like the conversion of a database
    /// ([`Convert::to_suite`](super::Convert::to_suite)), except that the weight of a move is used instead of its
    /// number of games.
    ///
    /// # Errors
    ///
    /// Returns an error if the book cannot be read, if the file cannot be written, if the suite would be empty or too
    /// large, or if `suite` filters by results, which a book does not contain.
    pub fn to_suite(
        &self,
        out: AtomicFile,
        suite: &Suite,
        format: SuiteFormat,
    ) -> Result<Converted> {
        task::caught(|| {
            if let Some(option) = suite.results_option() {
                let problem = format!(
                    "a Polyglot book contains no results, so {option} does not apply: make the suite from a database"
                );
                return Err(Error::file(self.book.path(), problem));
            }
            self.book.refuse_changed()?;
            let suite = SourceSuite {
                source: &PlayedMoves(self.book),
                path: self.book.path(),
                results: &|_| Ok(None),
                starts: &self.starts(&suite.starts),
                suite,
                advice: SourceAdvice {
                    more: None,
                    fewer: "leave rare moves out of the book (polybook filter --min-weight)",
                },
                memory: self.memory.clone(),
                meter: &self.meter,
            };
            let written = suite.write(BufferedFile::sealed(out), format)?;
            Ok(written.into())
        })
    }
}

/// A source that contains only the moves of a book with a weight greater than 0. Moves with weight 0 are never played.
struct PlayedMoves<'a>(&'a Book);

impl Source for PlayedMoves<'_> {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        let mut moves = Source::moves(self.0, pos)?;
        moves.retain(|mv| mv.weight > 0);
        Ok(moves)
    }

    fn position_id(&self, pos: &Keyed<VariantPosition>) -> u64 {
        self.0.position_id(pos)
    }
}

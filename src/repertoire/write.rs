//! Writing repertoires as PGN and as books.

use std::{
    io::{BufRead, BufReader},
    path::Path,
};

use shakmaty::{Color, Position, variant::VariantPosition};

use super::{Known, gaps::Added};
use crate::{
    book::{
        BookMaker, Change, EditSummary, Factors, NewWeight, PositionEdit, Weights, begin_book,
        edit_book, header::with_checksum,
    },
    error::{At, Error, Result},
    output::{AtomicFile, BufferedFile},
    pgn::{Input, StreamOptions},
    position::{BookMove, Variant, has_inner_castling_rook},
    progress::Meter,
    provenance::Provenance,
    sort::Memory,
    tally::{MoveFilter, Stats, Tally},
    task,
    tree::{Branch, Event, Format, GameWriter, Limits, Order, Source, Tree, check_replaceable},
};

/// How a repertoire is written.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum RepertoireFormat {
    /// Games with variations: own moves, and the replies that they answer.
    Pgn,
    /// A book of the own moves.
    Book,
}

impl RepertoireFormat {
    /// The format of a file by its name: a book if it ends in `.bin`.
    pub fn of(path: &Path) -> RepertoireFormat {
        let extension = path.extension().unwrap_or_default();
        match extension.eq_ignore_ascii_case("bin") {
            true => RepertoireFormat::Book,
            false => RepertoireFormat::Pgn,
        }
    }

    /// Refuses a file that cannot be written so, before anything is read.
    ///
    /// # Errors
    ///
    /// A file that cannot be written, or that may be another's.
    pub fn check(path: &Path) -> Result<()> {
        begun(path).map(drop)
    }
}

/// Begins a file, which replaces nothing but a repertoire of its format.
fn begun(path: &Path) -> Result<AtomicFile> {
    match RepertoireFormat::of(path) {
        RepertoireFormat::Pgn => {
            AtomicFile::create_over(path, |old| check_replaceable(old, Format::Pgn))
        }
        RepertoireFormat::Book => begin_book(path),
    }
}

/// A repertoire that is to be written.
pub struct Writing<'a> {
    /// Its moves, with the replies that they answer.
    pub moves: &'a dyn Source,
    /// Where lines start.
    pub starts: &'a [VariantPosition],
    /// The variant.
    pub variant: Variant,
    /// Its side.
    pub color: Color,
    /// What a book's header says of it.
    pub title: &'a str,
    /// For positions that were met.
    pub memory: &'a Memory,
    /// How far it is.
    pub meter: &'a Meter,
}

impl Writing<'_> {
    /// Writes the repertoire in the format that the name of the file says; - is PGN on standard output. `comment` says
    /// what is known of a move. Returns how many moves there are.
    ///
    /// # Errors
    ///
    /// A file that cannot be written, or that may be another's.
    pub fn write(
        &self,
        path: &Path,
        comment: &dyn Fn(&Branch<'_>) -> Option<String>,
    ) -> Result<u64> {
        match RepertoireFormat::of(path) {
            RepertoireFormat::Pgn => self.write_pgn(path, comment),
            RepertoireFormat::Book => self.write_book(path),
        }
    }

    fn trees(&self) -> impl Iterator<Item = Tree<'_, &dyn Source>> {
        let limits = || Limits {
            memory: self.memory.share(2),
            ..Limits::default()
        };
        let tree = move |start: &VariantPosition| {
            Tree::new(self.moves, start.clone(), limits(), self.meter)
        };
        self.starts.iter().map(tree)
    }

    fn write_pgn(
        &self,
        path: &Path,
        comment: &dyn Fn(&Branch<'_>) -> Option<String>,
    ) -> Result<u64> {
        let mut out = BufferedFile::new(begun(path)?);
        let path = out.target().to_owned();
        let mut moves = 0;
        for tree in self.trees() {
            moves += tree.write_commented_pgn(&mut out, &path, comment)?;
        }
        out.commit()?;
        Ok(moves)
    }

    fn write_book(&self, path: &Path) -> Result<u64> {
        let mut file = begun(path)?;
        let tally = Tally::new(self.memory.share(2));
        for tree in self.trees() {
            tree.walk(Order::Positions, &mut |event| {
                let Event::Move(branch) = event else {
                    return Ok(());
                };
                let pos = branch.pos.position();
                if pos.turn() != self.color || has_inner_castling_rook(pos) {
                    return Ok(());
                }
                let weight = Stats {
                    wins: branch.mv.weight.max(1),
                    ..Stats::default()
                };
                let mv = BookMove::from(branch.mv.mv);
                tally.add(branch.pos.key(), mv, pos.turn(), weight)
            })?;
        }
        let weights = Weights {
            factors: Factors {
                win: 1,
                draw: 0,
                loss: 0,
            },
            ..Weights::default()
        };
        let (variants, title, temp_dir) =
            ([self.variant.name()], self.title, &self.memory.temp_dir);
        task::pool(0)?.install(|| {
            let counts = tally.seal()?;
            let filter = MoveFilter::every_move();
            let maker = BookMaker::new(&counts, &filter, &weights)?;
            let title = with_checksum(title);
            let header = maker.header(&variants, Some(&title), &Provenance::default());
            let header = header.map_err(|err| Error::format(path, err))?;
            maker.write(Some(&header), &mut file, temp_dir)?;
            file.commit()?;
            Ok(maker.summary().entries)
        })
    }
}

/// Writes a game for each answer that was added, and after them a PGN as it is: what its end leaves open, such as a
/// comment, takes no answer. The result is the user's, so nothing replaces it.
///
/// # Errors
///
/// A PGN that cannot be read, or a file that cannot be written.
pub fn add_to_pgn(
    pgn: &Path,
    added: &Added,
    start: &VariantPosition,
    path: &Path,
    memory: &Memory,
) -> Result<()> {
    let mut out = BufferedFile::new(begun(path)?);
    let path = out.target().to_owned();
    let mut games = GameWriter::new(&mut out);
    for (number, line) in (1..).zip(&added.lines) {
        games
            .begin("Added answer", number, start, None)
            .and_then(|()| games.words(line))
            .and_then(|()| games.end())
            .at(&path, "write")?;
    }
    let input = Input::file(pgn);
    let mut text = BufReader::with_capacity(
        1 << 16,
        input.open(&StreamOptions {
            memory: input.unpacking_memory(memory.bytes),
            ..StreamOptions::default()
        })?,
    );
    let read = |err| input.error(err);
    if text.fill_buf().map_err(read)?.starts_with(BYTE_ORDER_MARK) {
        text.consume(BYTE_ORDER_MARK.len());
    }
    loop {
        let part = text.fill_buf().map_err(read)?;
        if part.is_empty() {
            return out.commit();
        }
        out.put(part)?;
        let read = part.len();
        text.consume(read);
    }
}

/// It belongs to the start of a file.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Writes a book with answers that were added.
///
/// # Errors
///
/// A repertoire that is not a book, or a file that cannot be written.
pub fn add_to_book(
    repertoire: Known,
    added: &Added,
    path: &Path,
    memory: &Memory,
    meter: &Meter,
) -> Result<EditSummary> {
    let variant = repertoire.variant();
    let out = begun(path)?;
    let problem = "a book is written of a book: end the name in .pgn";
    let book = repertoire
        .into_book()
        .ok_or_else(|| Error::file(path, problem))?;
    let edits = added.answers.values().map(|(pos, answer)| PositionEdit {
        pos: pos.clone(),
        changes: vec![Change::Set {
            mv: crate::position::uci(pos, answer.mv),
            weight: NewWeight::Absolute(answer.weight.clamp(1, u16::MAX.into()) as u16),
        }],
    });
    let edits: Vec<PositionEdit> = edits.collect();
    edit_book(book, &edits, variant, out, memory, meter)
}

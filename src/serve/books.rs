//! Books whose moves the web page shows next to the results of games.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
};

use serde::Serialize;

use crate::{
    book::{Book, Entry, Scaling, Weights, shares},
    error::Result,
    explorer::Line,
    kind::FileKind,
    obs::{self, Obs},
    position::BookMove,
    storage::output::is_regular_file,
};

/// An open book that the server shows: a Polyglot book, or an SQLite database of opening moves (OOBS).
#[derive(Debug)]
pub struct BookFile {
    name: String,
    path: PathBuf,
    format: BookFormat,
}

#[derive(Debug)]
enum BookFormat {
    /// A Polyglot book. It is opened again if reading fails, because another program may have replaced the file.
    Polyglot(RwLock<Arc<Book>>),
    /// An OOBS database, with the factor that scales its weights to those of a Polyglot book.
    Oobs(Box<Obs>, Scaling),
}

/// The name of a book, and its moves in a position.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct BookMoves {
    name: String,
    moves: Vec<ShownBookMove>,
}

/// A move of a book, with its weight. The field `probability` is the weight in percent of the total weight of all moves
/// in the position.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct ShownBookMove {
    uci: String,
    san: String,
    weight: u16,
    probability: f64,
}

impl BookFile {
    /// Opens a Polyglot book or an OOBS database. The name of the book is its file name up to the first dot.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, or if it is neither a Polyglot book nor an OOBS database.
    pub fn open(path: impl AsRef<Path>) -> Result<BookFile> {
        let path = path.as_ref();
        let format = if FileKind::of(path)? == FileKind::Sqlite {
            let obs = Obs::open(path)?;
            let largest = obs.largest_weight(Weights::default().factors)?;
            BookFormat::Oobs(Box::new(obs), Scaling::new(largest))
        } else {
            BookFormat::Polyglot(RwLock::new(Arc::new(Book::open(path)?)))
        };
        Ok(BookFile {
            name: source_name(path),
            path: path.to_owned(),
            format,
        })
    }

    /// Returns the name under which polybook's web page shows the book.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the records of a Polyglot book for the last position of a line. If reading fails, for example because
    /// another program has replaced the file, opens the file again, stores the new book in `book`, and reads it once
    /// more. A pipe is not opened again, because that would block the thread.
    fn entries(&self, book: &RwLock<Arc<Book>>, line: &Line) -> Result<Vec<Entry>> {
        let entries_of = |book: &Book| match book.is_for(line.variant())? {
            true => book.moves_of(line.position()),
            false => Ok(Vec::new()),
        };
        let open = Arc::clone(&book.read().unwrap_or_else(PoisonError::into_inner));
        entries_of(&open).or_else(|err| {
            if !is_regular_file(&self.path)? {
                return Err(err);
            }
            let again = Arc::new(Book::open(&self.path)?);
            *book.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&again);
            entries_of(&again)
        })
    }

    /// Returns the legal moves of the book in the last position of a line, with their weights. Returns no moves if
    /// the book is for another variant.
    pub(super) fn moves(&self, line: &Line) -> Result<BookMoves> {
        let pos = line.position();
        let weighed: Vec<(BookMove, u16)> = match &self.format {
            BookFormat::Polyglot(book) => {
                let entries = self.entries(book, line)?.into_iter();
                entries.map(|entry| (entry.mv, entry.weight)).collect()
            }
            BookFormat::Oobs(obs, scaling) if obs.info().is_for(line.variant()) => {
                let rows = obs.moves(pos)?;
                let active = rows.into_iter().filter(obs::ObsRow::is_active);
                let weighed = active.filter_map(|row| {
                    let weight = Weights::default().weight(row.stats);
                    let mv = obs::legal_move(pos, &row.mv)?;
                    (weight > 0).then(|| (mv, scaling.apply(weight)))
                });
                weighed.collect()
            }
            _ => Vec::new(),
        };
        let legal = weighed.iter().map(|(mv, weight)| {
            let is_legal = mv.to_move(pos).is_some();
            is_legal.then_some(u64::from(*weight))
        });
        let shares = shares(&legal.collect::<Vec<_>>());
        let moves = weighed.into_iter().zip(shares);
        let moves = moves.filter_map(|((mv, weight), share)| {
            Some(ShownBookMove {
                uci: BookMove::from(mv.to_move(pos)?).to_string(),
                san: mv.san(pos)?,
                weight,
                probability: share?,
            })
        });
        Ok(BookMoves {
            name: self.name.clone(),
            moves: moves.collect(),
        })
    }
}

/// Returns the name under which polybook's web page shows a source or a book: its file name up to the first dot. A file
/// name that begins with a dot is returned unchanged.
///
/// ```
/// use polybook::serve::source_name;
/// assert_eq!(source_name("games/week 7.pgn.zst".as_ref()), "week 7");
/// ```
pub fn source_name(path: &Path) -> String {
    let name = path
        .file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy();
    match name.split_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem.to_owned(),
        _ => name.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MakeBook, pgn::Input, position::Variant};

    #[test]
    fn books_of_both_formats_give_equal_answers() {
        let dir = tempfile::tempdir().unwrap();
        let (bin, db) = (dir.path().join("a.bin"), dir.path().join("b.obs.db3"));
        let run = MakeBook::new([Input::file("data/famous.pgn")]).min_game(1);
        run.bin(&bin).obs(&db).run().unwrap();
        let (bin, db) = (BookFile::open(bin).unwrap(), BookFile::open(db).unwrap());
        assert_eq!((bin.name(), db.name()), ("a", "b"));
        let line = |variant| Line::parse(variant, None, "e4 e5 Nf3 Nc6 Bb5 a6 Ba4 Nf6").unwrap();
        let standard = line(Variant::Standard);
        let (mut one, mut other) = (bin.moves(&standard).unwrap(), db.moves(&standard).unwrap());
        // The position has the same key and the same EPD in this variant.
        let hill = line(Variant::KingOfTheHill);
        for book in [&bin, &db] {
            assert!(book.moves(&hill).unwrap().moves.is_empty());
        }
        for moves in [&mut one.moves, &mut other.moves] {
            moves.sort_by(|a, b| a.uci.cmp(&b.uci));
        }
        assert!(
            one.moves
                .iter()
                .any(|mv| mv.uci == "e1h1" && mv.san == "O-O")
        );
        assert_eq!(one.moves, other.moves);
    }

    /// Opening a pipe that no program writes to blocks the thread.
    #[cfg(unix)]
    #[test]
    fn a_book_that_became_a_pipe_is_not_opened_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.bin");
        let run = MakeBook::new([Input::file("data/famous.pgn")]).min_game(1);
        run.bin(&path).run().unwrap();
        let book = BookFile::open(&path).unwrap();
        let line = Line::parse(Variant::Standard, None, "").unwrap();
        assert!(!book.moves(&line).unwrap().moves.is_empty());
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(std::time::SystemTime::UNIX_EPOCH)
            .unwrap();
        std::fs::remove_file(&path).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        book.moves(&line).unwrap_err();
    }

    #[test]
    fn castling_of_a_database_is_one_move_in_both_spellings() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db3");
        let db = rusqlite::Connection::open(&path).unwrap();
        db.execute_batch(
            "CREATE TABLE Book (EPD TEXT, Move TEXT, Active INTEGER, Win INTEGER, Draw INTEGER, Loss INTEGER);
             INSERT INTO Book VALUES ('4k3/8/8/8/8/8/8/4K2R w K -', 'e1g1', 1, 3, 0, 0),
               ('4k3/8/8/8/8/8/8/4K2R w K -', 'e1h1', 1, 2, 1, 0), ('4k3/8/8/8/8/8/8/4K2R w K -', 'O-O', 0, 9, 0, 0),
               ('4k3/8/8/8/8/8/8/4K2R w K -', 'e1e2', 1, 4, 0, 0);",
        )
        .unwrap();
        let line = Line::parse(
            Variant::Standard,
            Some("4k3/8/8/8/8/8/8/4K2R w K - 0 1"),
            "",
        );
        let line = line.unwrap();
        let found = BookFile::open(&path).unwrap().moves(&line).unwrap().moves;
        let found: Vec<_> = found.iter().map(|mv| (&mv.san[..], mv.weight)).collect();
        assert_eq!(found, [("O-O", 11), ("Ke2", 8)]);

        // The tree and `show` give the same move. `show` also lists moves that are not to be played.
        let obs = Obs::open(&path).unwrap();
        let pos = crate::position::Keyed::new(line.position().clone());
        let tree = crate::tree::Source::moves(&obs, &pos).unwrap();
        let tree: Vec<u64> = tree.iter().map(|mv| mv.weight).collect();
        assert_eq!(tree, [11, 8]);
        let rows = obs.moves(line.position()).unwrap();
        let rows: Vec<_> = rows
            .iter()
            .map(|row| (&row.mv[..], row.stats.games()))
            .collect();
        assert_eq!(rows, [("O-O", 9), ("e1g1", 6), ("e1e2", 4)]);
    }
}

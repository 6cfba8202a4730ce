//! The books and repertoires whose moves the web page shows next to the results of games.

use std::{
    hash::{Hash, Hasher},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, atomic::AtomicBool},
    time::SystemTime,
};

use serde::Serialize;
use shakmaty::Color;

use super::{Parameters, hash, refusal::Refusal};
use crate::{
    chess::position::BookMove,
    error::Result,
    explore::{
        explorer::Line,
        practice::{Deck, Schedule},
        repertoire::{
            Edits, OpenOptions, OpenedSource, Predecessors, RemovedMoves, RepertoirePgn,
            without_moves,
        },
    },
    formats::{
        book::{Book, Entry, Scaling, Weights, shares},
        obs::{self, Obs},
    },
    json,
    kind::FileKind,
    progress::Meter,
    storage::{
        output::{TemporaryDir, is_regular_file},
        sort::Memory,
    },
    task,
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
    /// A Polyglot book. If reading fails, the file is opened again, because another program may have replaced it.
    Polyglot(RwLock<Arc<Book>>),
    /// An OOBS database, with the scaling that adjusts its weights to the range of a Polyglot book.
    Oobs(Box<Obs>, Scaling),
}

/// The name of a book, and its moves in a position.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct BookMoves {
    name: String,
    moves: Vec<ShownBookMove>,
}

/// A move of a book, with its weight. The field `probability` is the weight in percent of the total weight of all moves
/// in the position.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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

    /// Returns the records of a Polyglot book for the last position of a line.
    ///
    /// If reading fails, for example because another program has replaced the file, opens the file again, stores the
    /// new book in `book`, and tries once more. A pipe is not opened again, because this would block the thread.
    fn entries(&self, book: &RwLock<Arc<Book>>, line: &Line) -> Result<Vec<Entry>> {
        let entries_of = |book: &Book| {
            if book.is_for(line.variant())? {
                book.moves_of(line.position())
            } else {
                Ok(Vec::new())
            }
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

    /// Returns the legal moves of the book in the last position of a line, with their weights. The result is empty if
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

/// The memory budget, in bytes, for reading a repertoire without the moves that a user has removed.
const MEMORY_BUDGET: usize = 64 << 20;

/// The memory budget, in bytes, for the positions of a repertoire that a visitor practises.
const DECK_MEMORY: usize = 24 << 20;

/// A repertoire that the server shows, with its name, its side and its moves.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ServedRepertoire {
    pub(super) name: String,
    /// The secret by which the visitor who sent the repertoire requests it, or `None` if the server was started with
    /// the repertoire.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    #[serde(serialize_with = "json::color")]
    #[cfg_attr(test, schemars(with = "json::ColorName"))]
    pub(super) color: Color,
    #[serde(skip)]
    pub(super) known: Arc<OpenedSource>,
    /// Whether the file is PGN. Only PGN can be edited.
    pgn: bool,
    /// Whether visitors can practise the repertoire.
    pub(super) practise: bool,
    /// A string that identifies the content of the file. It differs after the file has changed.
    version: String,
    #[serde(skip)]
    pub(super) unedited: Arc<EditedRepertoire>,
    /// The text of the edits in the last request that had any, and the repertoire with these edits.
    #[serde(skip)]
    last_edited: Mutex<Option<(String, Arc<EditedRepertoire>)>>,
    /// The size and the modification time of the file, or `None` if they are unknown.
    #[serde(skip)]
    changed: Option<(u64, SystemTime)>,
    /// The results of practising the repertoire.
    #[serde(skip)]
    pub(super) results: Arc<PracticeResults>,
    /// The directory of the file, if it must be removed together with the repertoire.
    #[serde(skip)]
    _directory: Option<TemporaryDir>,
}

/// The place where the results of practising a repertoire are stored.
#[derive(Debug)]
pub(super) enum PracticeResults {
    /// A file that is stored beside the file of the repertoire.
    File(PathBuf),
    /// The memory of the server, so that the results are lost when it ends.
    Memory(Mutex<Schedule>),
}

impl PracticeResults {
    /// Returns the results of all practice so far.
    ///
    /// # Errors
    ///
    /// Returns an error if the file exists but does not contain such results.
    pub(super) fn read(&self) -> Result<Schedule> {
        match self {
            PracticeResults::File(path) => Schedule::read(path),
            PracticeResults::Memory(schedule) => Ok(task::lock(schedule).clone()),
        }
    }

    /// Changes the stored results with `change`. Returns the changed results with the value that `change` returned. If
    /// `change` returns an error, the results remain unchanged. Holds the lock `recording` while the file is changed,
    /// so that the requests of this server do not [wait](Schedule::update) for each other's files.
    ///
    /// # Errors
    ///
    /// Returns the error of `change`, or an error response if the file cannot be read or written.
    pub(super) fn update<T>(
        &self,
        recording: &Mutex<()>,
        change: impl FnOnce(&mut Schedule) -> Result<T, Refusal>,
    ) -> Result<(Schedule, T), Refusal> {
        match self {
            PracticeResults::File(path) => {
                let _recording = task::lock(recording);
                Schedule::update(path, change)
            }
            PracticeResults::Memory(stored) => {
                let mut stored = task::lock(stored);
                let mut schedule = stored.clone();
                let changed = change(&mut schedule)?;
                stored.clone_from(&schedule);
                Ok((schedule, changed))
            }
        }
    }
}

/// A repertoire with a user's edits.
#[derive(Debug)]
pub(super) struct EditedRepertoire {
    pub(super) known: Arc<OpenedSource>,
    pub(super) edits: Edits,
    pub(super) predecessors: Predecessors,
    /// The positions to practise, which are collected when they are first requested.
    deck: OnceLock<Arc<Deck>>,
    /// The directory with the temporary files of `known`. `None` if the edits did not require reading the file again.
    _directory: Option<TemporaryDir>,
}

/// Hashes everything that affects answers about the repertoire.
impl Hash for ServedRepertoire {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.name, &self.id, self.color, self.changed).hash(state);
    }
}

impl ServedRepertoire {
    /// Creates a repertoire for the side `color`. `known` contains its moves, which were read from the file `path`. The
    /// name of the file, up to the first dot, becomes the name of the repertoire.
    ///
    /// # Errors
    ///
    /// Returns an error if the moves of the repertoire cannot be read.
    pub fn new(path: &Path, color: Color, known: OpenedSource) -> Result<ServedRepertoire> {
        // The size and the time only distinguish the responses of different servers, so they may be unknown, as for a
        // pipe.
        let metadata = path.metadata().ok();
        let changed = metadata.and_then(|file| Some((file.len(), file.modified().ok()?)));
        let (name, known) = (source_name(path), Arc::new(known));
        let unedited = EditedRepertoire {
            known: Arc::clone(&known),
            edits: Edits::default(),
            predecessors: Predecessors::new(&known, color, &Meter::default())?,
            deck: OnceLock::new(),
            _directory: None,
        };
        Ok(ServedRepertoire {
            pgn: known.pgn().is_some(),
            version: format!("{:016x}", hash(&(&name, color, changed))),
            unedited: Arc::new(unedited),
            last_edited: Mutex::default(),
            name,
            id: None,
            practise: true,
            results: Arc::new(PracticeResults::File(Schedule::path_of(path))),
            _directory: None,
            color,
            known,
            changed,
        })
    }

    /// Restricts the repertoire to the visitor who sent it: only a request with the secret `id` can use it. If
    /// `directory` is given, it contains the file, and is removed together with the repertoire. The results of practice
    /// are then kept in memory.
    pub(super) fn sent_by_visitor(
        self,
        id: String,
        directory: Option<TemporaryDir>,
    ) -> ServedRepertoire {
        let results = match directory {
            Some(_) => Arc::new(PracticeResults::Memory(Mutex::default())),
            None => self.results,
        };
        ServedRepertoire {
            id: Some(id),
            results,
            _directory: directory,
            ..self
        }
    }

    /// Returns a copy of the repertoire that all visitors can use, because it needs no secret. `practise` says whether
    /// they can also practise it; they then share their results with the visitor who sent it. The file must not be in a
    /// temporary directory.
    pub(super) fn for_all_visitors(&self, practise: bool) -> ServedRepertoire {
        ServedRepertoire {
            name: self.name.clone(),
            id: None,
            color: self.color,
            known: Arc::clone(&self.known),
            pgn: self.pgn,
            practise,
            version: self.version.clone(),
            unedited: Arc::clone(&self.unedited),
            last_edited: Mutex::default(),
            changed: self.changed,
            results: Arc::clone(&self.results),
            _directory: None,
        }
    }

    /// Returns a copy of the repertoire with the [edits](Edits::parse) in the parameter `edits`. The file is not
    /// changed. Setting `stop` cancels the reading of the file.
    ///
    /// # Errors
    ///
    /// Returns an error response if the edits cannot be parsed. If the edits remove moves, so that the file must be
    /// read again, also returns an error response if the file is not a PGN, or if it has changed since the server was
    /// started.
    pub(super) fn edited(
        &self,
        parameters: &Parameters,
        stop: &Arc<AtomicBool>,
    ) -> Result<Arc<EditedRepertoire>, Refusal> {
        let Some(edits) = parameters.text("edits").filter(|edits| !edits.is_empty()) else {
            return Ok(Arc::clone(&self.unedited));
        };
        let last = task::lock(&self.last_edited).clone();
        if let Some((_, edited)) = last.filter(|(of, _)| of == edits) {
            return Ok(edited);
        }
        let text = edits.to_owned();
        let edits = Edits::parse(&text, self.known.variant(), self.color).map_err(|problem| {
            Refusal::bad(format!("the parameter edits cannot be read: {problem}"))
        })?;
        let (left, directory) = if edits.removed().is_empty() {
            (Arc::clone(&self.known), None)
        } else {
            let directory = TemporaryDir::new_in(&std::env::temp_dir())?;
            let left = self.without(edits.removed(), directory.path(), stop)?;
            (Arc::new(left), Some(directory))
        };
        let known = Arc::new(OpenedSource::extended(&left, self.color, &edits));
        let edited = Arc::new(EditedRepertoire {
            predecessors: Predecessors::new(&known, self.color, &Meter::stopped_by(stop))?,
            deck: OnceLock::new(),
            known,
            edits,
            _directory: directory,
        });
        *task::lock(&self.last_edited) = Some((text, Arc::clone(&edited)));
        Ok(edited)
    }

    /// Returns the repertoire without the moves in `removed`, for which its file is read again. The returned value uses
    /// temporary files in `directory`, which must exist until the value is dropped. Setting `stop` cancels the reading.
    ///
    /// # Errors
    ///
    /// Returns an error response if the file is not a PGN, or if it has changed since the server was started.
    fn without(
        &self,
        removed: &RemovedMoves,
        directory: &Path,
        stop: &Arc<AtomicBool>,
    ) -> Result<OpenedSource, Refusal> {
        let pgn = self.pgn_file()?;
        let memory = Memory {
            bytes: MEMORY_BUDGET,
            temp_dir: directory.to_owned(),
        };
        let options = OpenOptions {
            untagged: pgn.untagged_variant(),
            stop: Arc::clone(stop),
            ..OpenOptions::new(directory, memory)
        };
        Ok(without_moves(&self.known, removed, &options)?)
    }

    /// Returns the PGN file from which the server read the repertoire.
    ///
    /// # Errors
    ///
    /// Returns an error response if the repertoire is a book or a database, or if the file has changed since the server
    /// was started.
    pub(super) fn pgn_file(&self) -> Result<&RepertoirePgn, Refusal> {
        let name = &self.name;
        let pgn = self.known.pgn().ok_or_else(|| {
            let problem =
                format!("the repertoire {name} is not a PGN file, but only PGN can be edited");
            Refusal::bad(problem)
        })?;
        if !pgn.is_unchanged()? {
            let problem = format!(
                "the file of the repertoire {name} has changed since the server started: start the server again when no \
                 program writes the file"
            );
            return Err(Refusal::bad(problem));
        }
        Ok(pgn)
    }
}

impl EditedRepertoire {
    /// Returns the positions that a visitor can practise in the repertoire for the side `color`. Setting `stop` cancels
    /// the search for them.
    ///
    /// # Errors
    ///
    /// Returns an error if the repertoire cannot be read, or if it has too many positions.
    pub(super) fn deck(&self, color: Color, stop: &Arc<AtomicBool>) -> Result<Arc<Deck>> {
        if let Some(deck) = self.deck.get() {
            return Ok(Arc::clone(deck));
        }
        let memory = Memory {
            bytes: DECK_MEMORY,
            ..Memory::default()
        };
        let (variant, meter) = (self.known.variant(), Meter::stopped_by(stop));
        let deck = Arc::new(Deck::new(&self.known, variant, color, &memory, &meter)?);
        Ok(Arc::clone(self.deck.get_or_init(|| deck)))
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, sync::atomic::Ordering};

    use super::*;
    use crate::{
        MakeBook,
        chess::position::{Keyed, Variant},
        games::pgn::Input,
    };

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
        let pos = crate::chess::position::Keyed::new(line.position().clone());
        let tree = crate::explore::tree::MoveSource::moves(&obs, &pos).unwrap();
        let tree: Vec<u64> = tree.iter().map(|mv| mv.weight).collect();
        assert_eq!(tree, [11, 8]);
        let rows = obs.moves(line.position()).unwrap();
        let rows: Vec<_> = rows
            .iter()
            .map(|row| (&row.mv[..], row.stats.games()))
            .collect();
        assert_eq!(rows, [("O-O", 9), ("e1g1", 6), ("e1e2", 4)]);
    }

    #[test]
    fn a_flag_cancels_the_reading_of_an_edited_repertoire() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mine.pgn");
        fs::write(&path, "1. e4 e5 (1... c5 2. Nf3) 2. Nc3 *\n").unwrap();
        let options = OpenOptions::new(dir.path(), Memory::default());
        let known = OpenedSource::repertoire(&path, &options).unwrap();
        let served = ServedRepertoire::new(&path, Color::White, known).unwrap();
        let stop = Arc::new(AtomicBool::new(true));
        for edits in ["edits=-e2e4,c7c5,g1f3", "edits=e2e4,e7e6,d2d4"] {
            let parameters = Parameters::parse_only(edits, &["edits"]).unwrap();
            stop.store(true, Ordering::Relaxed);
            let refusal = served.edited(&parameters, &stop).unwrap_err();
            assert_eq!(refusal.status(), 503, "{edits}: {refusal:?}");
            stop.store(false, Ordering::Relaxed);
            let edited = served.edited(&parameters, &stop).unwrap();
            let start = Keyed::new(Variant::Standard.start());
            assert_eq!(
                edited.known.moves_by_weight(&start).unwrap().len(),
                1,
                "{edits}"
            );
        }
    }

    #[test]
    fn an_edited_repertoire_keeps_its_variant() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mine.pgn");
        fs::write(&path, "[Variant \"Chess960\"]\n\n1. e4 e5 *\n").unwrap();
        let options = OpenOptions::new(dir.path(), Memory::default());
        let known = OpenedSource::repertoire(&path, &options).unwrap();
        let variant = known.variant();
        assert_eq!(variant, Variant::Chess960);
        let served = ServedRepertoire::new(&path, Color::White, known).unwrap();
        let parameters = Parameters::parse_only("edits=-e2e4", &["edits"]).unwrap();
        let edited = served.edited(&parameters, &Arc::default()).unwrap();
        assert_eq!(edited.known.variant(), variant);
    }
}

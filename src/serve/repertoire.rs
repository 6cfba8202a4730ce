//! Repertoires whose moves the web page shows next to the results of games.

use std::{
    hash::{Hash, Hasher},
    path::Path,
    sync::{Arc, Mutex, atomic::AtomicBool},
    time::SystemTime,
};

use serde::{Serialize, Serializer};
use shakmaty::Color;

use super::{Parameters, books::source_name, hash, refusal::Refusal};
use crate::{
    error::Result,
    progress::Meter,
    repertoire::{
        Edits, MoveSource, OpenOptions, Predecessors, RemovedMoves, RepertoirePgn, without_moves,
    },
    storage::{output::TemporaryDir, sort::Memory},
    task,
};

/// The memory budget, in bytes, for reading a repertoire again after a user has removed some of its moves.
const MEMORY_BUDGET: usize = 64 << 20;

/// A repertoire that the server shows, with its name, its side and its moves.
#[derive(Debug, Serialize)]
pub struct ServedRepertoire {
    pub(super) name: String,
    #[serde(serialize_with = "named")]
    pub(super) color: Color,
    #[serde(skip)]
    pub(super) known: Arc<MoveSource>,
    /// Whether the file is PGN. Only PGN can be edited.
    pgn: bool,
    /// A string that identifies the content of the file. It differs after the file has changed.
    version: String,
    #[serde(skip)]
    pub(super) unedited: Arc<EditedRepertoire>,
    /// The edits of the last request with edits, as text, and the repertoire with these edits.
    #[serde(skip)]
    last_edited: Mutex<Option<(String, Arc<EditedRepertoire>)>>,
    /// The size and the modification time of the file, or `None` if they are unknown.
    #[serde(skip)]
    changed: Option<(u64, SystemTime)>,
}

/// A repertoire to which a user's edits were applied.
#[derive(Debug)]
pub(super) struct EditedRepertoire {
    pub(super) known: Arc<MoveSource>,
    pub(super) edits: Edits,
    pub(super) predecessors: Predecessors,
    /// The directory of the temporary files of `known`. `None` if the file was not read again.
    _directory: Option<TemporaryDir>,
}

/// Hashes everything that determines the answers about the repertoire.
impl Hash for ServedRepertoire {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.name, self.color, self.changed).hash(state);
    }
}

impl ServedRepertoire {
    /// Creates a repertoire for the side `color`. `known` contains its moves, which were read from the file `path`. The
    /// name of the file, up to the first dot, becomes the name of the repertoire.
    ///
    /// # Errors
    ///
    /// Returns an error if the moves of the repertoire cannot be read.
    pub fn new(path: &Path, color: Color, known: MoveSource) -> Result<ServedRepertoire> {
        // The size and the time only distinguish the responses of different servers, so they may be unknown, as for a
        // pipe.
        let metadata = path.metadata().ok();
        let changed = metadata.and_then(|file| Some((file.len(), file.modified().ok()?)));
        let (name, known) = (source_name(path), Arc::new(known));
        let unedited = EditedRepertoire {
            known: Arc::clone(&known),
            edits: Edits::default(),
            predecessors: Predecessors::new(&known, color, &Meter::default())?,
            _directory: None,
        };
        Ok(ServedRepertoire {
            pgn: known.pgn().is_some(),
            version: format!("{:016x}", hash(&(&name, color, changed))),
            unedited: Arc::new(unedited),
            last_edited: Mutex::default(),
            name,
            color,
            known,
            changed,
        })
    }

    /// Returns a copy of the repertoire to which the [edits](Edits::parse) in the parameter `edits` are applied. The
    /// file is not changed. Setting `stop` cancels the reading of the file.
    ///
    /// # Errors
    ///
    /// Returns an error response if the edits cannot be parsed. If the edits remove moves, the file must be read again.
    /// Then also returns an error response if the file is not a PGN, or if it has changed since the server was started.
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
        let (left, directory) = match edits.removed().is_empty() {
            true => (Arc::clone(&self.known), None),
            false => {
                let directory = TemporaryDir::new_in(&std::env::temp_dir())?;
                let left = self.without(edits.removed(), directory.path(), stop)?;
                (Arc::new(left), Some(directory))
            }
        };
        let known = Arc::new(MoveSource::extended(&left, self.color, &edits));
        let edited = Arc::new(EditedRepertoire {
            predecessors: Predecessors::new(&known, self.color, &Meter::stopped_by(stop))?,
            known,
            edits,
            _directory: directory,
        });
        *task::lock(&self.last_edited) = Some((text, Arc::clone(&edited)));
        Ok(edited)
    }

    /// Reads the repertoire from its file again, and returns it without the moves in `removed`. The returned value uses
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
    ) -> Result<MoveSource, Refusal> {
        let pgn = self.pgn_file()?;
        let options = OpenOptions {
            variant: None,
            untagged: pgn.untagged_variant(),
            filter: None,
            memory: Memory {
                bytes: MEMORY_BUDGET,
                temp_dir: directory.to_owned(),
            },
            threads: 1,
            directory,
            stop: Arc::clone(stop),
            counting: &|_| Box::new(()),
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

/// Serializes a color as the string `white` or `black`.
fn named<S: Serializer>(color: &Color, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    color.fold_wb("white", "black").serialize(serializer)
}

#[cfg(test)]
mod tests {
    use std::{fs, sync::atomic::Ordering};

    use super::*;
    use crate::position::{Keyed, Variant};

    fn options(directory: &Path) -> OpenOptions<'_> {
        OpenOptions {
            variant: None,
            untagged: Variant::Standard,
            filter: None,
            memory: Memory::default(),
            threads: 1,
            directory,
            stop: Arc::default(),
            counting: &|_| Box::new(()),
        }
    }

    #[test]
    fn a_flag_cancels_the_reading_of_an_edited_repertoire() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mine.pgn");
        fs::write(&path, "1. e4 e5 (1... c5 2. Nf3) 2. Nc3 *\n").unwrap();
        let options = options(dir.path());
        let known = MoveSource::repertoire(&path, &options).unwrap();
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
        let options = options(dir.path());
        let known = MoveSource::repertoire(&path, &options).unwrap();
        let variant = known.variant();
        assert_eq!(variant, Variant::Chess960);
        let served = ServedRepertoire::new(&path, Color::White, known).unwrap();
        let parameters = Parameters::parse_only("edits=-e2e4", &["edits"]).unwrap();
        let edited = served.edited(&parameters, &Arc::default()).unwrap();
        assert_eq!(edited.known.variant(), variant);
    }
}

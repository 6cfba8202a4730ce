//! Repertoires whose moves the page shows next to the counts.

use std::{
    hash::{Hash, Hasher},
    path::Path,
    sync::{Arc, Mutex},
    time::SystemTime,
};

use serde::{Serialize, Serializer};
use shakmaty::Color;

use super::{Parameters, books::source_name, hash, refusal::Refusal};
use crate::{
    error::Result,
    repertoire::{
        Edits, MoveSource, OpenOptions, Predecessors, RemovedMoves, RepertoirePgn, without_moves,
    },
    storage::{output::TemporaryDir, sort::Memory},
    task,
};

/// The memory budget in bytes for reading a repertoire again without the moves that a user removed.
const MEMORY: usize = 64 << 20;

/// A repertoire for one side that a server shows, with its name and its moves.
#[derive(Debug, Serialize)]
pub struct ServedRepertoire {
    pub(super) name: String,
    #[serde(serialize_with = "named")]
    pub(super) color: Color,
    #[serde(skip)]
    pub(super) known: Arc<MoveSource>,
    /// Whether the file is a PGN, which can be edited.
    pgn: bool,
    /// A text that differs for each state of the file.
    version: String,
    #[serde(skip)]
    pub(super) unedited: Arc<EditedRepertoire>,
    /// The repertoire with the edits of the last request that had some.
    #[serde(skip)]
    last_edited: Mutex<Option<(String, Arc<EditedRepertoire>)>>,
    /// The size and the modification time of the file, on which answers depend. `None` if they are unknown.
    #[serde(skip)]
    changed: Option<(u64, SystemTime)>,
}

/// A repertoire with the edits of a user in a request.
#[derive(Debug)]
pub(super) struct EditedRepertoire {
    pub(super) known: Arc<MoveSource>,
    pub(super) edits: Edits,
    pub(super) predecessors: Predecessors,
    /// The directory that `known` needs for temporary files if the file was read again.
    _directory: Option<TemporaryDir>,
}

/// Hashes everything on which answers about the repertoire depend.
impl Hash for ServedRepertoire {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.name, self.color, self.changed).hash(state);
    }
}

impl ServedRepertoire {
    /// Creates a served repertoire for `color` with the moves in `known`. Its name is that of the file at `path`,
    /// without extensions. The path is also used to notice that the file was changed.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read.
    pub fn new(path: &Path, color: Color, known: MoveSource) -> Result<ServedRepertoire> {
        // The state only tells answers of two servers apart. A pipe has none.
        let metadata = path.metadata().ok();
        let changed = metadata.and_then(|file| Some((file.len(), file.modified().ok()?)));
        let (name, known) = (source_name(path), Arc::new(known));
        let unedited = EditedRepertoire {
            known: Arc::clone(&known),
            edits: Edits::default(),
            predecessors: Predecessors::new(&known, color)?,
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

    /// Returns a copy of the repertoire with the [edits](Edits::parse) in the parameter `edits`. The file is not
    /// changed.
    ///
    /// # Errors
    ///
    /// Returns a refusal if the edits cannot be read, if they remove moves of a file that is not a PGN, or if the file
    /// has changed since the server was started and has to be read again.
    pub(super) fn edited(&self, parameters: &Parameters) -> Result<Arc<EditedRepertoire>, Refusal> {
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
                let left = self.without(edits.removed(), directory.path())?;
                (Arc::new(left), Some(directory))
            }
        };
        let known = Arc::new(MoveSource::extended(&left, self.color, &edits));
        let edited = Arc::new(EditedRepertoire {
            predecessors: Predecessors::new(&known, self.color)?,
            known,
            edits,
            _directory: directory,
        });
        *task::lock(&self.last_edited) = Some((text, Arc::clone(&edited)));
        Ok(edited)
    }

    /// Returns the repertoire of the file without the moves in `removed`. `directory` is for temporary files, and must
    /// exist as long as the returned value.
    ///
    /// # Errors
    ///
    /// Returns a refusal if the file is not a PGN, or if it has changed since the server was started.
    fn without(&self, removed: &RemovedMoves, directory: &Path) -> Result<MoveSource, Refusal> {
        let pgn = self.pgn_file()?;
        let options = OpenOptions {
            variant: None,
            untagged: pgn.untagged_variant(),
            filter: None,
            memory: Memory {
                bytes: MEMORY,
                temp_dir: directory.to_owned(),
            },
            threads: 1,
            directory,
            counting: &|_| Box::new(()),
        };
        Ok(without_moves(&self.known, removed, &options)?)
    }

    /// Returns the PGN file of the repertoire.
    ///
    /// # Errors
    ///
    /// Returns a refusal if the repertoire is a book or a database.
    pub(super) fn pgn_file(&self) -> Result<&RepertoirePgn, Refusal> {
        self.known.pgn().ok_or_else(|| {
            let name = &self.name;
            let problem =
                format!("the repertoire {name} is not a PGN file, but only PGN can be edited");
            Refusal::bad(problem)
        })
    }
}

/// Serializes a color as `white` or `black`.
fn named<S: Serializer>(color: &Color, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    color.fold_wb("white", "black").serialize(serializer)
}

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
    explorer::Line,
    repertoire::{MoveSource, Predecessors},
    task,
};

/// A repertoire for one side that a server shows, with its name and its moves.
#[derive(Debug, Serialize)]
pub struct ServedRepertoire {
    pub(super) name: String,
    #[serde(serialize_with = "named")]
    pub(super) color: Color,
    #[serde(skip)]
    pub(super) known: Arc<MoveSource>,
    /// Whether the file is a PGN, to which moves can be added.
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

/// A repertoire to which a user has added lines in a request.
#[derive(Debug)]
pub(super) struct EditedRepertoire {
    pub(super) known: Arc<MoveSource>,
    pub(super) lines: Vec<Line>,
    pub(super) predecessors: Predecessors,
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
            lines: Vec::new(),
            predecessors: Predecessors::new(&known, color)?,
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

    /// Returns a copy of the repertoire to which the lines in the parameter `edits` are added. Lines are separated by
    /// semicolons. A line consists of moves in UCI notation from the starting position of the variant. Only moves of
    /// the repertoire's side are added.
    ///
    /// # Errors
    ///
    /// Returns a refusal if a line is empty or has an illegal move.
    pub(super) fn edited(&self, parameters: &Parameters) -> Result<Arc<EditedRepertoire>, Refusal> {
        let Some(edits) = parameters.text("edits").filter(|edits| !edits.is_empty()) else {
            return Ok(Arc::clone(&self.unedited));
        };
        let last = task::lock(&self.last_edited).clone();
        if let Some((_, edited)) = last.filter(|(of, _)| of == edits) {
            return Ok(edited);
        }
        let line = |text: &str| match text {
            "" => Err(Refusal::bad("edits: a line is empty")),
            text => Line::parse(self.known.variant(), None, text)
                .map_err(|err| Refusal::bad(format!("edits: {err}"))),
        };
        let lines: Vec<Line> = edits
            .split(';')
            .map(line)
            .collect::<std::result::Result<_, _>>()?;
        let known = Arc::new(MoveSource::extended(&self.known, self.color, &lines));
        let edited = Arc::new(EditedRepertoire {
            predecessors: Predecessors::new(&known, self.color)?,
            known,
            lines,
        });
        *task::lock(&self.last_edited) = Some((edits.to_owned(), Arc::clone(&edited)));
        Ok(edited)
    }
}

/// Serializes a color as `white` or `black`.
fn named<S: Serializer>(color: &Color, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    color.fold_wb("white", "black").serialize(serializer)
}

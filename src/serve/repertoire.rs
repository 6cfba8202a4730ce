//! Repertoires that are shown next to the counts.

use std::{
    collections::BTreeMap,
    hash::{Hash, Hasher},
    path::Path,
    time::SystemTime,
};

use serde::{Serialize, Serializer};
use shakmaty::Color;

use super::{
    books::source_name,
    content::{CacheKey, Content},
    refusal::Refusal,
    request::Route,
    state::AppState,
};
use crate::{
    error::Result,
    repertoire::{LineReport, MoveSource, Predecessors, along},
};

/// A repertoire of one side.
#[derive(Debug, Serialize)]
pub struct ServedRepertoire {
    pub(super) name: String,
    #[serde(serialize_with = "named")]
    pub(super) color: Color,
    #[serde(skip)]
    pub(super) known: MoveSource,
    #[serde(skip)]
    predecessors: Predecessors,
    /// The size and the modification time of the file. Answers depend on them, because another state of the file may give
    /// other answers.
    #[serde(skip)]
    changed: Option<(u64, SystemTime)>,
}

/// Hashes everything that answers of the repertoire depend on.
impl Hash for ServedRepertoire {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.name, self.color, self.changed).hash(state);
    }
}

/// The report of a repertoire about a position.
#[derive(Serialize)]
struct RepertoireReport<'a> {
    #[serde(flatten)]
    served: &'a ServedRepertoire,
    #[serde(flatten)]
    report: LineReport,
}

impl ServedRepertoire {
    /// Creates a repertoire that is named like its file, without extensions.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read.
    pub fn new(path: &Path, color: Color, known: MoveSource) -> Result<ServedRepertoire> {
        let metadata = path.metadata().ok();
        let changed = metadata.and_then(|file| Some((file.len(), file.modified().ok()?)));
        Ok(ServedRepertoire {
            name: source_name(path),
            color,
            predecessors: Predecessors::new(&known, color)?,
            known,
            changed,
        })
    }
}

/// Serializes a color as its name.
fn named<S: Serializer>(color: &Color, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    color.fold_wb("white", "black").serialize(serializer)
}

impl AppState {
    /// Answers `/repertoire`: the report of each repertoire about a position, restricted by the filters.
    pub(super) fn repertoires(&self, key: &CacheKey) -> Result<Content, Refusal> {
        let query = self.request(key, Route::Facets)?.query;
        let mut reports = Vec::new();
        for served in &self.repertoires {
            if !served.known.is_for(query.line.variant()) {
                continue;
            }
            let (known, predecessors) = (&served.known, &served.predecessors);
            reports.push(RepertoireReport {
                served,
                report: along(
                    &query.line,
                    known,
                    predecessors,
                    &self.explorer,
                    &query.filters,
                )?,
            });
        }
        let document = BTreeMap::from([("repertoires", reports)]);
        self.kept(key, Content::json(&document)?)
    }
}

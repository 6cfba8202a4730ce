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
    books::source_name, content::Content, refusal::Refusal, request::Route,
    response_cache::CacheKey, state::AppState,
};
use crate::{
    error::Result,
    repertoire::{Known, LineReport, along},
};

/// A repertoire of a side.
#[derive(Debug, Serialize)]
pub struct ServedRepertoire {
    pub(super) name: String,
    #[serde(serialize_with = "named")]
    pub(super) color: Color,
    #[serde(skip)]
    pub(super) known: Known,
    /// Answers about another state of the file are others.
    #[serde(skip)]
    changed: Option<(u64, SystemTime)>,
}

/// What answers of it depend on.
impl Hash for ServedRepertoire {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.name, self.color, self.changed).hash(state);
    }
}

/// What a repertoire says of a position.
#[derive(Serialize)]
struct RepertoireReport<'a> {
    #[serde(flatten)]
    served: &'a ServedRepertoire,
    #[serde(flatten)]
    report: LineReport,
}

impl ServedRepertoire {
    /// A repertoire, under the name of its file without endings.
    pub fn new(path: &Path, color: Color, known: Known) -> ServedRepertoire {
        let metadata = path.metadata().ok();
        let changed = metadata.and_then(|file| Some((file.len(), file.modified().ok()?)));
        ServedRepertoire {
            name: source_name(path),
            color,
            known,
            changed,
        }
    }
}

fn named<S: Serializer>(color: &Color, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    color.fold_wb("white", "black").serialize(serializer)
}

impl AppState {
    /// `/repertoire`: what each repertoire says of a position, under the filters.
    pub(super) fn repertoires(&self, key: &CacheKey) -> Result<Content, Refusal> {
        let query = self.request(key, Route::Facets)?.query;
        let mut reports = Vec::new();
        for served in &self.repertoires {
            if !served.known.is_for(query.line.variant()) {
                continue;
            }
            let (color, known) = (served.color, &served.known);
            reports.push(RepertoireReport {
                served,
                report: along(&query.line, color, known, &self.explorer, &query.filters)?,
            });
        }
        let document = BTreeMap::from([("repertoires", reports)]);
        self.kept(key, Content::json(&document)?)
    }
}

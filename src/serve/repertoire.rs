//! Repertoires that are shown next to the counts.

use std::{collections::BTreeMap, path::Path};

use serde::Serialize;
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
#[derive(Debug)]
pub struct ServedRepertoire {
    name: String,
    color: Color,
    known: Known,
}

/// What a repertoire says of a position.
#[derive(Serialize)]
struct RepertoireReport<'a> {
    name: &'a str,
    color: &'static str,
    #[serde(flatten)]
    report: LineReport,
}

impl ServedRepertoire {
    /// A repertoire, under the name of its file without endings.
    pub fn new(path: &Path, color: Color, known: Known) -> ServedRepertoire {
        ServedRepertoire {
            name: source_name(path),
            color,
            known,
        }
    }
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
                name: &served.name,
                color: color.fold_wb("white", "black"),
                report: along(&query.line, color, known, &self.explorer, &query.filters)?,
            });
        }
        let document = BTreeMap::from([("repertoires", reports)]);
        self.kept(key, Content::json(&document)?)
    }
}

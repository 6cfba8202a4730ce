//! Repertoires built of the games that pass filters, as `polybook repertoire` builds them of counts, and the command that
//! does.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use serde_json::json;
use shakmaty::Color;

use super::{
    Parameters, Refusal, Route,
    content::Content,
    make::{LONGEST, MEMORY, Words, depth},
    request,
    response_cache::CacheKey,
    state::AppState,
};
use crate::{
    error::{At, Error},
    progress::Meter,
    repertoire::{Build, By, Known, Opening, Writing, build},
    sort::Memory,
};

/// How many games there may be for each that comes to a position: rarer replies are not answered.
const RAREST: u32 = 10_000;

impl AppState {
    /// Builds a repertoire, or counts what is in it.
    pub(super) fn build(&self, key: &CacheKey, stop: &Arc<AtomicBool>) -> Result<Content, Refusal> {
        let filters = self.request(key, Route::Build)?.query.filters;
        let own = [&Parameters::OF_GAMES[..], &request::OF_BUILDING].concat();
        let parameters = Parameters::parse_only(&key.query, &own)?;
        let only_counts = parameters.flag("count")?.unwrap_or(false);
        let color = parameters.choice("side", |side| match side {
            "white" => Some(Color::White),
            "black" => Some(Color::Black),
            _ => None,
        })?;
        let color = color.ok_or_else(|| Refusal::bad("side: choose white or black"))?;
        let by = parameters.choice("by", |by| match by {
            "score" => Some(By::Score),
            "games" => Some(By::Games),
            _ => None,
        })?;
        let by = by.unwrap_or(By::Score);
        let one_in = parameters.number("reach")?.unwrap_or(200).clamp(1, RAREST);
        let depth = depth(&parameters)?;
        let mut words = Words::default();
        words.add("--max-ply", depth);
        let mut counting = self.counting(&filters, &parameters, depth, &mut words)?;
        let variant = counting.variant;

        let directory = tempfile::tempdir().at("a temporary directory", "create")?;
        let counts = directory.path().join("counts");
        counting.run = counting.run.counts(&counts).temp_dir(directory.path());
        let report = counting.report("repertoire", stop)?;
        let memory = Memory {
            bytes: MEMORY,
            temp_dir: directory.path().to_owned(),
        };
        let opening = Opening {
            variant: Some(variant),
            memory: memory.clone(),
            threads: 1,
            directory: directory.path(),
            counting: &|_| Box::new(()),
        };
        let source = Known::source(&counts, false, &opening)?;
        let (start, meter) = (variant.start(), Meter::default());
        let built = build(&Build {
            start: &start,
            color,
            source: &source,
            keep: None,
            by,
            one_in: one_in.into(),
            max_ply: Some(depth as usize),
            memory: MEMORY,
            meter: &meter,
        })?;
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted.into());
        }
        let name = key.path.trim_start_matches('/');
        let path = directory.path().join(name);
        let writing = Writing {
            moves: &built,
            starts: std::slice::from_ref(&start),
            variant,
            color,
            title: &format!("Repertoire for {color}"),
            memory: &memory,
            meter: &meter,
        };
        writing.write(&path, &|branch| built.comment(branch))?;
        let size = fs::metadata(&path).at(&path, "read")?.len();
        if size > LONGEST as u64 {
            let problem = format!(
                "the repertoire has more than {} MiB: lower depth",
                LONGEST >> 20
            );
            return Err(Refusal::bad(problem));
        }
        if only_counts {
            let by = if by == By::Games { " --by games" } else { "" };
            let command = format!(
                "polybook make-book {} --counts counts && polybook repertoire build counts --color {color} \
                 --reach {one_in} --max-ply {depth}{by} --out {name}",
                words.joined(),
            );
            return Content::json(&json!({
                "games": report.totals.games.counted,
                "answers": built.summary.positions,
                "bytes": size,
                "command": command,
            }));
        }
        let bytes = fs::read(&path).at(&path, "read")?;
        Ok(match name.ends_with(".pgn") {
            true => Content::pgn(bytes),
            false => Content::book(bytes),
        })
    }
}

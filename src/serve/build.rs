//! Answers requests that concern repertoires. Builds repertoires from filtered games, as `polybook repertoire build`
//! does; finds the gaps of the server's repertoires; and writes these repertoires with a user's edits.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use serde::Serialize;
use serde_json::json;
use shakmaty::{Color, Move, Position};

use super::{
    Parameters, Refusal, Request, Route, ServedRepertoire,
    content::{CacheKey, Content},
    make::{Counting, MEMORY_BUDGET, OptionWords, depth, read_limited},
    state::AppState,
};
use crate::{
    error::Error,
    pgn::StreamOptions,
    position::{Keyed, Variant},
    progress::Meter,
    repertoire::{
        Additions, Build, CommentDetail, FindGaps, Gaps, LineReport, MoveSource, OpenOptions,
        OwnMoveRule, RepertoireFile, Writing, add_to_pgn, build, gaps, line_report,
    },
    storage::output::TemporaryDir,
    storage::sort::Memory,
    tree::{Source, played},
};

/// The maximum value of the parameter `reach`. If the value is N, the repertoire answers every position that at least
/// one in N games reaches.
const MOST_REACH: u32 = 10_000;

/// The maximum number of gaps in a response.
const MOST_GAPS: u32 = 10_000;

impl AppState {
    /// Answers `/repertoire.pgn` and `/repertoire.bin`: builds a repertoire from the games that pass the filters, and
    /// returns it as a file. With the parameter `count`, stores the file for a later request instead, and returns the
    /// size of the repertoire and an equivalent polybook command. With the parameter `repertoire`, builds nothing, but
    /// returns one of the server's repertoires with the user's edits. Setting `stop` cancels the work.
    pub(super) fn build(&self, key: &CacheKey, stop: &Arc<AtomicBool>) -> Result<Content, Refusal> {
        let Request {
            query, parameters, ..
        } = self.request(key, Route::Build)?;
        if parameters.text("repertoire").is_some() {
            return self.edited_pgn(&parameters, stop);
        }
        let only_counts = parameters.flag("count")?.unwrap_or(false);
        let color = side(&parameters)?;
        let by = parameters.choice("by", "score or games", |by| match by {
            "score" => Some(OwnMoveRule::Score),
            "games" => Some(OwnMoveRule::Games),
            _ => None,
        })?;
        let by = by.unwrap_or(OwnMoveRule::Score);
        let one_in = parameters.number("reach", 1..=MOST_REACH)?.unwrap_or(200);
        let depth = depth(&parameters)?;
        let of = self.content_identity(key, &query.filters, &parameters)?;
        if !only_counts && let Some(content) = self.take_content(&of) {
            return Ok(content);
        }
        let mut words = OptionWords::default();
        words.add("--max-ply", depth);
        let counting = self.counting(&query.filters, &parameters, depth, &mut words, stop)?;
        let variant = counting.variant;

        let directory = TemporaryDir::new_in(&std::env::temp_dir())?;
        let (source, games) = count_games(counting, "repertoire", directory.path(), stop)?;
        let (start, meter) = (variant.start(), Meter::stopped_by(stop));
        let built = build(&Build {
            start: &start,
            color,
            source: &source,
            keep: None,
            by,
            one_in: one_in.into(),
            min_game: None,
            max_ply: Some(depth as usize),
            memory: MEMORY_BUDGET,
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
            memory: &memory(directory.path()),
            meter: &meter,
        };
        let out = RepertoireFile::create(&path, true)?;
        writing.write(
            out,
            Some(&|branch| built.comment(branch, CommentDetail::Full)),
        )?;
        let bytes = read_limited(&path, "repertoire", "lower depth")?;
        let size = bytes.len();
        let content = match name.ends_with(".pgn") {
            true => Content::pgn(bytes),
            false => Content::book(bytes),
        };
        if only_counts {
            self.keep_content(of, content);
            let by = if by == OwnMoveRule::Games {
                " --by games"
            } else {
                ""
            };
            let command = format!(
                "polybook make-book {} --counts counts && polybook repertoire build counts --color {color} \
                 --reach {one_in} --max-ply {depth}{by} --out {name}",
                words.joined(),
            );
            return Content::json(&json!({
                "games": games,
                "answers": built.summary.answers,
                "bytes": size,
                "command": command,
            }));
        }
        Ok(content)
    }

    /// Answers `/gaps`: returns the gaps of one of the server's repertoires. A gap is an opponent's move that the
    /// repertoire does not answer. The games that pass the filters determine how frequent each gap is. Setting `stop`
    /// cancels the work.
    pub(super) fn gaps(&self, key: &CacheKey, stop: &Arc<AtomicBool>) -> Result<Content, Refusal> {
        let Request {
            query, parameters, ..
        } = self.request(key, Route::Gaps)?;
        let (color, depth) = (side(&parameters)?, depth(&parameters)?);
        let limit = parameters.number("limit", 0..=MOST_GAPS)?.unwrap_or(20);
        let served = self.served_repertoire(&parameters, color)?;
        let edited = served.edited(&parameters, stop)?;
        let (name, variant) = (&served.name, query.line.variant());
        if !served.known.is_for(variant) {
            let problem = format!(
                "the repertoire {name} contains no games of {variant}: request another variant"
            );
            return Err(Refusal::bad(problem));
        }
        let start = edited.known.start(variant, color)?;
        if start.turn() == color && edited.known.moves(&Keyed::new(start.clone()))?.is_empty() {
            let problem = format!("the repertoire {name} contains no move in the first position");
            return Err(Refusal::bad(problem));
        }
        let mut found = gaps(&FindGaps {
            repertoire: &edited.known,
            color,
            source: &MoveSource::filtered(&self.explorer, variant, &query.filters),
            start: &start,
            max_ply: Some(depth as usize),
            min_game: 0,
            add: (0, OwnMoveRule::Games),
            memory: MEMORY_BUDGET,
            meter: &Meter::stopped_by(stop),
        })?;
        let total = found.gaps.len();
        found.gaps.truncate(limit as usize);
        found.several_moves.truncate(limit as usize);
        // Each gap was played in games.
        let filters = (&query.filters, total > 0);
        self.with_unknown_name(filters, &FoundGaps { total, found }, stop)
    }

    /// Answers `/repertoire`: returns a report on a position for each of the server's repertoires. The reports are
    /// based on the games that pass the filters. With the parameter `repertoire`, returns only the report of the named
    /// repertoire, to which the user's edits are applied. Setting `stop` cancels the work.
    pub(super) fn repertoires(
        &self,
        key: &CacheKey,
        stop: &Arc<AtomicBool>,
    ) -> Result<Content, Refusal> {
        let Request {
            query, parameters, ..
        } = self.request(key, Route::Repertoire)?;
        let wanted = match parameters.text("repertoire") {
            None => None,
            Some(_) => Some(self.served_repertoire(&parameters, side(&parameters)?)?),
        };
        let mut reports = Vec::new();
        for served in &self.repertoires {
            let is_wanted = wanted.is_none_or(|wanted| std::ptr::eq(wanted, served));
            if !is_wanted || !served.known.is_for(query.line.variant()) {
                continue;
            }
            let edited = match wanted {
                None => Arc::clone(&served.unedited),
                Some(served) => served.edited(&parameters, stop)?,
            };
            reports.push(RepertoireReport {
                served,
                report: line_report(
                    &query.line,
                    &edited.known,
                    &edited.predecessors,
                    &self.explorer,
                    &query.filters,
                )?,
            });
        }
        let games = played(
            &self.explorer,
            query.line.variant(),
            query.line.position(),
            &query.filters,
        )?;
        let document = BTreeMap::from([("repertoires", reports)]);
        self.answered(key, (&query.filters, !games.is_empty()), &document, stop)
    }

    /// Returns one of the server's repertoires as PGN, with the user's edits from the request. Moves that the user
    /// removed are missing, and lines that the user added are the first games. Setting `stop` cancels the work.
    fn edited_pgn(
        &self,
        parameters: &Parameters,
        stop: &Arc<AtomicBool>,
    ) -> Result<Content, Refusal> {
        let color = side(parameters)?;
        let served = self.served_repertoire(parameters, color)?;
        let edited = served.edited(parameters, stop)?;
        let pgn = served.pgn_file()?;
        let (start, edits) = (served.known.variant().start(), &edited.edits);
        let mut lines: Vec<&[Move]> = edits.added().collect();
        if lines.is_empty() && edited.predecessors.is_empty() {
            // A game without moves, because a file without games cannot be opened.
            lines.push(&[]);
        }
        let added = Additions::from_lines(&start, lines);
        let directory = TemporaryDir::new_in(&std::env::temp_dir())?;
        let path = directory.path().join("repertoire.pgn");
        let out = RepertoireFile::create(&path, true)?;
        let reading = StreamOptions {
            stop: Arc::clone(stop),
            memory: MEMORY_BUDGET,
        };
        add_to_pgn(pgn, &added, edits.removed(), &start, out, &reading)?;
        let bytes = read_limited(&path, "repertoire", "edit the file in another program")?;
        Ok(Content::pgn(bytes))
    }

    /// Returns the server's repertoire for the side `color` that the parameter `repertoire` names.
    ///
    /// # Errors
    ///
    /// Returns an error response if no repertoire for this color has this name. The response lists the names of all
    /// repertoires for this color.
    pub(super) fn served_repertoire(
        &self,
        parameters: &Parameters,
        color: Color,
    ) -> Result<&ServedRepertoire, Refusal> {
        let of_side = self.repertoires.iter();
        let mut of_side = of_side.filter(|served| served.color == color);
        let known: Vec<&str> = of_side.clone().map(|served| &*served.name).collect();
        let wanted = parameters.text("repertoire");
        let served = of_side.find(|served| wanted == Some(&served.name));
        served.ok_or_else(|| {
            let problem = match (wanted, known.is_empty()) {
                (_, true) => format!(
                    "this server has no repertoire for {color}: start the server with a repertoire"
                ),
                (None, _) => format!(
                    "the parameter repertoire is missing: for {color}, use one of {}",
                    known.join(", ")
                ),
                (Some(name), _) => format!(
                    "no repertoire for {color} is called \"{name}\": use one of {}",
                    known.join(", ")
                ),
            };
            Refusal::bad(problem)
        })
    }
}

/// The response to a request for the gaps of a repertoire. A gap is an opponent's move that the repertoire does not
/// answer.
#[derive(Serialize)]
struct FoundGaps {
    /// The number of all gaps. The response lists only the likeliest gaps.
    total: usize,
    #[serde(flatten)]
    found: Gaps,
}

/// One of the server's repertoires, and its report about a position.
#[derive(Serialize)]
struct RepertoireReport<'a> {
    #[serde(flatten)]
    served: &'a ServedRepertoire,
    #[serde(flatten)]
    report: LineReport,
}

/// Returns the side of the requested repertoire, which the parameter `side` names. Returns an error response if the
/// parameter is missing.
pub(super) fn side(parameters: &Parameters) -> Result<Color, Refusal> {
    let color = parameters.choice("side", "white or black", |side| side.parse().ok())?;
    color.ok_or_else(|| Refusal::bad("the parameter side is missing: use white or black"))
}

/// Returns the memory budget for one request, with `directory` as the directory for temporary files. Data that exceeds
/// the budget is written there.
fn memory(directory: &Path) -> Memory {
    Memory {
        bytes: MEMORY_BUDGET,
        temp_dir: directory.to_owned(),
    }
}

/// Counts the games that `counting` describes, and writes the counts to a subdirectory of `directory`. Returns the
/// counts, opened as a source of moves, and the number of counted games. `what` is the name of the product in error
/// messages, such as `repertoire`. Setting `stop` cancels the work.
fn count_games(
    mut counting: Counting,
    what: &str,
    directory: &Path,
    stop: &Arc<AtomicBool>,
) -> Result<(MoveSource, u64), Refusal> {
    let counts = directory.join("counts");
    counting.run = counting.run.counts(&counts).temp_dir(directory);
    let variant = counting.variant;
    let report = counting.report(what, stop)?;
    let options = OpenOptions {
        variant: Some(variant),
        untagged: Variant::Standard,
        filter: None,
        memory: memory(directory),
        threads: 1,
        directory,
        stop: Arc::clone(stop),
        counting: &|_| Box::new(()),
    };
    let source = MoveSource::source(&counts, false, &options)?;
    Ok((source, report.totals.games.counted))
}

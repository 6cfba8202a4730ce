//! Evaluates positions with a chess engine. [`read_positions`] reads positions from a file, and [`Analyst`] evaluates
//! them with one [`Engine`] per thread.

use std::{
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use rustc_hash::{FxHashMap, FxHashSet};
use shakmaty::{Chess, Move, Position, uci::UciMove};

use super::{
    EngineReport, EvalsReport, FailedPosition,
    inputs::{EvalsSource, InputEntries, SourceBatches},
    journal::{EngineSettings, Journal},
    layout::{Eval, EvalRecord, Score, eval_key},
    lines::{MAX_REASON_LENGTH, position_of, quoted},
    store::Evals,
};
use crate::{
    chess::{
        position::{epd_of, fen_of, game_start, is_epd_comment, read_move},
        uci::{EngineProcess, is_answer, option_name, shortened_name},
    },
    error::{Advice, Diagnosis, Error, Result, reason},
    games::pgn::{GameEnd, GameReader, Input, StreamOptions, Token, tag_text},
    progress::Meter,
    provenance::shortened,
    storage::sort::Memory,
    task::{self, Failure, Feed},
};

/// The maximum number of consecutive positions at which engines may fail. After one more failure, no further positions
/// are evaluated.
const MAX_FAILURES: u64 = 20;

/// The minimum depth at which an evaluation counts as complete even if the engine searched fewer nodes than requested.
/// An engine reaches this depth only if it has searched the whole game tree.
const WHOLE_DEPTH: u8 = 200;

/// The maximum loss, in centipawns, of a move by which a line may be continued, compared with the evaluation of its
/// position. The evaluation after the engine's best move is seldom worse by more than this. Moves that lose more are
/// often mistakes, which a store of evaluations also contains and which must not continue a line.
pub(crate) const EXPANSION_LOSS: u16 = 50;

/// The result of evaluating positions with an engine: the evaluations, and a report.
pub(super) struct Analysis {
    /// The new evaluations, and those that an earlier process saved in the journal before it was killed.
    pub records: Vec<EvalRecord>,
    pub report: EngineReport,
    /// A message for the user if the engine failed at too many consecutive positions, otherwise `None`.
    pub given_up: Option<String>,
}

/// A running engine that is ready to evaluate positions, and its journal, a file that saves the evaluations in case the
/// process is killed.
pub(super) struct Analyst<'a> {
    options: &'a EngineOptions,
    engine: Engine,
    journal: Journal,
    records: Vec<EvalRecord>,
}

impl Analyst<'_> {
    /// Starts an engine, and opens the journal for the output `out`, a file that saves the evaluations in case the
    /// process is killed. The journal stays locked, so that no other process can evaluate positions for the same output
    /// at the same time.
    ///
    /// # Errors
    ///
    /// Returns an error if the engine cannot be started. Also fails for the same reasons as [`Journal::open`].
    pub(super) fn start<'a>(options: &'a EngineOptions, out: &Path) -> Result<Analyst<'a>> {
        let engine = Engine::start(options)?;
        let asked = EngineSettings {
            engine: &engine.name,
            nodes: options.nodes,
            options: &options.options,
        };
        let (journal, records) = Journal::open(out, &asked)?;
        Ok(Analyst {
            options,
            engine,
            journal,
            records,
        })
    }

    /// Evaluates `positions` on several threads. Returns the evaluations, and the journal that contains them.
    /// `old_store` is the store of evaluations that already exists at the path of the output, if any. Skips positions
    /// that the journal contains, positions for which `old_store` contains a sufficiently thorough evaluation,
    /// duplicates, and positions in which the game is over. `meter` shows the progress.
    ///
    /// If a position ends a line, continues the line with the engine's best moves, and evaluates the position after
    /// each of them. The number of these moves is [`EngineOptions::expand`].
    ///
    /// # Errors
    ///
    /// Returns an error if `old_store` cannot be read or the journal cannot be written. A failure of the engine is not
    /// an error, but is counted in the report.
    pub(super) fn evaluate(
        self,
        positions: &[EnginePosition],
        old_store: Option<&Evals>,
        meter: &Meter,
    ) -> Result<(Analysis, Journal)> {
        let Analyst {
            options,
            engine,
            journal,
            mut records,
        } = self;
        let mut report = EngineReport {
            name: engine.name.clone(),
            continued: records.len() as u64,
            ..EngineReport::default()
        };
        let known = records.iter().map(|record| (record.key, record.eval.score));
        let known = KnownScores {
            new: Mutex::new(known.collect()),
            old_store,
            engine: &report.name,
            nodes: options.nodes,
        };
        let mut todo = Vec::new();
        let mut seen = FxHashSet::default();
        let mut known_before = 0;
        for EnginePosition { pos, is_end } in positions {
            // A position in which the game is over has no evaluation.
            if pos.is_game_over() || !seen.insert(eval_key(pos)) {
                continue;
            }
            let plies = if *is_end { options.expand } else { 0 };
            if plies == 0 && known.score(pos)?.is_some() {
                known_before += 1;
            } else {
                todo.push(LineToEvaluate { pos, plies });
            }
        }
        let searches = todo.iter().map(|line| 1 + u64::from(line.plies));
        meter.add_total(searches.sum());
        let jobs = Jobs {
            options,
            todo: &todo,
            known: &known,
            next: AtomicUsize::new(0),
            ready: Mutex::new(Some(engine)),
            done: Mutex::new(JobResults {
                journal,
                evaluated: Vec::new(),
                failed: Vec::new(),
                failures_in_row: 0,
                known: known_before,
            }),
            failure: Failure::default(),
            meter,
        };
        let pool = task::pool(options.jobs)?;
        pool.broadcast(|_| jobs.failure.watch(|| jobs.run()));
        jobs.failure.take()?;
        let mut done = task::unlocked(jobs.done);
        report.known = done.known;
        let in_row = done.failures_in_row;
        report.evaluated = done.evaluated.len() as u64;
        report.failed = done.failed.len() as u64;
        let is_given_up = in_row > MAX_FAILURES || in_row > report.evaluated + report.known;
        let last = done.failed.last().filter(|_| is_given_up);
        let given_up = last.map(|(_, failed)| {
            format!(
                "the engine evaluated none of the last {in_row} positions: {}",
                failed.reason
            )
        });
        done.failed.sort_by_key(|(number, _)| *number);
        let described = done.failed.into_iter().take(EvalsReport::MAX_DESCRIBED);
        report.described = described.map(|(_, failed)| failed).collect();
        records.extend(done.evaluated);
        let analysis = Analysis {
            records,
            report,
            given_up,
        };
        Ok((analysis, done.journal))
    }
}

/// A position to evaluate, and the number of engine moves by which a line is continued from this position. The position
/// after each of these moves is evaluated as well.
struct LineToEvaluate<'a> {
    pos: &'a Chess,
    plies: u16,
}

/// The scores of positions that need no search, because the engine or another source has already searched them
/// thoroughly enough.
struct KnownScores<'a> {
    /// The scores that this run or its journal contains, from White's point of view, by key.
    new: Mutex<FxHashMap<u64, Score>>,
    old_store: Option<&'a Evals>,
    /// The name of the engine.
    engine: &'a str,
    /// The number of nodes of a search.
    nodes: u64,
}

impl KnownScores<'_> {
    /// Returns the score of the position `pos` from White's point of view, or `None` if a search is needed.
    fn score(&self, pos: &Chess) -> Result<Option<Score>> {
        let key = eval_key(pos);
        if let Some(score) = task::lock(&self.new).get(&key) {
            return Ok(Some(*score));
        }
        let Some(evals) = self.old_store else {
            return Ok(None);
        };
        let eval = evals.find(key)?.filter(|eval| self.is_enough(evals, *eval));
        Ok(eval.map(|eval| eval.score))
    }

    /// Returns `true` if `eval`, an evaluation from the old store, is so thorough that the position need not be
    /// searched.
    fn is_enough(&self, evals: &Evals, eval: Eval) -> bool {
        eval.nodes >= self.nodes
            || if evals.origin_of(eval) == self.engine {
                eval.score.as_mate().is_some() || eval.depth >= WHOLE_DEPTH
            } else {
                let asked_for = Eval::thoroughness(0, self.nodes);
                Eval::thoroughness(eval.depth, eval.nodes) >= asked_for
            }
    }

    /// Returns the legal move in `pos` that leads to the best known score for the side to move. Returns `None` if no
    /// score after a move is known, or if the score of `pos` itself is unknown. Also returns `None` if the move is
    /// worse than the score of `pos` by more than [`EXPANSION_LOSS`], because the real best move is then probably
    /// another move, whose score is unknown.
    fn best_move(&self, pos: &Chess) -> Result<Option<Move>> {
        let mut best: Option<(Score, Move)> = None;
        let Some(own) = self.score(pos)? else {
            return Ok(None);
        };
        for mv in pos.legal_moves() {
            let mut after = pos.clone();
            after.play_unchecked(mv);
            if let Some(score) = self.score(&after)? {
                let score = score.seen_from(pos.turn());
                if best.is_none_or(|(other, _)| score > other) {
                    best = Some((score, mv));
                }
            }
        }
        let loss = |score: Score| {
            let own = own.seen_from(pos.turn());
            i32::from(own.to_code()) - i32::from(score.to_code())
        };
        let best = best.filter(|(score, _)| loss(*score) <= EXPANSION_LOSS.into());
        Ok(best.map(|(_, mv)| mv))
    }
}

/// The data that several threads share to evaluate positions: the positions and the results. Each thread uses its own
/// engine process.
struct Jobs<'a> {
    options: &'a EngineOptions,
    todo: &'a [LineToEvaluate<'a>],
    known: &'a KnownScores<'a>,
    /// The index in `todo` of the next line to evaluate.
    next: AtomicUsize,
    /// An engine that has already been started, for the first thread that needs one.
    ready: Mutex<Option<Engine>>,
    done: Mutex<JobResults>,
    failure: Failure,
    meter: &'a Meter,
}

/// The results of all threads that evaluate positions: the evaluations, the failures, and the journal in which
/// evaluations are saved.
struct JobResults {
    journal: Journal,
    evaluated: Vec<EvalRecord>,
    /// The positions at which engines failed, each with the index of its line, in the order of the failures.
    failed: Vec<(usize, FailedPosition)>,
    /// The number of failures since the last successful evaluation.
    failures_in_row: u64,
    /// The number of positions that needed no search.
    known: u64,
}

impl Jobs<'_> {
    /// Evaluates lines from the shared list with one engine process until no line is left. Each thread calls this
    /// function once. If the engine process fails, a new one is started for the next position. Stops early if engines
    /// have failed at too many consecutive positions.
    fn run(&self) -> Result<()> {
        let mut engine = task::lock(&self.ready).take();
        while !self.failure.is_set() {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.todo.len() {
                break;
            }
            self.evaluate_line(&mut engine, number)?;
            if task::lock(&self.done).failures_in_row > MAX_FAILURES {
                break;
            }
        }
        Ok(())
    }

    /// Evaluates the positions of the line with the index `number`. Ends the line early if the engine fails, or if the
    /// game is over.
    fn evaluate_line(&self, engine: &mut Option<Engine>, number: usize) -> Result<()> {
        let line = &self.todo[number];
        let mut pos = line.pos.clone();
        for left in (0..=line.plies).rev() {
            if self.failure.is_set() {
                break;
            }
            let next = self.evaluate(engine, number, &pos, left > 0)?;
            self.meter.advance(1);
            let next = next.map(|mv| {
                pos.play_unchecked(mv);
                !pos.is_game_over()
            });
            if next != Some(true) {
                self.meter.advance(left.into());
                break;
            }
        }
        Ok(())
    }

    /// Evaluates the position `pos` of the line with the index `number`, unless its score is known. Returns the best
    /// move if `needs_move` is `true` and the move is known. If the result is `None`, the line ends.
    fn evaluate(
        &self,
        engine: &mut Option<Engine>,
        number: usize,
        pos: &Chess,
        needs_move: bool,
    ) -> Result<Option<Move>> {
        let known = match needs_move {
            true => self.known.best_move(pos)?,
            false => None,
        };
        let is_known = known.is_some() || !needs_move && self.known.score(pos)?.is_some();
        if is_known {
            task::lock(&self.done).known += 1;
            return Ok(known);
        }
        let searched = self.search(engine, pos);
        let mut done = task::lock(&self.done);
        let (failure, next) = match searched {
            Ok((record, answer)) => {
                done.journal.push(&record)?;
                done.evaluated.push(record);
                task::lock(&self.known.new).insert(record.key, record.eval.score);
                match best_move(pos, &answer) {
                    Ok(mv) => (None, Some(mv).filter(|_| needs_move)),
                    Err(reason) => (Some(reason).filter(|_| needs_move), None),
                }
            }
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            Err(err) => (Some(with_cause(&err)), None),
        };
        match failure {
            Some(reason) => {
                let fen = fen_of(pos);
                done.failed.push((number, FailedPosition { fen, reason }));
                done.failures_in_row += 1;
            }
            None => done.failures_in_row = 0,
        }
        Ok(next)
    }

    /// Lets the engine search `pos`. Returns the evaluation, and the line of output with which the engine ended the
    /// search. Starts an engine if `engine` is `None`. If the engine fails, sets `engine` to `None`.
    fn search(&self, engine: &mut Option<Engine>, pos: &Chess) -> Result<(EvalRecord, String)> {
        let mut running = match engine.take() {
            Some(running) => running,
            None => Engine::start(self.options)?,
        };
        let (eval, answer) = running.evaluate(pos, self.options.nodes)?;
        let record = EvalRecord::new(pos, eval_key(pos), eval).ok_or_else(|| {
            Error::file(
                &self.options.program,
                "cannot evaluate a position with more than 32 pieces",
            )
        })?;
        *engine = Some(running);
        Ok((record, answer))
    }
}

/// Parses the engine's best move in `pos` from `answer`, a line such as `bestmove e2e4 ponder e7e5`. Returns a
/// description of the problem if this is not a legal move.
fn best_move(pos: &Chess, answer: &str) -> Result<Move, String> {
    let word = answer.split_ascii_whitespace().nth(1).unwrap_or_default();
    let mv = UciMove::from_ascii(word.as_bytes()).ok();
    let legal = mv.and_then(|mv| mv.to_move(pos).ok());
    legal.ok_or_else(|| format!("the engine's best move \"{}\" is not legal", quoted(word)))
}

/// Returns the message of an error. For an I/O error, the message includes the cause.
fn with_cause(err: &Error) -> String {
    match err {
        Error::Io { source, .. } => format!("{err}: {}", reason(source)),
        err => err.to_string(),
    }
}

/// The maximum number of lines of an engine's output that are buffered until they are read. When the buffer is full,
/// the engine must wait.
const MAX_BUFFERED_LINES: usize = 64;

/// The maximum number of UCI options that an engine may declare. Real engines declare far fewer options.
const MAX_OPTIONS: usize = 1 << 12;
const MAX_LIST_LENGTH: usize = 2000;

/// The maximum duration of a single wait for an engine's output. If a wait takes longer, polybook was suspended
/// meanwhile, for example by Ctrl-Z, so the additional time is not counted against the time limit.
const MAX_SINGLE_WAIT: Duration = Duration::from_millis(200);

/// The program of a UCI engine, and settings for evaluating positions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EngineOptions {
    /// The path of the program.
    pub program: PathBuf,
    /// The UCI options to set, as pairs of a name, such as `Hash`, and a value.
    pub options: Vec<(String, String)>,
    /// The number of nodes that the engine searches in each position.
    pub nodes: u64,
    /// The number of engine processes that run at the same time, or 0 for one per core.
    pub jobs: usize,
    /// The maximum time for a position. An engine that takes longer is killed.
    pub time_limit: Duration,
    /// The number of engine moves by which a line is continued after its [last position](EnginePosition::is_end).
    pub expand: u16,
}

/// A running UCI engine that evaluates positions.
pub(super) struct Engine {
    process: EngineProcess,
    lines: Feed<String>,
    /// The name by which the engine identified itself, or the name of the program.
    pub name: String,
    time_limit: Duration,
}

impl Engine {
    /// Starts an engine and sets its UCI options.
    ///
    /// # Errors
    ///
    /// Returns an error if the program cannot be started, does not answer in time, or does not declare one of the
    /// options.
    pub(super) fn start(options: &EngineOptions) -> Result<Engine> {
        let ahead = MAX_BUFFERED_LINES + options.options.len();
        let (process, output) = EngineProcess::start(&options.program, &[], ahead)?;
        let (lines, _) = task::start("engine", MAX_BUFFERED_LINES, move |lines| {
            for line in output {
                lines.send(line)?;
            }
            Ok(())
        })?;
        let mut engine = Engine {
            process,
            lines,
            name: String::new(),
            time_limit: options.time_limit,
        };
        engine.prepare(options)?;
        Ok(engine)
    }

    fn prepare(&mut self, options: &EngineOptions) -> Result<()> {
        self.say("uci")?;
        let mut name = None;
        let mut known = Vec::new();
        self.read_until(|line| {
            known.extend(option_name(line));
            if let Some(said) = line.strip_prefix("id name ") {
                name = Some(shortened_name(said));
            }
            line == "uciok" || known.len() > MAX_OPTIONS
        })?;
        if known.len() > MAX_OPTIONS {
            return Err(self.failure(&format!("lists more than {MAX_OPTIONS} options")));
        }
        self.name = name.unwrap_or_else(|| {
            let program = options.program.file_stem().unwrap_or_default();
            program.to_string_lossy().into_owned()
        });
        for (name, value) in &options.options {
            let is_known = known.iter().any(|known| known.eq_ignore_ascii_case(name));
            if !known.is_empty() && !is_known {
                let known = known.join(", ");
                let known: String = known.chars().take(MAX_LIST_LENGTH).collect();
                let problem = format!("the engine has no option {name}: use one of {known}");
                return Err(Error::file(&options.program, problem));
            }
            self.say(&format!("setoption name {name} value {value}"))?;
        }
        Ok(())
    }

    /// Evaluates a position by a search of `nodes` nodes. Returns the evaluation, and the line of output with the best
    /// move. The engine is reset before the search, so the result does not depend on earlier positions.
    ///
    /// # Errors
    ///
    /// Returns an error if the engine exits, exceeds the time limit, sends a move before the search begins, or reports
    /// no score.
    pub(super) fn evaluate(&mut self, pos: &Chess, nodes: u64) -> Result<(Eval, String)> {
        self.say("ucinewgame")?;
        self.say("isready")?;
        self.read_until(|line| line == "readyok")?;
        // An evaluation applies to all games that reach the position, so the move counters are reset.
        self.say(&format!("position fen {} 0 1", epd_of(pos)))?;
        // A `bestmove` that arrives before `go` is not the answer to this search.
        for _ in 0..MAX_BUFFERED_LINES {
            match self.lines.next_waiting() {
                Some(line) if is_answer(&line) => {
                    return Err(self.failure("sent a move before it was asked for one"));
                }
                Some(_) => {}
                None => break,
            }
        }
        self.say(&format!("go nodes {nodes}"))?;
        let (mut last, mut answer) = (EngineInfo::default(), String::new());
        self.read_until(|line| {
            last.read(line);
            let is_last = is_answer(line);
            if is_last {
                answer = line.to_owned();
            }
            is_last
        })?;
        let score = last
            .score
            .ok_or_else(|| self.failure("reported no score"))?;
        let eval = Eval {
            score: score.seen_from(pos.turn()),
            depth: last.depth.min(255) as u8,
            nodes: last.nodes,
            origin: 0,
        };
        Ok((eval, answer))
    }

    fn say(&mut self, line: &str) -> Result<()> {
        self.process.say(line)
    }

    /// Reads lines of the engine's output until `is_last` returns `true` for a line.
    ///
    /// # Errors
    ///
    /// Returns an error if the engine exits or the time limit is exceeded before `is_last` returns `true`.
    fn read_until(&mut self, mut is_last: impl FnMut(&str) -> bool) -> Result<()> {
        let mut left = self.time_limit;
        // Lines other than the expected one use up the time limit as well.
        while left > Duration::ZERO {
            let (begin, slice) = (Instant::now(), left.min(MAX_SINGLE_WAIT));
            let line = self.lines.next_before(begin + slice)?;
            let elapsed = begin.elapsed();
            match line {
                Some(line) if is_last(&line) => return Ok(()),
                None if elapsed < slice => {
                    return Err(self.process.end_error("closed its output"));
                }
                _ => left -= elapsed.min(slice),
            }
        }
        let seconds = self.time_limit.as_secs();
        Err(self.failure(&format!("did not answer within {seconds} s")))
    }

    fn failure(&self, how: &str) -> Error {
        self.process.failure(how)
    }
}

/// The score, the depth and the number of nodes that an engine last reported during a search.
#[derive(Default)]
struct EngineInfo {
    /// The score for the side to move.
    score: Option<Score>,
    depth: u64,
    nodes: u64,
}

impl EngineInfo {
    /// Updates the score, the depth and the nodes from `line`, a line of the engine's output. Ignores a line that is
    /// not an `info` line, that reports a variation other than the best one, or whose score is only a bound.
    fn read(&mut self, line: &str) {
        let mut words = line.split_ascii_whitespace();
        if words.next() != Some("info") {
            return;
        }
        let mut said = EngineInfo {
            nodes: self.nodes,
            ..EngineInfo::default()
        };
        let (mut is_best, mut is_bound) = (true, false);
        while let Some(word) = words.next() {
            let mut number = || words.next().and_then(|word| word.parse::<i64>().ok());
            let natural =
                |number: Option<i64>| number.and_then(|number| u64::try_from(number).ok());
            match word {
                "depth" => said.depth = natural(number()).unwrap_or(0),
                "nodes" => said.nodes = natural(number()).unwrap_or(said.nodes),
                "multipv" => is_best = number() == Some(1),
                "cp" => said.score = number().map(Score::centipawns),
                "mate" => said.score = number().and_then(Score::mate),
                "lowerbound" | "upperbound" => is_bound = true,
                // The rest of the line is text or moves.
                "string" | "pv" => break,
                _ => {}
            }
        }
        self.nodes = said.nodes;
        if is_best && !is_bound && said.score.is_some() {
            *self = said;
        }
    }
}

/// An upper bound on the memory, in bytes, that one position occupies while it waits for its evaluation.
const BYTES_PER_POSITION: usize = size_of::<EnginePosition>() + 64;

/// A position that an engine will evaluate.
#[derive(Clone, Debug)]
pub struct EnginePosition {
    /// The position.
    pub pos: Chess,
    /// Whether a line ends in the position, so that the line can be [continued](EngineOptions::expand) with the
    /// engine's moves.
    pub is_end: bool,
}

/// The positions from an input that an engine will evaluate.
#[derive(Clone, Default, Debug)]
pub struct Positions {
    /// The positions, in the order of the input.
    pub positions: Vec<EnginePosition>,
    /// The number of variations of games that were skipped.
    pub variations: u64,
}

/// Reads the positions that an engine will evaluate from an input: all positions of an EPD file or a store of
/// evaluations, or the final position of each game in a PGN, such as an opening suite. Skips the variations of games.
///
/// Marks each position as the end of a line, except positions of a store that also contains a position after one of
/// their moves.
///
/// # Errors
///
/// Returns an error if the input, a position or a game cannot be read, or if the positions do not fit in `memory`.
pub fn read_positions(input: &Input, memory: &Memory) -> Result<Positions> {
    let source = EvalsSource::new(input)?;
    let mut variations = 0;
    if let Some(evals) = source.store() {
        check_memory(evals.len() as usize, memory, input.path())?;
        let positions = evals.positions()?.into_iter().map(|pos| {
            let is_end = !evals.continues(&pos)?;
            Ok(EnginePosition { pos, is_end })
        });
        return Ok(Positions {
            positions: positions.collect::<Result<_>>()?,
            variations,
        });
    }
    let mut batches = SourceBatches::of_text(input, &StreamOptions::within(memory))?;
    let entries = batches.entries();
    let mut positions = Vec::new();
    let mut number = 0;
    while let Some(batch) = batches.next_batch(&Meter::default())? {
        let refused = |thing: &str, number: u64, reason: String| {
            let reason = shortened(&reason, MAX_REASON_LENGTH);
            Error::file(input.path(), format!("{thing} {number}: {reason}"))
        };
        let InputEntries::Lines(format) = entries else {
            let mut games = GameReader::new(&batch.text).with_variations(true);
            while games.next_game() {
                let end = end_of(&mut games, &mut variations);
                let pos = end.map_err(|reason| refused("game", number, reason))?;
                positions.push(EnginePosition { pos, is_end: true });
                check_memory(positions.len(), memory, input.path())?;
                number += 1;
            }
            continue;
        };
        for line in batch.text.split_inclusive(|byte| *byte == b'\n') {
            number += 1;
            let line = line
                .strip_prefix(b"\xef\xbb\xbf")
                .unwrap_or(line)
                .trim_ascii();
            if is_epd_comment(line) {
                continue;
            }
            let read = position_of(format, line);
            let pos = read.map_err(|reason| refused("line", number, reason))?;
            positions.push(EnginePosition { pos, is_end: true });
            check_memory(positions.len(), memory, input.path())?;
        }
    }
    Ok(Positions {
        positions,
        variations,
    })
}

/// Checks that `memory` is enough for `positions` positions, which are kept in memory until they are evaluated.
///
/// # Errors
///
/// Returns an error that names the file `path` if the positions do not fit.
pub(crate) fn check_memory(positions: usize, memory: &Memory, path: &Path) -> Result<()> {
    let most = memory.bytes / BYTES_PER_POSITION;
    if positions <= most {
        return Ok(());
    }
    let problem = Diagnosis::new(format!(
        "this file contains more than {most} positions to evaluate"
    ))
    .advise(Advice::larger("memory"));
    Err(Error::too_large(path, problem))
}

/// Plays the main line of the current game in `games` and returns the final position. Skips variations, and adds their
/// number to `variations`.
///
/// # Errors
///
/// Returns a description of the first move or FEN that cannot be read.
fn end_of(games: &mut GameReader<'_>, variations: &mut u64) -> Result<Chess, String> {
    let fen = games.tags().fen().map(tag_text);
    let mut pos = match fen {
        Some(fen) => game_start(&fen).map_err(|err| err.to_string())?.0,
        None => Chess::default(),
    };
    let mut depth = 0_u64;
    loop {
        match games.next_token() {
            Token::BeginVariation => {
                depth += 1;
                *variations += 1;
            }
            Token::EndVariation => depth -= 1,
            Token::End(GameEnd::Broken(flaw)) => return Err(flaw.reason.to_string()),
            Token::End(GameEnd::Complete(_)) => return Ok(pos),
            _ if depth > 0 => {}
            Token::Move { text, .. } | Token::Unreadable { text, .. } => {
                match read_move(&pos, text) {
                    Ok(mv) => pos.play_unchecked(mv),
                    Err(_) if games.is_double_loss(text) => return Ok(pos),
                    Err(err) => {
                        let mv = quoted(&String::from_utf8_lossy(text));
                        return Err(format!("\"{mv}\": {err}"));
                    }
                }
            }
            Token::NullMove { .. } => return Err("a null move".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_exact_score_of_the_best_variation_counts() {
        let mut info = EngineInfo::default();
        for line in [
            "info string NNUE evaluation using nn.nnue cp 99",
            "info depth 1 seldepth 2 multipv 1 score cp 17 nodes 20 nps 20000 time 1 pv e2e4",
            "info depth 2 multipv 2 score cp 90 nodes 30 pv d2d4",
            "info depth 3 score cp 25 lowerbound nodes 40",
            "info depth x score cp y nodes -5",
            "info depth 3 currmove e2e4 currmovenumber 1",
            "score cp 4",
        ] {
            info.read(line);
        }
        assert_eq!(
            (info.score, info.depth, info.nodes),
            (Some(Score::centipawns(17)), 1, 40)
        );
        info.read("info depth 4 score mate -3 nodes 50 pv a2a3 cp 3");
        assert_eq!(
            (info.score, info.depth, info.nodes),
            (Score::mate(-3), 4, 50)
        );
    }
}

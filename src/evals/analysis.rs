//! Asking an engine for evaluations of positions.

use std::{
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use rustc_hash::FxHashSet;
use shakmaty::{Chess, Position};

use super::{
    journal::{EngineSettings, Journal},
    layout::{Eval, EvalRecord, eval_key},
    report::{EngineReport, EvalsReport, FailedPosition},
    store::Evals,
    uci::{Engine, EngineOptions},
};
use crate::{
    error::{Error, Result},
    position::{fen_of, key},
    progress::Meter,
    task::{self, Failure},
};

/// An engine that cannot be started so often in a row, or evaluates none of so many positions, works for no position.
const MOST_FAILURES: usize = 10;

/// The depth at which engines stop because there is no more to search.
const WHOLE_DEPTH: u8 = 200;

/// What an engine said.
pub(super) struct Analysis {
    /// What it said in this run and in those before that were killed.
    pub records: Vec<EvalRecord>,
    pub report: EngineReport,
}

/// Asks an engine for the evaluations of positions, but for those that a store or the journal of an output has.
pub(super) fn analyze(
    options: &EngineOptions,
    positions: &[Chess],
    before: Option<&Evals>,
    out: &Path,
    meter: &Meter,
) -> Result<(Analysis, Journal)> {
    let first = Engine::start(options)?;
    let mut report = EngineReport {
        name: first.name.clone(),
        ..EngineReport::default()
    };
    let asked = EngineSettings {
        engine: &first.name,
        nodes: options.nodes,
        options: &options.options,
    };
    let (journal, mut records) = Journal::open(out, &asked)?;
    let mut known: FxHashSet<u64> = records.iter().map(|record| record.key).collect();
    // What the engine will say has these nodes, so it takes the place of what is not enough.
    let asked_for = Eval::reach(0, options.nodes);
    let is_enough = |evals: &Evals, eval: Eval| {
        eval.nodes >= options.nodes
            || match evals.origin_of(eval) == report.name {
                true => eval.score.as_mate().is_some() || eval.depth >= WHOLE_DEPTH,
                false => Eval::reach(eval.depth, eval.nodes) >= asked_for,
            }
    };
    let mut todo = Vec::new();
    let mut seen = FxHashSet::default();
    for pos in positions {
        let key = eval_key(pos);
        // Where the game is over, there is nothing to evaluate.
        if pos.is_game_over() || !seen.insert(key) {
            continue;
        }
        if let Some(evals) = before
            && let Some(eval) = evals.find(key)?
            && is_enough(evals, eval)
        {
            known.insert(key);
        }
        match known.contains(&key) {
            true => report.known += 1,
            false => todo.push(pos),
        }
    }
    meter.add_total(todo.len() as u64);
    let jobs = Jobs {
        options,
        todo: &todo,
        next: AtomicUsize::new(0),
        ready: Mutex::new(Some(first)),
        done: Mutex::new((journal, Vec::new())),
        failed: Mutex::new(Vec::new()),
        failure: Failure::default(),
        meter,
    };
    let pool = task::pool(options.jobs)?;
    pool.broadcast(|_| jobs.failure.watch(|| jobs.run()));
    jobs.failure.take()?;
    let (journal, evaluated) = task::unlocked(jobs.done);
    let mut failed = task::unlocked(jobs.failed);
    failed.sort_by_key(|(number, _)| *number);
    report.evaluated = evaluated.len() as u64;
    report.failed = failed.len() as u64;
    let described = failed.into_iter().take(EvalsReport::DESCRIBED);
    report.described = described
        .map(|(number, reason)| FailedPosition {
            fen: fen_of(todo[number]),
            reason,
        })
        .collect();
    records.extend(evaluated);
    Ok((Analysis { records, report }, journal))
}

/// Positions that engines evaluate.
struct Jobs<'a> {
    options: &'a EngineOptions,
    todo: &'a [&'a Chess],
    /// The number of the next position.
    next: AtomicUsize,
    /// An engine that was started already.
    ready: Mutex<Option<Engine>>,
    done: Mutex<(Journal, Vec<EvalRecord>)>,
    /// The numbers of the positions at which engines failed, and how.
    failed: Mutex<Vec<(usize, String)>>,
    failure: Failure,
    meter: &'a Meter,
}

impl Jobs<'_> {
    /// Evaluates positions with one engine at a time until there are no more.
    fn run(&self) -> Result<()> {
        let mut engine = task::lock(&self.ready).take();
        let (mut failed_starts, mut failures) = (0, 0);
        let mut has_evaluated = false;
        while !self.failure.is_set() {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(pos) = self.todo.get(number) else {
                break;
            };
            let started = match engine.take() {
                Some(running) => Ok(running),
                None => Engine::start(self.options),
            };
            failed_starts = if started.is_ok() {
                0
            } else {
                failed_starts + 1
            };
            let evaluated = started.and_then(|mut running| {
                let record = self.evaluated(&mut running, pos)?;
                // One that failed is ended, and another takes its place for the next position.
                engine = Some(running);
                Ok(record)
            });
            match evaluated {
                Ok(record) => {
                    let mut done = task::lock(&self.done);
                    done.0.push(&record)?;
                    done.1.push(record);
                    has_evaluated = true;
                }
                Err(Error::Interrupted) => return Err(Error::Interrupted),
                Err(err) => {
                    failures += 1;
                    let is_useless = !has_evaluated && failures == MOST_FAILURES;
                    if is_useless || failed_starts == MOST_FAILURES {
                        return Err(err);
                    }
                    task::lock(&self.failed).push((number, err.to_string()));
                }
            }
            self.meter.advance(1);
        }
        Ok(())
    }

    fn evaluated(&self, engine: &mut Engine, pos: &Chess) -> Result<EvalRecord> {
        let eval = engine.evaluate(pos, self.options.nodes)?;
        let program = &self.options.program;
        let record = EvalRecord::new(pos, key(pos), eval);
        record.ok_or_else(|| Error::file(program, "was asked for more than 32 pieces"))
    }
}

//! Asking an engine for evaluations of positions.

use std::{
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use rustc_hash::FxHashSet;
use shakmaty::{Chess, Position};

use super::{
    journal::{Asked, Journal},
    layout::{Eval, Record},
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

/// An engine that fails so often in a row works for no position.
const MOST_FAILURES: usize = 5;

/// What an engine said.
pub(super) struct Analysis {
    /// What it said in this run and in those before that were killed.
    pub records: Vec<Record>,
    pub report: EngineReport,
}

/// Asks an engine for the evaluations of positions, but for those that a store or the journal of an output has.
pub(super) fn analyze(
    options: &EngineOptions,
    positions: &[Chess],
    before: Option<&Evals>,
    out: &Path,
    stop: &AtomicBool,
    meter: &Meter,
) -> Result<(Analysis, Journal)> {
    let first = Engine::start(options, stop)?;
    let mut report = EngineReport {
        name: first.name.clone(),
        ..EngineReport::default()
    };
    let asked = Asked {
        engine: &first.name,
        nodes: options.nodes,
        options: &options.options,
    };
    let (journal, mut records) = Journal::open(out, &asked)?;
    let mut known: FxHashSet<u64> = records.iter().map(|record| record.key).collect();
    let is_enough = |evals: &Evals, eval: Eval| {
        eval.nodes >= options.nodes
            || evals.origin_of(eval) == report.name && eval.score.as_mate().is_some()
    };
    let mut todo = Vec::new();
    let mut seen = FxHashSet::default();
    for pos in positions {
        let key = key(pos);
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
        stop,
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
    done: Mutex<(Journal, Vec<Record>)>,
    /// The numbers of the positions at which engines failed, and how.
    failed: Mutex<Vec<(usize, String)>>,
    failure: Failure,
    stop: &'a AtomicBool,
    meter: &'a Meter,
}

impl Jobs<'_> {
    /// Evaluates positions with one engine at a time until there are no more.
    fn run(&self) -> Result<()> {
        let mut engine = task::lock(&self.ready).take();
        let mut failures = 0;
        while !self.failure.is_set() {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(pos) = self.todo.get(number) else {
                break;
            };
            match self.evaluated(&mut engine, pos) {
                Ok(record) => {
                    let mut done = task::lock(&self.done);
                    done.0.push(&record)?;
                    done.1.push(record);
                    failures = 0;
                }
                Err(Error::Interrupted) => return Err(Error::Interrupted),
                Err(err) => {
                    // Another takes its place, for the next position.
                    engine = None;
                    failures += 1;
                    if failures == MOST_FAILURES {
                        return Err(err);
                    }
                    task::lock(&self.failed).push((number, err.to_string()));
                }
            }
            self.meter.advance(1);
        }
        Ok(())
    }

    fn evaluated(&self, engine: &mut Option<Engine>, pos: &Chess) -> Result<Record> {
        let engine = match engine {
            Some(engine) => engine,
            None => engine.insert(Engine::start(self.options, self.stop)?),
        };
        let eval = engine.evaluate(pos, self.options.nodes, self.stop)?;
        let program = &self.options.program;
        let record = Record::new(pos, key(pos), eval);
        record.ok_or_else(|| Error::file(program, "was asked for more than 32 pieces"))
    }
}

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
    error::{Error, Result, reason},
    position::fen_of,
    progress::Meter,
    task::{self, Failure},
};

/// Positions in a row at which an engine may fail. One more, and the engine is not asked for the others.
const MAX_FAILURES: u64 = 20;

/// The depth at which engines stop because there is no more to search.
const WHOLE_DEPTH: u8 = 200;

/// The evaluations of an engine.
pub(super) struct Analysis {
    /// The evaluations of this run, and those of killed runs that the journal had.
    pub records: Vec<EvalRecord>,
    pub report: EngineReport,
    /// The message of the run if the engine failed at all of the last positions, so that the run stopped. Otherwise `None`.
    pub given_up: Option<String>,
}

/// An engine that was started, and the journal of its evaluations.
pub(super) struct Analyst<'a> {
    options: &'a EngineOptions,
    engine: Engine,
    journal: Journal,
    records: Vec<EvalRecord>,
}

impl Analyst<'_> {
    /// Starts an engine, and opens the journal of `out`. Until the journal is removed, no other run evaluates positions
    /// for `out`.
    ///
    /// # Errors
    ///
    /// Returns an error if the engine cannot be started, or as [`Journal::open`].
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

    /// Evaluates positions, except those that the journal or the store `before` has with enough nodes.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read or the journal cannot be written. A failure of the engine is not an
    /// error: it is in the report.
    pub(super) fn evaluate(
        self,
        positions: &[Chess],
        before: Option<&Evals>,
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
            ..EngineReport::default()
        };
        let mut known: FxHashSet<u64> = records.iter().map(|record| record.key).collect();
        // A new evaluation has these nodes, so it replaces one that is not enough.
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
            // A position in which the game is over has no evaluation.
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
            ready: Mutex::new(Some(engine)),
            done: Mutex::new(Done {
                journal,
                evaluated: Vec::new(),
                failed: Vec::new(),
                failures_in_row: 0,
            }),
            failure: Failure::default(),
            meter,
        };
        let pool = task::pool(options.jobs)?;
        pool.broadcast(|_| jobs.failure.watch(|| jobs.run()));
        jobs.failure.take()?;
        let mut done = task::unlocked(jobs.done);
        let in_row = done.failures_in_row;
        report.evaluated = done.evaluated.len() as u64;
        report.failed = done.failed.len() as u64;
        let is_given_up = in_row > MAX_FAILURES || in_row > report.evaluated + report.known;
        let last = done.failed.last().filter(|_| is_given_up);
        let given_up = last
            .map(|(_, reason)| format!("evaluated none of the last {in_row} positions: {reason}"));
        done.failed.sort_by_key(|(number, _)| *number);
        let described = done.failed.into_iter().take(EvalsReport::DESCRIBED);
        report.described = described
            .map(|(number, reason)| FailedPosition {
                fen: fen_of(todo[number]),
                reason,
            })
            .collect();
        records.extend(done.evaluated);
        let analysis = Analysis {
            records,
            report,
            given_up,
        };
        Ok((analysis, done.journal))
    }
}

/// Positions that engines evaluate on several threads.
struct Jobs<'a> {
    options: &'a EngineOptions,
    todo: &'a [&'a Chess],
    /// The number of the next position.
    next: AtomicUsize,
    /// An engine that was started already.
    ready: Mutex<Option<Engine>>,
    done: Mutex<Done>,
    failure: Failure,
    meter: &'a Meter,
}

/// The positions that engines were asked for.
struct Done {
    journal: Journal,
    evaluated: Vec<EvalRecord>,
    /// The numbers of the positions at which engines failed, in the order of the failures, and the reasons.
    failed: Vec<(usize, String)>,
    /// Failures since the last evaluation.
    failures_in_row: u64,
}

impl Jobs<'_> {
    /// Evaluates positions with one engine at a time until there are no more, or until engines are given up.
    fn run(&self) -> Result<()> {
        let mut engine = task::lock(&self.ready).take();
        while !self.failure.is_set() {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(pos) = self.todo.get(number) else {
                break;
            };
            let started = match engine.take() {
                Some(running) => Ok(running),
                None => Engine::start(self.options),
            };
            let evaluated = started.and_then(|mut running| {
                let record = self.evaluated(&mut running, pos)?;
                // An engine that failed is dropped, and another takes its place for the next position.
                engine = Some(running);
                Ok(record)
            });
            let mut done = task::lock(&self.done);
            match evaluated {
                Ok(record) => {
                    done.journal.push(&record)?;
                    done.evaluated.push(record);
                    done.failures_in_row = 0;
                }
                Err(Error::Interrupted) => return Err(Error::Interrupted),
                Err(err) => {
                    done.failed.push((number, with_cause(&err)));
                    done.failures_in_row += 1;
                    if done.failures_in_row > MAX_FAILURES {
                        break;
                    }
                }
            }
            drop(done);
            self.meter.advance(1);
        }
        Ok(())
    }

    fn evaluated(&self, engine: &mut Engine, pos: &Chess) -> Result<EvalRecord> {
        let eval = engine.evaluate(pos, self.options.nodes)?;
        let program = &self.options.program;
        let record = EvalRecord::new(pos, eval_key(pos), eval);
        record.ok_or_else(|| Error::file(program, "was asked for more than 32 pieces"))
    }
}

/// Returns the text of an error with that of its cause.
fn with_cause(err: &Error) -> String {
    match err {
        Error::Io { source, .. } => format!("{err}: {}", reason(source)),
        err => err.to_string(),
    }
}

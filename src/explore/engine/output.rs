//! Sends the output of the engine to the user interface.

use std::{
    io::{self, Write},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use super::{MAX_QUEUED_LINES, QUIT_TIMEOUT};
use crate::{
    error::{At, Error, Result},
    task::{self, Rejected, Taker},
};

/// The time between two attempts to add a line to a full queue.
const PAUSE: Duration = Duration::from_millis(5);

/// A queue of output lines, which a separate thread writes. A user interface that does not read the output therefore
/// cannot prevent the session from ending.
pub(super) struct LineQueue {
    lines: Taker<String>,
    /// The error with which writing failed, if it failed.
    problem: Arc<Mutex<Option<io::Error>>>,
    /// A flag that is set when the user interface has sent `quit`.
    is_quitting: Arc<AtomicBool>,
}

impl LineQueue {
    /// Starts the thread that writes to `output`.
    pub(super) fn start(
        mut output: impl Write + Send + 'static,
        is_quitting: Arc<AtomicBool>,
    ) -> Result<LineQueue> {
        let problem: Arc<Mutex<Option<io::Error>>> = Arc::default();
        let failed = Arc::clone(&problem);
        let write = move |line: String| {
            let written = output.write_all(line.as_bytes());
            written.and_then(|()| output.flush()).map_err(|err| {
                let kind = err.kind();
                *task::lock(&failed) = Some(err);
                kind.into()
            })
        };
        Ok(LineQueue {
            lines: task::start_taking("output", MAX_QUEUED_LINES, write)?,
            problem,
            is_quitting,
        })
    }

    /// Returns `true` if the user interface has sent `quit`, even if earlier commands have not been handled yet.
    pub(super) fn is_quitting(&self) -> bool {
        self.is_quitting.load(Ordering::Relaxed)
    }

    /// Adds a line to the queue. Waits while the queue is full.
    ///
    /// # Errors
    ///
    /// Returns an error if the output cannot be written. Returns [`Error::Interrupted`] if the user interface has sent
    /// `quit`, but has read nothing for [`QUIT_TIMEOUT`].
    pub(super) fn say(&self, line: &str) -> Result<()> {
        let mut line = format!("{line}\n");
        let mut since = None;
        loop {
            line = match self.lines.offer(line) {
                Ok(()) => return Ok(()),
                Err(Rejected::Full(line)) => line,
                Err(Rejected::Ended) => return refuse_failure(&self.problem),
            };
            let since = *since.get_or_insert_with(Instant::now);
            if self.is_quitting() && since.elapsed() > QUIT_TIMEOUT {
                return Err(Error::Interrupted);
            }
            thread::sleep(PAUSE);
        }
    }

    /// Waits until all lines are written. After `quit`, waits for [`QUIT_TIMEOUT`] at most.
    ///
    /// # Errors
    ///
    /// Returns an error if the output cannot be written.
    pub(super) fn finish(self) -> Result<()> {
        let timeout = self.is_quitting().then_some(QUIT_TIMEOUT);
        let LineQueue { lines, problem, .. } = self;
        lines.finish(timeout);
        refuse_failure(&problem)
    }
}

fn refuse_failure(problem: &Mutex<Option<io::Error>>) -> Result<()> {
    let problem = task::lock(problem).take();
    problem.map_or(Ok(()), Err).at(STREAM, "write to")
}

/// The name that error messages use for the output of the engine.
const STREAM: &str = "standard output";

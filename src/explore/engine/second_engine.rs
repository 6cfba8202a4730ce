//! The second engine, which plays in positions that no source of moves contains.

use std::{
    ffi::OsString,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use super::QUIT_TIMEOUT;
use crate::{
    chess::uci::{EngineProcess, option_name},
    error::Result,
    task::{self, Feed, Feeder},
};

/// An event in a UCI session: input from the user interface, or output of the second engine.
pub(super) enum Event {
    /// The user interface sent this command.
    Command(String),
    /// The user interface sent a line that is too long.
    TooLongCommand,
    /// The user interface closed the input, so no more commands will arrive.
    End,
    /// The second engine wrote this line. The receiver must call [`SecondEngine::took_line`].
    EngineLine(String),
    /// The second engine ended or closed its output.
    EngineEnd,
}

/// The maximum time between the start of the second engine and its answer `uciok`.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// The interval at which the start of the second engine checks whether the user interface has sent `quit`.
const QUIT_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// The maximum number of lines that wait to be sent to the second engine. The number is large because some user
/// interfaces set a hundred options at once.
const MAX_QUEUED_LINES: usize = 1 << 10;

/// The maximum number of `id` and `option` lines that the second engine may write before `uciok`, which limits the memory
/// for them.
const MAX_LINES_BEFORE_UCIOK: usize = 1 << 12;

/// A running UCI engine that has answered `uci`. It plays in positions that no source of moves contains.
pub(super) struct SecondEngine {
    pub process: EngineProcess,
    /// The `id` and `option` lines that the engine wrote in answer to `uci`.
    pub lines: Vec<String>,
    /// The names of the UCI options that the engine declared.
    pub options: Vec<String>,
    /// Contains one item for each of the engine's lines in the queue of events, so that at most
    /// [`super::MAX_QUEUED_LINES`] lines wait there.
    queued: Feed<()>,
}

impl SecondEngine {
    /// Starts the program `program` with the arguments `args`, and waits until it has answered `uci`. A new thread
    /// reads the output of the engine, and sends each line after `uciok` to `feeder`.
    ///
    /// Returns `None` if the engine does not answer soon and the user interface has sent `quit`, which sets
    /// `is_quitting`.
    ///
    /// # Errors
    ///
    /// Returns an error if the engine cannot be started, or if it does not answer `uci` in time.
    pub(super) fn start(
        program: &Path,
        args: &[OsString],
        feeder: &Feeder<Event>,
        is_quitting: &AtomicBool,
    ) -> Result<Option<SecondEngine>> {
        let (mut process, mut output) = EngineProcess::start(program, args, MAX_QUEUED_LINES)?;
        let (first_lines, mut answer) = task::channel(MAX_QUEUED_LINES);
        let (room, queued) = task::channel(super::MAX_QUEUED_LINES);
        feeder.start("engine", move |feeder| {
            loop {
                let line = output.next();
                let is_last = line.as_ref().is_none_or(|line| line == "uciok");
                // Fails if the start was given up.
                if first_lines.send(line).is_err() || is_last {
                    break;
                }
            }
            for line in output {
                room.send(())?;
                feeder.send(Event::EngineLine(line))?;
            }
            feeder.send(Event::EngineEnd)
        })?;
        process.say("uci")?;
        let deadline = Instant::now() + START_TIMEOUT;
        let mut give_up = None;
        let (mut lines, mut options) = (Vec::new(), Vec::new());
        loop {
            match answer.next_before(Instant::now() + QUIT_CHECK_INTERVAL)? {
                Some(Some(line)) if line == "uciok" => break,
                Some(Some(line)) if line.starts_with("id ") || line.starts_with("option ") => {
                    options.extend(option_name(&line));
                    lines.push(line);
                }
                Some(None) => return Err(process.end_error("closed its output")),
                _ => {}
            }
            if is_quitting.load(Ordering::Relaxed)
                && Instant::now() > *give_up.get_or_insert_with(|| Instant::now() + QUIT_TIMEOUT)
            {
                return Ok(None);
            }
            if lines.len() > MAX_LINES_BEFORE_UCIOK {
                let how = format!(
                    "wrote more than {MAX_LINES_BEFORE_UCIOK} lines with id or option without answering the command \
                     uci with uciok"
                );
                return Err(process.failure(&how));
            }
            if Instant::now() > deadline {
                let how = format!(
                    "does not answer the command uci within {} s",
                    START_TIMEOUT.as_secs()
                );
                return Err(process.failure(&how));
            }
        }
        Ok(Some(SecondEngine {
            process,
            lines,
            options,
            queued,
        }))
    }

    /// Makes room for one more line in the queue of events. Must be called for each [`Event::EngineLine`] that was
    /// taken from the queue.
    pub(super) fn took_line(&mut self) {
        // The item was sent before the line. It is missing only if the line belongs to an engine that has ended.
        let _ = self.queued.next_waiting();
    }

    /// Returns `true` if the engine has declared an option named `name`, ignoring case.
    pub(super) fn has(&self, name: &str) -> bool {
        let mut known = self.options.iter();
        known.any(|known| known.eq_ignore_ascii_case(name))
    }

    /// Sends `quit` to the engine, and waits until `events` reports that the engine has ended. If the engine does not
    /// end before `deadline`, kills it and its child processes.
    pub(super) fn quit(mut self, events: &mut Feed<Event>, deadline: Instant) {
        if self.process.say("quit").is_err() {
            return;
        }
        while Instant::now() < deadline {
            match events.next_before(deadline) {
                Ok(Some(Event::EngineEnd)) | Err(_) => return,
                Ok(Some(Event::EngineLine(_))) => self.took_line(),
                _ => {}
            }
        }
    }
}

//! The second engine, which plays in positions that no source contains.

use std::{
    ffi::OsString,
    path::Path,
    time::{Duration, Instant},
};

use crate::{
    error::Result,
    task::{Feed, Feeder},
    uci::{EngineProcess, option_name},
};

/// An event in a UCI session: input from the user interface, or output of the second engine, which plays in positions
/// that no source contains.
pub(super) enum Event {
    /// The user interface sent this command.
    Command(String),
    /// The user interface closed the input, so no more commands will arrive.
    End,
    /// The second engine wrote this line.
    EngineLine(String),
    /// The second engine ended or closed its output.
    EngineEnd,
}

/// How long the second engine, which plays in positions outside the book, may take to answer `uciok` after its start.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// How long the second engine, which plays in positions outside the book, may take to exit after `quit`. An engine that
/// takes longer is killed.
const QUIT_TIMEOUT: Duration = Duration::from_secs(1);

/// The maximum number of lines that wait to be sent to the second engine, which plays in positions outside the book.
/// The number is large because some user interfaces set a hundred options at once.
const MAX_QUEUED_LINES: usize = 1 << 10;

/// The maximum number of lines that the second engine, which plays in positions outside the book, may write before
/// `uciok`. This limits the memory for these lines.
const MAX_LINES_BEFORE_UCIOK: usize = 1 << 12;

/// A running UCI engine that has answered `uci`. It plays in positions that no source contains.
pub(super) struct SecondEngine {
    pub process: EngineProcess,
    /// The `id` and `option` lines that the engine wrote in answer to `uci`.
    pub lines: Vec<String>,
    /// The names of the UCI options that the engine declared.
    pub options: Vec<String>,
}

impl SecondEngine {
    /// Starts the program `program` with the arguments `args`, and waits until it has answered `uci`. A new thread
    /// reads the engine's output, and sends each line to `feeder`. The function reads the answer to `uci` from
    /// `events`, which must be the receiver of `feeder`.
    ///
    /// # Errors
    ///
    /// Returns an error if the engine cannot be started, or if it does not answer `uci` in time.
    pub(super) fn start(
        program: &Path,
        args: &[OsString],
        feeder: &Feeder<Event>,
        events: &mut Feed<Event>,
    ) -> Result<SecondEngine> {
        let (mut process, output) = EngineProcess::start(program, args, MAX_QUEUED_LINES)?;
        feeder.start("engine", |feeder| {
            output.each_line(|line| feeder.send(Event::EngineLine(line)))?;
            feeder.send(Event::EngineEnd)
        })?;
        process.say("uci")?;
        let deadline = Instant::now() + START_TIMEOUT;
        let (mut lines, mut options) = (Vec::new(), Vec::new());
        loop {
            match events.next_before(deadline)? {
                Some(Event::EngineLine(line)) if line == "uciok" => break,
                Some(Event::EngineLine(line))
                    if lines.len() < MAX_LINES_BEFORE_UCIOK && Instant::now() < deadline =>
                {
                    options.extend(option_name(&line));
                    if line.starts_with("id ") || line.starts_with("option ") {
                        lines.push(line);
                    }
                }
                Some(Event::EngineEnd) => return Err(process.end_error("closed its output")),
                // No input has been read yet, so the engine has written too many lines or taken too long.
                _ => {
                    let how = format!(
                        "does not answer the command uci within {} s",
                        START_TIMEOUT.as_secs()
                    );
                    return Err(process.failure(&how));
                }
            }
        }
        Ok(SecondEngine {
            process,
            lines,
            options,
        })
    }

    /// Returns `true` if the engine has declared an option named `name`, ignoring case.
    pub(super) fn has(&self, name: &str) -> bool {
        let mut known = self.options.iter();
        known.any(|known| known.eq_ignore_ascii_case(name))
    }

    /// Sends `quit` to the engine, and waits until `events` reports that the engine has ended. If the engine does not
    /// end in time, kills it and its child processes.
    pub(super) fn quit(mut self, events: &mut Feed<Event>) {
        let deadline = Instant::now() + QUIT_TIMEOUT;
        if self.process.say("quit").is_err() {
            return;
        }
        while Instant::now() < deadline {
            match events.next_before(deadline) {
                Ok(Some(Event::EngineEnd)) | Err(_) => return,
                _ => {}
            }
        }
    }
}

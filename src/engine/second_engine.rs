//! The second engine, to which a session passes the positions that no source knows.

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

/// An event in a conversation: a message from the program that sends commands, or from the second engine.
pub(super) enum Event {
    /// A command has arrived.
    Command(String),
    /// No further command will arrive.
    End,
    /// The second engine wrote a line.
    Behind(String),
    /// The second engine has ended or closed its output.
    BehindEnd,
}

/// The maximum time from the start of an engine to its `uciok`.
const START: Duration = Duration::from_secs(30);

/// The maximum time that an engine gets to end after `quit`.
const QUIT: Duration = Duration::from_secs(1);

/// The maximum number of lines that may wait until an engine reads them. Some programs set a hundred options at once.
const AHEAD: usize = 1 << 10;

/// The maximum number of lines before `uciok`.
const MOST_LINES: usize = 1 << 12;

/// An engine that has answered `uci`.
pub(super) struct SecondEngine {
    pub process: EngineProcess,
    /// The lines that name and declare the engine: `id` and `option`.
    pub lines: Vec<String>,
    /// The names of its options.
    pub options: Vec<String>,
}

impl SecondEngine {
    /// Starts an engine. A thread sends its lines to `feeder`, whose receiver is `events`.
    ///
    /// # Errors
    ///
    /// Returns an error if the engine cannot be started or does not answer `uci`.
    pub(super) fn start(
        program: &Path,
        args: &[OsString],
        feeder: &Feeder<Event>,
        events: &mut Feed<Event>,
    ) -> Result<SecondEngine> {
        let (mut process, output) = EngineProcess::start(program, args, AHEAD)?;
        feeder.start("engine", |feeder| {
            output.each_line(|line| feeder.send(Event::Behind(line)))?;
            feeder.send(Event::BehindEnd)
        })?;
        process.say("uci")?;
        let deadline = Instant::now() + START;
        let (mut lines, mut options) = (Vec::new(), Vec::new());
        loop {
            match events.next_before(deadline)? {
                Some(Event::Behind(line)) if line == "uciok" => break,
                Some(Event::Behind(line))
                    if lines.len() < MOST_LINES && Instant::now() < deadline =>
                {
                    options.extend(option_name(&line));
                    if line.starts_with("id ") || line.starts_with("option ") {
                        lines.push(line);
                    }
                }
                Some(Event::BehindEnd) => return Err(process.has_ended("closed its output")),
                // Commands are read later, so this is a line too many or the end of the time.
                _ => {
                    let how = format!("does not answer uci in {} s", START.as_secs());
                    return Err(process.fails(&how));
                }
            }
        }
        Ok(SecondEngine {
            process,
            lines,
            options,
        })
    }

    /// Returns `true` if the engine declares an option.
    pub(super) fn has(&self, name: &str) -> bool {
        let mut known = self.options.iter();
        known.any(|known| known.eq_ignore_ascii_case(name))
    }

    /// Asks the engine to end, and kills it with all that it started if it does not.
    pub(super) fn quit(mut self, events: &mut Feed<Event>) {
        let deadline = Instant::now() + QUIT;
        if self.process.say("quit").is_err() {
            return;
        }
        while Instant::now() < deadline {
            match events.next_before(deadline) {
                Ok(Some(Event::BehindEnd)) | Err(_) => return,
                _ => {}
            }
        }
    }
}

//! Runs UCI engines as child processes: starts and ends them, sends lines to them, and reads their output line by line.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use crate::{
    error::{At, Error, Result},
    task::{self, Taker},
};

/// The maximum length in bytes of a line of UCI. The lines of real engines and user interfaces are shorter.
pub(crate) const LONGEST_LINE: u64 = 1 << 16;

/// The maximum number of characters in the name of an engine option. Longer names are truncated.
const LONGEST_NAME: usize = 200;

/// The process ids of all running engines that this process has started.
static RUNNING: Mutex<Running> = Mutex::new(Running {
    engines: BTreeSet::new(),
    is_closed: false,
});

struct Running {
    engines: BTreeSet<u32>,
    /// Whether this process is about to end, so that no further engine may be started.
    is_closed: bool,
}

/// Kills all engines that this process has started, and prevents it from starting further engines. A program must call
/// this function before it ends because of a signal.
pub fn end_engines() {
    let mut running = task::lock(&RUNNING);
    running.is_closed = true;
    std::mem::take(&mut running.engines)
        .into_iter()
        .for_each(end_group);
}

/// Kills an engine and all other processes in its process group. This is necessary because the engine may be a script
/// that has started the real engine. `engine` is the process id of the engine.
#[cfg(unix)]
fn end_group(engine: u32) {
    use rustix::process::{Pid, Signal, kill_process_group};
    if let Some(group) = engine.try_into().ok().and_then(Pid::from_raw) {
        // All processes of the group may have ended.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// Kills an engine and the processes that it has started. `engine` is the process id of the engine.
#[cfg(windows)]
fn end_group(engine: u32) {
    let mut kill = Command::new("taskkill");
    kill.args(["/T", "/F", "/PID", &engine.to_string()]);
    // All of these processes may have ended.
    let _ = kill.stdout(Stdio::null()).stderr(Stdio::null()).status();
}

/// A helper process that kills an engine, and the processes that it has started, if this process ends without doing so,
/// for example because it is itself killed. The helper is a shell that waits for a line of input. If its input ends
/// without a line, this process has ended.
#[cfg(unix)]
struct EngineKiller(Child);

#[cfg(unix)]
impl EngineKiller {
    /// Starts the helper process for the engine with the process id `engine`. Returns `None` if the system has no
    /// shell.
    fn start(engine: u32) -> Option<EngineKiller> {
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", "read -r line || kill -s KILL -- -$0"])
            .arg(engine.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // Signals of the terminal must not end the guard before this process.
        std::os::unix::process::CommandExt::process_group(&mut shell, 0);
        shell.spawn().ok().map(EngineKiller)
    }
}

#[cfg(unix)]
impl Drop for EngineKiller {
    /// Ends the helper process without killing anything. The engine must have been killed before.
    fn drop(&mut self) {
        if let Some(mut input) = self.0.stdin.take() {
            // The guard may have been killed.
            let _ = input.write_all(b"\n");
        }
        let _ = self.0.wait();
    }
}

/// A running UCI engine. When the value is dropped, the engine and the processes that it has started are killed. On
/// Unix, they are also killed if this process is killed.
pub(crate) struct EngineProcess {
    program: PathBuf,
    child: Child,
    #[cfg(unix)]
    _guard: Option<EngineKiller>,
    input: Taker<String>,
    /// Whether the engine has written a line that is too long. Set by the reader of the output.
    wrote_too_long: Arc<AtomicBool>,
}

/// An iterator over the lines that a UCI engine writes. It ends at the end of the output, or at a line that is too
/// long.
pub(crate) struct EngineOutput<R = ChildStdout> {
    lines: UciLines<R>,
    wrote_too_long: Arc<AtomicBool>,
}

impl<R: Read> Iterator for EngineOutput<R> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        match self.lines.next()? {
            UciLine::Text(text) => Some(text),
            UciLine::TooLong => {
                // The flag is set before the pipe is closed, because the closed pipe may end the engine.
                self.wrote_too_long.store(true, Ordering::Release);
                None
            }
        }
    }
}

/// A line written by a UCI engine or a user interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum UciLine {
    /// The text of the line, without white space around it.
    Text(String),
    /// A line of more than [`LONGEST_LINE`] bytes.
    TooLong,
}

/// An iterator over the lines of a UCI stream. It ends at the end of the stream, or if the stream cannot be read.
pub(crate) struct UciLines<R> {
    stream: BufReader<R>,
    /// Whether the last line was too long, so that the rest of it must be skipped.
    is_inside_long_line: bool,
}

impl<R: Read> UciLines<R> {
    pub(crate) fn new(stream: R) -> UciLines<R> {
        UciLines {
            stream: BufReader::new(stream),
            is_inside_long_line: false,
        }
    }
}

impl<R: Read> Iterator for UciLines<R> {
    type Item = UciLine;

    fn next(&mut self) -> Option<UciLine> {
        loop {
            let mut line = Vec::new();
            let read = (&mut self.stream)
                .take(LONGEST_LINE + 1)
                .read_until(b'\n', &mut line);
            if read.is_err() || line.is_empty() {
                return None;
            }
            let is_cut = line.len() as u64 > LONGEST_LINE && line.last() != Some(&b'\n');
            let was_cut = std::mem::replace(&mut self.is_inside_long_line, is_cut);
            match (was_cut, is_cut) {
                (true, _) => {}
                (false, true) => return Some(UciLine::TooLong),
                (false, false) => {
                    let text = String::from_utf8_lossy(&line).trim().to_owned();
                    return Some(UciLine::Text(text));
                }
            }
        }
    }
}

impl Drop for EngineProcess {
    fn drop(&mut self) {
        let mut running = task::lock(&RUNNING);
        running.engines.remove(&self.child.id());
        end_group(self.child.id());
        drop(running);
        // Both calls fail if the engine has already ended and was waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl EngineProcess {
    /// Starts an engine. Returns the engine and its output. Lines that are sent to the engine wait in a queue, which
    /// holds at most `ahead` lines.
    ///
    /// # Errors
    ///
    /// Returns an error if the program cannot be started, or if [`end_engines`] has been called.
    pub(crate) fn start(
        program: &Path,
        args: &[OsString],
        ahead: usize,
    ) -> Result<(EngineProcess, EngineOutput)> {
        let mut command = Command::new(program);
        command
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut running = task::lock(&RUNNING);
        if running.is_closed {
            return Err(Error::Interrupted);
        }
        let mut child = command.spawn().at(program, "start the engine")?;
        running.engines.insert(child.id());
        drop(running);
        let (input, stdout) = (child.stdin.take(), child.stdout.take());
        let (mut input, stdout) = input.zip(stdout).expect("both are pipes");
        // A separate thread writes to the engine, so an engine that does not read its input cannot block the caller.
        let input = task::start_taking("engine", ahead, move |line: String| {
            input.write_all(line.as_bytes())
        })?;
        let engine = EngineProcess {
            program: program.to_owned(),
            #[cfg(unix)]
            _guard: EngineKiller::start(child.id()),
            child,
            input,
            wrote_too_long: Arc::default(),
        };
        let wrote_too_long = Arc::clone(&engine.wrote_too_long);
        let output = EngineOutput {
            lines: UciLines::new(stdout),
            wrote_too_long,
        };
        Ok((engine, output))
    }

    /// Sends a line to the engine. The line waits in a queue until it is written to the engine's input.
    ///
    /// # Errors
    ///
    /// Returns an error if the engine has ended, or if the queue is full because the engine does not read its input.
    pub(crate) fn say(&mut self, line: &str) -> Result<()> {
        match self.input.offer(format!("{line}\n")) {
            Ok(()) => Ok(()),
            Err(_) => Err(self.end_error("does not read")),
        }
    }

    /// Returns the error for an engine that has closed a pipe or does not read its input. If the engine wrote a line
    /// that is too long, the error says so. If the engine has ended, the error contains its exit status. In all other
    /// cases, the error contains the text `otherwise`, such as `does not read`.
    pub(crate) fn end_error(&mut self, otherwise: &str) -> Error {
        if self.wrote_too_long.load(Ordering::Acquire) {
            return self.failure(&format!("wrote a line of more than {LONGEST_LINE} bytes"));
        }
        // The pipes of a process are closed shortly before the process has ended.
        for _ in 0..20 {
            if let Ok(Some(status)) = self.child.try_wait() {
                return self.failure(&format!("ended: {status}"));
            }
            thread::sleep(Duration::from_millis(10));
        }
        self.failure(otherwise)
    }

    /// Returns an error about the engine. Its message is "PROGRAM: the engine HOW", where PROGRAM is the path of the
    /// engine and HOW is the text `how`.
    pub(crate) fn failure(&self, how: &str) -> Error {
        Error::failed(&self.program, format!("the engine {how}"))
    }
}

/// Returns `true` if `line` begins with `bestmove`. An engine ends each search with such a line.
pub(crate) fn is_answer(line: &str) -> bool {
    line.split_ascii_whitespace().next() == Some("bestmove")
}

/// Returns the name of the engine option that `line` declares. For example, the line `option name Hash type spin`
/// declares `Hash`. Returns `None` if the line declares no option.
pub(crate) fn option_name(line: &str) -> Option<String> {
    let said = line.strip_prefix("option name ")?;
    let name = said.split_once(" type ").map_or(said, |(name, _)| name);
    Some(shortened_name(name))
}

/// Truncates the name of an engine option to at most [`LONGEST_NAME`] characters.
pub(crate) fn shortened_name(name: &str) -> String {
    name.chars().take(LONGEST_NAME).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_one_error_and_the_next_line_is_read() {
        let longest = LONGEST_LINE as usize;
        for extra in [0, 1, 2, longest, 3 * longest + 7] {
            let text = format!(" a\n{}\n\nb", "x".repeat(longest + extra));
            let lines: Vec<UciLine> = UciLines::new(text.as_bytes()).collect();
            let long = match extra {
                0 => UciLine::Text("x".repeat(longest)),
                _ => UciLine::TooLong,
            };
            let text = |text: &str| UciLine::Text(text.to_owned());
            assert!(lines == [text("a"), long, text(""), text("b")], "{extra}");
            let engine_text = format!("{}\nb\n", "x".repeat(longest + extra));
            let mut output = EngineOutput {
                lines: UciLines::new(engine_text.as_bytes()),
                wrote_too_long: Arc::default(),
            };
            assert_eq!(output.by_ref().count(), if extra == 0 { 2 } else { 0 });
            assert_eq!(output.wrote_too_long.load(Ordering::Acquire), extra > 0);
        }
    }
}

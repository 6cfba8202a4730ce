//! UCI engines as child processes: starting and ending them, writing to them, and reading their output line by
//! line.

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

/// The maximum length in bytes of a line that an engine may write. Real engines write shorter lines.
const LONGEST_LINE: u64 = 1 << 16;

/// The maximum number of characters in the name of an engine's option. Longer names are truncated.
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

/// Kills all engines that this process has started, and prevents further engines from being started. A program must
/// call this function before it ends because of a signal.
pub fn end_engines() {
    let mut running = task::lock(&RUNNING);
    running.is_closed = true;
    std::mem::take(&mut running.engines)
        .into_iter()
        .for_each(end_group);
}

/// Kills an engine and all processes in its process group. The engine may be a script that has started the real engine,
/// which belongs to the same group. `engine` is the process id of the engine.
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

/// A running UCI engine. When the value is dropped, the engine and the processes that it has started are killed.
pub(crate) struct EngineProcess {
    program: PathBuf,
    child: Child,
    input: Taker<String>,
    /// Set when the engine has written a line that is too long.
    wrote_too_long: Arc<AtomicBool>,
}

/// The output of a UCI engine, which [`each_line`](EngineOutput::each_line) reads line by line.
pub(crate) struct EngineOutput {
    stdout: ChildStdout,
    wrote_too_long: Arc<AtomicBool>,
}

impl EngineOutput {
    /// Calls `take` with each line that the engine writes. White space around a line is removed. Returns when the
    /// output ends or a line is too long.
    ///
    /// # Errors
    ///
    /// Returns the error of `take`.
    pub(crate) fn each_line(mut self, take: impl FnMut(String) -> Result<()>) -> Result<()> {
        // The flag is set before the pipe is closed, because the closed pipe may end the engine.
        let end = read_lines(&mut self.stdout, take)?;
        self.wrote_too_long
            .store(end == LinesEnd::TooLong, Ordering::Release);
        Ok(())
    }
}

/// The reason why [`read_lines`] no longer reads the output of an engine.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum LinesEnd {
    /// The output has ended, or it cannot be read.
    Ended,
    /// A line is longer than [`LONGEST_LINE`].
    TooLong,
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
    /// Starts an engine. Returns the engine and its output. Lines that are sent to the engine wait in a queue of at
    /// most `ahead` lines.
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
            child,
            input,
            wrote_too_long: Arc::default(),
        };
        let wrote_too_long = Arc::clone(&engine.wrote_too_long);
        let output = EngineOutput {
            stdout,
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
            true => Ok(()),
            false => Err(self.end_error("does not read")),
        }
    }

    /// Creates the error for an engine that has closed a pipe or does not read its input. If the engine wrote a line
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

    /// Creates an error about the engine. Its message is "PROGRAM: the engine HOW", where PROGRAM is the path of the
    /// engine and HOW is the text `how`.
    pub(crate) fn failure(&self, how: &str) -> Error {
        Error::failed(&self.program, format!("the engine {how}"))
    }
}

/// Calls `take` with each line of `output`. White space around a line is removed. Stops at the end of the output, at a
/// line of more than [`LONGEST_LINE`] bytes, or when `take` fails. Returns the reason for stopping.
///
/// # Errors
///
/// Returns the error of `take`.
pub(crate) fn read_lines(
    output: impl Read,
    mut take: impl FnMut(String) -> Result<()>,
) -> Result<LinesEnd> {
    let mut output = BufReader::new(output);
    loop {
        let mut line = Vec::new();
        let read = (&mut output)
            .take(LONGEST_LINE)
            .read_until(b'\n', &mut line);
        if read.is_err() || line.last() != Some(&b'\n') {
            return Ok(match line.len() as u64 {
                LONGEST_LINE => LinesEnd::TooLong,
                _ => LinesEnd::Ended,
            });
        }
        take(String::from_utf8_lossy(&line).trim().to_owned())?;
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

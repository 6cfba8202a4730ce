//! The `polybook` command.

#![forbid(unsafe_code)]

mod cli;

use std::process::ExitCode;
#[cfg(unix)]
use std::{
    io,
    sync::atomic::{AtomicBool, Ordering},
};

#[cfg(unix)]
use rustix::fs::{OFlags, fcntl_getfl};

/// Whether standard output was closed when the process started, or open only for reading.
#[cfg(unix)]
static STDOUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Sets [`STDOUT_WAS_CLOSED`]. This function runs before the standard library starts. When the standard library starts,
/// it opens `/dev/null` in place of a closed standard output. `main` could therefore not distinguish `>&-` from
/// `>/dev/null`.
#[cfg(unix)]
#[ctor::ctor]
fn record_closed_stdout() {
    let flags = fcntl_getfl(rustix::stdio::stdout()).unwrap_or(OFlags::RDONLY);
    let is_closed = flags & OFlags::RWMODE == OFlags::RDONLY;
    STDOUT_WAS_CLOSED.store(is_closed, Ordering::Relaxed);
}

/// Replaces standard output with a pipe that nobody reads, so that each write to standard output fails.
#[cfg(unix)]
fn reject_writes_to_stdout() -> io::Result<()> {
    let (_, writer) = io::pipe()?;
    Ok(rustix::stdio::dup2_stdout(writer)?)
}

fn main() -> ExitCode {
    #[cfg(unix)]
    let stdout_was_closed = STDOUT_WAS_CLOSED.load(Ordering::Relaxed);
    #[cfg(not(unix))]
    let stdout_was_closed = false;
    // The program must report that its data are lost, so writes to a closed standard output must not succeed.
    #[cfg(unix)]
    if stdout_was_closed && let Err(err) = reject_writes_to_stdout() {
        eprintln!("polybook: cannot create a pipe in place of the closed standard output: {err}");
        return ExitCode::FAILURE;
    }
    // Shells on Windows do not expand patterns such as `*.pgn`, so the program does.
    ExitCode::from(cli::run(wild::args_os(), stdout_was_closed))
}

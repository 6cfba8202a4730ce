//! How failures end a command: one line on standard error and an exit status.

use std::{
    io::{self, ErrorKind, Write},
    panic::{self, AssertUnwindSafe},
    process::ExitCode,
    sync::{Mutex, PoisonError},
};

use clap::error::ErrorKind as ClapErrorKind;
use thiserror::Error;

/// The command line was wrong in a way that only the command itself could see.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct Usage(pub String);

/// Reports a command line that could not be read, or prints the help it asked for.
pub fn command_line(err: &clap::Error) -> ExitCode {
    match err.kind() {
        ClapErrorKind::DisplayHelp | ClapErrorKind::DisplayVersion => {
            // A reader that has gone is no error.
            let _ = err.print();
            ExitCode::SUCCESS
        }
        _ => {
            let _ = err.print();
            ExitCode::from(2)
        }
    }
}

/// Runs a command and reports how it ended. A panic, which would be our own mistake or that of a
/// library, ends it with one line too.
pub fn without_backtraces(command: impl FnOnce() -> anyhow::Result<()>) -> ExitCode {
    static LAST: Mutex<String> = Mutex::new(String::new());
    let last = || LAST.lock().unwrap_or_else(PoisonError::into_inner);
    panic::set_hook(Box::new(move |panic| {
        *last() = panic.to_string();
    }));
    match panic::catch_unwind(AssertUnwindSafe(command)) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(err)) => failure(&err),
        Err(_) => {
            let place = last().replace('\n', " ");
            let _ = writeln!(
                io::stderr(),
                "polybook: internal error, please report it: {place}"
            );
            ExitCode::FAILURE
        }
    }
}

/// Reports what went wrong in a command.
fn failure(err: &anyhow::Error) -> ExitCode {
    if is_broken_pipe(err) {
        return ExitCode::SUCCESS;
    }
    let line = one_line(err);
    let _ = writeln!(io::stderr(), "polybook: {line}");
    if err.is::<Usage>() {
        return ExitCode::from(2);
    }
    match err.downcast_ref() {
        Some(polybook::Error::Interrupted) => ExitCode::from(130),
        _ => ExitCode::FAILURE,
    }
}

/// An error with its causes, each said once, without the numbers of the operating system.
fn one_line(err: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in err.chain() {
        let text = cause.to_string();
        let text = match text.find(" (os error ") {
            Some(end) => &text[..end],
            None => &text,
        };
        if line.is_empty() {
            line.push_str(text);
        } else if !line.ends_with(text) {
            line.push_str(": ");
            line.push_str(text);
        }
    }
    line.push_str(advice(err));
    line.replace(['\n', '\r'], " ")
}

/// The options that help, which the library does not know.
fn advice(err: &anyhow::Error) -> &'static str {
    match err.downcast_ref() {
        Some(polybook::Error::Exists { .. }) => ": remove it, or replace it with --force",
        Some(polybook::Error::Rejected(_)) => "; without --strict the game is left out",
        _ => "",
    }
}

fn is_broken_pipe(err: &anyhow::Error) -> bool {
    err.chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|err| err.kind() == ErrorKind::BrokenPipe)
}

//! Ends a command that failed with one line on standard error and an exit status.

use std::{
    ffi::OsString,
    io::{self, Write},
    panic::{self, AssertUnwindSafe, PanicHookInfo},
    path::{self, Path, PathBuf},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use clap::error::ErrorKind as ClapErrorKind;
use polybook::{Error, ErrorKind, ForeignFormat, storage::output::discard_all};

use super::{
    input, signals, terminal,
    usage::{self, Usage},
};

/// Handles an error that clap returned for the command line `args`. clap also returns an error if the user
/// requests the help or the version. In that case, prints the requested text. Otherwise, returns a [`Usage`]
/// error that describes the mistake in one line.
pub fn command_line(err: &clap::Error, args: &[OsString]) -> anyhow::Result<()> {
    match err.kind() {
        ClapErrorKind::DisplayHelp | ClapErrorKind::DisplayVersion => {
            err.print().map_err(terminal::not_printed)
        }
        _ => Err(Usage(usage::line(err, args)).into()),
    }
}

// The exit statuses.
const SUCCESS: u8 = 0;
const FAILURE: u8 = 1;
const USAGE: u8 = 2;
const INTERRUPTED: u8 = 130;

/// The message and the source location of the last panic on any thread.
static LAST_PANIC: Mutex<String> = Mutex::new(String::new());

/// `true` if each panic is reported immediately, because the command continues after a panic.
static GOES_ON: AtomicBool = AtomicBool::new(false);

/// Runs a command, prints its error as one line, and returns the exit status of the program.
///
/// A panic on any thread, which is a bug of polybook or of a library, is reported as one line without a backtrace.
pub fn without_backtraces(command: impl FnOnce() -> anyhow::Result<()>) -> u8 {
    panic::set_hook(Box::new(|panic| {
        *last_panic() = described(panic);
        if GOES_ON.load(Ordering::Relaxed) {
            say(&internal_error(""));
        }
    }));
    let ended = panic::catch_unwind(AssertUnwindSafe(command));
    signals::give_way();
    discard_all();
    match ended {
        Ok(Ok(())) => SUCCESS,
        Ok(Err(err)) => failure(&err),
        Err(_) => {
            say(&internal_error(""));
            FAILURE
        }
    }
}

/// Sets that each panic is reported when it happens instead of at the end. The server needs this, because it continues
/// after a panic in one request.
#[cfg(feature = "serve")]
pub fn report_panics_at_once() {
    GOES_ON.store(true, Ordering::Relaxed);
}

fn last_panic() -> MutexGuard<'static, String> {
    LAST_PANIC.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the line that reports a panic with the given message. The line contains the source location if it is known.
fn internal_error(message: &str) -> String {
    let last = last_panic();
    let panic = if last.starts_with(message) {
        &*last
    } else {
        message
    };
    format!("internal error: {panic}; please report it with the command line")
}

fn described(panic: &PanicHookInfo<'_>) -> String {
    let message = panic.payload_as_str().unwrap_or("no message");
    let message = message.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    match panic.location() {
        Some(at) => format!("{message} ({}:{})", at.file(), at.line()),
        None => message,
    }
}

/// An error that ends a command with exit status 1 without a message, because the output already contains the reason:
/// `diff` has found a difference, or `verify` has reported the faults of several files.
#[derive(Debug, thiserror::Error)]
#[error("the answer is no")]
pub struct ExitOne;

/// The error for a command that also writes files, if another program closes standard output before the files are
/// complete.
#[derive(Debug, thiserror::Error)]
#[error("no output was written")]
struct NoOutput;

/// Adds a message to an error about closed standard output, for a command that also writes files. Without the message,
/// the command would end silently, and the user would not know that the files are missing. Returns other errors
/// unchanged.
pub fn of_several_outputs(err: anyhow::Error) -> anyhow::Error {
    match is_broken_pipe(&err) {
        true => err.context(NoOutput),
        false => err,
    }
}

/// Prints the error of a command and returns its exit status.
fn failure(err: &anyhow::Error) -> u8 {
    if err.is::<ExitOne>() {
        return FAILURE;
    }
    if is_broken_pipe(err) && !err.is::<NoOutput>() {
        return SUCCESS;
    }
    let mut causes = err.chain().filter_map(|cause| cause.downcast_ref());
    if let Some(message) = causes.find_map(|cause| match cause {
        Error::Panicked { message } => Some(message),
        _ => None,
    }) {
        say(&internal_error(message));
        return FAILURE;
    }
    say(&one_line(err));
    if err.is::<Usage>() {
        return USAGE;
    }
    match err.downcast_ref() {
        Some(Error::Interrupted) => INTERRUPTED,
        _ => FAILURE,
    }
}

/// Prints the error of one input, so that the command can continue with the next input. Returns the error unchanged if it
/// ends the command: an interruption, a panic, or a closed standard output.
pub fn report_and_continue(err: anyhow::Error) -> anyhow::Result<()> {
    let is_end = matches!(
        err.downcast_ref(),
        Some(Error::Interrupted | Error::Panicked { .. })
    );
    if is_end || is_broken_pipe(&err) {
        return Err(err);
    }
    say(&one_line(&err));
    Ok(())
}

/// Prints a line on standard error, after the name of the program. Line breaks in the text become blanks.
fn say(text: &str) {
    let line = text.replace(['\n', '\r'], " ");
    // If standard error cannot be written, the exit status still tells the caller about the failure.
    let _ = terminal::stderr().write_all(format!("polybook: {line}\n").as_bytes());
}

/// Returns an error and its causes as one line, without repetitions. Temporary copies of inputs are named by the
/// arguments from which they were copied.
fn one_line(err: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in err.chain() {
        let text = match standard_stream(cause) {
            Some(text) => text,
            None => without_numbers(&cause.to_string()),
        };
        if line.is_empty() {
            line.push_str(&text);
        } else if !line.ends_with(&text) {
            line.push_str(": ");
            line.push_str(&text);
        }
    }
    line.push_str(&advice(err));
    input::with_given_names(&line)
}

/// Returns the message for an error that concerns the file `-`, which means standard input or output. Returns `None`
/// for other errors.
fn standard_stream(cause: &(dyn std::error::Error + 'static)) -> Option<String> {
    match cause.downcast_ref()? {
        Error::Io { path, doing, .. } if path == Path::new("-") => Some(match *doing {
            "write" => "cannot write standard output".to_owned(),
            doing => format!("cannot {doing} standard input"),
        }),
        _ => None,
    }
}

/// Returns the message without the error numbers of the operating system, such as ` (os error 28)`.
fn without_numbers(text: &str) -> String {
    const START: &str = " (os error ";
    let mut rest = text;
    let mut kept = String::with_capacity(text.len());
    while let Some((before, after)) = rest.split_once(START) {
        kept.push_str(before);
        match after.split_once(')') {
            Some((_, after)) => rest = after,
            None => rest = "",
        }
    }
    kept + rest
}

/// Returns advice for the user to append to the message of an error, such as the name of an option. Returns an empty
/// text if there is no advice.
fn advice(err: &anyhow::Error) -> String {
    if let Some(Error::Io { path, .. }) = err.downcast_ref()
        && path.to_string_lossy().contains('*')
        && let Ok(path) = path::absolute(path)
        && let (false, Some(folder)) = (path.exists(), path.parent())
    {
        return format!(": no file in {} has such a name", folder.display());
    }
    if let Some(directory) = err.downcast_ref().and_then(damaged_in_cache) {
        let directory = directory.display();
        return format!(": remove the directory {directory}, and repeat the command");
    }
    // Only some commands have the option --allow-empty.
    if let Some(Error::Empty { .. }) = err.downcast_ref() {
        return "; --allow-empty writes empty outputs".to_owned();
    }
    let advice = match err.downcast_ref().map(Error::kind) {
        Some(ErrorKind::Exists) => ": remove it, or replace it with --force",
        Some(ErrorKind::Rejected) => "; without --strict the game is dropped",
        Some(ErrorKind::Foreign(ForeignFormat::Pgn)) => {
            "; polybook make-book makes a book of games"
        }
        Some(ErrorKind::Foreign(ForeignFormat::Sqlite)) => {
            "; polybook convert makes a book of an OOBS database"
        }
        _ => "",
    };
    advice.to_owned()
}

/// Returns the directory of an index if the error means that the index is damaged and that it is in the cache of
/// indexes. Otherwise returns `None`.
fn damaged_in_cache(err: &Error) -> Option<PathBuf> {
    #[cfg(feature = "serve")]
    if let Error::File {
        path,
        kind: ErrorKind::Damaged,
        ..
    } = err
    {
        let cache = dirs::cache_dir()?.join("polybook");
        let index = path.strip_prefix(&cache).ok()?.components().next()?;
        return Some(cache.join(index));
    }
    let _ = err;
    None
}

/// Returns `true` if an error means that the reader of standard output has closed it. A broken pipe of another output
/// does not count.
fn is_broken_pipe(err: &anyhow::Error) -> bool {
    let is_broken = err
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|err| err.kind() == io::ErrorKind::BrokenPipe);
    let is_standard_output =
        |path: &Path| path == Path::new("-") || path == Path::new("standard output");
    let names_a_file = err.chain().any(|cause| {
        matches!(cause.downcast_ref(), Some(Error::Io { path, .. }) if !is_standard_output(path))
    });
    is_broken && !names_a_file
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn numbers_of_the_operating_system_go_and_the_text_after_them_stays() {
        let text = "cannot write a: No space left on device (os error 28); kept as b (os error 2)";
        assert_eq!(
            without_numbers(text),
            "cannot write a: No space left on device; kept as b"
        );
        assert_eq!(without_numbers("nothing"), "nothing");
    }

    #[test]
    fn each_cause_is_said_once() {
        let cause = io::Error::from_raw_os_error(2);
        let err = anyhow!(cause).context("cannot open a.pgn");
        assert_eq!(
            one_line(&err),
            "cannot open a.pgn: No such file or directory"
        );
        let err = anyhow!(Error::Io {
            path: "-".into(),
            doing: "write",
            source: io::Error::other("full"),
        });
        assert_eq!(one_line(&err), "cannot write standard output: full");
        let err = anyhow!("b").context("a: b");
        assert_eq!(one_line(&err), "a: b");
    }

    #[test]
    fn only_standard_output_may_break() {
        let broken = || io::Error::from(io::ErrorKind::BrokenPipe);
        let at = |path: &str| {
            anyhow!(Error::Io {
                path: path.into(),
                doing: "write",
                source: broken(),
            })
        };
        assert!(is_broken_pipe(&terminal::not_printed(broken())));
        assert!(is_broken_pipe(&at("standard output")));
        assert!(is_broken_pipe(&at("-")));
        assert!(!is_broken_pipe(&at("fifo")));
    }
}

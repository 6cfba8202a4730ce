//! Ends a failed command with one line on standard error and an exit status. The error messages of clap, which have
//! several paragraphs, are shortened to one line that keeps clap's tips.

use std::{
    env,
    ffi::OsString,
    io::{self, Write},
    panic::{self, AssertUnwindSafe, PanicHookInfo},
    path::{self, Path, PathBuf},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use clap::{
    Command, CommandFactory,
    error::{ContextKind, ContextValue, ErrorKind as ClapErrorKind},
};
use polybook::{Error, ErrorKind, ForeignFormat, NamedOption, storage::output::discard_all};

use super::{
    Cli, argv, input, parsed,
    resources::MAX_COUNT,
    signals, terminal,
    usage::{EXPLORER_DIR, Usage},
};

/// Handles the error `err` with which clap refused the command line `args`. Returns a [`Usage`] error that describes
/// the user's mistake in one line. clap also returns an error if the user requested the help or the version; in this
/// case, prints the requested text and returns `Ok`.
pub fn command_line(err: &clap::Error, args: &[OsString]) -> anyhow::Result<()> {
    match err.kind() {
        ClapErrorKind::DisplayHelp | ClapErrorKind::DisplayVersion => {
            err.print().map_err(terminal::not_printed)
        }
        _ => Err(Usage(usage_line(err, args)).into()),
    }
}

// The exit statuses.
const SUCCESS: u8 = 0;
const FAILURE: u8 = 1;
const USAGE: u8 = 2;
const INTERRUPTED: u8 = 130;

/// The message and the source location of the last panic on any thread.
static LAST_PANIC: Mutex<String> = Mutex::new(String::new());

/// Whether each panic is reported as soon as it happens. The server sets this flag, because it continues after a panic.
/// Otherwise, a panic is reported when the command ends.
static REPORTS_AT_ONCE: AtomicBool = AtomicBool::new(false);

/// Runs a command and returns the exit status of the program. If the command fails, prints its error as one line.
///
/// A panic on any thread is also printed as one line, without a backtrace. A panic is always a bug of polybook or of a
/// library.
pub fn without_backtraces(command: impl FnOnce() -> anyhow::Result<()>) -> u8 {
    panic::set_hook(Box::new(|panic| {
        *last_panic() = described(panic);
        if REPORTS_AT_ONCE.load(Ordering::Relaxed) {
            say(&internal_error(""));
        }
    }));
    let ended = panic::catch_unwind(AssertUnwindSafe(command));
    signals::wait_if_ending();
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

/// Makes polybook report every panic as soon as it happens instead of at the end of the program. The server calls this
/// function, because it continues after a panic in a request.
#[cfg(feature = "serve")]
pub fn report_panics_at_once() {
    REPORTS_AT_ONCE.store(true, Ordering::Relaxed);
}

fn last_panic() -> MutexGuard<'static, String> {
    LAST_PANIC.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the message that reports a panic to the user. `message` is the text of the panic, or empty for the panic in
/// [`LAST_PANIC`]. The returned message contains the source location only if `message` is the text of this last panic,
/// because the locations of other panics are unknown.
fn internal_error(message: &str) -> String {
    let last = last_panic();
    let panic = if last.starts_with(message) {
        &*last
    } else {
        message
    };
    format!("internal error: {panic}; please report this message with your command line")
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

/// An error that says that a command wrote no output files, because standard output was closed while the command
/// printed to it. This happens when a program that reads the output, such as `head`, ends.
#[derive(Debug, thiserror::Error)]
#[error("no output was written")]
struct NoOutput;

/// Adds [`NoOutput`] to `err` if `err` says that standard output was closed. Returns other errors unchanged. By
/// default, a command ends without a message when standard output is closed. A command that also writes files calls
/// this function, so that the user learns that the files were not written.
pub fn explain_closed_output(err: anyhow::Error) -> anyhow::Error {
    if is_broken_pipe(&err) {
        err.context(NoOutput)
    } else {
        err
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

/// Prints the error of one input and returns `Ok`, so that the command can continue with the next input. Returns an
/// error that must end the command without printing it: an interruption, a panic, or closed standard output.
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

/// Prints the text, preceded by `polybook: `, as one line on standard error. Line breaks in the text become spaces.
fn say(text: &str) {
    let line = text.replace(['\n', '\r'], " ");
    // If standard error cannot be written, the exit status still reports the failure to the caller.
    let _ = terminal::stderr().write_all(format!("polybook: {line}\n").as_bytes());
}

/// Formats an error and its causes as one line. Omits a cause if the line already ends with its text. Replaces the
/// paths of temporary copies of inputs with the names that the user gave.
fn one_line(err: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in err.chain() {
        let text = match standard_stream(cause) {
            Some(text) => text,
            None => without_numbers(&worded(cause)),
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

/// Returns the command-line spelling of an option, for advice that the library gives. Returns `None` if the running
/// command does not have the option.
pub fn spelled(option: &NamedOption) -> Option<String> {
    let is_known = option.command.is_some() || running_command_has(option.name);
    is_known.then(|| option.on_command_line())
}

/// Replaces the names of conditions in a message of the library, such as `the condition exact`, with options of the
/// running command, such as `--exact`.
pub fn with_options(message: &str) -> String {
    const CONDITION: &str = "the condition ";
    let mut parts = message.split(CONDITION);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_lowercase() && c != '-');
        let name = &part[..end.unwrap_or(part.len())];
        text += match running_command_has(name) {
            true => "--",
            false => CONDITION,
        };
        text += part;
    }
    text
}

fn running_command_has(name: &str) -> bool {
    let args = argv::renamed(env::args_os().collect());
    let mut cli = Cli::command();
    // This adds the options of all commands to each command.
    cli.build();
    let Some(command) = argv::command(&args, &cli) else {
        return true;
    };
    let command = argv::inner_command(&args, command).unwrap_or(command);
    let mut options = command.get_arguments();
    options.any(|option| option.get_long() == Some(name))
}

/// Returns the message of an error, in which advice names options as on the command line.
fn worded(cause: &(dyn std::error::Error + 'static)) -> String {
    match cause.downcast_ref::<Error>() {
        Some(err) => err.worded(spelled),
        None => cause.to_string(),
    }
}

/// If `cause` is an I/O error whose path is `-`, returns a message such as `cannot read standard input`, because `-`
/// means standard input or output. Returns `None` for other errors.
fn standard_stream(cause: &(dyn std::error::Error + 'static)) -> Option<String> {
    match cause.downcast_ref()? {
        Error::Io { path, doing, .. } if path == Path::new("-") => Some(match *doing {
            "write" => "cannot write standard output".to_owned(),
            doing => format!("cannot {doing} standard input"),
        }),
        _ => None,
    }
}

/// Removes the error numbers of the operating system, such as ` (os error 28)`, from a message.
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

/// Returns the advice with which an error message ends, such as the name of an option that helps. Returns an empty
/// string if there is no advice.
fn advice(err: &anyhow::Error) -> String {
    if let Some(Error::Io { path, .. }) = err.downcast_ref()
        && path.to_string_lossy().contains('*')
        && let Ok(path) = path::absolute(path)
        && let (Ok(false), Some(folder)) = (path.try_exists(), path.parent())
    {
        return format!(": no file in {} matches this pattern", folder.display());
    }
    if let Some(directory) = err.downcast_ref().and_then(damaged_in_cache) {
        let directory = directory.display();
        return format!(": remove the directory {directory}, and repeat the command");
    }
    let advice = match err.downcast_ref().map(Error::kind) {
        Some(ErrorKind::Exists) => ": remove it, or replace it with --force",
        Some(ErrorKind::Rejected) => "; without --strict, polybook drops the game and continues",
        Some(ErrorKind::Foreign(ForeignFormat::Pgn)) => {
            "; polybook make-book makes a book from games"
        }
        Some(ErrorKind::Foreign(ForeignFormat::Sqlite)) => {
            "; polybook convert makes a book from an OOBS database"
        }
        _ => "",
    };
    advice.to_owned()
}

/// Returns the directory of the damaged index if the error is about an index in the user's cache. Returns `None` for
/// other errors, and for indexes outside the cache.
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

/// Returns `true` if the error says that another program, such as `head`, has stopped reading standard output. Returns
/// `false` if the error concerns another output.
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

/// Options of other programs that users may try in polybook. An element contains a command of polybook (or an empty
/// string for every command), the names of the option in other programs, and the corresponding option of polybook or
/// the beginning of another command.
const FOREIGN_OPTIONS: [(&str, &[&str], &str); 14] = [
    ("", &["-o", "--output"], "--out"),
    ("make-book", &["-o", "--output", "--out"], "--bin"),
    ("", &["--max-plies", "--depth"], "--max-ply"),
    ("evals", &["--depth"], "--nodes"),
    ("", &["--min-rating", "--elo"], "--min-elo"),
    ("", &["--max-rating"], "--max-elo"),
    ("", &["--by", "--order", "--sort-by"], "--sort"),
    ("openings", &["--me"], "--player"),
    (
        "extract",
        &["--moves", "--fen"],
        "polybook games --pgn --moves",
    ),
    (
        "engine",
        &["--engine", "--cmd"],
        "polybook engine book.bin -- stockfish",
    ),
    ("edit", &["--add", "--weight"], "--set"),
    ("edit", &["--delete"], "--remove"),
    ("serve", &["--browser"], "--open"),
    ("serve", &["--port"], "--listen 127.0.0.1:PORT"),
];

/// The maximum number of characters of a wrong value that a message quotes.
const MAX_QUOTED: usize = 200;

/// Returns the message of `err`, an error of clap, shortened to one line. The line ends with a reference to the
/// command's help, such as `see polybook diff --help`. `args` are the arguments of the program.
fn usage_line(err: &clap::Error, args: &[OsString]) -> String {
    let cli = Cli::command();
    let command = argv::command(args, &cli);
    let inner = command.and_then(|command| argv::inner_command(args, command));
    let wrong = |kind| match err.get(kind) {
        Some(ContextValue::String(wrong)) => Some(wrong.as_str()),
        _ => None,
    };
    let option =
        wrong(ContextKind::InvalidArg).filter(|_| err.kind() == ClapErrorKind::UnknownArgument);
    let said = if command.is_none()
        && let Some(file) = wrong(ContextKind::InvalidSubcommand)
        && (file.contains('.') || Path::new(file).is_file())
    {
        if Path::new(file).is_file() {
            return file_as_command(file);
        } else {
            format!("{file} is neither a command nor a file")
        }
    } else if let Some(option @ ("--index" | "--leveldb")) = option {
        format!("unexpected argument '{option}': name the source without an option")
    } else if err.kind() == ClapErrorKind::InvalidValue
        && wrong(ContextKind::InvalidArg) == Some("--explorer <DIR>")
    {
        EXPLORER_DIR.to_owned()
    } else if let Some((option, meant)) = option.zip(inner.or(command)).and_then(intended_option) {
        format!("unexpected argument '{option}' (did you mean '{meant}'?)")
    } else if err.kind() == ClapErrorKind::MissingSubcommand {
        "no command given".to_owned()
    } else {
        let mut text = err.render().to_string();
        if let Some(value) = wrong(ContextKind::InvalidValue)
            && let Some((end, _)) = value.char_indices().nth(MAX_QUOTED)
        {
            text = text.replace(value, &format!("{}...", &value[..end]));
        }
        folded(&text) + &needed_by(err, inner.or(command), args)
    };
    let said = argv::as_written(&said, args);
    let names = command.iter().chain(&inner);
    let names: String = names
        .map(|command| format!(" {}", command.get_name()))
        .collect();
    format!("{said}; see polybook{names} --help")
}

/// Returns the end of the error message about missing arguments. If `command` does not always require these arguments,
/// it names the option in `args` that does. Returns an empty string for other errors.
fn needed_by(err: &clap::Error, command: Option<&Command>, args: &[OsString]) -> String {
    let Some(ContextValue::Strings(missing)) = err.get(ContextKind::InvalidArg) else {
        return String::new();
    };
    let is_always_needed = |name: &String| {
        let mut args = command.into_iter().flat_map(Command::get_arguments);
        let has_name = |long: &str| name.split(' ').next() == Some(&format!("--{long}"));
        let is_operand = name.starts_with('<') && !name.starts_with("<--");
        is_operand || args.any(|arg| arg.is_required_set() && arg.get_long().is_some_and(has_name))
    };
    match err.kind() {
        ClapErrorKind::MissingRequiredArgument if !missing.iter().any(is_always_needed) => {
            let option = command.and_then(|command| option_that_needs(command, args));
            let option = option.unwrap_or_else(|| "another option".to_owned());
            format!(" (needed by {option})")
        }
        _ => String::new(),
    }
}

/// Finds the option in `args`, the arguments of `command`, without which no required argument would be missing. Returns
/// `None` if there is no such option.
fn option_that_needs(command: &Command, args: &[OsString]) -> Option<String> {
    args.iter().enumerate().find_map(|(at, arg)| {
        let name = arg.to_str()?.split('=').next()?;
        let long = name.strip_prefix("--")?;
        let option = command
            .get_arguments()
            .find(|option| option.get_long() == Some(long))?;
        let has_value = option.get_action().takes_values() && name.len() == arg.len();
        let mut others = args.to_vec();
        others.drain(at..(at + 1 + usize::from(has_value)).min(args.len()));
        let is_missing = |err: clap::Error| err.kind() == ClapErrorKind::MissingRequiredArgument;
        (!parsed(&others).is_err_and(is_missing)).then(|| name.to_owned())
    })
}

/// Returns the error message for a command line that names a file, `file`, where the name of a command is expected. The
/// message suggests commands that accept this file.
fn file_as_command(file: &str) -> String {
    let name = if file.contains(' ') {
        format!("\"{file}\"")
    } else {
        file.to_owned()
    };
    if file.ends_with(".bin") {
        format!("{name} is a file: to show the moves of a book, run polybook show {name}")
    } else {
        format!(
            "{name} is a file: to show its games, run polybook serve {name} --open; to make a book, run polybook \
             make-book {name}"
        )
    }
}

/// Finds the option of polybook that the user probably meant by `option`, an option of another program that does not
/// exist in polybook. Returns `option` and the name of the option in polybook. Returns `None` if [`FOREIGN_OPTIONS`]
/// does not contain `option` for `command`.
fn intended_option<'a>((option, command): (&'a str, &Command)) -> Option<(&'a str, &'static str)> {
    let has = |long: &str| {
        let mut options = command.get_arguments();
        options.any(|arg| arg.get_long() == Some(long))
    };
    let is_meant = |(of, written, meant): &(&str, &[&str], &str)| {
        let long = meant.trim_start_matches("--").split(' ').next();
        written.contains(&option)
            && (of.is_empty() || *of == command.get_name())
            && (long.is_some_and(has) || meant.starts_with("polybook "))
    };
    let (_, _, meant) = FOREIGN_OPTIONS.into_iter().find(is_meant)?;
    Some((option, meant))
}

/// Joins the paragraphs of clap's error message into one line, which contains the error and then the tips. The usage
/// after the tips is omitted.
fn folded(text: &str) -> String {
    let (mut wrong, mut tips) = (String::new(), String::new());
    for line in text.lines().map(str::trim) {
        if line.starts_with("Usage:") || line.starts_with("For more information") {
            break;
        }
        if let Some(tip) = line.strip_prefix("tip: ") {
            tips.push_str(&folded_tip(tip));
        } else if !line.is_empty() {
            let line = line.strip_prefix("error: ").unwrap_or(line);
            let separator = match wrong.as_str() {
                "" => "",
                wrong if wrong.ends_with(':') => " ",
                _ if line.starts_with('[') => " ",
                _ => ", ",
            };
            wrong.push_str(separator);
            wrong.push_str(line);
        }
    }
    let wrong = plain(&wrong);
    let wrong = with_range(&wrong)
        .or_else(|| with_alternatives(&wrong))
        .or_else(|| without_repetition(&wrong))
        .unwrap_or(wrong);
    wrong + &tips
}

/// If `text` is clap's message about a number outside of a range, such as `invalid value '9' for '--jobs <N>': 9 is not
/// in 1..=8`, returns the message with the advice to use a number in the range. Otherwise returns `None`.
fn with_range(text: &str) -> Option<String> {
    let (start, range) = text.split_once(" is not in ")?;
    let (start, number) = start.rsplit_once(": ")?;
    let (first, last) = range.split_once("..=")?;
    if number == "0" && first == "1" && last == MAX_COUNT.to_string() {
        return Some(format!("{start}: use 1 or more"));
    }
    Some(format!("{start}: use a number from {first} to {last}"))
}

/// If `text` is clap's message that one of several options is missing, such as `missing: <--white <NAME>|--black
/// <NAME>>`, returns the message with a list that people can read. Otherwise returns `None`.
fn with_alternatives(text: &str) -> Option<String> {
    let group = text.strip_prefix("missing: <--")?.strip_suffix('>')?;
    let (others, last) = group.rsplit_once('|')?;
    let others = others.replace('|', ", ");
    Some(format!("missing: --{others} or {last}"))
}

/// If `text` is the message about an invalid value and quotes the value twice, returns the message without the second
/// quotation. Otherwise returns `None`.
fn without_repetition(text: &str) -> Option<String> {
    let (start, quotation) = text.split_once("': cannot read \"")?;
    let (_, advice) = quotation.split_once("\": ")?;
    Some(format!("{start}': {advice}"))
}

fn folded_tip(tip: &str) -> String {
    let similar = tip
        .split_once(" exists: ")
        .or_else(|| tip.split_once(" exist: "));
    match similar {
        // clap's tip to pass an unknown option as a value does not help.
        _ if tip.contains(" as a value, use ") => String::new(),
        // clap lists the most similar name last.
        Some((what, names)) if what.contains("similar") => {
            let name = names.rsplit(", ").next().unwrap_or(names);
            format!(" (did you mean {name}?)")
        }
        _ => format!("; {tip}"),
    }
}

/// Replaces technical phrases in error messages of Rust and clap with simpler ones. For example, `invalid digit found
/// in string` becomes `use a whole number, 0 or larger`.
fn plain(text: &str) -> String {
    const WORDS: [(&str, &str); 9] = [
        ("' found", "'"),
        (
            "the following required arguments were not provided: ",
            "missing: ",
        ),
        (
            "invalid digit found in string",
            "use a whole number, 0 or larger",
        ),
        (
            "cannot parse integer from empty string",
            "use a whole number",
        ),
        (
            "number too large to fit in target type",
            "the number is too large",
        ),
        ("invalid float literal", "use a number"),
        ("number would be zero for non-zero type", "use 1 or more"),
        (
            "invalid socket address syntax",
            "use ADDRESS:PORT, such as 127.0.0.1:8040",
        ),
        (" but none was supplied", ", and none is given"),
    ];
    WORDS
        .iter()
        .fold(text.to_owned(), |text, (old, new)| text.replace(old, new))
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;
    use clap::FromArgMatches;

    use super::*;
    use crate::cli::parsed;

    #[track_caller]
    fn message_of(command_line: &str) -> String {
        let args: Vec<OsString> = command_line.split(' ').map(OsString::from).collect();
        let err = parsed(&args)
            .and_then(|matches| Cli::from_arg_matches(&matches).map(drop))
            .unwrap_err();
        usage_line(&err, &args)
    }

    #[test]
    fn one_line_with_the_tip() {
        assert_eq!(
            message_of("polybook make-book --maxply 3"),
            "unexpected argument '--maxply' (did you mean '--max-ply'?); see polybook make-book --help"
        );
        assert_eq!(
            message_of("polybook make-book -maxply 3"),
            "unexpected argument '-maxply' (did you mean '--max-ply'?); see polybook make-book --help"
        );
        assert_eq!(
            message_of("polybook make-book --max-ply -1"),
            "invalid value '-1' for '--max-ply <N>': use a whole number, 0 or larger; see polybook make-book --help"
        );
        assert_eq!(
            message_of("polybook make-book --scale x"),
            "invalid value 'x' for '--scale <SCALE>' [possible values: global, position]; see polybook make-book --help"
        );
        assert_eq!(
            message_of("polybook make-book --threads 0"),
            "invalid value '0' for '--threads <N>': use a number from 1 to 512; see polybook make-book --help"
        );
        assert_eq!(
            message_of("polybook suite-report a.pgn b.pgn --min-pairs 0"),
            "invalid value '0' for '--min-pairs <N>': use 1 or more; see polybook suite-report --help"
        );
        assert_eq!(
            message_of("polybook make-book --since 24"),
            "invalid value '24' for '--since <DATE>': use a date of the form YYYY, YYYY.MM or YYYY.MM.DD, with four \
             digits for the year; see polybook make-book --help"
        );
        assert_eq!(
            message_of("polybook make-book --exact"),
            "missing: --player <NAME>, --opponent <NAME>, --white <NAME>, --black <NAME> or --event <NAME> (needed by --exact); see polybook \
             make-book --help"
        );
        assert_eq!(
            message_of("polybook suite-report a.pgn b.pgn --drop-one-sided"),
            "missing: --out <FILE> (needed by --drop-one-sided); see polybook suite-report --help"
        );
        assert_eq!(
            message_of("polybook suite-report a.epd b.pgn --min-pairs 2 --out=c.epd"),
            "missing: --drop-one-sided (needed by --out); see polybook suite-report --help"
        );
        assert_eq!(
            message_of("polybook engine a.bin --engine stockfish"),
            "unexpected argument '--engine' (did you mean 'polybook engine book.bin -- stockfish'?); see polybook engine --help"
        );
        assert_eq!(
            message_of("polybook gone.pgn"),
            "gone.pgn is neither a command nor a file; see polybook --help"
        );
        assert_eq!(
            message_of("polybook make-boko"),
            "unrecognized subcommand 'make-boko' (did you mean 'make-book'?); see polybook --help"
        );
        assert_eq!(
            message_of("polybook make-book a.pgn --leveldb a.idx --explorer"),
            format!("{EXPLORER_DIR}; see polybook make-book --help")
        );
        assert_eq!(
            message_of("polybook games"),
            "missing: <SOURCE>...; see polybook games --help"
        );
        assert_eq!(
            message_of("polybook -q"),
            "no command given; see polybook --help"
        );
        assert_eq!(
            message_of("polybook repertoire build x.pgn --color black"),
            "missing: --out <FILE>; see polybook repertoire build --help"
        );
        assert_eq!(
            message_of("polybook repertoire -q gaps x.pgn --depth 3"),
            "unexpected argument '--depth' (did you mean '--max-ply'?); see polybook repertoire gaps --help"
        );
        assert_eq!(
            message_of(
                "polybook evals --out a.evals --engine stockfish --positions a.epd --depth 20"
            ),
            "unexpected argument '--depth' (did you mean '--nodes'?); see polybook evals --help"
        );
        assert_eq!(
            message_of("polybook openings a.idx --me tal"),
            "unexpected argument '--me' (did you mean '--player'?); see polybook openings --help"
        );
        assert_eq!(
            message_of("polybook extract a.idx --moves e4"),
            "unexpected argument '--moves' (did you mean 'polybook games --pgn --moves'?); see polybook extract --help"
        );
        assert_eq!(
            message_of("polybook repertoire x.pgn"),
            "unrecognized subcommand 'x.pgn'; see polybook repertoire --help"
        );
        assert!(!message_of("polybook show a.bin --fen a --moves").contains('\n'));
    }

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

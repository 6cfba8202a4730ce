//! Turns the errors of clap, which are paragraphs, into one line each. The line keeps clap's tips.

use std::{ffi::OsString, path::Path};

use clap::{
    Arg, Command, CommandFactory,
    error::{ContextKind, ContextValue, ErrorKind},
};
use polybook::index::Index;

use super::{Cli, input::may_have_games, legacy};

/// An error in the use of the command line that clap cannot detect. Contains the message.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

impl Usage {
    /// Returns an error if `option` contains the name of an option, which the user has given. The error message begins
    /// with this name, followed by `reason`.
    pub fn refuse(option: Option<&str>, reason: &str) -> Result<(), Usage> {
        match option {
            Some(option) => Err(Usage(format!("{option} {reason}"))),
            None => Ok(()),
        }
    }
}

/// Names that other programs use for options of polybook. Each element contains the command, which is empty for all
/// commands, the names in other programs, and polybook's name.
const MEANT: [(&str, &[&str], &str); 8] = [
    ("", &["-o", "--output"], "--out"),
    ("make-book", &["-o", "--output", "--out"], "--bin"),
    ("", &["--max-plies", "--depth"], "--max-ply"),
    ("", &["--min-rating", "--elo"], "--min-elo"),
    ("", &["--max-rating"], "--max-elo"),
    ("", &["--by", "--order", "--sort-by"], "--sort"),
    ("serve", &["--browser"], "--open"),
    ("serve", &["--port"], "--listen 127.0.0.1:PORT"),
];

/// The error message for `--explorer` without a directory, which older versions allowed.
pub const EXPLORER_DIR: &str = "--explorer needs a directory of its own: --explorer DIR writes the explorer's index, and --leveldb DIR \
     the one for front-ends";

/// Converts an error of clap to one line, which ends with a hint at the help of the command. `args` are the arguments
/// of the program.
pub fn line(err: &clap::Error, args: &[OsString]) -> String {
    let cli = Cli::command();
    let command = legacy::command(args, &cli);
    let wrong = |kind| match err.get(kind) {
        Some(ContextValue::String(wrong)) => Some(wrong.as_str()),
        _ => None,
    };
    let option =
        wrong(ContextKind::InvalidArg).filter(|_| err.kind() == ErrorKind::UnknownArgument);
    let said = if command.is_none()
        && let Some(file) = wrong(ContextKind::InvalidSubcommand)
        && Path::new(file).is_file()
    {
        return a_file(file);
    } else if let Some(problem) = command.and_then(|command| not_an_index(args, command)) {
        problem
    } else if err.kind() == ErrorKind::InvalidValue
        && wrong(ContextKind::InvalidArg) == Some("--explorer <DIR>")
    {
        EXPLORER_DIR.to_owned()
    } else if let Some((option, meant)) = option.zip(command).and_then(meant) {
        format!("unexpected argument '{option}' (did you mean '{meant}'?)")
    } else if err.kind() == ErrorKind::MissingSubcommand {
        "no command given".to_owned()
    } else {
        folded(&err.render().to_string())
    };
    let said = legacy::as_written(&said, args);
    match command {
        Some(command) => format!("{said}; see polybook {} --help", command.get_name()),
        None => format!("{said}; see polybook --help"),
    }
}

/// Returns the error message for a file name that is given instead of a command.
fn a_file(file: &str) -> String {
    let name = match file.contains(' ') {
        true => format!("\"{file}\""),
        false => file.to_owned(),
    };
    match file.ends_with(".bin") {
        true => format!("{name} is a file: polybook show {name} shows what a book plays"),
        false => format!(
            "{name} is a file: polybook serve {name} --open shows its games, polybook make-book {name} makes a book"
        ),
    }
}

/// Returns the error message if a command needs an index, no option names one, and its first argument is a file.
/// Otherwise returns `None`.
fn not_an_index(args: &[OsString], command: &Command) -> Option<String> {
    let needs_index = |arg: &Arg| arg.get_long() == Some("index") && arg.is_required_set();
    let is_given = |arg: &OsString| {
        let arg = arg.to_string_lossy();
        arg.starts_with("--index") || arg.starts_with("--leveldb")
    };
    if !command.get_arguments().any(needs_index) || args.iter().any(is_given) {
        return None;
    }
    let mut args = args.iter().skip_while(|arg| **arg != *command.get_name());
    let file = Path::new(args.nth(1)?);
    if may_have_games(file).is_ok_and(|may| may) {
        let name = file.display();
        let command = command.get_name();
        return Some(format!(
            "{name} is a file: name it after --index, as in polybook {command} --index {name}"
        ));
    }
    let err = file.is_file().then(|| Index::open(file))?.err()?;
    Some(err.to_string())
}

/// Finds the option of polybook for an option that the user knows from another program, such as polyglot. `option` is
/// the unknown option that the user wrote, and `command` is the command. Returns `option` and the option of `command`
/// that means the same, or `None` if the table [`MEANT`] contains no such option.
fn meant<'a>((option, command): (&'a str, &Command)) -> Option<(&'a str, &'static str)> {
    let has = |long: &str| {
        let mut options = command.get_arguments();
        options.any(|arg| arg.get_long() == Some(long))
    };
    let is_meant = |(of, written, meant): &(&str, &[&str], &str)| {
        let long = meant.trim_start_matches("--").split(' ').next();
        written.contains(&option)
            && (of.is_empty() || *of == command.get_name())
            && long.is_some_and(has)
    };
    let (_, _, meant) = MEANT.into_iter().find(is_meant)?;
    Some((option, meant))
}

/// Returns the paragraphs of clap's error message, up to the usage, as one line: first the error, then the tips.
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
    plain(&wrong) + &tips
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

/// Rewrites the messages of Rust's and clap's parsers so that they say which values are allowed. Returns the new text.
fn plain(text: &str) -> String {
    const WORDS: [(&str, &str); 9] = [
        ("' found", "'"),
        (
            "the following required arguments were not provided: ",
            "missing: ",
        ),
        (
            "invalid digit found in string",
            "write a whole number, 0 or larger",
        ),
        (
            "cannot parse integer from empty string",
            "write a whole number",
        ),
        (
            "number too large to fit in target type",
            "the number is too large",
        ),
        ("invalid float literal", "write a number"),
        ("0 is not in 1..18446744073709551615", "write 1 or more"),
        (
            "invalid socket address syntax",
            "write ADDRESS:PORT, such as 127.0.0.1:8040",
        ),
        (" but none was supplied", ", and none is given"),
    ];
    WORDS
        .iter()
        .fold(text.to_owned(), |text, (old, new)| text.replace(old, new))
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches;

    use super::*;
    use crate::cli::parsed;

    #[track_caller]
    fn said(command_line: &str) -> String {
        let args: Vec<OsString> = command_line.split(' ').map(OsString::from).collect();
        let err = parsed(&args)
            .and_then(|matches| Cli::from_arg_matches(&matches).map(drop))
            .unwrap_err();
        line(&err, &args)
    }

    #[test]
    fn one_line_with_the_tip() {
        assert_eq!(
            said("polybook make-book --maxply 3"),
            "unexpected argument '--maxply' (did you mean '--max-ply'?); see polybook make-book --help"
        );
        assert_eq!(
            said("polybook make-book -maxply 3"),
            "unexpected argument '-maxply' (did you mean '--max-ply'?); see polybook make-book --help"
        );
        assert_eq!(
            said("polybook make-book --max-ply -1"),
            "invalid value '-1' for '--max-ply <N>': write a whole number, 0 or larger; see polybook make-book --help"
        );
        assert_eq!(
            said("polybook make-book --scale x"),
            "invalid value 'x' for '--scale <SCALE>' [possible values: global, position]; see polybook make-book --help"
        );
        assert_eq!(
            said("polybook make-boko"),
            "unrecognized subcommand 'make-boko' (did you mean 'make-book'?); see polybook --help"
        );
        assert_eq!(
            said("polybook make-book a.pgn --leveldb a.idx --explorer"),
            format!("{EXPLORER_DIR}; see polybook make-book --help")
        );
        assert_eq!(
            said("polybook game"),
            "missing: --index <INDEX>, <GAME>...; see polybook game --help"
        );
        assert_eq!(said("polybook -q"), "no command given; see polybook --help");
        assert!(!said("polybook show a.bin --fen a --moves").contains('\n'));
    }
}

//! Wrong command lines in one line each. clap spreads what it has to say over a paragraph; its tips are kept.

use std::ffi::OsString;

use clap::{CommandFactory, error::ErrorKind};

use super::{Cli, legacy};

/// The command line was wrong in a way that only the command itself could see.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

impl Usage {
    /// Refuses an option that was given, for a reason that follows its name.
    pub fn refuse(option: Option<&str>, reason: &str) -> Result<(), Usage> {
        match option {
            Some(option) => Err(Usage(format!("{option} {reason}"))),
            None => Ok(()),
        }
    }
}

/// The error of a command line and where to read about it.
pub fn line(err: &clap::Error, args: &[OsString]) -> String {
    let said = match err.kind() {
        ErrorKind::MissingSubcommand => "no command given".to_owned(),
        _ => folded(&err.render().to_string()),
    };
    let said = legacy::as_written(&said, args);
    let cli = Cli::command();
    match legacy::command(args, &cli) {
        Some(command) => format!("{said}; see polybook {} --help", command.get_name()),
        None => format!("{said}; see polybook --help"),
    }
}

/// The paragraphs of clap's text up to the usage: the error, then tips.
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
        // How to pass what looks like an option as a file is no help with a wrong option.
        _ if tip.contains(" as a value, use ") => String::new(),
        // The most similar one comes last.
        Some((what, names)) if what.contains("similar") => {
            let name = names.rsplit(", ").next().unwrap_or(names);
            format!(" (did you mean {name}?)")
        }
        _ => format!("; {tip}"),
    }
}

/// The reasons that Rust's and clap's parsers give, in words that say what to write.
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
            said("polybook game"),
            "missing: --leveldb <DIR>, <ID>...; see polybook game --help"
        );
        assert_eq!(said("polybook -q"), "no command given; see polybook --help");
        assert!(!said("polybook show a.bin --fen a --moves").contains('\n'));
    }
}

//! The spellings of twenty years of scripts: `-pgn FILE` for `--pgn FILE`.
//!
//! Every long option of the commands that polyglot has is understood with a single dash.

use std::ffi::{OsStr, OsString};

use clap::{Arg, Command};

/// The commands that polyglot has.
pub const POLYGLOT_COMMANDS: [&str; 4] = ["make-book", "merge-book", "info-book", "dump-book"];

/// Short options that may be written together.
const SHORT_BUNDLES: [&str; 2] = ["-qh", "-hq"];

/// The prefix of the old spelling of an option in the definitions that completions are made from.
pub const OLD_SPELLING: &str = "old-spelling-";

/// A completion script in which the old spellings have one dash.
pub fn single_dashes(script: &str) -> String {
    script
        .replace(&format!("--{OLD_SPELLING}"), "-")
        // Fish has a flag for options of one dash and several letters.
        .replace(&format!("-l {OLD_SPELLING}"), "-o ")
}

/// The arguments with a second dash where polyglot has one. Unknown options of several letters get a second dash
/// too, so that clap can suggest a long option.
pub fn modernized(args: Vec<OsString>, cli: &Command) -> Vec<OsString> {
    let command = command(&args, cli);
    let command = command.filter(|command| POLYGLOT_COMMANDS.contains(&command.get_name()));
    let Some(command) = command else {
        return args;
    };

    let mut modern = Vec::with_capacity(args.len());
    let mut is_value = false;
    let mut options_ended = false;
    for arg in args {
        if is_value || options_ended {
            is_value = false;
            modern.push(arg);
            continue;
        }
        options_ended = arg == "--";
        let arg = with_two_dashes(arg);
        // The value of an option may look like an option: `--comment -pgn`.
        is_value = long_name(&arg)
            .and_then(|name| option(command, name))
            .is_some_and(|option| option.get_action().takes_values());
        modern.push(arg);
    }
    modern
}

/// The command that the arguments name.
pub fn command<'a>(args: &[OsString], cli: &'a Command) -> Option<&'a Command> {
    let mut words = args.iter().skip(1).filter_map(|arg| arg.to_str());
    cli.find_subcommand(words.find(|word| !word.starts_with('-'))?)
}

/// `--name` for `-name`, whatever bytes a value after `=` has. `-q` and `-1` stay.
fn with_two_dashes(arg: OsString) -> OsString {
    let is_old = match arg.as_encoded_bytes() {
        [b'-', first, second, ..] => first.is_ascii_alphabetic() && *second != b'=',
        _ => false,
    };
    if !is_old || SHORT_BUNDLES.iter().any(|bundle| arg == *bundle) {
        return arg;
    }
    let mut spelled = OsString::from("-");
    spelled.push(arg);
    spelled
}

/// The name of a long option that has its value, if any, in the next argument.
fn long_name(arg: &OsStr) -> Option<&str> {
    let name = arg.to_str()?.strip_prefix("--")?;
    (!name.is_empty() && !name.contains('=')).then_some(name)
}

/// A message about modernized arguments, with the options as the user wrote them.
pub fn as_written(message: &str, args: &[OsString]) -> String {
    args.iter()
        .filter_map(|arg| arg.to_str()?.split('=').next())
        .filter(|arg| arg.len() > 2 && arg.starts_with('-') && !arg.starts_with("--"))
        .fold(message.to_owned(), |message, arg| {
            message.replacen(
                &format!("argument '-{arg}'"),
                &format!("argument '{arg}'"),
                1,
            )
        })
}

/// The option of a command that a name means.
fn option<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    command.get_arguments().find(|arg| {
        arg.get_long() == Some(name)
            || arg
                .get_all_aliases()
                .is_some_and(|aliases| aliases.contains(&name))
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[track_caller]
    fn assert_modern(old: &str, new: &str) {
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        assert_eq!(modernized(words(old), &Cli::command()), words(new));
    }

    #[test]
    fn polyglots_options() {
        assert_modern(
            "polybook make-book -pgn a.pgn -bin b.bin -max-ply 30 -min-game 2 -only-white -uniform",
            "polybook make-book --pgn a.pgn --bin b.bin --max-ply 30 --min-game 2 --only-white --uniform",
        );
        assert_modern(
            "polybook make-book -bin=x -q",
            "polybook make-book --bin=x -q",
        );
        assert_modern(
            "polybook -q make-book -bin x",
            "polybook -q make-book --bin x",
        );
    }

    #[test]
    fn what_is_no_option_is_named_as_it_was_written() {
        assert_modern(
            "polybook make-book -maxply 3",
            "polybook make-book --maxply 3",
        );
        let args = ["polybook", "make-book", "-maxply=3"].map(OsString::from);
        assert_eq!(
            as_written("unexpected argument '--maxply'", &args),
            "unexpected argument '-maxply'"
        );
    }

    #[cfg(unix)]
    #[test]
    fn values_of_any_bytes() {
        use std::os::unix::ffi::OsStrExt;
        let args = vec![
            OsString::from("polybook"),
            OsString::from("make-book"),
            OsStr::from_bytes(b"-bin=\xff.bin").to_owned(),
        ];
        let modern = modernized(args, &Cli::command());
        assert_eq!(modern[2].as_encoded_bytes(), b"--bin=\xff.bin");
    }

    #[test]
    fn values_and_what_is_not_known_stay() {
        assert_modern(
            "polybook make-book --comment -pgn",
            "polybook make-book --comment -pgn",
        );
        assert_modern(
            "polybook make-book - -1 -q --time-control -60 -- -pgn",
            "polybook make-book - -1 -q --time-control -60 -- -pgn",
        );
        assert_modern("polybook key -fen x", "polybook key -fen x");
        assert_modern("polybook", "polybook");
    }
}

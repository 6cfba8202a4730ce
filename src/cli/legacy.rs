//! The spellings of twenty years of scripts: `-pgn FILE` for `--pgn FILE`.
//!
//! Every long option of the commands that polyglot has is understood with a single dash.

use std::ffi::OsString;

use clap::{Arg, ArgAction, Command};

/// The commands that polyglot has.
pub const POLYGLOT_COMMANDS: [&str; 4] = ["make-book", "merge-book", "info-book", "dump-book"];

/// What stands before the old spelling of an option in the definitions that completions are made from.
pub const OLD_SPELLING: &str = "old-spelling-";

/// A completion script in which the old spellings have one dash.
pub fn single_dashes(script: &str) -> String {
    script
        .replace(&format!("--{OLD_SPELLING}"), "-")
        // Fish has a word for options of one dash and several letters.
        .replace(&format!("-l {OLD_SPELLING}"), "-o ")
}

/// The arguments with a second dash where polyglot knew one.
pub fn modernized(args: Vec<OsString>, cli: &Command) -> Vec<OsString> {
    let command = args
        .iter()
        .skip(1)
        .filter_map(|arg| arg.to_str())
        .find(|arg| !arg.starts_with('-'))
        .filter(|name| POLYGLOT_COMMANDS.contains(name))
        .and_then(|name| cli.find_subcommand(name));
    let Some(command) = command else {
        return args;
    };

    let mut modern = Vec::with_capacity(args.len());
    let mut is_value = false;
    let mut options_ended = false;
    for arg in args {
        let text = arg.to_str().unwrap_or_default();
        if is_value || options_ended {
            is_value = false;
            modern.push(arg);
            continue;
        }
        options_ended = text == "--";
        let spelled = match text.strip_prefix('-') {
            Some(name) if name.len() > 1 && !name.starts_with('-') => {
                option(command, name).map(|_| OsString::from(format!("--{name}")))
            }
            _ => None,
        };
        let arg = spelled.unwrap_or(arg);
        // The value of an option may look like an option: `--comment -pgn`.
        is_value = arg
            .to_str()
            .and_then(|text| text.strip_prefix("--"))
            .filter(|name| !name.contains('='))
            .and_then(|name| option(command, name))
            .is_some_and(takes_value);
        modern.push(arg);
    }
    modern
}

/// The option of a command that a name, with a value behind it or not, means.
fn option<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    let name = name.split('=').next()?;
    command.get_arguments().find(|arg| {
        arg.get_long() == Some(name)
            || arg
                .get_all_aliases()
                .is_some_and(|aliases| aliases.contains(&name))
    })
}

fn takes_value(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Set | ArgAction::Append)
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
    fn values_and_what_is_not_known_stay() {
        assert_modern(
            "polybook make-book --comment -pgn",
            "polybook make-book --comment -pgn",
        );
        assert_modern(
            "polybook make-book - -foo -- -pgn",
            "polybook make-book - -foo -- -pgn",
        );
        assert_modern("polybook key -fen x", "polybook key -fen x");
        assert_modern("polybook", "polybook");
    }
}

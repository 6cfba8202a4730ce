//! Accepts old spellings of the command line: polyglot's options with a single dash, such as `-pgn FILE` for `--pgn
//! FILE`, so that scripts written for polyglot continue to work, and the old names of commands that chess front-ends
//! use.
//!
//! Only the commands that exist in polyglot accept long options with a single dash.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use clap::{Arg, Command};
use shakmaty::Color;

/// The commands that exist in both polybook and polyglot. They accept long options with a single dash.
pub const POLYGLOT_COMMANDS: [&str; 4] = ["make-book", "merge-book", "info-book", "dump-book"];

/// The arguments that combine the short options `-q` and `-h`. They look like polyglot's long options, because they
/// have a single dash and several letters.
const SHORT_BUNDLES: [&str; 2] = ["-qh", "-hq"];

/// The prefix for the names of options in polyglot's spelling, such as `-pgn`, while a completion script is generated.
/// It is needed because clap cannot define long options with a single dash.
pub const OLD_SPELLING: &str = "old-spelling-";

/// Gives options in polyglot's spelling a single dash in a completion script, by removing the prefix [`OLD_SPELLING`]
/// from their names.
pub fn single_dashes(script: &str) -> String {
    script
        .replace(&format!("--{OLD_SPELLING}"), "-")
        // In fish, the flag -o defines an option with a single dash and several letters.
        .replace(&format!("-l {OLD_SPELLING}"), "-o ")
}

/// Parses the path of a file and a side, in the form `FILE:white` or `FILE:black`. Returns an error message
/// for any other form.
pub fn with_side(text: &str) -> Result<(PathBuf, Color), &'static str> {
    let of_side = text.rsplit_once(':');
    let of_side = of_side
        .and_then(|(path, color)| Some((path.into(), color.to_ascii_lowercase().parse().ok()?)));
    of_side.ok_or("give the side after the file, as in my.pgn:white")
}

/// Adds a second dash to each long option with a single dash, if the command also exists in polyglot. Returns the
/// changed arguments. `cli` is the definition of the command line.
///
/// Unknown options of several letters also get a second dash, so that clap can suggest a similar long option.
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
        // The value of an option can look like an option, as in `--comment -pgn`.
        is_value = long_name(&arg)
            .and_then(|name| option(command, name))
            .is_some_and(|option| option.get_action().takes_values());
        modern.push(arg);
    }
    modern
}

/// The old and the new names of commands that chess front-ends call by their old names.
const RENAMED: [(&str, &str); 3] = [("games", "games"), ("game", "games"), ("moves", "show")];

/// Rewrites a command in its old form to its new form: `games --leveldb DIR` becomes `games DIR`, `moves --leveldb DIR`
/// becomes `show DIR`, and `game --leveldb DIR 7` becomes `games DIR --pgn --id 7`. Returns other arguments unchanged.
/// [`RENAMED`] lists the commands.
pub fn renamed(args: Vec<OsString>) -> Vec<OsString> {
    let is_word = |arg: &OsString| !arg.to_string_lossy().starts_with('-');
    let at = args.iter().skip(1).position(is_word).map(|at| at + 1);
    let names = RENAMED
        .iter()
        .find(|(old, _)| at.is_some_and(|at| args[at] == *old));
    let (Some(at), Some((old, new))) = (at, names) else {
        return args;
    };
    let (mut sources, mut rest) = (Vec::new(), Vec::new());
    let mut words = args[at + 1..].iter();
    while let Some(arg) = words.next() {
        let text = arg.to_str().unwrap_or_default();
        if text == "--leveldb" {
            sources.extend(words.next().cloned());
        } else if let Some(source) = text.strip_prefix("--leveldb=") {
            sources.push(source.into());
        } else if *old == "game" && is_word(arg) {
            rest.extend(["--id".into(), arg.clone()]);
        } else {
            rest.push(arg.clone());
        }
    }
    let texts = (*old == "game").then(|| "--pgn".into());
    let mut renamed = args[..at].to_vec();
    renamed.push(new.into());
    renamed.extend(sources.into_iter().chain(texts).chain(rest));
    renamed
}

/// The commands that take a repertoire with a side. An element contains the name of the command, and the name of the
/// subcommand if there is one.
const SIDED: [&[&str]; 5] = [
    &["tree"],
    &["repertoire", "check"],
    &["repertoire", "gaps"],
    &["repertoire", "practise"],
    &["repertoire", "cards"],
];

/// Rewrites a side that follows the path of a repertoire as an option: in the commands that have the option `--color`,
/// `FILE:white` becomes `FILE --color=white`. Returns the arguments unchanged if they contain `--color`, or if a file
/// with the name `FILE:white` exists.
pub fn with_color_of_source(args: Vec<OsString>) -> Vec<OsString> {
    let is_sided = |command: &&[&str]| words(&args).take(command.len()).eq(command.iter().copied());
    let has_color = |arg: &OsString| {
        let arg = arg.to_string_lossy();
        ["--color", "--colour"].contains(&arg.split('=').next().unwrap_or_default())
    };
    let side = |arg: &OsString| {
        let (path, color) = with_side(arg.to_str()?).ok()?;
        (!Path::new(arg).exists()).then_some((path, color))
    };
    let found = args.iter().enumerate().skip(2);
    let found = found.filter_map(|(at, arg)| Some((at, side(arg)?))).next();
    let Some((at, (path, color))) = found else {
        return args;
    };
    if !SIDED.iter().any(is_sided) || args.iter().any(has_color) {
        return args;
    }
    let mut rewritten = args;
    rewritten[at] = path.into();
    rewritten.insert(at + 1, format!("--color={color}").into());
    rewritten
}

/// Finds the command that the user chose, such as `repertoire` in `polybook repertoire build`, and returns its
/// definition. `args` contains the arguments of the program, and `cli` is the definition of the whole command line.
/// Returns `None` if the arguments name no command.
pub fn command<'a>(args: &[OsString], cli: &'a Command) -> Option<&'a Command> {
    cli.find_subcommand(words(args).next()?)
}

/// Finds the subcommand of `command` that the user chose, such as `build` in `polybook repertoire build`, and returns
/// its definition. `args` contains the arguments of the program. Returns `None` if the arguments name no subcommand.
pub fn inner_command<'a>(args: &[OsString], command: &'a Command) -> Option<&'a Command> {
    command.find_subcommand(words(args).nth(1)?)
}

/// Returns an iterator over the arguments of the program that are not options. The first one names the command.
fn words(args: &[OsString]) -> impl Iterator<Item = &str> {
    let words = args.iter().skip(1).filter_map(|arg| arg.to_str());
    words.filter(|word| !word.starts_with('-'))
}

/// Rewrites the argument `arg` as `--name` if it is a long option with a single dash, `-name`. Returns other arguments
/// unchanged, such as the short option `-q` and the number `-1`. A value after `=` need not be UTF-8.
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

/// Returns the name of a long option without its dashes. Returns `None` if the argument is not a long option, or if it
/// contains a value after `=`.
fn long_name(arg: &OsStr) -> Option<&str> {
    let name = arg.to_str()?.strip_prefix("--")?;
    (!name.is_empty() && !name.contains('=')).then_some(name)
}

/// Gives the options in an error message the spelling that the user chose, such as `-pgn` instead of `--pgn`. `args`
/// are the arguments of the program.
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

/// Returns the option of `command` that has `name` as its name or alias, or `None` if there is no such option.
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

    #[test]
    fn the_side_of_a_repertoire_becomes_an_option() {
        let rewritten = |line: &str| {
            let args = line.split(' ').map(OsString::from).collect();
            let args = with_color_of_source(args).join(OsStr::new(" "));
            args.into_string().unwrap()
        };
        for (line, expected) in [
            (
                "polybook tree a.pgn:white e4",
                "polybook tree a.pgn --color=white e4",
            ),
            (
                "polybook -q tree C:\\a.pgn:Black",
                "polybook -q tree C:\\a.pgn --color=black",
            ),
            (
                "polybook repertoire check a.pgn:white b.pgn",
                "polybook repertoire check a.pgn --color=white b.pgn",
            ),
            (
                "polybook repertoire cards --out x.csv a.pgn:black",
                "polybook repertoire cards --out x.csv a.pgn --color=black",
            ),
        ] {
            assert_eq!(rewritten(line), expected);
        }
        for line in [
            "polybook tree a.pgn:white --color white",
            "polybook show a.pgn:white",
            "polybook repertoire new a.pgn:white",
            "polybook tree a.pgn:red",
            "polybook tree",
        ] {
            assert_eq!(rewritten(line), line);
        }
    }

    #[test]
    fn front_ends_name_indexes_with_an_option() {
        for (line, expected) in [
            ("polybook -q games --leveldb=a e4", "polybook -q games a e4"),
            (
                "polybook games e4 --leveldb a --leveldb b",
                "polybook games a b e4",
            ),
            (
                "polybook moves --json --leveldb a",
                "polybook show a --json",
            ),
            (
                "polybook game --leveldb a 3 -q 5",
                "polybook games a --pgn --id 3 -q --id 5",
            ),
            (
                "polybook make-book --leveldb a",
                "polybook make-book --leveldb a",
            ),
            ("polybook tree --leveldb a", "polybook tree --leveldb a"),
        ] {
            let args = renamed(line.split(' ').map(OsString::from).collect());
            assert!(args.iter().eq(expected.split(' ')), "{line}: {args:?}");
        }
    }
}

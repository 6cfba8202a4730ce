//! Shortens the help of the commands that `-h` prints, so that it fits a screen: it lists the common options of a
//! command, each with the first clause of its description. `--help` prints all options with their whole descriptions,
//! and examples.

use std::ffi::OsString;

use clap::{Arg, Command, builder::StyledStr};

/// The common options of each command that has too many options for a screen, separated by spaces. A subcommand is
/// named by its last word.
const COMMON: [(&str, &str); 24] = [
    ("make-book", "bin explorer max-ply min-game min-score"),
    ("download", "out since until speed rated max clocks"),
    ("show", "moves json out player color since speed"),
    (
        "extract",
        "out position player since result limit count clean",
    ),
    ("games", "moves id pgn limit json out player since"),
    ("plies", "out force max-ply player since"),
    (
        "openings",
        "families sort min-games limit out player color since",
    ),
    (
        "prepare",
        "repertoire lines out player opponent color since",
    ),
    ("serve", "listen open book repertoire evals"),
    ("tree", "max-ply min-weight min-share color format out"),
    ("merge-book", "out policy force"),
    ("edit", "out in-place set remove"),
    ("filter", "out min-weight min-share best max-ply"),
    ("diff", "json sort limit"),
    ("convert", "min-game plies limit balance"),
    ("engine", "play min-score player color"),
    ("evals", "out engine nodes threads"),
    (
        "suite-report",
        "first sprt min-pairs drop-one-sided out json",
    ),
    ("build", "color out reach min-game player"),
    ("check", "color player since out limit"),
    ("gaps", "against color limit reach max-ply opponent"),
    ("new", "reference earlier out player since"),
    ("practise", "color new limit against plain"),
    ("cards", "color out force"),
];

/// The commands that `polybook -h` does not list.
const RARE: [&str; 15] = [
    "tree",
    "plies",
    "convert",
    "key",
    "edit",
    "filter",
    "merge-book",
    "diff",
    "suite-report",
    "info-book",
    "dump-book",
    "pgheader",
    "completions",
    "man",
    "evals",
];

/// Shortens the help of the program and of its commands, if `args`, the arguments of the program, may request it.
pub fn shortened(cli: Command, args: &[OsString]) -> Command {
    // Shortening the help of all options takes most of the time of a short run.
    let may_ask = |arg: &OsString| {
        let arg = arg.as_encoded_bytes();
        matches!(arg, b"help" | b"--help")
            || matches!(arg, [b'-', letters @ ..] if !letters.starts_with(b"-") && letters.contains(&b'h'))
    };
    if args.len() > 2 && !args.iter().any(may_ask) {
        return cli;
    }
    let of_program = args.get(1).is_some_and(|arg| arg == "-h");
    let cli = with_examples_in_long_help(cli);
    cli.mut_subcommands(|command| {
        let is_rare = of_program && RARE.contains(&command.get_name());
        shortened_command(command).hide(is_rare)
    })
}

fn shortened_command(command: Command) -> Command {
    let name = command.get_name().to_owned();
    let common = COMMON.iter().find(|(command, _)| *command == name);
    let command = command.mut_args(|arg| {
        let is_hidden = match (arg.get_long(), common) {
            (Some(long), Some((_, common))) => common.split(' ').all(|name| name != long),
            _ => false,
        };
        with_short_help(arg).hide_short_help(is_hidden)
    });
    with_examples_in_long_help(command).mut_subcommands(shortened_command)
}

/// Moves the text after the help, which contains examples, to the long help that `--help` prints.
fn with_examples_in_long_help(command: Command) -> Command {
    match command.get_after_help().cloned() {
        Some(text) => command
            .after_help("--help lists all options, and examples.")
            .after_long_help(text),
        None => command,
    }
}

/// Sets the short help of an argument to the first clause of its help, and the long help to the whole text.
fn with_short_help(arg: Arg) -> Arg {
    let Some(text) = arg.get_help().map(StyledStr::to_string) else {
        return arg;
    };
    // A full stop after a digit belongs to a move number.
    let is_end = |(at, _): &(usize, &str)| !text[..*at].ends_with(|c: char| c.is_ascii_digit());
    let ends = [". ", "; ", " [default: "].map(|end| text.match_indices(end).find(is_end));
    let end = ends.into_iter().flatten().min();
    let first = text[..end.map_or(text.len(), |(at, _)| at)].to_owned();
    arg.help(first).long_help(text)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    /// The number of lines and columns of a terminal that `-h` must fit.
    const LINES: usize = 24;
    const COLUMNS: usize = 100;

    fn check(command: &mut Command, name: &str, too_long: &mut Vec<String>) {
        let short = command.render_help().to_string();
        let lines = short.trim_end().lines().count();
        if lines > LINES {
            too_long.push(format!("{name}: {lines} lines"));
        }
        for inner in command.get_subcommands_mut() {
            let name = format!("{name} {}", inner.get_name());
            check(inner, &name, too_long);
        }
    }

    #[test]
    fn the_short_help_of_every_command_fits_a_screen() {
        let args = ["polybook", "-h"].map(OsString::from);
        let mut cli = shortened(Cli::command(), &args).term_width(COLUMNS);
        cli.build();
        let mut too_long = Vec::new();
        check(&mut cli, "polybook", &mut too_long);
        assert!(too_long.is_empty(), "{too_long:#?}");
    }

    #[test]
    fn common_options_and_rare_commands_exist() {
        let cli = Cli::command();
        let inner = cli.find_subcommand("repertoire").unwrap();
        for (name, options) in COMMON {
            let command = cli.find_subcommand(name).or(inner.find_subcommand(name));
            let Some(command) = command else {
                let is_left_out = cfg!(not(feature = "serve")) && name == "serve"
                    || cfg!(not(feature = "download")) && name == "download";
                assert!(is_left_out, "{name}");
                continue;
            };
            let options: Vec<&str> = options.split(' ').collect();
            for option in &options {
                let mut args = command.get_arguments();
                assert!(
                    args.any(|arg| arg.get_long() == Some(option)),
                    "{name} --{option}"
                );
            }
            for arg in command.get_arguments().filter(|arg| arg.is_required_set()) {
                let is_common = arg.get_long().is_none_or(|long| options.contains(&long));
                assert!(is_common, "{name} needs {arg}");
            }
        }
        assert!(RARE.iter().all(|name| cli.find_subcommand(name).is_some()));
    }

    #[test]
    fn the_long_help_has_all_options_and_examples() {
        let mut cli = shortened(Cli::command(), &["polybook".into()]);
        cli.build();
        let show = cli.find_subcommand_mut("show").unwrap();
        let long = show.render_long_help().to_string();
        let short = show.render_help().to_string();
        for text in ["--clocks", "Examples:", "99 % Wilson"] {
            assert!(long.contains(text) && !short.contains(text), "{text}");
        }
    }
}

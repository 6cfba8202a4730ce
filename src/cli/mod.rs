//! The command line: one file per command.

mod errors;
mod json;
mod key;
mod legacy;
mod make_book;
mod position;
mod progress;
mod show;
mod size;

use std::{
    ffi::OsString,
    io::{self, Write},
    process::ExitCode,
};

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

/// Opening books and game indexes from PGN.
#[derive(Parser, Debug)]
#[command(
    name = "polybook",
    version,
    about,
    max_term_width = 100,
    after_help = "\
Examples:
  polybook make-book games.pgn                     write book.bin
  polybook make-book --max-ply 30 --bin my.bin *.pgn.zst
  polybook show my.bin --moves \"1. e4 c5\"          what the book plays there
  polybook key --fen \"8/8/8/8/8/4k3/8/4K3 w - -\"   the key of a position"
)]
struct Cli {
    /// Print nothing but errors beside the data
    #[arg(short, long, global = true)]
    quiet: bool,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    MakeBook(Box<make_book::Args>),
    Show(show::Args),
    Key(key::Args),
}

/// What all commands get to know.
#[derive(Copy, Clone, Debug)]
struct Context {
    quiet: bool,
}

/// Runs a command line and says how it went: 0 done, 1 failed, 2 wrong command line.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args = legacy::modernized(args.into_iter().collect(), &Cli::command());
    let parsed = Cli::command()
        .try_get_matches_from(args)
        .and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(err) => return errors::command_line(&err),
    };
    let context = Context { quiet: cli.quiet };
    let done = match cli.command {
        Command::MakeBook(args) => make_book::run(*args, context),
        Command::Show(args) => show::run(&args),
        Command::Key(args) => key::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(err) => errors::failure(&err),
    }
}

/// Writes data to standard output.
fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}

//! The command line: one file per command.

mod completions;
mod convert;
mod dump_book;
mod errors;
mod game;
mod games;
mod header;
mod info_book;
mod json;
mod key;
mod legacy;
mod make_book;
mod merge_book;
mod moves;
mod pgheader;
mod position;
mod progress;
mod resources;
mod show;
mod size;
mod verify;
mod weighting;

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
  polybook games --leveldb games.idx --moves \"1. e4 c5\"
                                                   the games that reached a position
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
    Games(games::Args),
    Game(game::Args),
    Moves(moves::Args),
    MergeBook(merge_book::Args),
    Convert(Box<convert::Args>),
    InfoBook(info_book::Args),
    DumpBook(dump_book::Args),
    Pgheader(pgheader::Args),
    Verify(verify::Args),
    Completions(completions::CompletionsArgs),
    Man(completions::ManArgs),
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
    errors::without_backtraces(|| dispatch(cli.command, context))
}

fn dispatch(command: Command, context: Context) -> anyhow::Result<()> {
    match command {
        Command::MakeBook(args) => make_book::run(*args, context),
        Command::Show(args) => show::run(&args),
        Command::Key(args) => key::run(&args),
        Command::Games(args) => games::run(&args),
        Command::Game(args) => game::run(&args, context),
        Command::Moves(args) => moves::run(&args),
        Command::MergeBook(args) => merge_book::run(args, context),
        Command::Convert(args) => convert::run(&args, context),
        Command::InfoBook(args) => info_book::run(&args),
        Command::DumpBook(args) => dump_book::run(&args, context),
        Command::Pgheader(args) => pgheader::run(&args),
        Command::Verify(args) => verify::run(&args, context),
        Command::Completions(args) => completions::completions(&args),
        Command::Man(args) => completions::man(&args),
    }
}

/// Writes data to standard output.
fn print(text: &str) -> anyhow::Result<()> {
    print_bytes(text.as_bytes())
}

/// Writes data that may be no UTF-8 to standard output.
fn print_bytes(bytes: &[u8]) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
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

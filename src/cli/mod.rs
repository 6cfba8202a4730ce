//! The command line, with one file for each command.
//!
//! [`run`] parses the arguments with clap, calls the `run` function of the command, and turns its result into an exit
//! status. A command converts its options to calls of the library and prints the result. The rules of chess and the
//! file formats are implemented in the library. [`run`] also prints an introduction if `polybook` is started without
//! arguments.

mod argv;
mod completions;
mod convert;
mod diff;
#[cfg(feature = "download")]
mod download;
mod dump_book;
mod edit;
mod engine;
mod errors;
mod evals;
mod extract;
mod filter;
mod filters;
mod games;
mod help;
mod index_cache;
mod info_book;
mod input;
mod key;
mod make_book;
mod merge_book;
mod openings;
mod pgheader;
mod plies;
mod position;
mod prepare;
mod progress;
mod repertoire;
mod resources;
#[cfg(feature = "serve")]
mod serve;
mod show;
mod signals;
mod suite;
mod suite_report;
mod terminal;
#[cfg(test)]
mod tests;
mod tree;
mod usage;
mod verify;
mod weighting;

use std::{
    any::TypeId,
    ffi::{OsStr, OsString},
    path::PathBuf,
};

use anyhow::Context as _;
use clap::{Arg, ArgAction, CommandFactory, FromArgMatches, Parser, Subcommand};
use polybook::plural;

use self::progress::Context;

/// Make opening books, suites and databases from PGN, change them, and explore which moves were played
#[derive(Parser, Debug)]
#[command(
    name = "polybook",
    version,
    max_term_width = 100,
    after_help = "\
Examples:
  polybook make-book games.pgn                     write book.bin
  polybook download lichess:NAME --out me.pgn      your games from Lichess
  polybook make-book --max-ply 30 --bin my.bin *.pgn.zst
  polybook show my.bin --moves \"1. e4 c5\"          the moves of the book there
  polybook games games.idx --moves \"1. e4 c5\"     the games that reached a position
  polybook serve games.pgn --open                  an opening explorer in the browser
  polybook key --fen \"8/8/8/8/8/4k3/8/4K3 w - -\"   the key of a position"
)]
struct Cli {
    /// Print no progress and no summaries
    #[arg(short, long, global = true)]
    quiet: bool,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    MakeBook(Box<make_book::Args>),
    #[cfg(feature = "download")]
    Download(download::Args),
    Show(show::Args),
    Key(key::Args),
    Extract(Box<extract::Args>),
    Games(Box<games::Args>),
    Plies(Box<plies::Args>),
    Openings(openings::Args),
    Prepare(prepare::Args),
    #[cfg(feature = "serve")]
    Serve(serve::Args),
    MergeBook(merge_book::Args),
    Edit(Box<edit::Args>),
    Tree(tree::Args),
    Filter(filter::Args),
    Diff(diff::Args),
    Repertoire(Box<repertoire::Args>),
    Convert(Box<convert::Args>),
    Engine(Box<engine::Args>),
    Evals(evals::Args),
    SuiteReport(suite_report::Args),
    InfoBook(info_book::Args),
    DumpBook(dump_book::Args),
    Pgheader(pgheader::Args),
    Verify(verify::Args),
    Completions(completions::CompletionsArgs),
    Man(completions::ManArgs),
}

/// Runs a command line and returns its exit status: 0 for success, 1 for a failure, and 2 for an error in the command
/// line. An interrupted run returns 130.
pub fn run(args: impl IntoIterator<Item = OsString>) -> u8 {
    let args = argv::renamed(args.into_iter().collect());
    let args = argv::with_color_of_source(args);
    errors::without_backtraces(|| {
        if let [] | [_] = &args[..] {
            return print_welcome(args.first().map_or("polybook".as_ref(), |name| name));
        }
        signals::watch().context("cannot install the handler for interrupts")?;
        resources::raise_file_limit();
        let cli = parsed(&args).and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)));
        match cli {
            Ok((cli, matches)) => {
                input::set_temp_dir(&matches);
                input::refuse_replaced_inputs(&matches)?;
                dispatch(cli.command, Context { quiet: cli.quiet })
            }
            Err(err) => errors::command_line(&err, &args),
        }
    })
}

/// Parses the arguments with clap.
///
/// If an option that takes one value is repeated, the last value wins. The exceptions are options that name a file and
/// conditions on games: repeating one of these is an error, because ignoring the first file or condition would surprise
/// the user. Negative numbers are accepted as values here, so that each option can reject them with a message of its
/// own.
fn parsed(args: &[OsString]) -> clap::error::Result<clap::ArgMatches> {
    let cli = help::shortened(Cli::command(), args).mut_args(last_wins);
    let cli = cli.mut_subcommands(with_last_wins);
    let args = argv::modernized(args.to_vec(), &cli);
    cli.try_get_matches_from(args)
}

fn with_last_wins(command: clap::Command) -> clap::Command {
    let name = command.get_name().to_owned();
    let command = command.mut_args(|arg| {
        let arg = input::with_standard_streams(&name, arg);
        let is_option = arg.get_long().is_some() && arg.get_action().takes_values();
        last_wins(arg).allow_negative_numbers(is_option)
    });
    command.mut_subcommands(with_last_wins)
}

/// Returns the changed definition of an option, for which the last value wins if it is repeated. An option that names a
/// file or is a condition on games is not changed.
fn last_wins(arg: Arg) -> Arg {
    let is_file = arg.get_value_parser().type_id() == TypeId::of::<PathBuf>();
    let is_condition = arg.get_help_heading() == Some(filters::GAMES);
    let is_flag = !arg.get_action().takes_values();
    let takes_one = matches!(arg.get_action(), ArgAction::Set) && arg.get_long().is_some();
    if is_flag || (takes_one && !is_file && !is_condition) || arg.get_id() == "temp_dir" {
        let id = arg.get_id().clone();
        return arg.overrides_with(id);
    }
    arg
}

fn dispatch(command: Command, context: Context) -> anyhow::Result<()> {
    match command {
        Command::MakeBook(args) => make_book::run(*args, context),
        #[cfg(feature = "download")]
        Command::Download(args) => download::run(&args, context),
        Command::Show(args) => show::run(&args, context),
        Command::Key(args) => key::run(&args),
        Command::Extract(args) => extract::run(&args, context),
        Command::Games(args) => games::run(&args, context),
        Command::Plies(args) => plies::run(&args, context),
        Command::Openings(args) => openings::run(&args, context),
        Command::Prepare(args) => prepare::run(&args, context),
        #[cfg(feature = "serve")]
        Command::Serve(args) => serve::run(&args, context),
        Command::MergeBook(args) => merge_book::run(&args, context),
        Command::Edit(args) => edit::run(*args, context),
        Command::Tree(args) => tree::run(&args, context),
        Command::Filter(args) => filter::run(&args, context),
        Command::Diff(args) => diff::run(&args, context),
        Command::Repertoire(args) => repertoire::run(&args, context),
        Command::Convert(args) => convert::run(&args, context),
        Command::Engine(args) => engine::run(*args, context),
        Command::Evals(args) => evals::run(args, context),
        Command::SuiteReport(args) => suite_report::run(&args, context),
        Command::InfoBook(args) => info_book::run(&args, context),
        Command::DumpBook(args) => dump_book::run(&args, context),
        Command::Pgheader(args) => pgheader::run(&args),
        Command::Verify(args) => verify::run(&args, context),
        Command::Completions(args) => completions::completions(&args),
        Command::Man(args) => completions::man(&args, context),
    }
}

const WAYS: [(&str, &str); 3] = [
    (
        "make-book games.pgn",
        "makes an opening book from games in PGN",
    ),
    (
        "serve games.pgn --open",
        "shows the games and their openings in the browser",
    ),
    ("--help", "lists all commands"),
];

/// Prints a short introduction for users who start the program without arguments. `called` is the name of the program
/// in the examples.
fn print_welcome(called: &OsStr) -> anyhow::Result<()> {
    let mut name = called.to_string_lossy().into_owned();
    if name.contains(' ') {
        name = format!("\"{name}\"");
    }
    let ways = WAYS.map(|(way, what)| format!("{name} {way:<22}    {what}\n"));
    terminal::print(&ways.concat())
}

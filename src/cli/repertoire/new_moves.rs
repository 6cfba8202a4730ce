//! `polybook repertoire new`: finds the new move of each game, compared with a reference.

use std::path::{Path, PathBuf};

use polybook::{
    pgn::Games,
    repertoire::{NewMove, OpenedSource, Reference, game_label, new_moves},
    storage::{
        output::{begin_text, is_standard_output},
        table::{Cell, Column, ColumnType, Table, TableFormat},
    },
};

use super::{Opener, json_game, pgn_output, pgn_text};
use crate::cli::{
    Context,
    errors::explain_closed_output,
    filters::{OfEachGame, SelectionArgs},
    input::{check_output, ending, pgn_inputs, refuse_twice},
    plural,
    position::UntaggedArg,
    progress::quiet_on_terminal,
    resources::ResourceArgs,
    terminal::{Output, OutputArgs},
    weighting::one_of,
};

/// An output format of `polybook repertoire new`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum NewMovesFormat {
    Text,
    Table(TableFormat),
    Pgn,
}

/// Find the move with which each game leaves the positions of a reference
#[derive(clap::Args, Debug)]
#[command(after_help = "\
If the reference contains moves instead of games (a book, counts or a database), it knows a position if it has a move there or
if it has the game's move to the position. The position at the end of one of its lines is therefore unknown to it if the game
reached the position by another move. Games have the numbers that
polybook games shows for the same files; polybook games GAMES --id NUMBER --pgn prints a game.

Examples:
  polybook repertoire new week.pgn --reference games.idx
  polybook repertoire new games.pgn --reference games.pgn --earlier --out new.csv
      what was new when it was played
  polybook repertoire new mine.pgn --reference book.bin --out marked.pgn")]
pub struct Args {
    /// The games in PGN; - is standard input
    #[arg(value_name = "GAMES", required = true)]
    games: Vec<PathBuf>,

    /// Compare the games with this reference: a PGN file, an index, counts, an OOBS database or a book. A position is
    /// new if the reference does not contain it
    #[arg(long, value_name = "SOURCE")]
    reference: PathBuf,

    /// Compare each game only with games of the reference that were certainly played on an earlier day. A game without a
    /// year is compared with all games of the reference whose date is known. Games of the reference without a year, or
    /// with only the date of their event, are never compared, because they may have been played later
    #[arg(long)]
    earlier: bool,

    /// Show the first move of a game that leads to a new position, even if the game later returns to known positions.
    /// The default is to show the last such move: all later positions of the game are new
    #[arg(long)]
    first: bool,

    /// Write a table (text), CSV (csv), or the games with a comment at the new move (pgn) [default: by the ending of
    /// --out, which may also be .jsonl or .parquet, else text]
    #[arg(
        long,
        value_parser = one_of([("text", NewMovesFormat::Text), ("csv", NewMovesFormat::Table(TableFormat::Csv)), ("pgn", NewMovesFormat::Pgn)]),
    )]
    format: Option<NewMovesFormat>,

    #[command(flatten)]
    output: OutputArgs,

    /// Print the answer as a JSON document
    #[arg(long, conflicts_with_all = ["format", "out"])]
    json: bool,

    #[command(flatten)]
    untagged: UntaggedArg,

    #[command(flatten)]
    resources: ResourceArgs,

    #[command(flatten)]
    filter: SelectionArgs<OfEachGame>,
}

pub fn run(args: &Args, context: Context) -> anyhow::Result<()> {
    let ended = write(args, context);
    ended.map_err(|err| {
        if is_printed(args) {
            err
        } else {
            explain_closed_output(err)
        }
    })
}

fn is_printed(args: &Args) -> bool {
    is_standard_output(&args.output.out)
}

fn write(args: &Args, context: Context) -> anyhow::Result<()> {
    let mut inputs: Vec<&PathBuf> = args.games.iter().chain([&args.reference]).collect();
    refuse_twice(&inputs)?;
    inputs.retain(|path| *path != Path::new("-"));
    check_output(&args.output.out, &inputs, false)?;
    let by_ending = || match TableFormat::of_path(&args.output.out) {
        Some(format) => NewMovesFormat::Table(format),
        None if ending(&args.output.out) == "pgn" => NewMovesFormat::Pgn,
        None => NewMovesFormat::Text,
    };
    let format = args.format.unwrap_or_else(by_ending);
    let (path, force) = (&args.output.out, args.output.force);
    let mut out = match format {
        NewMovesFormat::Pgn => NewMovesOutput::Text(Box::new(pgn_output(path, force)?)),
        NewMovesFormat::Text => NewMovesOutput::Text(Box::new(Output::create(path, force)?)),
        NewMovesFormat::Table(format) => {
            NewMovesOutput::Table(Table::begin(begin_text(path, force)?, format, COLUMNS)?)
        }
    };
    let opener = Opener::new(None, &args.untagged, &args.resources, context)?;
    let known = opener.open(&args.reference, None, |path, opening| {
        // In a game with an illegal move, the moves before it count.
        OpenedSource::source(path, true, opening)
    })?;
    let filter = args.filter.for_each_game()?;
    let inputs = pgn_inputs(&args.games, args.untagged.untagged_variant)?;
    let reference = Reference {
        known: &known,
        earlier: args.earlier,
        first: args.first,
        filter: &filter,
        with_text: !args.json && format == NewMovesFormat::Pgn,
    };
    if let (true, NewMovesOutput::Text(out)) = (args.json, &mut out) {
        out.put("{\"games\":[")?;
    }
    let (mut comma, mut new) = ("", 0);
    let progress = if is_printed(args) {
        quiet_on_terminal(context)
    } else {
        context
    };
    let compared = progress.show_progress("looking for new moves", |meter| {
        let games = Games {
            inputs: &inputs,
            memory: args.resources.memory(),
            threads: args.resources.threads(),
            meter,
        };
        new_moves(&games, &reference, |found| {
            new += u64::from(found.ply.is_some());
            match &mut out {
                NewMovesOutput::Table(table) => table.write(&table_row(found)),
                NewMovesOutput::Text(out) if args.json => out.put(json_game(found, &mut comma)),
                NewMovesOutput::Text(out) if format == NewMovesFormat::Pgn => {
                    out.put(pgn_text(&found.text))
                }
                NewMovesOutput::Text(out) => out.put(new_line(found)),
            }
        })
    })?;
    if let (true, NewMovesOutput::Text(out)) = (args.json, &mut out) {
        out.put("]}\n")?;
    }
    out.commit()?;
    context.warn(&compared.warnings);
    let games = compared.games;
    let of_player = match args.filter.players() {
        [] => String::new(),
        names => format!(
            " with \"{}\" in the name of a player",
            names.join("\" or \"")
        ),
    };
    context.say(&format!("{}{of_player}\n", plural(games, "game")));
    if games > 0 && new == 0 && !args.earlier {
        context.say(
            "no game has a new move: if the reference contains these games, --earlier compares each game only with \
             earlier games\n",
        );
    }
    Ok(())
}

/// Formats `found`, the first new move of a game, as one line. A move is new if the position after it does not occur in
/// the reference, which is the source with which the game is compared.
fn new_line(found: &NewMove) -> String {
    let NewMove {
        game, white, black, ..
    } = found;
    let what = match (&found.number, &found.mv) {
        (Some(number), Some(mv)) => format!("{number} {mv}"),
        _ if found.unindexed => "not indexed".to_owned(),
        _ => "nothing new".to_owned(),
    };
    let before = found
        .games_before
        .map(|games| plural(games, "game") + " before");
    let last = found.last_game.as_ref().and_then(game_label);
    let last = last.map(|last| format!("the last {last}"));
    let mut details = Vec::from_iter(before.into_iter().chain(last)).join(", ");
    if !details.is_empty() {
        details.insert_str(0, ": ");
    }
    let problem = found.problem.as_ref();
    let problem = problem.map_or(String::new(), |problem| format!(" ({problem})"));
    format!("{game:>7} {what:<14} {white} - {black}{details}{problem}\n")
}

const COLUMNS: [Column; 8] = [
    Column::new("game", ColumnType::Integer),
    Column::new("white", ColumnType::Text),
    Column::new("black", ColumnType::Text),
    Column::new("ply", ColumnType::Integer),
    Column::new("move", ColumnType::Text),
    Column::new("games_before", ColumnType::Integer),
    Column::new("last_game", ColumnType::Text),
    Column::new("fen", ColumnType::Text),
];

fn table_row(found: &NewMove) -> [Cell<'_>; COLUMNS.len()] {
    [
        found.game.into(),
        Cell::from(&*found.white),
        Cell::from(&*found.black),
        found.ply.map(|ply| ply as u64).into(),
        found.mv.as_deref().into(),
        found.games_before.into(),
        found.last_game.as_ref().and_then(game_label).into(),
        found.fen.as_deref().into(),
    ]
}

/// The output of the command `polybook repertoire new`.
enum NewMovesOutput {
    Text(Box<Output>),
    Table(Table),
}

impl NewMovesOutput {
    fn commit(self) -> polybook::Result<()> {
        match self {
            NewMovesOutput::Text(out) => out.commit(),
            NewMovesOutput::Table(table) => table.commit(),
        }
    }
}

//! `polybook show`: shows the moves of a position in a book, a database, an index, a counts directory or a PGN file.

mod results;
mod weights;

use std::path::Path;

use polybook::{
    FileKind,
    book::is_book_or_empty,
    selection::{Evaluator, Spelling},
    storage::{
        output::is_directory,
        table::{Column, ColumnType},
    },
};
use serde_json::Value;

use super::{
    Context,
    argv::with_side,
    evals::EvalsArg,
    filters::SelectionArgs,
    input::{ending, file_or_index, name},
    position::SourceArgs,
    terminal::{AnswerArgs, AnswerForm},
    usage::Usage,
    weighting::one_of,
};

/// Show which moves are played in a position, according to a book, a database, an index, counts or PGN
#[derive(clap::Args, Debug)]
#[command(
    after_help = "\
Books and OOBS databases: \"percent\" is the probability of the move in a program that chooses at random by weight. It is
missing if the move is illegal in the position. \"learn\" is a number that some engines store; most programs ignore it. show reads
only the part of the file that it prints, so it does not check the checksum of the file; use polybook verify for this.

Indexes and PGN: the numbers of an explorer's index count the games that played the move in this position. Those of an index made
with --index-stats count all games that reached the position after the move, by any order of moves. \"rating\" is the mean
rating of the players who made the move, and \"rated\" the number of games in which this rating is known. \"seconds\" is the
mean time of the move, \"median\" the median time, and \"timed\" the number of games in which the time is known. \"rated\" and
\"timed\" are shown only if they are smaller than the number of games. With --player, \"score\" is the player's score, \"range\"
contains the true score with a probability of about 80 % (as in polybook openings), and \"perf\" is the player's performance in
ten or more games against rated opponents. Games without a result do not change scores.

Examples:
  polybook show book.bin e4 c5
  polybook show games.idx --moves \"1. e4 c5\"
  polybook show 2024.idx 2025.idx --player \"Carlsen, Magnus\" --color black
  polybook show games.pgn --since 2020 --min-elo 2500 --speed classical --sort score
  polybook show games.pgn e4 c5 --out sicilian.csv
  polybook show --json book.bin --fen \"rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1\"",
    mut_arg("sources", |arg| arg.help(SOURCES).long_help(SOURCES))
)]
pub struct Args {
    #[command(flatten)]
    source: SourceArgs,

    /// Sort the moves by their number of games (games), by score (score), by the mean rating of the players (rating),
    /// each with the largest value first, or by their UCI notation (uci). The score is that of the side to move or,
    /// with --player, of the player. Sorting by score uses the lower end of the 99 % Wilson interval, so that a move
    /// with few games does not come first by luck
    #[arg(long, value_enum, default_value_t = MoveOrder::Games)]
    sort: MoveOrder,

    #[command(flatten)]
    evals: EvalsArg,

    /// Also show the results of the position after each move: how many games continue from there, whatever moves led to
    /// it, and how they ended
    #[arg(long)]
    resulting: bool,

    /// Also show how many seconds the players thought about each move: the mean and the median. The clock times come from the N
    /// newest games, whose PGN files must exist and must not be compressed [default without a number: 1000]
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "1000", value_parser = clap::value_parser!(u32).range(1..))]
    clocks: Option<u32>,

    /// Show the number of games without a result in a column of its own (list), or leave these games out (skip).
    /// Counts, indexes of counts and indexes made with --index-stats cannot do this, because they store games without a
    /// result as draws
    #[arg(
        long,
        value_name = "list|skip",
        default_value = "list",
        value_parser = one_of([("list", UnfinishedGames::List), ("skip", UnfinishedGames::Skip)]),
    )]
    unfinished: UnfinishedGames,

    #[command(flatten)]
    answer: AnswerArgs,

    #[command(flatten)]
    filters: SelectionArgs,
}

/// The help text of the sources.
const SOURCES: &str = "The sources: a book, an OOBS database, a directory of counts or a repertoire with its side (FILE:white); or indexes and PGN files, whose games are \
                       added. polybook indexes a PGN file once and keeps the index in a cache. A FEN or moves after the \
                       sources are the position. - reads a book from standard input";

/// The treatment of games without a result: the table of moves shows their number in a separate column, or omits them.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum UnfinishedGames {
    List,
    Skip,
}

/// The value by which the moves of a position are sorted for printing: the number of games, the score, the mean rating
/// of the players who played the move, or its UCI notation.
#[derive(Copy, Clone, PartialEq, Eq, clap::ValueEnum, Debug)]
enum MoveOrder {
    Games,
    Score,
    Rating,
    Uci,
}

/// The columns that contain evaluations in tables of moves.
const EVAL_COLUMNS: [Column; 2] = [
    Column::at("eval_cp", ColumnType::Integer, "/eval/cp"),
    Column::at("eval_mate", ColumnType::Integer, "/eval/mate"),
];

/// The columns that contain the results of the position after each move in tables of moves.
const RESULTING_COLUMNS: [Column; 4] = [
    Column::at("after_games", ColumnType::Integer, "/resulting/games"),
    Column::at("after_white", ColumnType::Integer, "/resulting/white"),
    Column::at("after_draws", ColumnType::Integer, "/resulting/draws"),
    Column::at("after_black", ColumnType::Integer, "/resulting/black"),
];

/// Writes the answer about a position in the form that the user requested. `document` describes the position; its field
/// `moves` contains the moves, which become the rows if the form is a table. `columns` are the columns of this table.
/// `text` formats the answer as text.
fn write(
    args: &Args,
    form: AnswerForm,
    document: &Value,
    columns: Vec<Column>,
    text: impl FnOnce() -> String,
    context: Context,
) -> anyhow::Result<()> {
    let moves = document["moves"].as_array().map_or(&[][..], Vec::as_slice);
    match form {
        AnswerForm::Text => args.answer.write(&text())?,
        AnswerForm::Json => args.answer.write_json(document)?,
        AnswerForm::Table(format) => {
            let rows = moves.iter().map(|row| Ok(row.clone()));
            args.answer.write_table(format, columns, rows)?;
        }
    }
    let number = moves.len() as u64;
    args.answer.say_written(number, "move", context);
    Ok(())
}

pub fn run(args: &Args, context: Context) -> anyhow::Result<()> {
    let paths = &args.source.paths;
    let form = args.answer.form(paths, &[])?;
    if let [path] = &paths[..]
        && !path.exists()
        && let Some(Ok((path, color))) = path.to_str().map(with_side)
    {
        args.refuse_games(&path, "a repertoire", Evaluator::Moves)?;
        Usage::refuse(
            args.resulting.then_some("--resulting"),
            "needs the results of games, but a repertoire contains only moves",
        )?;
        return results::run_counted(args, form, (&path, Some(color)), context);
    }
    for path in paths {
        if is_directory(path)? {
            continue;
        }
        let file = file_or_index(path)?;
        let source = match FileKind::of(&file)? {
            FileKind::Sqlite => "an OOBS database",
            // The error about a compressed book says how to unpack it.
            _ if ending(&file) == "bin" => "a book",
            FileKind::Gzip | FileKind::Bzip2 | FileKind::Zstd | FileKind::Zip => continue,
            FileKind::Other if !is_book_or_empty(&file)? => continue,
            _ => "a book",
        };
        if paths.len() > 1 {
            let usage = format!(
                "{}: {source} cannot be combined with other sources: show it alone, or combine books with polybook \
                 merge-book",
                name(path)
            );
            return Err(Usage(usage).into());
        }
        args.refuse_games(path, source, Evaluator::Moves)?;
        return weights::run(args, form, (path, &file), context);
    }
    results::run(args, form, context)
}

impl Args {
    /// Returns an error if the user gave an option that needs individual games, which the source at `path` does not
    /// contain. `source` is the kind of this source, and `evaluator` says which conditions it can evaluate.
    fn refuse_games(&self, path: &Path, source: &str, evaluator: Evaluator) -> Result<(), Usage> {
        let unanswerable = self.filters.selection()?.unanswerable(evaluator);
        if let Some(unanswerable) = unanswerable {
            return Err(Usage(format!(
                "{}: {} does not apply to {source}, which contains no {}",
                name(path),
                Spelling::Option.of(unanswerable.condition),
                unanswerable.lacking
            )));
        }
        let clocks = self.clocks.map(|_| "--clocks");
        let skip = (self.unfinished == UnfinishedGames::Skip).then_some("--unfinished skip");
        let sort = (self.sort != MoveOrder::Games).then_some("--sort");
        Usage::refuse(
            clocks.or(skip).or(sort),
            "needs an explorer's index: make one with make-book --explorer",
        )
    }
}

//! `polybook engine`: a UCI engine that plays the moves of books, repertoires and games.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
};

use anyhow::anyhow;

use super::{
    Context,
    argv::with_side,
    filters::{SelectionArgs, check_names, explorer_of, passed_unknown, search_board},
    index_cache::cached_index,
    input::{ending, file_or_index, has_index, refuse_stream},
    position::UntaggedArg,
    repertoire::Opener,
    resources::count,
    usage::Usage,
    weighting::one_of,
};
use polybook::{
    FileKind,
    book::is_book_or_empty,
    engine::{EngineSource, Fallback, Play, Settings, SourceEngine},
    explorer::{Line, Query, Selection, View},
    index::Index,
    repertoire::OpenedSource,
    storage::output::is_directory,
    text::shell_path,
};
use shakmaty::Color;

/// Play the moves of books, databases, indexes and games as a UCI engine
#[derive(clap::Args, Debug)]
#[command(after_help = "\
A SOURCE is a Polyglot book, an OOBS database, an index, counts or a PGN file. The first source that knows a position answers,
so give your own first. FILE:white or FILE:black is a source only for games in which the engine has this color; a PGN file
is then read as a repertoire, with its variations. An index of a PGN file is kept in the cache of serve. ENGINE, with its
arguments after --, plays in positions that no source knows; without it, the answer is bestmove (none). --player plays only
moves of the player, with White and with Black, and none of the player's opponents.

A program that speaks UCI sets the options below under the names Play, Seed, MinScore, MinGames, Max Book Depth, Leave
Before End, Fallback, Player, Color and so on. MultiPV sets how many moves an answer lists.

Examples:
  polybook engine book.bin
  polybook engine my.pgn:white masters.idx --min-score 45 -- stockfish
  polybook engine white.bin:white black.bin:black --max-book-depth 12
  polybook engine games.pgn --player \"Carlsen,M\" -- stockfish")]
pub struct Args {
    /// Books, OOBS databases, indexes, counts or PGN files, the most important first; with :white or :black after the
    /// name, only for this color
    #[arg(value_name = "SOURCE", required = true)]
    sources: Vec<PathBuf>,

    /// The UCI engine that plays in positions that the sources do not contain, and its arguments
    #[arg(value_name = "ENGINE", last = true)]
    engine: Vec<OsString>,

    /// Choose a move at random, in proportion to its weight (weighted), choose the move with the largest weight or
    /// score (best), or choose among all moves with equal probability (uniform). If the source has results instead of
    /// weights, the weight is the number of games times the square of the score
    #[arg(long, default_value = "weighted", value_parser = one_of(Play::NAMES))]
    play: Play,

    /// Use this seed for the random choices. The same seed gives the same choices, and 0 gives different choices in
    /// each run
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Play only moves that scored at least N percent. Moves without a finished game are left out. Moves of books have
    /// no score and are always allowed
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=100))]
    min_score: u8,

    /// Play only moves that were played in at least N games
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = count::<u64>(0))]
    min_games: u64,

    /// Play moves of the sources only up to move N of a game; 0 means no limit. White's and Black's move have the same
    /// number
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    max_book_depth: u32,

    /// Leave the sources when fewer than N half-moves of them remain: play a move only if it begins a line of at least
    /// N half-moves in the sources. 0 means no limit
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=100))]
    leave_before_end: u32,

    /// Play no move (none) or a random legal move (random) in positions that the sources do not contain. This applies
    /// only if no ENGINE is given
    #[arg(long, default_value = "none", value_parser = one_of(Fallback::NAMES))]
    fallback: Fallback,

    #[command(flatten)]
    untagged: UntaggedArg,

    #[command(flatten)]
    filters: SelectionArgs,
}

pub fn run(args: Args, context: Context) -> anyhow::Result<()> {
    let filters = args.filters.for_index()?;
    let opener = Opener::with_defaults(&args.untagged, context)?;
    let sources = args.sources.iter();
    let sources = sources
        .map(|argument| {
            let of_color = argument.to_str().and_then(|text| with_side(text).ok());
            let (path, color) = match of_color {
                Some((path, color)) => (path, Some(color)),
                None => (argument.clone(), None),
            };
            let opened = opened(&path, color, &opener, &filters, context);
            let (source, has_results) = opened.map_err(|err| explain_engine(&path, err))?;
            anyhow::Ok(((source, color), has_results))
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    let (sources, have_results): (Vec<_>, Vec<bool>) = sources.into_iter().unzip();
    let limits = [
        (args.min_score > 0).then_some("--min-score"),
        (args.min_games > 0).then_some("--min-games"),
    ];
    if !have_results.contains(&true) {
        Usage::refuse(
            limits.into_iter().flatten().next(),
            "needs a source with the results of games, but these sources contain only weights: give an index, counts, an OOBS \
             database or a PGN file, or make the book with make-book --min-score and --min-game",
        )?;
    }
    let has_games = sources
        .iter()
        .any(|(source, _)| matches!(source, EngineSource::Games(_)));
    if !args.filters.are_none() && !has_games {
        let of_color = args.sources.iter().find(|source| {
            let file = source.to_str().and_then(|text| with_side(text).ok());
            file.is_some_and(|(file, _)| ending(&file) == "pgn")
        });
        let advice = match of_color {
            Some(source) => format!(
                "but {} is read as a repertoire: give the file without the color",
                source.display()
            ),
            None => {
                "but no source contains games: give an explorer's index or a PGN file".to_owned()
            }
        };
        return Err(Usage(format!("filters apply to games, {advice}")).into());
    }
    let settings = Settings {
        play: args.play,
        seed: args.seed,
        min_score: args.min_score,
        min_games: args.min_games,
        max_book_depth: args.max_book_depth,
        leave_before_end: args.leave_before_end,
        fallback: args.fallback,
        filters,
        ..Settings::default()
    };
    let mut engine = args.engine.into_iter();
    let second_engine = engine
        .next()
        .map(|program| (program.into(), engine.collect()));
    let engine = SourceEngine {
        sources,
        settings,
        second_engine,
    };
    Ok(engine.run(io::stdin(), io::stdout())?)
}

/// Adds advice to `err`, the error of the source `argument`, if the user may have meant a second engine: if no file has
/// this name, and the name has no extension or that of a program.
fn explain_engine(argument: &Path, err: anyhow::Error) -> anyhow::Error {
    let may_be_engine = ["", "exe"].contains(&&*ending(argument)) && !argument.exists();
    if !may_be_engine || argument == Path::new("-") {
        return err;
    }
    anyhow!(
        "{}: no file has this name; if it is an engine, put -- before it: polybook engine book.bin -- {}",
        argument.display(),
        shell_path(&argument.to_string_lossy())
    )
}

/// Opens `argument` as a source of moves for the engine. The argument is an index, a counts directory, a PGN file, a
/// book or an OOBS database. Also returns `true` if the source contains results of games.
///
/// If the source is only for one color, `color` is this color, and a PGN file is read as a repertoire. For any other
/// PGN file, opens the file's index in the user's cache, and first builds this index if it does not exist. `filters`
/// selects the games of an index, and `opener` contains the settings for opening the source.
///
/// # Errors
///
/// Returns an error if the source cannot be opened, or if a name in `filters` occurs in no game of the index.
fn opened(
    argument: &Path,
    color: Option<Color>,
    opener: &Opener,
    filters: &Selection,
    context: Context,
) -> anyhow::Result<(EngineSource, bool)> {
    let of_moves = |known: OpenedSource| {
        let has_results = known.has_results();
        (EngineSource::Moves(Box::new(known)), has_results)
    };
    if argument == Path::new("-") {
        let problem =
            "standard input contains the UCI commands, so - cannot be a source: give a file";
        return Err(Usage(problem.to_owned()).into());
    }
    if is_directory(argument)? {
        if has_index(argument)? && Index::open(argument)?.kind().is_of_explorer() {
            return Ok((games(argument, filters, context)?, true));
        }
    } else {
        let path = file_or_index(argument)?;
        let is_named_book = ending(&path) == "bin";
        let may_have_games = FileKind::of(&path)? != FileKind::Sqlite && !is_named_book;
        if may_have_games && !is_book_or_empty(&path)? {
            if let Some(color) = color {
                return Ok(of_moves(opener.repertoire(argument, color)?));
            }
            refuse_stream(argument)?;
            let index = cached_index(&path, opener.untagged, context)?;
            return Ok((games(&index, filters, context)?, true));
        }
    }
    Ok(of_moves(opener.source(argument, None)?))
}

fn games(index: &Path, filters: &Selection, context: Context) -> anyhow::Result<EngineSource> {
    let explorer = explorer_of(&[index], context)?;
    check_names(&explorer, filters, false, context)?;
    search_board(&explorer, filters, context)?;
    let start = Line::start(explorer.variant().unwrap_or_default());
    let query = Query {
        filters: filters.clone(),
        ..Query::new(start, View::Lichess)
    };
    context.warn(&passed_unknown(&explorer, &query)?);
    Ok(EngineSource::Games(Box::new(explorer)))
}

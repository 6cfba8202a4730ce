//! `polybook engine`: the moves of sources as a UCI engine.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
};

use super::{
    Context,
    filters::{ExplorerFilterArgs, check_names, explorer_of, passed_unknown},
    input::{cached_index, file_or_index, has_index},
    position::UntaggedArg,
    repertoire::{Opener, with_side},
    usage::Usage,
    weighting::one_of,
};
use polybook::{
    FileKind,
    book::is_book_or_empty,
    engine::{EngineSource, Fallback, Play, Settings, SourceEngine},
    explorer::{Filters, Line, Query, View},
    index::Index,
};

/// Play the moves of books, databases, indexes and games as a UCI engine
#[derive(clap::Args, Debug)]
#[command(after_help = "\
A SOURCE is a Polyglot book, an OOBS database, an index, counts, a PGN file, or a repertoire with its side: my.pgn:white. The
first source that knows a position answers. An index of a PGN file is kept in the cache of serve. ENGINE, with its arguments
after --, plays in positions that no source knows; without it, the answer is bestmove (none).

A program that speaks UCI sets the options below, except --exact and --result, under the names Play, Seed, MinScore,
MinGames, MaxPly, Fallback, Player, Color and so on. MultiPV sets how many moves an answer lists.

Examples:
  polybook engine book.bin
  polybook engine my.pgn:white masters.idx --min-score 45 -- stockfish
  polybook engine games.pgn --player \"Carlsen, Magnus\" --color black")]
pub struct Args {
    /// Books, databases, indexes, counts, PGN files, or repertoires as FILE:white and FILE:black
    #[arg(value_name = "SOURCE", required = true)]
    sources: Vec<PathBuf>,

    /// The UCI engine for unknown positions, and its arguments
    #[arg(value_name = "ENGINE", last = true)]
    engine: Vec<OsString>,

    /// How a move is chosen: at random by weight (without results) or by the square of the score times the games, the
    /// best one, or each as often as any other
    #[arg(long, default_value = "weighted", value_parser = one_of(Play::NAMES))]
    play: Play,

    /// The seed of random choices: the same seed gives the same choices; 0 gives other choices in each run
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Play no move that scored below N percent; moves of books without results have no score
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=100))]
    min_score: u8,

    /// Play no move of fewer than N games
    #[arg(long, value_name = "N", default_value_t = 0)]
    min_games: u64,

    /// Know no position after N half-moves; 0 for no limit
    #[arg(long, value_name = "N", default_value_t = 0)]
    max_ply: u32,

    /// The move in unknown positions if there is no ENGINE: none or a random one
    #[arg(long, default_value = "none", value_parser = one_of(Fallback::NAMES))]
    fallback: Fallback,

    #[command(flatten)]
    untagged: UntaggedArg,

    #[command(flatten)]
    filters: ExplorerFilterArgs,
}

pub fn run(args: Args, context: Context) -> anyhow::Result<()> {
    let filters = args.filters.filters()?;
    let opener = Opener::with_defaults(&args.untagged, context)?;
    let sources = args.sources.iter();
    let sources: anyhow::Result<Vec<EngineSource>> = sources
        .map(|path| opened(path, &opener, &filters, context))
        .collect();
    let sources = sources?;
    let has_games = sources
        .iter()
        .any(|source| matches!(source, EngineSource::Games(_)));
    if !args.filters.are_none() && !has_games {
        let usage = "filters are for games: name an explorer's index, or a PGN file";
        return Err(Usage(usage.to_owned()).into());
    }
    let settings = Settings {
        play: args.play,
        seed: args.seed,
        min_score: args.min_score,
        min_games: args.min_games,
        max_ply: args.max_ply,
        fallback: args.fallback,
        filters,
        ..Settings::default()
    };
    let mut engine = args.engine.into_iter();
    let behind = engine
        .next()
        .map(|program| (program.into(), engine.collect()));
    let engine = SourceEngine {
        sources,
        settings,
        behind,
    };
    Ok(engine.run(io::stdin(), io::stdout().lock())?)
}

/// Opens one source of moves for the engine: a repertoire with its side, an index, a PGN whose index is cached, a book
/// or a database. `argument` names the file, and `opener` opens repertoires, books and databases.
fn opened(
    argument: &Path,
    opener: &Opener,
    filters: &Filters,
    context: Context,
) -> anyhow::Result<EngineSource> {
    let repertoire = argument.to_str().map(with_side);
    if let Some(Ok((path, color))) = repertoire {
        let known = opener.repertoire(&path, color)?;
        return Ok(EngineSource::Moves(Box::new(known)));
    }
    if argument == Path::new("-") {
        let problem = "standard input is for UCI commands: name a file";
        return Err(Usage(problem.to_owned()).into());
    }
    if argument.is_dir() {
        if has_index(argument)? && Index::open(argument)?.kind().is_of_explorer() {
            return games(argument, filters, context);
        }
    } else {
        let path = file_or_index(argument)?;
        if FileKind::of(&path)? != FileKind::Sqlite && !is_book_or_empty(&path)? {
            let index = cached_index(&path, opener.untagged, context)?;
            return games(&index, filters, context);
        }
    }
    let known = opener.source(argument, None)?;
    Ok(EngineSource::Moves(Box::new(known)))
}

fn games(index: &Path, filters: &Filters, context: Context) -> anyhow::Result<EngineSource> {
    let explorer = explorer_of(&[index], context)?;
    check_names(&explorer, filters, false, context)?;
    let start = Line::start(explorer.variant().unwrap_or_default());
    let query = Query {
        filters: filters.clone(),
        ..Query::new(start, View::Lichess)
    };
    context.warn(&passed_unknown(&explorer, &query)?);
    Ok(EngineSource::Games(Box::new(explorer)))
}

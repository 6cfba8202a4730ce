//! `polybook engine`: the moves of sources as a UCI engine.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
};

use polybook::{
    Error, FileKind,
    book::is_book_or_empty,
    engine::{EngineSource, Fallback, Play, Settings, SourceEngine},
    explorer::Filters,
    index::Index,
    output::TemporaryDir,
    tally::Memory,
};
use shakmaty::Color;

use super::{
    Context,
    filters::{ExplorerFilterArgs, check_names, explorer_of},
    input::file_or_index,
    repertoire::Opener,
    usage::Usage,
};

/// Play the moves of books, databases, indexes and games as a UCI engine
#[derive(clap::Args, Debug)]
#[command(after_help = "\
A SOURCE is a Polyglot book, an OOBS database, an index, counts, a PGN file, or a repertoire with its side: my.pgn:white. The
first source that knows a position answers. An index of a PGN file is kept in the cache of serve. ENGINE, with its arguments
after --, plays in positions that no source knows; without it, the answer is bestmove (none).

A program that speaks UCI sets the options below under the names Play, Seed, MinScore, MinGames, MaxPly, Fallback, Player,
Color, Since, MinElo and Speed. MultiPV sets how many moves an answer lists.

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

    /// How a move is chosen: weighted (at random by weight, or by the square of the score times the games), best or uniform
    #[arg(long, value_name = "HOW", default_value = "weighted")]
    play: Play,

    /// The seed of random choices: the same seed gives the same choices
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

    /// Without ENGINE, what to play in unknown positions: none or random
    #[arg(long, value_name = "WHAT", default_value = "none")]
    fallback: Fallback,

    #[command(flatten)]
    filters: ExplorerFilterArgs,
}

pub fn run(args: Args, context: Context) -> anyhow::Result<()> {
    let filters = args.filters.filters()?;
    let memory = Memory::default();
    let opener = Opener {
        variant: None,
        directory: TemporaryDir::new_in(&memory.temp_dir)?,
        memory,
        threads: 0,
        context,
    };
    let sources = args.sources.iter();
    let sources: anyhow::Result<Vec<EngineSource>> = sources
        .map(|path| opened(path, &opener, &filters, context))
        .collect();
    let sources = sources?;
    let has_games = sources
        .iter()
        .any(|source| matches!(source, EngineSource::Games(_)));
    if !args.filters.are_none() && !has_games {
        let usage = "filters are for games: name an index made with --explorer, or a PGN file";
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

/// Opens a source.
fn opened(
    argument: &Path,
    opener: &Opener,
    filters: &Filters,
    context: Context,
) -> anyhow::Result<EngineSource> {
    if let Some((path, color)) = repertoire(argument) {
        let known = opener.repertoire(&path, color)?;
        return Ok(EngineSource::Moves(Box::new(known)));
    }
    if argument == Path::new("-") {
        let problem = "standard input is for UCI commands: name a file";
        return Err(Usage(problem.to_owned()).into());
    }
    if argument.is_dir() {
        let has_explorer_data = match argument.join("CURRENT").exists() {
            true => Index::open(argument)?.has_explorer_data()?,
            false => false,
        };
        if has_explorer_data {
            return games(argument.to_owned(), filters);
        }
    } else {
        let path = file_or_index(argument)?;
        if FileKind::of(&path)? != FileKind::Sqlite && !is_book_or_empty(&path)? {
            return games(indexed(&path, context)?, filters);
        }
    }
    let known = opener.source(argument, None)?;
    Ok(EngineSource::Moves(Box::new(known)))
}

/// Splits `FILE:white` and `FILE:black`.
fn repertoire(argument: &Path) -> Option<(PathBuf, Color)> {
    let (path, color) = argument.to_str()?.rsplit_once(':')?;
    Some((path.into(), color.parse().ok()?))
}

fn games(index: PathBuf, filters: &Filters) -> anyhow::Result<EngineSource> {
    let explorer = explorer_of(&[index])?;
    check_names(&explorer, filters)?;
    Ok(EngineSource::Games(Box::new(explorer)))
}

/// Returns the index of a PGN file in the cache, and makes it first if it is missing.
#[cfg(feature = "serve")]
fn indexed(pgn: &Path, context: Context) -> anyhow::Result<PathBuf> {
    let Some(directory) = dirs::cache_dir() else {
        let usage = "this system has no directory for caches: make an index with make-book --leveldb --explorer";
        return Err(Usage(usage.to_owned()).into());
    };
    let cache = polybook::serve::Cache::new(directory.join("polybook"))?;
    let index = cache.of(pgn)?;
    if !index.is_made() {
        // Remains of an index that was cut off.
        index.remove_unless(|| index.is_made())?;
        context.say(&format!("indexing {}\n", pgn.display()));
        match index.make().run() {
            // Another process was faster.
            Err(Error::Exists { .. }) if index.is_made() => {}
            made => drop(made?),
        }
    }
    Ok(index.path().to_owned())
}

#[cfg(not(feature = "serve"))]
fn indexed(pgn: &Path, _context: Context) -> anyhow::Result<PathBuf> {
    let problem = "games, and this build has no cache of indexes: make an index with make-book --leveldb --explorer";
    Err(Error::file(pgn, problem).into())
}

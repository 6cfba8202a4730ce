//! `polybook games`: the games that reached a position.

use std::{borrow::Cow, cell::Cell, io::Write, path::PathBuf};

use polybook::{
    explorer::{Explorer, Line, Page, Query, Sort, View},
    index::{GameHeader, GameIds, Index},
    position::{self, Variant},
};
use serde::{
    Serialize, Serializer,
    ser::{Error as _, SerializeSeq as _},
};

use super::{
    counted::counted,
    filters::{self, FilterArgs, check_names, explorer_of},
    json, key,
    position::PositionArgs,
    variant::refuse_other_of_index,
};

/// List the games that reached a position
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  polybook games --leveldb games.idx --moves \"1. e4 c5 2. Nf3 d6\" --limit 20
  polybook games --leveldb games.idx --moves \"1. b4\" --pgn > sokolsky.pgn
  polybook games --leveldb games.idx --json
  polybook games --leveldb 2024.idx --leveldb 2025.idx --player \"Carlsen, Magnus\" --sort recent --limit 10")]
pub struct Args {
    /// An index that make-book --leveldb made; several that were made with --explorer work as one, with their games
    /// numbered in this order
    #[arg(long, value_name = "DIR", required = true)]
    leveldb: Vec<PathBuf>,

    #[command(flatten)]
    position: PositionArgs,

    /// Skip the first N games
    #[arg(long, value_name = "N", default_value_t = 0)]
    skip: usize,

    /// List at most N games
    #[arg(long, value_name = "N")]
    limit: Option<usize>,

    /// Print the games themselves
    #[arg(long, conflicts_with = "json")]
    pgn: bool,

    /// Order of the games: as in the PGN, newest first, or highest ratings first; for an index made with --explorer
    #[arg(long, value_name = "id|recent|rating", default_value_t = Sort::Id)]
    sort: Sort,

    /// Print a JSON document
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    filters: FilterArgs,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    if let [path] = &args.leveldb[..]
        && args.filters.are_none()
        && args.sort == Sort::Id
    {
        let index = Index::open(path)?;
        // The explorer's data separate positions that share a key. An index of standard chess alone does
        // not need that.
        if index.variant().only() == Some(Variant::Standard) || !index.is_explored()? {
            return run_plain(args, &index);
        }
    }
    run_explored(args)
}

/// All games of a position by its key, in the order of the index.
fn run_plain(args: &Args, index: &Index) -> anyhow::Result<()> {
    let own = index.variant().only();
    let variant = args.position.variant_of(own);
    let pos = args.position.position_of(own)?;
    let key = position::key(&pos);
    let ids = match own {
        Some(own) if !own.is_played_like(variant) => GameIds::default(),
        _ => {
            refuse_other_of_index(index, variant)?;
            index.games(key)?
        }
    };
    let wanted = ids
        .iter()
        .skip(args.skip)
        .take(args.limit.unwrap_or(usize::MAX));
    if args.pgn {
        for id in wanted {
            super::game::print_text(index, id)?;
        }
        return Ok(());
    }
    let games = wanted.map(|id| Ok((id.into(), index.header(id)?)));
    print_list(args, key, ids.len() as u64, games)
}

/// The games of a position that pass the filters.
fn run_explored(args: &Args) -> anyhow::Result<()> {
    let explorer = explorer_of(&args.leveldb).map_err(|err| needs_explorer(args, err))?;
    let variant = args.position.variant_of(explorer.variant());
    let pos = args.position.position_of(explorer.variant())?;
    let key = position::key(&pos);
    let mut query = Query::new(Line::at(variant, pos), View::Lichess);
    query.filters = args.filters.filters()?;
    let page = Page {
        skip: args.skip,
        limit: args.limit.unwrap_or(usize::MAX),
        sort: args.sort,
    };
    let (total, numbers) = explorer.game_numbers(&query, &page)?;
    if total == 0 {
        check_names(&explorer, &query.filters)?;
    }
    if args.pgn {
        return print_texts(&explorer, numbers);
    }
    let games = numbers.map(|number| {
        let number = number?;
        Ok((number, explorer.header(number)?))
    });
    print_list(args, key, total, games)
}

fn print_texts(
    explorer: &Explorer,
    numbers: impl Iterator<Item = polybook::Result<u64>>,
) -> anyhow::Result<()> {
    for number in numbers {
        super::print_bytes(&explorer.text(number?)?)?;
    }
    Ok(())
}

/// The error of a query, or that it needs an index made with --explorer.
fn needs_explorer(args: &Args, err: anyhow::Error) -> anyhow::Error {
    let is_plain = |path: &PathBuf| {
        let index = Index::open(path);
        index.is_ok_and(|index| index.is_explored().is_ok_and(|is_explored| !is_explored))
    };
    match args.leveldb.iter().find(|path| is_plain(path)) {
        Some(path) => filters::needs_explorer(path).into(),
        None => err,
    }
}

/// Prints games that are read while they are printed.
fn print_list(
    args: &Args,
    key: u64,
    total: u64,
    games: impl Iterator<Item = polybook::Result<(u64, GameHeader)>>,
) -> anyhow::Result<()> {
    if args.json {
        let document = Document {
            key: key::text(key),
            total,
            games: Games::new(games),
        };
        let printed = json::print_long(&document);
        return document
            .games
            .failure
            .take()
            .map_or(printed, |err| Err(err.into()));
    }
    let mut out = super::terminal::stdout();
    writeln!(out, "{}", counted(total, "game")).map_err(super::not_printed)?;
    for game in games {
        let (id, header) = game?;
        let line = line(id, &header);
        out.write_all(line.as_bytes()).map_err(super::not_printed)?;
    }
    out.flush().map_err(super::not_printed)
}

/// One game for people.
fn line(id: u64, game: &GameHeader) -> String {
    let rated = |name: &str, elo: &str| match elo {
        "" | "*" | "?" => name.to_owned(),
        _ => format!("{name} ({elo})"),
    };
    format!(
        "{id:>8}  {:<10} {:<7} {} - {}, {}\n",
        game.date(),
        game.result(),
        rated(&game.white(), &game.white_elo()),
        rated(&game.black(), &game.black_elo()),
        game.event()
    )
}

/// The games of a position, for programs.
#[derive(Serialize)]
#[serde(bound = "")]
struct Document<I: Iterator<Item = polybook::Result<(u64, GameHeader)>>> {
    key: String,
    total: u64,
    games: Games<I>,
}

/// Games that are read while they are printed, because they may be many.
struct Games<I> {
    games: Cell<Option<I>>,
    /// Why the list ends early.
    failure: Cell<Option<polybook::Error>>,
}

impl<I> Games<I> {
    fn new(games: I) -> Games<I> {
        Games {
            games: Cell::new(Some(games)),
            failure: Cell::new(None),
        }
    }
}

impl<I: Iterator<Item = polybook::Result<(u64, GameHeader)>>> Serialize for Games<I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        for game in self.games.take().into_iter().flatten() {
            match game {
                Ok((id, game)) => list.serialize_element(&Game::new(id, &game))?,
                Err(err) => {
                    self.failure.set(Some(err));
                    return Err(S::Error::custom("a game cannot be read"));
                }
            }
        }
        list.end()
    }
}

/// One game for programs. Unknown values are `None`.
#[derive(Serialize)]
struct Game<'a> {
    id: u64,
    white: Option<Cow<'a, str>>,
    white_elo: Option<Cow<'a, str>>,
    black: Option<Cow<'a, str>>,
    black_elo: Option<Cow<'a, str>>,
    /// `*` is a result: that of a game without one.
    result: Cow<'a, str>,
    date: Option<Cow<'a, str>>,
    event: Option<Cow<'a, str>>,
    site: Option<Cow<'a, str>>,
    eco: Option<Cow<'a, str>>,
    /// `None` for a game without tags.
    offset: Option<u64>,
    /// `None` for the start of the variant.
    fen: Option<Cow<'a, str>>,
    ply_count: Option<Cow<'a, str>>,
    event_date: Option<Cow<'a, str>>,
    event_type: Option<Cow<'a, str>>,
}

impl<'a> Game<'a> {
    fn new(id: u64, game: &'a GameHeader) -> Game<'a> {
        Game {
            id,
            white: known(game.white()),
            white_elo: known(game.white_elo()),
            black: known(game.black()),
            black_elo: known(game.black_elo()),
            result: game.result(),
            date: known(game.date()),
            event: known(game.event()),
            site: known(game.site()),
            eco: known(game.eco()),
            offset: game.offset(),
            fen: known(game.fen()),
            ply_count: known(game.ply_count()),
            event_date: known(game.event_date()),
            event_type: known(game.event_type()),
        }
    }
}

/// The value of a tag, unless it is empty, `*`, or says unknown: `?`, `-` or `????.??.??`.
fn known(value: Cow<'_, str>) -> Option<Cow<'_, str>> {
    let is_said = value.trim().contains(|c| !"*?-.".contains(c));
    is_said.then_some(value)
}

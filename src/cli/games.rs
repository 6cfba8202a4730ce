//! `polybook games`: the games that reached a position.

use std::{
    borrow::Cow,
    cell::Cell,
    io::{self, BufWriter, Write},
    path::PathBuf,
};

use polybook::{
    index::{GameHeader, Index},
    position,
};
use serde::{
    Serialize, Serializer,
    ser::{Error as _, SerializeSeq as _},
};

use super::{json, key, position::PositionArgs};

/// List the games that reached a position
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  polybook games --leveldb games.idx --moves \"1. e4 c5 2. Nf3 d6\" --limit 20
  polybook games --leveldb games.idx --moves \"1. b4\" --pgn > sokolsky.pgn
  polybook games --leveldb games.idx --json")]
pub struct Args {
    /// The index, as make-book --leveldb made it
    #[arg(long, value_name = "DIR")]
    leveldb: PathBuf,

    #[command(flatten)]
    position: PositionArgs,

    /// Leave out the first N games
    #[arg(long, value_name = "N", default_value_t = 0)]
    skip: usize,

    /// List at most N games
    #[arg(long, value_name = "N")]
    limit: Option<usize>,

    /// Print the games themselves
    #[arg(long, conflicts_with = "json")]
    pgn: bool,

    /// Print a JSON document
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let index = Index::open(&args.leveldb)?;
    let pos = args.position.position_of(index.variant().only())?;
    let key = position::key(&pos);
    let ids = index.games(key)?;
    let wanted = ids
        .iter()
        .skip(args.skip)
        .take(args.limit.unwrap_or(usize::MAX));
    if args.pgn {
        for id in wanted {
            super::game::print_text(&index, id)?;
        }
        return Ok(());
    }
    if args.json {
        let document = Document {
            key: key::text(key),
            total: ids.len(),
            games: Games::new(wanted.map(|id| Ok((id, index.header(id)?)))),
        };
        let printed = json::print_long(&document);
        document
            .games
            .failure
            .take()
            .map_or(printed, |err| Err(err.into()))
    } else {
        let mut out = BufWriter::new(io::stdout().lock());
        writeln!(out, "{} games", ids.len()).map_err(super::not_printed)?;
        for id in wanted {
            let line = line(id, &index.header(id)?);
            out.write_all(line.as_bytes()).map_err(super::not_printed)?;
        }
        out.flush().map_err(super::not_printed)
    }
}

/// One game for people.
fn line(id: u32, game: &GameHeader) -> String {
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
struct Document<I: Iterator<Item = polybook::Result<(u32, GameHeader)>>> {
    key: String,
    total: usize,
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

impl<I: Iterator<Item = polybook::Result<(u32, GameHeader)>>> Serialize for Games<I> {
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

/// One game for programs.
#[derive(Serialize)]
struct Game<'a> {
    id: u32,
    white: Cow<'a, str>,
    white_elo: Cow<'a, str>,
    black: Cow<'a, str>,
    black_elo: Cow<'a, str>,
    result: Cow<'a, str>,
    date: Cow<'a, str>,
    event: Cow<'a, str>,
    site: Cow<'a, str>,
    eco: Cow<'a, str>,
    /// -1 for a game without tags.
    offset: i64,
    fen: Cow<'a, str>,
    ply_count: Cow<'a, str>,
    event_date: Cow<'a, str>,
    event_type: Cow<'a, str>,
}

impl<'a> Game<'a> {
    fn new(id: u32, game: &'a GameHeader) -> Game<'a> {
        let offset = game.offset().map(i64::try_from);
        Game {
            id,
            white: game.white(),
            white_elo: game.white_elo(),
            black: game.black(),
            black_elo: game.black_elo(),
            result: game.result(),
            date: game.date(),
            event: game.event(),
            site: game.site(),
            eco: game.eco(),
            offset: offset.map_or(-1, |offset| offset.expect("no file is so large")),
            fen: game.fen(),
            ply_count: game.ply_count(),
            event_date: game.event_date(),
            event_type: game.event_type(),
        }
    }
}

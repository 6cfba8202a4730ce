//! `polybook games`: the games that reached a position.

use std::{
    io::{self, BufWriter, Write},
    path::PathBuf,
};

use polybook::{
    index::{GameHeader, Index},
    position::key,
};
use serde_json::{Value, json};

use super::{json, position::PositionArgs};

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
    let key = key(&pos);
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
        let games: Vec<Value> = wanted
            .map(|id| Ok(document(id, &index.header(id)?)))
            .collect::<polybook::Result<_>>()?;
        return json::print(&json!({
            "key": format!("{key:016x}"),
            "total": ids.len(),
            "games": games,
        }));
    }
    let mut out = BufWriter::new(io::stdout().lock());
    writeln!(out, "{} games", ids.len())?;
    for id in wanted {
        out.write_all(line(id, &index.header(id)?).as_bytes())?;
    }
    out.flush()?;
    Ok(())
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

/// One game for programs.
fn document(id: u32, game: &GameHeader) -> Value {
    json!({
        "id": id,
        "white": game.white(),
        "white_elo": game.white_elo(),
        "black": game.black(),
        "black_elo": game.black_elo(),
        "result": game.result(),
        "date": game.date(),
        "event": game.event(),
        "site": game.site(),
        "eco": game.eco(),
        "offset": game.offset().map_or(json!(-1), |offset| json!(offset)),
        "fen": game.fen(),
        "ply_count": game.ply_count(),
        "event_date": game.event_date(),
        "event_type": game.event_type(),
    })
}

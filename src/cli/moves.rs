//! `polybook moves`: the moves that were played in a position and how they did.

use std::{fmt::Write, path::PathBuf};

use polybook::{
    Error,
    index::{Index, PositionStats},
    position::{self, BookMove},
};
use serde::Serialize;
use shakmaty::{Position, variant::VariantPosition};

use super::{json, key, position::PositionArgs};

/// List the moves played in a position, with the games they led to
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The numbers are those of the position that a move leads to, whatever way the games took there.

Examples:
  polybook moves --leveldb games.idx
  polybook moves --leveldb games.idx --moves \"1. e4 c5\"")]
pub struct Args {
    /// The index, as make-book --leveldb --index-stats made it
    #[arg(long, value_name = "DIR")]
    leveldb: PathBuf,

    #[command(flatten)]
    position: PositionArgs,

    /// Print a JSON document
    #[arg(long)]
    json: bool,
}

/// A move and the statistics of the position behind it.
struct Row {
    mv: BookMove,
    stats: PositionStats,
}

/// The moves of a position, for programs.
#[derive(Serialize)]
struct Document {
    key: String,
    moves: Vec<MoveDocument>,
}

#[derive(Serialize)]
struct MoveDocument {
    uci: String,
    san: Option<String>,
    games: u64,
    white: u64,
    draws: u64,
    black: u64,
}

impl Row {
    fn document(&self, pos: &VariantPosition) -> MoveDocument {
        MoveDocument {
            uci: self.mv.uci(pos),
            san: self.mv.san(pos),
            games: self.stats.games,
            white: self.stats.white_wins(),
            draws: self.stats.draws,
            black: self.stats.black_wins(),
        }
    }
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let index = Index::open(&args.leveldb)?;
    let pos = args.position.position_of(index.variant().only())?;
    let rows = rows(&index, &pos)?;
    if args.json {
        return json::print(&Document {
            key: key::text(position::key(&pos)),
            moves: rows.iter().map(|row| row.document(&pos)).collect(),
        });
    }
    let mut text = String::from("move      games    white    draws    black\n");
    for row in &rows {
        let _ = writeln!(
            text,
            "{:<8} {:>6} {:>8} {:>8} {:>8}",
            row.mv.san(&pos).unwrap_or_else(|| row.mv.to_string()),
            row.stats.games,
            row.stats.white_wins(),
            row.stats.draws,
            row.stats.black_wins()
        );
    }
    super::print(&text)
}

/// The moves, those that lead to most games first.
fn rows(index: &Index, pos: &VariantPosition) -> anyhow::Result<Vec<Row>> {
    let here = index.stats(position::key(pos))?;
    let Some(here) = here else {
        // Any game passes some position, so without statistics anywhere there are none at all.
        if !index.games(position::key(pos))?.is_empty() {
            let problem = "has no statistics: make it with --index-stats";
            return Err(Error::File {
                path: index.path().to_owned(),
                problem: problem.to_owned(),
            }
            .into());
        }
        return Ok(Vec::new());
    };
    let mut rows = Vec::new();
    for mv in here.moves {
        // What is not legal here belongs to another position with the same key.
        let Some(legal) = mv.to_move(pos) else {
            continue;
        };
        let mut next = pos.clone();
        next.play_unchecked(legal);
        let stats = index.stats(position::key(&next))?.unwrap_or_default();
        rows.push(Row { mv, stats });
    }
    rows.sort_by(|a, b| b.stats.games.cmp(&a.stats.games).then(a.mv.cmp(&b.mv)));
    Ok(rows)
}

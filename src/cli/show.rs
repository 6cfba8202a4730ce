//! `polybook show`: what a book or a database has of a position.

use std::{fmt::Write, path::PathBuf};

use polybook::{
    book::{Book, Scaling, Weights},
    obs::{self, Obs},
    position::key,
    tally::Stats,
};
use serde_json::json;
use shakmaty::{EnPassantMode, fen::Fen, variant::VariantPosition};

use super::{
    json,
    position::{PositionArgs, header_variant},
};

/// Print the moves of a book or an OOBS database in a position
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  polybook show book.bin
  polybook show book.bin --moves \"1. e4 c5\"
  polybook show --json book.bin --fen \"rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1\"")]
pub struct Args {
    /// The book, or the OOBS database
    #[arg(value_name = "BOOK")]
    book: PathBuf,

    #[command(flatten)]
    position: PositionArgs,

    /// Print a JSON document
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let shown = if obs::is_database(&args.book)? {
        of_database(args)?
    } else {
        of_book(args)?
    };
    if args.json {
        json::print(&shown.document())
    } else {
        super::print(&shown.table())
    }
}

/// A position and what a book has of it.
struct Shown {
    pos: VariantPosition,
    moves: Vec<ShownMove>,
    /// Whether the moves have games.
    has_games: bool,
}

struct ShownMove {
    uci: String,
    /// `None` if the move is not legal here.
    san: Option<String>,
    weight: u16,
    learn: u32,
    games: Option<Games>,
}

/// What only a database has.
struct Games {
    stats: Stats,
    is_active: bool,
}

fn of_book(args: &Args) -> anyhow::Result<Shown> {
    let book = Book::open(&args.book)?;
    let pos = args.position.position_of(header_variant(&book))?;
    let moves = book.moves_of(&pos)?.map(|entry| ShownMove {
        uci: entry.mv.uci(&pos),
        san: entry.mv.san(&pos),
        weight: entry.weight,
        learn: entry.learn,
        games: None,
    });
    Ok(Shown {
        moves: moves.collect(),
        pos,
        has_games: false,
    })
}

/// The rows of a database, with the weights that the moves would have in a book of all of it.
fn of_database(args: &Args) -> anyhow::Result<Shown> {
    let obs = Obs::open(&args.book)?;
    let pos = args.position.position_of(obs.info().variant.parse().ok())?;
    let rows = obs.moves(&pos)?;
    let weights = Weights::default();
    let scaling = Scaling::new(obs.largest_weight(weights.factors)?);
    let mut moves = Vec::with_capacity(rows.len());
    for row in rows {
        let weight = weights.weight(row.stats);
        let legal = obs::legal_move(&pos, &row.mv);
        moves.push(ShownMove {
            uci: row.mv.clone(),
            san: legal.and_then(|mv| mv.san(&pos)),
            // What is not to be played gets into no book.
            weight: if weight > 0 && row.is_active() {
                scaling.apply(weight)
            } else {
                0
            },
            learn: 0,
            games: Some(Games {
                stats: row.stats,
                is_active: row.is_active(),
            }),
        });
    }
    moves.sort_by_key(|mv| std::cmp::Reverse(mv.weight));
    Ok(Shown {
        pos,
        moves,
        has_games: true,
    })
}

impl Shown {
    /// How often a program that chooses at random plays each move, in percent.
    fn probabilities(&self) -> Vec<f64> {
        let sum: u64 = self.moves.iter().map(|mv| u64::from(mv.weight)).sum();
        self.moves
            .iter()
            .map(|mv| f64::from(mv.weight) * 100.0 / sum.max(1) as f64)
            .collect()
    }

    fn table(&self) -> String {
        if self.moves.is_empty() {
            return "The book has no move here.\n".to_owned();
        }
        let mut text = String::from(if self.has_games {
            "move     uci      wins    draws   losses  weight  percent\n"
        } else {
            "move     uci    weight  percent  learn\n"
        });
        for (mv, percent) in self.moves.iter().zip(self.probabilities()) {
            let san = mv.san.as_deref().unwrap_or("illegal");
            let _ = match &mv.games {
                Some(Games { stats, is_active }) => writeln!(
                    text,
                    "{san:<8} {:<6} {:>6} {:>8} {:>8} {:>7} {percent:>7.2}%{}",
                    mv.uci,
                    stats.wins,
                    stats.draws,
                    stats.losses,
                    mv.weight,
                    if *is_active { "" } else { "  not active" }
                ),
                None => writeln!(
                    text,
                    "{san:<8} {:<6} {:>6} {percent:>7.2}% {:>6}",
                    mv.uci, mv.weight, mv.learn
                ),
            };
        }
        text
    }

    fn document(&self) -> serde_json::Value {
        let moves: Vec<_> = self
            .moves
            .iter()
            .zip(self.probabilities())
            .map(|(mv, percent)| {
                let mut document = json!({
                    "uci": mv.uci,
                    "san": mv.san,
                    "weight": mv.weight,
                    "probability": percent,
                    "learn": mv.learn,
                });
                if let Some(Games { stats, is_active }) = &mv.games {
                    document["wins"] = stats.wins.into();
                    document["draws"] = stats.draws.into();
                    document["losses"] = stats.losses.into();
                    document["active"] = (*is_active).into();
                }
                document
            })
            .collect();
        json!({
            "key": format!("{:016x}", key(&self.pos)),
            "fen": Fen::from_position(&self.pos, EnPassantMode::PseudoLegal).to_string(),
            "moves": moves,
        })
    }
}

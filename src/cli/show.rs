//! `polybook show`: what a book or a database has of a position.

use std::{fmt::Write, path::PathBuf};

use polybook::{
    Error,
    book::{Book, Scaling, Weights, is_book_or_empty},
    obs::{self, Obs},
    position::Variant,
    tally::Stats,
};
use serde::Serialize;
use shakmaty::variant::VariantPosition;

use super::{
    input::InputFile,
    json, key,
    position::PositionArgs,
    variant::{self, refuse_other},
};

/// Print the moves of a book or an OOBS database in a position
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  polybook show book.bin
  polybook show book.bin e4 c5
  polybook show book.bin --moves \"1. e4 c5\"
  polybook show --json book.bin --fen \"rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1\"")]
pub struct Args {
    /// The book, or the OOBS database; - is standard input
    #[arg(value_name = "BOOK")]
    book: PathBuf,

    #[command(flatten)]
    position: PositionArgs,

    /// Print a JSON document
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let file = InputFile::or_index(&args.book)?;
    if file.path().is_dir() {
        let problem = "a directory: polybook moves --leveldb lists the moves of an index";
        return Err(problem_of(&file, problem).into());
    }
    let shown = if obs::is_database(file.path())? {
        of_database(args, &file)?
    } else {
        of_book(args, &file)?
    };
    if args.json {
        json::print(&shown.document)
    } else {
        super::print(&shown.table())
    }
}

/// A position and what a book has of it.
struct Shown {
    document: Document,
    /// Whether the moves have games.
    has_games: bool,
    /// Whether the file has nothing at all.
    is_empty: bool,
}

/// The same for programs.
#[derive(Serialize)]
struct Document {
    /// `None` where only a database has the position.
    key: Option<String>,
    fen: String,
    moves: Vec<ShownMove>,
}

#[derive(Serialize)]
struct ShownMove {
    uci: String,
    /// `None` if the move is not legal here.
    san: Option<String>,
    weight: u16,
    /// How often a program that chooses at random plays the move, in percent.
    probability: f64,
    learn: u32,
    #[serde(flatten)]
    games: Option<Games>,
}

/// What only a database has.
#[derive(Serialize)]
struct Games {
    wins: u64,
    draws: u64,
    losses: u64,
    active: bool,
}

fn problem_of(file: &InputFile, problem: &str) -> Error {
    Error::file(file.path(), problem)
}

fn of_book(args: &Args, file: &InputFile) -> anyhow::Result<Shown> {
    let book = Book::open(file.path())?;
    // Records that are not in order would not be found.
    if file.path().is_file() && !is_book_or_empty(file.path())? {
        let problem = "not a Polyglot book, or a damaged one: its keys are not in order, or it has moves that are none; \
                       polybook verify says more";
        return Err(problem_of(file, problem).into());
    }
    let variant = args.position.variant_of(book.variant());
    let mut own = variant::of_book(&book);
    if own.is_empty() {
        own.push(Variant::Standard.name().to_owned());
    }
    refuse_other(&args.book, &own, variant)?;
    let pos = args.position.position_of(book.variant())?;
    let key = key::book_key(&pos)?;
    let moves = book.moves_of(&pos)?.into_iter().map(|entry| ShownMove {
        uci: entry.mv.uci(&pos),
        san: entry.mv.san(&pos),
        weight: entry.weight,
        probability: 0.0,
        learn: entry.learn,
        games: None,
    });
    Ok(Shown {
        is_empty: book.is_empty(),
        ..Shown::new(&pos, Some(key), moves.collect())
    })
}

/// The rows of a database, with the weights that the moves would have in a book of all of it.
fn of_database(args: &Args, file: &InputFile) -> anyhow::Result<Shown> {
    let obs = Obs::open(file.path())?;
    let own = obs.info().variant.parse().ok();
    let variant = args.position.variant_of(own);
    refuse_other(&args.book, &variant::of_database(&obs), variant)?;
    let pos = args.position.position_of(own)?;
    let rows = obs.moves(&pos)?;
    let weights = Weights::default();
    let scaling = Scaling::new(obs.largest_weight(weights.factors)?);
    let mut moves = Vec::with_capacity(rows.len());
    for row in rows {
        let weight = weights.weight(row.stats);
        let legal = obs::legal_move(&pos, &row.mv);
        let Stats {
            wins,
            draws,
            losses,
        } = row.stats;
        moves.push(ShownMove {
            san: legal.and_then(|mv| mv.san(&pos)),
            // A row that is not active gets into no book.
            weight: if weight > 0 && row.is_active() {
                scaling.apply(weight)
            } else {
                0
            },
            probability: 0.0,
            learn: 0,
            games: Some(Games {
                wins,
                draws,
                losses,
                active: row.is_active(),
            }),
            uci: row.mv,
        });
    }
    moves.sort_by_key(|mv| std::cmp::Reverse(mv.weight));
    let key = key::book_key(&pos).ok();
    Ok(Shown {
        has_games: true,
        ..Shown::new(&pos, key, moves)
    })
}

impl Shown {
    fn new(pos: &VariantPosition, key: Option<String>, mut moves: Vec<ShownMove>) -> Shown {
        let sum: u64 = moves.iter().map(|mv| u64::from(mv.weight)).sum();
        for mv in &mut moves {
            mv.probability = f64::from(mv.weight) * 100.0 / sum.max(1) as f64;
        }
        Shown {
            document: Document {
                key,
                fen: polybook::position::fen_of(pos),
                moves,
            },
            has_games: false,
            is_empty: false,
        }
    }

    fn table(&self) -> String {
        let moves = &self.document.moves;
        if self.is_empty {
            return "The file is empty.\n".to_owned();
        }
        if moves.is_empty() {
            return "The book has no move here.\n".to_owned();
        }
        let mut text = String::from(if self.has_games {
            "move     uci      wins    draws   losses  weight  percent\n"
        } else {
            "move     uci    weight  percent  learn\n"
        });
        for mv in moves {
            let san = mv.san.as_deref().unwrap_or("illegal");
            let percent = mv.probability;
            let _ = match &mv.games {
                Some(games) => writeln!(
                    text,
                    "{san:<8} {:<6} {:>6} {:>8} {:>8} {:>7} {percent:>7.2}%{}",
                    mv.uci,
                    games.wins,
                    games.draws,
                    games.losses,
                    mv.weight,
                    if games.active { "" } else { "  not active" }
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
}

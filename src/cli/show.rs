//! `polybook show`: what a book plays in a position.

use std::{fmt::Write, path::PathBuf};

use polybook::{
    book::{Book, Entry},
    position::key,
};
use serde_json::json;
use shakmaty::{EnPassantMode, fen::Fen, variant::VariantPosition};

use super::{json, position::PositionArgs};

/// Print the moves of a book in a position
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  polybook show book.bin
  polybook show book.bin --moves \"1. e4 c5\"
  polybook show --json book.bin --fen \"rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1\"")]
pub struct Args {
    /// The book
    #[arg(value_name = "BOOK")]
    book: PathBuf,

    #[command(flatten)]
    position: PositionArgs,

    /// Print a JSON document
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let pos = args.position.position()?;
    let book = Book::open(&args.book)?;
    let entries: Vec<Entry> = book.moves_of(&pos).collect();
    if args.json {
        json::print(&document(&pos, &entries))
    } else {
        super::print(&table(&pos, &entries))
    }
}

/// How often a program that chooses at random plays each move, in percent.
fn probabilities(entries: &[Entry]) -> Vec<f64> {
    let sum: u64 = entries.iter().map(|entry| u64::from(entry.weight)).sum();
    entries
        .iter()
        .map(|entry| f64::from(entry.weight) * 100.0 / sum.max(1) as f64)
        .collect()
}

fn table(pos: &VariantPosition, entries: &[Entry]) -> String {
    if entries.is_empty() {
        return "The book has no move here.\n".to_owned();
    }
    let mut text = String::from("move     uci    weight  percent  learn\n");
    for (entry, percent) in entries.iter().zip(probabilities(entries)) {
        let san = entry.mv.san(pos);
        let _ = writeln!(
            text,
            "{:<8} {:<6} {:>6} {:>7.2}% {:>6}",
            san.as_deref().unwrap_or("illegal"),
            entry.mv.uci(pos),
            entry.weight,
            percent,
            entry.learn
        );
    }
    text
}

fn document(pos: &VariantPosition, entries: &[Entry]) -> serde_json::Value {
    let moves: Vec<_> = entries
        .iter()
        .zip(probabilities(entries))
        .map(|(entry, percent)| {
            json!({
                "uci": entry.mv.uci(pos),
                "san": entry.mv.san(pos),
                "weight": entry.weight,
                "probability": percent,
                "learn": entry.learn,
            })
        })
        .collect();
    json!({
        "key": format!("{:016x}", key(pos)),
        "fen": Fen::from_position(pos, EnPassantMode::PseudoLegal).to_string(),
        "moves": moves,
    })
}

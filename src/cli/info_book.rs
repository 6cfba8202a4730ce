//! `polybook info-book`: how many lines and positions a book has.

use std::path::PathBuf;

use polybook::book::{Book, lines};
use serde_json::json;

use super::{dump_book::IN_MEMORY, json};

/// Count the lines and positions of a book
#[derive(clap::Args, Debug)]
#[command(after_help = "\
A line goes from the starting position, with one side's moves from the book and every reply after which
the book knows a move, to where the book ends or a position comes again. Positions on no line of either
side are isolated. With --exact, positions are told apart that one side can reach by moves outside the
book; as polyglot counts them, which misses a few.

Examples:
  polybook info-book --bin book.bin
  polybook info-book -bin book.bin -exact")]
pub struct Args {
    /// The book
    #[arg(long, value_name = "FILE", default_value = "book.bin")]
    bin: PathBuf,

    /// Also count what is reached by any moves of one's own
    #[arg(long)]
    exact: bool,

    /// Print a JSON document
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let book = Book::open_within(&args.bin, IN_MEMORY)?;
    let lines = lines::count(&book)?;
    let reachable = args.exact.then(|| lines::reachable(&book)).transpose()?;
    let found = reachable.map_or(
        (lines.white_positions, lines.black_positions),
        |reachable| (reachable.white, reachable.black),
    );
    let isolated = lines.positions as i64 - found.0 as i64 - found.1 as i64;
    if args.json {
        let mut document = json!({
            "white_lines": lines.white,
            "black_lines": lines.black,
            "white_positions": lines.white_positions,
            "black_positions": lines.black_positions,
        });
        if reachable.is_some() {
            document["unreachable_white"] = json!(found.0 as i64 - lines.white_positions as i64);
            document["unreachable_black"] = json!(found.1 as i64 - lines.black_positions as i64);
        }
        document["isolated"] = json!(isolated);
        return json::print(&document);
    }
    let mut rows = vec![
        ("Lines for white", lines.white as i64),
        ("Lines for black", lines.black as i64),
        ("Positions on lines for white", lines.white_positions as i64),
        ("Positions on lines for black", lines.black_positions as i64),
    ];
    if reachable.is_some() {
        rows.push((
            "Unreachable white positions(?)",
            found.0 as i64 - lines.white_positions as i64,
        ));
        rows.push((
            "Unreachable black positions(?)",
            found.1 as i64 - lines.black_positions as i64,
        ));
    }
    rows.push(("Isolated positions", isolated));
    let text: String = rows
        .iter()
        .map(|(name, number)| format!("{name:<31}: {number:>8}\n"))
        .collect();
    super::print(&text)
}

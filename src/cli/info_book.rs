//! `polybook info-book`: how many lines and positions a book has.

use std::{path::PathBuf, sync::Arc};

use polybook::book::{Book, lines};
use serde::Serialize;

use super::{
    Context,
    input::{IN_MEMORY, InputFile},
    json,
    progress::Bar,
};

/// Count the lines and positions of a book
#[derive(clap::Args, Debug)]
#[command(after_help = "\
A line starts at the starting position. It has one side's moves from the book and every reply that the
book answers, and ends where the book ends or a position repeats. Positions on no line of either side are
isolated. --exact also counts positions that one side can reach by moves outside the book, as
polyglot counts them, which misses a few. As in polyglot, castling counts only as king takes rook.

Examples:
  polybook info-book --bin book.bin
  polybook info-book -bin book.bin -exact")]
pub struct Args {
    /// The book; - is standard input
    #[arg(long, value_name = "FILE", default_value = "book.bin")]
    bin: PathBuf,

    /// Also count positions that a side can reach by moves outside the book
    #[arg(long)]
    exact: bool,

    /// Print a JSON document
    #[arg(long)]
    json: bool,
}

/// The numbers of a book, for programs.
#[derive(Serialize)]
struct Document {
    white_lines: u64,
    black_lines: u64,
    white_positions: u64,
    black_positions: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    unreachable_white: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unreachable_black: Option<i64>,
    isolated: i64,
}

pub fn run(args: &Args, context: Context) -> anyhow::Result<()> {
    let document = counted(args, context)?;
    if args.json {
        json::print(&document)
    } else {
        super::print(&document.table())
    }
}

fn counted(args: &Args, context: Context) -> anyhow::Result<Document> {
    let file = InputFile::of(&args.bin)?;
    let meter = Arc::default();
    let _bar = Bar::of_phase("counting lines", &meter, context);
    let book = Book::open_within(file.path(), IN_MEMORY)?;
    let lines = lines::count(&book, &meter)?;
    let signed = |number: u64| i64::try_from(number).expect("a book has fewer positions");
    let (white, black) = (signed(lines.white_positions), signed(lines.black_positions));
    let reachable = args
        .exact
        .then(|| lines::reachable(&book, &meter))
        .transpose()?;
    let exact = reachable.map(|reachable| (signed(reachable.white), signed(reachable.black)));
    let found = exact.unwrap_or((white, black));
    Ok(Document {
        white_lines: lines.white,
        black_lines: lines.black,
        white_positions: lines.white_positions,
        black_positions: lines.black_positions,
        unreachable_white: exact.map(|exact| exact.0 - white),
        unreachable_black: exact.map(|exact| exact.1 - black),
        isolated: signed(lines.positions) - found.0 - found.1,
    })
}

impl Document {
    /// The lines that polyglot prints.
    fn table(&self) -> String {
        let mut rows = vec![
            ("Lines for white", self.white_lines.to_string()),
            ("Lines for black", self.black_lines.to_string()),
            (
                "Positions on lines for white",
                self.white_positions.to_string(),
            ),
            (
                "Positions on lines for black",
                self.black_positions.to_string(),
            ),
        ];
        if let Some(unreachable) = self.unreachable_white {
            rows.push(("Unreachable white positions(?)", unreachable.to_string()));
        }
        if let Some(unreachable) = self.unreachable_black {
            rows.push(("Unreachable black positions(?)", unreachable.to_string()));
        }
        rows.push(("Isolated positions", self.isolated.to_string()));
        rows.iter()
            .map(|(name, number)| format!("{name:<31}: {number:>8}\n"))
            .collect()
    }
}

//! `polybook info-book`: how many lines and positions a book has.

use std::path::PathBuf;

use polybook::book::{Book, lines};
use serde_json::{Value, json};

use super::{
    Context,
    input::{IN_MEMORY, file_of},
    terminal::{print, print_json},
};

/// Count the lines and positions of a book
#[derive(clap::Args, Debug)]
#[command(after_help = "\
A line starts at the starting position. It has one side's moves from the book and every reply that the
book answers, and ends where the book ends or a position repeats. An isolated position is on no line of
either side. --exact also counts positions that one side can reach by moves outside the book, as
polyglot counts them, which misses a few. As in polyglot, castling counts only if the book writes it as the king's
move to the square of its rook, such as e1h1.

Examples:
  polybook info-book book.bin
  polybook info-book -bin book.bin -exact")]
pub struct Args {
    /// The book; - is standard input [default: book.bin]
    #[arg(value_name = "BOOK", conflicts_with = "bin")]
    book: Option<PathBuf>,

    /// The same, as polyglot has it
    #[arg(
        long,
        value_name = "FILE",
        default_value = "book.bin",
        hide_default_value = true
    )]
    bin: PathBuf,

    /// Also count positions that a side can reach by moves outside the book
    #[arg(long)]
    exact: bool,

    /// Print a JSON document
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args, context: Context) -> anyhow::Result<()> {
    let file = file_of(args.book.as_ref().unwrap_or(&args.bin))?;
    let (lines, reachable) = context.show_progress("counting lines", |meter| {
        let book = Book::open_within(file, IN_MEMORY)?;
        let lines = lines::count(&book, meter)?;
        let reachable = args.exact.then(|| lines::reachable(&book, meter));
        anyhow::Ok((lines, reachable.transpose()?))
    })?;
    let signed = |number: u64| i64::try_from(number).expect("a book has fewer positions");
    let on_lines = [lines.white_positions, lines.black_positions].map(signed);
    let exact = reachable.map(|reachable| [reachable.white, reachable.black].map(signed));
    let unreachable = exact.map(|[white, black]| [white - on_lines[0], black - on_lines[1]]);
    let found: i64 = exact.unwrap_or(on_lines).iter().sum();
    // For programs and for people, who read the lines that polyglot prints.
    let mut numbers = vec![
        ("white_lines", "Lines for white", json!(lines.white)),
        ("black_lines", "Lines for black", json!(lines.black)),
        (
            "white_positions",
            "Positions on lines for white",
            json!(lines.white_positions),
        ),
        (
            "black_positions",
            "Positions on lines for black",
            json!(lines.black_positions),
        ),
    ];
    if let Some([white, black]) = unreachable {
        let text = "Unreachable white positions(?)";
        numbers.push(("unreachable_white", text, json!(white)));
        let text = "Unreachable black positions(?)";
        numbers.push(("unreachable_black", text, json!(black)));
    }
    let isolated = signed(lines.positions) - found;
    numbers.push(("isolated", "Isolated positions", json!(isolated)));
    if args.json {
        let fields = numbers.iter();
        let fields = fields.map(|(key, _, number)| ((*key).to_owned(), number.clone()));
        return print_json(&Value::Object(fields.collect()));
    }
    let rows = numbers.iter();
    let rows = rows.map(|(_, name, number)| format!("{name:<31}: {:>8}\n", number.to_string()));
    print(&rows.collect::<String>())
}

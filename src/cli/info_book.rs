//! `polybook info-book`: counts the lines and positions of a book.

use polybook::book::{Book, lines};
use serde_json::Value;

use super::{
    Context,
    input::{BookArg, file_of, in_memory},
    resources::MemoryArgs,
    terminal::{print, print_json},
};

/// Count the lines and positions of a book
#[derive(clap::Args, Debug)]
#[command(after_help = "\
A line starts at the starting position. For one side, it contains moves of the book; for the other side, it contains each
reply that the book answers. It ends where the book has no more moves, or where a position repeats. An isolated position
is a position on no line of either side. With --exact, positions that one side can reach by moves outside the book are
counted too; polyglot's -exact misses a few of them. As in polyglot, castling is recognized only if the
book stores it as the king's move to the square of its rook, such as e1h1.

Examples:
  polybook info-book book.bin
  polybook info-book -bin book.bin -exact")]
pub struct Args {
    #[command(flatten)]
    book: BookArg,

    /// Also count the positions that can be reached only if one side plays moves that the book does not contain
    #[arg(long)]
    exact: bool,

    #[command(flatten)]
    memory: MemoryArgs,

    /// Print the answer as a JSON document
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args, context: Context) -> anyhow::Result<()> {
    let file = file_of(args.book.path())?;
    let (lines, reachable) = context.show_progress("counting lines", |meter| {
        let memory = args.memory.memory();
        let book = Book::open_within(file, in_memory(&memory))?;
        let lines = lines::count(&book, &memory, meter)?;
        let reachable = args.exact.then(|| lines::reachable(&book, &memory, meter));
        anyhow::Ok((lines, reachable.transpose()?))
    })?;
    let signed = |number: u64| i64::try_from(number).expect("a book has fewer positions");
    let [white, black] = [lines.white_positions, lines.black_positions].map(signed);
    // Each number has a name for JSON and the label that polyglot prints.
    let mut numbers = vec![
        ("white_lines", "Lines for white", signed(lines.white)),
        ("black_lines", "Lines for black", signed(lines.black)),
        ("white_positions", "Positions on lines for white", white),
        ("black_positions", "Positions on lines for black", black),
    ];
    let mut isolated = signed(lines.positions) - white - black;
    if let Some(reachable) = reachable {
        let (white, black) = (
            signed(reachable.white) - white,
            signed(reachable.black) - black,
        );
        numbers.push(("unreachable_white", "Unreachable white positions(?)", white));
        numbers.push(("unreachable_black", "Unreachable black positions(?)", black));
        isolated -= white + black;
    }
    numbers.push(("isolated", "Isolated positions", isolated));
    if args.json {
        let fields = numbers.iter();
        let fields = fields.map(|(key, _, number)| ((*key).to_owned(), Value::from(*number)));
        return print_json(&Value::Object(fields.collect()));
    }
    let rows = numbers.iter();
    let rows = rows.map(|(_, name, number)| format!("{name:<31}: {number:>8}\n"));
    print(&rows.collect::<String>())
}

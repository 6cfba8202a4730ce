//! `polybook dump-book`: writes the lines of a book as text.

use std::{io::Write, path::PathBuf};

use anyhow::Context as _;
use polybook::{
    book::{Book, lines},
    position::Variant,
    progress::Meter,
    storage::output::{BufferedFile, begin_text, is_standard_output},
};
use shakmaty::Color;

use super::{
    Context,
    input::{self, BookArg, MAX_SIZE_IN_MEMORY, check_output, file_of},
    position::{self, of_book},
};

/// Write the lines of a book as text, from the view of one side
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The moves of the chosen side are in the order of the book, each with the percentage of its weight. The moves of the opponent
are in alphabetical order of their UCI notation. A line ends where the book has no more moves. It ends with {cycle} if it
repeats a position, and with {trans} if an earlier line contains the position. As in polyglot, castling is recognized only
if the book stores it as the king's move to the square of its rook, such as e1h1.

Examples:
  polybook dump-book book.bin --color white               writes book_white.txt
  polybook dump-book book.bin --color black --out -       to standard output")]
pub struct Args {
    #[command(flatten)]
    book: BookArg,

    /// Write the lines in which this side plays only moves of the book
    #[arg(long, alias = "colour", ignore_case = true, value_parser = position::color())]
    color: Color,

    /// Use the rules of this variant [default: the variant of the book's header]
    #[arg(long, value_name = "NAME", value_parser = position::variant())]
    variant: Option<Variant>,

    /// Write the lines to this file; - is standard output [default: book_white.txt or book_black.txt]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Replace an existing file
    #[arg(long)]
    force: bool,
}

/// The text with which the output of `dump-book` begins, before the name of the book.
const TITLE: &str = "Dump of \"";

pub fn run(args: &Args, context: Context) -> anyhow::Result<()> {
    let name = args.color.to_string();
    let out = match &args.out {
        Some(out) => out.clone(),
        None => PathBuf::from(format!("book_{name}.txt")),
    };
    let argument = args.book.path();
    check_output(&out, &[argument], false)?;
    let mut text = BufferedFile::new(begin_text(&out, args.force)?);
    let book = Book::open_within(file_of(argument)?, MAX_SIZE_IN_MEMORY)?;
    let variant = of_book(argument, &book, args.variant)?;
    context.show_progress("writing lines", |meter| {
        write(args, &book, variant, &mut text, meter)
    })?;
    text.commit()?;
    // If the lines go to standard output, no summary is printed.
    if !is_standard_output(&out) {
        context.say(&format!("{}: lines for {name}\n", out.display()));
    }
    Ok(())
}

fn write(
    args: &Args,
    book: &Book,
    variant: Variant,
    text: &mut BufferedFile,
    meter: &Meter,
) -> anyhow::Result<()> {
    let target = text.target().to_owned();
    let (name, color) = (input::name(args.book.path()), args.color);
    writeln!(text, "{TITLE}{name}\" for {color}.")
        .with_context(|| format!("cannot write {}", target.display()))?;
    let start = variant.start();
    Ok(lines::write(book, color, start, text, &target, meter)?)
}

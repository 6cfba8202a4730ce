//! `polybook dump-book`: the lines of a book as text.

use std::{
    io::{BufWriter, Write},
    path::PathBuf,
};

use polybook::{
    book::{Book, lines},
    output::AtomicFile,
    position::Variant,
};
use shakmaty::Color;

use super::{Context, position::header_variant};

/// Books up to so many bytes are read into memory, where positions are found fastest.
pub const IN_MEMORY: u64 = 1 << 29;

/// Write the lines of a book for one side as text
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The side's moves come in the order of the book, with how often each would be chosen; the opponent's in
the order of their UCI text. A line ends where the book does, in a {cycle} to an earlier position of
its own, or in a {trans}position to a line above.

Examples:
  polybook dump-book --bin book.bin --color white               writes book_white.txt
  polybook dump-book --bin book.bin --color black --out -       to standard output")]
pub struct Args {
    /// The book
    #[arg(long, value_name = "FILE", default_value = "book.bin")]
    bin: PathBuf,

    /// The side whose moves come from the book
    #[arg(long, value_enum, alias = "colour")]
    color: ColorArg,

    /// Play by the rules of this variant [default: the one that the book's header names]
    #[arg(long, value_name = "NAME")]
    variant: Option<Variant>,

    /// Where to write the lines; - is standard output [default: book_white.txt or book_black.txt]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Copy, Clone, PartialEq, Eq, clap::ValueEnum, Debug)]
enum ColorArg {
    White,
    Black,
}

pub fn run(args: &Args, context: Context) -> anyhow::Result<()> {
    let (color, name) = match args.color {
        ColorArg::White => (Color::White, "white"),
        ColorArg::Black => (Color::Black, "black"),
    };
    let book = Book::open_within(&args.bin, IN_MEMORY)?;
    let start = args
        .variant
        .or(header_variant(&book))
        .unwrap_or_default()
        .start();
    let title = format!("Dump of \"{}\" for {name}.\n", args.bin.display());
    let out = match &args.out {
        Some(out) => out.clone(),
        None => PathBuf::from(format!("book_{name}.txt")),
    };
    if out.as_os_str() == "-" {
        let mut stdout = BufWriter::new(std::io::stdout().lock());
        stdout.write_all(title.as_bytes())?;
        return lines::write(&book, color, start, stdout).map_err(|err| match err {
            lines::DumpError::Book(err) => err.into(),
            lines::DumpError::Write(err) => err.into(),
        });
    }
    let mut file = AtomicFile::create(&out)?;
    let mut writer = BufWriter::with_capacity(1 << 16, &mut file);
    writer
        .write_all(title.as_bytes())
        .map_err(lines::DumpError::from)
        .and_then(|()| lines::write(&book, color, start, &mut writer))
        .map_err(|err| match err {
            lines::DumpError::Book(err) => anyhow::Error::from(err),
            lines::DumpError::Write(err) => {
                anyhow::Error::from(err).context(format!("{}: cannot write it", out.display()))
            }
        })?;
    drop(writer);
    file.commit()?;
    if !context.quiet {
        eprintln!("{}: lines for {name}", out.display());
    }
    Ok(())
}

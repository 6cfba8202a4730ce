//! `polybook dump-book`: the lines of a book as text.

use std::{
    fs::File,
    io::{self, BufWriter, Read, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    Context,
    color::ColorArg,
    input::{self, IN_MEMORY, InputFile},
    progress::Bar,
    variant::{self, refuse_other},
};
use polybook::{
    book::{Book, lines},
    output::{AtomicFile, refuse_clashes},
    position::Variant,
    progress::Meter,
};

/// Write the lines of a book for one side as text
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The side's moves are in the order of the book, with how often each is played; the opponent's are in
the order of their UCI text. A line ends where the book ends, in a {cycle} to an earlier position of its
own, or in a {trans}position to a line above. As in polyglot, castling counts only as king takes rook.

Examples:
  polybook dump-book --bin book.bin --color white               writes book_white.txt
  polybook dump-book --bin book.bin --color black --out -       to standard output")]
pub struct Args {
    /// The book; - is standard input
    #[arg(long, value_name = "FILE", default_value = "book.bin")]
    bin: PathBuf,

    /// The side whose repertoire is written
    #[arg(long, value_enum, alias = "colour")]
    color: ColorArg,

    /// Use the rules of this variant [default: the variant of the book's header]
    #[arg(long, value_name = "NAME", value_parser = super::variant::name())]
    variant: Option<Variant>,

    /// Where to write the lines; - is standard output [default: book_white.txt or book_black.txt]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// What the text begins with.
const TITLE: &str = "Dump of \"";

pub fn run(args: &Args, context: Context) -> anyhow::Result<()> {
    let name = args.color.name();
    let out = match &args.out {
        Some(out) => out.clone(),
        None => PathBuf::from(format!("book_{name}.txt")),
    };
    let file = InputFile::of(&args.bin)?;
    refuse_clashes(&[&out], &[file.path()])?;
    let book = Book::open_within(file.path(), IN_MEMORY)?;
    let variant = args.variant.or(book.variant()).unwrap_or_default();
    refuse_other(&args.bin, &variant::of_book(&book), variant)?;
    let mut text = AtomicFile::create_over(&out, check_replaceable)?;
    let meter = Arc::default();
    let bar = Bar::of_phase("writing lines", &meter, context);
    write(args, &book, variant, &mut text, &meter)?;
    drop(bar);
    text.commit()?;
    // Lines on standard output need no message after them.
    if out != Path::new("-") {
        context.say(&format!("{}: lines for {name}\n", out.display()));
    }
    Ok(())
}

/// Refuses to replace a text that is not a dump of a book.
fn check_replaceable(path: &Path) -> polybook::Result<()> {
    let problem = "not the lines of a book: remove it, or name another file";
    let foreign = |_| polybook::Error::file(path, problem);
    let mut start = Vec::new();
    let size = TITLE.len() as u64;
    File::open(path)
        .and_then(|file| file.take(size).read_to_end(&mut start))
        .map_err(foreign)?;
    if start.is_empty() || start == TITLE.as_bytes() {
        Ok(())
    } else {
        Err(foreign(io::ErrorKind::AlreadyExists.into()))
    }
}

fn write(
    args: &Args,
    book: &Book,
    variant: Variant,
    text: &mut AtomicFile,
    meter: &Meter,
) -> anyhow::Result<()> {
    let color = args.color.into();
    let target = text.target().display().to_string();
    let mut writer = BufWriter::with_capacity(1 << 16, text);
    let written = writeln!(
        writer,
        "{TITLE}{}\" for {}.",
        input::name(&args.bin),
        args.color.name()
    )
    .map_err(lines::DumpError::from)
    .and_then(|()| lines::write(book, color, variant.start(), &mut writer, meter))
    .and_then(|()| Ok(writer.flush()?));
    written.map_err(|err| match err {
        lines::DumpError::Book(err) => err.into(),
        lines::DumpError::Write(err) => {
            anyhow::Error::from(err).context(format!("cannot write {target}"))
        }
    })
}

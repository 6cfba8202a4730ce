//! `polybook filter`: part of a book.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use polybook::{
    book::{Book, Filter, filter_books},
    output::refuse_clashes,
    position::Variant,
};
use serde::Serialize;

use super::{
    Context,
    counted::counted,
    input::{self, InputFile},
    json,
    progress::Bar,
    resources::MemoryArgs,
    usage::Usage,
    variant::{self, refuse_other},
    weighting::percent,
};

/// Keep part of a book, or of several
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Several books are merged first, as by merge-book. With --reachable or --max-ply, positions that only
dropped moves led to are dropped too. Castling spelled e1g1 and castling spelled e1h1 are two moves
here.

Examples:
  polybook filter book.bin --out narrow.bin --min-share 10 --best 3
  polybook filter book.bin --out short.bin --max-ply 16
  polybook filter white.bin black.bin --out both.bin --reachable
  polybook filter book.bin --out - --min-weight 5 | polybook show -")]
pub struct Args {
    /// The books; - is standard input
    #[arg(value_name = "BOOK", required = true)]
    books: Vec<PathBuf>,

    /// The book to write; - is standard output
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    /// Keep moves of at least this weight
    #[arg(long, value_name = "N", default_value_t = 0)]
    min_weight: u16,

    /// Keep moves with at least P percent of the weights of their position
    #[arg(long, value_name = "P", default_value_t = 0.0, value_parser = percent)]
    min_share: f64,

    /// Keep the N heaviest moves of each position
    #[arg(long, value_name = "N")]
    best: Option<usize>,

    /// Keep positions that lines reach in fewer than N half-moves
    #[arg(long, value_name = "N")]
    max_ply: Option<u16>,

    /// Keep positions on the lines of White or Black from the starting position
    #[arg(long)]
    reachable: bool,

    /// Scale the weights of each position so that the largest is 65535
    #[arg(long)]
    normalize: bool,

    /// Lines start as in this variant [default: the variant of the first book]
    #[arg(long, value_name = "NAME", value_parser = super::variant::name())]
    variant: Option<Variant>,

    /// Print a JSON document
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    memory: MemoryArgs,
}

/// What was done, for programs.
#[derive(Serialize)]
struct Document {
    path: String,
    /// Records and positions written.
    entries: u64,
    positions: u64,
    /// Records read.
    read: u64,
}

pub fn run(args: &Args, context: Context) -> anyhow::Result<()> {
    let files = args
        .books
        .iter()
        .map(|book| InputFile::of(book))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let paths: Vec<PathBuf> = files.iter().map(|file| file.path().to_owned()).collect();
    let inputs: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    refuse_clashes(&[&args.out], &inputs)?;
    input::refuse_document_beside(args.json, &args.out)?;
    if let Some(asked) = args.variant {
        if !args.reachable && args.max_ply.is_none() {
            let usage = "--variant is for --reachable and --max-ply";
            return Err(Usage(usage.to_owned()).into());
        }
        for (argument, path) in args.books.iter().zip(&paths) {
            refuse_other(argument, &variant::of_book(&Book::open(path)?), asked)?;
        }
    }
    let filter = Filter {
        min_weight: args.min_weight,
        min_share: args.min_share,
        best: args.best,
        max_ply: args.max_ply,
        reachable: args.reachable,
        normalize: args.normalize,
    };
    let memory = args.memory.memory();
    let meter = Arc::default();
    let bar = Bar::of_phase("filtering", &meter, context);
    let summary = filter_books(&paths, &args.out, &filter, args.variant, &memory, &meter)?;
    drop(bar);
    let path = input::output_name(&args.out);
    context.say(&format!(
        "{path}: {} of {}, {}\n",
        counted(summary.written, "entry"),
        summary.read,
        counted(summary.positions, "position")
    ));
    if args.json {
        json::print(&Document {
            path,
            entries: summary.written,
            positions: summary.positions,
            read: summary.read,
        })?;
    }
    Ok(())
}

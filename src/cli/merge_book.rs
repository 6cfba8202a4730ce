//! `polybook merge-book`: one book of several.

use std::path::PathBuf;

use polybook::book::{MergePolicy, merge};

use super::{Context, errors::Usage};

/// Merge Polyglot books
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  polybook merge-book white.bin black.bin --out both.bin
  polybook merge-book --policy first mine.bin theirs.bin --out book.bin
  polybook merge-book -in1 a.bin -in2 b.bin -out c.bin        the spelling of old scripts")]
pub struct Args {
    /// The books, the most trusted first
    #[arg(value_name = "BOOK")]
    books: Vec<PathBuf>,

    /// The first book
    #[arg(long, value_name = "FILE")]
    in1: Option<PathBuf>,

    /// The second book
    #[arg(long, value_name = "FILE")]
    in2: Option<PathBuf>,

    /// The merged book
    #[arg(long, value_name = "FILE", default_value = "out.bin")]
    out: PathBuf,

    /// In a position that several books know: add the weights up, or take the first book's moves
    #[arg(long, value_enum, default_value_t = PolicyArg::Sum)]
    policy: PolicyArg,
}

#[derive(Copy, Clone, clap::ValueEnum, Debug)]
enum PolicyArg {
    Sum,
    First,
}

pub fn run(args: Args, context: Context) -> anyhow::Result<()> {
    let books: Vec<PathBuf> = args
        .in1
        .into_iter()
        .chain(args.in2)
        .chain(args.books)
        .collect();
    if books.is_empty() {
        return Err(Usage("no book given: name the books to merge".to_owned()).into());
    }
    let policy = match args.policy {
        PolicyArg::Sum => MergePolicy::Sum,
        PolicyArg::First => MergePolicy::First,
    };
    let summary = merge(&books, &args.out, policy)?;
    if !context.quiet {
        eprintln!(
            "{}: {} entries of {}, {} positions scaled down",
            args.out.display(),
            summary.written,
            summary.read,
            summary.scaled
        );
    }
    Ok(())
}

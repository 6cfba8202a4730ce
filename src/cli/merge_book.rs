//! `polybook merge-book`: one book of several, or one database.

use std::{
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
};

use polybook::{
    book::{self, MergePolicy},
    obs::{self, Obs, ObsWriter},
};

use super::{Context, errors::Usage};

/// Merge Polyglot books, or OOBS databases
#[derive(clap::Args, Debug)]
#[command(after_help = "\
OOBS databases add up exactly: the result is the database of all their games. Books do not, because
their weights are scaled and moves played less often than --min-game are gone.

Examples:
  polybook merge-book white.bin black.bin --out both.bin
  polybook merge-book --policy first mine.bin theirs.bin --out book.bin
  polybook merge-book 2023.obs.db3 2024.obs.db3 --out all.obs.db3
  polybook merge-book -in1 a.bin -in2 b.bin -out c.bin        the spelling of old scripts")]
pub struct Args {
    /// The books or databases, the most trusted first
    #[arg(value_name = "BOOK")]
    books: Vec<PathBuf>,

    /// The first book
    #[arg(long, value_name = "FILE")]
    in1: Option<PathBuf>,

    /// The second book
    #[arg(long, value_name = "FILE")]
    in2: Option<PathBuf>,

    /// The merged book [default: out.bin, or out.obs.db3 for databases]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// In a position that several books know: add the weights up, or take the first book's moves
    #[arg(long, value_enum, default_value_t = PolicyArg::Sum)]
    policy: PolicyArg,
}

#[derive(Copy, Clone, PartialEq, Eq, clap::ValueEnum, Debug)]
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
    let mut databases = 0;
    for book in &books {
        databases += usize::from(obs::is_database(book)?);
    }
    if databases == 0 {
        let out = args.out.unwrap_or_else(|| "out.bin".into());
        merge_books(&books, &out, args.policy, context)
    } else if databases < books.len() {
        let usage = "some of these are Polyglot books and some OOBS databases: merge books with books and databases with \
                     databases (polybook convert makes a book of a database)";
        Err(Usage(usage.to_owned()).into())
    } else if args.policy == PolicyArg::First {
        let usage = "--policy first is for Polyglot books: databases add up";
        Err(Usage(usage.to_owned()).into())
    } else {
        let out = args.out.unwrap_or_else(|| "out.obs.db3".into());
        merge_databases(&books, out, context)
    }
}

fn merge_books(
    books: &[PathBuf],
    out: &Path,
    policy: PolicyArg,
    context: Context,
) -> anyhow::Result<()> {
    let policy = match policy {
        PolicyArg::Sum => MergePolicy::Sum,
        PolicyArg::First => MergePolicy::First,
    };
    let summary = book::merge_books(books, out, policy)?;
    if !context.quiet {
        eprintln!(
            "{}: {} entries of {}, {} positions scaled down",
            out.display(),
            summary.written,
            summary.read,
            summary.scaled
        );
    }
    Ok(())
}

fn merge_databases(paths: &[PathBuf], out: PathBuf, context: Context) -> anyhow::Result<()> {
    let writer = ObsWriter::create(&out, |_| Ok(()))?;
    let never = AtomicBool::new(false);
    let (merged, database) = obs::merge_databases(paths, writer, &std::env::temp_dir(), &never)?;
    database.commit()?;
    if !context.quiet {
        for path in &merged.repeated {
            eprintln!(
                "warning: {}: named twice, so its games count twice",
                path.display()
            );
        }
        if let Some(example) = &merged.passed_over.example {
            let rows = merged.passed_over.rows;
            eprintln!(
                "warning: {}: {rows} rows passed over: {example}",
                out.display()
            );
        }
        for path in paths {
            let selection = Obs::open(path)?.info().selection.clone();
            let missing = selection.option_text();
            if selection.min_game > 1 || selection.min_score > 0.0 || selection.only.is_some() {
                eprintln!(
                    "warning: {}: made with {}, so moves may be missing from the sum",
                    path.display(),
                    if missing.is_empty() {
                        "--min-game 3"
                    } else {
                        &missing
                    }
                );
            }
        }
        eprintln!("{}: {} rows", out.display(), merged.rows);
    }
    Ok(())
}

//! `polybook merge-book`: one book of several, or one database.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
};

use polybook::{
    book::{self, MergePolicy},
    obs::{self, Obs, ObsWriter},
    output::{refuse_clashes, repeated},
    tally::Memory,
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
};

/// Merge Polyglot books, or OOBS databases
#[derive(clap::Args, Debug)]
#[command(after_help = "\
OOBS databases add exactly: the result is the database of all their games. Books do not, because
their weights are scaled and they lack moves below --min-game. Castling that one book spells e1g1 and
another e1h1 stays two moves.

Examples:
  polybook merge-book white.bin black.bin --out both.bin
  polybook merge-book --policy first mine.bin theirs.bin --out book.bin
  polybook merge-book 2023.obs.db3 2024.obs.db3 --out all.obs.db3
  polybook merge-book -in1 a.bin -in2 b.bin -out c.bin        the spelling of old scripts")]
pub struct Args {
    /// The books or databases, the most trusted first; - is standard input
    #[arg(value_name = "BOOK")]
    books: Vec<PathBuf>,

    /// The first book
    #[arg(long, value_name = "FILE")]
    in1: Option<PathBuf>,

    /// The second book
    #[arg(long, value_name = "FILE")]
    in2: Option<PathBuf>,

    /// The merged book; - is standard output [default: out.bin, or out.obs.db3 for databases]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// In a position of several books: add the weights, or take the first book's moves
    #[arg(long, value_enum, default_value_t = PolicyArg::Sum)]
    policy: PolicyArg,

    /// Replace a database that exists; a book replaces a book without it
    #[arg(long)]
    force: bool,

    /// Print a JSON document
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    memory: MemoryArgs,
}

#[derive(Copy, Clone, PartialEq, Eq, clap::ValueEnum, Debug)]
enum PolicyArg {
    Sum,
    First,
}

/// What was made, for programs.
#[derive(Serialize)]
struct Document {
    path: String,
    /// Of books: records written, records read, and positions whose weights were scaled down.
    #[serde(skip_serializing_if = "Option::is_none")]
    entries: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    read: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scaled: Option<u64>,
    /// Of databases.
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<u64>,
}

pub fn run(args: Args, context: Context) -> anyhow::Result<()> {
    let arguments: Vec<PathBuf> = args
        .in1
        .into_iter()
        .chain(args.in2)
        .chain(args.books)
        .collect();
    if arguments.is_empty() {
        return Err(Usage("no book given: name the books to merge".to_owned()).into());
    }
    let files = arguments
        .iter()
        .map(|argument| InputFile::of(argument))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let paths: Vec<PathBuf> = files.iter().map(|file| file.path().to_owned()).collect();
    let are_databases = are_databases(&paths)?;
    if are_databases && args.policy == PolicyArg::First {
        let usage = "--policy first is for Polyglot books: databases add up";
        return Err(Usage(usage.to_owned()).into());
    }
    if args.force && !are_databases {
        let usage = "--force is for OOBS databases: a book replaces a book, and nothing else";
        return Err(Usage(usage.to_owned()).into());
    }
    let default = if are_databases {
        "out.obs.db3"
    } else {
        "out.bin"
    };
    let out = args.out.unwrap_or_else(|| default.into());
    let inputs: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    refuse_clashes(&[&out], &inputs)?;
    input::refuse_document_beside(args.json, &out)?;
    let merged = if are_databases {
        merge_databases(&paths, &out, args.force, &args.memory.memory(), context)?
    } else {
        merge_books(&paths, &out, args.policy, context)?
    };
    if args.json {
        json::print(&merged)?;
    }
    Ok(())
}

/// Whether the files are databases and not books.
fn are_databases(paths: &[PathBuf]) -> anyhow::Result<bool> {
    let mut databases = 0;
    for path in paths {
        databases += usize::from(obs::is_database(path)?);
    }
    if databases > 0 && databases < paths.len() {
        let usage = "some of these are Polyglot books and some OOBS databases: merge books with books and databases with \
                     databases (polybook convert makes a book of a database)";
        return Err(Usage(usage.to_owned()).into());
    }
    Ok(databases > 0)
}

fn merge_books(
    books: &[PathBuf],
    out: &Path,
    policy: PolicyArg,
    context: Context,
) -> anyhow::Result<Document> {
    let policy = match policy {
        PolicyArg::Sum => MergePolicy::Sum,
        PolicyArg::First => MergePolicy::First,
    };
    for book in repeated(books.iter().map(PathBuf::as_path)) {
        context.say(&format!("warning: {}: given twice\n", book.display()));
    }
    let meter = Arc::default();
    let bar = Bar::of_phase("merging", &meter, context);
    let summary = book::merge_books(books, out, policy, &meter)?;
    drop(bar);
    let name = input::output_name(out);
    let scaled = match summary.scaled {
        0 => String::new(),
        scaled => format!(", {} scaled down", counted(scaled, "position")),
    };
    context.say(&format!(
        "{name}: {} of {}{scaled}\n",
        counted(summary.written, "entry"),
        summary.read
    ));
    Ok(Document {
        path: name,
        entries: Some(summary.written),
        read: Some(summary.read),
        scaled: Some(summary.scaled),
        rows: None,
    })
}

fn merge_databases(
    paths: &[PathBuf],
    out: &Path,
    force: bool,
    memory: &Memory,
    context: Context,
) -> anyhow::Result<Document> {
    // How many rows there are is not known.
    let bar = Bar::of_phase("merging", &Arc::default(), context);
    let writer = ObsWriter::create(out, force)?;
    let never = AtomicBool::new(false);
    let (merged, database) = obs::merge_databases(paths, writer, memory, &never)?;
    // Nothing may fail once the database is in place.
    let incomplete = paths.iter().map(|path| warning_of_missing_moves(path));
    let incomplete = incomplete.collect::<anyhow::Result<Vec<_>>>()?;
    database.commit()?;
    drop(bar);
    for path in &merged.repeated {
        context.say(&format!(
            "warning: {}: named twice, so its games count twice\n",
            path.display()
        ));
    }
    for warning in incomplete.iter().flatten() {
        context.say(warning);
    }
    let name = input::output_name(out);
    if let Some(example) = &merged.passed_over.example {
        let rows = merged.passed_over.rows;
        context.say(&format!(
            "warning: {name}: {} passed over: {example}\n",
            counted(rows, "row")
        ));
    }
    context.say(&format!("{name}: {}\n", counted(merged.rows, "row")));
    Ok(Document {
        path: name,
        entries: None,
        read: None,
        scaled: None,
        rows: Some(merged.rows),
    })
}

/// Sums are exact only if no database left moves out.
fn warning_of_missing_moves(path: &Path) -> anyhow::Result<Option<String>> {
    let options = Obs::open(path)?.info().dropped();
    Ok(options.map(|options| {
        format!(
            "warning: {}: made with {options}, so moves may be missing from the sum\n",
            path.display()
        )
    }))
}

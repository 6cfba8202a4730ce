//! `polybook merge-book`: merges several books, or several databases, into one.

use std::{
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
};

use polybook::{
    FileKind,
    book::{self, Book, MergePolicy, begin_book},
    counts::Memory,
    obs::{self, ObsWriter},
    storage::output::{AtomicFile, repeated},
};
use serde_json::json;

use super::{
    Context,
    input::{check_output, ending, files_of, is_copied, output_name, refuse_foreign_name},
    plural,
    resources::MemoryArgs,
    usage::Usage,
    weighting::one_of,
};

/// Merge Polyglot books, or OOBS databases
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Merging OOBS databases is exact: the result equals a database made from all their games. Merging books is not exact, because
the weights of books are scaled and moves below --min-game are missing. If one book spells castling e1g1 and another book
e1h1, the two are added up in positions that a line of the books reaches. In other positions, they stay two moves.

Examples:
  polybook merge-book white.bin black.bin --out both.bin
  polybook merge-book --policy first mine.bin theirs.bin --out book.bin
  polybook merge-book 2023.obs.db3 2024.obs.db3 --out all.obs.db3
  polybook merge-book -in1 a.bin -in2 b.bin -out c.bin        the spelling of old scripts")]
pub struct Args {
    /// The books or OOBS databases; - reads standard input. With --policy first, give the most important book first
    #[arg(value_name = "BOOK")]
    books: Vec<PathBuf>,

    /// The first book
    #[arg(long, value_name = "FILE")]
    in1: Option<PathBuf>,

    /// The second book
    #[arg(long, value_name = "FILE")]
    in2: Option<PathBuf>,

    /// Write the merged book to this file; - is standard output [default: out.bin, or out.obs.db3 for databases]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// If several books contain a position, add the weights of its moves (sum), or keep only the moves of the first
    /// book that contains it (first)
    #[arg(
        long,
        default_value = "sum",
        value_parser = one_of([("sum", MergePolicy::Sum), ("first", MergePolicy::First)])
    )]
    policy: MergePolicy,

    /// Replace an existing file of any kind by a book, or an OOBS database by a database. Without this option, only a
    /// book that polybook wrote is replaced, by another book
    #[arg(long)]
    force: bool,

    /// Print the answer as a JSON document
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    memory: MemoryArgs,
}

pub fn run(args: &Args, context: Context) -> anyhow::Result<()> {
    let named = args.in1.iter().chain(&args.in2).chain(&args.books);
    let named: Vec<PathBuf> = named.cloned().collect();
    if named.is_empty() {
        return Err(Usage("no book is given: give the books to merge".to_owned()).into());
    }
    // Copy pipes after the output is claimed, unless only they show what is merged.
    let mut paths = None;
    let files = named.iter().filter(|argument| !is_copied(argument));
    let files: Vec<&PathBuf> = files.collect();
    let are_databases = match files[..] {
        [] => are_databases(paths.insert(files_of(&named)?))?,
        _ => are_databases(&files)?,
    };
    if are_databases && args.policy == MergePolicy::First {
        let usage = "--policy first applies only to Polyglot books: the results in databases are always added";
        return Err(Usage(usage.to_owned()).into());
    }
    let default = if are_databases {
        "out.obs.db3"
    } else {
        "out.bin"
    };
    let out = args.out.as_deref().unwrap_or(Path::new(default));
    check_output(out, &named, args.json)?;
    let of_inputs = || {
        let paths = paths.map_or_else(|| files_of(&named), Ok)?;
        self::are_databases(&paths)?;
        anyhow::Ok(paths)
    };
    if are_databases {
        let is_book = ending(out) == "bin";
        Usage::refuse(
            is_book.then_some(&*format!("--out {}:", out.display())),
            "the output is an OOBS database, not a book: choose a name that ends in .obs.db3, and make a book from the \
             database with polybook convert",
        )?;
        let writer = ObsWriter::create(out, args.force)?;
        merge_databases(args, &of_inputs()?, writer, context)
    } else {
        refuse_foreign_name("--out", out)?;
        let file = begin_book(out, args.force)?;
        merge_books(args, &of_inputs()?, file, context)
    }
}

/// Returns `true` if all files are SQLite databases of opening moves (OOBS), and `false` if all are Polyglot books.
/// Returns an error if there are files of both kinds.
fn are_databases(paths: &[impl AsRef<Path>]) -> anyhow::Result<bool> {
    let mut databases = 0;
    for path in paths {
        databases += usize::from(FileKind::of(path)? == FileKind::Sqlite);
    }
    if databases > 0 && databases < paths.len() {
        let usage = "some inputs are Polyglot books and some are OOBS databases: merge only books or only databases \
                     (polybook convert makes a book from a database)";
        return Err(Usage(usage.to_owned()).into());
    }
    Ok(databases > 0)
}

/// If the user gave no `--out`, tells the user that the output is written to `name`, the default name.
fn say_default_output(args: &Args, name: &str, context: Context) {
    if args.out.is_none() {
        context.say(&format!("--out is not given, so the output is {name}\n"));
    }
}

fn merge_books(
    args: &Args,
    paths: &[PathBuf],
    out: AtomicFile,
    context: Context,
) -> anyhow::Result<()> {
    let name = output_name(out.target());
    let books = paths.iter().map(Book::open);
    let books = books.collect::<polybook::Result<Vec<_>>>()?;
    say_default_output(args, &name, context);
    for book in repeated(paths.iter().map(PathBuf::as_path)) {
        context.say(&format!(
            "warning: {}: this book is given twice\n",
            book.display()
        ));
    }
    let summary = context.show_progress("merging", |meter| {
        book::merge_books(&books, out, args.policy, meter)
    })?;
    let scaled = match summary.scaled {
        0 => String::new(),
        scaled => format!(", {} scaled down", plural(scaled, "position")),
    };
    let text = format!(
        "{name}: {}{scaled}; the books had {}\n",
        plural(summary.written, "entry"),
        summary.read
    );
    let document = json!({
        "path": name,
        "entries": summary.written,
        "read": summary.read,
        "scaled": summary.scaled,
    });
    context.report(&text, args.json, document)
}

fn merge_databases(
    args: &Args,
    paths: &[PathBuf],
    writer: ObsWriter,
    context: Context,
) -> anyhow::Result<()> {
    let memory: Memory = args.memory.memory();
    let name = output_name(writer.target());
    say_default_output(args, &name, context);
    let mut text = String::new();
    // The number of rows is not known in advance, so the progress has no total.
    let merged = context.show_progress("merging", |_| {
        let never = AtomicBool::new(false);
        let (merged, database) = obs::merge_databases(paths, writer, &memory, &never)?;
        for (path, options) in &merged.dropped {
            let path = path.display();
            text.push_str(&format!(
                "warning: {path}: this database was made with {options}, so moves may be missing from the merged \
                 database\n"
            ));
        }
        for path in &merged.repeated {
            let path = path.display();
            text.push_str(&format!(
                "warning: {path}: this database is given twice, so its games count twice\n"
            ));
        }
        database.commit()?;
        anyhow::Ok(merged)
    })?;
    for (path, skipped) in &merged.skipped_rows {
        let warning = skipped.warning(path.display());
        text.extend(warning.map(|warning| warning + "\n"));
    }
    text.push_str(&format!("{name}: {}\n", plural(merged.rows, "row")));
    let document = json!({ "path": name, "rows": merged.rows });
    context.report(&text, args.json, document)
}

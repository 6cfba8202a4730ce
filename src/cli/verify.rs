//! `polybook verify`: whether a book is in order.

use std::path::{Path, PathBuf};

use polybook::{
    book::{Book, faults, fix},
    output::refuse_clashes,
    tally::Memory,
};
use serde::Serialize;

use super::{
    Context,
    counted::counted,
    input::{self, InputFile},
    json,
};

/// Check a book: its size, the order of its keys, its moves and its header
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Exit status 1 means that the book has faults and --fix did not write a copy without them.

Examples:
  polybook verify book.bin
  polybook verify old.bin --fix new.bin")]
pub struct Args {
    /// The book; - is standard input
    #[arg(value_name = "BOOK")]
    book: PathBuf,

    /// Write a sorted copy without repeated moves and other faults; - is standard output
    #[arg(long, value_name = "OUT")]
    fix: Option<PathBuf>,

    /// Print a JSON document
    #[arg(long)]
    json: bool,
}

/// What was found, for programs.
#[derive(Serialize)]
struct Document<'a> {
    path: String,
    /// Whole records, those of the header among them.
    records: u64,
    faults: &'a [String],
}

pub fn run(args: &Args, context: Context) -> anyhow::Result<()> {
    let file = InputFile::of(&args.book)?;
    let name = input::name(&args.book);
    if let Some(out) = &args.fix {
        refuse_clashes(&[out], &[file.path()])?;
        input::refuse_document_beside(args.json, out)?;
    }
    let memory = Memory::default();
    let faults: Vec<String> = faults(file.path(), &memory)?
        .iter()
        .map(|fault| fault.to_string())
        .collect();
    let records = records(file.path())?;
    if args.json {
        json::print(&Document {
            path: name.clone(),
            records,
            faults: &faults,
        })?;
    }
    if let Some(out) = &args.fix {
        fix(file.path(), out, &memory)?;
        for fault in &faults {
            context.tell(&format!("{name}: {fault}\n"));
        }
        let out = input::output_name(out);
        context.tell(&format!("{out}: a copy of {name} without faults\n"));
        return Ok(());
    }
    anyhow::ensure!(
        faults.is_empty(),
        "{name}: {}; verify --fix OUT writes a copy without these faults",
        faults.join("; ")
    );
    context.tell(&format!(
        "{name}: in order, {}\n",
        counted(records, "record")
    ));
    Ok(())
}

/// How many whole records a file has.
fn records(path: &Path) -> anyhow::Result<u64> {
    match Book::open(path) {
        Ok(book) => Ok(book.len()),
        // A book that was cut short has a size all the same.
        Err(_) => Ok(std::fs::metadata(path)?.len() / 16),
    }
}

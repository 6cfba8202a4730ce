//! `polybook verify`: whether a book is in order.

use std::path::PathBuf;

use polybook::{
    book::{Book, faults, fix},
    tally::Memory,
};

use super::Context;

/// Check a book: its size, the order of its keys, its moves and its header
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Exit status 1 tells that something is wrong, unless --fix mended it.

Examples:
  polybook verify book.bin
  polybook verify old.bin --fix new.bin")]
pub struct Args {
    /// The book
    #[arg(value_name = "BOOK")]
    book: PathBuf,

    /// Write a sorted copy without repeated moves and other faults
    #[arg(long, value_name = "OUT")]
    fix: Option<PathBuf>,
}

pub fn run(args: &Args, context: Context) -> anyhow::Result<()> {
    let name = args.book.display();
    let memory = Memory::default();
    let faults = faults(&args.book, &memory)?;
    if faults.is_empty() && !context.quiet {
        let records = Book::open(&args.book)?.len();
        eprintln!("{name}: in order, {records} records");
    }
    let listed: Vec<String> = faults.iter().map(|fault| fault.to_string()).collect();
    if let Some(out) = &args.fix {
        fix(&args.book, out, &memory)?;
        if !context.quiet {
            for fault in listed {
                eprintln!("{name}: {fault}");
            }
            eprintln!("{}: mended copy of {name}", out.display());
        }
        return Ok(());
    }
    anyhow::ensure!(
        listed.is_empty(),
        "{name}: {}; verify --fix writes a mended copy",
        listed.join("; ")
    );
    Ok(())
}

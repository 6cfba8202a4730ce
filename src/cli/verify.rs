//! `polybook verify`: whether a book is in order.

use std::{fs, path::PathBuf};

use anyhow::Context as _;
use polybook::book::{faults, fix};

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
    let bytes = fs::read(&args.book).with_context(|| format!("{name}: cannot read it"))?;
    let faults = faults(&bytes);
    if faults.is_empty() && !context.quiet {
        eprintln!("{name}: in order, {} records", bytes.len() / 16);
    }
    let listed: Vec<String> = faults.iter().map(|fault| fault.to_string()).collect();
    if let Some(out) = &args.fix {
        fix(&bytes, out)?;
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

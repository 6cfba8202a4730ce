//! `polybook verify`: whether a book or a database is in order.

use std::path::{Path, PathBuf};

use polybook::{
    book::{self, Fault, fix},
    obs,
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

/// Check a book or an OOBS database: its records, their order, its header and its checksum
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Exit status 1 means that the file has faults and --fix did not write a copy without them. Books and databases of \
polybook have a checksum, so verify finds a damaged byte and a change by another program. Without a checksum it cannot \
find a changed move or weight.

Examples:
  polybook verify book.bin
  polybook verify games.obs.db3
  polybook verify old.bin --fix new.bin")]
pub struct Args {
    /// The book or database; - is standard input
    #[arg(value_name = "BOOK")]
    book: PathBuf,

    /// Write a sorted copy of a book without repeated moves and other faults; - is standard output
    #[arg(long, value_name = "OUT")]
    fix: Option<PathBuf>,

    /// Print a JSON document
    #[arg(long)]
    json: bool,
}

/// What was found.
#[derive(Serialize)]
struct Document {
    path: String,
    /// Whole records of a book, those of the header among them, or rows of a database.
    records: u64,
    faults: Vec<String>,
    /// Whether the checksum is that of the records; `None` if there is none.
    checksum: Option<&'static str>,
}

impl Document {
    fn of(file: &Path, name: String) -> anyhow::Result<Document> {
        let (records, faults, checksum) = if obs::is_database(file)? {
            let found = obs::verify(file)?;
            let differs = found.faults.contains(&obs::Fault::Checksum);
            let checksum = found.has_checksum.then_some(differs);
            (found.rows, texts(&found.faults), checksum)
        } else {
            let found = book::verify(file, &Memory::default())?;
            let differs = found.faults.contains(&Fault::Checksum);
            let checksum = found.has_checksum.then_some(differs);
            (found.records, texts(&found.faults), checksum)
        };
        Ok(Document {
            path: name,
            records,
            faults,
            checksum: checksum.map(|differs| if differs { "differs" } else { "matches" }),
        })
    }
}

fn texts(faults: &[impl ToString]) -> Vec<String> {
    faults.iter().map(ToString::to_string).collect()
}

pub fn run(args: &Args, context: Context) -> anyhow::Result<()> {
    let file = InputFile::of(&args.book)?;
    let name = input::name(&args.book);
    if let Some(out) = &args.fix {
        refuse_clashes(&[out], &[file.path()])?;
        input::refuse_document_beside(args.json, out)?;
    }
    let found = Document::of(file.path(), name.clone())?;
    if args.json {
        json::print(&found)?;
    }
    if let Some(out) = &args.fix {
        fix(file.path(), out, &Memory::default())?;
        for fault in &found.faults {
            context.tell(&format!("{name}: {fault}\n"));
        }
        let out = input::output_name(out);
        context.tell(&format!("{out}: a copy of {name} without faults\n"));
        return Ok(());
    }
    let faults = found.faults.join("; ");
    anyhow::ensure!(
        found.faults.is_empty(),
        match obs::is_database(file.path())? {
            true => format!("{name}: {faults}; make the database again, or take a copy of it"),
            false =>
                format!("{name}: {faults}; verify --fix OUT writes a copy without these faults"),
        }
    );
    let checked = match found.checksum {
        Some(_) => "its checksum matches",
        None => "no checksum, so changed moves and numbers cannot be noticed",
    };
    context.tell(&format!(
        "{name}: in order, {}, {checked}\n",
        counted(found.records, "record")
    ));
    Ok(())
}

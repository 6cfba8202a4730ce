//! `polybook verify`: whether a book, a database or an index is in order.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use polybook::{
    book::{self, Fault, fix},
    index, obs,
    output::refuse_clashes,
    progress::Meter,
    tally::Memory,
};
use serde::Serialize;

use super::{
    Context,
    counted::counted,
    input::{self, InputFile},
    json,
    progress::Bar,
    usage::Usage,
};

/// Check a book, an OOBS database or an index: its records, their order, its header and its checksums
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Exit status 1 means that the file has faults and --fix did not write a copy without them. Books and databases of
polybook have a checksum, so verify finds a damaged byte and a change by another program. Without a checksum it cannot
find a changed move or weight. Of an index, every block and every value is read, and the crate rusty-leveldb must see the
same entries. Not found: a changed name of the variant, and a PGN file that is gone or other than it was.

Examples:
  polybook verify book.bin
  polybook verify games.obs.db3
  polybook verify games.idx
  polybook verify old.bin --fix new.bin")]
pub struct Args {
    /// The book, database or index; - is standard input
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
    /// Whole records of a book, those of the header among them, rows of a database, or entries of an index.
    records: u64,
    faults: Vec<String>,
    /// Whether the checksum is that of the records; `None` if there is none.
    checksum: Option<&'static str>,
    /// Whether rusty-leveldb was asked about an index.
    #[serde(skip_serializing_if = "Option::is_none")]
    second_opinion: Option<bool>,
    /// How many records are the header's.
    #[serde(skip)]
    header_records: u64,
}

impl Document {
    fn of(file: &Path, name: String, context: Context) -> anyhow::Result<Document> {
        let mut second_opinion = None;
        let mut header_records = 0;
        let (records, faults, checksum) = if file.is_dir() {
            let meter = Arc::<Meter>::default();
            let _bar = Bar::of_phase("reading", &meter, context);
            let found = index::verify(file, &meter)?;
            second_opinion = Some(found.has_second_opinion);
            let differs = found.faults.iter().any(|fault| fault.key.is_empty());
            (found.entries, texts(&found.faults), Some(differs))
        } else if obs::is_database(file)? {
            let found = obs::verify(file)?;
            let differs = found.faults.contains(&obs::Fault::Checksum);
            let checksum = found.has_checksum.then_some(differs);
            (found.rows, texts(&found.faults), checksum)
        } else {
            let found = book::verify(file, &Memory::default())?;
            let differs = found.faults.contains(&Fault::Checksum);
            let checksum = found.has_checksum.then_some(differs);
            header_records = found.header_records;
            (found.records, texts(&found.faults), checksum)
        };
        Ok(Document {
            path: name,
            records,
            faults,
            checksum: checksum.map(|differs| if differs { "differs" } else { "matches" }),
            second_opinion,
            header_records,
        })
    }
}

impl Document {
    /// The records for people, those of the header by themselves.
    fn counted_records(&self) -> String {
        match self.header_records {
            0 => counted(self.records, "record"),
            header => format!(
                "{} and {} of the header",
                counted(self.records.saturating_sub(header), "move"),
                counted(header, "record")
            ),
        }
    }
}

fn texts(faults: &[impl ToString]) -> Vec<String> {
    faults.iter().map(ToString::to_string).collect()
}

pub fn run(args: &Args, context: Context) -> anyhow::Result<()> {
    let file = InputFile::or_index(&args.book)?;
    let name = input::name(&args.book);
    if let Some(out) = &args.fix {
        anyhow::ensure!(
            !file.path().is_dir(),
            "{name}: is a directory: --fix writes a copy of a book alone"
        );
        refuse_clashes(&[out], &[file.path()])?;
        if obs::is_database(file.path())? {
            let usage =
                "--fix is for Polyglot books: make a damaged database again, or take a copy of it";
            return Err(Usage(usage.to_owned()).into());
        }
        input::refuse_document_beside(args.json, out)?;
    }
    let found = Document::of(file.path(), name.clone(), context)?;
    if args.json {
        json::print(&found)?;
    }
    if let Some(out) = &args.fix {
        fix(file.path(), out, &Memory::default())?;
        for fault in &found.faults {
            context.say(&format!("{name}: {fault}\n"));
        }
        let out = input::output_name(out);
        context.say(&format!("{out}: a copy of {name} without faults\n"));
        return Ok(());
    }
    let faults = found.faults.join("; ");
    let advice = if found.second_opinion.is_some() {
        "make the index again"
    } else if obs::is_database(file.path())? {
        "make the database again, or take a copy of it"
    } else {
        "verify --fix OUT writes a copy without these faults"
    };
    anyhow::ensure!(found.faults.is_empty(), "{name}: {faults}; {advice}");
    if file
        .path()
        .metadata()
        .is_ok_and(|file| file.is_file() && file.len() == 0)
    {
        context.say(&format!(
            "{name}: an empty file, which is a book without moves\n"
        ));
        return Ok(());
    }
    let checked = match (found.second_opinion, found.checksum) {
        (Some(true), _) => "its checksums match, and rusty-leveldb sees the same",
        (Some(false), _) => {
            "its checksums match; rusty-leveldb was not asked, because a list is too long"
        }
        (None, Some(_)) => "its checksum matches",
        (None, None) => "no checksum, so changed moves and numbers cannot be noticed",
    };
    context.say(&format!(
        "{name}: in order, {}, {checked}\n",
        found.counted_records()
    ));
    Ok(())
}

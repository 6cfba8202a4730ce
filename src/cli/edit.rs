//! `polybook edit`: changes single moves and positions of a book.

use std::{
    fmt::Display,
    path::{Path, PathBuf},
};

use polybook::{
    Error,
    book::{Book, Change, ChangeError, PositionEdit, Script, begin_book, edit_book},
    position::Variant,
    storage::output::refuse_clashes,
};
use serde_json::json;

use super::{
    Context,
    input::{self, file_of, output_name, refuse_document_beside, refuse_foreign_name},
    plural,
    position::{PositionArgs, Searched, of_book},
    resources::MemoryArgs,
    usage::Usage,
};

/// An upper bound on the memory for the parsed changes of a script, in bytes per byte of the script. A script is
/// rejected if its changes might exceed the memory budget.
const MEMORY_PER_BYTE: usize = 32;

/// Change the moves of a book
#[derive(clap::Args, Debug)]
#[command(after_help = "\
--set gives a move a weight, as a number or as a percentage of all weights of its position. If the book does not contain the
move, --set adds it. A move of weight 0 stays in the book, but programs that follow the weights never play it; --remove
removes a move. --remove-position also removes all positions that can be reached only through the removed position. Moves that
lead to it stay in the book.

Each line of a script contains a position, as a FEN or as moves from the starting position, and the changes for this
position. A line without a position continues with the position of the line before. A line that begins with # is a comment:
  1. e4 c5; remove f4; set Nf3=70%; set Nc3=20%
  ; set c3=5%
  1. e4 e5 2. Nf3 f6; remove-position
The percentages on one line are applied together. The next line is applied to the result.

Examples:
  polybook edit book.bin --in-place --set e4=60% --remove a3
  polybook edit book.bin --out mine.bin \"1. e4 c5\" --set Nf3=100 --set c3=20
  polybook edit book.bin --out mine.bin --script changes.txt
  grep -v Sicilian changes.txt | polybook edit book.bin --in-place --script -")]
pub struct Args {
    /// The book; - is standard input
    #[arg(value_name = "BOOK")]
    book: PathBuf,

    /// The book to write; - is standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Replace an existing file of any kind. Without this option, edit replaces only a book that polybook wrote
    #[arg(long, conflicts_with = "in_place")]
    force: bool,

    /// Write the changed book to the file that was read
    #[arg(long, conflicts_with = "out")]
    in_place: bool,

    #[command(flatten)]
    position: PositionArgs,

    /// Set the weight of a move in the position, as a number or as a percentage of the total weight. Can be given
    /// several times
    #[arg(long, value_name = "MOVE=WEIGHT|MOVE=PERCENT%", value_parser = Change::set)]
    set: Vec<Change>,

    /// Remove a move from the position; can be given several times
    #[arg(long, value_name = "MOVE", value_parser = removal)]
    remove: Vec<Change>,

    /// Remove the position, and all positions that can be reached only through it
    #[arg(long, conflicts_with_all = ["set", "remove"])]
    remove_position: bool,

    /// Also apply the changes in this file, after the changes that are given as options; - reads standard input
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,

    /// Print the answer as a JSON document
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    memory: MemoryArgs,
}

fn removal(text: &str) -> Result<Change, ChangeError> {
    Ok(Change::Remove(text.to_owned()))
}

pub fn run(args: Args, context: Context) -> anyhow::Result<()> {
    if args.out.is_none() && !args.in_place {
        let usage = "no output: name a file for the changed book with --out, or change this book itself with \
                     --in-place";
        return Err(Usage(usage.to_owned()).into());
    }
    let out = args.out.as_ref().unwrap_or(&args.book);
    if args.in_place && out == Path::new("-") {
        let usage =
            "--in-place cannot change standard input: give a file for the changed book with --out";
        return Err(Usage(usage.to_owned()).into());
    }
    if !args.in_place {
        refuse_clashes(&[out], &[&args.book])
            .map_err(|err| anyhow::anyhow!("{err}, or change the book with --in-place"))?;
    }
    refuse_document_beside(args.json, out)?;
    if !args.in_place {
        refuse_foreign_name("--out", out)?;
    }
    // Claim the output before opening the book, so that no other run can replace the book in between.
    let edited = begin_book(out, args.force || args.in_place)?;
    let book = Book::open(file_of(&args.book)?)?;
    let variant = of_book(&args.book, &book, args.position.options.variant)?;
    let edits = edits(&args, variant, book.variant()?)?;
    if edits.is_empty() {
        let usage = "nothing to change: use --set, --remove, --remove-position or --script";
        return Err(Usage(usage.to_owned()).into());
    }
    let memory = args.memory.memory();
    let summary = context.show_progress("writing the book", |meter| {
        edit_book(book, &edits, variant, edited, &memory, meter)
    })?;
    let path = output_name(out);
    let mut text = format!(
        "{path}: {} added, {} reweighted, {} removed, {} removed; {}\n",
        plural(summary.added, "move"),
        summary.weighed,
        summary.removed,
        plural(summary.removed_positions, "position"),
        plural(summary.entries, "entry")
    );
    if summary.removed_positions > 0 {
        text.push_str(&format!(
            "{path}: moves that lead to removed positions stay in the book: remove them with --remove\n"
        ));
    }
    if summary.inexact > 0 {
        text.push_str(&format!(
            "{path}: the share of {} differs from the requested percentage by more than 1 %, because the largest \
             weight is 65535\n",
            plural(summary.inexact, "move")
        ));
    }
    if summary.unreached > 0 {
        text.push_str(&format!(
            "{path}: no line of the book leads to {}\n",
            plural(summary.unreached, "new position")
        ));
    }
    if summary.unmarked {
        text.push_str(&unmarked(&path));
    }
    let document = json!({
        "path": path,
        "entries": summary.entries,
        "added": summary.added,
        "weighed": summary.weighed,
        "removed": summary.removed,
        "inexact": summary.inexact,
        "removed_positions": summary.removed_positions,
        "unreached": summary.unreached,
        "unmarked": summary.unmarked,
    });
    context.report(&text, args.json, document)
}

/// Returns a message that the header of the edited book at `path` does not mention the edit.
pub(super) fn unmarked(path: impl Display) -> String {
    format!(
        "{path}: the header has no room for the line \"Edited by polybook\": shorten its comment with pgheader -c\n"
    )
}

/// Returns all changes that the user requested: first those in options, then those in the file that `--script` names.
/// Moves are read by the rules of `variant`.
///
/// `only` is the variant in the book's header, or `None` if the header names none or several. If it is standard chess,
/// the error message for a FEN of Chess960 says so.
///
/// # Errors
///
/// Returns an error if a position or a line of the script cannot be parsed.
fn edits(
    args: &Args,
    variant: Variant,
    only: Option<Variant>,
) -> anyhow::Result<Vec<PositionEdit>> {
    let searched = Searched {
        file: &args.book,
        only,
    };
    let pos = args.position.position_in(variant, &searched)?;
    let mut changes: Vec<Change> = args.remove.clone();
    changes.extend(args.set.iter().cloned());
    changes.extend(args.remove_position.then_some(Change::RemovePosition));
    let mut edits = Vec::new();
    if !changes.is_empty() {
        let pos = pos.clone();
        edits.push(PositionEdit { pos, changes });
    }
    if let Some(path) = &args.script {
        let name = input::name(path);
        let text = input::read_text(path, &args.memory.memory(), MEMORY_PER_BYTE)?;
        let mut script = Script::new(variant, pos);
        for (number, line) in text.lines().enumerate() {
            let edit = script
                .line(line)
                .map_err(|err| Error::file(&name, format!("line {}: {err}", number + 1)))?;
            edits.extend(edit);
        }
    }
    Ok(edits)
}

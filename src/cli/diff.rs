//! `polybook diff`: what differs between two books.

use std::{fmt::Write as _, io::Write, path::PathBuf, sync::Arc};

use polybook::{
    book::{Book, Differences, MoveRecords, PositionDifference, differences},
    position::Variant,
    progress::Meter,
    tally::Memory,
    tree::{FoundPositions, LinesOf, Replies, Union, Wanted},
};
use serde::Serialize;
use shakmaty::{Color, variant::VariantPosition};

use super::{
    Context,
    counted::counted,
    errors::ExitOne,
    input::{InputFile, in_memory},
    progress::Bar,
    resources::MemoryArgs,
    variant::{self, refuse_other},
};

/// Compare two books: positions and moves that differ
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Each position that differs is printed with its FEN, or with its key if no line of the books reaches it
from the starting position. Its moves follow: - only in A, + only in B, * with another weight. The
weights of a repeated move are added; where the FEN is known, so are those of castling in two
spellings. Headers and the order of moves do not matter. Exit status 1 means that the books differ.

Examples:
  polybook diff old.bin new.bin
  polybook diff --json old.bin new.bin
  polybook diff -q old.bin new.bin >/dev/null && echo the same moves")]
pub struct Args {
    /// The first book; - is standard input
    #[arg(value_name = "A")]
    first: PathBuf,

    /// The second book
    #[arg(value_name = "B")]
    second: PathBuf,

    /// Print a JSON document
    #[arg(long)]
    json: bool,

    /// Lines start as in this variant [default: the variant of the first book]
    #[arg(long, value_name = "NAME", value_parser = super::variant::name())]
    variant: Option<Variant>,

    #[command(flatten)]
    memory: MemoryArgs,
}

/// How much differs.
#[derive(Copy, Clone, Default)]
struct Totals {
    positions: u64,
    moves: u64,
}

/// A position that differs, for programs.
#[derive(Serialize)]
struct PositionDocument {
    key: String,
    fen: Option<String>,
    moves: Vec<MoveDocument>,
}

#[derive(Serialize)]
struct MoveDocument {
    uci: String,
    /// `None` where the position is not known, or the move is not legal there.
    san: Option<String>,
    first: Option<RecordsDocument>,
    second: Option<RecordsDocument>,
}

#[derive(Serialize)]
struct RecordsDocument {
    weight: u64,
    learn: u32,
}

impl RecordsDocument {
    fn of(records: MoveRecords) -> RecordsDocument {
        RecordsDocument {
            weight: records.weight,
            learn: records.learn,
        }
    }
}

pub fn run(args: &Args, context: Context) -> anyhow::Result<()> {
    let files = [InputFile::of(&args.first)?, InputFile::of(&args.second)?];
    let memory = args.memory.memory();
    let in_memory = in_memory(&memory) / 4;
    let first = Book::open_within(files[0].path(), in_memory)?;
    let second = Book::open_within(files[1].path(), in_memory)?;
    for (argument, book) in [(&args.first, &first), (&args.second, &second)] {
        if let Some(asked) = args.variant {
            refuse_other(argument, &variant::of_book(book), asked)?;
        }
    }
    let variant = args.variant.or(first.variant()).or(second.variant());
    let meter = Arc::default();
    let bar = Bar::of_phase("comparing", &meter, context);
    let mut wanted = Wanted::new(Memory {
        bytes: memory.bytes / 2,
        ..memory
    });
    for difference in differences(&first, &second, &meter) {
        wanted.add(difference?.key)?;
    }
    look(
        &mut wanted,
        &first,
        &second,
        variant.unwrap_or_default(),
        &meter,
    )?;
    drop(bar);
    let mut out = super::terminal::stdout();
    let again = Meter::default();
    let found_again = || differences(&first, &second, &again);
    let mut totals = Totals::default();
    for document in documents(found_again(), wanted.found()) {
        totals.positions += 1;
        totals.moves += document?.moves.len() as u64;
    }
    let documents = documents(found_again(), wanted.found());
    if args.json {
        print_json(&mut out, totals, documents)?;
    } else {
        print_text(&mut out, documents)?;
    }
    out.flush().map_err(super::not_printed)?;
    if totals.positions == 0 {
        return Ok(());
    }
    let (positions, moves) = (totals.positions, totals.moves);
    context.say(&format!(
        "{} and {} differ\n",
        counted(positions, "position"),
        counted(moves, "move")
    ));
    Err(ExitOne.into())
}

/// Looks for the positions that differ where lines of either book come.
fn look(
    wanted: &mut Wanted,
    first: &Book,
    second: &Book,
    variant: Variant,
    meter: &Meter,
) -> polybook::Result<()> {
    let start = variant.start();
    let both = || Union(first, second);
    if !wanted.is_done() {
        wanted.look(&Replies(both()), &start, meter)?;
    }
    for side in Color::ALL {
        if !wanted.is_done() {
            wanted.look(&LinesOf(both(), side), &start, meter)?;
        }
    }
    Ok(())
}

/// The positions that differ. Where only the spelling of castling does, nothing differs.
fn documents<'a>(
    differences: Differences<'a>,
    mut found: FoundPositions<'a>,
) -> impl Iterator<Item = Documents<PositionDocument>> + 'a {
    let documents = differences.map(move |difference| {
        let mut difference = difference?;
        let pos = found.position(difference.key)?;
        if let Some(pos) = &pos {
            difference.moves = difference.moves_in(pos);
        }
        Ok(document(&difference, pos.as_ref()))
    });
    documents.filter(|document| {
        document
            .as_ref()
            .map_or(true, |found| !found.moves.is_empty())
    })
}

fn document(difference: &PositionDifference, pos: Option<&VariantPosition>) -> PositionDocument {
    let moves = difference.moves.iter().map(|mv| MoveDocument {
        uci: pos.map_or_else(|| mv.mv.to_string(), |pos| mv.mv.uci(pos)),
        san: pos.and_then(|pos| mv.mv.san(pos)),
        first: mv.first.map(RecordsDocument::of),
        second: mv.second.map(RecordsDocument::of),
    });
    PositionDocument {
        key: super::key::text(difference.key),
        fen: pos.map(polybook::position::fen_of),
        moves: moves.collect(),
    }
}

type Documents<T> = polybook::Result<T>;

/// One document. Its differences are printed while they are found.
fn print_json(
    out: &mut impl Write,
    totals: Totals,
    documents: impl Iterator<Item = Documents<PositionDocument>>,
) -> anyhow::Result<()> {
    let Totals { positions, moves } = totals;
    let head = format!("{{\"positions\":{positions},\"moves\":{moves},\"differences\":[");
    out.write_all(head.as_bytes()).map_err(super::not_printed)?;
    for (number, document) in documents.enumerate() {
        let comma = if number > 0 { "," } else { "" };
        let text = format!("{comma}{}", serde_json::to_string(&document?)?);
        out.write_all(text.as_bytes()).map_err(super::not_printed)?;
    }
    out.write_all(b"]}\n").map_err(super::not_printed)
}

fn print_text(
    out: &mut impl Write,
    documents: impl Iterator<Item = Documents<PositionDocument>>,
) -> anyhow::Result<()> {
    for document in documents {
        let text = text(&document?);
        out.write_all(text.as_bytes()).map_err(super::not_printed)?;
    }
    Ok(())
}

/// A position and its moves, a line each.
fn text(document: &PositionDocument) -> String {
    let mut text = match &document.fen {
        Some(fen) => format!("{fen}\n"),
        None => format!("key {}\n", document.key),
    };
    for mv in &document.moves {
        let name = mv.san.as_deref().unwrap_or(&mv.uci);
        let _ = match (&mv.first, &mv.second) {
            (Some(first), Some(second)) if first.weight != second.weight => {
                writeln!(text, "  * {name:<8} {} -> {}", first.weight, second.weight)
            }
            (Some(first), Some(second)) => {
                writeln!(
                    text,
                    "  * {name:<8} learn {} -> {}",
                    first.learn, second.learn
                )
            }
            (Some(first), None) => writeln!(text, "  - {name:<8} {}", first.weight),
            (None, second) => {
                let weight = second.as_ref().map_or(0, |second| second.weight);
                writeln!(text, "  + {name:<8} {weight}")
            }
        };
    }
    text
}

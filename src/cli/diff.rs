//! `polybook diff`: lists the differences between two books.

use std::path::PathBuf;

use polybook::{
    book::{Book, LargestFirst, MoveDifference, MoveRecords, PositionDifference, differences},
    evals::{Eval, Evals},
    json,
    position::{BookMove, Variant, fen_of},
    progress::Meter,
    tree::{FoundPositions, Union, Wanted},
};
use serde_json::{Value, json};
use shakmaty::variant::VariantPosition;

use super::{
    Context,
    errors::ExitOne,
    evals::EvalsArg,
    input::{file_of, in_memory},
    key, plural,
    position::{self, of_book},
    resources::{MemoryArgs, count},
    terminal::{print_all, print_json_list},
    weighting::one_of,
};

/// Compare two books, and print the positions and moves that differ
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Each position with differences is printed as a FEN, or as its key if no line of the books reaches the position from the
starting position. The moves that differ follow: - means that only A contains the move, + that only B contains it, and
* that the weights differ. A percentage is the move's share of the total weight of the position. If a book contains a move
twice, its weights are added. If the FEN is known, illegal moves have no share, and the two spellings of castling count as
one move. Headers and the order of moves are not compared. The exit status is 1 if the books differ.

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

    /// Print the answer as a JSON document
    #[arg(long)]
    json: bool,

    /// Print the positions with the largest changes of weight first (weight), or in the order of their keys (key). The
    /// change of a position is the sum of the changes of its moves
    #[arg(
        long,
        action = clap::ArgAction::Set,
        default_value = "weight",
        value_parser = one_of([("weight", true), ("key", false)])
    )]
    sort: bool,

    /// Print only the first N positions. The totals count all positions
    #[arg(long, value_name = "N", value_parser = count::<usize>(0))]
    limit: Option<usize>,

    /// Use the rules of this variant, and find the positions of the books from its starting position [default: the
    /// variant of the first book]
    #[arg(long, value_name = "NAME", value_parser = position::variant())]
    variant: Option<Variant>,

    #[command(flatten)]
    evals: EvalsArg,

    #[command(flatten)]
    memory: MemoryArgs,
}

pub fn run(args: &Args, context: Context) -> anyhow::Result<()> {
    let files = [file_of(&args.first)?, file_of(&args.second)?];
    let memory = args.memory.memory();
    let in_memory = in_memory(&memory) / 4;
    let first = Book::open_within(&files[0], in_memory)?;
    let second = Book::open_within(&files[1], in_memory)?;
    for (argument, book) in [(&args.first, &first), (&args.second, &second)] {
        if args.variant.is_some() {
            of_book(argument, book, args.variant)?;
        }
    }
    let variant = args.variant.or(first.variant()?).or(second.variant()?);
    let mut wanted = context.show_progress("comparing", |meter| {
        let mut wanted = Wanted::new(memory.share(2));
        for difference in differences(&first, &second, meter) {
            wanted.add(difference?.key)?;
        }
        let start = variant.unwrap_or_default().start();
        wanted.look(&Union(&first, &second), &start, meter)?;
        anyhow::Ok(wanted)
    })?;
    let again = Meter::default();
    let found_again = || differences(&first, &second, &again);
    let (mut positions, mut moves) = (0, 0);
    for found in locate_differences(found_again(), wanted.found()) {
        positions += 1;
        moves += found?.0.moves.len() as u64;
    }
    let mut sorted = LargestFirst::new(memory.share(4));
    let evals = args.evals.open()?;
    let found = locate_differences(found_again(), wanted.found());
    let found = found.map(|found| {
        let (difference, pos) = found?;
        let of_move = |mv| evaluated(evals.as_ref(), pos.as_ref(), mv);
        let moves = difference.moves.iter().map(|mv| of_move(mv.mv));
        let moves = moves.collect::<polybook::Result<_>>()?;
        polybook::Result::Ok((difference, pos, moves))
    });
    let printed = found.map(|found| {
        let found = found?;
        let changes = found.0.moves.iter().map(MoveDifference::weight_change);
        let change = changes.fold(0, u64::saturating_add);
        let text = if args.json {
            json::to_string(&document(found)).expect("texts and numbers are JSON")
        } else {
            text(found)
        };
        Ok((change, text))
    });
    let printed: Box<dyn Iterator<Item = polybook::Result<String>>> = if args.sort {
        for found in printed {
            let (change, text) = found?;
            sorted.push(change, &text)?;
        }
        Box::new(sorted.texts())
    } else {
        Box::new(printed.map(|found| Ok(found?.1)))
    };
    let printed = printed.take(args.limit.unwrap_or(usize::MAX));
    if args.json {
        let totals = json!({ "positions": positions, "moves": moves });
        print_json_list(&totals, "differences", printed)?;
    } else {
        print_all(printed)?
    }
    if positions == 0 {
        return Ok(());
    }
    context.say(&format!(
        "{} and {} differ\n",
        plural(positions, "position"),
        plural(moves, "move")
    ));
    Err(ExitOne.into())
}

/// The differences between two books in one position, with the position itself. A book stores only a hash of each
/// position, so the position is `None` unless a line of one of the books leads to it.
type Difference = (PositionDifference, Option<VariantPosition>);

/// The differences between two books in one position, prepared for printing: the moves that differ, the position, and
/// the evaluation after each of these moves. The position is `None` unless a line of one of the books leads to it. An
/// unknown evaluation is `None`.
type ShownDifference = (
    PositionDifference,
    Option<VariantPosition>,
    Vec<Option<Eval>>,
);

/// Returns the evaluation of the position after the move `mv` in `pos`, from the store of evaluations `evals`. Returns
/// `None` if the store does not contain that position, if the move is illegal, or if `evals` or `pos` is `None`.
fn evaluated(
    evals: Option<&Evals>,
    pos: Option<&VariantPosition>,
    mv: BookMove,
) -> polybook::Result<Option<Eval>> {
    let Some((evals, pos)) = evals.zip(pos) else {
        return Ok(None);
    };
    mv.to_move(pos).map_or(Ok(None), |mv| evals.after(pos, mv))
}

/// Pairs each difference with the position in which it occurs. `positions` finds the position by its key. If it is
/// found, moves that differ only in the notation of castling are removed from the difference, which is omitted if no
/// move is left.
fn locate_differences<'a>(
    differences: impl Iterator<Item = polybook::Result<PositionDifference>> + 'a,
    mut positions: FoundPositions<'a>,
) -> impl Iterator<Item = polybook::Result<Difference>> + 'a {
    let found = differences.map(move |difference| {
        let mut difference = difference?;
        let pos = positions.position(difference.key)?;
        if let Some(pos) = &pos {
            difference.moves = difference.moves_in(pos);
        }
        Ok((difference, pos))
    });
    found.filter(|found| !matches!(found, Ok((difference, _)) if difference.moves.is_empty()))
}

/// Returns `true` if `mv` is legal in `pos`, or if the position is unknown.
fn may_be_legal(pos: Option<&VariantPosition>, mv: BookMove) -> bool {
    pos.is_none_or(|pos| mv.to_move(pos).is_some())
}

/// Returns the weight of a move as a percentage of `total`, the sum of the weights of all moves in the position.
fn percent(weight: u64, total: u64) -> f64 {
    100.0 * weight as f64 / total.max(1) as f64
}

/// Converts the differences between two books in one position to a JSON document. The document contains the evaluations
/// of the moves. The field `san` of a move is null if the move is illegal or the position is unknown. The field
/// `percent` is null if the move is illegal.
fn document((difference, pos, evals): ShownDifference) -> Value {
    let pos = pos.as_ref();
    let [first, second] = difference.total_weights(pos);
    let of_records = |mv, records: Option<MoveRecords>, total| {
        records.map(|MoveRecords { weight, learn }| {
            let percent = may_be_legal(pos, mv).then(|| percent(weight, total));
            json!({ "weight": weight, "percent": percent, "learn": learn })
        })
    };
    let moves = difference.moves.iter().zip(evals).map(|(mv, eval)| {
        let mut document = json!({
            "uci": pos.map_or_else(|| mv.mv.to_string(), |pos| mv.mv.uci(pos)),
            "san": pos.and_then(|pos| mv.mv.san(pos)),
            "first": of_records(mv.mv, mv.first, first),
            "second": of_records(mv.mv, mv.second, second),
        });
        if let Some(eval) = eval {
            document["eval"] = json!(eval);
        }
        document
    });
    json!({
        "key": key::text(difference.key),
        "fen": pos.map(fen_of),
        "moves": moves.collect::<Value>(),
    })
}

/// Formats the differences in one position as text. The first line describes the position, and each further line a
/// move.
fn text((difference, pos, evals): ShownDifference) -> String {
    let mut text = match &pos {
        Some(pos) => format!("{}\n", fen_of(pos)),
        None => format!("key {}\n", key::text(difference.key)),
    };
    let [all_first, all_second] = difference.total_weights(pos.as_ref());
    for (mv, eval) in difference.moves.iter().zip(evals) {
        let name = match &pos {
            Some(pos) => mv.mv.san(pos).unwrap_or_else(|| mv.mv.uci(pos)),
            None => mv.mv.to_string(),
        };
        let eval = eval.map(|eval| format!("  eval {}", eval.score));
        let eval = eval.unwrap_or_default();
        let is_legal = may_be_legal(pos.as_ref(), mv.mv);
        let share = |weight, total| {
            if is_legal {
                format!("{:.1}%", percent(weight, total))
            } else {
                "illegal".to_owned()
            }
        };
        text += &match (mv.first, mv.second) {
            (Some(first), Some(second)) if first.weight != second.weight => {
                let (first, second) = (first.weight, second.weight);
                let (before, after) = (share(first, all_first), share(second, all_second));
                format!("  * {name:<8} {first} -> {second} ({before} -> {after}){eval}\n")
            }
            (Some(first), Some(second)) => {
                let (first, second) = (first.learn, second.learn);
                format!("  * {name:<8} learn {first} -> {second}{eval}\n")
            }
            (Some(MoveRecords { weight, .. }), None) => {
                let share = share(weight, all_first);
                format!("  - {name:<8} {weight} ({share}){eval}\n")
            }
            (None, second) => {
                let weight = second.map_or(0, |second| second.weight);
                let share = share(weight, all_second);
                format!("  + {name:<8} {weight} ({share}){eval}\n")
            }
        };
    }
    text
}

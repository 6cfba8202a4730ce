//! `polybook tree`: prints or writes all lines of moves that a book, database or index contains from a given position.

use std::path::PathBuf;

use polybook::{
    explorer::Line,
    position::Variant,
    progress::Meter,
    repertoire::{FileOrder, OpenedSource},
    storage::output::is_standard_output,
    tree::{EvaluatedSource, Limits, LinesOf, MoveSource, Tree, TreeFormat, only_color},
};
use serde_json::json;
use shakmaty::{Color, variant::VariantPosition};

use super::{
    Context,
    evals::EvalsArg,
    input::{check_output, ending, output_name},
    plural,
    position::{self, PositionArgs, Searched, UntaggedArg},
    progress::quiet_on_terminal,
    repertoire::{Opener, say_absent},
    resources::{MemoryArgs, count},
    terminal::{Output, OutputArgs},
    usage::Usage,
    weighting::{one_of, percent},
};

/// Print the lines of a book, a database, an index or a repertoire, with each position once
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The moves of a book are printed with weights. The moves of an OOBS database, or of an explorer's index or one made with
--index-stats, are printed with the wins, draws and losses of the side that plays them, such as \"+2 =0 -8, 47.6%\". In an
explorer's index, the number of games without a result follows, such as \"+2 =0 -8 *1\"; in other sources, these games count as
draws. The percentage is not the score: it is the move's share of the games (in an index) or of the weights (in a book or a
database) of its position. With --color, \"any reply\" marks a move of the opponent that the source does not contain, although
the source contains an answer to the move. A line ends with \"transposition\" at a position that the tree already contains.
The moves of a repertoire in PGN are in the order of the file. With --color, those of the opponent have no weights.

Examples:
  polybook tree book.bin --max-ply 6
  polybook tree book.bin \"1. e4 c5\" --min-share 10 --out sicilian.pgn
  polybook tree white.bin --color white --out repertoire.pgn
      the repertoire of one side, with all replies that it answers
  polybook tree games.obs.db3 --min-game 100 --format jsonl
  polybook make-book tree.pgn --variations --uniform --min-game 1
      the moves of a tree as a book again")]
pub struct Args {
    /// The book, OOBS database, index, directory of counts or repertoire in PGN; - reads any of them except a directory from standard input
    #[arg(value_name = "SOURCE")]
    source: PathBuf,

    #[command(flatten)]
    position: PositionArgs,

    /// Write games with variations (pgn), indented lines (text), or one JSON document for each position (jsonl)
    /// [default: by the ending of --out, else text]
    #[arg(
        long,
        value_parser = one_of([("pgn", TreeFormat::Pgn), ("text", TreeFormat::Text), ("jsonl", TreeFormat::Jsonl)])
    )]
    format: Option<TreeFormat>,

    #[command(flatten)]
    output: OutputArgs,

    /// End lines after N half-moves. Each position is then printed in the shortest line that reaches it [default: no
    /// limit; each position is printed in the first line that reaches it]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=Limits::MAX_PLIES as i64))]
    max_ply: Option<u16>,

    /// Keep moves with a weight of at least N. In an index, the weight of a move is its number of games
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = count::<u64>(0))]
    min_weight: u64,

    /// Keep moves with at least P percent of the total weight of their position. In an index, the weight of a move is
    /// its number of games
    #[arg(long, value_name = "P", default_value_t = 0.0, value_parser = percent)]
    min_share: f64,

    /// Keep moves that were played at least N times. This applies only to databases and indexes
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = count::<u64>(0))]
    min_game: u64,

    /// Stop after N moves
    #[arg(long, value_name = "N", value_parser = count::<u64>(0))]
    limit: Option<u64>,

    /// Print all moves of this side, but only those moves of the opponent that the source answers
    #[arg(long, alias = "colour", ignore_case = true, value_parser = position::color())]
    color: Option<Color>,

    /// Print a report about the file --out as a JSON document
    #[arg(long, requires = "out")]
    json: bool,

    #[command(flatten)]
    evals: EvalsArg,

    #[command(flatten)]
    memory: MemoryArgs,
}

pub fn run(args: &Args, context: Context) -> anyhow::Result<()> {
    check_output(&args.output.out, &[&args.source], args.json)?;
    let out = Output::create(&args.output.out, args.output.force)?;
    let untagged = UntaggedArg {
        untagged_variant: Variant::Standard,
    };
    let variant = args.position.options.variant;
    let opener = Opener::with_resources((variant, &untagged), args.memory.memory(), 0, context)?;
    let source = opener.lines(&args.source, None)?;
    if args.min_game > 0 && !source.0.has_results() {
        let usage = "--min-game applies only to databases and indexes: for a Polyglot book, use --min-weight";
        return Err(Usage(usage.to_owned()).into());
    }
    let is_file = !is_standard_output(&args.output.out);
    let progress = if is_file {
        context
    } else {
        quiet_on_terminal(context)
    };
    let start = start_in(args, &source.0)?;
    let line = if args.position.has_fen() {
        Line::at(start.0, start.1.clone())
    } else {
        Line::start(start.0)
    };
    say_absent(&source.0, (&line, &start.1), "--fen", context)?;
    let only = match args.color {
        None => only_color(&source.0, start.0.start())?,
        Some(_) => None,
    };
    let moves = progress.show_progress("writing the tree", |meter| {
        write(args, (source, start.1), out, meter)
    })?;
    let path = output_name(&args.output.out);
    let mut text = match moves {
        _ if is_file => format!("{path}: {}\n", plural(moves, "move")),
        0 if only.is_none() => {
            "the source contains no moves in this position, or the options exclude all of them\n"
                .to_owned()
        }
        _ => String::new(),
    };
    if let Some(color) = only {
        text += &format!(
            "the source seems to contain only moves of {}: see its lines with --color {color}\n",
            color.fold_wb("White", "Black")
        );
    }
    context.report(&text, args.json, json!({ "path": path, "moves": moves }))
}

/// A source of moves from which a tree is built. For a repertoire in PGN, it comes with the order of the moves in the
/// file.
type Opened = (OpenedSource, Option<FileOrder>);

/// Returns the variant of the tree, and the position in which the tree starts.
fn start_in(args: &Args, source: &OpenedSource) -> anyhow::Result<(Variant, VariantPosition)> {
    let searched = Searched {
        file: &args.source,
        only: source.stated_variant(),
    };
    let asked = args.position.options.variant;
    let variant = asked.unwrap_or(source.variant());
    Ok((variant, args.position.position_in(variant, &searched)?))
}

/// Writes a tree of the moves of `source`, beginning in the position `start`, to `out`. Returns the number of moves in
/// the tree.
fn write(
    args: &Args,
    ((source, order), start): (Opened, VariantPosition),
    mut out: Output,
    meter: &Meter,
) -> anyhow::Result<u64> {
    let source: Box<dyn MoveSource> = Box::new(source);
    let limits = Limits {
        max_ply: args.max_ply.map(usize::from),
        min_weight: args.min_weight,
        min_share: args.min_share,
        min_game: args.min_game,
        moves: args.limit,
        memory: args.memory.memory().share(2),
    };
    let source: Box<dyn MoveSource> = match args.color {
        Some(side) => Box::new(LinesOf(source, side)),
        None => source,
    };
    let opponent = args.color.map(|color| !color).filter(|_| order.is_some());
    let source: Box<dyn MoveSource> = match order {
        Some(order) => Box::new(order.applied_to(source)),
        None => source,
    };
    let source: Box<dyn MoveSource> = match args.evals.open()? {
        Some(evals) => Box::new(EvaluatedSource(source, evals)),
        None => source,
    };
    let tree = Tree::new(source, start, limits, meter).without_weights_of(opponent);
    let format = args.format.unwrap_or(match &*ending(&args.output.out) {
        "pgn" => TreeFormat::Pgn,
        "jsonl" => TreeFormat::Jsonl,
        _ => TreeFormat::Text,
    });
    let path = out.target().to_owned();
    let moves = match format {
        TreeFormat::Pgn => tree.write_pgn(&mut out, &path)?,
        TreeFormat::Text => tree.write_text(&mut out, &path)?,
        TreeFormat::Jsonl => tree.write_jsonl(&mut out, &path)?,
    };
    out.commit()?;
    Ok(moves)
}

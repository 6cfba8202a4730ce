//! `polybook filter`: writes a part of one or several books.

use std::path::PathBuf;

use polybook::{
    book::{Book, Expand, Filter, begin_book, filter_books},
    position::Variant,
};
use serde_json::json;

use super::{
    Context,
    evals::{self, BookEvals, BookEvalsArgs},
    input::{check_output, files_of, output_name, refuse_foreign_name},
    plural,
    position::{self, of_book},
    resources::{MemoryArgs, count},
    usage::Usage,
    weighting::percent,
};

/// Write a part of a book, or of several merged books
#[derive(clap::Args, Debug)]
#[command(after_help = "\
If you give several books, filter first merges them, as merge-book does. With --reachable or --max-ply, filter also drops
positions that the side to move reaches only by playing dropped moves. If castling is spelled e1g1 in one record and e1h1 in
another, the two are added up in positions that a line of the books reaches. In other positions, they stay two moves.

Examples:
  polybook filter book.bin --out narrow.bin --min-share 10 --best 3
  polybook filter book.bin --out short.bin --max-ply 16
  polybook filter white.bin black.bin --out both.bin --reachable
  polybook filter book.bin --out longer.bin --evals my.evals --expand 6 --weights both --max-loss 50
  polybook filter book.bin --out - --min-weight 5 | polybook show -")]
pub struct Args {
    /// The books; - is standard input
    #[arg(value_name = "BOOK", required = true)]
    books: Vec<PathBuf>,

    /// The book to write; - is standard output
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    /// Keep moves with at least this weight
    #[arg(long, value_name = "N", default_value_t = 0)]
    min_weight: u16,

    /// Keep moves with at least P percent of the total weight of the legal moves in their position
    #[arg(long, value_name = "P", default_value_t = 0.0, value_parser = percent)]
    min_share: f64,

    /// Keep the N moves with the largest weights in each position
    #[arg(long, value_name = "N", value_parser = count::<usize>(0))]
    best: Option<usize>,

    /// Keep only positions that a line of the book reaches in fewer than N half-moves
    #[arg(long, value_name = "N")]
    max_ply: Option<u16>,

    /// Keep only positions that the side to move can reach by playing moves of the new book, while the opponent plays
    /// any moves to which the new book has an answer
    #[arg(long)]
    reachable: bool,

    /// Scale the weights of each position so that the largest weight is 65535
    #[arg(long)]
    normalize: bool,

    /// Use the rules of this variant, and find the positions of the books from its starting position [default: the
    /// variant of the first book]
    #[arg(long, value_name = "NAME", value_parser = position::variant())]
    variant: Option<Variant>,

    #[command(flatten)]
    evals: BookEvalsArgs,

    /// Continue each line of the book, where it ends, with up to N of the best evaluated moves. polybook evals --expand
    /// lets an engine choose and evaluate these moves. Added moves have weight 1, unless --weights changes it
    #[arg(long, value_name = "N", requires = "evals", value_parser = clap::value_parser!(u16).range(1..=100))]
    expand: Option<u16>,

    /// Replace an existing file of any kind. Without this option, filter replaces only a book that polybook wrote
    #[arg(long)]
    force: bool,

    /// Print the answer as a JSON document
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    memory: MemoryArgs,
}

pub fn run(args: &Args, context: Context) -> anyhow::Result<()> {
    check_output(&args.out, &args.books, args.json)?;
    refuse_foreign_name("--out", &args.out)?;
    let out = begin_book(&args.out, args.force)?;
    let books = files_of(&args.books)?;
    let books = books.iter().map(Book::open);
    let books = books.collect::<polybook::Result<Vec<_>>>()?;
    let memory = args.memory.memory();
    args.evals.store(args.expand.is_some())?;
    let BookEvals {
        evals,
        max_loss,
        eval_weights,
    } = args.evals.open(&memory, args.expand.is_some())?;
    let expand = args.expand.zip(evals);
    let expand = expand.map(|(plies, evals)| Expand::new(evals, plies));
    if let Some(asked) = args.variant {
        let walks = args.reachable || args.max_ply.is_some() || args.expand.is_some();
        if !walks && max_loss.is_none() && eval_weights.is_none() {
            let usage = "--variant applies only with --reachable, --max-ply, --expand, --weights or --max-loss: also give \
                         one of these options";
            return Err(Usage(usage.to_owned()).into());
        }
        for (argument, book) in args.books.iter().zip(&books) {
            of_book(argument, book, Some(asked))?;
        }
    }
    let filter = Filter {
        min_weight: args.min_weight,
        min_share: args.min_share,
        best: args.best,
        max_ply: args.max_ply,
        reachable: args.reachable,
        normalize: args.normalize,
        max_loss,
        eval_weights,
        expand,
    };
    let summary = context.show_progress("filtering", |meter| {
        filter_books(&books, out, &filter, args.variant, &memory, meter)
    })?;
    let path = output_name(&args.out);
    let expanded = summary.expanded.map(|moves| {
        let moves = plural(moves, "move");
        format!("{moves} added by --expand where lines end\n")
    });
    let text = expanded.unwrap_or_default()
        + &evals::losses(summary.losses.as_ref())
        + &evals::eval_weights(summary.eval_weights);
    let text = format!(
        "{text}{path}: {}, {}; the books had {}\n",
        plural(summary.written, "entry"),
        plural(summary.positions, "position"),
        summary.read
    );
    let mut document = json!({
        "path": path,
        "entries": summary.written,
        "positions": summary.positions,
        "read": summary.read,
    });
    if let Some(moves) = summary.expanded {
        document["expanded"] = json!(moves);
    }
    if let Some(losses) = &summary.losses {
        document["losses"] = json!(losses);
    }
    if let Some(weights) = &summary.eval_weights {
        document["eval_weights"] = json!(weights);
    }
    context.report(&text, args.json, document)
}

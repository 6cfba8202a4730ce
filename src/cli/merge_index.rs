//! `polybook merge-index`: merges several indexes into one.

use std::path::{Path, PathBuf};

use polybook::{
    index::MergeIndexes,
    storage::output::{refuse_clashes, repeated},
};
use serde_json::json;

use super::{
    Context, counted, input::refuse_standard_output, progress::Bar, resources::ResourceArgs,
};

/// Merge indexes into one
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The result is byte-identical to an index that make-book makes from all PGN files in the same order. The games of the second
index are numbered after those of the first one. All indexes must be made with the same --variant, and either with --leveldb
and the same --index-stats, or with --explorer and the same --max-ply. Indexes made from counts cannot be merged: add up the
counts, and make an index from the sum.

Examples:
  polybook merge-index all.idx week.idx --out new.idx
  polybook merge-index 2023.idx 2024.idx 2025.idx --out all.idx --force")]
pub struct Args {
    /// The indexes, all of the same kind. The games are numbered in this order, so give the index with the oldest games
    /// first
    #[arg(value_name = "DIR", required = true)]
    indexes: Vec<PathBuf>,

    /// Write the merged index to this directory
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// Replace an existing index
    #[arg(long)]
    force: bool,

    /// Print the answer as a JSON document
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    resources: ResourceArgs,
}

pub fn run(args: Args, context: Context) -> anyhow::Result<()> {
    refuse_standard_output("--out", &args.out)?;
    let inputs: Vec<&Path> = args.indexes.iter().map(PathBuf::as_path).collect();
    refuse_clashes(&[&args.out], &inputs)?;
    for index in repeated(inputs) {
        let index = index.display();
        context.say(&format!(
            "warning: {index}: this index is given twice, so its games count twice\n"
        ));
    }
    let merge = MergeIndexes::new(args.indexes)
        .force(args.force)
        .threads(args.resources.threads())
        .memory(args.resources.memory());
    let bar = Bar::of_phase("merging", &merge.meter(), context);
    let merged = merge.run(&args.out)?;
    drop(bar);
    let path = args.out.display().to_string();
    let text = format!(
        "{path}: {}, {}, {}\n",
        counted(merged.games, "game"),
        counted(merged.positions, "position"),
        counted(merged.postings, "posting")
    );
    let document = json!({
        "path": path,
        "games": merged.games,
        "positions": merged.positions,
        "postings": merged.postings,
    });
    context.report(&text, args.json, document)
}

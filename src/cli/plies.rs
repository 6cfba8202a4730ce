//! `polybook plies`: writes the half-moves of games as a table.

use std::path::PathBuf;

use polybook::{
    plies::{PlyOptions, write_table},
    storage::{output::begin_text, table::TableFormat},
};

use super::{
    Context,
    filters::{OfEachGame, SelectionArgs},
    input::{check_output, output_name, pgn_inputs, refuse_twice},
    plural,
    position::UntaggedArg,
    resources::{ResourceArgs, count},
    usage::Usage,
};

/// Write the half-moves of games as a table, for machine learning
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The table has a row for each half-move of the games of standard chess that have a result. Its columns key and move are those of
counts, so it can be joined with them; game is the number of the game that polybook games lists as its id.

Examples:
  polybook plies games.pgn --out plies.parquet
  polybook plies games.pgn --max-ply 30 --min-elo 2400 --out openings.csv")]
pub struct Args {
    /// The games in PGN; - is standard input
    #[arg(value_name = "GAMES", required = true)]
    games: Vec<PathBuf>,

    /// The table to write. Its name ends in .csv, .jsonl or .parquet
    #[arg(long, value_name = "FILE", required = true)]
    out: PathBuf,

    /// Replace an existing file of any kind. Without this option, only an empty file is replaced
    #[arg(long)]
    force: bool,

    /// Write only the first N half-moves of each game
    #[arg(long, value_name = "N", value_parser = count::<usize>(1))]
    max_ply: Option<usize>,

    #[command(flatten)]
    untagged: UntaggedArg,

    #[command(flatten)]
    resources: ResourceArgs,

    #[command(flatten)]
    filters: SelectionArgs<OfEachGame>,
}

pub fn run(args: &Args, context: Context) -> anyhow::Result<()> {
    let inputs: Vec<&PathBuf> = args.games.iter().collect();
    refuse_twice(&inputs)?;
    check_output(&args.out, &inputs, false)?;
    let Some(format) = TableFormat::of_path(&args.out) else {
        let usage = format!(
            "--out {}: cannot determine the format from the ending of this name: use a name that ends in .csv, .jsonl \
             or .parquet",
            args.out.display()
        );
        return Err(Usage(usage).into());
    };
    let options = PlyOptions {
        max_ply: args.max_ply.unwrap_or(usize::MAX),
        selection: args.filters.for_each_game()?,
        memory: args.resources.memory(),
        ..PlyOptions::default()
    };
    let inputs = pgn_inputs(&args.games, args.untagged.untagged_variant)?;
    let out = begin_text(&args.out, args.force)?;
    let written = write_table(inputs, &options, args.resources.threads(), out, format)?;
    context.say(&format!(
        "{}: {} of {}, {} rejected\n",
        output_name(&args.out),
        plural(written.plies, "half-move"),
        plural(written.games, "game"),
        written.rejected
    ));
    Ok(())
}

//! `polybook game`: prints the PGN text of games.

use std::path::PathBuf;

use polybook::index::Index;

use super::{Context, terminal::print_bytes};

/// Print the texts of games, as they are in their PGN file
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  polybook game --index games.idx 0
  polybook game --index games.idx 17 4711 > two.pgn")]
pub struct Args {
    /// The index, made with make-book --explorer or --leveldb
    #[arg(long, alias = "leveldb", value_name = "DIR")]
    index: PathBuf,

    /// The ids of the games, as polybook games lists them; the first game has id 0
    #[arg(value_name = "ID", required = true)]
    ids: Vec<u32>,
}

pub fn run(args: &Args, context: Context) -> anyhow::Result<()> {
    let index = Index::open(&args.index)?;
    let mut has_said = context.quiet;
    for id in &args.ids {
        if !has_said && index.is_slow_to_read(*id)? {
            context.say(
                "the PGN is compressed: finding a game takes as long as unpacking all before it\n",
            );
            has_said = true;
        }
        print_bytes(&index.text(*id)?)?;
    }
    Ok(())
}

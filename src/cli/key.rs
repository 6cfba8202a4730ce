//! `polybook key`: the key of a position.

use polybook::position::key;

use super::position::PositionArgs;

/// Print the Polyglot key of a position
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  polybook key                                463b96181691fc9c, the starting position
  polybook key --moves \"1. e4 d5 2. e5\"
  polybook key --fen \"8/8/8/8/8/4k3/8/4K3 w - - 0 1\"")]
pub struct Args {
    #[command(flatten)]
    position: PositionArgs,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let pos = args.position.position()?;
    super::print(&format!("{:016x}\n", key(&pos)))
}

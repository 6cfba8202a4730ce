//! `polybook key`: prints the Polyglot key of a position.

use polybook::position::{self, fen_of, has_inner_castling_rook};
use serde_json::json;
use shakmaty::{Position, variant::VariantPosition};

use super::{
    position::PositionArgs,
    terminal::{print, print_json},
};

/// Print the Polyglot key of a position
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The field signed_key of --json is the key as a signed decimal number, as counts in Parquet contain it.

Examples:
  polybook key                                463b96181691fc9c, the starting position
  polybook key --moves \"1. e4 d5 2. e5\"
  polybook key --fen \"8/8/8/8/8/4k3/8/4K3 w - - 0 1\"")]
pub struct Args {
    #[command(flatten)]
    position: PositionArgs,

    /// Print the answer as a JSON document
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let pos = args.position.position_of(args.position.variant_of(None))?;
    let key = book_key(&pos)?;
    if args.json {
        // Many readers of JSON round a number of 64 bits, so the signed key is a text.
        let signed = position::key(&pos).cast_signed().to_string();
        print_json(&json!({ "key": key, "signed_key": signed, "fen": fen_of(&pos) }))
    } else {
        print(&format!("{key}\n"))
    }
}

/// Returns the Polyglot key of a position as 16 hexadecimal digits. Returns an error for a Chess960 position in which
/// castling is allowed with an inner rook (a rook that is not the outermost one), because a book cannot represent such
/// a position.
pub fn book_key(pos: &VariantPosition) -> anyhow::Result<String> {
    anyhow::ensure!(
        pos.castles().mode().is_standard() || !has_inner_castling_rook(pos),
        "{}: this position has no Polyglot key and cannot be in a book, because a rook that is not the outermost one may castle",
        fen_of(pos)
    );
    Ok(text(position::key(pos)))
}

/// Formats a position key as 16 hexadecimal digits.
pub fn text(key: u64) -> String {
    format!("{key:016x}")
}

//! The position that a question is about.

use polybook::position::{LineError, from_text};
use shakmaty::Chess;

/// Where on the board: the starting position unless something else is said.
#[derive(clap::Args, Debug)]
pub struct PositionArgs {
    /// Start from this position
    #[arg(long, value_name = "FEN")]
    fen: Option<String>,

    /// Play these moves, in SAN or UCI, move numbers allowed: "1. e4 c5 2. Nf3"
    #[arg(long, value_name = "MOVES")]
    moves: Option<String>,

    /// The same without an option: a FEN, or moves
    #[arg(value_name = "POSITION", conflicts_with_all = ["fen", "moves"])]
    position: Option<String>,
}

impl PositionArgs {
    /// The position that is meant.
    pub fn position(&self) -> Result<Chess, LineError> {
        match &self.position {
            // No move holds a slash, every FEN seven.
            Some(text) if text.contains('/') => from_text(Some(text), None),
            Some(text) => from_text(None, Some(text)),
            None => from_text(self.fen.as_deref(), self.moves.as_deref()),
        }
    }
}

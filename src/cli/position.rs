//! The position that a question is about.

use polybook::position::{LineError, Variant};
use shakmaty::variant::VariantPosition;

/// A position. Default: the starting position.
#[derive(clap::Args, Debug)]
pub struct PositionArgs {
    /// Start from this position
    #[arg(long, value_name = "FEN")]
    fen: Option<String>,

    /// Play these moves, in SAN or UCI, move numbers allowed: "1. e4 c5 2. Nf3"
    #[arg(long, value_name = "MOVES")]
    moves: Option<String>,

    /// Use the rules of this variant [default: the variant of the file, else standard]
    #[arg(long, value_name = "NAME", value_parser = super::variant::name())]
    variant: Option<Variant>,

    /// The position: a FEN, or moves from the starting position
    #[arg(value_name = "POSITION", conflicts_with_all = ["fen", "moves"])]
    position: Vec<String>,
}

impl PositionArgs {
    /// The position that the options name. Default: of standard chess.
    pub fn position(&self) -> Result<VariantPosition, LineError> {
        self.position_of(None)
    }

    /// The variant that the options name, else that of the file.
    pub fn variant_of(&self, of_file: Option<Variant>) -> Variant {
        self.variant.or(of_file).unwrap_or_default()
    }

    /// The position that the options name, of their variant or else of that of the file.
    pub fn position_of(&self, variant: Option<Variant>) -> Result<VariantPosition, LineError> {
        let variant = self.variant_of(variant);
        match self.position.join(" ") {
            text if text.is_empty() => {
                variant.from_text(self.fen.as_deref(), self.moves.as_deref())
            }
            // No move holds a slash, every FEN seven.
            text if text.contains('/') => variant.from_text(Some(&text), None),
            text => variant.from_text(None, Some(&text)),
        }
    }
}

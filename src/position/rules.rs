//! What a position must answer beyond the rules of chess.

use shakmaty::{Chess, Move, Position, variant::VariantPosition};

use super::variant::number_of;

/// Positions that have a key: those of standard chess as a type of their own, which is the fastest,
/// and those of all variants.
pub trait Rules: Position + Clone + Send + Sync {
    /// The one legal move that a text is, where that can be told quickly.
    fn quick_san(&self, _text: &[u8]) -> Option<Move> {
        None
    }

    /// The number of the variant that goes into the key, 0 for those that have none.
    #[inline]
    fn number(&self) -> u64 {
        0
    }

    /// Whether captures change squares that the move does not name.
    #[inline]
    fn captures_explode(&self) -> bool {
        false
    }
}

impl Rules for VariantPosition {
    fn quick_san(&self, text: &[u8]) -> Option<Move> {
        match self {
            VariantPosition::Chess(pos) => chess_san(pos, text),
            _ => None,
        }
    }

    fn number(&self) -> u64 {
        number_of(self.variant()).unwrap_or(0)
    }

    fn captures_explode(&self) -> bool {
        matches!(self, VariantPosition::Atomic(_))
    }
}

/// Apart, so that it is inlined where it matters.
#[inline(never)]
fn chess_san(pos: &Chess, text: &[u8]) -> Option<Move> {
    pos.quick_san(text)
}

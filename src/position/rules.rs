//! What a position must answer beyond the rules of chess.

use shakmaty::{Chess, EnPassantMode, Move, Position, Square, variant::VariantPosition};

use super::{BookMove, Variant, Word, epd::from_setup};

/// Positions that have a key: those of standard chess as a type of their own, which is the fastest,
/// and those of all variants.
pub trait Rules: Position + Clone + Send + Sync {
    /// The one legal move that a word is, where that is quick to find. The word has no check sign.
    #[inline]
    fn quick_san(&self, _word: Word) -> Option<Move> {
        None
    }

    /// The legal move that a book move is, where that is quick to find.
    #[inline]
    fn quick_move(&self, _mv: BookMove) -> Option<Move> {
        None
    }

    /// Returns the position with this en passant square, or `None` if no double step can have led to it.
    fn with_en_passant(&self, square: Square) -> Option<Self>;

    /// The variant by whose rules moves are played; suicide chess for giveaway chess too.
    fn rules(&self) -> Variant;

    /// Whether captures change squares that the move does not name.
    #[inline]
    fn captures_explode(&self) -> bool {
        false
    }
}

impl Rules for VariantPosition {
    fn quick_san(&self, word: Word) -> Option<Move> {
        match self {
            VariantPosition::Chess(pos) => chess_san(pos, word),
            _ => None,
        }
    }

    fn with_en_passant(&self, square: Square) -> Option<VariantPosition> {
        let mut setup = self.to_setup(EnPassantMode::Always);
        setup.ep_square = Some(square);
        from_setup(setup, self)
    }

    fn rules(&self) -> Variant {
        match self {
            VariantPosition::Chess(pos) => pos.rules(),
            _ => Variant::ALL
                .into_iter()
                .find(|variant| variant.game() == self.variant())
                .expect("all variants are listed"),
        }
    }

    fn captures_explode(&self) -> bool {
        matches!(self, VariantPosition::Atomic(_))
    }
}

/// Apart, so that it is inlined where it matters.
#[inline(never)]
fn chess_san(pos: &Chess, word: Word) -> Option<Move> {
    pos.quick_san(word)
}

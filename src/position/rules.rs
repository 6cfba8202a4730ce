//! The operations on positions that the crate needs beyond shakmaty's [`Position`].

use shakmaty::{Chess, EnPassantMode, Move, Position, Square, variant::VariantPosition};

use super::{BookMove, Variant, Word, epd::from_setup};

/// Positions that have a key.
///
/// [`Chess`] implements the fast paths, so code that is generic over `Rules` runs fastest for standard chess. A
/// [`VariantPosition`] serves for all variants.
pub trait Rules: Position + Clone + Send + Sync {
    /// Returns the one legal move that a word in SAN stands for, or `None` if the fast path cannot tell. The word must
    /// not have a check sign.
    #[inline]
    fn quick_san(&self, _word: Word) -> Option<Move> {
        None
    }

    /// Returns the legal move that a book move stands for, or `None` if the fast path cannot tell.
    #[inline]
    fn quick_move(&self, _mv: BookMove) -> Option<Move> {
        None
    }

    /// Returns the position with this en passant square, or `None` if no double step can have led to it.
    fn with_en_passant(&self, square: Square) -> Option<Self>;

    /// Returns the variant whose rules the moves follow. Giveaway chess is reported as suicide chess, whose moves are
    /// the same.
    fn rules(&self) -> Variant;

    /// Returns `true` if a capture also changes squares that the move does not name, as in atomic chess.
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

/// Reads a word as a move of standard chess. This is a function of its own, never inlined, so that the compiler inlines
/// [`Rules::quick_san`] where the position is a [`Chess`].
#[inline(never)]
fn chess_san(pos: &Chess, word: Word) -> Option<Move> {
    pos.quick_san(word)
}

//! Positions as texts that wait in a temporary file.

use shakmaty::{
    CastlingMode, EnPassantMode, Position, PositionError, Setup, fen::Fen, variant::VariantPosition,
};

/// A position as a text, with all that it knows but the rules that it is played by.
pub(crate) fn stored(pos: &VariantPosition) -> String {
    Fen::from_position(pos, EnPassantMode::Always).to_string()
}

/// The position of a [stored] text, by the rules of another. `None` for other texts.
pub(crate) fn restored(text: &str, rules: &VariantPosition) -> Option<VariantPosition> {
    let setup = Setup::from(text.parse::<Fen>().ok()?);
    let castling: CastlingMode = rules.castles().mode();
    VariantPosition::from_setup(rules.variant(), setup, castling)
        .or_else(PositionError::ignore_too_much_material)
        .or_else(PositionError::ignore_impossible_check)
        .or_else(PositionError::ignore_invalid_castling_rights)
        .ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::position::{Keyed, Variant};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        #[test]
        fn what_is_stored_is_restored(variant in 0..Variant::ALL.len(), choices in proptest::collection::vec(any::<u8>(), 0..80)) {
            let start = Variant::ALL[variant].start();
            let mut pos = Keyed::new(start.clone());
            for choice in choices {
                let moves = pos.position().legal_moves();
                let again = restored(&stored(pos.position()), &start).unwrap();
                prop_assert_eq!(again.legal_moves(), moves.clone());
                let keyed = Keyed::new(again.clone());
                prop_assert_eq!((keyed.key(), keyed.identity()), (pos.key(), pos.identity()));
                prop_assert_eq!(again.halfmoves(), pos.position().halfmoves());
                prop_assert_eq!(again.fullmoves(), pos.position().fullmoves());
                let Some(mv) = moves.get(usize::from(choice) % moves.len().max(1)) else {
                    break;
                };
                pos.play(*mv);
            }
        }
    }
}

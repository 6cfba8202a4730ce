//! Positions as they are given on a command line: a FEN, and moves from there.

use shakmaty::{Chess, variant::VariantPosition};
use thiserror::Error;

use super::{MoveError, Rules, Variant, read_move};

/// Why a position could not be reached.
#[derive(Debug, Error)]
pub enum LineError {
    /// The FEN is malformed or its position impossible.
    #[error("FEN \"{}\": {reason}", cut(fen))]
    Fen {
        /// The text that was given.
        fen: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The FEN has castling rights that only Chess960 knows.
    #[error(
        "FEN \"{}\": its castling rights are those of Chess960: read it as the variant {}",
        cut(fen),
        Variant::Chess960
    )]
    Chess960 {
        /// The text that was given.
        fen: String,
    },
    /// A move of the line could not be played.
    #[error("move {number} of the line, \"{text}\": {reason} in {fen}")]
    Move {
        /// Which one, from 1.
        number: usize,
        /// The move as written.
        text: String,
        /// What is wrong with it.
        reason: MoveError,
        /// The position before it.
        fen: String,
    },
}

/// The longest FEN that an error quotes whole. Those of chess have at most 90 characters.
const LONGEST_QUOTED: usize = 100;

/// A FEN as an error quotes it.
fn cut(fen: &str) -> String {
    let mut cut: String = fen.chars().take(LONGEST_QUOTED).collect();
    if cut.len() < fen.len() {
        cut.push_str("...");
    }
    cut
}

/// Reads a FEN of standard chess.
///
/// # Errors
///
/// [`LineError::Fen`] if it is malformed or no game could reach it, [`LineError::Chess960`] if it is of
/// that variant.
pub fn parse_fen(text: &str) -> Result<Chess, LineError> {
    Variant::Standard.parse_fen(text).map(standard)
}

/// A position of standard chess as its own type.
fn standard(pos: VariantPosition) -> Chess {
    match pos {
        VariantPosition::Chess(pos) => Some(pos),
        _ => None,
    }
    .expect("a variant makes positions of its own only")
}

/// The position in which a game of standard chess starts that has this `FEN` tag, and whether castling
/// rights were dropped, as [`Variant::game_start`] has it for all variants.
///
/// # Errors
///
/// As of [`parse_fen`].
pub fn game_start(fen: &str) -> Result<(Chess, bool), LineError> {
    let (start, dropped) = Variant::Standard.start_of_tag(fen)?;
    Ok((standard(start), dropped))
}

/// The position after the moves of `line` from `fen`, a FEN or an EPD, each of them optional: neither means the
/// starting position. Move numbers and marks such as `!?` are allowed between the moves.
///
/// # Errors
///
/// [`LineError`] names the FEN or the move that is wrong.
///
/// ```
/// use polybook::position::{from_text, key};
/// let pos = from_text(None, Some("1. e4 d5 2. e5"))?;
/// assert_eq!(key(&pos), 0x662f_afb9_65db_29d4);
/// # Ok::<(), polybook::position::LineError>(())
/// ```
pub fn from_text(fen: Option<&str>, line: Option<&str>) -> Result<Chess, LineError> {
    Variant::Standard.from_text(fen, line).map(standard)
}

/// The position after the moves of a line.
pub(super) fn play_line<P: Rules>(mut pos: P, line: &str) -> Result<P, LineError> {
    let words = line
        .split(|c: char| c.is_whitespace() || c == ',')
        .map(without_move_number)
        .map(|word| word.trim_end_matches(['!', '?']))
        .filter(|word| !word.is_empty());
    for (index, word) in words.enumerate() {
        let mv = read_move(&pos, word.as_bytes()).map_err(|reason| LineError::Move {
            number: index + 1,
            text: word.to_owned(),
            reason,
            fen: super::fen_of(&pos),
        })?;
        pos.play_unchecked(mv);
    }
    Ok(pos)
}

/// `12.Nf3` and `12...Nf3` without their number; `12` alone is nothing.
fn without_move_number(word: &str) -> &str {
    let rest = word.trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.is_empty() || rest.starts_with('.') {
        rest.trim_start_matches('.')
    } else {
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::key;

    #[test]
    fn a_long_fen_is_cut_in_its_error() {
        let error = from_text(Some(&"x".repeat(9999)), None).unwrap_err();
        assert!(error.to_string().len() < 300, "{error}");
    }

    #[test]
    fn san_uci_and_numbers_mix() {
        let expected = key(&from_text(None, Some("e4 c5 Nf3")).unwrap());
        for line in [
            "1. e4 c5 2. Nf3",
            "1.e4 c5 2.Nf3!?",
            "e2e4 c7c5 g1f3",
            "1 e4, c5 2 Nf3",
        ] {
            assert_eq!(
                key(&from_text(None, Some(line)).unwrap()),
                expected,
                "{line}"
            );
        }
    }

    #[test]
    fn castling_with_zeros_is_not_a_move_number() {
        let line = "e4 e5 Nf3 Nf6 Bc4 Bc5 0-0";
        assert!(from_text(None, Some(line)).is_ok());
    }

    #[test]
    fn errors_say_where() {
        let err = from_text(None, Some("1. e4 e5 2. Ke3"))
            .unwrap_err()
            .to_string();
        assert!(
            err.contains("move 3") && err.contains("Ke3") && err.contains("illegal"),
            "{err}"
        );
        let err = from_text(Some("8/8/8"), None).unwrap_err().to_string();
        assert!(err.contains("8/8/8"), "{err}");
    }
}

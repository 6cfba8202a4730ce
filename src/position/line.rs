//! Positions that a user gives as a FEN and a line of moves from there, both optional, and the errors that say what is
//! wrong with them.

use shakmaty::{Chess, variant::VariantPosition};
use thiserror::Error;

use super::{MoveError, Rules, Variant, read_move};

/// The error of reading a position from a FEN and a line of moves.
#[derive(Debug, Error)]
pub enum LineError {
    /// The FEN is malformed, or its position is impossible.
    #[error("FEN \"{}\": {reason}", cut(fen))]
    Fen {
        /// The FEN as it was given.
        fen: String,
        /// A description of the problem.
        reason: String,
    },
    /// The FEN has castling rights that are possible only in Chess960.
    #[error(
        "FEN \"{}\": its castling rights are those of Chess960: read it with --variant {1} (in HTTP and Python: variant={1})",
        cut(fen),
        Variant::Chess960
    )]
    Chess960 {
        /// The FEN as it was given.
        fen: String,
    },
    /// A move of the line is not a legal move.
    #[error("move {number} of the line, \"{text}\": {reason} in {fen}")]
    Move {
        /// The number of the half-move in the line, from 1.
        number: usize,
        /// The move as it was written.
        text: String,
        /// A description of the problem.
        reason: MoveError,
        /// The FEN of the position before the move.
        fen: String,
    },
}

/// The maximum length in characters of a FEN that an error message quotes completely. FENs of standard chess have at
/// most 90 characters.
const LONGEST_QUOTED: usize = 100;

/// Truncates a FEN to [`LONGEST_QUOTED`] characters, for an error message.
fn cut(fen: &str) -> String {
    let mut cut: String = fen.chars().take(LONGEST_QUOTED).collect();
    if cut.len() < fen.len() {
        cut.push_str("...");
    }
    cut
}

/// Parses a FEN or EPD of standard chess.
///
/// # Errors
///
/// Returns [`LineError::Fen`] if the FEN is malformed or its position is impossible, and [`LineError::Chess960`] if it
/// has castling rights that are possible only in Chess960.
pub fn parse_fen(text: &str) -> Result<Chess, LineError> {
    Variant::Standard.parse_fen(text).map(standard)
}

/// Converts a position of standard chess to [`Chess`].
///
/// # Panics
///
/// Panics if the position belongs to another variant.
fn standard(pos: VariantPosition) -> Chess {
    match pos {
        VariantPosition::Chess(pos) => Some(pos),
        _ => None,
    }
    .expect("a variant makes positions of its own only")
}

/// Parses the value of a `FEN` tag, the position in which a game of standard chess starts. Returns the position, and
/// `true` if castling rights without king and rook were dropped. [`Variant::game_start`] does the same for any variant.
///
/// # Errors
///
/// Returns the errors of [`parse_fen`].
pub fn game_start(fen: &str) -> Result<(Chess, bool), LineError> {
    let (start, dropped) = Variant::Standard.start_of_tag(fen)?;
    Ok((standard(start), dropped))
}

/// Returns the position after the moves of `line` have been played from `fen`, a FEN or an EPD.
///
/// If `fen` is `None`, the moves are played from the starting position. If `line` is `None`, no moves are played. Move
/// numbers and marks such as `!?` are allowed between the moves.
///
/// # Errors
///
/// Returns a [`LineError`] that quotes the FEN if it cannot be read, or the first move that is not legal.
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

/// Returns the position after the moves of `line`, which may contain move numbers and marks, have been played from
/// `pos`.
///
/// # Errors
///
/// Returns [`LineError::Move`] for the first word that is not a legal move.
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

/// Removes a move number from a word: `12.Nf3` and `12...Nf3` become `Nf3`, and `12.` and `12` become empty.
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

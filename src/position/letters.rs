//! Piece letters in several languages, and [advice](with_advice) for moves that cannot be read because they are in
//! another language or notation.

use std::{fmt, str::FromStr};

use shakmaty::Move;
use thiserror::Error;

use super::{MoveError, Rules, Variant, read_move};

/// A language in which moves are written. It determines the letters for the pieces.
///
/// | | knight | bishop | rook | queen | king |
/// |---|---|---|---|---|---|
/// | English | N | B | R | Q | K |
/// | German | S | L | T | D | K |
/// | Dutch | P | L | T | D | K |
/// | French | C | F | T | D | R |
/// | Spanish | C | A | T | D | R |
/// | Italian | C | A | T | D | R |
///
/// English letters are accepted in every language, unless the language gives them another meaning: `R` never means a
/// rook in French, Spanish and Italian, and `P` never means a pawn in Dutch. Lowercase letters, as in `e7e8q`, are
/// always English.
///
/// ```
/// use polybook::position::{PieceLetters, read_move};
/// let start = shakmaty::Chess::default();
/// assert_eq!(PieceLetters::German.read_move(&start, b"Sf3"), read_move(&start, b"Nf3"));
/// assert_eq!("de".parse(), Ok(PieceLetters::German));
/// ```
#[derive(Copy, Clone, PartialEq, Eq, Hash, Default, Debug)]
pub enum PieceLetters {
    /// The letters of the PGN standard.
    #[default]
    English,
    /// Springer, Läufer, Turm, Dame, König.
    German,
    /// Paard, loper, toren, dame, koning.
    Dutch,
    /// Cavalier, fou, tour, dame, roi.
    French,
    /// Caballo, alfil, torre, dama, rey.
    Spanish,
    /// Cavallo, alfiere, torre, donna, re.
    Italian,
}

/// The error for a string that is not the code of a supported language.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("this language of piece letters is unknown: use en, de, nl, fr, es or it")]
pub struct UnknownLetters;

impl PieceLetters {
    /// All supported languages, starting with English.
    pub const ALL: [PieceLetters; 6] = [
        PieceLetters::English,
        PieceLetters::German,
        PieceLetters::Dutch,
        PieceLetters::French,
        PieceLetters::Spanish,
        PieceLetters::Italian,
    ];

    /// Returns the lowercase ISO 639-1 code of the language, such as `de`.
    pub fn code(self) -> &'static str {
        match self {
            PieceLetters::English => "en",
            PieceLetters::German => "de",
            PieceLetters::Dutch => "nl",
            PieceLetters::French => "fr",
            PieceLetters::Spanish => "es",
            PieceLetters::Italian => "it",
        }
    }

    /// Returns the letters for knight, bishop, rook, queen and king, in this order.
    fn letters(self) -> [u8; 5] {
        *match self {
            PieceLetters::English => ENGLISH,
            PieceLetters::German => b"SLTDK",
            PieceLetters::Dutch => b"PLTDK",
            PieceLetters::French => b"CFTDR",
            PieceLetters::Spanish | PieceLetters::Italian => b"CATDR",
        }
    }

    /// Parses a legal move of the position `pos` like [`read_move`], but with the piece letters of this language.
    ///
    /// # Errors
    ///
    /// Returns [`MoveError::Unreadable`] if the text does not have the form of a move, [`MoveError::Illegal`] if it
    /// does not describe a legal move, and [`MoveError::Ambiguous`] if it describes several.
    #[inline(always)]
    pub fn read_move<P: Rules>(self, pos: &P, text: &[u8]) -> Result<Move, MoveError> {
        let english;
        let text = if self == PieceLetters::English {
            text
        } else {
            english = self.in_english(text)?;
            &english[..text.len()]
        };
        read_move(pos, text)
    }

    /// Returns the codes of the other supported languages in which `text` is a legal move of `pos`, separated by
    /// commas, for example `de, nl`. Returns `None` if there are no such languages.
    #[cold]
    pub(crate) fn languages_of<P: Rules>(self, pos: &P, text: &[u8]) -> Option<String> {
        let others = PieceLetters::ALL.into_iter().filter(|other| *other != self);
        let fitting = others.filter(|other| other.read_move(pos, text).is_ok());
        let codes: Vec<&str> = fitting.map(PieceLetters::code).collect();
        (!codes.is_empty()).then(|| codes.join(", "))
    }

    /// Replaces the piece letters of this language in a written move with the English ones. Pads the result with zero
    /// bytes.
    ///
    /// # Errors
    ///
    /// Returns [`MoveError::Unreadable`] if the text has more than [`MAX_WORD_LENGTH`] bytes.
    #[cold]
    fn in_english(self, text: &[u8]) -> Result<[u8; MAX_WORD_LENGTH], MoveError> {
        let mut english = [0; MAX_WORD_LENGTH];
        let place = english.get_mut(..text.len()).ok_or(MoveError::Unreadable)?;
        let letters = self.letters();
        for (english, byte) in place.iter_mut().zip(text) {
            let role = letters.iter().position(|letter| letter == byte);
            *english = role.map_or(*byte, |role| ENGLISH[role]);
        }
        Ok(english)
    }
}

/// The English letters for knight, bishop, rook, queen and king, in this order.
const ENGLISH: &[u8; 5] = b"NBRQK";

/// The maximum length in bytes of a word that is parsed with the piece letters of a language other than English.
const MAX_WORD_LENGTH: usize = 32;

/// Writes the code of the language, for example `de`.
impl fmt::Display for PieceLetters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.code())
    }
}

/// Parses the code of a language. Case is ignored.
impl FromStr for PieceLetters {
    type Err = UnknownLetters;

    fn from_str(text: &str) -> Result<PieceLetters, UnknownLetters> {
        PieceLetters::ALL
            .into_iter()
            .find(|letters| letters.code().eq_ignore_ascii_case(text))
            .ok_or(UnknownLetters)
    }
}

/// Returns the error message for `text`, a written move that cannot be played in `pos` because of `err`. The message
/// contains advice if the user's mistake can be recognized. `letters` is the language in which `text` was parsed.
#[cold]
pub(crate) fn with_advice<P: Rules>(
    err: MoveError,
    pos: &P,
    text: &[u8],
    letters: PieceLetters,
) -> String {
    match advice(pos, text, letters) {
        Some(advice) => format!("{err}; {advice}"),
        None => err.to_string(),
    }
}

fn advice<P: Rules>(pos: &P, text: &[u8], letters: PieceLetters) -> Option<String> {
    if let Some(codes) = letters.languages_of(pos, text) {
        return Some(format!(
            "the move is legal with make-book --piece-letters {codes}"
        ));
    }
    let crazyhouse = Variant::Crazyhouse;
    if text.contains(&b'@') && pos.rules() != crazyhouse {
        return Some(format!(
            "only crazyhouse has drops: if this is a crazyhouse game without a Variant tag, give --variant \
             {crazyhouse} --untagged-variant {crazyhouse}"
        ));
    }
    if is_descriptive(text) {
        return Some(
            "the move is in descriptive notation: convert the game to moves such as e4 and Nf3"
                .to_owned(),
        );
    }
    has_foreign_letters(text).then(|| {
        "--piece-letters does not support the language of this move: use K, Q, R, B and N for the pieces, and a to h \
         for the files"
            .to_owned()
    })
}

/// Returns `true` if a text is a move in English descriptive notation, for example `P-K4`, `Kt-KB3` or `QPxP`.
fn is_descriptive(text: &[u8]) -> bool {
    let text = text.strip_suffix(b"ch").unwrap_or(text);
    let is_piece = |byte: &u8| b"PNBRQKt".contains(byte);
    let pieces = |text: &[u8]| text.iter().take_while(|byte| is_piece(byte)).count();
    let moved = pieces(text);
    let Some((b'-' | b'x' | b'X', target)) = text[moved..].split_first() else {
        return false;
    };
    let named = pieces(target);
    let rank = &target[named..];
    let is_target = matches!(rank, [] | [b'1'..=b'8', ..]);
    (1..=4).contains(&moved) && (1..=4).contains(&named) && is_target
}

/// Returns `true` if a text has the form of a move, but contains a piece letter that is not English, for example
/// `Кf3` (Cyrillic) or `Hf3` (Hungarian).
fn has_foreign_letters(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    let word = text.trim_end_matches(['+', '#', '!', '?']);
    let square = word.rsplit_once('=').map_or(word, |(square, _)| square);
    // Moves contain no other lowercase letters in ASCII, unlike ordinary words.
    let is_of_moves = |c: char| !c.is_ascii_lowercase() || matches!(c, 'a'..='h' | 'x');
    let is_foreign = |letter: char| match letter {
        'A'..='Z' => !"KQRBNPO".contains(letter),
        _ => !letter.is_ascii() && letter.is_alphabetic(),
    };
    let is_short = (2..=8).contains(&word.chars().count());
    is_short
        && square.ends_with(|c: char| ('1'..='8').contains(&c))
        && word.contains(is_foreign)
        && word
            .chars()
            .all(|c| is_of_moves(c) && (c.is_alphanumeric() || "-:=".contains(c)))
}

#[cfg(test)]
mod tests {
    use shakmaty::Chess;

    use super::*;

    #[track_caller]
    fn assert_advice(texts: &[&str], expected: &str) {
        for text in texts {
            let said = with_advice(
                MoveError::Unreadable,
                &Chess::default(),
                text.as_bytes(),
                PieceLetters::English,
            );
            assert!(said.contains(expected), "{text}: {said}");
        }
    }

    #[test]
    fn moves_of_other_notations_are_recognized() {
        assert_advice(
            &["P-K4", "Kt-KB3", "N-QB3", "PxP", "QxKBPch", "R-Q1", "BxN"],
            "descriptive notation",
        );
        assert_advice(
            &["Кf3", "Крe2", "е4", "Сxd5+", "Hf3", "Jf3", "Gg5", "e8=Ф"],
            "does not support the language",
        );
        assert_advice(&["@g7", "N@f3", "P@e4+"], "--untagged-variant crazyhouse");
        assert_advice(&["Sf3"], "--piece-letters de");
        for text in [
            "Introduction",
            "Über",
            "x",
            "No. 8",
            "e9",
            "K-",
            "1st",
            "e5",
            "O-O",
            "Chapter8",
        ] {
            let pos = Chess::default();
            assert_eq!(
                advice(&pos, text.as_bytes(), PieceLetters::English),
                None,
                "{text}"
            );
        }
    }
}

//! The letters of the pieces in the languages in which PGN is written.

use std::{fmt, str::FromStr};

use shakmaty::Move;
use thiserror::Error;

use super::{MoveError, Rules, read_move};

/// A language whose letters name the pieces in written moves.
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
/// English letters are read in every language, unless the language gives them another meaning: `R` is
/// never a rook in French, Spanish and Italian, nor `P` a pawn in Dutch. Letters in lower case, as in
/// `e7e8q`, are always English.
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

/// The error for a language code that is not one of [`PieceLetters::ALL`].
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("unknown language of piece letters: write en, de, nl, fr, es or it")]
pub struct UnknownLetters;

impl PieceLetters {
    /// All supported languages, with English first.
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

    /// Parses a move like [`read_move`], but with the piece letters of this language.
    ///
    /// # Errors
    ///
    /// Returns [`MoveError::Unreadable`] if the text does not have the form of a move, [`MoveError::Illegal`] if no
    /// legal move is written like this, and [`MoveError::Ambiguous`] if several are.
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

    /// Returns the codes of the languages, except `self`, in which `text` is a legal move, separated by commas, such as
    /// `de, nl`. Returns `None` if there is no such language.
    #[cold]
    pub(crate) fn languages_of<P: Rules>(self, pos: &P, text: &[u8]) -> Option<String> {
        let others = PieceLetters::ALL.into_iter().filter(|other| *other != self);
        let fitting = others.filter(|other| other.read_move(pos, text).is_ok());
        let codes: Vec<&str> = fitting.map(PieceLetters::code).collect();
        (!codes.is_empty()).then(|| codes.join(", "))
    }

    /// Returns the move with the piece letters of this language replaced by the English ones. The result is padded with
    /// zeros at the end.
    ///
    /// # Errors
    ///
    /// Returns [`MoveError::Unreadable`] if the text has more than [`LONGEST`] bytes.
    #[cold]
    fn in_english(self, text: &[u8]) -> Result<[u8; LONGEST], MoveError> {
        let mut english = [0; LONGEST];
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

/// The maximum length in bytes of a move whose piece letters are translated.
const LONGEST: usize = 32;

/// Writes the code of the language.
impl fmt::Display for PieceLetters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.code())
    }
}

/// Reads the code of a language, in any case.
impl FromStr for PieceLetters {
    type Err = UnknownLetters;

    fn from_str(text: &str) -> Result<PieceLetters, UnknownLetters> {
        PieceLetters::ALL
            .into_iter()
            .find(|letters| letters.code().eq_ignore_ascii_case(text))
            .ok_or(UnknownLetters)
    }
}

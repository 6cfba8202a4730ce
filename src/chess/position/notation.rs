//! Parses moves as people and programs write them.
//!
//! Nearly every move is written in strict SAN, which is tried first. Next, the parser tries the other forms that occur
//! in files and that Polyglot accepts. Examples are `Nd5` for a capture and `Nxd5` for a move without capture, `ed5`,
//! `e8Q`, `e8=q`, `Ng1-f3`, `g1f3`, `nf3`, and castling as `0-0`, `OO`, `e1g1` or `e1h1`. `PlainMove` normalizes other
//! spellings to these forms. The parser never accepts a text as a move that the text does not describe.
//!
//! The module also contains the piece letters in several languages, and [advice](with_advice) for users whose moves are
//! written in another language or notation.

use std::{fmt, str::FromStr};

use shakmaty::{
    CastlingSide, File, Move, Position, Role, Square, attacks,
    san::{San, SanPlus, Suffix},
};
use thiserror::Error;

use super::{Rules, Variant, Word, movement::castling_by_squares};

/// The reason why a text does not describe exactly one legal move in a position.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Error)]
pub enum MoveError {
    /// The text does not have the form of a move.
    #[error("not a move")]
    Unreadable,
    /// The text has the form of a move, but does not describe a legal move in the position.
    #[error("illegal move")]
    Illegal,
    /// The text describes several legal moves in the position.
    #[error("ambiguous move")]
    Ambiguous,
}

/// Parses a legal move in SAN or coordinate notation, with or without a check sign. Annotations such as `!?` must
/// have been removed.
///
/// # Errors
///
/// Returns [`MoveError::Unreadable`] if the text does not have the form of a move, [`MoveError::Illegal`] if it does
/// not describe a legal move, and [`MoveError::Ambiguous`] if it describes several.
///
/// ```
/// use polybook::position::{MoveError, read_move};
/// let start = shakmaty::Chess::default();
/// assert_eq!(read_move(&start, b"Nf3"), read_move(&start, b"g1-f3"));
/// assert_eq!(read_move(&start, b"Ke2"), Err(MoveError::Illegal));
/// assert_eq!(read_move(&start, b"checkmate"), Err(MoveError::Unreadable));
/// ```
// This function is called for nearly every move of every game, from few places.
#[inline(always)]
pub fn read_move<P: Rules>(pos: &P, text: &[u8]) -> Result<Move, MoveError> {
    match Word::new(text).and_then(|word| read_word(pos, word)) {
        Some(mv) => Ok(mv),
        None => read_slowly(pos, without_check(text)),
    }
}

/// Parses a legal move in one of the most common forms of SAN. Returns `None` if the word has another form, or if it is
/// not a legal move. In this case, call [`read_move`], which is slower but accepts all forms.
#[inline(always)]
pub fn read_word<P: Rules>(pos: &P, word: Word) -> Option<Move> {
    pos.quick_san(word.without_check())
}

/// Parses a legal move in any notation. First tries strict SAN, and then normalizes the text and tries other forms.
/// `text` must not end with a check sign.
#[cold]
fn read_slowly<P: Position>(pos: &P, text: &[u8]) -> Result<Move, MoveError> {
    // `bb4` may be a move of a bishop or of a pawn, which strict SAN does not consider.
    if !text.starts_with(b"bb")
        && let Some(mv) = San::from_ascii(text)
            .ok()
            .and_then(|san| san.to_move(pos).ok())
    {
        return Ok(mv);
    }
    let spelling = PlainMove::new(text).ok_or(MoveError::Unreadable)?;
    let mv = match *spelling.text() {
        [b'b', b'1'..=b'8', ..] => find(pos, spelling.text()),
        [b'b', ..] => find_pawn_or_bishop(pos, spelling.text()),
        _ => find(pos, spelling.text()),
    }?;
    if spelling.en_passant && !mv.is_en_passant() {
        return Err(MoveError::Illegal);
    }
    Ok(mv)
}

/// Returns the legal move of `pos` that `text` describes in SAN or UCI notation. The caller must have normalized `text`
/// with [`PlainMove`].
///
/// # Errors
///
/// Returns an error if the text does not have the form of a move, if it describes no legal move, or if it describes
/// several legal moves.
fn find<P: Position>(pos: &P, text: &[u8]) -> Result<Move, MoveError> {
    let (role, file, rank, to, promotion) = match parse(text).ok_or(MoveError::Unreadable)? {
        San::Normal {
            role,
            file,
            rank,
            to,
            promotion,
            ..
        } => (role, file, rank, to, promotion),
        san => return san.to_move(pos).map_err(|_| MoveError::Illegal),
    };
    let role =
        Some(role).filter(|_| !matches!(text[0], b'a'..=b'h' | b'1'..=b'8' | b'x' | b'-' | b':'));
    let from = file.zip(rank).map(|(f, r)| Square::from_coords(f, r));
    if role.is_none_or(|role| role == Role::King)
        && promotion.is_none()
        && let Some(castle) = from.and_then(|from| castling_by_squares(pos, from, to))
    {
        return Ok(castle);
    }
    // If the text contains the origin square, as in `g1f3`, the piece on this square moves.
    let role = role
        .or_else(|| from.and_then(|from| pos.board().role_at(from)))
        .unwrap_or(Role::Pawn);
    let mut candidates = pos.san_candidates(role, to);
    candidates.retain(|mv| {
        mv.promotion() == promotion
            && mv.from().is_some_and(|from| {
                file.is_none_or(|file| file == from.file())
                    && rank.is_none_or(|rank| rank == from.rank())
            })
            // Castling was handled above. Here, the king moves by one square.
            && !mv.is_castle()
            // A capture by a pawn must contain the pawn's file: `d5` never means `exd5`.
            && (role != Role::Pawn || file.is_some() || !mv.is_capture())
    });
    match candidates[..] {
        [] => Err(MoveError::Illegal),
        [mv] => Ok(mv),
        _ => Err(MoveError::Ambiguous),
    }
}

/// Parses a move in SAN with English piece letters and without annotations. Returns `None` if the text does not have
/// the form of a move. If the move consists only of squares, such as `g1f3`, the text does not say which piece moves,
/// and the result is a pawn move. In this case, the caller must find the piece.
fn parse(text: &[u8]) -> Option<San> {
    match text {
        b"0-0" | b"o-o" | b"OO" | b"oo" | b"00" => {
            return Some(San::Castle(CastlingSide::KingSide));
        }
        b"0-0-0" | b"o-o-o" | b"OOO" | b"ooo" | b"000" => {
            return Some(San::Castle(CastlingSide::QueenSide));
        }
        _ => {}
    }
    let mut san = text.to_vec();
    if !text.contains(&b'@') {
        // A lowercase `b` is not changed, because it is parsed as a file here.
        if let [letter @ (b'p' | b'n' | b'r' | b'q' | b'k'), ..] = &mut san[..] {
            letter.make_ascii_uppercase();
        }
        if let [.., b'1'..=b'8', letter] = *san
            && letter.is_ascii_alphabetic()
        {
            san.insert(san.len() - 1, b'=');
        }
        let end = match *san {
            [ref square @ .., b'=', _] => square.len(),
            _ => san.len(),
        };
        let sign = end.saturating_sub(3);
        match san[..end.saturating_sub(2)] {
            [.., b'x' | b'O', b'-'] => return None,
            [.., b'-'] => drop(san.remove(sign)),
            [.., b':'] => san[sign] = b'x',
            _ => {}
        }
    }
    San::from_ascii(&san).ok().filter(|san| *san != San::Null)
}

/// Returns the legal move of `pos` that `text` describes. `text` must begin with a `b`, which can mean the b-file or a
/// bishop. If a pawn on the b-file can capture as described, returns this capture.
///
/// # Errors
///
/// Returns an error if no legal move is found, or if both a pawn's move without a capture and a bishop's move are
/// possible. Also returns an error if only a bishop's move is legal, but a pawn on the b-file may have been meant.
fn find_pawn_or_bishop<P: Position>(pos: &P, text: &[u8]) -> Result<Move, MoveError> {
    let pawn = find(pos, text);
    let with_letter = [&b"B"[..], &text[1..]].concat();
    match (pawn, find(pos, &with_letter)) {
        (Ok(pawn), Ok(_)) if !pawn.is_capture() => Err(MoveError::Ambiguous),
        (Ok(pawn), _) => Ok(pawn),
        // `be2f3` does not have the form of a pawn move.
        (Err(MoveError::Unreadable), bishop @ Ok(_)) => bishop,
        (Err(_), Ok(bishop)) if !may_mean_pawn(pos, bishop.to()) => Ok(bishop),
        (Err(err), _) => Err(err),
    }
}

/// Returns `true` if a pawn of the side to move is on the b-file and might move to `to` or capture there. Ignores
/// checks, pins and obstacles. Used for a written move such as `bc3`, because its `b` can mean the b-file or a bishop.
fn may_mean_pawn<P: Position>(pos: &P, to: Square) -> bool {
    pos.our(Role::Pawn).into_iter().any(|pawn| {
        pawn.file() == File::B
            && (to.file() == File::B || attacks::pawn_attacks(pos.turn(), pawn).contains(to))
    })
}

/// Returns `true` if a text has the form of a move. The move need not be legal in any position.
pub fn looks_like_move(text: &[u8]) -> bool {
    PlainMove::new(text).is_some_and(|spelling| parse(spelling.text()).is_some())
}

/// Parses a written move as SAN without a position, so the move need not be legal. A text that consists only of squares
/// is parsed as a pawn move. Returns `None` if the text does not have the form of a move.
pub(crate) fn san_of(text: &[u8]) -> Option<SanPlus> {
    if let Ok(san) = SanPlus::from_ascii(text) {
        return Some(san);
    }
    let san = parse(PlainMove::new(text)?.text())?;
    let suffix = text.iter().find_map(|byte| match byte {
        b'+' => Some(Suffix::Check),
        b'#' => Some(Suffix::Checkmate),
        _ => None,
    });
    Some(SanPlus { san, suffix })
}

/// Removes a check sign or mate sign from the end of a written move.
fn without_check(text: &[u8]) -> &[u8] {
    match text {
        [rest @ .., b'+', b'+'] | [rest @ .., b'+' | b'#'] => rest,
        _ => text,
    }
}

// Normalization of the many spellings of a move: `Qd3+/-`, `exd6 e.p.`, `O–O`, `N(f)d7`, `hxg8=(Q)`, `♘f3`.

/// The maximum length in bytes of a written move after normalization.
const MAX_MOVE_LENGTH: usize = 16;

/// A normalized written move, without check signs and annotations. It consists of ASCII letters, digits and a few other
/// ASCII characters.
#[derive(Copy, Clone, Debug)]
struct PlainMove {
    bytes: [u8; MAX_MOVE_LENGTH],
    length: usize,
    /// Whether the text says that the move captures en passant.
    pub en_passant: bool,
}

impl PlainMove {
    /// Normalizes a written move. Returns `None` if the text is too long, or contains a character that does not occur
    /// in moves.
    pub(super) fn new(text: &[u8]) -> Option<PlainMove> {
        let mut spelling = PlainMove {
            bytes: [0; MAX_MOVE_LENGTH],
            length: 0,
            en_passant: false,
        };
        let mut rest = text;
        while !rest.is_empty() {
            // A blank may follow the letter of the piece, as in `N f3`.
            let (byte, length) = match blank(rest) {
                0 => plain(rest)?,
                length if spelling.length == 1 => (IGNORED, length),
                _ => return None,
            };
            rest = &rest[length..];
            if byte != IGNORED {
                *spelling.bytes.get_mut(spelling.length)? = byte;
                spelling.length += 1;
            }
        }
        spelling.cut_marks();
        spelling.remove_parentheses();
        Some(spelling)
    }

    pub(super) fn text(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Removes check signs and annotations from the end of the move.
    fn cut_marks(&mut self) {
        loop {
            let text = self.text();
            let marks = match *text {
                [.., b'e', b'.', b'p', b'.'] => 4,
                [.., b'e', b'.', b'p'] => 3,
                [.., b'1'..=b'8', b'e', b'p'] | [.., b'c', b'h'] => 2,
                [.., b'+' | b'#' | b'=' | b'/' | b':' | b'!' | b'?'] => 1,
                // `N` marks a novelty and `D` a diagram. After a square on the last ranks, they would be promotions.
                [.., b'2'..=b'7', b'N' | b'D'] => 1,
                // `O-O-` is not kingside castling, but an incomplete queenside castling.
                [.., before, b'-'] if !matches!(before, b'O' | b'o' | b'0') => 1,
                _ => return,
            };
            self.en_passant |= matches!(text, [.., b'p' | b'.']);
            self.length -= marks;
        }
    }

    /// Removes parentheses: converts `N(f)d7` to `Nfd7`, and `e8(Q)`, `e8=(Q)` and `e8/Q` to `e8=Q`.
    fn remove_parentheses(&mut self) {
        if let [_, b'(', hint, b')', ..] = *self.text() {
            self.bytes[1] = hint;
            self.bytes.copy_within(4.., 2);
            self.length -= 2;
        }
        let (square, letter) = match *self.text() {
            [ref square @ .., b'(', letter, b')'] | [ref square @ .., b'/', letter] => {
                (square, letter)
            }
            _ => return,
        };
        let square = square.strip_suffix(b"=").unwrap_or(square).len();
        self.bytes[square..square + 2].copy_from_slice(&[b'=', letter]);
        self.length = square + 2;
    }
}

/// The byte that [`plain`] returns for a character that has no ASCII equivalent and is skipped.
const IGNORED: u8 = 0;

/// Converts the first character of a text to its ASCII equivalent, or to [`IGNORED`]. Also returns the length in bytes
/// of the original character. Returns `None` if written moves cannot contain this character.
fn plain(text: &[u8]) -> Option<(u8, usize)> {
    Some(match *text {
        [0, ..] => return None,
        [byte, ..] if byte.is_ascii() => (byte, 1),
        // ♔ to ♙, and ♚ to ♟
        [0xe2, 0x99, piece @ 0x94..=0x9f, ..] => (b"KQRBNP"[usize::from(piece - 0x94) % 6], 3),
        [0xef, 0xb8, 0x8e | 0x8f, ..] => (IGNORED, 3),
        // ‐ ‑ ‒ – — −, and the dashes of Windows-1252
        [0xe2, 0x80, 0x90..=0x94, ..] | [0xe2, 0x88, 0x92, ..] => (b'-', 3),
        [0x96 | 0x97, ..] => (b'-', 1),
        // × in UTF-8 and in Latin-1
        [0xc3, 0x97, ..] => (b'x', 2),
        [0xd7, ..] => (b'x', 1),
        // † and ‡
        [0xe2, 0x80, 0xa0 | 0xa1, ..] => (b'+', 3),
        _ => return None,
    })
}

/// Returns the length in bytes of the blank at the start of a text. A blank is an ASCII or Unicode space, or a
/// character without width. Returns 0 if the text does not begin with a blank.
fn blank(text: &[u8]) -> usize {
    match *text {
        [byte, ..] if byte.is_ascii_whitespace() => 1,
        [0xc2, 0xa0 | 0xad, ..] => 2,
        [0xe2, 0x80, 0x80..=0x8f | 0xa8..=0xaf, ..] | [0xe2, 0x81, 0x9f..=0xaf, ..] => 3,
        [0xe3, 0x80, 0x80, ..] | [0xef, 0xbb, 0xbf, ..] => 3,
        _ => 0,
    }
}

/// A language in which moves are written. It determines the letters of the pieces.
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

    /// Returns the letters for the knight, bishop, rook, queen and king, in this order.
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

    /// Replaces the piece letters of this language in a written move with the English letters. Pads the result with
    /// zero bytes.
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

/// The English letters for the knight, bishop, rook, queen and king, in this order.
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

/// Returns the error message for `text`, a written move that cannot be played in `pos`. `err` is the reason. The
/// message contains advice if the mistake is recognized. `letters` is the language in which `text` was parsed.
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
        return Some(format!("the move is legal with the piece letters {codes}"));
    }
    let crazyhouse = Variant::Crazyhouse;
    if text.contains(&b'@') && pos.rules() != crazyhouse {
        return Some(format!(
            "only crazyhouse has drops: if this is a crazyhouse game without a Variant tag, give {crazyhouse} as the \
             variant, also of untagged games"
        ));
    }
    if is_descriptive(text) {
        return Some(
            "the move is in descriptive notation: convert the game to moves such as e4 and Nf3"
                .to_owned(),
        );
    }
    has_foreign_letters(text).then(|| {
        "polybook does not know the piece letters of this move: use K, Q, R, B and N for the pieces, and a to h \
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
    use proptest::prelude::*;
    use shakmaty::{CastlingMode, Chess, fen::Fen, variant::VariantPosition};

    use super::{
        super::{BookMove, PieceLetters, Variant, line::parse_fen, san},
        *,
    };

    fn position(fen: &str) -> Chess {
        let fen: Fen = fen.parse().unwrap();
        fen.into_position(CastlingMode::Standard).unwrap()
    }

    #[track_caller]
    fn assert_reads(fen: &str, texts: &[&str], san: &str) {
        let pos = position(fen);
        for text in texts {
            let mv = read_move(&pos, text.as_bytes()).unwrap_or_else(|err| panic!("{text}: {err}"));
            assert_eq!(
                SanPlus::from_move(pos.clone(), mv).to_string(),
                san,
                "{text}"
            );
        }
    }

    #[test]
    fn captures_with_and_without_their_sign() {
        let fen = "4k3/8/8/3p4/4P3/2N5/8/4K3 w - - 0 1";
        assert_reads(
            fen,
            &["exd5", "ed5", "e4d5", "e4xd5", "e4:d5", "Pexd5"],
            "exd5",
        );
        assert_reads(
            fen,
            &["Nxd5", "Nd5", "Ncd5", "N3xd5", "c3d5", "Nc3-d5"],
            "Nxd5",
        );
        assert_reads(fen, &["Nb5", "Nxb5"], "Nb5");
        assert_eq!(read_move(&position(fen), b"d5"), Err(MoveError::Illegal));
    }

    #[test]
    fn promotions() {
        let fen = "8/4P1k1/8/8/8/8/8/4K3 w - - 0 1";
        assert_reads(
            fen,
            &["e8=Q", "e8Q", "e8=q", "e8q", "e7e8q", "e7-e8=Q", "e8(Q)"],
            "e8=Q",
        );
        assert_eq!(read_move(&position(fen), b"e8"), Err(MoveError::Illegal));
        assert_eq!(read_move(&position(fen), b"e8=K"), Err(MoveError::Illegal));
    }

    #[test]
    fn castling() {
        let fen = "4k3/8/8/8/8/8/8/R3K2R w KQ - 0 1";
        assert_reads(
            fen,
            &["O-O", "0-0", "o-o", "OO", "00", "e1g1", "e1h1", "Ke1g1"],
            "O-O",
        );
        assert_reads(
            fen,
            &["O-O-O", "0-0-0", "000", "e1c1", "e1a1", "O-O-O+"],
            "O-O-O",
        );
    }

    /// Returns all moves in coordinate notation that are read as castling in a position.
    fn castling_by_any_squares(pos: &VariantPosition) -> Vec<String> {
        let king = pos.our(Role::King).first().unwrap();
        let mut read = Vec::new();
        for to in Square::ALL {
            let texts = [
                format!("{king}{to}"),
                format!("K{king}{to}"),
                format!("K{king}-{to}"),
            ];
            let castles = texts
                .each_ref()
                .map(|text| read_move(pos, text.as_bytes()).is_ok_and(|mv| mv.is_castle()));
            assert_eq!(castles, [castles[0]; 3], "{texts:?}");
            read.extend(castles[0].then(|| texts[0].clone()));
            // If the text lacks the origin square, the move is a step of the king.
            let step = read_move(pos, format!("K{to}").as_bytes());
            assert!(
                step.is_err() || step.is_ok_and(|mv| !mv.is_castle()),
                "K{to}"
            );
        }
        read
    }

    #[test]
    fn only_the_castling_squares_and_the_rook_are_castling() {
        use crate::chess::position::Variant;
        let both = "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1";
        for (variant, fen, expected) in [
            (
                Variant::Standard,
                both,
                &["e1a1", "e1c1", "e1g1", "e1h1"][..],
            ),
            (Variant::Crazyhouse, both, &["e1a1", "e1c1", "e1g1", "e1h1"]),
            (Variant::Atomic, both, &["e1a1", "e1c1", "e1g1", "e1h1"]),
            // The king goes from the b-file to c1 and to g1.
            (
                Variant::Chess960,
                "rk5r/8/8/8/8/8/8/RK5R w HAha - 0 1",
                &["b1a1", "b1g1", "b1h1"],
            ),
            (
                Variant::Chess960,
                "8/8/8/k7/8/8/8/1RK1R3 w EB - 0 1",
                &["c1b1", "c1e1", "c1g1"],
            ),
            (
                Variant::Chess960,
                "8/8/8/2k5/8/8/8/R4KR1 w GA - 0 1",
                &["f1a1", "f1c1", "f1g1"],
            ),
            // Another rook is on the way, so nothing castles.
            (Variant::Chess960, "8/8/8/2k5/8/8/8/1K1R3R w H - 0 1", &[]),
        ] {
            let pos = variant.parse_fen(fen).unwrap();
            assert_eq!(castling_by_any_squares(&pos), expected, "{variant} {fen}");
        }
    }

    #[test]
    fn a_piece_that_stands_elsewhere_is_not_moved() {
        let pos = position("4k3/8/8/8/8/8/8/R3K2R w KQ - 0 1");
        for text in ["Ra1b2", "Qa1b1", "Re1g1", "Re1e2", "e1g1=Q", "O-O-", "bb1"] {
            assert!(read_move(&pos, text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn lower_case_bishops_come_after_pawns() {
        let fen = "4k3/8/8/8/2p5/1P6/4B3/4K3 w - - 0 1";
        assert_reads(fen, &["bxc4", "bc4"], "bxc4");
        assert_reads(fen, &["bf3", "be2f3"], "Bf3");
        // The pawn is pinned, and still meant.
        let pinned = "1r5k/8/8/8/8/2b5/1P6/1K2B3 w - - 0 1";
        assert_reads(pinned, &["Bxc3", "be1c3"], "Bxc3+");
        assert!(read_move(&position(pinned), b"bxc3").is_err());
        let push = "4k3/8/8/8/8/1P6/3B4/4K3 w - - 0 1";
        assert_eq!(
            read_move(&position(push), b"bb4"),
            Err(MoveError::Ambiguous)
        );
        assert_reads(push, &["b4", "b3b4", "pb4"], "b4");
        assert_reads(push, &["kf1", "Kf1", "ke1-f1"], "Kf1");
    }

    #[test]
    fn pinned_pieces_do_not_make_a_move_ambiguous() {
        let fen = "4k3/8/8/8/1b6/2N5/8/4K1N1 w - - 0 1";
        assert_reads(fen, &["Ne2", "Nge2"], "Ne2");
        assert_eq!(
            read_move(&position("4k3/8/8/8/8/2N5/8/4K1N1 w - - 0 1"), b"Ne2"),
            Err(MoveError::Ambiguous)
        );
    }

    #[test]
    fn what_is_no_move() {
        for text in [
            "", "x", "--", "Z0", "e9", "Nf", "e2e4e5", "1", "½", "O-O-O-O", "@", "Xe4",
        ] {
            assert!(!looks_like_move(text.as_bytes()), "{text}");
            assert_eq!(
                read_move(&Chess::default(), text.as_bytes()),
                Err(MoveError::Unreadable),
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(text in proptest::collection::vec(any::<u8>(), 0..9)) {
            let _ = read_move(&Chess::default(), &text);
        }

        #[test]
        fn letters_of_moves_are_read_or_refused(text in "[KQRBNPa-h1-8xO0@=+#-]{0,8}") {
            let _ = read_move(&Chess::default(), text.as_bytes());
            let _ = read_move(&position("r3k2r/pPp2ppp/8/3pP3/8/8/PPPP1PpP/R3K2R w KQkq d6 0 1"), text.as_bytes());
        }
    }

    #[test]
    fn marks_and_signs() {
        for (text, tidy) in [
            ("Qd3=", "Qd3"),
            ("Qd3+-", "Qd3"),
            ("Qd3+/-", "Qd3"),
            ("Qd3-+", "Qd3"),
            ("Qd3ch", "Qd3"),
            ("Qd3†", "Qd3"),
            ("exd5:", "exd5"),
            ("O–O–O", "O-O-O"),
            ("O-O+", "O-O"),
            ("O-O-", "O-O-"),
            ("e×d5", "exd5"),
            ("N(f)d7", "Nfd7"),
            ("♞f6", "Nf6"),
            ("♘\u{fe0e}f3", "Nf3"),
            ("hxg8/Q", "hxg8=Q"),
            ("hxg8(Q)+", "hxg8=Q"),
            ("hxg8=(Q)", "hxg8=Q"),
            ("--", "-"),
        ] {
            let spelling = PlainMove::new(text.as_bytes()).expect(text);
            assert_eq!(String::from_utf8_lossy(spelling.text()), tidy, "{text}");
        }
        for text in ["exd6ep", "exd6e.p.", "exd6e.p", "exd6e.p.+"] {
            let spelling = PlainMove::new(text.as_bytes()).expect(text);
            assert_eq!(spelling.text(), b"exd6");
            assert!(spelling.en_passant);
        }
        assert!(PlainMove::new("é4".as_bytes()).is_none());
        assert!(PlainMove::new(&[b'e'; MAX_MOVE_LENGTH + 1]).is_none());
    }

    // Property tests: no spelling of a move is read as another move. They test all legal moves of the positions of
    // random games.

    /// Starting positions of the random games: the usual one, and some with promotions, en passant, castling, and
    /// several pieces of the same kind.
    const STARTS: [&str; 7] = [
        "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
        "r3k2r/pPp2ppp/8/3pP3/8/8/PPPP1PpP/R3K2R w KQkq d6 0 1",
        "r3k2r/pPp2ppp/8/8/3Pp3/8/PPP2PpP/R3K2R b KQkq d3 0 1",
        "4k3/2P1P1P1/1b3b2/N1N1N3/8/N3N3/BB4BB/R1Q1K2R w K - 0 1",
        "4k3/1pp5/8/1P1P4/2b1b3/1P3P2/B5B1/4K3 w - - 0 1",
        "4k3/8/1b6/8/1pPp1pPp/8/1B1B4/R3K2R b KQ c3 0 1",
        "1b2k3/2P5/1P6/B1B5/3b4/1P6/2P5/4K3 w - - 0 1",
    ];

    /// Returns the spellings of a move, given its SAN.
    fn spellings(pos: &Chess, mv: Move, san: &str) -> Vec<String> {
        let bare = san.trim_end_matches(['+', '#']);
        let mut all = vec![san.to_owned(), bare.to_owned()];
        if mv.is_castle() {
            let long = bare == "O-O-O";
            for dash in ["-", "‐", "‑", "‒", "–", "—", "−", ""] {
                for letter in ["O", "0", "o"] {
                    if !(letter == "0" && dash.is_empty()) {
                        all.push(bare.replace('-', dash).replace('O', letter));
                    }
                }
            }
            let rank = pos.turn().fold_wb('1', '8');
            let (king, rook) = if long { ('c', 'a') } else { ('g', 'h') };
            all.extend([
                format!("e{rank}{king}{rank}"),
                format!("e{rank}{rook}{rank}"),
            ]);
            all.push(format!("Ke{rank}-{king}{rank}"));
        } else {
            all.extend(of_steps(mv, bare));
        }
        let marks = [
            "", "+", "#", "++", "=", "+-", "+/-", "-+", "=/+", "ch", "†", ":", "!?",
        ];
        all.iter()
            .flat_map(|text| marks.map(|mark| format!("{text}{mark}")))
            .collect()
    }

    /// Returns the spellings, without annotations, of a move that is not castling.
    fn of_steps(mv: Move, bare: &str) -> Vec<String> {
        let (from, to) = (mv.from().expect("no drop"), mv.to());
        let letter = match mv.role() {
            Role::Pawn => String::new(),
            role => role.upper_char().to_string(),
        };
        let cross = if mv.is_capture() { "x" } else { "-" };
        let promoted = mv.promotion().map(Role::upper_char);
        let suffixes = match promoted {
            None => vec![String::new()],
            Some(role) => vec![
                format!("={role}"),
                format!("{role}"),
                format!("({role})"),
                format!("=({role})"),
                format!("/{role}"),
                format!("={}", role.to_ascii_lowercase()),
                format!("{}", role.to_ascii_lowercase()),
            ],
        };
        let square = bare.split('=').next().expect("never empty");
        let mut heads = vec![
            square.to_owned(),
            square.replace('x', ""),
            square.replace('x', ":"),
            square.replace('x', "×"),
            square.replace('x', "-"),
            format!("{from}{to}"),
            format!("{from}-{to}"),
            format!("{letter}{from}{cross}{to}"),
            format!("{letter}{from}{to}"),
            format!("{}{from}{to}", letter.to_ascii_lowercase()),
            format!("{from}–{to}"),
        ];
        if letter.is_empty() {
            heads.extend([
                format!("P{square}"),
                format!("p{square}"),
                format!("♙{square}"),
                format!("♟{square}"),
            ]);
        } else {
            let figure = "KQRBN".find(&letter).expect("a piece");
            for first in ['♔', '♚'] {
                let figure = char::from_u32(first as u32 + figure as u32).expect("in the block");
                heads.push(square.replacen(&letter, &figure.to_string(), 1));
            }
            heads.push(square.replacen(&letter, &letter.to_ascii_lowercase(), 1));
            let hint = &square[1..square.len() - 2].replace('x', "");
            if hint.len() == 1 {
                heads.push(format!("{letter}({hint}){to}"));
                heads.push(format!("{letter}({hint}){cross}{to}").replace('-', ""));
            }
        }
        let mut all: Vec<String> = heads
            .iter()
            .flat_map(|head| suffixes.iter().map(move |suffix| format!("{head}{suffix}")))
            .collect();
        if mv.is_en_passant() {
            for mark in ["ep", "e.p.", "e.p"] {
                all.push(format!("{square}{mark}"));
            }
        }
        all
    }

    /// Returns `true` if a bishop's move in lower case is also the spelling of the move that was read from the b-file:
    /// `bxc4` of a pawn, or `b3b4` of the piece on b3.
    fn is_of_the_b_file(text: &str, read: Move) -> bool {
        let names_square = read
            .from()
            .is_some_and(|from| text.starts_with(&from.to_string()));
        let is_pawns = read.role() == Role::Pawn && read.is_capture();
        text.starts_with('b') && (names_square || is_pawns)
    }

    #[test]
    fn moves_of_all_variants_are_written_as_shakmaty_writes_them() {
        let mut dice = fastrand::Rng::with_seed(3);
        let (mut checks, mut mates) = (0, 0);
        for variant in Variant::ALL {
            for _ in 0..60 {
                let mut pos = variant.start();
                for _ in 0..150 {
                    let moves = pos.legal_moves();
                    for mv in &moves {
                        let ours = san(&pos, *mv);
                        assert_eq!(ours, SanPlus::from_move(pos.clone(), *mv), "{pos:?}");
                        checks += u64::from(ours.suffix == Some(Suffix::Check));
                        mates += u64::from(ours.suffix == Some(Suffix::Checkmate));
                    }
                    let Some(mv) = dice.choice(&moves) else { break };
                    pos.play_unchecked(*mv);
                }
            }
        }
        assert!(checks > 1000 && mates > 100, "{checks} {mates}");
    }

    fn check_all_moves(pos: &Chess) {
        for mv in pos.legal_moves() {
            let san = SanPlus::from_move(pos.clone(), mv).to_string();
            for text in spellings(pos, mv, &san) {
                match read_move(pos, text.as_bytes()) {
                    Ok(read) if read == mv => {}
                    Ok(read) if mv.role() == Role::Bishop && is_of_the_b_file(&text, read) => {}
                    Ok(read) => panic!("{text} for {san} was read as {read} in {pos:?}"),
                    Err(err) => {
                        // Only an ambiguous spelling may be rejected.
                        let is_open = err == MoveError::Ambiguous
                            || (mv.role() == Role::Bishop && text.starts_with('b'))
                            || (mv.is_castle() && text.ends_with("-+"));
                        assert!(is_open, "{text} for {san}: {err} in {pos:?}");
                    }
                }
            }
            check_languages(pos, mv, &san);
        }
    }

    /// Checks that a move in the letters of a language is read as that move, and that a move in English letters is too
    /// unless the language gives one of the letters another meaning.
    fn check_languages(pos: &Chess, mv: Move, san: &str) {
        for (letters, text) in [
            (PieceLetters::German, "SLTDK"),
            (PieceLetters::Dutch, "PLTDK"),
            (PieceLetters::French, "CFTDR"),
            (PieceLetters::Spanish, "CATDR"),
            (PieceLetters::Italian, "CATDR"),
        ] {
            let translated: String = san
                .chars()
                .map(|c| match "NBRQK".find(c) {
                    Some(role) => char::from(text.as_bytes()[role]),
                    None => c,
                })
                .collect();
            assert_eq!(
                letters.read_move(pos, translated.as_bytes()),
                Ok(mv),
                "{translated}"
            );
            // A letter that the language uses has its meaning in this language: `Rd1` may be a king move in French.
            if !san
                .bytes()
                .any(|byte| byte != b'K' && text.as_bytes().contains(&byte))
            {
                assert_eq!(letters.read_move(pos, san.as_bytes()), Ok(mv), "{san}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn no_spelling_is_read_as_another_move(
            start in 0..STARTS.len(),
            choices in proptest::collection::vec(any::<u16>(), 1..60),
        ) {
            let mut pos = parse_fen(STARTS[start]).unwrap();
            for choice in choices {
                check_all_moves(&pos);
                let moves = pos.legal_moves();
                if moves.is_empty() {
                    break;
                }
                pos.play_unchecked(moves[usize::from(choice) % moves.len()]);
            }
        }

        /// Every text that is read as a move of a variant must be a legal move, which the bits of a book move can
        /// store.
        #[test]
        fn what_is_read_is_legal_in_variants(
            text in "[KQRBNPa-h1-8xO0@=+()/:eb.-]{1,8}",
            choices in proptest::collection::vec(any::<u16>(), 0..30),
        ) {
            for variant in [Variant::Chess960, Variant::Crazyhouse, Variant::Giveaway] {
                let mut pos = variant.start();
                for choice in &choices {
                    let moves = pos.legal_moves();
                    if moves.is_empty() {
                        break;
                    }
                    pos.play_unchecked(moves[usize::from(*choice) % moves.len()]);
                }
                if let Ok(mv) = read_move(&pos, text.as_bytes()) {
                    prop_assert!(pos.legal_moves().contains(&mv));
                    prop_assert_eq!(BookMove::from(mv).to_move(&pos), Some(mv));
                }
            }
        }
    }

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
            "does not know the piece letters",
        );
        assert_advice(&["@g7", "N@f3", "P@e4+"], "give crazyhouse as the variant");
        assert_advice(&["Sf3"], "the piece letters de");
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

//! Moves in three forms: as the 16-bit numbers that Polyglot books store, in SAN, and in UCI notation.
//!
//! A [`Word`] is a written move that is short enough for a register. Nearly all moves of games are, and comparing
//! registers is faster than comparing slices.

use std::fmt;

use shakmaty::{
    CastlingSide, File, KnownOutcome, Move, Outcome, Position, Rank, Role, Square,
    san::{San, SanPlus, Suffix},
    uci::UciMove,
    variant::VariantPosition,
};

/// A move as Polyglot books store it, a 16-bit number.
///
/// | bits | meaning |
/// |---|---|
/// | 0-2, 3-5 | file and rank of the target square |
/// | 6-8, 9-11 | file and rank of the origin square |
/// | 12-15 | promotion: 0 none, 1 knight, 2 bishop, 3 rook, 4 queen, 5 king; 9 for a drop |
///
/// Castling is stored as the king capturing its own rook: `e1h1`, not `e1g1`. The number 0 is not a move.
///
/// Pawns promote to kings only in suicide and giveaway chess. In crazyhouse, a drop stores the dropped piece in the
/// bits of the origin square: the distance of its letter from `@` in ASCII (P 16, N 14, B 2, R 18, Q 17).
///
/// ```
/// use polybook::position::BookMove;
/// use shakmaty::{Chess, Position, san::San};
///
/// let pos = Chess::default();
/// let e4 = "e4".parse::<San>().unwrap().to_move(&pos).unwrap();
/// let book_move = BookMove::from(e4);
/// assert_eq!(book_move.to_string(), "e2e4");
/// assert_eq!(book_move.to_move(&pos), Some(e4));
/// assert_eq!(BookMove(book_move.0 + 1).to_move(&pos), None); // e2f4
/// ```
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BookMove(pub u16);

/// The highest value of bits 12 to 15 of a book move that denotes a promotion.
const LAST_PROMOTION: u16 = 5;

/// The value of bits 12 to 15 of a book move that denotes a drop.
const DROP: u16 = 9;

impl BookMove {
    /// The book move 0, which means that there is no move.
    pub const NONE: BookMove = BookMove(0);

    /// Returns the origin square. The result is meaningless for a drop.
    pub fn from_square(self) -> Square {
        square_of_bits(self.0 >> 6)
    }

    /// Returns the target square. For castling, this is the square of the rook.
    pub fn to_square(self) -> Square {
        square_of_bits(self.0)
    }

    /// Returns the piece to which a pawn is promoted, or `None` if the move is not a promotion.
    pub fn promotion(self) -> Option<Role> {
        match self.0 >> 12 {
            1 => Some(Role::Knight),
            2 => Some(Role::Bishop),
            3 => Some(Role::Rook),
            4 => Some(Role::Queen),
            5 => Some(Role::King),
            _ => None,
        }
    }

    /// Returns `true` if the book move goes from one square to another, with or without a promotion. Returns `false`
    /// for a drop and for unknown values of bits 12 to 15.
    fn is_step(self) -> bool {
        self.0 >> 12 <= LAST_PROMOTION
    }

    /// Returns the piece that is dropped, or `None` if the move is not a drop.
    pub fn dropped(self) -> Option<Role> {
        if self.0 >> 12 != DROP {
            return None;
        }
        let letter = char::from(b'@' + (self.0 >> 6 & 0o77) as u8);
        letter
            .is_ascii_uppercase()
            .then(|| Role::from_char(letter))
            .flatten()
    }

    /// Returns `true` if this 16-bit number has the form of a move in some variant: a move between two different
    /// squares, or a drop of a piece other than a king. A promotion must be to one of the five pieces that the format
    /// defines. The move need not be legal in any position.
    pub fn is_well_formed(self) -> bool {
        let is_step = self.from_square() != self.to_square() && self.is_step();
        is_step || self.dropped().is_some_and(|role| role != Role::King)
    }

    /// Returns `true` if this 16-bit number has the form of a move in standard chess: its two squares are different,
    /// and a promotion is to a knight, bishop, rook or queen.
    pub fn is_well_formed_in_chess(self) -> bool {
        self.is_well_formed() && self.0 >> 12 <= 4
    }

    /// Returns `true` if the move may be possible in some position of some variant: a drop, a knight's move, or a move
    /// along a rank, a file or a diagonal. Castling is a move along a rank. A promotion must also be a move to the last
    /// rank, on the same file or to an adjacent file.
    ///
    /// About one in thirty 16-bit numbers is a possible move.
    pub fn is_possible(self) -> bool {
        let (from, to) = (self.from_square(), self.to_square());
        let files = from.file().distance(to.file());
        let ranks = from.rank().distance(to.rank());
        let is_step = files == 0 || ranks == 0 || files == ranks || files + ranks == 3;
        let is_to_last_rank = matches!(
            (from.rank(), to.rank()),
            (Rank::Seventh, Rank::Eighth) | (Rank::Second, Rank::First)
        );
        let promotes = is_to_last_rank && files <= 1;
        self.is_well_formed()
            && (self.dropped().is_some() || is_step && (self.promotion().is_none() || promotes))
    }

    /// Converts the book move to a legal move of `pos`. Returns `None` if it corresponds to no legal move.
    ///
    /// Castling is accepted in two forms. The Polyglot format requires that the king moves to the square of the rook,
    /// but in the books of some programs, it moves to its own target square.
    pub fn to_move<P: Position>(self, pos: &P) -> Option<Move> {
        let (from, to) = (self.from_square(), self.to_square());
        if let Some(role) = self.dropped() {
            let mv = Move::Put { role, to };
            return pos.san_candidates(role, to).contains(&mv).then_some(mv);
        }
        if !self.is_step() {
            return None;
        }
        let promotion = self.promotion();
        let role = pos.board().role_at(from)?;
        if promotion.is_none()
            && (from.file() == File::E || pos.our(Role::Rook).contains(to))
            && let Some(castle) = castling_by_squares(pos, from, to)
        {
            return Some(castle);
        }
        pos.san_candidates(role, to).into_iter().find(|mv| {
            mv.from() == Some(from)
                && mv.promotion() == promotion
                && !matches!(mv, Move::Castle { .. })
        })
    }

    /// Returns the move in [UCI notation](uci). If the move is not legal in `pos`, returns the two squares that the
    /// book stores, such as `e2e5`.
    pub fn uci<P: Position>(self, pos: &P) -> String {
        match self.to_move(pos) {
            Some(mv) => uci(pos, mv),
            None => self.to_string(),
        }
    }

    /// Returns the move in SAN, with a check sign or mate sign. Returns `None` if the move is not legal in `pos`.
    pub fn san<P: Position + Clone>(self, pos: &P) -> Option<String> {
        let mv = self.to_move(pos)?;
        Some(san(pos, mv).to_string())
    }
}

/// Returns the move number that precedes a move in `pos`, such as `12.` if White is to move and `12...` if Black is to
/// move.
pub(crate) fn move_number(pos: &VariantPosition) -> String {
    let dots = if pos.turn().is_white() { "." } else { "..." };
    format!("{}{dots}", pos.fullmoves())
}

/// Appends the move `mv`, which is played in the position `pos`, to movetext such as `1. e4 c5 2. Nf3`. Writes a move
/// number before each move of White, and before the first move of the text.
pub(crate) fn push_move(text: &mut String, pos: &VariantPosition, mv: Move) {
    if !text.is_empty() {
        text.push(' ');
    }
    if text.is_empty() || pos.turn().is_white() {
        *text += &move_number(pos);
        text.push(' ');
    }
    *text += &san(pos, mv).to_string();
}

/// Returns the text of a line of moves, such as `1. e4 c5 2. Nf3`, and the position after its last move. The first
/// move is played in the position `start`. All moves must be legal.
pub(crate) fn line_text(start: &VariantPosition, moves: &[Move]) -> (String, VariantPosition) {
    let mut pos = start.clone();
    let mut text = String::new();
    for mv in moves {
        push_move(&mut text, &pos, *mv);
        pos.play_unchecked(*mv);
    }
    (text, pos)
}

/// Returns a legal move in SAN, with a check sign or mate sign. This function is faster than [`SanPlus::from_move`],
/// because it generates replies only if the move gives check.
pub(crate) fn san<P: Position + Clone>(pos: &P, mv: Move) -> SanPlus {
    let mut next = pos.clone();
    next.play_unchecked(mv);
    let is_mate = match next.variant_outcome() {
        Outcome::Known(KnownOutcome::Decisive { .. }) => true,
        Outcome::Known(KnownOutcome::Draw) => false,
        Outcome::Unknown => next.is_checkmate(),
    };
    let check = || next.is_check().then_some(Suffix::Check);
    SanPlus {
        san: San::from_move(pos, mv),
        suffix: is_mate.then_some(Suffix::Checkmate).or_else(check),
    }
}

/// Returns a legal move in UCI notation, for example `e2e4`, `e7e8q` or `N@f3`. Castling is written as a king's move by
/// two squares (`e1g1`). In Chess960, it is written as the king capturing its own rook (`e1h1`).
pub fn uci<P: Position>(pos: &P, mv: Move) -> String {
    UciMove::from_move(mv, pos.castles().mode()).to_string()
}

/// Appends a legal move in [UCI notation](uci) to `text`.
pub fn write_uci<P: Position>(pos: &P, mv: Move, text: &mut Vec<u8>) {
    UciMove::from_move(mv, pos.castles().mode()).append_ascii_to(text);
}

impl From<Move> for BookMove {
    #[inline]
    fn from(mv: Move) -> BookMove {
        if let Move::Put { role, to } = mv {
            let letter = u16::from(role.upper_char() as u8 - b'@');
            return BookMove(DROP << 12 | letter << 6 | u16::from(to));
        }
        let promotion = match mv.promotion() {
            None => 0,
            Some(role) => role as u16 - Role::Pawn as u16,
        };
        let from = mv.from().map_or(0, u16::from);
        BookMove(promotion << 12 | from << 6 | u16::from(mv.to()))
    }
}

/// Writes the stored squares (`e1h1` for castling), or a drop such as `P@e4`. A question mark follows if bits 12 to
/// 15 have no meaning.
impl fmt::Display for BookMove {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(role) = self.dropped() {
            return write!(f, "{}@{}", role.upper_char(), self.to_square());
        }
        write!(f, "{}{}", self.from_square(), self.to_square())?;
        match self.promotion() {
            Some(role) => write!(f, "{}", role.char()),
            None if self.is_step() => Ok(()),
            None => write!(f, "?"),
        }
    }
}

/// Returns the square that the lowest six bits of `bits` denote. Bits 0 to 2 are the file, and bits 3 to 5 are the
/// rank.
fn square_of_bits(bits: u16) -> Square {
    Square::from_coords(
        File::new(u32::from(bits & 7)),
        Rank::new(u32::from(bits >> 3 & 7)),
    )
}

/// Returns the legal castling move of the king from `from` to `to`, or `None` if there is none. `to` is either the
/// square of the rook or the target square of the king. A target square must be at least two files away from `from`.
pub(super) fn castling_by_squares<P: Position>(pos: &P, from: Square, to: Square) -> Option<Move> {
    if !pos.our(Role::King).contains(from) || from.rank() != to.rank() {
        return None;
    }
    let side = CastlingSide::from_queen_side(to < from);
    let takes_rook = pos.our(Role::Rook).contains(to);
    let goes_there = to.file() == side.king_to_file() && from.file().distance(to.file()) >= 2;
    let mv = pos.castling_moves(side).first().copied()?;
    let is_castling = if takes_rook {
        mv.to() == to
    } else {
        goes_there
    };
    (is_castling && mv.from() == Some(from)).then_some(mv)
}

/// The maximum length of a [`Word`] in bytes.
const LONGEST: usize = 7;

/// An integer whose eight bytes are all 1. Multiplying it by a byte repeats the byte eight times.
const EACH: u64 = u64::from_ne_bytes([1; 8]);

/// A written move of one to seven bytes. It is stored in an integer, so that it can be compared quickly.
///
/// ```
/// use polybook::position::Word;
/// let word = Word::new(b"Nf3").unwrap();
/// assert_eq!(Word::before_blank(b"Nf3 Nc6 "), Some(word));
/// assert_eq!(Word::before_blank(b"Nf3!? Nc"), Word::new(b"Nf3!?"));
/// assert_eq!(Word::before_blank(b"f2xg1=Q+"), None);
/// ```
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Word {
    /// The bytes of the word, with the first byte in the lowest bits and zeros after the last byte.
    bytes: u64,
    len: usize,
}

impl Word {
    /// Creates a word from its bytes. Returns `None` if `text` is empty or longer than seven bytes.
    #[inline]
    pub fn new(text: &[u8]) -> Option<Word> {
        if text.is_empty() || text.len() > LONGEST {
            return None;
        }
        let mut bytes = [0; 8];
        bytes[..text.len()].copy_from_slice(text);
        Some(Word {
            bytes: u64::from_le_bytes(bytes),
            len: text.len(),
        })
    }

    /// Creates a word from the bytes before the first blank or control character in `text`. Returns `None` if `text`
    /// begins with such a character, or contains none.
    #[inline]
    pub fn before_blank(text: &[u8; 8]) -> Option<Word> {
        let text = u64::from_le_bytes(*text);
        // The subtraction borrows in each byte that is lower than `!`. A borrow may cause false hits in higher bytes,
        // but the lowest hit is always correct.
        let blanks = text.wrapping_sub(EACH * u64::from(b'!')) & !text & (EACH << 7);
        let len = (blanks.trailing_zeros() / 8) as usize;
        (1..=LONGEST).contains(&len).then(|| Word {
            bytes: text & ((1 << (8 * len)) - 1),
            len,
        })
    }

    /// Returns the length of the word in bytes, from 1 to 7.
    #[inline]
    pub(crate) fn len(self) -> usize {
        self.len
    }

    /// Returns the byte at the offset `at`, or 0 if `at` is after the end of the word.
    #[inline]
    pub(super) fn byte(self, at: usize) -> u8 {
        (self.bytes >> (8 * (at & 7))) as u8
    }

    /// Returns the word without its last `count` bytes. `count` must be less than the length of the word.
    #[inline]
    pub(super) fn without_last(self, count: usize) -> Word {
        let len = self.len - count;
        Word {
            bytes: self.bytes & ((1 << (8 * len)) - 1),
            len,
        }
    }

    /// Returns the word without the check sign or mate sign at its end, if there is one.
    #[inline]
    pub(super) fn without_check(self) -> Word {
        // Most moves give no check, so this branch is cheaper than always removing 0 or 1 bytes.
        if self.len > 1 && matches!(self.byte(self.len - 1), b'+' | b'#') {
            self.without_last(1)
        } else {
            self
        }
    }

    /// Returns the square that the last two bytes of the word denote, for example `f3`. Returns `None` if they do not
    /// denote a square.
    #[inline]
    pub(super) fn square(self) -> Option<Square> {
        let start = self.len.checked_sub(2)?;
        square(self.byte(start), self.byte(start + 1))
    }
}

/// Returns the square with the given file letter and rank digit, or `None` if one of them is not valid.
#[inline]
pub(super) fn square(file: u8, rank: u8) -> Option<Square> {
    let (file, rank) = (file.wrapping_sub(b'a'), rank.wrapping_sub(b'1'));
    (file < 8 && rank < 8)
        .then(|| Square::from_coords(File::new(u32::from(file)), Rank::new(u32::from(rank))))
}

/// Returns `true` if `bytes`, the start of a file or a sample of its records, seem to come from a Polyglot book: they
/// begin with a header, or most of the 16-byte records contain a move that a piece can make. If fewer than eight
/// records contain such a move, the keys must also ascend. A few impossible moves do not matter: some books end with a
/// record without a move, and a damaged book is still a book.
pub(crate) fn looks_like_book(bytes: &[u8]) -> bool {
    if bytes.starts_with(&[0; 8]) && bytes[8..].starts_with(b"@PG@") {
        return true;
    }
    let records = bytes.as_chunks::<16>().0;
    let is_move = |record: &&[u8; 16]| {
        !record.starts_with(&[0; 8])
            && BookMove(u16::from_be_bytes([record[8], record[9]])).is_possible()
    };
    let moves = records.iter().filter(is_move).count();
    moves > records.len() - moves && (moves >= 8 || records.is_sorted_by_key(|record| &record[..8]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use shakmaty::{CastlingMode, CastlingSide, Chess, fen::Fen};

    use super::*;

    fn position(fen: &str) -> Chess {
        let fen: Fen = fen.parse().unwrap();
        fen.into_position(CastlingMode::Standard).unwrap()
    }

    #[test]
    fn every_legal_move_comes_back() {
        for fen in [
            "r3k2r/pPp2ppp/8/3pP3/8/8/PPPP1PpP/R3K2R w KQkq d6 0 1",
            "r3k2r/pPp2ppp/8/3pP3/8/8/PPPP1PpP/R3K2R b KQkq - 0 1",
        ] {
            let pos = position(fen);
            for mv in pos.legal_moves() {
                assert_eq!(BookMove::from(mv).to_move(&pos), Some(mv), "{mv} in {fen}");
                let mut text = Vec::new();
                write_uci(&pos, mv, &mut text);
                assert_eq!(text, uci(&pos, mv).as_bytes());
            }
        }
    }

    #[test]
    fn castling_is_king_takes_rook() {
        let pos = position("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1");
        let castle = pos.castling_moves(CastlingSide::KingSide)[0];
        let book_move = BookMove::from(castle);
        assert_eq!(book_move.to_string(), "e1h1");
        assert_eq!(book_move.uci(&pos), "e1g1");
        assert_eq!(book_move.san(&pos).as_deref(), Some("O-O"));
        let two_steps = BookMove(4 << 6 | 6);
        assert_eq!(two_steps.to_move(&pos), Some(castle));
    }

    #[test]
    fn a_rook_move_is_not_castling() {
        let pos = position("k7/8/8/8/8/8/8/4R2K w - - 0 1");
        assert_eq!(BookMove(4 << 6 | 6).uci(&pos), "e1g1");
        assert!(BookMove(4 << 6 | 7).to_move(&pos).is_none());
    }

    #[test]
    fn few_numbers_are_possible_moves() {
        let possible = |text: &str| {
            let uci: UciMove = text.parse().unwrap();
            let (from, to, promotion) = match uci {
                UciMove::Normal {
                    from,
                    to,
                    promotion,
                } => (from, to, promotion),
                other => panic!("{other}"),
            };
            let promotion = promotion.map_or(0, |role| role as u16 - 1);
            BookMove(promotion << 12 | (from as u16) << 6 | to as u16).is_possible()
        };
        for text in ["e2e4", "e1h1", "a1b3", "h8a1", "a7b8q", "h2h1n"] {
            assert!(possible(text), "{text}");
        }
        for text in ["a1c4", "a1f2", "e2e4q", "a7c8q", "a2a1k", "a7a1q"] {
            assert_eq!(possible(text), text == "a2a1k", "{text}");
        }
        let all = (0..=u16::MAX).filter(|bits| BookMove(*bits).is_possible());
        assert_eq!(all.count(), 2012 + 5 * 64);
    }

    #[test]
    fn bits_without_meaning() {
        assert!(!BookMove::NONE.is_well_formed());
        assert!(!BookMove(6 << 12 | 12 << 6 | 28).is_well_formed());
        assert_eq!(BookMove(6 << 12 | 12 << 6 | 28).to_string(), "e2e4?");
        // Promotions to kings, and drops, occur only in variants.
        for bits in [5 << 12 | 12 << 6 | 28, 9 << 12 | 16 << 6 | 28] {
            assert!(BookMove(bits).is_well_formed());
            assert!(!BookMove(bits).is_well_formed_in_chess());
        }
        for bits in 0..=u16::MAX {
            let _ = BookMove(bits).to_move(&Chess::default());
        }
    }

    proptest! {
        #[test]
        fn a_word_ends_before_the_first_blank(bytes in proptest::array::uniform8(prop_oneof![
            any::<u8>(), Just(b' '), Just(b'!'), Just(0x20), Just(0x80), Just(0xa0), b'a'..=b'h',
        ])) {
            let expected = bytes.iter().position(|byte| *byte <= b' ').and_then(|end| Word::new(&bytes[..end]));
            prop_assert_eq!(Word::before_blank(&bytes), expected);
            if let Some(word) = expected {
                for (at, byte) in bytes[..word.len()].iter().enumerate() {
                    prop_assert_eq!(word.byte(at), *byte);
                }
                prop_assert_eq!(word.byte(word.len()), 0);
            }
        }
    }

    #[test]
    fn check_signs_and_squares() {
        let word = |text: &[u8]| Word::new(text).unwrap();
        assert_eq!(word(b"Bb5+").without_check(), word(b"Bb5"));
        assert_eq!(word(b"+").without_check(), word(b"+"));
        assert_eq!(word(b"Nf3").square(), Some(Square::F3));
        assert_eq!(word(b"e").square(), None);
        assert_eq!(word(b"e8=Q").square(), None);
        assert_eq!(word(b"e9").square(), None);
    }
}

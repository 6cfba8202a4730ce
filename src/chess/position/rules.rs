//! Adds operations to chess positions that the trait [`Position`] of shakmaty does not provide.
//!
//! Among them are fast paths for the common forms of SAN in standard chess, such as `e4`, `exd5`, `e8=Q`, `Nf3`,
//! `Nxf3`, `Nbd2`, `N1xd2` or `O-O`. They do not generate a list of all moves. Instead, bitboards of the attacks on the
//! target square show which piece moves there, and the attacks on the king show whether the move is legal. The
//! functions return `None` for every other form, and if there is not exactly one legal move. In this case, the slower
//! [`read_move`](super::read_move) parses the move or finds the reason for the error.

use shakmaty::{
    Bitboard, CastlingMode, CastlingSide, Chess, Color, EnPassantMode, File, Move, Position, Rank,
    Role, Square, attacks, variant::VariantPosition,
};

use super::{BookMove, Variant, Word, epd::from_setup, movement::square};

/// A chess position with the operations that polybook needs but shakmaty does not provide.
///
/// [`Chess`] implements the fast paths, so generic code runs fastest with it. [`VariantPosition`] supports all
/// variants.
pub trait Rules: Position + Clone + Send + Sync {
    /// Parses a legal move in SAN by a fast path for the most common forms. Returns `None` if the word has another
    /// form, or if it does not describe exactly one legal move. The word must not end with a check sign.
    #[inline]
    fn quick_san(&self, _word: Word) -> Option<Move> {
        None
    }

    /// Converts a book move to a legal move of this position by a fast path for the most common moves. Returns `None`
    /// if the move is not one of them, or if it is not legal.
    #[inline]
    fn quick_move(&self, _mv: BookMove) -> Option<Move> {
        None
    }

    /// Returns a copy of the position with the en passant square `square`. Returns `None` if the last move cannot have
    /// been a pawn's double step over this square.
    fn with_en_passant(&self, square: Square) -> Option<Self>;

    /// Returns the variant whose rules for moves apply to the position. For giveaway chess, this is suicide chess,
    /// because both have the same legal moves.
    fn rules(&self) -> Variant;

    /// Returns `true` if a capture also removes pieces around the target square, as in atomic chess.
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

/// Parses a legal move of standard chess in SAN with the fast path [`Rules::quick_san`]. This is a separate function
/// that is not inlined, so that the compiler can inline `quick_san` of [`VariantPosition`].
#[inline(never)]
fn chess_san(pos: &Chess, word: Word) -> Option<Move> {
    pos.quick_san(word)
}

impl Rules for Chess {
    // This function is called for nearly every move of every game, from few places.
    #[inline(always)]
    fn quick_san(&self, word: Word) -> Option<Move> {
        match word.byte(0) {
            b'a'..=b'h' => pawn_move(self, word),
            b'O' => castling_move(self, word),
            letter => piece_move(self, role(letter)?, word),
        }
    }

    fn with_en_passant(&self, square: Square) -> Option<Chess> {
        match VariantPosition::Chess(self.clone()).with_en_passant(square) {
            Some(VariantPosition::Chess(pos)) => Some(pos),
            _ => None,
        }
    }

    fn rules(&self) -> Variant {
        match self.castles().mode() {
            CastlingMode::Standard => Variant::Standard,
            CastlingMode::Chess960 => Variant::Chess960,
        }
    }

    fn quick_move(&self, mv: BookMove) -> Option<Move> {
        if mv.0 > MAX_PLAIN_MOVE {
            return None;
        }
        let (from, to) = (mv.from_square(), mv.to_square());
        let (board, us) = (self.board(), self.turn());
        if !self.us().contains(from) {
            return None;
        }
        let role = board.role_at(from)?;
        // Castling moves the king to its own rook or by two squares. Both are left to the slower code.
        let capture = if board.occupied().contains(to) {
            Some(captured(self, to)?)
        } else {
            None
        };
        let may_go = match role {
            Role::Pawn if Bitboard::BACKRANKS.contains(to) => false,
            Role::Pawn if capture.is_some() => attacks::pawn_attacks(us, from).contains(to),
            Role::Pawn => advances(self, from, to),
            _ => {
                SOURCE_SQUARES[role as usize][usize::from(to)].contains(from)
                    && (attacks::between(from, to) & board.occupied()).is_empty()
            }
        };
        (may_go && is_safe(self, us, role, from, to)).then_some(Move::Normal {
            role,
            from,
            capture,
            to,
            promotion: None,
        })
    }
}

/// The greatest value of a [`BookMove`] that is neither a promotion nor a drop.
const MAX_PLAIN_MOVE: u16 = (1 << 12) - 1;

/// Returns `true` if a pawn of the side to move on `from` can advance to `to` by one or two squares. `to` must be
/// empty. Checks and pins are ignored.
fn advances(pos: &Chess, from: Square, to: Square) -> bool {
    let us = pos.turn();
    let one = from.offset(us.fold_wb(8, -8));
    let is_home = from.rank() == us.fold_wb(Rank::Second, Rank::Seventh);
    one == Some(to)
        || (is_home
            && from.offset(us.fold_wb(16, -16)) == Some(to)
            && one.is_some_and(|one| !pos.board().occupied().contains(one)))
}

/// Returns the piece that an English letter denotes, or `None` if the byte is not a piece letter.
#[inline]
fn role(letter: u8) -> Option<Role> {
    match letter {
        b'N' => Some(Role::Knight),
        b'B' => Some(Role::Bishop),
        b'R' => Some(Role::Rook),
        b'Q' => Some(Role::Queen),
        b'K' => Some(Role::King),
        _ => None,
    }
}

/// Parses castling, `O-O` or `O-O-O`. Returns `None` if the word has another form, or if the move is illegal.
fn castling_move(pos: &Chess, word: Word) -> Option<Move> {
    let side = if Some(word) == Word::new(b"O-O") {
        CastlingSide::KingSide
    } else if Some(word) == Word::new(b"O-O-O") {
        CastlingSide::QueenSide
    } else {
        return None;
    };
    pos.castling_moves(side).first().copied()
}

/// Parses a pawn move such as `e4`, `exd5` or `e8=Q`. Returns `None` if the word has another form, if the move is
/// illegal, or if it captures en passant.
#[inline]
fn pawn_move(pos: &Chess, word: Word) -> Option<Move> {
    let (word, promotion) = if word.len() > 3 && word.byte(word.len() - 2) == b'=' {
        let letter = word.byte(word.len() - 1);
        (word.without_last(2), Some(role(letter)?))
    } else {
        (word, None)
    };
    let to = word.square()?;
    let board = pos.board();
    let us = pos.turn();
    let back = us.fold_wb(-8, 8);
    let behind = to.offset(back)?;
    let (from, capture) = match word.len() {
        2 => {
            let occupied = board.occupied();
            if occupied.contains(to) {
                return None;
            }
            let is_double = to.rank() == us.fold_wb(Rank::Fourth, Rank::Fifth);
            if is_double && !occupied.contains(behind) {
                (behind.offset(back)?, None)
            } else {
                (behind, None)
            }
        }
        4 if word.byte(1) == b'x' => {
            let from = square(word.byte(0), behind.rank().char() as u8)?;
            if from.file().distance(to.file()) != 1 {
                return None;
            }
            // A capture on an empty square is en passant, or a mistake: the slower code decides.
            (from, Some(captured(pos, to)?))
        }
        _ => return None,
    };
    let promotes = to.rank() == us.fold_wb(Rank::Eighth, Rank::First);
    let is_right = (board.pawns() & board.by_color(us)).contains(from)
        && promotes == promotion.is_some()
        && promotion != Some(Role::King)
        && is_safe(pos, us, Role::Pawn, from, to);
    is_right.then_some(Move::Normal {
        role: Role::Pawn,
        from,
        capture,
        to,
        promotion,
    })
}

/// Parses the move of a piece other than a pawn, such as `Nf3`, `Nxf3`, `Nbd2` or `N1xd2`. `role` is the piece that
/// moves. Returns `None` if the word has another form, or if the move is illegal or ambiguous.
#[inline]
fn piece_move(pos: &Chess, role: Role, word: Word) -> Option<Move> {
    let to = word.square()?;
    // A file or rank of origin, and then an `x`, may precede the square.
    let is_capture = word.len() > 3 && word.byte(word.len() - 3) == b'x';
    let hinted = match word.len() - usize::from(is_capture) {
        3 => Bitboard::FULL,
        4 => SQUARES_OF[usize::from(word.byte(1))],
        _ => return None,
    };
    let board = pos.board();
    let us = pos.turn();
    let occupied = board.occupied();
    if is_capture != occupied.contains(to) {
        return None;
    }
    let capture = if is_capture {
        Some(captured(pos, to)?)
    } else {
        None
    };
    let pieces = board.by_role(role) & board.by_color(us);
    let mut legal = None;
    for from in SOURCE_SQUARES[role as usize][usize::from(to)] & pieces & hinted {
        let may_go = (attacks::between(from, to) & occupied).is_empty();
        if may_go && is_safe(pos, us, role, from, to) && legal.replace(from).is_some() {
            return None;
        }
    }
    legal.map(|from| Move::Normal {
        role,
        from,
        capture,
        to,
        promotion: None,
    })
}

/// Returns the kind of the enemy piece on a square, or `None` if no enemy piece is there.
#[inline]
fn captured(pos: &Chess, square: Square) -> Option<Role> {
    if pos.them().contains(square) {
        pos.board().role_at(square)
    } else {
        None
    }
}

/// Returns `true` if the king of `us` is not in check after a piece of the kind `role` has moved from `from` to `to`.
// Usually, few enemy sliding pieces are in line with the king. For each of them, the squares between it and the king
// are read from a small table. Looking up all squares that the king sees would need a large table.
#[inline(always)]
fn is_safe(pos: &Chess, us: Color, role: Role, from: Square, to: Square) -> bool {
    let board = pos.board();
    let (king, kings) = if role == Role::King {
        (to, attacks::king_attacks(to) & board.kings())
    } else if let Some(king) = board.king_of(us) {
        (king, Bitboard::EMPTY)
    } else {
        return false;
    };
    let them = board.by_color(!us) & !Bitboard::from_square(to);
    let near = (attacks::knight_attacks(king) & board.knights())
        | (attacks::pawn_attacks(us, king) & board.pawns())
        | kings;
    if (near & them).any() {
        return false;
    }
    let queens = board.queens();
    let in_line = (SOURCE_SQUARES[Role::Rook as usize][usize::from(king)]
        & (board.rooks() | queens))
        | (SOURCE_SQUARES[Role::Bishop as usize][usize::from(king)] & (board.bishops() | queens));
    let occupied = (board.occupied() ^ Bitboard::from_square(from)) | Bitboard::from_square(to);
    (in_line & them)
        .into_iter()
        .all(|slider| (attacks::between(king, slider) & occupied).any())
}

/// A table that converts the character of a file or rank, such as `e` or `4`, to the set of squares on it. Other bytes
/// are converted to the empty set.
static SQUARES_OF: [Bitboard; 256] = {
    let mut hinted = [Bitboard::EMPTY; 256];
    let mut i = 0;
    while i < 8 {
        hinted[b'a' as usize + i] = Bitboard::from_file(File::new(i as u32));
        hinted[b'1' as usize + i] = Bitboard::from_rank(Rank::new(i as u32));
        i += 1;
    }
    hinted
};

/// A table of the squares from which a piece can reach a given square on an empty board. The first index is the kind of
/// the piece, and the second index is the square that it reaches. The sets for pawns are empty.
static SOURCE_SQUARES: [[Bitboard; 64]; 7] = {
    let mut reach = [[Bitboard::EMPTY; 64]; 7];
    let mut i = 0;
    while i < 64 {
        let square = Square::new(i as u32);
        reach[Role::Knight as usize][i] = attacks::knight_attacks(square);
        reach[Role::Bishop as usize][i] = attacks::bishop_attacks(square, Bitboard::EMPTY);
        reach[Role::Rook as usize][i] = attacks::rook_attacks(square, Bitboard::EMPTY);
        reach[Role::Queen as usize][i] = attacks::queen_attacks(square, Bitboard::EMPTY);
        reach[Role::King as usize][i] = attacks::king_attacks(square);
        i += 1;
    }
    reach
};

#[cfg(test)]
mod tests {
    use shakmaty::san::San;

    use super::*;
    use crate::games::pgn::{GameReader, Token};

    /// Returns texts in the common forms of SAN, with many hints, captures and promotions.
    fn texts() -> Vec<String> {
        let mut texts = vec!["O-O".to_owned(), "O-O-O".to_owned()];
        for file in "abcdefgh".chars() {
            for rank in "12345678".chars() {
                let to = format!("{file}{rank}");
                texts.push(to.clone());
                for promotion in ["=Q", "=N", "=K"] {
                    texts.push(format!("{to}{promotion}"));
                }
                for hint in "abcdefgh12345678".chars() {
                    texts.push(format!("{hint}x{to}"));
                    texts.push(format!("{hint}x{to}=Q"));
                }
                for role in "NBRQK".chars() {
                    for middle in ["", "x", "a", "d", "hx", "1", "8x", "y"] {
                        texts.push(format!("{role}{middle}{to}"));
                    }
                }
            }
        }
        texts
    }

    #[test]
    fn what_is_told_quickly_is_what_the_rules_say() {
        let games = std::fs::read("data/selfplay.pgn").unwrap();
        let mut games = GameReader::new(&games);
        let texts = texts();
        let mut quick = 0;
        for _ in 0..12 {
            assert!(games.next_game());
            let mut pos = Chess::default();
            while let Token::Move { text, .. } = games.next_token() {
                for text in &texts {
                    let expected = text
                        .parse::<San>()
                        .ok()
                        .and_then(|san| san.to_move(&pos).ok());
                    if let Some(mv) =
                        Word::new(text.as_bytes()).and_then(|word| pos.quick_san(word))
                    {
                        assert_eq!(Some(mv), expected, "{text} in {pos:?}");
                        quick += 1;
                    } else if let Some(mv) = expected {
                        // Only captures en passant, and pawns' moves that name a rank, may be left to the slower code.
                        let is_odd = text.starts_with(|c: char| c.is_ascii_digit());
                        assert!(mv.is_en_passant() || is_odd, "{text} in {pos:?}");
                    }
                }
                let mv = super::super::read_move(&pos, text).unwrap();
                pos.play_unchecked(mv);
            }
            games.skip_moves();
        }
        assert!(quick > 10_000, "{quick}");
    }

    #[test]
    fn numbers_that_are_told_quickly_are_the_moves_of_the_rules() {
        let games = std::fs::read("data/selfplay.pgn").unwrap();
        let mut games = GameReader::new(&games);
        for _ in 0..12 {
            assert!(games.next_game());
            let mut pos = Chess::default();
            while let Token::Move { text, .. } = games.next_token() {
                let legal = pos.legal_moves();
                for mv in (0..=MAX_PLAIN_MOVE + 1).map(BookMove) {
                    if let Some(quick) = pos.quick_move(mv) {
                        assert!(legal.contains(&quick), "{mv} in {pos:?}");
                        assert_eq!(Some(quick), mv.to_move(&pos));
                    }
                }
                for mv in legal {
                    let is_odd = mv.is_castle() || mv.is_en_passant() || mv.is_promotion();
                    let quick = pos.quick_move(BookMove::from(mv));
                    assert_eq!(quick, (!is_odd).then_some(mv), "{mv} in {pos:?}");
                }
                pos.play_unchecked(super::super::read_move(&pos, text).unwrap());
            }
            games.skip_moves();
        }
    }
}

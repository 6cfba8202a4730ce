//! The common forms of SAN in standard chess, resolved without making a list of moves.
//!
//! Nearly every move of nearly every game is written `e4`, `exd5`, `e8=Q`, `Nf3`, `Nxf3`, `Nbd2` or
//! `N1xd2`. Going backwards from the square that is named, a few bitboards give the piece that went
//! there, and one look at the king tells whether it may. What is written in any other way, or is not
//! just one legal move, is left to [`read_move`](super::read_move)'s slower ways, which also know what is
//! wrong with it.

use super::Rules;
use shakmaty::{Bitboard, Chess, Color, File, Move, Piece, Position, Rank, Role, Square, attacks};

impl Rules for Chess {
    // Nearly every move of nearly every run comes through here, from one place.
    #[inline(always)]
    fn quick_san(&self, text: &[u8]) -> Option<Move> {
        match *text {
            [b'a'..=b'h', ..] => pawn_move(self, text),
            [letter, ref rest @ ..] => piece_move(self, role(letter)?, rest),
            [] => None,
        }
    }
}

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

#[inline]
fn square(file: u8, rank: u8) -> Option<Square> {
    let (file, rank) = (file.wrapping_sub(b'a'), rank.wrapping_sub(b'1'));
    (file < 8 && rank < 8)
        .then(|| Square::from_coords(File::new(u32::from(file)), Rank::new(u32::from(rank))))
}

// In one piece, so that the compiler inlines it where nearly every move comes through.
#[inline]
fn pawn_move(pos: &Chess, text: &[u8]) -> Option<Move> {
    let (text, promotion) = match *text {
        [ref text @ .., b'=', letter] => (text, Some(role(letter)?)),
        _ => (text, None),
    };
    let board = pos.board();
    let us = pos.turn();
    let back = us.fold_wb(-8, 8);
    let pawns = board.pawns() & board.by_color(us);
    let (from, to, capture) = match *text {
        [file, rank] => {
            let to = square(file, rank)?;
            let one = to.offset(back)?;
            let occupied = board.occupied();
            let is_double = to.rank() == us.fold_wb(Rank::Fourth, Rank::Fifth);
            let from = if is_double && !occupied.contains(one) {
                one.offset(back)?
            } else {
                one
            };
            if occupied.contains(to) {
                return None;
            }
            (from, to, None)
        }
        [from_file, b'x', file, rank] => {
            let to = square(file, rank)?;
            let behind = to.offset(back)?;
            let from = square(from_file, behind.rank().char() as u8)?;
            if from.file().distance(to.file()) != 1 {
                return None;
            }
            // An empty square is en passant, or a mistake.
            (from, to, Some(taken(pos, to)?))
        }
        _ => return None,
    };
    let promotes = to.rank() == us.fold_wb(Rank::Eighth, Rank::First);
    let is_right = pawns.contains(from)
        && promotes == promotion.is_some()
        && promotion != Some(Role::King)
        && is_safe(pos, us, from, to);
    is_right.then_some(Move::Normal {
        role: Role::Pawn,
        from,
        capture,
        to,
        promotion,
    })
}

#[inline]
fn piece_move(pos: &Chess, role: Role, text: &[u8]) -> Option<Move> {
    let (hint, is_capture, to) = match *text {
        [file, rank] => (None, false, square(file, rank)?),
        [b'x', file, rank] => (None, true, square(file, rank)?),
        [hint, file, rank] => (Some(hint), false, square(file, rank)?),
        [hint, b'x', file, rank] => (Some(hint), true, square(file, rank)?),
        _ => return None,
    };
    let board = pos.board();
    let us = pos.turn();
    let capture = if board.occupied().contains(to) {
        Some(taken(pos, to)?)
    } else {
        None
    };
    if is_capture != capture.is_some() {
        return None;
    }
    let mut from = attacks::attacks(to, Piece { color: us, role }, board.occupied())
        & board.by_role(role)
        & board.by_color(us);
    match hint {
        None => {}
        Some(file @ b'a'..=b'h') => from &= Bitboard::from_file(File::new(u32::from(file - b'a'))),
        Some(rank @ b'1'..=b'8') => from &= Bitboard::from_rank(Rank::new(u32::from(rank - b'1'))),
        Some(_) => return None,
    }
    let is_legal = |from: &Square| {
        if role == Role::King {
            let without = board.occupied() ^ Bitboard::from_square(*from);
            pos.king_attackers(to, !us, without).is_empty()
        } else {
            is_safe(pos, us, *from, to)
        }
    };
    let mut legal = from.into_iter().filter(is_legal);
    let from = legal.next()?;
    legal.next().is_none().then_some(Move::Normal {
        role,
        from,
        capture,
        to,
        promotion: None,
    })
}

/// The piece of the other side on a square.
#[inline]
fn taken(pos: &Chess, square: Square) -> Option<Role> {
    if pos.them().contains(square) {
        pos.board().role_at(square)
    } else {
        None
    }
}

/// Whether the king is out of check when another piece of its side has gone from a square to another.
#[inline(always)]
fn is_safe(pos: &Chess, us: Color, from: Square, to: Square) -> bool {
    let board = pos.board();
    let Some(king) = board.king_of(us) else {
        return false;
    };
    let occupied = (board.occupied() ^ Bitboard::from_square(from)) | Bitboard::from_square(to);
    let them = board.by_color(!us) & !Bitboard::from_square(to);
    let queens = board.queens();
    let attackers = (attacks::rook_attacks(king, occupied) & (board.rooks() | queens))
        | (attacks::bishop_attacks(king, occupied) & (board.bishops() | queens))
        | (attacks::knight_attacks(king) & board.knights())
        | (attacks::pawn_attacks(us, king) & board.pawns());
    (attackers & them).is_empty()
}

#[cfg(test)]
mod tests {
    use shakmaty::san::San;

    use super::*;
    use crate::pgn::{GameReader, Token};

    /// Every text of these characters up to five long, where the letters allow it.
    fn texts() -> Vec<String> {
        let mut texts = Vec::new();
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
                    if let Some(mv) = pos.quick_san(text.as_bytes()) {
                        assert_eq!(Some(mv), expected, "{text} in {pos:?}");
                        quick += 1;
                    } else if let Some(mv) = expected {
                        // Only en passant, and pawns told by their rank, are left to the slower ways.
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
}

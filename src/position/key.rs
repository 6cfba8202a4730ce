//! The Polyglot key of a position: a Zobrist hash, the exclusive or of one random number for each
//! piece on its square, each castling right, the en passant file and the side to move.

use shakmaty::{Bitboard, CastlingSide, Color, Move, Piece, Position, Role, Square, attacks};

use super::random::RANDOM;

const CASTLE: usize = 768;
const EN_PASSANT: usize = 772;
const TURN: u64 = RANDOM[780];

/// The part of the key that a piece on a square contributes.
#[inline]
fn piece_key(piece: Piece, square: Square) -> u64 {
    // Kinds of piece go pawn, knight, bishop, rook, queen, king, black before white in each.
    let kind = 2 * (piece.role as usize - 1) + usize::from(piece.color.is_white());
    RANDOM[64 * kind + usize::from(square)]
}

/// The part that a castling right contributes.
#[inline]
fn castle_key(color: Color, side: CastlingSide) -> u64 {
    RANDOM[CASTLE + 2 * usize::from(color.is_black()) + usize::from(side.is_queen_side())]
}

/// The part that the en passant square contributes: none unless a pawn of the side to move stands
/// beside the pawn that has just advanced. Whether it may legally take does not matter.
#[inline]
fn en_passant_key<P: Position>(pos: &P) -> u64 {
    let Some(square) = pos.maybe_ep_square() else {
        return 0;
    };
    let takers = attacks::pawn_attacks(!pos.turn(), square) & pos.our(Role::Pawn);
    if takers.any() {
        RANDOM[EN_PASSANT + usize::from(square.file())]
    } else {
        0
    }
}

/// The Polyglot key of a position, computed from the whole board.
///
/// The en passant file counts only if a pawn of the side to move stands beside the pawn that has
/// just made its double step. To follow a game, [`Keyed`] is much faster.
///
/// ```
/// use polybook::position::key;
/// assert_eq!(key(&shakmaty::Chess::default()), 0x463b_9618_1691_fc9c);
/// ```
pub fn key<P: Position>(pos: &P) -> u64 {
    let mut key = if pos.turn().is_white() { TURN } else { 0 };
    for (square, piece) in pos.board() {
        key ^= piece_key(piece, square);
    }
    for color in Color::ALL {
        for side in CastlingSide::ALL {
            if pos.castles().has(color, side) {
                key ^= castle_key(color, side);
            }
        }
    }
    key ^ en_passant_key(pos)
}

/// A position that carries its key along and updates it by what each move changes.
#[derive(Clone, Debug)]
pub struct Keyed<P> {
    pos: P,
    key: u64,
    en_passant: u64,
}

impl<P: Position> Keyed<P> {
    /// Starts from a position.
    pub fn new(pos: P) -> Keyed<P> {
        Keyed {
            key: key(&pos),
            en_passant: en_passant_key(&pos),
            pos,
        }
    }

    /// The key of the present position.
    #[inline]
    pub fn key(&self) -> u64 {
        self.key
    }

    /// The present position.
    #[inline]
    pub fn position(&self) -> &P {
        &self.pos
    }

    /// Plays a move, which must be legal here.
    #[inline]
    pub fn play(&mut self, mv: Move) {
        let us = self.pos.turn();
        let mut key = self.key ^ self.en_passant ^ TURN;
        match mv {
            Move::Normal {
                role,
                from,
                capture,
                to,
                promotion,
            } => {
                key ^= piece_key(role.of(us), from);
                key ^= piece_key(promotion.unwrap_or(role).of(us), to);
                if let Some(taken) = capture {
                    key ^= piece_key(taken.of(!us), to);
                }
            }
            Move::EnPassant { from, to } => {
                key ^= piece_key(us.pawn(), from) ^ piece_key(us.pawn(), to);
                key ^= piece_key((!us).pawn(), Square::from_coords(to.file(), from.rank()));
            }
            Move::Castle { king, rook } => {
                let side = CastlingSide::from_queen_side(rook < king);
                let king_to = Square::from_coords(side.king_to_file(), king.rank());
                let rook_to = Square::from_coords(side.rook_to_file(), rook.rank());
                key ^= piece_key(us.king(), king) ^ piece_key(us.king(), king_to);
                key ^= piece_key(us.rook(), rook) ^ piece_key(us.rook(), rook_to);
            }
            Move::Put { role, to } => key ^= piece_key(role.of(us), to),
        }

        let rights = self.pos.castles().castling_rights();
        if rights.any() {
            let kings = self.pos.board().kings();
            let white = self.pos.board().white();
            self.pos.play_unchecked(mv);
            let lost = rights & !self.pos.castles().castling_rights();
            if lost.any() {
                key ^= lost_rights_key(lost, kings, white);
            }
        } else {
            self.pos.play_unchecked(mv);
        }

        self.en_passant = en_passant_key(&self.pos);
        self.key = key ^ self.en_passant;
    }
}

/// The parts of castling rights that a move ended, told by where their rooks stood (`lost`) and
/// where the kings and the white pieces stood before the move.
#[cold]
fn lost_rights_key(lost: Bitboard, kings: Bitboard, white: Bitboard) -> u64 {
    let mut key = 0;
    for rook in lost {
        let color = Color::from_white(white.contains(rook));
        let own = if color.is_white() { white } else { !white };
        let Some(king) = (kings & own).first() else {
            continue;
        };
        key ^= castle_key(color, CastlingSide::from_queen_side(rook < king));
    }
    key
}

#[cfg(test)]
mod tests {
    use shakmaty::{CastlingMode, Chess, fen::Fen};

    use super::*;
    use crate::position::read_move;

    /// The test keys of the format's document, with the moves that lead there.
    const DOCUMENT: [(&str, &str, u64); 9] = [
        (
            "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
            "",
            0x463b_9618_1691_fc9c,
        ),
        (
            "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 1",
            "e2e4",
            0x823c_9b50_fd11_4196,
        ),
        (
            "rnbqkbnr/ppp1pppp/8/3p4/4P3/8/PPPP1PPP/RNBQKBNR w KQkq d6 0 2",
            "e2e4 d7d5",
            0x0756_b944_61c5_0fb0,
        ),
        (
            "rnbqkbnr/ppp1pppp/8/3pP3/8/8/PPPP1PPP/RNBQKBNR b KQkq - 0 2",
            "e2e4 d7d5 e4e5",
            0x662f_afb9_65db_29d4,
        ),
        (
            "rnbqkbnr/ppp1p1pp/8/3pPp2/8/8/PPPP1PPP/RNBQKBNR w KQkq f6 0 3",
            "e2e4 d7d5 e4e5 f7f5",
            0x22a4_8b5a_8e47_ff78,
        ),
        (
            "rnbqkbnr/ppp1p1pp/8/3pPp2/8/8/PPPPKPPP/RNBQ1BNR b kq - 0 3",
            "e2e4 d7d5 e4e5 f7f5 e1e2",
            0x652a_607c_a3f2_42c1,
        ),
        (
            "rnbq1bnr/ppp1pkpp/8/3pPp2/8/8/PPPPKPPP/RNBQ1BNR w - - 0 4",
            "e2e4 d7d5 e4e5 f7f5 e1e2 e8f7",
            0x00fd_d303_c946_bdd9,
        ),
        (
            "rnbqkbnr/p1pppppp/8/8/PpP4P/8/1P1PPPP1/RNBQKBNR b KQkq c3 0 3",
            "a2a4 b7b5 h2h4 b5b4 c2c4",
            0x3c81_23ea_7b06_7637,
        ),
        (
            "rnbqkbnr/p1pppppp/8/8/P6P/R1p5/1P1PPPP1/1NBQKBNR b Kkq - 0 4",
            "a2a4 b7b5 h2h4 b5b4 c2c4 b4c3 a1a3",
            0x5c3f_9b82_9b27_9560,
        ),
    ];

    #[test]
    fn keys_of_the_format_document() {
        for (fen, moves, expected) in DOCUMENT {
            let pos: Chess = fen
                .parse::<Fen>()
                .unwrap()
                .into_position(CastlingMode::Standard)
                .unwrap();
            assert_eq!(key(&pos), expected, "{fen}");

            let mut line = Keyed::new(Chess::default());
            for text in moves.split_whitespace() {
                let mv = read_move(line.position(), text.as_bytes()).unwrap();
                line.play(mv);
            }
            assert_eq!(line.key(), expected, "{moves}");
        }
    }

    #[test]
    fn carried_key_equals_the_computed_one_in_every_kind_of_move() {
        // Castling on both wings, taking a rook at home, promoting, taking en passant.
        let games = [
            "e4 d5 e5 f5 exf6 Nc6 fxg7 Bd7 gxh8=Q e5 Be2 Qe7 Nf3 O-O-O O-O",
            "b3 g6 Bb2 Bg7 Bxg7 e5 Bxh8 a5 Nc3 a4 e3 axb3 Qf3 bxa2 O-O-O a1=N",
        ];
        for game in games {
            let mut line = Keyed::new(Chess::default());
            for text in game.split_whitespace() {
                let mv = read_move(line.position(), text.as_bytes())
                    .unwrap_or_else(|err| panic!("{text}: {err}"));
                line.play(mv);
                assert_eq!(line.key(), key(line.position()), "after {text} of {game}");
            }
        }
    }
}

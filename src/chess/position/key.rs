//! Computes the two hashes by which positions are looked up: the Polyglot key and the identity.
//!
//! The [key](key) is a Zobrist hash: the exclusive or (XOR) of random numbers for each piece on its square, each
//! castling right, the en passant file and the side to move. The random numbers are defined by the Polyglot format, and
//! are contained in the crate `shakmaty`.
//!
//! The [identity](identity) is the hash by which the explorer, suites, repertoires and databases group the games of a
//! position. Polyglot books use keys instead, and so does the index format of polyglot's fork. The identity differs
//! from the key in two ways: it omits the en passant file if no legal move captures en passant, and it includes the
//! state of a variant that the key omits. The [exact identity](Keyed::exact_identity) includes this state too, but
//! keeps the en passant file of the key, so in standard chess it equals the key. Counts directories, which store the
//! number of games of each move, group positions by their exact identities.

use std::{iter::once, ops::BitXor};

use shakmaty::{
    Bitboard, CastlingMode, CastlingSide, Color, EnPassantMode, File, Move, Piece, Position, Rank,
    Role, Square, attacks,
    zobrist::{Zobrist64, ZobristValue},
};

use super::{Rules, Variant};

/// Returns the random number of the Polyglot format that is XORed into a key if White is to move.
#[inline]
fn turn_key() -> u64 {
    Zobrist64::zobrist_for_white_turn().0
}

/// Returns the random number of the Polyglot format that is XORed into a key if `piece` is on `square`.
#[inline]
fn piece_key(piece: Piece, square: Square) -> u64 {
    Zobrist64::zobrist_for_piece(square, piece).0
}

/// Returns the random number of the Polyglot format that is XORed into a key if `color` has the right to castle on
/// `side`.
#[inline]
fn castle_key(color: Color, side: CastlingSide) -> u64 {
    Zobrist64::zobrist_for_castling_right(color, side).0
}

/// Returns the number that is XORed into the Polyglot key of `pos` for the right to capture en passant. This number is
/// not 0 if an enemy pawn has just made a double step to a square next to a pawn of the side to move, even if the
/// capture is illegal. It is then the random number for the file of the double step.
#[inline]
fn en_passant_key<P: Position>(pos: &P) -> u64 {
    let Some(square) = pos.maybe_ep_square() else {
        return 0;
    };
    let takers = attacks::pawn_attacks(!pos.turn(), square) & pos.our(Role::Pawn);
    if takers.any() {
        en_passant_part(square)
    } else {
        0
    }
}

/// Computes the Polyglot key of a position from the whole board.
///
/// The key depends on the en passant file if an enemy pawn has just made a double step to a square next to a pawn of
/// the side to move. To compute the keys of all positions of a game, use [`Keyed`], which updates the key after each
/// move. This is much faster.
///
/// ```
/// use polybook::position::key;
/// assert_eq!(key(&shakmaty::Chess::default()), 0x463b_9618_1691_fc9c);
/// ```
pub fn key<P: Rules>(pos: &P) -> u64 {
    board_key(pos)
        .bitxor(en_passant_key(pos))
        .wrapping_add(holdings_key(pos))
}

/// Returns the random number of the Polyglot format for the file of `square`, an en passant square. To add the right to
/// capture en passant on this square to a Polyglot key, or to remove it, XOR the number into the key. This does not
/// work in variants with pieces in hand, because a part of their keys is added, not XORed.
pub(crate) fn en_passant_part(square: Square) -> u64 {
    Zobrist64::zobrist_for_en_passant_file(square.file()).0
}

/// Computes the part of the Polyglot key that depends neither on the en passant file nor on pieces in hand.
fn board_key<P: Rules>(pos: &P) -> u64 {
    let number = pos.rules().number().unwrap_or(0);
    let mut key = number ^ if pos.turn().is_white() { turn_key() } else { 0 };
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
    key
}

/// Returns the part of the Polyglot key that represents the pieces in hand. This part is added to the rest of the key,
/// not XORed. It is 0 in variants without pieces in hand.
///
/// For each piece in hand, the part contains the random number for the same piece on a1, rotated left by 8 bits. These
/// numbers are added up.
#[inline]
fn holdings_key<P: Position>(pos: &P) -> u64 {
    let Some(pockets) = pos.pockets() else {
        return 0;
    };
    let mut key = 0u64;
    for color in Color::ALL {
        for role in Role::ALL {
            let held = u64::from(*pockets.get(color).get(role));
            let one = piece_key(role.of(color), Square::A1).rotate_left(8);
            key = key.wrapping_add(one.wrapping_mul(held));
        }
    }
    key
}

/// Returns `true` if a rook that may castle is not the outermost rook on its side of the king. A book cannot store such
/// a position, because its Polyglot key does not depend on which of several rooks may castle.
///
/// ```
/// use polybook::position::{Variant, has_inner_castling_rook};
/// let inner = |fen| has_inner_castling_rook(&Variant::Chess960.parse_fen(fen).unwrap());
/// assert!(!inner("4k3/8/8/8/8/8/8/2R1K1RR w HC - 0 1"));
/// assert!(inner("4k3/8/8/8/8/8/8/2R1K1RR w GC - 0 1"));
/// ```
pub fn has_inner_castling_rook<P: Position>(pos: &P) -> bool {
    let castles = pos.castles();
    // In other modes, only rooks in the corners can castle.
    castles.mode() == CastlingMode::Chess960
        && Color::ALL.into_iter().any(|color| {
            let rooks = pos.board().by_piece(color.rook())
                & Bitboard::from_rank(color.fold_wb(Rank::First, Rank::Eighth));
            let outermost = |side: CastlingSide| match side {
                CastlingSide::KingSide => rooks.last(),
                CastlingSide::QueenSide => rooks.first(),
            };
            CastlingSide::ALL.into_iter().any(|side| {
                castles.has(color, side) && castles.rook(color, side) != outermost(side)
            })
        })
}

/// Returns a hash of the state of a position on which the Polyglot key does not depend. This state consists of the
/// promoted pieces in crazyhouse, the checks given in three-check, and the castling rooks if one of them is not the
/// outermost rook. Returns 0 if there is no such state.
fn hidden_state_key<P: Position>(pos: &P) -> u64 {
    let mut state = pos.promoted().0;
    if let Some(checks) = pos.remaining_checks() {
        for color in Color::ALL {
            state = state * 4 + 3 - u64::from(u32::from(*checks.get(color)).min(3));
        }
    }
    if !has_inner_castling_rook(pos) {
        return state_key(state);
    }
    // Promoted pieces or checks and castling rooks use the same bits, so each is hashed in another way.
    state_key(state) ^ state_key(pos.castles().castling_rights().0).rotate_left(32)
}

/// Computes the identity of a position: a hash by which equal positions are grouped.
///
/// Two positions are equal if they have the same board, side to move, castling rights, variant state and legal moves.
/// An en passant right that no legal move uses is ignored:
///
/// ```
/// use polybook::position::{from_text, identity, key};
/// // Black's pawn on f4 is not pinned, White's pawn on e5 is: Black's queen is behind it.
/// let step_last = from_text(None, Some("e4 e5 f4 exf4 e5 Qe7 Nf3 d5"))?;
/// let step_first = from_text(None, Some("e4 e5 f4 exf4 e5 d5 Nf3 Qe7"))?;
/// assert_eq!(identity(&step_last), identity(&step_first));
/// assert_ne!(key(&step_last), key(&step_first));
/// # Ok::<(), polybook::position::LineError>(())
/// ```
pub fn identity<P: Rules>(pos: &P) -> u64 {
    Keyed::new(pos.clone()).identity()
}

/// Returns a hash of `state`, a number for the state of a variant that the Polyglot key omits. The caller XORs the hash
/// into an identity. The hash of 0 is 0, so it leaves the identity unchanged.
fn state_key(state: u64) -> u64 {
    // Spread the state over all bits, so that identities stay evenly distributed.
    (state.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .rotate_left(29)
        .wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// Converts the [identity](identity) of a position in `variant` to the identity that a position with the same board has
/// in standard chess. In three-check, the identity also depends on the number of given checks, which is unknown, so the
/// iterator yields one candidate for each possible number. In other variants, it yields a single identity. The position
/// must have no pieces in hand and no promoted pieces.
pub(crate) fn standard_identities(variant: Variant, identity: u64) -> impl Iterator<Item = u64> {
    let number = variant.number().unwrap_or(0);
    // The hidden state of three-check is the number of checks that each side has given.
    let states = match variant {
        Variant::ThreeCheck => 0..16,
        _ => 0..1,
    };
    states.map(move |state| identity ^ number ^ state_key(state))
}

/// Returns `true` if the position has no legal en passant capture.
fn has_no_en_passant<P: Position>(pos: &P) -> bool {
    pos.ep_square(EnPassantMode::Legal).is_none()
}

/// Returns the squares of enemy pawns that may have made a double step in the last move and are next to a pawn of the
/// side to move. This pawn might be able to capture them en passant.
#[inline]
fn possible_double_steps<P: Position>(pos: &P) -> Bitboard {
    let (us, board) = (pos.turn(), pos.board());
    let (rank, back) = us.fold_wb((Rank::Fifth, -8), (Rank::Fourth, 8));
    let pawns = board.pawns() & Bitboard::from_rank(rank);
    let steps = pawns & board.by_color(!us) & squares_beside(pawns & board.by_color(us));
    // Most positions contain no such pair of pawns.
    if steps.is_empty() {
        return steps;
    }
    // The two squares from which and over which the pawn moved must be empty.
    let empty = !board.occupied();
    steps & empty.shift(back) & empty.shift(2 * back)
}

/// Returns the squares that are directly to the left or right of a square in `squares`.
#[inline]
fn squares_beside(squares: Bitboard) -> Bitboard {
    (squares & !Bitboard::from_file(File::H)).shift(1)
        | (squares & !Bitboard::from_file(File::A)).shift(-1)
}

/// Returns a copy of `pos` with the additional right to capture the pawn on `step` en passant, or `None` if a legal
/// move could use this right. `pos` itself must have no legal en passant capture.
fn with_unusable_en_passant<P: Rules>(pos: &P, step: Square) -> Option<P> {
    let us = pos.turn();
    if pos.rules() == Variant::Standard {
        // An en passant capture is illegal only if it exposes the king. Test this quickly without the pawn on `step`
        // and the pawns next to it.
        let board = pos.board();
        let king = board.king_of(us)?;
        let takers = squares_beside(Bitboard::from_square(step)) & board.by_piece(us.pawn());
        let rest = board.occupied() ^ takers ^ step;
        if board.attacks_to(king, !us, rest).is_empty() {
            return None;
        }
    }
    let stepped = pos.with_en_passant(step.offset(us.fold_wb(8, -8))?)?;
    has_no_en_passant(&stepped).then_some(stepped)
}

/// A position with its Polyglot key. After each move, the key is updated incrementally, which is faster than computing
/// it from the whole board.
#[derive(Clone, Debug)]
pub struct Keyed<P> {
    pos: P,
    /// The part of the key that consists of XORed random numbers, including `en_passant`. The part for pieces in hand
    /// is added to it.
    xored: u64,
    en_passant: u64,
}

impl<P: Rules> Keyed<P> {
    /// Creates a keyed position, and computes its Polyglot key from the whole board.
    pub fn new(pos: P) -> Keyed<P> {
        let en_passant = en_passant_key(&pos);
        Keyed {
            xored: board_key(&pos) ^ en_passant,
            en_passant,
            pos,
        }
    }

    /// Returns the Polyglot [key](key) of the current position.
    #[inline]
    pub fn key(&self) -> u64 {
        self.xored.wrapping_add(holdings_key(&self.pos))
    }

    /// Returns the [identity](identity) of the current position, a hash by which equal positions are grouped.
    #[inline]
    pub fn identity(&self) -> u64 {
        self.key_without_unusable_en_passant() ^ hidden_state_key(&self.pos)
    }

    /// Returns the Polyglot key of the current position, but without its part for the en passant file if no en passant
    /// capture is legal.
    #[inline]
    pub(crate) fn key_without_unusable_en_passant(&self) -> u64 {
        match self.en_passant {
            0 => self.key(),
            part if has_no_en_passant(&self.pos) => {
                (self.xored ^ part).wrapping_add(holdings_key(&self.pos))
            }
            _ => self.key(),
        }
    }

    /// Returns a hash of the current position that depends on its whole state. Unlike [`identity`](Keyed::identity), it
    /// depends on en passant rights that no legal move can use. Unlike the Polyglot key, it depends on the whole state
    /// of a variant, such as the checks given in three-check.
    pub fn exact_identity(&self) -> u64 {
        self.key() ^ hidden_state_key(&self.pos)
    }

    // A `Vec` is returned because an iterator would contain positions, which are slow to move.
    /// Returns copies of the current position, each with an additional right to capture a pawn en passant that no legal
    /// move can use. The [identity](Keyed::identity) ignores such rights, but the Polyglot key depends on them. Usually
    /// no such right is possible, and the result is empty.
    #[inline]
    fn equal_positions(&self) -> Vec<P> {
        let steps = possible_double_steps(&self.pos);
        if steps.is_empty() {
            Vec::new()
        } else {
            self.equal_positions_after(steps)
        }
    }

    /// Returns copies of the current position, one for each pawn on a square of `steps`, with the additional right to
    /// capture this pawn en passant. Leaves out rights that a legal move could use. `steps` contains the enemy pawns
    /// that may have made a double step in the last move.
    #[cold]
    fn equal_positions_after(&self, steps: Bitboard) -> Vec<P> {
        // An en passant right that a legal move uses is part of the identity.
        if self.en_passant != 0 && !has_no_en_passant(&self.pos) {
            return Vec::new();
        }
        let stepped = |step| with_unusable_en_passant(&self.pos, step);
        steps.into_iter().filter_map(stepped).collect()
    }

    /// Returns the hashes, besides the [identity](Keyed::identity), under which a counts directory may store the moves
    /// of the current position. A counts directory groups positions by [exact identity](Keyed::exact_identity), which
    /// depends even on an en passant right that no legal move can use. The result contains the exact identities of all
    /// copies of the position that have such a right. It is usually empty.
    #[inline]
    pub(crate) fn other_exact_identities(&self) -> Vec<u64> {
        let others = self.equal_positions();
        if others.is_empty() {
            return Vec::new();
        }
        let exact = |pos| Keyed::new(pos).exact_identity();
        others.into_iter().map(exact).collect()
    }

    /// Returns all hashes under which a counts directory may store the moves of the current position. A counts
    /// directory groups positions by [exact identity](Keyed::exact_identity), which depends even on an en passant right
    /// that no legal move can use. The first hash is the [identity](Keyed::identity) of the position. Any others are
    /// the exact identities of copies of the position that have such a right.
    pub fn exact_identities(&self) -> impl Iterator<Item = u64> {
        once(self.identity()).chain(self.other_exact_identities())
    }

    /// Returns the Polyglot keys under which a LevelDB index of games may store the games of the current position.
    /// There may be several keys, because the Polyglot key depends on en passant rights that no legal move can use,
    /// while the [identity](Keyed::identity) ignores them. All positions with these keys have the same identity.
    pub fn equal_keys(&self) -> impl Iterator<Item = u64> {
        let others = self.equal_positions().into_iter();
        once(self.key_without_unusable_en_passant()).chain(others.map(|pos| key(&pos)))
    }

    /// Returns the current position.
    #[inline]
    pub fn position(&self) -> &P {
        &self.pos
    }

    /// Returns the Polyglot key of the position after the legal move `mv`, without playing the move. Returns `None` if
    /// the move may change more than the board and the side to move, such as the castling rights, the en passant file
    /// or the pieces in hand.
    #[cfg(feature = "games")]
    pub(crate) fn key_after_plain(&self, mv: Move) -> Option<u64> {
        let Move::Normal {
            role,
            from,
            capture,
            to,
            promotion,
        } = mv
        else {
            return None;
        };
        let may_end_right = matches!(role, Role::King | Role::Rook) || capture == Some(Role::Rook);
        let is_double_step = role == Role::Pawn && from.rank().distance(to.rank()) > 1;
        if is_double_step
            || (may_end_right && self.pos.castles().castling_rights().any())
            || self.pos.captures_explode()
            || self.pos.pockets().is_some()
        {
            return None;
        }
        let us = self.pos.turn();
        let mut key = self.xored ^ self.en_passant ^ turn_key();
        key ^= piece_key(role.of(us), from) ^ piece_key(promotion.unwrap_or(role).of(us), to);
        if let Some(taken) = capture {
            key ^= piece_key(taken.of(!us), to);
        }
        Some(key)
    }

    // This is called for each half-move of each game, so the kind of the move is matched only once.
    /// Plays a move and updates the key. The move must be legal in the current position.
    #[inline]
    pub fn play(&mut self, mv: Move) {
        if self.pos.captures_explode() && mv.is_capture() {
            self.pos.play_unchecked(mv);
            *self = Keyed::new(self.pos.clone());
            return;
        }
        let us = self.pos.turn();
        let mut key = self.xored ^ self.en_passant ^ turn_key();
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
        self.xored = key ^ self.en_passant;
    }
}

/// Returns the number to XOR into a Polyglot key when a move ends castling rights: the XOR of the random numbers for
/// these rights. `lost` contains the squares of the rooks that can no longer castle. `kings` and `white` contain the
/// squares of the kings and of White's pieces before the move.
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
    use std::collections::{HashMap, HashSet};

    use proptest::prelude::*;
    use shakmaty::{CastlingMode, Chess, fen::Fen};

    use super::*;
    use crate::chess::position::{Variant, read_move};

    /// The test keys of the format's specification, with the moves that lead to each position.
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

    /// Checks and squares of promoted pieces are numbers in the same range as the squares of castling rooks.
    #[test]
    fn castling_rooks_differ_from_checks_and_promoted_pieces() {
        let identity =
            |variant: Variant, fen: &str| super::identity(&variant.parse_fen(fen).unwrap());
        let board = "1rr3r1/3pkp2/8/4P3/6Pr/8/2P5/1RR1KR1R w";
        let states = [
            "C - 0 1 2+3",
            "Q - 0 1 3+3",
            "C - 0 1 3+3",
            "CH - 0 1 3+1",
            "Q - 0 1 2+3",
        ];
        let states = states.map(|state| identity(Variant::ThreeCheck, &format!("{board} {state}")));
        assert_eq!(states.iter().collect::<HashSet<_>>().len(), states.len());

        let boards = ["1RR1K3 w B", "1RR~1K3 w B", "1RR1K3 w C"];
        let boards = boards
            .map(|end| identity(Variant::Crazyhouse, &format!("4k3/8/8/8/8/8/8/{end} - 0 1")));
        assert_eq!(boards.iter().collect::<HashSet<_>>().len(), boards.len());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Compares the positions of random games. Variants of each position are added: with every en passant right
        /// that a double step could have left, and without each of its castling rights.
        #[test]
        fn positions_are_the_same_if_board_and_legal_moves_are(
            variant in 0..Variant::ALL.len(),
            start in 0..STARTS.len(),
            choices in proptest::collection::vec(any::<u8>(), 0..60),
        ) {
            let variant = Variant::ALL[variant];
            let start = variant.parse_fen(STARTS[start]).unwrap_or_else(|_| variant.start());
            let mut pos = Keyed::new(start);
            // Identities must be equal exactly if board, side to move, castling rights and legal moves are equal.
            let mut known: HashMap<(String, Vec<Move>), u64> = HashMap::new();
            let mut identities = HashMap::new();
            for choice in choices {
                let here = pos.position();
                let steps = Square::ALL.into_iter();
                let steps = steps.filter(|square| [Rank::Third, Rank::Sixth].contains(&square.rank()));
                let others = steps.filter_map(|square| here.with_en_passant(square));
                let text = Fen::from_position(here, EnPassantMode::Legal).to_string();
                let castling = text.split(' ').nth(2).unwrap();
                let fewer = castling.match_indices(|right| right != '-').map(|(at, right)| {
                    let rest = format!("{}{}", &castling[..at], &castling[at + right.len()..]);
                    let rest = if rest.is_empty() { "-" } else { &rest };
                    let mut fields: Vec<&str> = text.split(' ').collect();
                    fields[2] = rest;
                    variant.parse_fen(&fields.join(" ")).unwrap()
                });
                // Positions with the same key: other checks were given, another rook may castle, a piece is promoted.
                let fields: Vec<&str> = text.split(' ').collect();
                let with = |at: usize, field: &str| {
                    let mut fields = fields.clone();
                    fields[at] = field;
                    variant.parse_fen(&fields.join(" ")).ok()
                };
                let checks = ["3+3", "2+3", "3+1"].into_iter().filter(|_| fields[4].contains('+'));
                let checks = checks.filter_map(|checks| with(4, checks));
                let rooks = ('A'..='H').chain('a'..='h').filter_map(|rook| {
                    let of_side = castling.find(|right: char| right.is_uppercase() == rook.is_uppercase())?;
                    let (before, after) = castling.split_at(of_side);
                    with(2, &format!("{before}{rook}{}", &after[1..]))
                });
                let promoted = fields[0].find(['Q', 'R', 'B', 'N', 'q', 'r', 'b', 'n']);
                let promoted = promoted.filter(|_| variant == Variant::Crazyhouse);
                let promoted = promoted.and_then(|at| {
                    let (before, after) = fields[0].split_at(at + 1);
                    with(0, &format!("{before}~{}", after.trim_start_matches('~')))
                });
                let hidden = checks.chain(rooks).chain(promoted);
                for pos in others.chain(fewer).chain(hidden).chain([here.clone()]).map(Keyed::new) {
                    let fen = Fen::from_position(pos.position(), EnPassantMode::Legal).to_string();
                    let fields = fen.split(' ').enumerate();
                    let fields = fields.filter(|(field, word)| [0, 1, 2].contains(field) || word.contains('+'));
                    let board: Vec<&str> = fields.map(|(_, word)| word).collect();
                    let mut moves = pos.position().legal_moves().to_vec();
                    moves.sort_by_key(|mv| format!("{mv:?}"));
                    let state = (board.join(" "), moves);
                    let identity = pos.identity();
                    prop_assert_eq!(*known.entry(state.clone()).or_insert(identity), identity);
                    prop_assert_eq!(identities.entry(identity).or_insert(state.clone()), &state);
                    prop_assert!(pos.exact_identities().any(|exact| exact == pos.exact_identity()));
                    prop_assert!(pos.equal_keys().any(|key| key == pos.key()));
                }
                let moves = here.legal_moves();
                for mv in &moves {
                    let mut after = pos.clone();
                    after.play(*mv);
                    prop_assert!(pos.key_after_plain(*mv).is_none_or(|key| key == after.key()));
                }
                let Some(mv) = moves.get(usize::from(choice) % moves.len().max(1)) else {
                    break;
                };
                pos.play(*mv);
            }
        }
    }

    /// Positions in which a double step leads next to a pawn that is pinned on a file, a rank or a diagonal. Also
    /// positions of Chess960. In two of them, castling rooks are not the outermost rooks.
    const STARTS: [&str; 8] = [
        "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
        "4k3/3p1p2/8/r3P2K/8/8/8/8 b - - 0 1",
        "3qkb2/2pp1p2/8/4P3/8/8/8/4K3 b - - 0 1",
        "4k3/2p1p1b1/8/3P4/8/1p6/K1P5/8 b - - 0 1",
        "8/8/8/1k6/2p1p1p1/8/1P1P1PPP/3K1B1R w - - 0 1",
        "qrkrnbbn/pppppppp/8/8/8/8/PPPPPPPP/QRKRNBBN w DBdb - 0 1",
        "r1r1k1rr/3p1p2/8/4P3/8/8/2P3P1/R1R1K1RR w GCgc - 0 1",
        "rr2k2r/2p1p1p1/3P4/8/8/4p3/3P1P2/1R1RK1R1 b GBha - 0 1",
    ];

    #[test]
    fn carried_key_equals_the_computed_one_in_every_kind_of_move() {
        // The moves castle on both wings, capture a rook on its first square, promote, and capture en passant.
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

//! Converts positions to text: FEN, EPD, and an exact form for temporary files.
//!
//! The EPD identifies a position in an OOBS database (an SQLite database of the moves in each position), so positions
//! with equal [identities](super::identity) must have equal EPDs. Therefore, [`write_epd`] writes the en passant square
//! only if a capture there is legal. [`fen_of`] also writes it if the capturing pawn is pinned, because the Polyglot
//! key then depends on it.

use shakmaty::{
    Bitboard, CastlingMode, CastlingSide, Color, EnPassantMode, Position, PositionError, Role,
    Setup,
    fen::{Epd, Fen},
    variant::VariantPosition,
};

/// Returns the FEN of a position. If a pawn has just made a double step to a square next to an enemy pawn, the FEN
/// contains the en passant square, even if no capture there is legal. The Polyglot key depends on this square, so a
/// position parsed from the FEN has the same key.
pub fn fen_of<P: Position>(pos: &P) -> String {
    Fen::from_position(pos, EnPassantMode::PseudoLegal).to_string()
}

/// Returns the EPD of a position: the board, the side to move, the castling rights, and the en passant square if a
/// capture there is legal.
#[expect(clippy::missing_panics_doc, reason = "an EPD is ASCII")]
pub fn epd_of<P: Position>(pos: &P) -> String {
    let mut epd = Vec::new();
    write_epd(pos, &mut epd);
    String::from_utf8(epd).expect("an EPD is ASCII")
}

/// Appends the EPD of a position to `text`: the board, the side to move, the castling rights and the en passant
/// square, without counters and operations. The en passant square is written only if a capture there is legal, so
/// positions with equal [identities](super::identity) have equal EPDs.
///
/// ```
/// use polybook::position::{from_text, write_epd};
/// let mut text = Vec::new();
/// write_epd(&from_text(None, Some("e4"))?, &mut text);
/// assert_eq!(text, b"rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq -");
/// # Ok::<(), polybook::position::LineError>(())
/// ```
pub fn write_epd<P: Position>(pos: &P, text: &mut Vec<u8>) {
    write_epd_with(pos, EnPassantMode::Legal, text);
}

/// Returns the EPD of a position, from which a position with the same Polyglot key can be parsed. If a pawn has just
/// made a double step to a square next to an enemy pawn, the EPD contains the en passant square, even if no capture
/// there is legal, because the key depends on this square.
pub(crate) fn exact_epd_of<P: Position>(pos: &P) -> String {
    let mut epd = Vec::new();
    write_epd_with(pos, EnPassantMode::PseudoLegal, &mut epd);
    String::from_utf8(epd).expect("an EPD is ASCII")
}

fn write_epd_with<P: Position>(pos: &P, mode: EnPassantMode, text: &mut Vec<u8>) {
    // Nearly all positions of a database take the path below, which is faster than the code in shakmaty.
    let is_plain = pos.castles().mode() == CastlingMode::Standard
        && pos.promoted().is_empty()
        && pos.pockets().is_none()
        && pos.remaining_checks().is_none();
    if !is_plain {
        let start = text.len();
        Epd::from_position(pos, mode).append_ascii_to(text);
        sort_holdings(&mut text[start..]);
        return;
    }
    // Reserve enough for any EPD, so that the pushes below do not reallocate.
    text.reserve(96);
    write_board(pos, text);
    text.extend_from_slice(pos.turn().fold_wb(b" w ", b" b "));
    let before = text.len();
    for color in Color::ALL {
        for (side, letter) in [
            (CastlingSide::KingSide, b'k'),
            (CastlingSide::QueenSide, b'q'),
        ] {
            if pos.castles().has(color, side) {
                text.push(color.fold_wb(letter.to_ascii_uppercase(), letter));
            }
        }
    }
    if text.len() == before {
        text.push(b'-');
    }
    text.push(b' ');
    match pos.ep_square(mode) {
        Some(square) => text.extend([square.file().char() as u8, square.rank().char() as u8]),
        None => text.push(b'-'),
    }
}

/// Sorts the pieces in hand in `epd`, an EPD, into the order that most programs use: White's pieces before Black's, and
/// the pieces of each side from queens to pawns.
fn sort_holdings(epd: &mut [u8]) {
    let bracket = |bracket| epd.iter().position(|byte| *byte == bracket);
    if let (Some(open), Some(close)) = (bracket(b'['), bracket(b']')) {
        epd[open + 1..close].sort_by_key(|piece| {
            let order = b"QRBNPqrbnp".iter().position(|known| known == piece);
            order.unwrap_or(usize::MAX)
        });
    }
}

/// Appends the board of a position to `text` in FEN: the ranks from the eighth to the first, separated by slashes.
fn write_board<P: Position>(pos: &P, text: &mut Vec<u8>) {
    let board = pos.board();
    // At most 64 signs and 7 slashes. Each rank always writes 8 bytes and a slash. The next rank overwrites the
    // unused bytes.
    let mut out = [0; 80];
    let mut length = 0;
    for rank in (0..8).rev() {
        let files = |squares: Bitboard| usize::from((squares.0 >> (8 * rank)) as u8);
        if files(board.occupied()) == 0 {
            out[length..][..2].copy_from_slice(b"8/");
            length += 2;
            continue;
        }
        let mut letters = 0u64;
        for role in Role::ALL {
            letters |=
                FILE_MASKS[files(board.by_role(role))] & (ONE_IN_EACH_BYTE * role.char() as u64);
        }
        letters ^= FILE_MASKS[files(board.white())] & (ONE_IN_EACH_BYTE * u64::from(b'a' ^ b'A'));
        let mut signs = *b"........12345678";
        signs[..8].copy_from_slice(&letters.to_le_bytes());
        let row = &RANK_SIGNS[files(board.occupied())];
        for (byte, sign) in out[length..][..8].iter_mut().zip(row.signs) {
            *byte = signs[usize::from(sign % 16)];
        }
        length += usize::from(row.length);
        out[length] = b'/';
        length += 1;
    }
    text.extend_from_slice(&out[..length - 1]);
}

/// An integer whose eight bytes are all 1. Multiplying it by a byte repeats the byte eight times.
const ONE_IN_EACH_BYTE: u64 = 0x0101_0101_0101_0101;

/// A table that converts a set of files of the board to a mask with one byte for each file: `0xff` if the file is in
/// the set, otherwise 0. The index is the set, encoded with one bit for each file.
static FILE_MASKS: [u64; 256] = {
    let mut bytes = [0; 256];
    let mut files = 0;
    while files < 256 {
        let mut file = 0;
        while file < 8 {
            if files >> file & 1 == 1 {
                bytes[files] |= 0xff << (8 * file);
            }
            file += 1;
        }
        files += 1;
    }
    bytes
};

/// A template for the text of one rank of the board in an EPD. It contains one sign (a character of the EPD) for each
/// piece, and one for each run of empty squares. In the template, the sign of a piece contains its file, but not yet
/// its kind.
#[derive(Copy, Clone)]
struct RankSigns {
    length: u8,
    /// The signs. A value below 8 is the file of a piece. A value from 8 to 15 is a run of empty squares, 7 more than
    /// its length.
    signs: [u8; 8],
}

/// A table of the templates for the text of a rank in an EPD. The index is the set of occupied files in the rank,
/// encoded with one bit for each file.
static RANK_SIGNS: [RankSigns; 256] = {
    let empty = RankSigns {
        length: 0,
        signs: [0; 8],
    };
    let mut rows = [empty; 256];
    let mut occupied = 0;
    while occupied < 256 {
        let row = &mut rows[occupied];
        let mut free = 0;
        let mut file = 0;
        while file < 8 {
            if occupied >> file & 1 == 0 {
                free += 1;
            }
            let ends = file == 7 || occupied >> (file + 1) & 1 == 1;
            if occupied >> file & 1 == 1 {
                row.signs[row.length as usize] = file as u8;
                row.length += 1;
            } else if ends {
                row.signs[row.length as usize] = 8 + free - 1;
                row.length += 1;
                free = 0;
            }
            file += 1;
        }
        occupied += 1;
    }
    rows
};

/// Converts a position to a string. [`restored`] converts the string back to an equal position. The string does not
/// contain the variant.
pub(crate) fn stored(pos: &VariantPosition) -> String {
    Fen::from_position(pos, EnPassantMode::Always).to_string()
}

/// Parses a position from a string that [`stored`] returned. The variant and the castling mode of the result are taken
/// from `rules`, which may be any position. Returns `None` if the string is malformed or the position is illegal.
pub(crate) fn restored(text: &str, rules: &VariantPosition) -> Option<VariantPosition> {
    from_setup(Setup::from(text.parse::<Fen>().ok()?), rules)
}

/// Creates a position from its setup. The variant and the castling mode of the result are taken from `rules`, which may
/// be any position.
///
/// Returns `None` if the position is illegal. Tolerates errors that other programs often make: too much material,
/// impossible checks, and castling rights although the king or rook is not on its square.
pub(super) fn from_setup(setup: Setup, rules: &VariantPosition) -> Option<VariantPosition> {
    let castling: CastlingMode = rules.castles().mode();
    VariantPosition::from_setup(rules.variant(), setup, castling)
        .or_else(PositionError::ignore_too_much_material)
        .or_else(PositionError::ignore_impossible_check)
        .or_else(PositionError::ignore_invalid_castling_rights)
        .ok()
}

// Helpers for positions that users type or paste: a FEN, or a line of an EPD file.

/// Returns `true` if a line of an EPD or FEN file contains no position, because it is blank or a comment. Comments
/// begin with `#`, `%` or `;`.
pub(crate) fn is_epd_comment(line: &[u8]) -> bool {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    matches!(line.trim_ascii_start(), [] | [b'#' | b'%' | b';', ..])
}

/// Returns the first operand of the operation `opcode` in `operations`, the operations of an EPD. Returns an empty
/// string if the operation has no operand. Returns `None` if `operations` does not contain the operation.
pub(crate) fn operand<'a>(operations: &'a str, opcode: &str) -> Option<&'a str> {
    // Quoted strings may contain semicolons and words that look like opcodes.
    let unquoted = operations.split('"').step_by(2);
    let mut named = unquoted
        .flat_map(|part| part.split(';'))
        .map(str::split_ascii_whitespace);
    named.find_map(|mut words| {
        (words.next() == Some(opcode)).then(|| words.next().unwrap_or_default())
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use shakmaty::{Chess, Position};

    use super::*;
    use crate::{
        chess::position::{Keyed, Variant, read_move},
        games::pgn::{GameReader, Token},
    };

    #[test]
    fn a_fen_leads_back_to_the_key_though_the_capture_is_pinned() {
        let line = "e4 e5 f4 exf4 e5 Qe7 Nf3 d5";
        let pos = crate::chess::position::from_text(None, Some(line)).unwrap();
        let fen = fen_of(&pos);
        assert!(fen.contains(" d6 "), "{fen}");
        let again = crate::chess::position::from_text(Some(&fen), None).unwrap();
        assert_eq!(
            crate::chess::position::key(&again),
            crate::chess::position::key(&pos)
        );
    }

    #[test]
    fn what_is_written_quickly_is_what_shakmaty_writes() {
        let games = std::fs::read("data/selfplay.pgn").unwrap();
        let mut games = GameReader::new(&games);
        for _ in 0..100 {
            assert!(games.next_game());
            let mut pos = Chess::default();
            while let Token::Move { text, .. } = games.next_token() {
                let mv = read_move(&pos, text).unwrap();
                pos.play_unchecked(mv);
                let expected = |mode| Epd::from_position(&pos, mode).to_string();
                assert_eq!(epd_of(&pos), expected(EnPassantMode::Legal));
                assert_eq!(exact_epd_of(&pos), expected(EnPassantMode::PseudoLegal));
            }
            games.skip_moves();
        }
    }

    #[test]
    fn an_epd_has_the_en_passant_square_if_a_pawn_may_capture() {
        let after = |line: &str| epd_of(&Variant::Standard.from_text(None, Some(line)).unwrap());
        assert!(after("e4 a6 e5 d5").ends_with(" w KQkq d6"));
        assert!(after("e4 a6 e5 h5").ends_with(" w KQkq -"));
        // The pawn is pinned.
        let pinned =
            Variant::Standard.from_text(Some("4k3/3p4/8/r3P2K/8/8/8/8 b - - 0 1"), Some("d5"));
        let pinned = pinned.unwrap();
        assert!(epd_of(&pinned).ends_with(" w - -"));
        assert!(exact_epd_of(&pinned).ends_with(" w - d6"));
    }

    #[test]
    fn variants_have_what_they_need() {
        let crazy = Variant::Crazyhouse.from_text(None, Some("e4 d5 exd5"));
        let text = epd_of(&crazy.unwrap());
        assert!(text.contains("[P] b KQkq"), "{text}");
        let both = Variant::Crazyhouse
            .parse_fen("4k3/8/8/8/8/8/8/4K3/pNQbPnPp b - -")
            .unwrap();
        assert_eq!(epd_of(&both), "4k3/8/8/8/8/8/8/4K3[QNPPbnpp] b - -");
        let checked = Variant::ThreeCheck.from_text(None, Some("e4 f6 Qh5"));
        assert!(epd_of(&checked.unwrap()).ends_with("2+3"));
        let inner = "4k3/8/8/8/8/8/8/2R1K1RR w CG -";
        let pos = Variant::Chess960.parse_fen(inner).unwrap();
        assert_eq!(epd_of(&pos), inner.replace("CG", "GQ"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        #[test]
        fn what_is_stored_is_restored(variant in 0..Variant::ALL.len(), choices in proptest::collection::vec(any::<u8>(), 0..80)) {
            let start = Variant::ALL[variant].start();
            let mut pos = Keyed::new(start.clone());
            for choice in choices {
                let moves = pos.position().legal_moves();
                let again = restored(&stored(pos.position()), &start).unwrap();
                prop_assert_eq!(again.legal_moves(), moves.clone());
                let keyed = Keyed::new(again.clone());
                prop_assert_eq!((keyed.key(), keyed.identity()), (pos.key(), pos.identity()));
                prop_assert_eq!(again.halfmoves(), pos.position().halfmoves());
                prop_assert_eq!(again.fullmoves(), pos.position().fullmoves());
                let Some(mv) = moves.get(usize::from(choice) % moves.len().max(1)) else {
                    break;
                };
                pos.play(*mv);
            }
        }
    }
}

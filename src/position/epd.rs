//! Positions as EPD, the text that names one in an OOBS database.

use shakmaty::{EnPassantMode, Position, fen::Epd};

/// Appends the EPD of a position to `text`: board, side to move, castling rights and en passant square,
/// without counters and operations. The en passant square is there only if a pawn of the side to move
/// stands ready to take, legally or not, just as in the [key](super::key).
///
/// ```
/// use polybook::position::{from_text, write_epd};
/// let mut text = Vec::new();
/// write_epd(&from_text(None, Some("e4"))?, &mut text);
/// assert_eq!(text, b"rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq -");
/// # Ok::<(), polybook::position::LineError>(())
/// ```
pub fn write_epd<P: Position>(pos: &P, text: &mut Vec<u8>) {
    Epd::from_position(pos, EnPassantMode::PseudoLegal).append_ascii_to(text);
}

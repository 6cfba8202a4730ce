//! Chess positions and moves as the Polyglot book format defines them: the [keys](key) of positions, and [16-bit
//! moves](BookMove). Also parses [moves as people write them](read_move).
//!
//! The rules of chess come from [`shakmaty`]. This module adds what books and databases need: a 64-bit [key] and a
//! 64-bit [identity] of each position, the text forms of positions and moves (FEN, EPD, SAN, UCI), and the supported
//! [variants](Variant).
//!
//! ```
//! use polybook::position::{Keyed, key, read_move};
//! use shakmaty::Chess;
//!
//! let mut line = Keyed::new(Chess::default());
//! assert_eq!(line.key(), 0x463b_9618_1691_fc9c);
//!
//! let e4 = read_move(line.position(), b"e4")?;
//! line.play(e4);
//! assert_eq!(line.key(), 0x823c_9b50_fd11_4196);
//! assert_eq!(line.key(), key(line.position()));
//! # Ok::<(), polybook::position::MoveError>(())
//! ```

mod epd;
mod exchange;
mod key;
mod line;
mod movement;
mod notation;
mod rules;
mod variant;

pub use self::{
    epd::{epd_of, fen_of, write_epd},
    key::{Keyed, has_inner_castling_rook, identity, key},
    line::{LineError, from_text, game_start, parse_fen},
    movement::{BookMove, Word, uci, write_uci},
    notation::{MoveError, PieceLetters, UnknownLetters, looks_like_move, read_move, read_word},
    rules::Rules,
    variant::{UnknownVariant, Variant, VariantChoice},
};
pub(crate) use self::{
    epd::{exact_epd_of, is_epd_comment, operand, restored, stored},
    exchange::{changes_material, is_quiet},
    key::{en_passant_part, standard_identities},
    line::move_words,
    movement::{line_text, looks_like_book, move_number, push_move, san},
    notation::{san_of, with_advice},
};

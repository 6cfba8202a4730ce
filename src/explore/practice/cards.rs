//! Writes the cards of a repertoire as a table for Anki and similar programs, and draws boards as text.

use std::{borrow::Cow, io::Write, path::Path};

use shakmaty::{Color, File, Move, Position, Rank, Square, variant::VariantPosition};

use super::{Deck, deck::DeckMove};
use crate::{
    chess::position::{line_text, move_number, san},
    error::{At, Result},
    text::CsvWriter,
};

/// The first lines of a table, which tell Anki the format and the names of the columns.
const HEAD: &[u8] = b"#separator:Comma\n#html:true\n#columns:Front,Back\n";

/// Writes the cards of `deck` to `out` as a CSV table with two columns in HTML, and returns the number of cards. The
/// front of a card contains the board and the line that leads to the position; the back contains the moves of the
/// repertoire with their comments. Cards with shorter lines come first. Lines at the beginning tell Anki the format and
/// the names of the columns.
///
/// `comment` returns the comment on a move in a position. `path` is the path of the output for error messages.
///
/// # Errors
///
/// Returns an error if the output cannot be written.
pub fn write_cards(
    deck: &Deck,
    comment: &dyn Fn(&VariantPosition, Move) -> Option<String>,
    mut out: impl Write,
    path: &Path,
) -> Result<u64> {
    out.write_all(HEAD).at(path, "write")?;
    let mut table = CsvWriter::new(out);
    let mut cards = 0;
    for (id, line) in deck.lines() {
        let (text, pos) = line_text(&line.start, &line.moves);
        let board = board_text(&pos, deck.color());
        let board = board.trim_end().replace('\n', "<br>");
        let moves = deck.moves(id).iter();
        let answers = moves.filter_map(|DeckMove { mv, .. }| {
            let mv = mv.to_move(&pos)?;
            let comment = comment(&pos, mv).map(|comment| format!("<br>{}", html(&comment)));
            Some(format!("{}{}", san(&pos, mv), comment.unwrap_or_default()))
        });
        let back = answers.collect::<Vec<_>>().join("<br>");
        let asked = match (pos.turn(), &*text) {
            (Color::Black, text) if !text.is_empty() => format!("{text} ?"),
            (_, text) => format!("{text} {} ?", move_number(&pos)),
        };
        table
            .write_row([format!("<pre>{board}</pre>{}", asked.trim_start()), back].map(Cow::from))
            .at(path, "write")?;
        cards += 1;
    }
    let written = table.into_inner().and_then(|mut out| out.flush());
    written.at(path, "write")?;
    Ok(cards)
}

/// Escapes the characters that have a meaning in HTML.
fn html(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Draws a board with chess symbols, one line for each rank. `below` is the side at the bottom. A last line contains
/// the letters of the files, and further lines contain the pieces in hand if the variant has them.
///
/// ```
/// use polybook::{position::Variant, practice::board_text};
/// let text = board_text(&Variant::Standard.start(), shakmaty::Color::White);
/// assert!(text.starts_with("8 ♜ ♞ ♝ ♛ ♚ ♝ ♞ ♜\n7 ♟ ♟") && text.ends_with("\n  a b c d e f g h\n"));
/// ```
pub fn board_text(pos: &VariantPosition, below: Color) -> String {
    let seen = |index: usize| if below.is_white() { index } else { 7 - index };
    let files: Vec<File> = (0..8).map(|at| File::ALL[seen(at)]).collect();
    let mut text = String::new();
    for at in 0..8 {
        let rank = Rank::ALL[7 - seen(at)];
        text.push(rank.char());
        for file in &files {
            let piece = pos.board().piece_at(Square::from_coords(*file, rank));
            text.push(' ');
            text.push(piece.map_or('·', |piece| symbol(piece.char())));
        }
        text.push('\n');
    }
    text.push(' ');
    for file in files {
        text.push(' ');
        text.push(file.char());
    }
    text.push('\n');
    for color in Color::ALL {
        let Some(hand) = pos.pockets().map(|pockets| pockets.get(color)) else {
            continue;
        };
        let roles = [hand.queen, hand.rook, hand.bishop, hand.knight, hand.pawn];
        let letters = ["Q", "R", "B", "N", "P"].iter().zip(roles);
        let held: String = letters
            .map(|(letter, number)| letter.repeat(number.into()))
            .collect();
        if !held.is_empty() {
            text += &format!("{color} in hand: {held}\n");
        }
    }
    text
}

/// Returns the chess symbol of a piece. `letter` is its letter in a FEN.
fn symbol(letter: char) -> char {
    let symbols = "KQRBNPkqrbnp".chars().zip("♔♕♖♗♘♙♚♛♜♝♞♟".chars());
    symbols
        .clone()
        .find(|(known, _)| *known == letter)
        .map_or(letter, |(_, symbol)| symbol)
}

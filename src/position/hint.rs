//! Advice about moves that cannot be played.

use super::{MoveError, PieceLetters, Rules, Variant};

/// Returns a message about a move that cannot be played in `pos`: the error, and advice if the text shows what it means.
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
        return Some(format!("legal with make-book --piece-letters {codes}"));
    }
    let crazyhouse = Variant::Crazyhouse;
    if text.contains(&b'@') && pos.rules() != crazyhouse {
        return Some(format!(
            "only crazyhouse has drops: if the game is crazyhouse without a Variant tag, read it with --variant {crazyhouse} \
             --untagged-variant {crazyhouse}"
        ));
    }
    if is_descriptive(text) {
        return Some(
            "descriptive notation: convert the game to moves such as e4 and Nf3".to_owned(),
        );
    }
    has_foreign_letters(text).then(|| {
        "letters of no language that --piece-letters has: replace those of the pieces by K, Q, R, B and N, and those of the files \
         by a to h"
            .to_owned()
    })
}

/// Returns `true` if a text is a move in English descriptive notation, such as `P-K4`, `Kt-KB3` or `QPxP`.
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

/// Returns `true` if a text has the form of a move, but with a letter that no move in ASCII has, such as `Кf3` in Cyrillic or
/// `Hf3` in Hungarian.
fn has_foreign_letters(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    let word = text.trim_end_matches(['+', '#', '!', '?']);
    let square = word.rsplit_once('=').map_or(word, |(square, _)| square);
    // Moves have no other small letters in ASCII, but words have.
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
    use shakmaty::Chess;

    use super::*;

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
            "replace those of the pieces",
        );
        assert_advice(&["@g7", "N@f3", "P@e4+"], "--untagged-variant crazyhouse");
        assert_advice(&["Sf3"], "--piece-letters de");
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

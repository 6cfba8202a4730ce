//! The bytes that words of movetext are made of: moves, blanks, and the dashes, crosses and chess
//! pieces of Unicode.

/// Whether a move may hold this byte after its first.
#[inline]
pub(super) fn is_move_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'+' | b'#' | b'=' | b'-' | b':' | b'@' | b'/' | b'_')
}

/// Whether a move may go on after its [move bytes](is_move_byte) with this one: `e8(Q)`, `exd6e.p.`,
/// `O–O`, `e×d5`.
#[inline]
pub(super) fn may_go_on(byte: u8) -> bool {
    matches!(byte, b'(' | b'.' | 0x80..)
}

/// The length of the no-break space at the start of a text: in UTF-8, or in Latin-1 where the byte
/// before is ASCII. 0 if there is none.
pub(super) fn no_break_space(text: &[u8]) -> usize {
    match text {
        [0xc2, 0xa0, ..] => 2,
        [0xa0, ..] => 1,
        _ => 0,
    }
}

/// The length of the dash at the start of a text, of any kind that keyboards and word processors know:
/// the hyphens, the figure, en and em dash and the minus of Unicode, and the dashes of Windows-1252.
pub(super) fn dash(text: &[u8]) -> usize {
    match text {
        [b'-' | 0x96 | 0x97, ..] => 1,
        [0xe2, 0x80, 0x90..=0x94, ..] | [0xe2, 0x88, 0x92, ..] => 3,
        _ => 0,
    }
}

/// The length of the multiplication sign at the start of a text, in UTF-8 or Latin-1.
pub(super) fn cross(text: &[u8]) -> usize {
    match text {
        [0xc3, 0x97, ..] => 2,
        [0xd7, next, ..] if next.is_ascii() => 1,
        _ => 0,
    }
}

/// The length of the chess piece at the start of a text, with the variation selector that some
/// programs put after it.
pub(super) fn figurine(text: &[u8]) -> usize {
    match text {
        [0xe2, 0x99, 0x94..=0x9f, 0xef, 0xb8, 0x8e | 0x8f, ..] => 6,
        [0xe2, 0x99, 0x94..=0x9f, ..] => 3,
        _ => 0,
    }
}

/// The word at the start of a text: all up to a blank, a bracket, a brace, a parenthesis or a semicolon.
pub(super) fn first_word(text: &[u8]) -> &[u8] {
    let is_end = |at: usize| {
        let byte = text[at];
        byte.is_ascii_whitespace()
            || b"{}()[];".contains(&byte)
            || (byte == 0xc2 && text.get(at + 1) == Some(&0xa0))
            || (byte == 0xa0 && (at == 0 || text[at - 1].is_ascii()))
    };
    let end = (0..text.len()).find(|at| is_end(*at));
    &text[..end.unwrap_or(text.len())]
}

/// A move without the marks that a bad or good one gets.
pub(super) fn without_marks(word: &[u8]) -> &[u8] {
    let end = word.iter().rposition(|byte| !b"!?".contains(byte));
    &word[..end.map_or(0, |last| last + 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_end_at_blanks_of_all_kinds() {
        for text in ["e4 e5", "e4\u{a0}e5", "e4;", "e4(", "e4\t", "e4"] {
            assert_eq!(first_word(text.as_bytes()), b"e4", "{text}");
        }
        assert_eq!(first_word(b"e4\xa0e5"), b"e4");
        // The last byte of a dagger is that of a no-break space in Latin-1.
        assert_eq!(first_word("e4† e5".as_bytes()), "e4†".as_bytes());
    }

    #[test]
    fn dashes_of_all_kinds() {
        for text in ["-", "‐", "‑", "‒", "–", "—", "−"] {
            assert_eq!(dash(text.as_bytes()), text.len(), "{text}");
        }
        assert_eq!(dash("†".as_bytes()), 0);
    }
}

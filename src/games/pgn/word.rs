//! Classifies the bytes in movetext: bytes that belong to moves, and the encodings of Unicode blanks, dashes,
//! crosses and chess pieces. Also recognizes markup.

use memchr::memchr3;

/// Returns `true` if `byte` can be part of a move after the first byte of the move.
#[inline]
pub(super) fn is_move_byte(byte: u8) -> bool {
    static IS_MOVE_BYTE: [bool; 256] = {
        let mut is_move_byte = [false; 256];
        let mut byte = 0;
        while byte < 256 {
            let this = byte as u8;
            is_move_byte[byte] = this.is_ascii_alphanumeric()
                || matches!(this, b'+' | b'#' | b'=' | b'-' | b':' | b'@' | b'/' | b'_');
            byte += 1;
        }
        is_move_byte
    };
    IS_MOVE_BYTE[usize::from(byte)]
}

/// Returns `true` if a move can continue with `byte` although it is not a [move byte](is_move_byte), as in `e8(Q)`,
/// `exd6e.p.`, `O–O` and `e×d5`.
#[inline]
pub(super) fn may_go_on(byte: u8) -> bool {
    matches!(byte, b'(' | b'.' | 0x80..)
}

/// Returns `true` if `byte` can be part of words that state a result, such as `White wins.` or `draw, agreed`.
pub(super) fn is_part_of_words(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || b" \t.,!'".contains(&byte)
}

/// Returns the length in bytes of the unusual blank at the start of `text`. Returns 0 if `text` does not start with
/// such a blank.
///
/// Unusual blanks are the spaces of Unicode, characters without width, and the ellipsis, which can replace the dots of
/// a move number. A no-break space or an ellipsis may also be a single byte of Windows-1252. Control characters count
/// as unusual blanks because DOS ends a file with Ctrl-Z, and some programs fill up the file with zeros. The escapes of
/// blanks and line breaks in URLs (`%20`, `%0A`) and in JSON (`\n`) count as well. `text` must not start inside a UTF-8
/// character, because a byte of this character could then be mistaken for such a blank.
pub(super) fn blank(text: &[u8]) -> usize {
    match text {
        [byte, ..] if is_control(*byte) => 1,
        [b'%', b'0', b'9' | b'A' | b'D' | b'a' | b'd', ..] | [b'%', b'2', b'0', ..] => 3,
        [b'\\', b'n' | b'r' | b't', ..] => 2,
        [0x85 | 0xa0, ..] => 1,
        // Next line, no-break space, soft hyphen.
        [0xc2, 0x85 | 0xa0 | 0xad, ..] => 2,
        // U+2000 to U+200F and U+2028 to U+202F: spaces, joiners and directions. U+2024 to U+2026: dots.
        [0xe2, 0x80, 0x80..=0x8f | 0xa4..=0xa6 | 0xa8..=0xaf, ..] => 3,
        // U+205F to U+206F.
        [0xe2, 0x81, 0x9f..=0xaf, ..] => 3,
        [0xe1, 0x9a, 0x80, ..] | [0xe1, 0xa0, 0x8e, ..] | [0xe3, 0x80, 0x80, ..] => 3,
        // The byte order mark, which also is a space without width.
        [0xef, 0xbb, 0xbf, ..] => 3,
        _ => 0,
    }
}

/// Returns `true` if `byte` is a control character other than a blank or a line break.
pub(super) const fn is_control(byte: u8) -> bool {
    matches!(byte, 0..=8 | 0x0e..=0x1f | 0x7f)
}

/// Returns the length in bytes of the dash at the start of `text`. Returns 0 if `text` does not start with a dash.
///
/// Dashes are the hyphens, the figure dash, the en dash, the em dash and the minus sign of Unicode. The dashes of
/// Windows-1252 are also accepted.
pub(super) fn dash(text: &[u8]) -> usize {
    match text {
        [b'-' | 0x96 | 0x97, ..] => 1,
        [0xe2, 0x80, 0x90..=0x94, ..] | [0xe2, 0x88, 0x92, ..] => 3,
        _ => 0,
    }
}

/// Returns the length in bytes of the multiplication sign at the start of `text`, or 0 if `text` does not start
/// with one. The sign may be encoded in UTF-8 or Latin-1.
pub(super) fn cross(text: &[u8]) -> usize {
    match text {
        [0xc3, 0x97, ..] => 2,
        [0xd7, next, ..] if next.is_ascii() => 1,
        _ => 0,
    }
}

/// Returns the length in bytes of the figurine at the start of `text`. A figurine is a Unicode chess piece, which a
/// variation selector may follow. Returns 0 if `text` does not start with a figurine.
pub(super) fn figurine(text: &[u8]) -> usize {
    match text {
        [0xe2, 0x99, 0x94..=0x9f, 0xef, 0xb8, 0x8e | 0x8f, ..] => 6,
        [0xe2, 0x99, 0x94..=0x9f, ..] => 3,
        _ => 0,
    }
}

/// The names of HTML and BBCode elements that often get into PGN files when people copy games.
const ELEMENTS: [&[u8]; 42] = [
    b"a",
    b"b",
    b"big",
    b"blockquote",
    b"body",
    b"br",
    b"center",
    b"code",
    b"color",
    b"div",
    b"em",
    b"font",
    b"game",
    b"hide",
    b"hr",
    b"html",
    b"i",
    b"img",
    b"left",
    b"li",
    b"list",
    b"ol",
    b"p",
    b"pgn",
    b"pre",
    b"quote",
    b"right",
    b"s",
    b"size",
    b"small",
    b"span",
    b"spoiler",
    b"strong",
    b"sub",
    b"sup",
    b"table",
    b"td",
    b"tr",
    b"tt",
    b"u",
    b"ul",
    b"url",
];

/// Returns the length in bytes of the markup at the start of `text`: an element of HTML or BBCode such as `<br />` and
/// `[/pgn]`, or a character reference such as `&nbsp;`. Returns 0 if `text` does not start with markup.
pub(super) fn markup(text: &[u8]) -> usize {
    let Some((&first, rest)) = text.split_first() else {
        return 0;
    };
    let close = match first {
        b'<' => b'>',
        b'[' => b']',
        b'&' => {
            let name = rest
                .iter()
                .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'#');
            let name = &rest[..name.count()];
            let is_name = name.starts_with(b"#") || name.iter().all(u8::is_ascii_alphabetic);
            let is_reference =
                (2..=8).contains(&name.len()) && is_name && rest.get(name.len()) == Some(&b';');
            return if is_reference { name.len() + 2 } else { 0 };
        }
        _ => return 0,
    };
    let after = rest.strip_prefix(b"/").unwrap_or(rest);
    let name = after
        .iter()
        .take_while(|byte| byte.is_ascii_alphabetic())
        .count();
    let is_end = match after.get(name) {
        Some(b' ' | b'/' | b'>') => first == b'<',
        Some(b'=' | b']') => first == b'[',
        _ => false,
    };
    let is_element = |element: &&[u8]| element.eq_ignore_ascii_case(&after[..name]);
    if name == 0 || !is_end || !ELEMENTS.iter().any(is_element) {
        return 0;
    }
    match memchr3(close, b'\n', b'\r', after) {
        // `[i="x"]` is a tag pair.
        Some(end) if first == b'[' && after[..end].contains(&b'"') => 0,
        Some(end) if after[end] == close => text.len() - after.len() + end + 1,
        _ => 0,
    }
}

/// Returns the first word of `text`. A word ends before a blank, an asterisk, a bracket, a brace, a parenthesis, a
/// semicolon, a vertical bar or markup. An asterisk outside of comments never belongs to a word, because it is a
/// termination marker.
pub(super) fn first_word(text: &[u8]) -> &[u8] {
    /// A table that says for each byte whether a word may end before it.
    static MAY_END: [bool; 256] = {
        let mut may_end = [false; 256];
        let mut byte = 0;
        while byte < 256 {
            let this = byte as u8;
            may_end[byte] = this.is_ascii_whitespace()
                || is_control(this)
                || this >= 0x80
                || matches!(
                    this,
                    b'{' | b'}'
                        | b'('
                        | b')'
                        | b'['
                        | b']'
                        | b';'
                        | b'*'
                        | b'|'
                        | b'<'
                        | b'&'
                        | b'%'
                        | b'\\'
                );
            byte += 1;
        }
        may_end
    };
    let is_end = |at: usize| match text[at] {
        byte if !MAY_END[usize::from(byte)] => false,
        b'<' | b'&' => markup(&text[at..]) > 0,
        b'%' | b'\\' => blank(&text[at..]) > 0,
        0x80.. => match blank(&text[at..]) {
            0 => false,
            1 => at == 0 || text[at - 1].is_ascii(),
            _ => true,
        },
        _ => true,
    };
    let end = (0..text.len()).find(|at| is_end(*at));
    &text[..end.unwrap_or(text.len())]
}

/// Returns the length in bytes of the null move `--` at the start of a word. Any kind of dashes is accepted. Returns
/// `None` if anything but marks such as `!` follows, or if the word does not begin with a null move.
pub(super) fn null_move(word: &[u8]) -> Option<usize> {
    let first = dash(word);
    let second = dash(&word[first..]);
    let marks = &word[first + second..];
    let is_null_move = first > 0 && second > 0 && marks.iter().all(|byte| b"!?,".contains(byte));
    is_null_move.then_some(first + second)
}

/// Returns `true` if `word` is a null move that is not written with dashes: `Z0`, `@@@@` or `null`.
pub(super) fn is_null_move(word: &[u8]) -> bool {
    matches!(word, b"Z0" | b"@@@@") || word.eq_ignore_ascii_case(b"null")
}

/// Returns `word` without the marks `!` and `?` at its end.
pub(super) fn without_marks(word: &[u8]) -> &[u8] {
    let end = word.iter().rposition(|byte| !b"!?".contains(byte));
    &word[..end.map_or(0, |last| last + 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_end_at_blanks_of_all_kinds() {
        for text in [
            "e4 e5",
            "e4\u{a0}e5",
            "e4;",
            "e4(",
            "e4\t",
            "e4",
            "e4\u{200b}e5",
            "e4\u{2009}e5",
            "e4\u{3000}",
            "e4\u{feff}e5",
            "e4\u{2026}e5",
            "e4\u{2060}",
            "e4\u{202f}e5",
            "e4%0D%0A2.",
            "e4%20e5",
            "e4\\ne5",
        ] {
            assert_eq!(first_word(text.as_bytes()), b"e4", "{text}");
        }
        assert_eq!(first_word(b"e4\xa0e5"), b"e4");
        assert_eq!(first_word(b"e4\x85e5"), b"e4");
        // The last byte of the dagger in UTF-8 is a no-break space in Latin-1.
        assert_eq!(first_word("e4† e5".as_bytes()), "e4†".as_bytes());
    }

    #[test]
    fn dash_recognizes_dashes_of_all_kinds() {
        for text in ["-", "‐", "‑", "‒", "–", "—", "−"] {
            assert_eq!(dash(text.as_bytes()), text.len(), "{text}");
        }
        assert_eq!(dash("†".as_bytes()), 0);
    }
}

//! The many spellings of a move, brought to one: `Qd3+/-`, `exd6 e.p.`, `O–O`, `N(f)d7`, `hxg8=(Q)`,
//! `♘f3`.

/// The longest spelling that is read, in characters.
const LONGEST: usize = 16;

/// A move in letters, digits and few signs, with nothing after it.
#[derive(Copy, Clone, Debug)]
pub(super) struct Spelling {
    bytes: [u8; LONGEST],
    length: usize,
    /// Whether the move is said to take en passant.
    pub en_passant: bool,
}

impl Spelling {
    /// Tidies a move up. `None` if it has characters that no move has.
    pub(super) fn new(text: &[u8]) -> Option<Spelling> {
        let mut spelling = Spelling {
            bytes: [0; LONGEST],
            length: 0,
            en_passant: false,
        };
        let mut rest = text;
        while !rest.is_empty() {
            let (byte, length) = plain(rest)?;
            rest = &rest[length..];
            if byte != IGNORED {
                *spelling.bytes.get_mut(spelling.length)? = byte;
                spelling.length += 1;
            }
        }
        spelling.cut_marks();
        spelling.open_parentheses();
        Some(spelling)
    }

    pub(super) fn text(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Removes what annotators write after a move.
    fn cut_marks(&mut self) {
        loop {
            let text = self.text();
            let marks = match *text {
                [.., b'e', b'.', b'p', b'.'] => 4,
                [.., b'e', b'.', b'p'] => 3,
                [.., b'1'..=b'8', b'e', b'p'] | [.., b'c', b'h'] => 2,
                [.., b'+' | b'#' | b'=' | b'/' | b':' | b'!' | b'?'] => 1,
                // `O-O-` is half of another move.
                [.., before, b'-'] if !matches!(before, b'O' | b'o' | b'0') => 1,
                _ => return,
            };
            self.en_passant |= matches!(text, [.., b'p' | b'.']);
            self.length -= marks;
        }
    }

    /// Writes `N(f)d7` as `Nfd7`, and `e8(Q)`, `e8=(Q)` and `e8/Q` as `e8=Q`.
    fn open_parentheses(&mut self) {
        if let [_, b'(', hint, b')', ..] = *self.text() {
            self.bytes[1] = hint;
            self.bytes.copy_within(4.., 2);
            self.length -= 2;
        }
        let (square, letter) = match *self.text() {
            [ref square @ .., b'(', letter, b')'] | [ref square @ .., b'/', letter] => {
                (square, letter)
            }
            _ => return,
        };
        let square = square.strip_suffix(b"=").unwrap_or(square).len();
        self.bytes[square..square + 2].copy_from_slice(&[b'=', letter]);
        self.length = square + 2;
    }
}

/// The class of characters that mean nothing.
const IGNORED: u8 = 0;

/// The first character of a text as a move of the PGN standard has it, and its length.
fn plain(text: &[u8]) -> Option<(u8, usize)> {
    Some(match *text {
        [0, ..] => return None,
        [byte, ..] if byte.is_ascii() => (byte, 1),
        // ♔ to ♙, and ♚ to ♟
        [0xe2, 0x99, piece @ 0x94..=0x9f, ..] => (b"KQRBNP"[usize::from(piece - 0x94) % 6], 3),
        [0xef, 0xb8, 0x8e | 0x8f, ..] => (IGNORED, 3),
        // ‐ ‑ ‒ – — −, and the dashes of Windows-1252
        [0xe2, 0x80, 0x90..=0x94, ..] | [0xe2, 0x88, 0x92, ..] => (b'-', 3),
        [0x96 | 0x97, ..] => (b'-', 1),
        // × in UTF-8 and in Latin-1
        [0xc3, 0x97, ..] => (b'x', 2),
        [0xd7, ..] => (b'x', 1),
        // † and ‡
        [0xe2, 0x80, 0xa0 | 0xa1, ..] => (b'+', 3),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_and_signs() {
        for (text, tidy) in [
            ("Qd3=", "Qd3"),
            ("Qd3+-", "Qd3"),
            ("Qd3+/-", "Qd3"),
            ("Qd3-+", "Qd3"),
            ("Qd3ch", "Qd3"),
            ("Qd3†", "Qd3"),
            ("exd5:", "exd5"),
            ("O–O–O", "O-O-O"),
            ("O-O+", "O-O"),
            ("O-O-", "O-O-"),
            ("e×d5", "exd5"),
            ("N(f)d7", "Nfd7"),
            ("♞f6", "Nf6"),
            ("♘\u{fe0e}f3", "Nf3"),
            ("hxg8/Q", "hxg8=Q"),
            ("hxg8(Q)+", "hxg8=Q"),
            ("hxg8=(Q)", "hxg8=Q"),
            ("--", "-"),
        ] {
            let spelling = Spelling::new(text.as_bytes()).expect(text);
            assert_eq!(String::from_utf8_lossy(spelling.text()), tidy, "{text}");
        }
        for text in ["exd6ep", "exd6e.p.", "exd6e.p", "exd6e.p.+"] {
            let spelling = Spelling::new(text.as_bytes()).expect(text);
            assert_eq!(spelling.text(), b"exd6");
            assert!(spelling.en_passant);
        }
        assert!(Spelling::new("é4".as_bytes()).is_none());
        assert!(Spelling::new(&[b'e'; LONGEST + 1]).is_none());
    }
}

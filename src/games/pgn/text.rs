//! The text that a PGN reader reads, with methods that keep reading in linear time.
//!
//! Reading takes linear time if each byte is examined a bounded number of times. [`Text`] therefore gives no direct
//! access to its bytes. A reader can do two things:
//!
//! - It can look at the [`WINDOW`] bytes [around an offset](Text::window), any number of times.
//! - It can [pass](Text::passed) any number of bytes, but each byte only once. The functions that search for a byte
//!   also pass the bytes before it.

use memchr::{memchr, memchr2, memchr3};

/// The maximum number of bytes that a reader can look ahead or back. No termination marker, move, tag name or move
/// number is longer.
pub(super) const WINDOW: usize = 256;

/// The text of a [`GameReader`](super::GameReader).
#[derive(Copy, Clone, Debug)]
pub(super) struct Text<'a> {
    bytes: &'a [u8],
}

impl<'a> Text<'a> {
    pub fn new(bytes: &'a [u8]) -> Text<'a> {
        Text { bytes }
    }

    #[inline(always)]
    pub fn len(self) -> usize {
        self.bytes.len()
    }

    /// Returns the byte at the offset `at`, or `None` at the end of the text.
    #[inline(always)]
    pub fn get(self, at: usize) -> Option<&'a u8> {
        examine(1);
        self.bytes.get(at)
    }

    /// Returns the first eight bytes at the offset `at`, or `None` if there are fewer.
    #[inline(always)]
    pub fn first_chunk(self, at: usize) -> Option<&'a [u8; 8]> {
        examine(8);
        self.bytes.get(at..)?.first_chunk()
    }

    /// Returns the bytes from `start` to `end`. If there are more than [`WINDOW`] bytes, returns only those nearest to
    /// `at`, which must be either `start` or `end`. Offsets after the end of the text are replaced with its length.
    fn window(self, start: usize, end: usize, at: usize) -> &'a [u8] {
        let end = end.min(self.len());
        let start = start.min(end);
        let bytes = match &self.bytes[start..end] {
            bytes if bytes.len() <= WINDOW => bytes,
            bytes if at == start => &bytes[..WINDOW],
            bytes => &bytes[bytes.len() - WINDOW..],
        };
        // Most functions decide by the first bytes of a window.
        examine(bytes.len() / 8);
        bytes
    }

    /// Returns at most [`WINDOW`] bytes after the offset `at`.
    pub fn ahead(self, at: usize) -> &'a [u8] {
        self.window(at, self.len(), at)
    }

    /// Returns at most [`WINDOW`] bytes before the offset `at`, but no byte before the offset `first`.
    pub fn behind(self, first: usize, at: usize) -> &'a [u8] {
        self.window(first, at, at)
    }

    /// Returns the bytes from `start` to `end`. The reader must not pass these bytes a second time.
    #[inline(always)]
    pub fn passed(self, start: usize, end: usize) -> &'a [u8] {
        examine(end - start);
        &self.bytes[start..end]
    }

    /// Returns the text from `start` to `end`, such as a line, without examining it.
    pub fn part(self, start: usize, end: usize) -> Text<'a> {
        Text::new(&self.bytes[start..end])
    }

    /// Returns the length of the text without the ASCII blanks at its end.
    pub fn trimmed_len(self) -> usize {
        let trimmed = self.bytes.trim_ascii_end().len();
        examine(self.len() - trimmed + 1);
        trimmed
    }

    /// Returns the offset of the first `needle` at or after the offset `from`.
    pub fn find(self, needle: u8, from: usize) -> Option<usize> {
        self.found(memchr(needle, &self.bytes[from..]), from)
    }

    /// Returns the offset of the first byte at or after the offset `from` that equals one of two needles.
    #[inline]
    pub fn find2(self, needles: [u8; 2], from: usize) -> Option<usize> {
        self.found(memchr2(needles[0], needles[1], &self.bytes[from..]), from)
    }

    /// Returns the offset of the first byte at or after the offset `from` that equals one of three needles.
    #[inline]
    pub fn find3(self, needles: [u8; 3], from: usize) -> Option<usize> {
        let [a, b, c] = needles;
        self.found(memchr3(a, b, c, &self.bytes[from..]), from)
    }

    #[inline(always)]
    fn found(self, distance: Option<usize>, from: usize) -> Option<usize> {
        examine(distance.map_or(self.len() - from, |distance| distance + 1));
        distance.map(|distance| from + distance)
    }

    /// Returns the offset of the first line break at or after `at`, or the length of the text if there is none.
    #[inline]
    pub fn line_end(self, at: usize) -> usize {
        self.find2(*b"\n\r", at).unwrap_or(self.len())
    }

    /// Returns the offset of the first line break at or after `at`, or `None` if it is not before the offset `limit`.
    pub fn line_end_before(self, at: usize, limit: usize) -> Option<usize> {
        let end = self.len().min(limit);
        let found = memchr2(b'\n', b'\r', &self.bytes[at.min(end)..end]);
        examine(found.map_or(end - at.min(end), |distance| distance + 1));
        found.map(|distance| at + distance)
    }

    /// Returns the offset of the line after the line break at the offset `end`.
    pub fn next_line(self, end: usize) -> usize {
        match (self.get(end), self.get(end + 1)) {
            (Some(b'\r'), Some(b'\n')) => end + 2,
            (Some(_), _) => end + 1,
            (None, _) => end,
        }
    }
}

#[cfg(not(test))]
#[inline(always)]
fn examine(_: usize) {}

#[cfg(test)]
fn examine(bytes: usize) {
    tests::EXAMINED.with(|examined| examined.set(examined.get() + bytes as u64));
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;

    use crate::games::pgn::{GameReader, Token};

    thread_local! {
        /// The number of bytes that were examined on this thread.
        pub(super) static EXAMINED: Cell<u64> = const { Cell::new(0) };
    }

    /// All tokens of PGN, and of what people and programs write instead.
    const TOKENS: &[&str] = &include!("tokens.rs");

    /// Bytes that are quotation marks or letters in Windows-1252.
    const BYTES: [&[u8]; 3] = [b"\x94", b"\xfc", b"\x85"];

    /// The lengths in bytes of the texts that are read. The longer ones show quadratic time. The shorter ones have about
    /// the length of the limits of the reader, below which it may examine all bytes again and again.
    const LENGTHS: [usize; 2] = [8_000, 100_000];

    /// The maximum number of bytes that the reader examines for each byte of a text that it reads twice.
    const MAX_PER_BYTE: u64 = 400;

    fn tokens() -> Vec<&'static [u8]> {
        let tokens = TOKENS.iter().map(|token| token.as_bytes());
        tokens.chain(BYTES).collect()
    }

    /// Reads the games of a text with and without variations. Returns the number of bytes that were examined.
    fn examined(text: &[u8]) -> u64 {
        EXAMINED.set(0);
        for with_variations in [false, true] {
            let mut reader = GameReader::new(text).with_variations(with_variations);
            while reader.next_game() {
                while !matches!(reader.next_token(), Token::End(_)) {}
            }
        }
        EXAMINED.get()
    }

    /// Checks that a text is read in linear time: `start`, and then many repetitions of each of `parts`.
    #[track_caller]
    fn check(start: &[u8], parts: [&[u8]; 2]) {
        for length in LENGTHS {
            let count = length.div_ceil(parts[0].len() + parts[1].len());
            let text = [start, &parts[0].repeat(count), &parts[1].repeat(count)].concat();
            let per_byte = examined(&text) / text.len() as u64;
            assert!(
                per_byte < MAX_PER_BYTE,
                "{} {} {}, {length} bytes: {per_byte} for each byte",
                start.escape_ascii(),
                parts[0].escape_ascii(),
                parts[1].escape_ascii()
            );
        }
    }

    #[test]
    fn texts_that_once_took_quadratic_time_are_read_in_linear_time() {
        for part in [
            "0.",
            "1-.",
            "\n",
            ".\n",
            "[][A \"\"]",
            "2-0!",
            "\u{2206}e4{}",
            "( ",
            "[A \"x\\\"]y",
            "\n[A \"x\"]{",
        ] {
            for start in ["", "1. e4 ", "1. e4 ("] {
                check(start.as_bytes(), [part.as_bytes(), b""]);
            }
        }
        // Escaped quotes in a value of several lines, and quotation marks after a value.
        check(b"[White \"x\n", [b"\\\"]", b" "]);
        check(b"[White \"x\n", [b"\\\"]", b"x"]);
        check(b"[FEN ", [b"a", b"\x94"]);
        check(b"[FEN ", [b"\xc3\xbc", b"\x94"]);
        check(b"[Board 3]\n[FEN ", [b"a", b"' "]);
        check(b"[White 'x", [b"\x94]", b"\""]);
        // A long line after brackets in a variation.
        check(b"1. e4 (", [b"\n[x", b"$1\0"]);
    }

    /// Checks that the games of a text begin at ascending offsets. Otherwise, the reader would never reach the end.
    #[track_caller]
    fn check_progress(text: &[u8]) {
        let mut last = None;
        let mut reader = GameReader::new(text);
        while reader.next_game() {
            let offset = Some(reader.game_offset());
            assert!(last < offset, "{}", text.escape_ascii());
            last = offset;
            reader.skip_moves();
        }
    }

    #[test]
    fn a_game_ends_after_its_beginning() {
        for text in [
            "[1] e4\n[A \"x\"]",
            "[1] e4 e5\n[Event \"x\"]\n\n1. d4 *",
            "[2.]Nf3\n[x\n[A \"x\"]\n",
            "1. e4 1-0\n\n[12] e4]\n[1]\n[A 'x'](12",
            "[1] -- e4\n[A \u{201c}x\u{201d}]",
        ] {
            check_progress(text.as_bytes());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn games_of_any_text_begin_at_ascending_offsets(
            parts in proptest::collection::vec(proptest::sample::select(tokens()), 0..40),
        ) {
            check_progress(&parts.concat());
        }

        /// The time to read repetitions of any tokens grows like their number.
        #[test]
        fn all_texts_are_read_in_linear_time(
            start in proptest::sample::select(&[
                "", "1. e4 ", "[A \"\"]\n", "1. e4 (", "{", "1. e4 {x", "[A \"x\n", "[A 'x", "[FEN ", "[A \"\"]\n[FEN ",
            ][..]),
            parts in proptest::collection::vec(proptest::sample::select(tokens()), 1..=4),
            end in proptest::collection::vec(proptest::sample::select(tokens()), 0..=2),
        ) {
            check(start.as_bytes(), [&parts.concat(), &end.concat()]);
        }
    }

    /// The modules of the reader look at its text only by the functions of [`Text`](super::Text).
    #[test]
    fn no_reader_examines_its_text_in_another_way() {
        let sources = [
            include_str!("game.rs"),
            include_str!("movetext.rs"),
            include_str!("visit.rs"),
        ];
        for source in sources {
            let code = source.split("#[cfg(test)]\nmod tests").next().unwrap();
            for (at, _) in code.match_indices("self.text") {
                let after = code[at + "self.text".len()..].trim_start();
                let uses = [
                    ".get(",
                    ".first_chunk(",
                    ".ahead(",
                    ".behind(",
                    ".passed(",
                    ".part(",
                    ".find(",
                    ".line_end(",
                    ".len()",
                    ",",
                    ")",
                ];
                assert!(
                    uses.iter().any(|used| after.starts_with(used)),
                    "self.text{:.40}",
                    after
                );
            }
        }
        let windows = include_str!("text.rs")
            .matches(concat!("self.bytes", "["))
            .count();
        assert_eq!(
            windows, 7,
            "the window, passed bytes, lines, and four searches"
        );
    }
}

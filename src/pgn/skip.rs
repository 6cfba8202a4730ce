//! Skips variations, and the moves of games that are not needed.

use memchr::memrchr2;

use super::{
    game::GameReader,
    movetext::{Flaw, GameEnd, MAX_MARKER_LENGTH, Token},
    result::GameResult,
    tags::{ends_game, is_tag_start},
    word::is_part_of_words,
};

impl<'a> GameReader<'a> {
    /// Skips the rest of the current game without reading its moves. Returns how the game ended, like
    /// [`next_token`](GameReader::next_token) at the end of a game.
    pub fn skip_moves(&mut self) -> GameEnd {
        self.without_variations(GameReader::skip_main_line)
    }

    /// Counts the half-moves of the main line from the current offset to the end of the game or to the first null move.
    /// Then skips the rest of the game. Returns the number of half-moves and how the game ended.
    pub fn count_moves(&mut self) -> (usize, GameEnd) {
        self.without_variations(|reader| {
            let mut plies = 0;
            loop {
                match reader.next_token() {
                    Token::End(end) => return (plies, end),
                    Token::NullMove { .. } => return (plies, reader.skip_main_line()),
                    _ => plies += 1,
                }
            }
        })
    }

    /// Reads the rest of the main line of the current game. Calls `f` with the text of each move, or with an empty
    /// slice for a null move. Returns how the game ended.
    pub fn rest_of_moves(&mut self, mut f: impl FnMut(&[u8])) -> GameEnd {
        self.without_variations(|reader| {
            loop {
                match reader.next_token() {
                    Token::End(end) => return end,
                    Token::Move { text, .. } | Token::Unreadable { text, .. } => f(text),
                    _ => f(b""),
                }
            }
        })
    }

    /// Calls `read` with this reader, and returns the result of `read`. During the call, the reader skips variations.
    /// If the current offset is inside a variation, first skips to the end of the outermost variation around it.
    fn without_variations<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        if self.depth > 0 {
            self.depth = 0;
            self.at = self.variation_end;
        }
        let wanted = std::mem::replace(&mut self.with_variations, false);
        let read = read(self);
        self.with_variations = wanted;
        read
    }

    /// Skips the rest of the main line, and returns how the game ended. The reader must not be inside a variation.
    fn skip_main_line(&mut self) -> GameEnd {
        // The last offset at which a token certainly begins.
        let mut token = self.at;
        loop {
            // Only these bytes can end a game, or begin a text that only looks like the end of a game.
            while let Some(&byte) = self.text.get(self.at) {
                if ENDS_OR_HIDES[usize::from(byte)] {
                    break;
                }
                self.at += 1;
            }
            match self.text.get(self.at) {
                None => return self.end_after_words(token),
                Some(&byte) if !b"{(;%*[".contains(&byte) || self.may_belong_to_move() => {
                    let stop = self.at;
                    self.at = self.word_start(token);
                    if is_part_of_words(self.text[self.at]) {
                        self.at = self.start_of_words(token, self.at);
                    }
                    while self.at <= stop {
                        if let Token::End(end) = self.next_token() {
                            return end;
                        }
                    }
                    token = self.at;
                }
                Some(_) => {
                    let before = self.at;
                    match self.skip_one() {
                        Some(GameEnd::Complete(None)) => return self.end_after_words(token),
                        Some(end) => return end,
                        None => {}
                    }
                    if self.at > before {
                        // The comment or variation before this offset may contain anything.
                        token = self.at;
                    } else {
                        self.at += 1;
                    }
                }
            }
        }
    }

    /// Returns `true` if the parenthesis at the current offset may belong to a move, as in `e8(Q)` and `N(b)d2`. Such
    /// a parenthesis contains a single letter or digit.
    fn may_belong_to_move(&self) -> bool {
        matches!(self.text[self.at..], [b'(', letter, b')', ..] if letter.is_ascii_alphanumeric())
    }

    /// Ends a game that has no termination marker and whose text ends at the current offset. Returns how the game
    /// ended. The last words of the game may state its result, as in `White wins`, so the function goes back and reads
    /// them again. `token` is the offset of an earlier token, and the smallest offset to which the function goes back.
    #[cold]
    fn end_after_words(&mut self, token: usize) -> GameEnd {
        let token = token.min(self.at);
        let text = self.text[token..self.at].trim_ascii_end();
        if !text.last().copied().is_some_and(is_part_of_words) {
            return GameEnd::Complete(None);
        }
        self.at = self.start_of_words(token, token + text.len());
        loop {
            if let Token::End(end) = self.next_token() {
                return end;
            }
        }
    }

    /// Returns the offset at which the last words before `end` begin, for
    /// [`end_after_words`](GameReader::end_after_words). These words may state a result together, as in `White wins`. A
    /// token begins at the returned offset. `token` is the offset of an earlier token, and the smallest offset that can
    /// be returned.
    fn start_of_words(&self, token: usize, end: usize) -> usize {
        let text = &self.text[token..end];
        let last = text.iter().rev().take(MAX_MARKER_LENGTH);
        let words = last.take_while(|byte| is_part_of_words(**byte));
        let start = text.len() - words.count();
        // A token certainly begins after a blank.
        let blank = text[..start].iter().rposition(u8::is_ascii_whitespace);
        token + blank.map_or(0, |blank| blank + 1)
    }

    /// Skips a comment, a variation or the termination marker `*` at the current offset. Does nothing if anything else
    /// is there. Returns how the game ended if it ends at this offset, otherwise `None`.
    fn skip_one(&mut self) -> Option<GameEnd> {
        match self.pass_comment() {
            Ok(true) => return None,
            Ok(false) => {}
            Err(next) => return Some(self.comment_not_closed(next)),
        }
        match self.text[self.at] {
            b'(' => return self.skip_variation().err(),
            b'*' => {
                self.at += 1;
                return Some(GameEnd::Complete(Some(GameResult::Unknown)));
            }
            b'[' if self.tags_begin_here() => return Some(GameEnd::Complete(None)),
            _ => {}
        }
        None
    }

    /// Returns the offset at which the word around the current offset begins. If the part of the word before the
    /// current offset contains no letter or digit, returns the start of an earlier word instead. The reason is that
    /// several words may form one termination marker, such as `1 - 0`. `first` is the smallest offset that can be
    /// returned.
    fn word_start(&self, first: usize) -> usize {
        let is_end = |byte: &u8| byte.is_ascii_whitespace() || b"{}()[];*".contains(byte);
        let mut start = self.at;
        loop {
            let before = &self.text[first.min(start)..start];
            let word = before.iter().rev().take_while(|byte| !is_end(byte)).count();
            let blanks = &before[..before.len() - word];
            if blanks.is_empty() || before[blanks.len()..].iter().any(u8::is_ascii_alphanumeric) {
                return start - word;
            }
            let blanks = blanks.iter().rev().take_while(|byte| is_end(byte));
            start -= word + blanks.count();
        }
    }

    /// Reads the parenthesis at the current offset, which opens a variation. If variations are wanted, enters the
    /// variation and returns its token. Otherwise skips the variation and returns `None`.
    pub(super) fn enter_variation(&mut self) -> Option<Token<'a>> {
        let open = self.at;
        if self.depth == 0 {
            if let Err(end) = self.skip_variation() {
                return Some(Token::End(end));
            }
            if !self.with_variations {
                return None;
            }
            // The variation is certainly closed, so damage inside it cannot affect the rest of the game.
            self.variation_end = self.at;
        }
        self.depth += 1;
        self.at = open + 1;
        Some(Token::BeginVariation)
    }

    /// Skips the variation that the reader has just entered. Must be called directly after the reader returned
    /// [`Token::BeginVariation`].
    pub(super) fn leave_variation(&mut self) {
        self.depth -= 1;
        if self.depth == 0 {
            self.at = self.variation_end;
        } else {
            self.at -= 1;
            // The variation is closed, because the variation around it is closed.
            let _ = self.skip_variation();
        }
    }

    /// Skips the variation at the current offset, including all variations inside it.
    ///
    /// # Errors
    ///
    /// If the variation is not closed, the game ends inside it. In this case, returns how the game ended as an error.
    fn skip_variation(&mut self) -> Result<(), GameEnd> {
        let open = self.at;
        let unclosed = |at| {
            GameEnd::Broken(Flaw {
                reason: "variation is not closed",
                offset: at,
            })
        };
        let mut depth = 0usize;
        while let Some(&byte) = self.text.get(self.at) {
            match byte {
                b'(' => depth += 1,
                b')' => {
                    depth -= 1;
                    if depth == 0 {
                        self.at += 1;
                        return Ok(());
                    }
                }
                b'{' | b';' | b'%' => match self.pass_comment() {
                    Ok(true) => continue,
                    Ok(false) => {}
                    Err(next) => return Err(self.comment_not_closed(next)),
                },
                b'[' if is_tag_start(self.text, self.at) => return Err(unclosed(open)),
                b'\n' | b'\r' if self.is_end_of_game_line() => return Err(unclosed(open)),
                _ => {}
            }
            self.at += 1;
        }
        Err(unclosed(open))
    }

    /// Returns `true` if the line that ends at the current offset looks like the last line of a game: it ends with a
    /// termination marker, and a blank line follows. If such a line is found inside a variation, the closing
    /// parenthesis of the variation is missing.
    fn is_end_of_game_line(&self) -> bool {
        let rest = &self.text[self.at..];
        let rest = rest.strip_prefix(b"\r").unwrap_or(rest);
        let rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        let next_is_blank = matches!(rest.first(), None | Some(b'\n' | b'\r'));
        let before = &self.text[..self.at];
        let line = memrchr2(b'\n', b'\r', before).map_or(0, |end| end + 1);
        next_is_blank && ends_game(&before[line..])
    }

    /// Ends the current game because the comment at the current offset is not closed. Advances the reader to `next`,
    /// the offset of the next game. Returns a [`GameEnd`] that reports the unclosed comment.
    pub(super) fn comment_not_closed(&mut self, next: usize) -> GameEnd {
        let offset = self.at;
        self.at = next;
        GameEnd::Broken(Flaw {
            reason: "comment is not closed",
            offset,
        })
    }
}

/// A table that is indexed by a byte. It contains `true` for each byte at which the reader must stop when it skips
/// moves, because the byte may end a game, or begin a comment or variation. Comments and variations must be skipped as
/// a whole, because their text may look like the end of a game.
const ENDS_OR_HIDES: [bool; 256] = {
    let mut table = [false; 256];
    let bytes = b"{(;%*[-/:\xef\xe2\xc2\xbd\x96\x97";
    let mut i = 0;
    while i < bytes.len() {
        table[bytes[i] as usize] = true;
        i += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the end of each game in a text, and the offset after the game.
    fn ends(
        text: &[u8],
        read: impl Fn(&mut GameReader<'_>) -> GameEnd,
    ) -> Vec<(usize, GameEnd, usize)> {
        let mut reader = GameReader::new(text);
        let mut ends = Vec::new();
        while reader.next_game() {
            let game = reader.game_offset();
            let end = read(&mut reader);
            ends.push((game, end, reader.offset()));
        }
        ends
    }

    #[track_caller]
    fn check(text: &[u8]) {
        let read = ends(text, |reader| reader.rest_of_moves(|_| {}));
        let skipped = ends(text, |reader| reader.skip_moves());
        assert_eq!(skipped, read, "{}", String::from_utf8_lossy(text));
    }

    #[test]
    fn skipped_games_end_where_read_games_end() {
        for text in [
            "1. e4 e5 ,* 1. d4 *",
            "1. e4 e5 =* 1. d4 *",
            "1. e4 e5 +-* 1. d4 *",
            "1. e4 d5 exd5 e.p.0,5:0,5 1. d4 *",
            "1. e4 e.p.1-0 1. d4 *",
            "1. e4 x.1-0 1. d4 *",
            "1. e4 .1-0 1. d4 *",
            "1. e4 1 - 0 1. d4 0 : 1",
            "1. e4 ; 1\n- 0 1. d4 *",
            "1. e4 {1} - 0 1. d4 *",
            "1. e4 (1) : 0 1. d4 *",
            "1. e4 12.0-1 1. d4 *",
            "1. e4 White wins\n\n[A \"\"]\n1. d4 remis",
            "1. e4 e5 2.draw",
            "1. e4 White wins1/2e.p.",
            "1. e4 White wins.1-0 1. d4 *",
            "1. e4 White wins1-0 1. d4 *",
            "1. e4 White wins1-0White wins",
            "1. e4 White wins.1/2draw",
            "1. e4 White wins *",
            "1. e4 e5 mate.1-0",
            "1. e4 e5 resigns!*\n\n[A \"\"]\n1. d4 *",
            "1. e4 e5 remis.1/2-1/2 e6",
            "1. e4 e8(Q)draw",
            "1. e4 e8(Q)1-0x",
            "1. e4 (Q)draw",
            "1. e4 N(b)draw",
            "1. e4 (e5) draw",
            "1. e4 e5 2-0\n\n[A \"\"]\n1. d4 d5!draw",
            "1. e4 0.5 - 0.5 1. d4 ½ - ½ 1. c4 1/2\n- 1/2",
        ] {
            check(text.as_bytes());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        #[test]
        fn skipping_finds_the_ends_that_reading_finds(
            parts in proptest::collection::vec(
                proptest::sample::select(&[
                    "1", "0", "-", ":", "/", "1/2", "0.5", "0,5", "½", "–", " ", "\n", "\u{a0}", ",", ".", "=", "+", "*",
                    "e4", "e.p.", "O-O", "0-0", "1-0", "24", "(", ")", "(Q)", "{", "}", ";", "e8", "N", "[x]", "$1", "!",
                    "--", "\u{2026}", "[A \"\"]\n", "%", "\u{25a1}", "x", "♘f3", "draw", "White wins", "remis",
                    " words that are far too long for a result of a game of chess ", "2-0", "\u{2206}",
                ][..]),
                0..16,
            ),
        ) {
            check(format!("1. e4 {}", parts.concat()).as_bytes());
        }
    }
}

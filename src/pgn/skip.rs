//! Passing over variations, and over the moves of games that do not count.

use super::{
    game::GameReader,
    movetext::{Flaw, GameEnd, Token},
    result::GameResult,
    tags::{ends_game, is_tag_start},
};

impl<'a> GameReader<'a> {
    /// Goes to the end of the present game without looking at its moves. Returns how
    /// [`next_token`](GameReader::next_token) would have ended it.
    pub fn skip_moves(&mut self) -> GameEnd {
        self.without_variations(GameReader::skip_main_line)
    }

    /// Counts the half-moves from here to the end of the main line, or to its first null move. Returns how
    /// the game ends as well.
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

    /// Goes to the end of the present game, and calls `f` with each move of the main line as it is written, and
    /// with nothing for a null move.
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

    /// Leaves the variations that have been entered, and reads on as if none were wanted.
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

    fn skip_main_line(&mut self) -> GameEnd {
        // Where a token begins for certain.
        let mut token = self.at;
        loop {
            // Nothing but these bytes can end a game or hide what seems to.
            while let Some(&byte) = self.text.get(self.at) {
                if ENDS_OR_HIDES[usize::from(byte)] {
                    break;
                }
                self.at += 1;
            }
            match self.text.get(self.at) {
                None => return GameEnd::Complete(None),
                Some(b'-' | b'/' | b':' | 0x80..) => {
                    let stop = self.at;
                    self.at = self.word_start(token);
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
                        Some(end) => return end,
                        None => self.at = self.at.max(before + 1),
                    }
                }
            }
        }
    }

    /// One of the bytes that [`skip_moves`](GameReader::skip_moves) stops at.
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

    /// Returns the offset of the word that the current byte is part of, but at least `first`.
    fn word_start(&self, first: usize) -> usize {
        let before = &self.text[first.min(self.at)..self.at];
        let length = before
            .iter()
            .rev()
            .take_while(|byte| !byte.is_ascii_whitespace() && !b"{}()[];.".contains(byte))
            .count();
        // `0.5-0.5` has dots.
        let decimal = before[..before.len() - length].ends_with(b"0.");
        self.at - length - if decimal { 2 } else { 0 }
    }

    /// At the parenthesis that opens a variation: goes into it if variations are wanted, past it if
    /// they are not.
    pub(super) fn enter_variation(&mut self) -> Option<Token<'a>> {
        let open = self.at;
        if self.depth == 0 {
            if let Err(end) = self.skip_variation() {
                return Some(Token::End(end));
            }
            if !self.with_variations {
                return None;
            }
            // It is closed, so its tokens can be read without fear for what follows.
            self.variation_end = self.at;
        }
        self.depth += 1;
        self.at = open + 1;
        Some(Token::BeginVariation)
    }

    /// Goes past the end of the variation that has just begun.
    pub(super) fn leave_variation(&mut self) {
        self.depth -= 1;
        if self.depth == 0 {
            self.at = self.variation_end;
        } else {
            self.at -= 1;
            // It is closed, because the one around it is.
            let _ = self.skip_variation();
        }
    }

    /// Jumps over a variation and all variations in it.
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

    /// Whether the line that breaks here ends in a termination marker and a blank line follows: in a
    /// variation, a sign that it is not closed.
    fn is_end_of_game_line(&self) -> bool {
        let rest = &self.text[self.at..];
        let rest = rest.strip_prefix(b"\r").unwrap_or(rest);
        let rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        let next_is_blank = matches!(rest.first(), None | Some(b'\n' | b'\r'));
        next_is_blank && ends_game(&self.text[..self.at])
    }

    /// Ends the game at damage that begins here, and goes on at `next`.
    pub(super) fn comment_not_closed(&mut self, next: usize) -> GameEnd {
        let offset = self.at;
        self.at = next;
        GameEnd::Broken(Flaw {
            reason: "comment is not closed",
            offset,
        })
    }
}

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

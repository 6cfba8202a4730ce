//! Reading one game after another from a stretch of PGN.

use super::{
    comment::{CommentEnd, Comments},
    result::GameResult,
    tags::{Tags, is_tag_start, line_end, read_tag},
};
use crate::position::looks_like_move;

/// What the movetext holds next.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Token<'a> {
    /// A move of the main line as it is written, without marks such as `!?`.
    Move {
        /// The bytes of the move.
        text: &'a [u8],
        /// Where they stand in the text.
        offset: usize,
    },
    /// Text that can be neither a move nor anything else that movetext holds.
    Unreadable {
        /// The bytes up to the next blank.
        text: &'a [u8],
        /// Where they stand in the text.
        offset: usize,
    },
    /// The game is over: its termination marker, `None` if it has none.
    End(Option<GameResult>),
    /// The game cannot be read any further.
    Broken(Flaw),
}

/// Damage that ends a game before its time.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Flaw {
    /// What is wrong.
    pub reason: &'static str,
    /// Where it begins in the text.
    pub offset: usize,
}

/// Reads the games of a stretch of PGN that begins and ends at game boundaries.
///
/// After [`next_game`](GameReader::next_game) the tags are known; then
/// [`next_token`](GameReader::next_token) gives the main line until it answers [`Token::End`] or
/// [`Token::Broken`]. [`skip_moves`](GameReader::skip_moves) does the rest of a game at once.
#[derive(Debug)]
pub struct GameReader<'a> {
    text: &'a [u8],
    at: usize,
    tags: Tags<'a>,
    game: usize,
    first_tag: Option<usize>,
    stray_text: Option<usize>,
    comments: Comments,
}

impl<'a> GameReader<'a> {
    /// Reads from the start of `text`, which must not begin inside a game.
    pub fn new(text: &'a [u8]) -> GameReader<'a> {
        GameReader {
            text,
            at: 0,
            tags: Tags::default(),
            game: 0,
            first_tag: None,
            stray_text: None,
            comments: Comments::default(),
        }
    }

    /// The tags of the present game.
    #[inline]
    pub fn tags(&self) -> &Tags<'a> {
        &self.tags
    }

    /// Where the present game begins in the text: the bracket of its first tag, else its first move
    /// or move number.
    pub fn game_offset(&self) -> usize {
        self.game
    }

    /// Where the bracket of the present game's first tag stands, `None` for a game without tags.
    pub fn first_tag_offset(&self) -> Option<usize> {
        self.first_tag
    }

    /// Where text first stood between two games, or after the last, that belongs to neither.
    pub fn stray_text(&self) -> Option<usize> {
        self.stray_text
    }

    /// How far the text has been read.
    pub fn offset(&self) -> usize {
        self.at
    }

    /// Goes on to the next game and reads its tags. The moves of the one before must have been read
    /// to their end. `false` when there is none.
    pub fn next_game(&mut self) -> bool {
        self.tags.clear();
        self.first_tag = None;
        loop {
            self.skip_between_games();
            let Some(&byte) = self.text.get(self.at) else {
                return false;
            };
            self.game = self.at;
            if byte == b'[' && is_tag_start(self.text, self.at) {
                self.first_tag = Some(self.at);
                self.read_tags();
                return true;
            }
            if self.moves_begin_here() {
                return true;
            }
            self.stray_text.get_or_insert(self.at);
            self.at = line_end(self.text, self.at);
        }
    }

    /// Blanks, comments and escaped lines that stand before a game.
    fn skip_between_games(&mut self) {
        while let Some(&byte) = self.text.get(self.at) {
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c => self.at += 1,
                // A byte order mark, wherever files with one were joined.
                0xef if self.text[self.at..].starts_with(b"\xef\xbb\xbf") => self.at += 3,
                b';' => self.at = line_end(self.text, self.at),
                b'%' if self.is_line_start() => self.at = line_end(self.text, self.at),
                b'{' => {
                    self.at = match self.comments.end_of(self.text, self.at) {
                        CommentEnd::Closed(end) | CommentEnd::Unclosed(end) => end,
                    }
                }
                _ => return,
            }
        }
    }

    fn is_line_start(&self) -> bool {
        self.at == 0 || matches!(self.text[self.at - 1], b'\n' | b'\r')
    }

    /// Whether a game without tags begins here, rather than text that is no game: a termination
    /// marker, a move, or a number with one of the two behind it.
    fn moves_begin_here(&self) -> bool {
        let mut at = self.at;
        while self.text.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        if at > self.at && !matches!(self.text.get(at), Some(b'.' | b' ' | b'\n' | b'\r')) {
            at = self.at;
        }
        while matches!(self.text.get(at), Some(b'.' | b' ' | b'\n' | b'\r')) {
            at += 1;
        }
        let word = self.word(at);
        GameResult::from_marker(word).is_some()
            || looks_like_move(without_marks(word))
            || word.first() == Some(&b'*')
            // A move number with its dot, whatever follows.
            || (at > self.at && self.text[self.at..at].contains(&b'.'))
    }

    /// The bytes at `at` up to the next blank.
    fn word(&self, at: usize) -> &'a [u8] {
        let rest = &self.text[at..];
        let end = rest
            .iter()
            .position(|byte| byte.is_ascii_whitespace() || b"{}()[];".contains(byte));
        &rest[..end.unwrap_or(rest.len())]
    }

    /// Tag pairs, one or several a line, with blank, escaped and comment lines among them.
    fn read_tags(&mut self) {
        let mut blank_line = false;
        loop {
            let Some((tag, end)) = read_tag(self.text, self.at) else {
                return;
            };
            // The tags of a game without moves end where the next game's begin.
            let is_next_game =
                (blank_line || tag.name == b"Event") && self.tags.begins_with_name(tag.name);
            if is_next_game {
                return;
            }
            self.tags.push(tag);
            self.at = end;
            let mut breaks = 0;
            loop {
                match self.text.get(self.at) {
                    Some(b' ' | b'\t' | b']') => self.at += 1,
                    Some(b'\r') if self.text.get(self.at + 1) == Some(&b'\n') => self.at += 1,
                    Some(b'\n' | b'\r') => {
                        breaks += 1;
                        self.at += 1;
                    }
                    Some(b'%') if self.is_line_start() => self.at = line_end(self.text, self.at),
                    Some(b';') => self.at = line_end(self.text, self.at),
                    Some(b'{') => match self.comments.end_of(self.text, self.at) {
                        CommentEnd::Closed(end) => self.at = end,
                        // The moves will find it again and say so.
                        CommentEnd::Unclosed(_) => return,
                    },
                    _ => break,
                }
            }
            blank_line = breaks > 1;
        }
    }

    /// The next move of the main line, or how the game ends.
    #[inline]
    pub fn next_token(&mut self) -> Token<'a> {
        loop {
            let Some(&byte) = self.text.get(self.at) else {
                return Token::End(None);
            };
            match byte {
                b' ' | b'\n' | b'\r' | b'.' | b'\t' | 0x0b | 0x0c => self.at += 1,
                b'a'..=b'z' | b'A'..=b'Z' | b'@' => {
                    if let Some(token) = self.read_move() {
                        return token;
                    }
                }
                b'0'..=b'9' => {
                    if let Some(token) = self.read_number() {
                        return token;
                    }
                }
                b'{' => match self.comments.end_of(self.text, self.at) {
                    CommentEnd::Closed(end) => self.at = end,
                    CommentEnd::Unclosed(next) => {
                        return self.broken("comment is not closed", next);
                    }
                },
                b'(' => {
                    if let Err(broken) = self.skip_variation() {
                        return broken;
                    }
                }
                b'!' | b'?' | b')' | b'}' => self.at += 1,
                b'$' => {
                    self.at += 1;
                    while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
                        self.at += 1;
                    }
                }
                b';' => self.at = line_end(self.text, self.at),
                b'*' => {
                    self.at += 1;
                    return Token::End(Some(GameResult::Unknown));
                }
                b'[' if is_tag_start(self.text, self.at) => return Token::End(None),
                b'%' if self.is_line_start() => self.at = line_end(self.text, self.at),
                _ => {
                    if let Some(token) = self.read_sign() {
                        return token;
                    }
                }
            }
        }
    }

    fn broken(&mut self, reason: &'static str, next: usize) -> Token<'a> {
        let offset = self.at;
        self.at = next;
        Token::Broken(Flaw { reason, offset })
    }

    #[inline]
    fn read_move(&mut self) -> Option<Token<'a>> {
        let offset = self.at;
        let mut end = offset + 1;
        while self.text.get(end).is_some_and(|byte| is_move_byte(*byte)) {
            end += 1;
        }
        let mut text = &self.text[offset..end];
        self.at = end;
        // `e8(Q)`
        if let [b'(', b'N' | b'B' | b'R' | b'Q', b')', ..] = self.text[end..] {
            self.at = end + 3;
            text = &self.text[offset..self.at];
        }
        // `exd6 e.p.`
        if matches!(text, b"e" | b"ep") && self.text[offset..].starts_with(b"e.p.") {
            self.at = offset + 4;
            return None;
        }
        if matches!(text, b"ep" | b"N" | b"D") {
            return None;
        }
        Some(Token::Move { text, offset })
    }

    /// A move number, a termination marker, or castling written with zeros.
    #[inline]
    fn read_number(&mut self) -> Option<Token<'a>> {
        let offset = self.at;
        let mut end = offset + 1;
        while self.text.get(end).is_some_and(u8::is_ascii_digit) {
            end += 1;
        }
        match self.text.get(end) {
            Some(b'-' | b'/' | 0xe2) => {}
            _ => {
                // The common case: a number, its dots, and often the move right behind.
                self.at = end;
                return None;
            }
        }
        let word = self.word(offset);
        if let Some(result) = GameResult::from_marker(word) {
            self.at = offset + word.len();
            return Some(Token::End(Some(result)));
        }
        // A marker with something stuck to it, such as `1-0,` or `0-1[`.
        for token in [&b"1/2-1/2"[..], b"1-0", b"0-1"] {
            let next = self.text.get(offset + token.len());
            if self.text[offset..].starts_with(token) && !next.is_some_and(|b| is_move_byte(*b)) {
                self.at = offset + token.len();
                return Some(Token::End(GameResult::from_token(token)));
            }
        }
        let mut end = offset;
        while self.text.get(end).is_some_and(|byte| is_move_byte(*byte)) {
            end += 1;
        }
        self.at = end;
        let text = &self.text[offset..end];
        if text.iter().all(u8::is_ascii_digit) {
            return None;
        }
        Some(if text.starts_with(b"0-0") {
            Token::Move { text, offset }
        } else {
            Token::Unreadable { text, offset }
        })
    }

    /// Signs that annotators leave behind a move, such as `+-` or `=`; anything else is no movetext.
    #[cold]
    fn read_sign(&mut self) -> Option<Token<'a>> {
        let offset = self.at;
        let text = self.word(offset);
        self.at = offset + text.len().max(1);
        let text = &self.text[offset..self.at];
        if let Some(result) = GameResult::from_marker(text) {
            return Some(Token::End(Some(result)));
        }
        let is_annotation = match std::str::from_utf8(text) {
            Ok("--") => false,
            Ok(sign) => sign.chars().all(|c| {
                "+-=/~<>!?#,'\"\u{2213}\u{b1}\u{221e}\u{2a72}\u{2a71}\u{feff}".contains(c)
            }),
            Err(_) => false,
        };
        (!is_annotation).then_some(Token::Unreadable { text, offset })
    }

    /// Jumps over a variation and all variations in it.
    fn skip_variation(&mut self) -> Result<(), Token<'a>> {
        let open = self.at;
        let unclosed = |at| {
            Token::Broken(Flaw {
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
                b'{' => match self.comments.end_of(self.text, self.at) {
                    CommentEnd::Closed(end) => {
                        self.at = end;
                        continue;
                    }
                    CommentEnd::Unclosed(next) => {
                        return Err(self.broken("comment is not closed", next));
                    }
                },
                b';' => {
                    self.at = line_end(self.text, self.at);
                    continue;
                }
                b'%' if self.is_line_start() => {
                    self.at = line_end(self.text, self.at);
                    continue;
                }
                b'[' if is_tag_start(self.text, self.at) => return Err(unclosed(open)),
                b'\n' | b'\r' if self.is_end_of_game_line() => return Err(unclosed(open)),
                _ => {}
            }
            self.at += 1;
        }
        Err(unclosed(open))
    }

    /// Whether the line that breaks here ends in a termination marker and a blank line follows: in a
    /// variation, a sign that nobody closed it.
    fn is_end_of_game_line(&self) -> bool {
        let rest = &self.text[self.at..];
        let rest = rest.strip_prefix(b"\r").unwrap_or(rest);
        let rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        let next_is_blank = matches!(rest.first(), None | Some(b'\n' | b'\r'));
        next_is_blank
            && self.text[..self.at]
                .rsplit(u8::is_ascii_whitespace)
                .next()
                .is_some_and(|word| GameResult::from_token(word).is_some())
    }

    /// Goes to the end of the present game without looking at its moves. Answers what
    /// [`next_token`](GameReader::next_token) would have at the end, never a move.
    pub fn skip_moves(&mut self) -> Token<'a> {
        loop {
            // Nothing but these bytes can end a game or hide what seems to.
            while let Some(&byte) = self.text.get(self.at) {
                if ENDS_OR_HIDES[usize::from(byte)] {
                    break;
                }
                self.at += 1;
            }
            match self.text.get(self.at) {
                None => return Token::End(None),
                Some(b'-' | b'/' | 0xe2 | 0xc2) => {
                    let stop = self.at;
                    let start = self.word_start();
                    if self.text[start].is_ascii_digit() || self.text[start] >= 0x80 {
                        self.at = start;
                        if let end @ (Token::End(_) | Token::Broken(_)) = self.next_token() {
                            return end;
                        }
                    }
                    // The word may have ended before, but here must be no second stop.
                    self.at = self.at.max(stop + 1);
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
    fn skip_one(&mut self) -> Option<Token<'a>> {
        match self.text[self.at] {
            b'{' => match self.comments.end_of(self.text, self.at) {
                CommentEnd::Closed(end) => self.at = end,
                CommentEnd::Unclosed(next) => {
                    return Some(self.broken("comment is not closed", next));
                }
            },
            b'(' => return self.skip_variation().err(),
            b';' => self.at = line_end(self.text, self.at),
            b'%' if self.is_line_start() => self.at = line_end(self.text, self.at),
            b'*' => {
                self.at += 1;
                return Some(Token::End(Some(GameResult::Unknown)));
            }
            b'[' if is_tag_start(self.text, self.at) => return Some(Token::End(None)),
            _ => {}
        }
        None
    }

    /// Where the word begins that the present byte is part of.
    fn word_start(&self) -> usize {
        let before = &self.text[self.game..self.at];
        let length = before
            .iter()
            .rev()
            .take_while(|byte| !byte.is_ascii_whitespace() && !b"{}()[];.".contains(byte))
            .count();
        self.at - length
    }

    /// Counts the half-moves from here to the end of the game; answers how it ends as well.
    pub fn count_moves(&mut self) -> (usize, Token<'a>) {
        let mut plies = 0;
        loop {
            match self.next_token() {
                Token::Move { .. } | Token::Unreadable { .. } => plies += 1,
                end => return (plies, end),
            }
        }
    }
}

/// A move without the marks that a bad or good one gets.
fn without_marks(word: &[u8]) -> &[u8] {
    let end = word.iter().rposition(|byte| !b"!?".contains(byte));
    &word[..end.map_or(0, |last| last + 1)]
}

/// The bytes of which a move is made, after its first.
#[inline]
fn is_move_byte(byte: u8) -> bool {
    MOVE_BYTE[usize::from(byte)]
}

const MOVE_BYTE: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        table[byte] = b.is_ascii_alphanumeric()
            || matches!(b, b'+' | b'#' | b'=' | b'-' | b':' | b'@' | b'/' | b'_');
        byte += 1;
    }
    table
};

const ENDS_OR_HIDES: [bool; 256] = {
    let mut table = [false; 256];
    let bytes = b"{(;%*[-/\xe2\xc2";
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

    /// Every game is read by `f`; answers how many there are. Ends, whatever the text.
    fn games(text: &[u8], f: impl Fn(&mut GameReader<'_>)) -> usize {
        let mut reader = GameReader::new(text);
        let mut games = 0;
        while reader.next_game() {
            f(&mut reader);
            games += 1;
            assert!(games <= text.len());
        }
        assert_eq!(reader.offset(), text.len());
        games
    }

    #[test]
    fn a_broken_result_does_not_stop_the_reader() {
        // Once the word before the slash was found again and again.
        let text = b"1. e4 1-\x0e/ e5\n\n[White \"x\"]\n\n1. d4 *";
        assert_eq!(
            games(text, |reader| {
                reader.skip_moves();
            }),
            2
        );
        assert_eq!(
            games(text, |reader| {
                reader.count_moves();
            }),
            2
        );
    }

    proptest! {
        #[test]
        fn any_text_is_read_to_its_end(
            parts in proptest::collection::vec(
                prop_oneof![
                    "[ -~\n]{0,4}".prop_map(String::into_bytes),
                    proptest::collection::vec(any::<u8>(), 0..3),
                    prop_oneof![
                        Just("1-0"), Just("1-"), Just("/"), Just("1/2-"), Just("½"), Just("–"), Just("0-0"),
                        Just("{"), Just("}"), Just("("), Just(")"), Just("[A \"\"]\n"), Just("\n\n"), Just("1."),
                    ].prop_map(|text: &str| text.as_bytes().to_vec()),
                ],
                0..25,
            ),
        ) {
            let text = parts.concat();
            games(&text, |reader| { reader.skip_moves(); });
            games(&text, |reader| { reader.count_moves(); });
            // A game is left to its end after its first move, as an illegal one is.
            games(&text, |reader| {
                if let Token::Move { .. } | Token::Unreadable { .. } = reader.next_token() {
                    reader.skip_moves();
                }
            });
        }
    }
}

//! The moves of a game, and what is among them: numbers, marks, comments, variations, and the
//! termination marker.

use super::{
    comment::CommentEnd,
    game::GameReader,
    result::GameResult,
    tags::line_end,
    word::{blank, cross, dash, figurine, first_word, is_move_byte, may_go_on, without_marks},
};
use crate::position::{Word, looks_like_move};

/// What the movetext holds next.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Token<'a> {
    /// A move as it is written, without marks such as `!?`.
    Move {
        /// The bytes of the move.
        text: &'a [u8],
        /// Where they are in the text.
        offset: usize,
    },
    /// Text that can be neither a move nor anything else that movetext holds.
    Unreadable {
        /// The bytes up to the next blank.
        text: &'a [u8],
        /// Where they are in the text.
        offset: usize,
    },
    /// A null move: `--`, `Z0`, `null`, `@@@@` or `0000`. The side to move passes, which no rules of
    /// chess allow, so the moves after it say nothing about openings.
    NullMove {
        /// Where it is in the text.
        offset: usize,
    },
    /// A variation begins: an alternative to the move before it. Only
    /// [`GameReader::with_variations`](super::GameReader::with_variations) gives these.
    BeginVariation,
    /// The variation ends, and the line that it branched from goes on.
    EndVariation,
    /// The game is over.
    End(GameEnd),
}

/// How a game ends.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum GameEnd {
    /// The game was read to its end: its termination marker, `None` if it has none.
    Complete(Option<GameResult>),
    /// The game cannot be read any further.
    Broken(Flaw),
}

/// Damage that ends a game before its time.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Flaw {
    /// What is wrong.
    pub reason: &'static str,
    /// Where it begins in the text that [`GameReader::new`](super::GameReader::new) got. Add the offset of the
    /// [`Batch`](super::Batch) for the place in the file.
    pub offset: usize,
}

impl<'a> GameReader<'a> {
    /// The next move of the main line (and of variations, if they are
    /// [wanted](GameReader::with_variations)), or how the game ends.
    #[inline]
    pub fn next_token(&mut self) -> Token<'a> {
        loop {
            if let Some(token) = self.step() {
                return token;
            }
        }
    }

    /// As [`next_token`](GameReader::next_token), and hands the comments before the token to `comment`, those of variations
    /// aside.
    pub(crate) fn next_token_after(&mut self, mut comment: impl FnMut(&'a [u8])) -> Token<'a> {
        loop {
            let start = self.at;
            match self.step() {
                Some(token) => return token,
                None => match self.text[start] {
                    b'{' => comment(&self.text[start + 1..self.at - 1]),
                    b';' => comment(&self.text[start + 1..self.at]),
                    _ => {}
                },
            }
        }
    }

    /// Goes back to the first comment before the moves, if there is one.
    pub(crate) fn return_to_comments(&mut self) {
        self.at = self.first_comment.unwrap_or(self.at);
    }

    /// Goes past a blank, a word, a mark or a comment. Returns the token that it is, if it is one.
    // One match over the first byte, because this runs for each word of the movetext.
    #[inline(always)]
    pub(super) fn step(&mut self) -> Option<Token<'a>> {
        let Some(&byte) = self.text.get(self.at) else {
            return Some(Token::End(GameEnd::Complete(None)));
        };
        match byte {
            b' ' | b'\n' | b'\r' | b'.' | b'\t' | 0x0b | 0x0c => self.at += 1,
            b'a'..=b'z' | b'A'..=b'Z' | b'@' => return self.read_move(),
            b'0'..=b'9' => return self.read_number(),
            b'{' => match self.comments.end_of(self.text, self.at) {
                CommentEnd::Closed(end) => self.at = end,
                CommentEnd::Unclosed(next) => {
                    return Some(Token::End(self.comment_not_closed(next)));
                }
            },
            b'(' => return self.enter_variation(),
            b')' if self.depth > 0 => {
                self.at += 1;
                self.depth -= 1;
                return Some(Token::EndVariation);
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
                return self.end_of_game(GameResult::Unknown);
            }
            b'[' if self.tags_begin_here() => {
                return Some(Token::End(GameEnd::Complete(None)));
            }
            b'%' if self.is_line_start() => self.at = line_end(self.text, self.at),
            _ => return self.read_sign(),
        }
        None
    }

    /// The next word of the main line, if only blanks and a move number come before it, and a blank comes after it. A
    /// fast way for common moves: [`read_word`](crate::position::read_word) reads the word, and
    /// [`take_word`](GameReader::take_word) goes past it. For any other word call [`next_token`], which begins with it
    /// again.
    ///
    /// [`next_token`]: GameReader::next_token
    #[inline(always)]
    pub fn peek_word(&mut self) -> Option<Word> {
        loop {
            match *self.text.get(self.at)? {
                b' ' | b'\n' | b'\r' | b'.' | b'\t' => self.at += 1,
                b'a'..=b'h' | b'A'..=b'Z' => break,
                b'1'..=b'9' => {
                    let rest = &self.text[self.at..];
                    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit());
                    let digits = digits.count();
                    // Not a termination marker, nor castling.
                    if !matches!(rest.get(digits), Some(b'.' | b' ' | b'\n')) {
                        return None;
                    }
                    self.at += digits + 1;
                }
                _ => return None,
            }
        }
        Word::before_blank(self.text[self.at..].first_chunk()?)
    }

    /// Goes past a word that [`peek_word`](GameReader::peek_word) returned.
    #[inline(always)]
    pub fn take_word(&mut self, word: Word) {
        self.at += word.len();
    }

    #[inline]
    fn read_move(&mut self) -> Option<Token<'a>> {
        let offset = self.at;
        let mut end = offset + 1;
        while self.text.get(end).is_some_and(|byte| is_move_byte(*byte)) {
            end += 1;
        }
        let text = &self.text[offset..end];
        if is_plain(text) && !self.text.get(end).is_some_and(|byte| may_go_on(*byte)) {
            self.at = end;
            return Some(Token::Move { text, offset });
        }
        self.read_odd_move(end)
    }

    /// A move that does not end as most do, or something that only begins like one. Its move bytes end
    /// at `end`.
    #[cold]
    #[inline(never)]
    fn read_odd_move(&mut self, end: usize) -> Option<Token<'a>> {
        let offset = self.at;
        let word = &self.text[offset..self.end_of_move(offset, end)];
        let text = &word[..word.len() - GameResult::glued_length(word)];
        self.at = offset + text.len();
        match text {
            // `exd6 e.p.`, `Qd3 ch`, and the marks of a novelty and a diagram.
            b"ep" | b"e.p." | b"e.p" | b"ch" | b"N" | b"TN" | b"D" | b"RR" => None,
            b"Z0" | b"@@@@" => Some(Token::NullMove { offset }),
            _ if text.eq_ignore_ascii_case(b"null") => Some(Token::NullMove { offset }),
            _ => Some(Token::Move { text, offset }),
        }
    }

    /// Where the move at `offset` ends, whose first move bytes end at `end`: after parentheses, `e.p.`,
    /// dashes and crosses that belong to it.
    fn end_of_move(&self, offset: usize, mut end: usize) -> usize {
        loop {
            let rest = &self.text[end..];
            let before = self.text[end - 1];
            let length = match *rest {
                // `N(f)d7`
                [b'(', b'a'..=b'h' | b'1'..=b'8', b')', next, ..]
                    if end == offset + 1 && is_move_byte(next) =>
                {
                    3
                }
                // `e8(Q)`, in any language; after another move it is a mark or a variation.
                [b'(', letter, b')', ..] if is_promoted(&self.text[offset..end], letter) => 3,
                [b'.', b'p', b'.', ..] if before == b'e' => 3,
                [b'.', b'p', ref next @ ..]
                    if before == b'e' && !next.first().is_some_and(|byte| is_move_byte(*byte)) =>
                {
                    2
                }
                [b'(' | b'.', ..] => 0,
                _ => {
                    let length = dash(rest).max(cross(rest));
                    let next = rest.get(length);
                    if next.is_some_and(|byte| is_move_byte(*byte)) {
                        length
                    } else {
                        0
                    }
                }
            };
            if length == 0 {
                return end;
            }
            end += length;
            while self.text.get(end).is_some_and(|byte| is_move_byte(*byte)) {
                end += 1;
            }
        }
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
            Some(b'-' | b'/' | b':' | b',' | 0x80..) => self.read_marker(end),
            Some(b'.') if &self.text[offset..end] == b"0" => self.read_marker(end),
            _ => {
                // The common case: a number, its dots, and often the move right after them.
                self.at = end;
                (&self.text[offset..end] == b"0000").then_some(Token::NullMove { offset })
            }
        }
    }

    /// A termination marker, or castling written with zeros. The digits it begins with end at `end`.
    #[cold]
    fn read_marker(&mut self, end: usize) -> Option<Token<'a>> {
        let offset = self.at;
        let rest = &self.text[offset..];
        let word = first_word(rest);
        let marker = GameResult::from_marker(word).or_else(|| {
            // With this tag, `0-0` at the end means that both sides lost.
            let tag = self.tags().get(b"Result")?;
            let lost = GameResult::is_double_loss(word) && GameResult::is_double_loss(tag);
            (lost && self.is_last(offset + word.len())).then_some(GameResult::Unknown)
        });
        if let Some(result) = marker {
            self.at = offset + word.len();
            return self.end_of_game(result);
        }
        // A marker with something stuck to it, such as `1-0,` or `0-1[`.
        for token in [
            GameResult::Draw,
            GameResult::WhiteWins,
            GameResult::BlackWins,
        ] {
            let text = token.token().as_bytes();
            let next = rest.get(text.len());
            if rest.starts_with(text) && !next.is_some_and(|byte| is_move_byte(*byte)) {
                self.at = offset + text.len();
                return self.end_of_game(token);
            }
        }
        let mut end = end;
        while self.text.get(end).is_some_and(|byte| is_move_byte(*byte)) {
            end += 1;
        }
        let word = &self.text[offset..self.end_of_move(offset, end)];
        let is_castling = match word.split_first() {
            Some((b'0', after)) => after.get(dash(after)) == Some(&b'0'),
            _ => false,
        };
        if !is_castling {
            self.at = offset + word.len();
            let text = word;
            let is_number = text.iter().all(u8::is_ascii_digit);
            return (!is_number).then_some(Token::Unreadable { text, offset });
        }
        let text = &word[..word.len() - GameResult::glued_length(word)];
        self.at = offset + text.len();
        Some(Token::Move { text, offset })
    }

    /// The end of the game, unless the marker is in a variation.
    fn end_of_game(&self, result: GameResult) -> Option<Token<'a>> {
        (self.depth == 0).then_some(Token::End(GameEnd::Complete(Some(result))))
    }

    /// Signs that annotators write after a move, such as `+-` or `=`; moves that begin with a chess
    /// piece of Unicode; null moves. Anything else is not movetext.
    #[cold]
    fn read_sign(&mut self) -> Option<Token<'a>> {
        let offset = self.at;
        let rest = &self.text[offset..];
        let blank = blank(rest);
        if blank > 0 {
            self.at += blank;
            return None;
        }
        let piece = figurine(rest);
        if piece > 0 {
            let mut end = offset + piece;
            while self.text.get(end).is_some_and(|byte| is_move_byte(*byte)) {
                end += 1;
            }
            return self.read_odd_move(end);
        }
        let text = first_word(rest);
        let text = &rest[..text.len().max(1)];
        self.at = offset + text.len();
        let last_word = || GameResult::from_last_word(text).filter(|_| self.is_last(self.at));
        if let Some(result) = GameResult::from_marker(text).or_else(last_word) {
            return self.end_of_game(result);
        }
        if let Some(length) = null_move(text) {
            // The marks after it are read as those of any move.
            self.at = offset + length;
            return Some(Token::NullMove { offset });
        }
        if is_annotation(text) && !(text_means_idea(text) && self.move_follows()) {
            return None;
        }
        Some(Token::Unreadable { text, offset })
    }

    /// Returns `true` if the next word, after blanks of ASCII, is a move.
    fn move_follows(&self) -> bool {
        let rest = self.text[self.at..].trim_ascii_start();
        looks_like_move(without_marks(first_word(rest)))
    }
}

/// Returns `true` if an annotation says that the moves after it are not those of the game: "with the idea" and "better is".
fn text_means_idea(annotation: &[u8]) -> bool {
    let text = str::from_utf8(annotation).unwrap_or_default();
    text.chars()
        .any(|sign| "\u{2206}\u{25b3}\u{394}\u{2207}\u{2313}\u{25b2}\u{25bd}".contains(sign))
}

/// Whether a word of move bytes is a move that ends with its square or a check, and to which nothing is
/// glued, as nearly all are.
#[inline]
fn is_plain(word: &[u8]) -> bool {
    matches!(word, [.., before, b'1'..=b'8' | b'+' | b'#'] if !matches!(before, b'-' | b'/'))
}

/// Whether a pawn that has moved as written becomes the piece of a letter that follows it in
/// parentheses. The letters are those of all [languages](crate::position::PieceLetters).
fn is_promoted(pawn_move: &[u8], letter: u8) -> bool {
    let square = pawn_move.strip_suffix(b"=").unwrap_or(pawn_move);
    matches!(pawn_move, [b'a'..=b'h' | b'P', ..])
        && matches!(square, [.., b'1' | b'8'])
        && b"NBRQSLTDPCFA".contains(&letter)
}

/// The length of the two dashes that a word is, with or without marks after them.
fn null_move(word: &[u8]) -> Option<usize> {
    let first = dash(word);
    let second = dash(&word[first..]);
    let marks = &word[first + second..];
    let is_null_move = first > 0 && second > 0 && marks.iter().all(|byte| b"!?,".contains(byte));
    is_null_move.then_some(first + second)
}

/// Returns `true` if a word consists of signs alone, such as those of the table of NAGs: `+-`, `=`, `±`, `□`, `⇆`.
fn is_annotation(word: &[u8]) -> bool {
    let is_sign = |sign: char| match sign {
        // The delta is a letter.
        '\u{394}' => true,
        _ if sign.is_ascii() => "+-=/~<>!?#,'\"^|".contains(sign),
        _ => !sign.is_alphanumeric() && !is_chess_piece(sign),
    };
    // The plus-minus sign and the daggers of Windows-1252.
    let is_sign_byte = |byte: &u8| matches!(byte, 0x86 | 0x87 | 0xb1);
    word.utf8_chunks()
        .all(|chunk| chunk.valid().chars().all(is_sign) && chunk.invalid().iter().all(is_sign_byte))
}

fn is_chess_piece(sign: char) -> bool {
    ('\u{2654}'..='\u{265f}').contains(&sign)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use shakmaty::Chess;

    use super::*;
    use crate::position::{read_move, read_word};

    #[test]
    fn comments_of_both_kinds_come_before_the_next_token() {
        let mut games = GameReader::new(b"1. e4 {a} (1. d4 {b} ; c\n) ; d\n%e\n e5 ;f");
        assert!(games.next_game());
        let mut comments: Vec<String> = Vec::new();
        for _ in 0..3 {
            games
                .next_token_after(|comment| comments.push(String::from_utf8_lossy(comment).into()));
            comments.push("|".to_owned());
        }
        assert_eq!(comments.concat(), "|a d|f|");
    }

    /// The words of the main line as [`GameReader::next_token`] gives them, or, where they are moves of the
    /// starting position, as [`GameReader::peek_word`] does.
    fn words(text: &[u8], peeks: bool) -> Vec<(String, usize)> {
        let start = Chess::default();
        let mut words = Vec::new();
        let mut games = GameReader::new(text);
        while games.next_game() {
            loop {
                let peeked = if peeks { games.peek_word() } else { None };
                if let Some((word, mv)) =
                    peeked.and_then(|word| Some((word, read_word(&start, word)?)))
                {
                    games.take_word(word);
                    words.push((format!("{mv}"), games.at));
                    continue;
                }
                let token = games.next_token();
                let said = match token {
                    Token::Move { text, .. } => match read_move(&start, text) {
                        Ok(mv) => format!("{mv}"),
                        Err(err) => err.to_string(),
                    },
                    token => format!("{token:?}"),
                };
                words.push((said, games.at));
                if let Token::End(_) = token {
                    break;
                }
            }
        }
        words
    }

    proptest! {
        #[test]
        fn words_are_the_moves_that_tokens_are(
            parts in proptest::collection::vec(prop_oneof![
                prop_oneof![
                    Just("e4"), Just("Nf3"), Just("d3+"), Just("Nxf3"), Just("e4\u{2013}e5"), Just("O-O"), Just("N"),
                    Just("e.p."), Just("ch"), Just("Z0"), Just("e4e.p."), Just("Nf3!?"), Just("a3?"), Just("f4#"),
                ],
                prop_oneof![
                    Just(" "), Just("\n"), Just("\r\n"), Just("\t"), Just("\u{a0}"), Just("."), Just("1."),
                    Just("12..."), Just("0000"), Just("0-0"), Just("1-0"), Just("1/2-1/2"), Just("12"), Just("*"),
                    Just("%"), Just(";"), Just("{"), Just("}"), Just("("), Just(")"), Just("[A \"\"]\n"), Just("\n\n"),
                ],
                Just(" "),
            ], 0..40),
        ) {
            let text = parts.concat();
            prop_assert_eq!(words(text.as_bytes(), true), words(text.as_bytes(), false));
        }
    }
}

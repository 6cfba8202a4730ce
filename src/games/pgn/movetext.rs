//! Reads movetext: the moves of a game, and the move numbers, annotations, comments, variations and termination markers
//! between them. Variations are skipped unless the caller wants them.

use memchr::memrchr2;
use thiserror::Error;

use super::{
    game::{CommentEnd, GameReader},
    result::{GameResult, MAX_MARKER_LENGTH},
    tags::{
        MoveNumber, Tags, after_first_number, bracketed_number, emphasized, ends_game,
        ends_with_blank_line, number_of_late_move,
    },
    text::WINDOW,
    word::{
        blank, cross, dash, figurine, first_word, is_move_byte, is_null_move, is_part_of_words,
        markup, may_go_on, null_move, without_marks,
    },
};
use crate::chess::position::{Word, looks_like_move};

/// An element of the movetext of a game, such as a move or the end of the game.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Token<'a> {
    /// A move as it is written in the text, without marks such as `!?`.
    Move {
        /// The bytes of the move.
        text: &'a [u8],
        /// The offset of the move in the text passed to [`GameReader::new`](super::GameReader::new).
        offset: usize,
    },
    /// Text that is neither a move nor anything else that movetext may contain.
    Unreadable {
        /// The bytes of the text, up to the next blank.
        text: &'a [u8],
        /// The offset of these bytes in the text passed to [`GameReader::new`](super::GameReader::new).
        offset: usize,
    },
    /// A null move, written `--`, `Z0`, `null`, `@@@@` or `0000`: the side to move passes. The rules of chess do not
    /// allow this, so the moves after it say nothing about openings.
    NullMove {
        /// The offset of the null move in the text passed to [`GameReader::new`](super::GameReader::new).
        offset: usize,
    },
    /// The start of a variation, which is an alternative to the previous move. Only returned if
    /// [`GameReader::with_variations`](super::GameReader::with_variations) is on.
    BeginVariation,
    /// The end of a variation. The next token belongs to the line from which the variation branched.
    EndVariation,
    /// The end of the game.
    End(GameEnd),
}

impl<'a> Token<'a> {
    /// Returns the text of a move, or an empty text for any other token.
    pub(crate) fn text(self) -> &'a [u8] {
        match self {
            Token::Move { text, .. } | Token::Unreadable { text, .. } => text,
            _ => b"",
        }
    }
}

/// The outcome of reading the text of a game: the whole game was read, or damage in the text ended it early.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum GameEnd {
    /// The game was read to its end. Contains the result of its termination marker, or `None` if it has no marker.
    Complete(Option<GameResult>),
    /// The text is damaged, so the rest of the game cannot be read.
    Broken(Flaw),
}

/// The maximum length in bytes of the words at the end of a game that may state its result, such as `White wins`.
const MAX_WORDS_LENGTH: usize = 64;

/// Damage in the text of a game, such as an unclosed comment. The moves after it cannot be read.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Flaw {
    /// The kind of damage, such as an unclosed comment.
    pub reason: FlawKind,
    /// The offset at which the damage begins, in the text passed to [`GameReader::new`](super::GameReader::new). Add
    /// the offset of the [`Batch`](super::Batch) to get the offset in the file.
    pub offset: usize,
}

/// A kind of damage in the text of a game.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Error)]
pub enum FlawKind {
    /// A comment has no closing brace.
    #[error("comment is not closed")]
    UnclosedComment,
    /// A variation has no closing parenthesis.
    #[error("variation is not closed")]
    UnclosedVariation,
    /// A word is not a move.
    #[error("not a move")]
    NotAMove,
    /// The number of the first move is greater than 1, or the first move is Black's, but no `FEN` tag contains the
    /// starting position. The moves before it are probably missing.
    #[error(
        "the game begins at move {number}{}, but no FEN tag says in which position: add this tag or the moves before",
        if *is_black { "..." } else { "" }
    )]
    NoStart {
        /// The number of the first move, as the text contains it.
        number: u32,
        /// Whether the first move is Black's.
        is_black: bool,
    },
    /// The number 1 of White's first move follows other moves of the game. Either another game begins there, or the
    /// numbers are wrong.
    #[error(
        "the move number 1 follows: if another game begins there, put a result such as * or a blank line before it"
    )]
    SecondStart,
}

impl<'a> GameReader<'a> {
    /// Returns the next token of the current game. It is usually a move of the main line, or [`Token::End`] after the
    /// last move. Also returns the moves of variations if [`with_variations`](GameReader::with_variations) is on.
    #[inline]
    pub fn next_token(&mut self) -> Token<'a> {
        loop {
            if let Some(token) = self.read_element() {
                return token;
            }
        }
    }

    /// Returns the next token, like [`next_token`](GameReader::next_token). First calls `comment` with the text of each
    /// comment before the token, except comments in skipped variations.
    pub(crate) fn next_token_after(&mut self, mut comment: impl FnMut(&'a [u8])) -> Token<'a> {
        loop {
            let start = self.at;
            match self.read_element() {
                Some(token) => return token,
                None => match self.text.get(start) {
                    Some(b'{') => comment(self.text.passed(start + 1, self.at - 1)),
                    Some(b';') => comment(self.text.passed(start + 1, self.at)),
                    _ => {}
                },
            }
        }
    }

    /// Returns the next token, like [`next_token`](GameReader::next_token), and the offset at which its text begins.
    /// The text of a move begins at its move number, if it has one.
    pub(crate) fn next_token_with_begin(&mut self) -> (usize, Token<'a>) {
        let mut number = None;
        loop {
            let start = self.at;
            let token = self.read_element();
            if let Some(token) = token {
                let is_move = matches!(token, Token::Move { .. } | Token::Unreadable { .. });
                let begin = number.filter(|_| is_move).unwrap_or(start);
                return (begin, token);
            }
            match *self.text.get(start).expect("an element was read there") {
                b'0'..=b'9' => number = number.or(Some(start)),
                // Signs such as `\u{25a1}` between the number and the move are not ASCII.
                byte if byte == b'.' || byte.is_ascii_whitespace() || !byte.is_ascii() => {}
                _ => number = None,
            }
        }
    }

    /// Moves the reader back to the first comment between the tags and the moves of the current game, so that the
    /// caller can read the comments there. The reader skips them when it advances to a game. Does nothing if there is
    /// no such comment.
    pub(crate) fn return_to_comments(&mut self) {
        self.at = self.first_comment.unwrap_or(self.at);
    }

    /// Reads the element at the current offset, and adds 1 to the reader's move count if the element is a move of the
    /// main line. Returns the token of the element, or `None` if the element has no token and was skipped.
    #[inline(always)]
    pub(super) fn read_element(&mut self) -> Option<Token<'a>> {
        if self.depth > 0 {
            return self.read_in_variation();
        }
        let token = self.read_uncounted_element();
        if let Some(Token::Move { .. } | Token::Unreadable { .. } | Token::NullMove { .. }) = token
        {
            self.count_move();
        }
        token
    }

    /// Reads the element at the current offset, which is inside a variation. The outermost variation always ends at
    /// [`variation_end`](GameReader::variation_end), even if its text is damaged: no token extends beyond this offset,
    /// and all variations that are open there end. Damaged text therefore affects only the variation that contains it.
    fn read_in_variation(&mut self) -> Option<Token<'a>> {
        if self.at >= self.variation_end {
            self.depth -= 1;
            return Some(Token::EndVariation);
        }
        let token = self.read_uncounted_element();
        if self.at > self.variation_end || matches!(token, Some(Token::End(_))) {
            self.at = self.variation_end;
            return None;
        }
        if self.depth == 0 {
            self.at = self.variation_end;
        }
        token
    }

    /// Reads the element at the current offset: a blank, a word, a mark, a comment or a variation. Returns its token,
    /// or `None` if the element has no token and was skipped.
    // This is one match over the first byte, because it runs for every word of the movetext.
    #[inline(always)]
    fn read_uncounted_element(&mut self) -> Option<Token<'a>> {
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
            b'(' => {
                // `(12) Nf3`
                if self.moves == 0
                    && bracketed_number(self.text.ahead(self.at)) > 0
                    && let Some(end) = self.end_before_late_move(self.at + 1)
                {
                    return Some(end);
                }
                return self.enter_variation();
            }
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
            b';' => self.at = self.text.line_end(self.at),
            b'*' => return self.read_asterisk(),
            b'[' => return self.read_bracket(),
            b'%' if self.is_line_start() => self.at = self.text.line_end(self.at),
            _ => return self.read_sign(),
        }
        None
    }

    /// Reads an asterisk, which is either the termination marker or the start of Markdown emphasis, as in `*Nf3*`.
    #[cold]
    fn read_asterisk(&mut self) -> Option<Token<'a>> {
        let ahead = self.text.ahead(self.at);
        if self.emphasis_end == Some(self.at) {
            self.at += ahead.iter().take_while(|byte| **byte == b'*').count();
            return None;
        }
        if self.depth == 0
            && let Some((length, end)) = emphasized(ahead)
            // The next game may be glued to the marker.
            && (self.moves == 0 || leading_number(&ahead[length..]).is_none_or(|(number, _)| number > 1))
        {
            self.emphasis_end = Some(self.at + end);
            self.at += length;
            return None;
        }
        self.at += 1;
        self.end_of_game(GameResult::Unknown)
    }

    /// Reads an opening bracket. It may begin the tags of the next game, a tag between moves, markup such as `[/pgn]`, or
    /// a move number such as `[12]`. Returns the token that begins here, or `None` if the bracket is skipped.
    #[cold]
    fn read_bracket(&mut self) -> Option<Token<'a>> {
        let bracket = self.at;
        if self.tags_begin_here() {
            return Some(Token::End(GameEnd::Complete(None)));
        }
        if self.at > bracket {
            return None;
        }
        let rest = self.text.ahead(bracket);
        let is_result = || GameResult::from_marker(first_word(&rest[1..])).is_some();
        let length = match markup(rest) {
            0 => usize::from(bracketed_number(rest) > 0 || is_result()),
            length => length,
        };
        if length == 0 {
            return self.read_sign();
        }
        self.at += length;
        None
    }

    /// Returns the next word of the main line without advancing past it. Returns `None` if anything other than blanks
    /// and move numbers precedes the word, or if no blank follows it.
    ///
    /// This is a fast path for common moves. If [`read_word`](crate::chess::position::read_word) finds a legal move for
    /// the word, call [`take_word`](GameReader::take_word) to advance past it. Otherwise call [`next_token`], which
    /// reads the same word again.
    ///
    /// [`next_token`]: GameReader::next_token
    #[inline(always)]
    pub fn peek_word(&mut self) -> Option<Word> {
        self.pass_numbers()?;
        Word::before_blank(self.text.first_chunk(self.at)?)
    }

    /// Advances past blanks and move numbers to a letter. Returns `None` if anything else comes first.
    #[inline(always)]
    fn pass_numbers(&mut self) -> Option<()> {
        loop {
            match *self.text.get(self.at)? {
                b' ' | b'\n' | b'\r' | b'.' | b'\t' => self.at += 1,
                b'a'..=b'h' | b'A'..=b'Z' => return Some(()),
                // The number of the first move must be checked.
                b'1' if !self.text.get(self.at + 1).is_some_and(u8::is_ascii_digit) => return None,
                b'1'..=b'9' => {
                    let mut end = self.at + 1;
                    while self.text.get(end).is_some_and(u8::is_ascii_digit) {
                        end += 1;
                    }
                    // All other digits begin a termination marker, such as `1 - 0`, or castling.
                    match (self.text.get(end)?, self.text.get(end + 1)) {
                        _ if self.moves == 0 => return None,
                        // `1.0-0.0` is a termination marker.
                        (b'.', Some(b'0')) => return None,
                        (b'.', _) => {}
                        (b' ' | b'\n', Some(next)) if next.is_ascii_alphabetic() => {}
                        _ => return None,
                    }
                    self.at = end + 1;
                }
                _ => return None,
            }
        }
    }

    /// Reads the next move of the main line if only blanks and move numbers precede it, and if it is castling or
    /// [plain](is_plain), like most moves. Otherwise returns `None`; call [`next_token`](GameReader::next_token) to
    /// read what follows. The reader must not be inside a variation.
    #[inline(always)]
    fn read_plain_move(&mut self) -> Option<&'a [u8]> {
        self.pass_numbers()?;
        let end = self.end_of_move_bytes(self.at + 1);
        let text = self.text.passed(self.at, end);
        let is_move = is_plain(text) || matches!(text, b"O-O" | b"O-O-O");
        if !is_move || self.text.get(end).is_some_and(|byte| may_go_on(*byte)) {
            return None;
        }
        self.at = end;
        self.moves += 1;
        Some(text)
    }

    /// Skips a comment in braces at the current offset. Returns `false` if none begins there, or if the comment is not
    /// closed.
    #[inline]
    pub(super) fn pass_closed_comment(&mut self) -> bool {
        self.text.get(self.at) == Some(&b'{') && self.pass_comment().is_ok()
    }

    /// Advances past `word`, which [`peek_word`](GameReader::peek_word) has just returned.
    #[inline(always)]
    pub fn take_word(&mut self, word: Word) {
        self.at += word.len();
        self.count_move();
    }

    /// Adds 1 to the reader's move count, unless the move that was just read belongs to a variation.
    #[inline(always)]
    fn count_move(&mut self) {
        self.moves += usize::from(self.depth == 0);
    }

    /// Returns the offset of the first byte at or after the offset `at` that is not a [move byte](is_move_byte).
    #[inline(always)]
    fn end_of_move_bytes(&self, at: usize) -> usize {
        let mut end = at;
        while self.text.get(end).is_some_and(|byte| is_move_byte(*byte)) {
            end += 1;
        }
        end
    }

    /// Reads the word at the current offset, which begins with a letter. Returns the token that the word forms, usually
    /// a move. If the word forms no token, skips it and returns `None`.
    #[inline]
    fn read_move(&mut self) -> Option<Token<'a>> {
        let offset = self.at;
        let end = self.end_of_move_bytes(offset + 1);
        let text = self.text.passed(offset, end);
        if is_plain(text) && !self.text.get(end).is_some_and(|byte| may_go_on(*byte)) {
            self.at = end;
            return Some(Token::Move { text, offset });
        }
        self.read_odd_move(end)
    }

    /// Reads a word that the fast path for plain moves does not handle, for example castling or a move followed by a
    /// symbol. The word begins with a letter or figurine at the current offset. `end` is the offset of its first byte
    /// that is not a [move byte](is_move_byte). If the word forms no token, skips it and returns `None`.
    #[cold]
    #[inline(never)]
    fn read_odd_move(&mut self, end: usize) -> Option<Token<'a>> {
        let offset = self.at;
        let word = self.text.passed(offset, self.end_of_move(offset, end));
        let text = &word[..word.len() - GameResult::glued_length(word)];
        self.at = offset + text.len();
        // Most words that are read here are castling.
        if matches!(text, b"O-O" | b"O-O-O") {
            return Some(Token::Move { text, offset });
        }
        // `O-1`, with the letter.
        if matches!(text[0], b'O' | b'o')
            && let Some(result) = GameResult::from_marker(text)
        {
            return self.end_of_game(result);
        }
        if is_piece(text)
            && let Some(token) = self.read_lone_piece(offset, text)
        {
            return Some(token);
        }
        match text {
            // These are part of a move (`exd6 e.p.`, `Qd3 ch`) or mark a novelty or a diagram.
            b"ep" | b"e.p." | b"e.p" | b"ch" | b"N" | b"TN" | b"D" | b"RR" => None,
            _ if is_null_move(text) => Some(Token::NullMove { offset }),
            _ => self
                .read_last_words(offset)
                .unwrap_or(Some(Token::Move { text, offset })),
        }
    }

    /// Reads a move with a blank between the letter of its piece and the rest, as in `N f3`. `piece` is this letter, at
    /// the offset `offset`. Returns `None` if the letter is a mark instead, or if nothing that could belong to a move
    /// follows it.
    ///
    /// The letters `N` and `D` can also mark a novelty or a diagram. They count as marks if they follow a move and no
    /// square follows them. In `e4 N f6`, the meaning of the letter is unclear, so it becomes [`Token::Unreadable`],
    /// unless an earlier move of the game was written like `2. N f3`.
    fn read_lone_piece(&mut self, offset: usize, piece: &'a [u8]) -> Option<Token<'a>> {
        let may_be_mark = matches!(piece, b"N" | b"D") && self.follows_move(offset);
        let rest = self.text.ahead(self.at);
        let mut gap = 0;
        loop {
            gap += match rest[gap..] {
                [byte, ..] if byte.is_ascii_whitespace() || b".,!?'`".contains(&byte) => 1,
                ref rest => match blank(rest).max(markup(rest)) {
                    0 => break,
                    length => length,
                },
            };
        }
        let rest = &rest[gap..];
        let word = without_marks(first_word(&rest[..rest.len().min(MAX_MARKER_LENGTH)]));
        let goes_on = gap > 0 && is_rest_of_move(word);
        if !goes_on {
            // After a move number, the letter is certainly not a mark.
            let is_odd = matches!(piece, b"N" | b"D") && !may_be_mark;
            return is_odd.then_some(Token::Unreadable {
                text: piece,
                offset,
            });
        }
        if may_be_mark && !self.has_lone_pieces {
            return Some(Token::Unreadable {
                text: piece,
                offset,
            });
        }
        self.has_lone_pieces = true;
        self.at += gap + word.len();
        let text = self.text.passed(offset, self.at);
        Some(Token::Move { text, offset })
    }

    /// Returns `true` if the word before `offset` is neither a move number nor part of the tags.
    fn follows_move(&self, offset: usize) -> bool {
        let before = self.text.behind(self.tags_end(), offset).trim_ascii_end();
        let last = before.rsplit(u8::is_ascii_whitespace).next();
        last.is_some_and(|word| !word.ends_with(b".") && !word.iter().all(u8::is_ascii_digit))
    }

    /// Reads the words at `offset` if they end a game: a result such as `White wins`, or an unknown word such as
    /// `remis` in place of the result.
    ///
    /// Returns the token for the end of the game, or `None` if the words do not end a game. If a termination marker
    /// follows a result in words, as in `White wins 1-0`, skips the words and returns `Some(None)`, because the game
    /// ends only with the marker.
    fn read_last_words(&mut self, offset: usize) -> Option<Option<Token<'a>>> {
        let rest = self.text.ahead(offset);
        let rest = &rest[..rest.len().min(MAX_WORDS_LENGTH)];
        let words = rest.iter().take_while(|byte| is_part_of_words(**byte));
        let length = words.count();
        let words = rest[..length].trim_ascii_end();
        let letters = words.iter().take_while(|byte| byte.is_ascii_alphabetic());
        let first = &words[..letters.count()];
        let result = GameResult::from_words(words);
        let end = offset + words.len();
        // A marker may follow without a blank, as in `White wins.1-0`.
        let marker = match &rest[length..] {
            [b'*', ..] => Some(1),
            rest => {
                let word = first_word(rest);
                GameResult::from_marker(word).map(|_| word.len())
            }
        };
        if result.is_some() && marker.is_some() {
            self.at = end;
            return Some(None);
        }
        let is_text =
            first.len() > 3 && !first.iter().all(|byte| b"KQRBNabcdefghxO".contains(byte));
        let end_of_marker = marker.map_or(end, |marker| offset + length + marker);
        if self.depth > 0
            || !self.tags_or_end_follow(end_of_marker)
            || !(result.is_some() || is_text && self.follows_move(offset))
        {
            return None;
        }
        self.at = end;
        if marker.is_some() {
            return Some(None);
        }
        Some(match result {
            Some(result) => self.end_of_game(result),
            None => Some(self.end_without_result()),
        })
    }

    /// Records that the current game ends with an unreadable result, and returns the token for the end of the game.
    fn end_without_result(&mut self) -> Token<'a> {
        self.has_unreadable_marker = true;
        Token::End(GameEnd::Complete(None))
    }

    /// Returns the offset at which the move that begins at `offset` ends. `end` is the offset of the first byte that is
    /// not a [move byte](is_move_byte). Parentheses, `e.p.`, dashes and multiplication signs at `end` may still belong
    /// to the move, as in `e8(Q)` and `e×d5`.
    fn end_of_move(&self, offset: usize, mut end: usize) -> usize {
        loop {
            let rest = self.text.ahead(end);
            let before = self.text.get(end - 1);
            let length = match *rest {
                // `N(f)d7`
                [b'(', b'a'..=b'h' | b'1'..=b'8', b')', next, ..]
                    if end == offset + 1 && is_move_byte(next) =>
                {
                    3
                }
                // `e8(Q)`, with the letters of any language. After other moves, this is a mark or a variation.
                [b'(', letter, b')', ..] if self.is_promoted(offset, end, letter) => 3,
                // `e8=♕`, `e8♕`, `e8(♕)`
                [b'(', ref piece @ ..]
                    if figurine(piece) > 0
                        && piece.get(figurine(piece)) == Some(&b')')
                        && self.is_promoted(offset, end, b'Q') =>
                {
                    figurine(piece) + 2
                }
                [0xe2, ..]
                    if figurine(rest) > 0
                        && !rest
                            .get(figurine(rest))
                            .is_some_and(u8::is_ascii_alphanumeric)
                        && self.is_promoted(offset, end, b'Q') =>
                {
                    figurine(rest)
                }
                [b'.', b'p', b'.', ..] if before == Some(&b'e') => 3,
                [b'.', b'p', ref next @ ..]
                    if before == Some(&b'e')
                        && !next.first().is_some_and(|byte| is_move_byte(*byte)) =>
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
            end = self.end_of_move_bytes(end + length);
        }
    }

    /// Returns `true` if a letter in parentheses after a move is the piece of a promotion, as in `e8(Q)`. This is the
    /// case if the text from `offset` to `end`, before the parenthesis, is a pawn move to the last rank, and if
    /// `letter` denotes a piece in one of the supported [languages](crate::chess::position::PieceLetters).
    fn is_promoted(&self, offset: usize, end: usize, letter: u8) -> bool {
        let pawn_move = self.text.behind(offset, end);
        let square = match pawn_move {
            [square @ .., b'=' | b'/'] => square,
            square => square,
        };
        matches!(pawn_move, [b'a'..=b'h' | b'P', ..])
            && matches!(square, [.., b'1' | b'8'])
            && b"NBRQSLTDPCFA".contains(&letter)
    }

    /// Reads a word that begins with a digit: a move number, a termination marker, or castling written with zeros.
    /// Returns the token that the word forms, or `None` for a word without a token, such as a move number.
    #[inline]
    fn read_number(&mut self) -> Option<Token<'a>> {
        let offset = self.at;
        let mut end = offset + 1;
        while self.text.get(end).is_some_and(u8::is_ascii_digit) {
            end += 1;
        }
        let digits = self.text.passed(offset, end);
        match self.text.get(end) {
            Some(b'-' | b'/' | b':' | b',' | 0x80..) => self.read_marker(end),
            Some(b'.') if digits == b"0" => self.read_marker(end),
            // `1.0-0.0` is a termination marker, `1.0-0` a move number and castling.
            Some(b'.') if digits == b"1" && self.text.ahead(offset).starts_with(b"1.0-0.0") => {
                self.read_marker(end)
            }
            // `1 - 0`
            Some(b' ' | b'\n' | b'\r' | b'\t' | 0x0c) if matches!(digits, [b'0' | b'1']) => {
                self.read_marker(end)
            }
            // `2 - 0`
            Some(b' ')
                if digits != b"0000" && matches!(self.text.get(end + 1), Some(b'-' | b':')) =>
            {
                self.read_marker(end)
            }
            _ => {
                // The common case is a move number with dots, often directly followed by the move.
                self.at = end;
                if (self.moves == 0 || digits == b"1")
                    && let Some(end) = self.end_before_number(offset)
                {
                    return Some(end);
                }
                match digits {
                    b"0000" => Some(Token::NullMove { offset }),
                    // Castling, because no move has the number 0.
                    text @ (b"00" | b"000")
                        if self.text.get(end) != Some(&b'.') && !self.is_fraction(offset) =>
                    {
                        Some(Token::Move { text, offset })
                    }
                    _ => None,
                }
            }
        }
    }

    /// Returns the token for the end of the current game if the move number at `offset` shows that moves are missing
    /// before it, or that another game begins there. Otherwise returns `None`.
    #[cold]
    fn end_before_number(&mut self, offset: usize) -> Option<Token<'a>> {
        match self.moves {
            0 => self.end_before_late_move(offset),
            // `1. e4 1. e5`
            1 => None,
            _ => self.end_before_first_move(offset),
        }
    }

    /// Ends the current game if the number at `offset` shows that its first moves are missing, and no tag contains a
    /// starting position. In this case, skips the moves and returns the token for the end of the game. Otherwise
    /// returns `None`. The caller must not have read a move of the game yet.
    fn end_before_late_move(&mut self, offset: usize) -> Option<Token<'a>> {
        if self.depth > 0 || self.is_broken || self.tags().fen().is_some() {
            return None;
        }
        let (number, is_black): MoveNumber = number_of_late_move(self.text.ahead(offset))?;
        Some(self.broken(FlawKind::NoStart { number, is_black }, offset))
    }

    /// Ends the current game if the number 1 of White's first move is at `offset`, after other moves. After a blank
    /// line, this number begins the next game. Elsewhere, the numbers may be wrong, so the rest of the moves is
    /// skipped. Returns the token for the end of the game, or `None` if another number is at `offset`.
    fn end_before_first_move(&mut self, offset: usize) -> Option<Token<'a>> {
        let mv = after_first_number(self.text.ahead(offset))?;
        let may_be_move = mv.first().is_some_and(u8::is_ascii_alphabetic) || figurine(mv) > 0;
        if self.depth > 0 || !may_be_move {
            return None;
        }
        let bracket = usize::from(self.text.get(offset - 1) == Some(&b'['));
        let before = self.text.behind(self.game, offset - bracket);
        let words = before.rsplit(u8::is_ascii_whitespace);
        let mut numbers = words
            .filter_map(leading_number)
            .filter(|(_, rest)| rest.starts_with(b"."));
        // `0. e4 e5 1. Nf3`
        if numbers.next().is_some_and(|(number, _)| number == 0) {
            return None;
        }
        if ends_with_blank_line(before) {
            self.at = offset - bracket;
            return Some(Token::End(GameEnd::Complete(None)));
        }
        (!self.is_broken).then(|| self.broken(FlawKind::SecondStart, offset))
    }

    /// Skips the rest of the current game, and returns the token that reports the flaw `reason` at `offset`.
    fn broken(&mut self, reason: FlawKind, offset: usize) -> Token<'a> {
        self.is_broken = true;
        self.skip_moves();
        Token::End(GameEnd::Broken(Flaw { reason, offset }))
    }

    /// Returns `true` if the zeros at `offset` are the decimal places of a number, such as the evaluation `0.00`.
    /// Returns `false` if they may be castling after a move number, as in `4.00`: if the number before the dot is that
    /// of the next move, or if the number of the next move is unknown.
    #[cold]
    fn is_fraction(&self, offset: usize) -> bool {
        let whole = self.text.behind(self.game, offset).strip_suffix(b".");
        let Some(number) = whole.and_then(trailing_number) else {
            return false;
        };
        // The number of the first move is unknown if the game has a `FEN` tag, and the number of moves in a variation
        // is not counted.
        let is_known = self.depth == 0 && self.tags().get(b"FEN").is_none();
        // A move of Black would follow three dots.
        let is_expected = self.moves.is_multiple_of(2) && number as usize == self.moves / 2 + 1;
        number == 0 || is_known && !is_expected
    }

    /// Reads a word that starts with digits and may be a termination marker such as `1-0`, or castling written with
    /// zeros. `end` is the offset after these digits. If the word forms no token, skips it and returns `None`.
    #[cold]
    fn read_marker(&mut self, end: usize) -> Option<Token<'a>> {
        let offset = self.at;
        let rest = self.text.ahead(offset);
        let word = first_word(&rest[..rest.len().min(MAX_MARKER_LENGTH)]);
        // Most games end with a marker of the PGN standard.
        if let Some(result) = GameResult::from_token(word) {
            self.at = offset + word.len();
            return self.end_of_game(result);
        }
        if let Some(end) = self.read_spaced_marker(rest) {
            return end;
        }
        let score = GameResult::match_score_length(rest);
        if score > 0 && self.depth == 0 && self.is_last(offset + score) {
            self.at = offset + score;
            return Some(self.end_without_result());
        }
        // `0-0` at the end of a game means that both sides lost if the `Result` tag is `0-0` too.
        let is_tag_loss =
            |tags: &Tags<'_>| tags.get(b"Result").is_some_and(GameResult::is_double_loss);
        let marker = match GameResult::from_marker(word) {
            None if GameResult::is_double_loss(word) && is_tag_loss(self.tags()) => self
                .is_last(offset + word.len())
                .then_some(GameResult::Unknown),
            marker => marker,
        };
        let marker = marker.or_else(|| GameResult::from_marker_among_signs(word));
        if let Some(result) = marker {
            self.at = offset + word.len();
            return self.end_of_game(result);
        }
        // Termination markers that are directly followed by other text, such as `1-0,` or `0-1[`.
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
        let end_of_digits = end;
        let end = self.end_of_move_bytes(end);
        let word = self.text.passed(offset, self.end_of_move(offset, end));
        let is_castling = match word.split_first() {
            Some((b'0', after)) => after.get(dash(after)) == Some(&b'0'),
            _ => false,
        };
        if !is_castling {
            // In `40-0`, a move number is glued to castling. In `10-0`, it may also be glued to half of a result.
            let digits = end_of_digits - offset;
            let castling = word[digits - 1..].strip_prefix(b"0").unwrap_or_default();
            if digits > 1 && word[..digits] != *b"10" && castling.get(dash(castling)) == Some(&b'0')
            {
                self.at = end_of_digits - 1;
                return self.end_before_number(offset);
            }
            self.at = offset + word.len();
            let text = word;
            if !text.iter().all(u8::is_ascii_digit) {
                return Some(Token::Unreadable { text, offset });
            }
            return self.end_before_number(offset);
        }
        let text = &word[..word.len() - GameResult::glued_length(word)];
        self.at = offset + text.len();
        Some(Token::Move { text, offset })
    }

    /// Reads a termination marker with blanks between its parts, such as `1 - 0`, at the current offset. `rest` is the
    /// text there. Returns the token for the end of the game, or `None` if `rest` does not begin with such a marker. In a
    /// variation, skips the marker and returns `Some(None)`, because a marker there does not end the game.
    fn read_spaced_marker(&mut self, rest: &[u8]) -> Option<Option<Token<'a>>> {
        let (result, length, is_last) = GameResult::spaced_marker(rest)?;
        let end = self.at + length;
        if is_last && !self.is_last(end) {
            return None;
        }
        self.at = end;
        Some(self.end_of_game(result))
    }

    /// Returns the token for the end of a game whose termination marker is `result`. Returns `None` inside a
    /// variation, because a marker there does not end the game.
    fn end_of_game(&self, result: GameResult) -> Option<Token<'a>> {
        (self.depth == 0).then_some(Token::End(GameEnd::Complete(Some(result))))
    }

    /// Reads a word that begins with neither an ASCII letter nor a digit. Examples are a move with a figurine (`♘f3`),
    /// a null move, a termination marker (`½-½`) and an annotation (`+-`). Any other word becomes
    /// [`Token::Unreadable`].
    ///
    /// Returns `None` for everything that is only skipped: a blank, an annotation, or a termination marker in a
    /// variation.
    #[cold]
    fn read_sign(&mut self) -> Option<Token<'a>> {
        let offset = self.at;
        let rest = self.text.ahead(offset);
        let blank = blank(rest);
        if blank > 0 {
            self.at += blank;
            return None;
        }
        let piece = figurine(rest);
        if piece > 0 {
            return self.read_odd_move(self.end_of_move_bytes(offset + piece));
        }
        if let Some(end) = self.read_spaced_marker(rest) {
            return end;
        }
        // A bar separates games or the cells of a table.
        if rest[0] == b'|' {
            self.at += 1;
            return None;
        }
        // Markdown escapes signs, as in `\$14`.
        if let [b'\\', next, ..] = rest
            && next.is_ascii_punctuation()
        {
            self.at += 1;
            return None;
        }
        let length = markup(rest);
        if length > 0 {
            self.at += length;
            return None;
        }
        // `[1]`
        if rest[0] == b']' && ends_with_number(self.text.behind(self.game, offset)) {
            self.at += 1;
            return None;
        }
        let text = first_word(rest);
        if text.is_empty() {
            // A bracket is neither a mark nor part of a result.
            self.at = offset + 1;
            let text = &rest[..1];
            return Some(Token::Unreadable { text, offset });
        }
        self.at = offset + text.len();
        if text.len() == WINDOW {
            // A longer word is neither a move nor a mark.
            while let Some(byte) = self.text.get(self.at)
                && !byte.is_ascii_whitespace()
                && !b"{}()[];*".contains(byte)
                && !(b"<&".contains(byte) && markup(self.text.ahead(self.at)) > 0)
            {
                self.at += 1;
            }
            return Some(Token::Unreadable { text, offset });
        }
        let last_word = match GameResult::from_last_word(text) {
            Some(result) if self.is_last(self.at) => Some(result),
            _ => None,
        };
        let marker = GameResult::from_marker(text).or(last_word);
        if let Some(result) = marker.or_else(|| GameResult::from_marker_among_signs(text)) {
            return self.end_of_game(result);
        }
        if let Some(length) = null_move(text) {
            // The marks after the null move are skipped like those of any move.
            self.at = offset + length;
            return Some(Token::NullMove { offset });
        }
        // The signs of `□Nf3` are glued to the move.
        let signs = if is_annotation(text) {
            text
        } else {
            &text[..signs_before_move(text)]
        };
        if !signs.is_empty() {
            self.at = offset + signs.len();
            // A sign directly after a move, as in `e5∆`, belongs to this move.
            let is_glued = offset > self.game
                && self
                    .text
                    .get(offset - 1)
                    .is_some_and(|byte| is_move_byte(*byte));
            if signs == text && is_glued {
                return None;
            }
            if !text_means_idea(signs) || !self.move_follows() || self.is_next_move(offset) {
                return None;
            }
            self.at = offset + text.len();
        }
        Some(Token::Unreadable { text, offset })
    }

    /// Returns `true` if the first word after the current offset looks like a move.
    fn move_follows(&self) -> bool {
        let rest = self.text.ahead(self.at).trim_ascii_start();
        looks_like_move(without_marks(first_word(rest)))
    }

    /// Returns `true` if the move at the current offset was certainly played in the game. An annotation at `offset`
    /// precedes the move. If this annotation is a sign such as ∆ ("with the idea"), the move may be only an idea of the
    /// annotator.
    ///
    /// The move was certainly played if a move number precedes the annotation, as in `2. ∆ Nf3`, or if a move would
    /// otherwise be missing between two move numbers, as in `1. e4 ∆ e5 2.`.
    fn is_next_move(&self, offset: usize) -> bool {
        let (before, word) = last_word(self.text.behind(self.game, offset));
        let first = match leading_number(word) {
            Some((_, dots)) if dots.iter().all(|byte| *byte == b'.') => return true,
            // `1.e4`
            Some((first, [b'.', next, ..])) if *next != b'.' => Some(first),
            Some(_) => None,
            None => leading_number(last_word(before).1)
                .filter(|(_, dots)| matches!(**dots, [] | [b'.']))
                .map(|(first, _)| first),
        };
        let rest = self.text.ahead(self.at).trim_ascii_start();
        let after = rest[first_word(rest).len()..].trim_ascii_start();
        let second =
            leading_number(first_word(after)).filter(|(_, dots)| matches!(**dots, [] | [b'.', ..]));
        first.is_some_and(|first| second.is_some_and(|(second, _)| second == first + 1))
    }
}

/// Splits a text before its last word. Returns the part before this word, and the word.
fn last_word(text: &[u8]) -> (&[u8], &[u8]) {
    let text = text.trim_ascii_end();
    let blank = text.iter().rposition(u8::is_ascii_whitespace);
    text.split_at(blank.map_or(0, |blank| blank + 1))
}

/// Splits a word into the number at its start and the rest of the word. Returns `None` if the word does not begin with
/// a digit, or if the number does not fit into 32 bits.
fn leading_number(word: &[u8]) -> Option<(u32, &[u8])> {
    let digits = word.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = str::from_utf8(&word[..digits]).ok()?.parse().ok()?;
    Some((number, &word[digits..]))
}

/// Returns the number that the digits at the end of `text` form. Returns `None` if there are no digits, or if the
/// number exceeds `u32::MAX`.
fn trailing_number(text: &[u8]) -> Option<u32> {
    let digits = text.iter().rev().take_while(|byte| byte.is_ascii_digit());
    let digits = &text[text.len() - digits.count()..];
    str::from_utf8(digits).ok()?.parse().ok()
}

/// Returns `true` if `text` ends with a number, which dots may follow.
fn ends_with_number(text: &[u8]) -> bool {
    let last = text.iter().rfind(|byte| **byte != b'.');
    last.is_some_and(u8::is_ascii_digit)
}

/// Returns the length in bytes of the Unicode signs before a move, as in the word `□Nf3`. Returns 0 if the rest of the
/// word is not a move.
fn signs_before_move(word: &[u8]) -> usize {
    let text = word.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let is_sign = |sign: char| {
        let is_dash = dash(sign.encode_utf8(&mut [0; 4]).as_bytes()) > 0;
        !sign.is_ascii() && !is_dash && is_annotation_sign(sign)
    };
    let mv = text.trim_start_matches(is_sign);
    let length = text.len() - mv.len();
    if looks_like_move(without_marks(&word[length..])) {
        length
    } else {
        0
    }
}

/// Returns `true` if `annotation` contains a sign such as `∆` ("with the idea"). The moves after such a sign were not
/// played in the game.
fn text_means_idea(annotation: &[u8]) -> bool {
    let text = str::from_utf8(annotation).unwrap_or_default();
    text.chars()
        .any(|sign| "\u{2206}\u{25b3}\u{394}\u{2207}\u{2313}\u{25b2}\u{25bd}".contains(sign))
}

/// Returns `true` if a word is certainly a complete move without annotations. Such a word ends with a square or a
/// check sign. Nearly all moves in PGN files are plain.
#[inline]
fn is_plain(word: &[u8]) -> bool {
    matches!(word, [.., before, b'1'..=b'8' | b'+' | b'#'] if !matches!(before, b'-' | b'/'))
}

/// Returns `true` if `word` is the letter or the figurine of a piece, in one of the supported
/// [languages](crate::chess::position::PieceLetters).
fn is_piece(word: &[u8]) -> bool {
    matches!(word, [letter] if b"KQRBNPSLTDCFA".contains(letter)) || figurine(word) == word.len()
}

/// Returns `true` if a word can be the rest of a move after the letter of its piece, such as `f3`, `xf3` or `bd2`.
fn is_rest_of_move(word: &[u8]) -> bool {
    matches!(word, [b'a'..=b'h' | b'1'..=b'8' | b'x' | b':' | b'-', ..])
        && word.len() < 16
        && GameResult::from_marker(word).is_none()
        && looks_like_move(&[b"N", word].concat())
}

/// Returns `true` if a word consists only of annotation signs, such as `+-`, `=`, `±`, `□` or `⇆`.
fn is_annotation(word: &[u8]) -> bool {
    // The plus-minus sign and the daggers in Windows-1252.
    let is_sign_byte = |byte: &u8| matches!(byte, 0x86 | 0x87 | 0xb1);
    word.utf8_chunks().all(|chunk| {
        chunk.valid().chars().all(is_annotation_sign) && chunk.invalid().iter().all(is_sign_byte)
    })
}

fn is_annotation_sign(sign: char) -> bool {
    match sign {
        // Unicode classifies the delta as a letter.
        '\u{394}' => true,
        _ if sign.is_ascii() => "+-=/~<>!?#,'\"^|".contains(sign),
        _ => !sign.is_alphanumeric() && !is_chess_piece(sign),
    }
}

fn is_chess_piece(sign: char) -> bool {
    ('\u{2654}'..='\u{265f}').contains(&sign)
}

impl<'a> GameReader<'a> {
    /// Reads the rest of the main line of the current game. Calls `f` with the text of each move, or with an empty
    /// slice for a null move. Returns how the game ended.
    pub fn rest_of_moves(&mut self, mut f: impl FnMut(&[u8])) -> GameEnd {
        self.without_variations(|reader| {
            loop {
                while let Some(text) = reader.read_plain_move() {
                    f(text);
                }
                if reader.pass_closed_comment() {
                    continue;
                }
                match reader.next_token() {
                    Token::End(end) => return end,
                    token => f(token.text()),
                }
            }
        })
    }

    /// Skips the rest of the current game, and returns how the game ended, like
    /// [`next_token`](GameReader::next_token) at the end of a game.
    pub fn skip_moves(&mut self) -> GameEnd {
        self.rest_of_moves(|_| {})
    }

    /// Counts the half-moves of the main line, from the current offset to the end of the game or to the first null
    /// move. Returns the number, and how the game ended.
    pub fn count_moves(&mut self) -> (usize, GameEnd) {
        let (mut plies, mut is_legal) = (0, true);
        let end = self.rest_of_moves(|text| {
            is_legal &= !text.is_empty();
            plies += usize::from(is_legal);
        });
        (plies, end)
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

    /// Reads the opening parenthesis of a variation at the current offset. If the caller wants variations, enters the
    /// variation and returns the token for its start. Otherwise skips the variation and returns `None`.
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
    pub(crate) fn leave_variation(&mut self) {
        self.depth -= 1;
        self.at -= 1;
        if self.depth == 0 || self.skip_variation().is_err() || self.at > self.variation_end {
            self.at = self.variation_end;
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
                reason: FlawKind::UnclosedVariation,
                offset: at,
            })
        };
        let mut depth = 0usize;
        let mut comment_end = None;
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
                    Ok(true) => {
                        comment_end = Some(self.at);
                        continue;
                    }
                    Ok(false) => {}
                    Err(next) => return Err(self.comment_not_closed(next)),
                },
                b'[' if self.is_tag_or_bad_line() => return Err(unclosed(open)),
                b'<' | b'&' | b'[' if self.pass_markup() => continue,
                // A comment up to the end of the line may end with a termination marker.
                b'\n' | b'\r' if comment_end != Some(self.at) && self.is_end_of_game_line() => {
                    return Err(unclosed(open));
                }
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
        let rest = self.text.ahead(self.at);
        let rest = rest.strip_prefix(b"\r").unwrap_or(rest);
        let rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        let next_is_blank = matches!(rest.first(), None | Some(b'\n' | b'\r'));
        let before = self.text.behind(0, self.at);
        let line = memrchr2(b'\n', b'\r', before).map_or(0, |end| end + 1);
        next_is_blank && ends_game(&before[line..])
    }

    /// Ends the current game because the comment at the current offset is not closed. Advances the reader to `next`,
    /// the offset of the next game. Returns a [`GameEnd`] that reports the unclosed comment.
    pub(super) fn comment_not_closed(&mut self, next: usize) -> GameEnd {
        let offset = self.at;
        self.at = next;
        GameEnd::Broken(Flaw {
            reason: FlawKind::UnclosedComment,
            offset,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use shakmaty::Chess;

    use super::*;
    use crate::chess::position::{read_move, read_word};

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

    /// Returns the words of the main line and their offsets. With `peeks`, words that are moves of the starting
    /// position are read with [`GameReader::peek_word`], closed comments are skipped with
    /// [`GameReader::pass_closed_comment`], and all others are read with [`GameReader::next_token`].
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
                if peeks && games.pass_closed_comment() {
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

    /// Returns the texts of the moves of each game, how the game ended, and the offset after it.
    fn rests(
        text: &[u8],
        read: impl Fn(&mut GameReader<'_>, &mut Vec<String>) -> GameEnd,
    ) -> Vec<(Vec<String>, GameEnd, usize)> {
        let mut games = GameReader::new(text);
        let mut rests = Vec::new();
        while games.next_game() {
            let mut moves = Vec::new();
            let end = read(&mut games, &mut moves);
            rests.push((moves, end, games.at));
        }
        rests
    }

    #[track_caller]
    fn check(text: &str) {
        let [peeked, read] = [true, false].map(|peeks| words(text.as_bytes(), peeks));
        assert_eq!(peeked, read, "{text}");
        let say = |text: &[u8]| text.escape_ascii().to_string();
        let at_once = rests(text.as_bytes(), |reader, moves| {
            reader.rest_of_moves(|text| moves.push(say(text)))
        });
        let one_by_one = rests(text.as_bytes(), |reader, moves| {
            loop {
                match reader.next_token() {
                    Token::End(end) => return end,
                    token => moves.push(say(token.text())),
                }
            }
        });
        assert_eq!(at_once, one_by_one, "{text}");
    }

    #[test]
    fn all_ways_to_read_find_the_same_ends() {
        for text in [
            "12. e4 e5 1-0 1. d4 *",
            "12... e4 2-0 5-0 1. d4 *",
            "12 {x} (13. e4) e5 {2. *} 13. -- 1-0 1. d4 *",
            "1. e4 e5\n[A \"-\"]\n2. Nf3 (2. d4) Nc6\n[B \"{\"]\n[C \"\"]\n\n3. Bb5 1-0 1. d4 *",
            "1. e4 e5\n[A \"\"]\n3. Nf3 Nc6 1-0",
            "1. e4 e5 (1... c5 2. Nf3)\n[A \"\"]\n[FEN \"8/8 w\"]\n2. Nf3 1-0",
            "1. e4 <br>&nbsp;e5[/b] <a href=\"1-0\"> 1-0",
            "1. e4 ‘1-0’ 1. d4 ½-½∆ 1. c4 <1-0> 1. a4 [1-0] *",
            "[1] e4 e5 [2] Nf3 1-0 [1] d4 *",
            "1. e4 N f6 2. N\u{200b}f3 1-0",
            "1. e4\x1a\0 e5\x1a1-0",
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
            check(text);
        }
    }

    /// Returns the tokens of the main lines in a text, each with the offset after it, and the offset after each game.
    /// If `most` is a number, the reader enters variations, and leaves those that are nested deeper at once.
    fn main_lines(text: &[u8], most: Option<usize>) -> Vec<(String, usize)> {
        let mut reader = GameReader::new(text).with_variations(most.is_some());
        let mut tokens = Vec::new();
        while reader.next_game() {
            let mut depth = 0;
            loop {
                let token = reader.next_token();
                match token {
                    Token::BeginVariation if most.is_some_and(|most| depth < most) => depth += 1,
                    Token::BeginVariation => reader.leave_variation(),
                    Token::EndVariation => depth -= 1,
                    _ if depth == 0 => tokens.push((format!("{token:?}"), reader.at)),
                    _ => {}
                }
                if let Token::End(_) = token {
                    assert_eq!(depth, 0, "the game ends in a variation");
                    break;
                }
            }
        }
        tokens
    }

    #[track_caller]
    fn check_variations(text: &[u8]) {
        let skipped = main_lines(text, None);
        for most in [0, 1, 2, usize::MAX] {
            let entered = main_lines(text, Some(most));
            assert_eq!(entered, skipped, "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn a_variation_ends_at_one_offset() {
        let long = "x".repeat(WINDOW);
        for variation in [
            "(1. d4\n[x)",
            "(1. d4\n[x)\n[y",
            "(1. d4 [url=)] d5",
            "(1. d4 [url=(] d5)",
            "(1. d4 (1. c4 [b]) [url=)] d5",
            "(1. d4 (\n[x) d5",
            &format!("({long}<a href=\"(\"> d5)"),
            &format!("({long}&nbsp;) d5\n"),
        ] {
            for rest in [
                "",
                " e5 1-0",
                "\n[Event \"y\"]\n\n1. d4 *",
                "\n\n[Event \"y\"]\n\n1. d4 *",
            ] {
                check_variations(format!("1. e4 {variation}{rest}").as_bytes());
            }
        }
    }

    #[test]
    fn tags_after_an_unclosed_variation_begin_a_game() {
        let text = b"1. e4 (1. d4\n[FEN 8/8]\n[Event \"y\"]\n\n1. d4 *";
        let mut games = GameReader::new(text);
        assert!(games.next_game());
        assert!(matches!(games.skip_moves(), GameEnd::Broken(_)));
        assert!(games.next_game());
        assert_eq!(games.tags().get(b"FEN"), Some(&b"8/8"[..]));
    }

    #[test]
    fn a_new_game_is_outside_of_variations() {
        let mut games = GameReader::new(b"1. e4 (1. d4 d5) 1-0").with_variations(true);
        assert!(games.next_game());
        while games.next_token() != Token::BeginVariation {}
        assert!(games.next_game());
        while !matches!(games.next_token(), Token::End(_)) {}
        assert_eq!(games.offset(), "1. e4 (1. d4 d5) 1-0".len());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        #[test]
        fn variations_do_not_change_the_main_line(
            parts in proptest::collection::vec(
                prop_oneof![
                    proptest::sample::select(&[
                        "(", ")", "(", ")", "(1. d4 ", "1. e4 ", "e5", " ", "\n", "\n\n", "1-0", "*", "N", "e8", "--",
                    ][..]),
                    proptest::sample::select(&[
                        "[", "\n[", "]", "\n[x", "\n[x)", "\n[x(\n", "\n[FEN 8/8", "[url=", "[url=)]", "[url=(]", "[/pgn]",
                        "[1]", "[%clk 1]", "[A \"\"]", "\n[A \"x\"]\n", "\n[A \"x", "\n[Event \"y\"]\n\n1. d4 ", "[A '(']",
                        "[i=\"x\"]",
                    ][..]),
                    proptest::sample::select(&[
                        "{", "}", "{(}", "{)}", ";", "\n%", "%", "<a href=\"(\">", "<a href=\")\">", "&nbsp;", "<", "&", "\\",
                        "(Q)", "(b)", "\u{2655}", "(\u{2655})", "$1", "1 - 0", "0-0", "White wins", "\u{2206}", "=", "\u{a0}",
                    ][..]),
                    Just(LONG_WORD),
                ],
                0..24,
            ),
        ) {
            check_variations(format!("1. e4 (1. d4 {}", parts.concat()).as_bytes());
        }
    }

    /// A word that is longer than the window of the reader.
    const LONG_WORD: &str = match str::from_utf8(&[b'='; WINDOW + 1]) {
        Ok(word) => word,
        Err(_) => "",
    };

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        #[test]
        fn all_ways_to_read_find_the_same_moves(
            parts in proptest::collection::vec(
                proptest::sample::select(&[
                    "1", "0", "-", ":", "/", "1/2", "0.5", "0,5", "½", "–", " ", "\n", "\u{a0}", ",", ".", "=", "+", "*",
                    "e4", "e.p.", "O-O", "0-0", "1-0", "24", " 2. Nf3 ", "O-O-O", "d8=Q+", "\n\n", "(", ")", "(Q)", "{", "}", ";", "e8", "N", "[x]", "$1", "!",
                    "--", "\u{2026}", "[A \"\"]\n", "\n[A \"-\"]\n2. ", "2. ", "12. ", "<br />", "&nbsp;", "[/b]", "[2]", "\0", "\u{2019}", "\\", "%", "\u{25a1}", "x", "♘f3", "draw", "White wins", "remis",
                    " words that are far too long for a result of a game of chess ", "2-0", "\u{2206}",
                ][..]),
                0..16,
            ),
        ) {
            check(&format!("1. e4 {}", parts.concat()));
        }
    }
}

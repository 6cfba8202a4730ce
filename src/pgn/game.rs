//! Reading one game after another from a stretch of PGN: where games begin, and their tags. Their moves
//! are read in [`movetext`](super::movetext) and passed over in [`skip`](super::skip).

use memchr::memchr;

use super::{
    comment::{CommentEnd, Comments, REACH},
    result::GameResult,
    tags::{
        Tags, end_of_bad_tag, is_bad_tag_line, is_followed_by_tag, is_tag_start, line_end, read_tag,
    },
    word::{blank, first_word, without_marks},
};
use crate::position::looks_like_move;

/// Reads the games of a stretch of PGN that begins and ends at game boundaries.
///
/// After [`next_game`](GameReader::next_game) the tags are known; then
/// [`next_token`](GameReader::next_token) gives the main line until it returns
/// [`Token::End`](super::Token::End). [`skip_moves`](GameReader::skip_moves) passes over the rest of a
/// game at once.
#[derive(Debug)]
pub struct GameReader<'a> {
    pub(super) text: &'a [u8],
    pub(super) at: usize,
    tags: Tags<'a>,
    pub(super) game: usize,
    first_tag: Option<usize>,
    tags_end: usize,
    /// Where the first comment is between the last tag and the moves.
    pub(super) first_comment: Option<usize>,
    stray_text: Option<usize>,
    bad_tag: Option<usize>,
    pub(super) comments: Comments,
    /// Whether the moves of variations are wanted.
    pub(super) with_variations: bool,
    /// How many variations enclose the place that has been reached. Always 0 if none are wanted.
    pub(super) depth: usize,
    /// Where the outermost of them ends.
    pub(super) variation_end: usize,
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
            tags_end: 0,
            first_comment: None,
            stray_text: None,
            bad_tag: None,
            comments: Comments::default(),
            with_variations: false,
            depth: 0,
            variation_end: 0,
        }
    }

    /// Whether [`next_token`](GameReader::next_token) gives the moves of variations too, between
    /// [`Token::BeginVariation`](super::Token::BeginVariation) and
    /// [`Token::EndVariation`](super::Token::EndVariation). Default: no, variations are passed over.
    pub fn with_variations(mut self, wanted: bool) -> GameReader<'a> {
        self.with_variations = wanted;
        self
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

    /// Where the bracket of the present game's first tag is, `None` for a game without tags.
    pub fn first_tag_offset(&self) -> Option<usize> {
        self.first_tag
    }

    /// Where the last tag of the present game ends; where the game begins if it has none.
    pub(crate) fn tags_end(&self) -> usize {
        self.tags_end
    }

    /// The offset of the first text that is not part of any game.
    pub fn stray_text(&self) -> Option<usize> {
        self.stray_text
    }

    /// Returns the offset of the first line among tags that is no tag pair, or `None` if there was no such line. The line
    /// was passed over; the tags before and after it belong to one game.
    pub fn bad_tag(&self) -> Option<usize> {
        self.bad_tag
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
        self.first_comment = None;
        loop {
            self.skip_between_games();
            let Some(&byte) = self.text.get(self.at) else {
                return false;
            };
            self.game = self.at;
            self.tags_end = self.at;
            if byte == b'[' && is_tag_start(self.text, self.at) {
                self.first_tag = Some(self.at);
                self.read_tags();
                return true;
            }
            if moves_begin(&self.text[self.at..]) {
                return true;
            }
            if byte == b'[' {
                self.pass_bad_tag();
                continue;
            }
            self.stray_text.get_or_insert(self.at);
            self.at = line_end(self.text, self.at);
        }
    }

    /// Skips blanks, comments and escaped lines before a game.
    fn skip_between_games(&mut self) {
        while let Some(&byte) = self.text.get(self.at) {
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c => self.at += 1,
                // Also a byte order mark, where files with one were joined.
                0x80.. if blank(&self.text[self.at..]) > 0 => {
                    self.at += blank(&self.text[self.at..]);
                }
                _ => match self.pass_comment() {
                    Ok(true) => {}
                    Ok(false) => return,
                    Err(end) => self.at = end,
                },
            }
        }
    }

    /// Goes past a comment, or an escaped line, if one begins here, and says whether one does. The error is where the
    /// next game begins after a comment that is not closed.
    pub(super) fn pass_comment(&mut self) -> Result<bool, usize> {
        self.at = match self.text.get(self.at) {
            Some(b'{') => match self.comments.end_of(self.text, self.at) {
                CommentEnd::Closed(end) => end,
                CommentEnd::Unclosed(next) => return Err(next),
            },
            Some(b';') => line_end(self.text, self.at),
            Some(b'%') if self.is_line_start() => line_end(self.text, self.at),
            _ => return Ok(false),
        };
        Ok(true)
    }

    pub(super) fn is_line_start(&self) -> bool {
        self.at == 0 || matches!(self.text[self.at - 1], b'\n' | b'\r')
    }

    /// Returns `true` if the bracket at the current offset begins the tags of the next game.
    pub(super) fn tags_begin_here(&self) -> bool {
        is_tag_start(self.text, self.at)
            || (self.is_line_start() && is_bad_tag_line(self.text, self.at))
    }

    /// Goes past a bracket that begins no tag pair.
    #[cold]
    fn pass_bad_tag(&mut self) {
        self.bad_tag.get_or_insert(self.at);
        self.at = end_of_bad_tag(self.text, self.at);
    }

    /// Returns `true` if nothing but comments comes after `at` in the present game: the text ends, or a blank line or the
    /// next tags follow.
    pub(super) fn is_last(&self, at: usize) -> bool {
        let mut rest = &self.text[at..];
        let mut breaks = 0;
        loop {
            match *rest {
                [] => return true,
                [b'\r', b'\n', ..] => {
                    breaks += 1;
                    rest = &rest[2..];
                }
                [b'\n' | b'\r', ..] => {
                    breaks += 1;
                    rest = &rest[1..];
                }
                [b' ' | b'\t', ..] => rest = &rest[1..],
                [b'[', ..] => return breaks > 0,
                [b'{', ..] => match memchr(b'}', &rest[..rest.len().min(REACH)]) {
                    Some(close) => rest = &rest[close + 1..],
                    None => return rest.len() <= REACH,
                },
                _ if blank(rest) > 0 => rest = &rest[blank(rest)..],
                _ => return false,
            }
            if breaks > 1 {
                return true;
            }
        }
    }

    /// Returns `true` if a move that cannot be played, which has just been read as `text`, is the result of a game that
    /// both sides lost: `0-0` as the last word.
    pub(crate) fn is_double_loss(&self, text: &[u8]) -> bool {
        GameResult::is_double_loss(text) && self.is_last(self.at)
    }

    /// Reads tag pairs, one or several a line, with blank, escaped and comment lines among them. Passes over lines that are
    /// no tag pairs: those that begin with a bracket, and a line of other text directly between two tags.
    fn read_tags(&mut self) {
        let mut blank_line = false;
        loop {
            match read_tag(self.text, self.at) {
                // The tags of a game without moves end where the next game's begin.
                Some((tag, _)) if self.tags.end_before(tag, blank_line) => return,
                Some((tag, end)) => {
                    self.tags.push(tag);
                    self.at = end;
                }
                None if self.text.get(self.at) == Some(&b'[') => self.pass_bad_tag(),
                None => return,
            }
            self.tags_end = self.at;
            self.first_comment = None;
            let mut breaks = 0;
            loop {
                match self.text.get(self.at) {
                    Some(b' ' | b'\t' | b']') => self.at += 1,
                    Some(b'\r') if self.text.get(self.at + 1) == Some(&b'\n') => self.at += 1,
                    Some(b'\n' | b'\r') => {
                        breaks += 1;
                        self.at += 1;
                    }
                    _ => {
                        let start = self.at;
                        match self.pass_comment() {
                            Ok(true) if self.text[start] == b'{' => {
                                self.first_comment.get_or_insert(start);
                            }
                            Ok(true) => {}
                            Ok(false) if self.text.get(start) == Some(&b'[') => break,
                            Ok(false) if blank(&self.text[start..]) > 0 => {
                                self.at += blank(&self.text[start..]);
                            }
                            Ok(false)
                                if breaks == 1
                                    && is_followed_by_tag(self.text, start)
                                    && !moves_begin(&self.text[start..]) =>
                            {
                                self.pass_bad_tag();
                                self.at = line_end(self.text, self.at);
                            }
                            Ok(false) => break,
                            // The moves will find it again and say so.
                            Err(_) => return,
                        }
                    }
                }
            }
            blank_line = breaks > 1;
        }
    }
}

/// Returns `true` if a text starts with moves rather than text of another kind: with a termination marker, a move, or a
/// move number with one of the two after it.
pub(super) fn moves_begin(text: &[u8]) -> bool {
    let is_between = |at: usize| match text.get(at) {
        Some(b'.' | b' ' | b'\n' | b'\r') => 1,
        Some(0x80..) => blank(&text[at..]),
        _ => 0,
    };
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let is_number = digits > 0 && is_between(digits) > 0;
    let mut at = if is_number { digits } else { 0 };
    while is_between(at) > 0 {
        at += is_between(at);
    }
    let word = first_word(&text[at..]);
    GameResult::from_marker(word).is_some()
        // `0.5-0.5` begins like a move number.
        || GameResult::from_marker(first_word(text)).is_some()
        || looks_like_move(without_marks(word))
        || word.first() == Some(&b'*')
        // A move number with its dot, whatever follows.
        || (is_number && matches!(text[digits], b'.' | 0x80..))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::pgn::Token;

    /// Every game is read by `f`; returns how many there are. Ends, whatever the text.
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

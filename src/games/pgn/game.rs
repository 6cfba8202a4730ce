//! Reads the games of a PGN text one after another: finds where each game begins, and reads its tags. The module
//! [`movetext`](super::movetext) reads and skips the moves.
//!
//! [`Comments`] finds the ends of comments. A comment in braces may contain anything, even line breaks, blank lines and
//! tag pairs. However, if a comment is never closed, tags after its opening brace belong to the next game. To tell the
//! two cases apart, each line of a comment that could begin a game is examined. If another comment opens between this
//! line and the next closing brace, or if there is no closing brace within [`MAX_COMMENT_DISTANCE`], the comment counts
//! as unclosed, and the next game begins at this line.

use memchr::memchr2;

use super::{
    result::GameResult,
    tags::{
        BadTagLines, MoveNumber, Movetext, NextLines, Tag, Tags, beginning_of_moves,
        bracketed_number, damaged_start_tag, end_of_bad_tag, ends_game, find_first_move,
        first_move_follows, first_tag, is_tag_start, moves_begin, number_after_tags, read_tag,
        tag_on_next_lines, tag_text,
    },
    text::Text,
    word::{blank, first_word, is_control, markup},
};
use crate::chess::position::Variant;

/// The kind of text at the beginning of a game.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Beginning {
    Tag,
    Number,
    Move,
}

/// A reader of the games in a PGN text. The text must begin and end at game boundaries.
///
/// Call [`next_game`](GameReader::next_game) to advance to a game and read its tags. Then call
/// [`next_token`](GameReader::next_token) for each move of the main line until it returns
/// [`Token::End`](super::Token::End). Alternatively, call [`skip_moves`](GameReader::skip_moves) to skip the moves.
#[derive(Debug)]
pub struct GameReader<'a> {
    pub(super) text: Text<'a>,
    /// The offset of the next byte to read.
    pub(super) at: usize,
    tags: Tags<'a>,
    /// The offset at which the current game begins.
    pub(super) game: usize,
    /// The offset of the opening bracket of the current game's first tag, or `None` if the game has no tags.
    first_tag: Option<usize>,
    /// The offset at which the current game's last tag ends.
    tags_end: usize,
    /// The offset of the first comment between the last tag and the moves.
    pub(super) first_comment: Option<usize>,
    /// The offset of the first text that was skipped because it does not belong to a game.
    stray_text: Option<usize>,
    /// The offset of the first line between tags that was skipped because it is not a tag pair.
    bad_tag: Option<usize>,
    /// The end of the line that [`line_between_tags`](GameReader::line_between_tags) returned last.
    line_end: usize,
    /// Whether the moves of the current game end with a result that cannot be read.
    pub(super) has_unreadable_marker: bool,
    pub(super) comments: Comments,
    bad_tag_lines: BadTagLines,
    /// Whether the caller wants the moves of variations.
    pub(super) with_variations: bool,
    /// The number of variations that contain the current offset. Always 0 if the caller does not want variations.
    pub(super) depth: usize,
    /// The offset at which the outermost variation that contains the current offset ends.
    pub(super) variation_end: usize,
    /// The number of moves of the current game's main line that have been read, including null moves.
    pub(super) moves: usize,
    /// How the last game began, or `None` before the first game.
    beginning: Option<Beginning>,
    /// The offset of the asterisks that end the current Markdown emphasis, as in `*Nf3*`. `None` outside of emphasis.
    pub(super) emphasis_end: Option<usize>,
    /// Whether the current game contains a move with a blank after the letter of its piece, such as `N f3`.
    pub(super) has_lone_pieces: bool,
    /// Whether the moves of the current game are damaged, so that the rest of them is skipped.
    pub(super) is_broken: bool,
}

impl<'a> GameReader<'a> {
    /// Creates a reader of the games in `text`. The text must not begin in the middle of a game.
    pub fn new(text: &'a [u8]) -> GameReader<'a> {
        GameReader {
            text: Text::new(text),
            at: 0,
            tags: Tags::default(),
            game: 0,
            first_tag: None,
            tags_end: 0,
            first_comment: None,
            stray_text: None,
            bad_tag: None,
            line_end: 0,
            has_unreadable_marker: false,
            comments: Comments::default(),
            bad_tag_lines: BadTagLines::default(),
            with_variations: false,
            depth: 0,
            variation_end: 0,
            moves: 0,
            beginning: None,
            emphasis_end: None,
            has_lone_pieces: false,
            is_broken: false,
        }
    }

    /// Sets whether [`next_token`](GameReader::next_token) also returns the moves of variations. It returns them
    /// between [`Token::BeginVariation`](super::Token::BeginVariation) and
    /// [`Token::EndVariation`](super::Token::EndVariation). By default, it skips variations.
    pub fn with_variations(mut self, wanted: bool) -> GameReader<'a> {
        self.with_variations = wanted;
        self
    }

    /// Sets the variant that [`Tags::variant`] returns for games without a `Variant` tag. The default is standard
    /// chess.
    pub fn with_untagged_variant(mut self, variant: Variant) -> GameReader<'a> {
        self.tags.untagged = variant;
        self
    }

    /// Returns the tags of the current game.
    #[inline]
    pub fn tags(&self) -> &Tags<'a> {
        &self.tags
    }

    /// Returns the offset in the text at which the current game begins. If the game has tags, this is the offset of the
    /// opening bracket of the first tag. Otherwise it is the offset of the first move or move number.
    pub fn game_offset(&self) -> usize {
        self.game
    }

    /// Returns the offset of the opening bracket of the current game's first tag, or `None` if the game has no tags.
    pub fn first_tag_offset(&self) -> Option<usize> {
        self.first_tag
    }

    /// Returns the offset in the text at which the last tag of the current game ends. If the game has no tags, returns
    /// the offset at which the game begins.
    pub(crate) fn tags_end(&self) -> usize {
        self.tags_end
    }

    /// Returns the offset of the first text that the reader skipped because it does not belong to any game. Returns
    /// `None` if the reader has not found such text so far.
    pub fn stray_text(&self) -> Option<usize> {
        self.stray_text
    }

    /// Returns the offset of the first line between tags that the reader skipped because it is not a tag pair.
    /// Returns `None` if the reader has not found such a line so far. The tags before and after the line belong to
    /// the same game.
    pub fn bad_tag(&self) -> Option<usize> {
        self.bad_tag
    }

    /// Resets [`stray_text`](GameReader::stray_text) and [`bad_tag`](GameReader::bad_tag) to `None`.
    pub(crate) fn forget_skipped(&mut self) {
        (self.stray_text, self.bad_tag) = (None, None);
    }

    /// Returns the offset in the text of the next byte that will be read.
    pub fn offset(&self) -> usize {
        self.at
    }

    /// Advances to the next game and reads its tags. Returns `false` at the end of the text. The caller must already
    /// have read or skipped the moves of the current game.
    pub fn next_game(&mut self) -> bool {
        self.tags.clear();
        self.has_unreadable_marker = false;
        self.has_lone_pieces = false;
        self.is_broken = false;
        self.first_tag = None;
        self.first_comment = None;
        self.depth = 0;
        self.emphasis_end = None;
        let end_of_last = self.at;
        loop {
            self.skip_between_games();
            let Some(&byte) = self.text.get(self.at) else {
                return false;
            };
            self.game = self.at;
            self.moves = 0;
            self.tags_end = self.at;
            if byte == b'[' && is_tag_start(self.text, self.at) {
                self.begin_with_tags();
                return true;
            }
            let ahead = self.text.ahead(self.at);
            let skipped = match beginning_of_moves(ahead) {
                Some(Movetext::Number) => {
                    self.beginning = Some(Beginning::Number);
                    return true;
                }
                Some(Movetext::Move) if self.moves_may_begin(end_of_last) => {
                    self.beginning = Some(Beginning::Move);
                    return true;
                }
                Some(Movetext::Move) => first_word(ahead).len().max(1),
                // A marker without tags or moves is not a game.
                Some(Movetext::Marker(length)) => length,
                None => 0,
            };
            if skipped > 0 {
                self.stray_text.get_or_insert(self.at);
                self.at += skipped;
                continue;
            }
            if byte == b'[' {
                // A damaged `FEN` or `Variant` tag also begins a game, because the text of the game must include this
                // tag.
                if self.damaged_start_tag().1.is_some() {
                    self.begin_with_tags();
                    return true;
                }
                self.pass_bad_tag();
                continue;
            }
            // Other text may precede a tag in its line.
            self.stray_text.get_or_insert(self.at);
            let line = self.line_between_tags();
            self.at += first_tag(line).unwrap_or(line.len());
        }
    }

    fn begin_with_tags(&mut self) {
        self.beginning = Some(Beginning::Tag);
        self.first_tag = Some(self.at);
        self.read_tags();
    }

    /// Returns `true` if a move at the current offset begins a game, although neither tags nor a move number precede
    /// it. This is only possible for the first move of the text, and after a game that began in the same way and ended
    /// on an earlier line. Any other move after a game is a note, as in `1-0 Nf3 wins faster`. `end_of_last` is the
    /// offset at which the last game ended.
    fn moves_may_begin(&self, end_of_last: usize) -> bool {
        match self.beginning {
            None => true,
            Some(Beginning::Move) => {
                let between = self.text.behind(end_of_last, self.at);
                memchr2(b'\n', b'\r', between).is_some()
            }
            Some(Beginning::Tag | Beginning::Number) => false,
        }
    }

    /// Skips blanks, comments, markup, and lines that begin with the escape character `%`. Stops at the next game.
    fn skip_between_games(&mut self) {
        while let Some(&byte) = self.text.get(self.at) {
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c => self.at += 1,
                // A byte order mark counts as a blank, because files that begin with one may have been concatenated.
                _ if (!byte.is_ascii() || is_control(byte)) && self.pass_blank() => {}
                b'<' | b'[' | b'&' if self.pass_stray_markup() => {}
                _ => match self.pass_comment() {
                    Ok(true) => {}
                    // `%0A`
                    Ok(false) if self.pass_blank() => {}
                    Ok(false) => return,
                    Err(end) => {
                        self.stray_text.get_or_insert(self.at);
                        self.at = end;
                    }
                },
            }
        }
    }

    /// Skips an [unusual blank](blank) at the current offset. Returns `false` if there is none.
    fn pass_blank(&mut self) -> bool {
        let length = blank(self.text.ahead(self.at));
        self.at += length;
        length > 0
    }

    /// Skips markup such as `<br />` or `[/pgn]` at the current offset. Returns `false` if there is none.
    pub(super) fn pass_markup(&mut self) -> bool {
        let length = markup(self.text.ahead(self.at));
        self.at += length;
        length > 0
    }

    /// Skips markup outside of movetext at the current offset, and records its offset as that of text that belongs to
    /// no game. Returns `false` if there is no markup.
    fn pass_stray_markup(&mut self) -> bool {
        let start = self.at;
        let is_markup = self.pass_markup();
        if is_markup {
            self.stray_text.get_or_insert(start);
        }
        is_markup
    }

    /// Skips a comment or a line that begins with the escape character `%`, if one begins at the current offset.
    /// Returns `false` if neither begins there.
    ///
    /// # Errors
    ///
    /// If the comment is not closed, returns the offset of the next game as an error.
    pub(super) fn pass_comment(&mut self) -> Result<bool, usize> {
        self.at = match self.text.get(self.at) {
            Some(b'{') => match self.comments.end_of(self.text, self.at) {
                CommentEnd::Closed(end) => end,
                CommentEnd::Unclosed(next) => return Err(next),
            },
            Some(b';') => self.text.line_end(self.at),
            Some(b'%') if self.is_line_start() => self.text.line_end(self.at),
            _ => return Ok(false),
        };
        Ok(true)
    }

    /// Returns `true` if the current offset is the start of a line.
    pub(super) fn is_line_start(&self) -> bool {
        self.at == 0 || matches!(self.text.get(self.at - 1), Some(b'\n' | b'\r'))
    }

    /// Returns `true` if the bracket at the current offset begins the tags of a new game. If the moves of the current
    /// game [go on](GameReader::moves_go_on) after a tag, skips the tag and returns `false`.
    #[cold]
    pub(super) fn tags_begin_here(&mut self) -> bool {
        // A game does not end where it begins, as with the bracket of a move number above the tags of the next game.
        if self.at == self.game || !self.is_tag_or_bad_line() {
            return false;
        }
        if !self.moves_go_on() {
            return true;
        }
        self.stray_text.get_or_insert(self.at);
        self.at = match read_tag(self.text, self.at) {
            Some((_, end)) => end,
            None => self.text.line_end(self.at),
        };
        false
    }

    /// Returns `true` if the bracket at the current offset begins a tag pair, or a damaged line before tag pairs.
    pub(super) fn is_tag_or_bad_line(&mut self) -> bool {
        is_tag_start(self.text, self.at)
            || self.is_line_start() && self.bad_tag_lines.contain(self.text, self.at)
    }

    /// Returns `true` if the current game continues after the tags at the current offset, because the move number after
    /// them is the number of its next move. The tags then do not begin a new game.
    fn moves_go_on(&self) -> bool {
        self.depth == 0
            && number_after_tags(self.text, self.at)
                .is_some_and(|number| Some(number) == self.next_number())
    }

    /// Returns the number of the next move of the main line. Returns `None` if the `FEN` tag of the game is malformed.
    fn next_number(&self) -> Option<MoveNumber> {
        let fen = self.tags.fen().map(tag_text);
        let mut fields = fen
            .as_deref()
            .unwrap_or("- w - - 0 1")
            .split_ascii_whitespace();
        let is_black = matches!(fields.nth(1)?, "b" | "B" | "black");
        let first: u32 = fields
            .nth(3)
            .map_or(Some(1), |number| number.parse().ok())?;
        let plies = u32::try_from(self.moves).ok()? + u32::from(is_black);
        Some((first.checked_add(plies / 2)?, plies % 2 == 1))
    }

    /// Skips the rest of the line that begins with the bracket at the current offset. The bracket must not begin a tag
    /// pair.
    ///
    /// If the line is a damaged `FEN` or `Variant` tag, adds it to the tags of the game, because the moves would
    /// otherwise be played from a wrong position. If the value of the damaged tag cannot be parsed, the game is later
    /// rejected.
    #[cold]
    fn pass_bad_tag(&mut self) {
        self.bad_tag.get_or_insert(self.at);
        let (end, tag) = self.damaged_start_tag();
        if let Some(tag) = tag
            && self.tags.get(tag.name).is_none()
        {
            self.tags.push(tag);
        }
        self.at = end;
    }

    /// Examines the bracket at the current offset, which does not begin a tag pair. Returns the offset at which to
    /// continue reading and, if the line is a damaged `FEN` or `Variant` tag, this tag.
    fn damaged_start_tag(&self) -> (usize, Option<Tag<'a>>) {
        let end = end_of_bad_tag(self.text, self.at);
        (end, damaged_start_tag(self.text.passed(self.at, end)))
    }

    /// Returns `true` if only blanks, markup and comments are between the offset `at` and the end of the current game.
    /// For this check, the game ends before a blank line, before the tags of the next game, at the end of the text, or
    /// if very many blanks follow.
    pub(super) fn is_last(&mut self, mut at: usize) -> bool {
        let mut breaks = 0;
        let mut rest = self.text.ahead(at);
        loop {
            let length = match *rest {
                [] => return true,
                [b'\r', b'\n', ..] => {
                    breaks += 1;
                    2
                }
                [b'\n' | b'\r', ..] => {
                    breaks += 1;
                    1
                }
                [b' ' | b'\t', ..] => 1,
                _ if markup(rest) > 0 => markup(rest),
                [b'[', ..] => return breaks > 0,
                [b'{', ..] => match self.comments.closing_brace(self.text, at) {
                    Some(close) if close - at < MAX_COMMENT_DISTANCE => {
                        at = close + 1;
                        rest = self.text.ahead(at);
                        continue;
                    }
                    _ => return self.text.len() - at <= MAX_COMMENT_DISTANCE,
                },
                _ if blank(rest) > 0 => blank(rest),
                _ => return false,
            };
            at += length;
            rest = &rest[length..];
            if breaks > 1 {
                return true;
            }
        }
    }

    /// Returns `true` if only ASCII blanks are between the offset `at` and the tags of the next game or the end of the
    /// text, or if very many blanks follow.
    pub(super) fn tags_or_end_follow(&self, at: usize) -> bool {
        let ahead = self.text.ahead(at);
        let rest = ahead.trim_ascii_start();
        rest.is_empty() || is_tag_start(self.text, at + ahead.len() - rest.len())
    }

    /// Returns `true` if the current game states a result that cannot be read, in the `Result` tag or after the moves.
    /// An unreadable result after the moves is ignored if the tag contains a readable result. The moves must already
    /// have been read.
    pub(crate) fn has_unreadable_result(&self) -> bool {
        let tag = self.tags.result();
        self.tags.has_unreadable_result() || (tag.is_none() && self.has_unreadable_marker)
    }

    /// Returns `true` if `text`, which the reader has just returned as a move, is `0-0` at the end of the game. There
    /// it is a result, and means that both sides lost. Elsewhere, `0-0` is castling.
    pub(crate) fn is_double_loss(&mut self, text: &[u8]) -> bool {
        GameResult::is_double_loss(text) && self.is_last(self.at)
    }

    /// Reads the tag pairs of a game. A line may contain several of them. Skips blank lines, comments and lines that
    /// begin with the escape character `%` between them. Also skips lines that begin with a bracket but are not tag
    /// pairs, and [other text between tags](GameReader::end_of_text_between_tags).
    fn read_tags(&mut self) {
        let mut blank_line = false;
        loop {
            match read_tag(self.text, self.at) {
                // If a game has no moves, its tags end where the tags of the next game begin.
                Some((tag, _)) if self.tags.end_before(tag, blank_line) => return,
                Some((tag, end)) => {
                    self.tags.push(tag);
                    self.at = end;
                }
                // `[1] e4 e5 [2] Nf3`
                None if moves_begin(self.text.ahead(self.at)) => return,
                // `[b]` or `[/b]`
                None if self.pass_stray_markup() => {}
                None if self.text.get(self.at) == Some(&b'[') => self.pass_bad_tag(),
                None => return,
            }
            self.tags_end = self.at;
            self.first_comment = None;
            blank_line = false;
            let (mut breaks, mut is_line) = (0, false);
            loop {
                match self.text.get(self.at) {
                    Some(b' ' | b'\t' | 0x0b | 0x0c) => self.at += 1,
                    Some(b']') => {
                        breaks = 0;
                        self.at += 1;
                    }
                    Some(b'\r') if self.text.get(self.at + 1) == Some(&b'\n') => self.at += 1,
                    Some(b'\n' | b'\r') => {
                        breaks += 1;
                        is_line = true;
                        blank_line |= breaks > 1;
                        self.at += 1;
                    }
                    None => return,
                    Some(b'<' | b'&') if self.pass_stray_markup() => breaks = 0,
                    Some(_) => {
                        if !blank_line && let Some(end) = self.end_of_text_between_tags(is_line) {
                            self.bad_tag.get_or_insert(self.at);
                            self.at = end;
                            breaks = 0;
                            continue;
                        }
                        let start = self.at;
                        match self.pass_comment() {
                            Ok(true) => {
                                if matches!(self.text.get(start), Some(b'{' | b';')) {
                                    self.first_comment.get_or_insert(start);
                                }
                                breaks = 0;
                            }
                            Ok(false) if self.text.get(start) == Some(&b'[') => break,
                            Ok(false) if self.pass_blank() => {}
                            Ok(false) => break,
                            // The unclosed comment is reported when the moves are read.
                            Err(_) => return,
                        }
                    }
                }
            }
        }
    }

    /// Examines text between the tags of a game that is neither a tag nor a comment. If the text must be skipped,
    /// returns the offset at which to continue reading: at the next tag, or at the end of the line. Returns `None` if
    /// the text may already belong to the moves. `is_line` is `true` if the text begins its line, and `false` if it
    /// follows a tag.
    ///
    /// The text is skipped in these cases:
    ///
    /// - Text after a tag is skipped if it does not look like moves, and if either a tag of this game follows on one of
    ///   the next lines, or moves follow after a blank line.
    /// - A line that looks like moves or opens a comment is skipped if the next tag certainly belongs to this game.
    /// - Any other line is skipped if a tag of this game follows on one of the next lines, before a blank line.
    fn end_of_text_between_tags(&mut self, is_line: bool) -> Option<usize> {
        let is_bracket = self.text.get(self.at) == Some(&b'[');
        if is_bracket && bracketed_number(self.text.ahead(self.at)) == 0 {
            return None;
        }
        let line = self.line_between_tags();
        let may_end_tags = match line.get(0) {
            None | Some(b';') => return None,
            Some(b'[') if !moves_begin(line.ahead(0)) => return None,
            Some(b'%') if self.is_line_start() => return None,
            Some(b'{') if line.find(b'}', 0).is_some() => return None,
            Some(b'{') => true,
            _ if blank(line.ahead(0)) > 0 => return None,
            _ => moves_begin(line.ahead(0)),
        };
        if may_end_tags && !is_line {
            // `[Result "1-0"] * 1. e4`
            let after = line.ahead(0).strip_prefix(b"*");
            return after.is_some_and(first_move_follows).then_some(self.at + 1);
        }
        if let Some(tag) = first_tag(line) {
            if may_end_tags {
                return None;
            }
            // `[Event "a"] = 1. e4 e5 1-0 = [Event "b"]`
            let begins_game = || {
                read_tag(self.text, self.at + tag)
                    .is_some_and(|(tag, _)| !self.tags.lacks_name(tag.name))
            };
            let mv = find_first_move(self.text.passed(self.at, self.at + tag))
                .filter(|mv| *mv > 0 && begins_game());
            return Some(self.at + mv.unwrap_or(tag));
        }
        match tag_on_next_lines(self.text, self.at) {
            NextLines::Tag {
                tag,
                at,
                may_end_tags: later,
            } => {
                let is_certain = !(may_end_tags || later) || self.tags.lacks_name(tag.name);
                (is_certain && !self.tags.end_before(tag, false)).then_some(at)
            }
            NextLines::BlankLine(after) => {
                (!is_line && moves_begin(self.text.ahead(after))).then_some(self.at + line.len())
            }
            NextLines::Other => None,
        }
    }

    /// Returns the rest of the current line, without its line break. Remembers the end of the line, because a line may
    /// contain very many tags.
    fn line_between_tags(&mut self) -> Text<'a> {
        if self.at >= self.line_end {
            self.line_end = self.text.line_end(self.at);
        }
        self.text.part(self.at, self.line_end)
    }
}

/// The maximum distance in bytes from a line in a comment that looks like the start of a game to the comment's closing
/// brace. If the brace is farther away, the comment counts as unclosed, and the line as the start of a game.
pub(super) const MAX_COMMENT_DISTANCE: usize = 1 << 20;

/// The end of a comment: the offset after its closing brace or, if the comment is not closed, the start of the next
/// game.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum CommentEnd {
    /// The comment is closed. Contains the offset of the byte after its closing brace.
    Closed(usize),
    /// The comment is not closed. Contains the offset where the next game begins, or the length of the text.
    Unclosed(usize),
}

/// A finder of the ends of the comments in one text. It caches the offset of the last closing brace that it found.
/// The cache avoids quadratic time for files with very many unclosed comments.
#[derive(Clone, Default, Debug)]
pub(super) struct Comments {
    /// The offset from which the last search for a closing brace started.
    looked_from: usize,
    /// The result of the last search: the offset of the first closing brace at or after `looked_from`, or `Some(None)`
    /// if there is none. `None` if nothing has been searched for yet.
    close: Option<Option<usize>>,
}

impl Comments {
    /// Finds the end of the comment whose opening brace is at the offset `open`. All calls must pass the same text,
    /// because the result of the last search is cached.
    ///
    /// If `text` is only a part of a file, [`CommentEnd::Unclosed`] may be wrong, because a closing brace may follow in
    /// the rest of the file. `Unclosed` is certain if `text` ends at the end of the file or at the start of a later
    /// game, or if at least [`MAX_COMMENT_DISTANCE`] bytes of `text` follow the offset in the result.
    #[inline]
    pub(super) fn end_of(&mut self, text: Text<'_>, open: usize) -> CommentEnd {
        let close = self.closing_brace(text, open);
        let body_end = close.unwrap_or(text.len());
        match unclosed_at(text, open + 1, body_end, close) {
            Some(start) => CommentEnd::Unclosed(start),
            None => close.map_or(CommentEnd::Unclosed(text.len()), |at| {
                CommentEnd::Closed(at + 1)
            }),
        }
    }

    /// Returns the offset in `text` of the first closing brace after the offset `open`, or `None` if there is none.
    /// Uses the cached result of the last search if it still applies.
    #[inline]
    pub(super) fn closing_brace(&mut self, text: Text<'_>, open: usize) -> Option<usize> {
        match self.close {
            Some(close) if self.looked_from <= open && close.is_none_or(|at| at >= open) => close,
            _ => {
                let close = text.find(b'}', open);
                self.looked_from = open;
                self.close = Some(close);
                close
            }
        }
    }
}

/// Checks whether a comment contains the start of a game, because it is not closed. `start` and `end` are the offsets
/// in `text` at which the text of the comment begins and ends. `close` is the offset of the first closing brace after
/// the comment's opening brace, if there is one.
///
/// Returns the offset of the line at which the game begins, or `None` if no game begins in the comment.
#[inline]
fn unclosed_at(text: Text<'_>, start: usize, end: usize, close: Option<usize>) -> Option<usize> {
    let mut at = start;
    while let Some(line_break) = text.line_end_before(at, end) {
        at = line_break + 1;
        if !may_begin_game(text, start, at) {
            continue;
        }
        let closes_it = close.is_some_and(|close| {
            close - at <= MAX_COMMENT_DISTANCE && text.part(at, close).find(b'{', 0).is_none()
        });
        // The closing brace found for this line is also the first one after all later lines, so they need no check.
        return (!closes_it).then_some(at);
    }
    None
}

/// Returns `true` if a game may begin at the offset `line`, the start of a line in a comment. This is the case if the
/// line starts with a tag. It is also the case if the line starts with `1.`, and the text of the comment before the
/// line ends with a termination marker such as `1-0`. `comment` is the offset at which the text of the comment begins.
fn may_begin_game(text: Text<'_>, comment: usize, line: usize) -> bool {
    match text.get(line) {
        Some(b'[') => is_tag_start(text, line),
        Some(b'1') => text.get(line + 1) == Some(&b'.') && ends_game(text.behind(comment, line)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::games::pgn::{Token, tags::has_tag};

    /// Parts of lines that people and programs write between tags.
    const PARTS: [&str; 34] = [
        "[", "]", "\"", "{", "}", ";", "%", "(", ")", "1.", "e4", "1-0", "*", "Event", "Board 3",
        " ", "\u{e9}", "\u{201c}", "\\", "$1", "...", "0-0", "\u{bd}", "[%clk", "[Site", "-", "\t",
        "<x>", "!", "'", "=", "Ke2", "[]", "2026",
    ];

    /// Returns the tags, the moves and the end of each game.
    fn contents(text: &str) -> Vec<(Vec<String>, Vec<String>, String)> {
        let text_of = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut reader = GameReader::new(text.as_bytes());
        let mut games = Vec::new();
        while reader.next_game() {
            let tags = reader.tags().iter();
            let tags = tags.map(|tag| format!("{}={}", text_of(tag.name), text_of(tag.value)));
            let (tags, mut moves) = (tags.collect(), Vec::new());
            let end = loop {
                match reader.next_token() {
                    Token::Move { text, .. } => moves.push(text_of(text)),
                    odd => break format!("{odd:?}"),
                }
            };
            games.push((tags, moves, end));
        }
        games
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, max_global_rejects: 20_000, ..ProptestConfig::default() })]

        /// Inserts lines that are not tag pairs between tags. The other tags and the moves must stay the same.
        #[test]
        fn any_lines_among_the_tags_cost_nothing(
            lines in proptest::collection::vec(
                proptest::collection::vec(proptest::sample::select(&PARTS[..]), 1..6).prop_map(|parts| parts.concat()),
                1..4,
            ),
            at in 1..5_usize,
        ) {
            // The lines must not be blank, because a blank line ends the tags. Text after it that looks like moves
            // begins the moves of the game.
            prop_assume!(lines.iter().all(|line| !has_tag(Text::new(line.as_bytes())) && !line.trim_ascii().is_empty()));
            // Several lines must not contain braces, because a comment that ends on a later line may hide tags.
            prop_assume!(lines.len() == 1 || !lines.iter().any(|line| line.contains(['{', '}'])));
            let line = lines.join("\n");
            let tags = [
                "[Event \"a\"]", "[White \"W\"]", "[FEN \"4k3/4p3/8/8/8/8/4P3/4K3 w - - 0 1\"]", "[Variant \"Atomic\"]",
                "[Result \"1-0\"]",
            ];
            let mut lines = tags.to_vec();
            lines.insert(at, &line);
            let after = "\n\n1. e4 {x} e5 2. Ke2 1-0\n\n[Event \"b\"]\n[White \"X\"]\n\n1. d4 *\n";
            let found = contents(&(lines.join("\n") + after));
            prop_assert_eq!(found, contents(&(tags.join("\n") + after)), "{}", line);
        }

        /// Inserts text after a tag on the same line. The other tags and the moves must stay the same, unless the
        /// text looks like moves or a comment.
        #[test]
        fn any_text_after_a_tag_costs_nothing(
            parts in proptest::collection::vec(proptest::sample::select(&PARTS[..]), 0..6),
            first in proptest::sample::select(&["(est.)", "x", "-", "!", "played", "= 5", "\u{e9}", ""][..]),
            at in 0..5_usize,
        ) {
            let rest = first.to_owned() + &parts.concat();
            let trimmed = rest.trim_ascii_start().trim_start_matches([']', ' ', '\t']);
            prop_assume!(!rest.contains(['"', '{', '[']) && !moves_begin(trimmed.as_bytes()));
            let mut tags = [
                "[Event \"a\"]", "[White \"W\"]", "[FEN \"4k3/4p3/8/8/8/8/4P3/4K3 w - - 0 1\"]", "[Variant \"Atomic\"]",
                "[Result \"1-0\"]",
            ].map(str::to_owned);
            let after = "\n\n1. e4 {x} e5 2. Ke2 1-0\n\n[Event \"b\"]\n[White \"X\"]\n\n1. d4 *\n";
            let expected = contents(&(tags.join("\n") + after));
            tags[at] += " ";
            tags[at] += &rest;
            prop_assert_eq!(contents(&(tags.join("\n") + after)), expected, "{}", rest);
        }
    }

    #[test]
    fn a_damaged_start_tag_begins_its_game() {
        let text = b"[FEN 8/8 w]\n\n[Event \"a\"]\n\n1. e4 *\n";
        let mut reader = GameReader::new(text);
        assert!(reader.next_game());
        assert_eq!(
            (reader.game_offset(), reader.first_tag_offset()),
            (0, Some(0))
        );
        assert_eq!(reader.tags().get(b"FEN"), Some(&b"8/8 w"[..]));
        assert_eq!(reader.tags().get(b"Event"), Some(&b"a"[..]));
        reader.skip_moves();
        assert!(!reader.next_game());
    }

    proptest! {
        /// Reads each game again, from its offset to the offset of the next game, as an index does.
        #[test]
        fn a_game_read_alone_has_the_same_tags(
            parts in proptest::collection::vec(
                proptest::sample::select(&[
                    "[FEN ", "[Variant ", "[Event \"a\"]", "[White \"x\"]", "8/8 w", "\"", "]", "\n", "\n\n", "1. e4",
                    " 1-0", "*", "[", "\0", "[Board 3]", "text", " e5",
                ][..]),
                0..20,
            ),
        ) {
            let text = parts.concat().into_bytes();
            let tags_of = |reader: &GameReader<'_>| {
                let tags = reader.tags().iter();
                tags.map(|tag| (tag.name.to_vec(), tag.value.to_vec())).collect::<Vec<_>>()
            };
            let mut reader = GameReader::new(&text);
            let mut games = Vec::new();
            while reader.next_game() {
                games.push((reader.game_offset(), tags_of(&reader)));
                reader.skip_moves();
            }
            let ends = games.iter().skip(1).map(|game| game.0).chain([text.len()]);
            for ((start, tags), end) in games.iter().zip(ends) {
                let mut alone = GameReader::new(&text[*start..end]);
                prop_assert!(alone.next_game());
                prop_assert_eq!((alone.game_offset(), tags_of(&alone)), (0, tags.clone()));
            }
        }
    }

    /// Calls `f` for each game, and returns the number of games. Checks that the reader terminates.
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
        // A former version found the word before the slash again and again, in an endless loop.
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
            // Skipping also works from the middle of a game, as after an illegal move.
            games(&text, |reader| {
                if let Token::Move { .. } | Token::Unreadable { .. } = reader.next_token() {
                    reader.skip_moves();
                }
            });
        }
    }

    fn comment_end(text: &[u8], open: usize) -> CommentEnd {
        Comments::default().end_of(Text::new(text), open)
    }

    #[test]
    fn closed_comments_may_contain_anything() {
        for text in [
            "{}",
            "{ [%clk 0:00:01] }",
            "{ a\n\n[Event \"quoted\"]\n\nb }",
            "{ 1-0\n\n1. e4 was the other game }",
        ] {
            assert_eq!(
                comment_end(text.as_bytes(), 0),
                CommentEnd::Closed(text.len()),
                "{text}"
            );
        }
        // Comments in braces do not nest.
        assert_eq!(comment_end(b"{ a { b } c }", 0), CommentEnd::Closed(9));
    }

    #[test]
    fn unclosed_comments_end_where_a_game_begins() {
        let text = b"{ oops 1-0\n\n[Event \"x\"]\n\n1. e4 { fine } *";
        assert_eq!(comment_end(text, 0), CommentEnd::Unclosed(12));
        let text = b"{ oops 1-0\n\n[Event \"x\"]\n\n1. e4 *";
        assert_eq!(comment_end(text, 0), CommentEnd::Unclosed(12));
        let text = b"{ oops 1-0\n\n1. d4 d5 *";
        assert_eq!(comment_end(text, 0), CommentEnd::Unclosed(12));
        let text = b"{ oops 1-0";
        assert_eq!(comment_end(text, 0), CommentEnd::Unclosed(text.len()));
    }

    #[test]
    fn a_distant_brace_does_not_close_a_comment() {
        let mut text = b"{ oops\n[Event \"x\"]\n".to_vec();
        text.resize(text.len() + MAX_COMMENT_DISTANCE, b' ');
        text.push(b'}');
        assert_eq!(comment_end(&text, 0), CommentEnd::Unclosed(7));
    }
}

//! Reads tag pairs, such as `[White "Morphy, Paul"]`.
//!
//! A tag ends with its line, so an unclosed tag damages no other tag. A value may continue on the next lines only if it
//! is closed there, before a blank line, another tag or the end of a game. Quotes inside a value need no backslash,
//! because the value ends at the quote before a `]` or before the end of the line. A value may also be enclosed in
//! [other quotation marks](MARKS) than those of the PGN standard, and then ends on its line.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter, memchr3, memrchr2};

use super::{
    result::{GameResult, MAX_MARKER_LENGTH},
    text::{Text, WINDOW},
    word::{blank, first_word, is_control, is_null_move, null_move, without_marks},
};
use crate::chess::position::{LineError, UnknownVariant, Variant, game_start, looks_like_move};

/// The maximum length in bytes of the part of a tag's value after its first line: 1 MiB. Most values have a single
/// line.
pub(super) const MAX_CONTINUATION_LENGTH: usize = 1 << 20;

/// The maximum length in bytes of a damaged line between the tags of a game, and of several such lines together. If
/// they are longer, the reader does not look for further tags of the game.
const MAX_BAD_TAG_LENGTH: usize = 4096;

/// The maximum number of tags that are kept for one game, apart from further tags that polybook itself uses.
const MAX_TAGS: usize = 256;

/// Defines the names of the tags that are kept even if a game has very many tags, because they are needed to filter,
/// replay or index games.
macro_rules! used_tags {
    ($($name:literal)*) => {
        const USED_TAGS: &[&[u8]] = &[$($name),*];

        /// Returns `true` if [`USED_TAGS`] contains `name`. This is faster than a search in the list, which matters
        /// because every tag is looked up.
        fn is_used(name: &[u8]) -> bool {
            matches!(name, $($name)|*)
        }
    };
}

used_tags! {
    b"Event" b"Site" b"Date" b"Round" b"White" b"Black" b"Result" b"WhiteElo" b"BlackElo" b"ECO" b"FEN" b"SetUp"
    b"Variant" b"TimeControl" b"UTCDate" b"PlyCount" b"EventDate" b"EventType"
}

/// A tag pair of PGN, such as `[White "Tal"]`. The value contains the undecoded bytes of the file.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Tag<'a> {
    /// The name, which usually consists of letters and digits. The names of tags that polybook uses are converted to
    /// the spelling of the PGN standard, for example if the file contains `[fen "..."]` or `[FEN: "..."]`.
    pub name: &'a [u8],
    /// The text between the quotes, including escapes and line breaks.
    pub value: &'a [u8],
}

impl<'a> Tag<'a> {
    /// Removes the inner quotes from a value that is quoted twice, as in `[White ""Tal""]`.
    fn without_second_quotes(self) -> Tag<'a> {
        match self.value {
            [b'"', value @ .., b'"'] if !value.contains(&b'"') => Tag { value, ..self },
            _ => self,
        }
    }
}

/// The tags of one game, in the order of the file.
///
/// If a game has more than 256 tags, only the first 256 and the tags that polybook itself uses are kept.
#[derive(Clone, Default, Debug)]
pub struct Tags<'a> {
    pairs: Vec<Tag<'a>>,
    /// The variant of games without a `Variant` tag.
    pub(super) untagged: Variant,
}

impl<'a> Tags<'a> {
    /// Returns the value of the tag with the name `name`, or `None` if the game has no such tag. If several tags have
    /// this name, returns the last value. Names are case-sensitive.
    #[inline]
    pub fn get(&self, name: &[u8]) -> Option<&'a [u8]> {
        self.pairs
            .iter()
            .rev()
            .find(|tag| tag.name == name)
            .map(|tag| tag.value)
    }

    /// Returns the variant of the game, according to its `Variant` tag. If the game has no such tag, returns the
    /// variant that [`GameReader::with_untagged_variant`](super::GameReader::with_untagged_variant) set. Returns
    /// another variant instead of standard chess if the `FEN` tag is possible only in this variant: Chess960 because of
    /// castling rights, crazyhouse because of pieces in hand, and three-check because of checks.
    ///
    /// # Errors
    ///
    /// Returns [`UnknownVariant`] if the tag does not name a supported variant.
    ///
    /// ```
    /// use polybook::{pgn::GameReader, position::Variant};
    ///
    /// let text = b"[White \"A\"]\n\n1. e4 *\n\n[Variant \"Atomic\"]\n\n1. e4 *";
    /// let mut games = GameReader::new(text).with_untagged_variant(Variant::Horde);
    /// games.next_game();
    /// assert_eq!(games.tags().variant(), Ok(Variant::Horde));
    /// games.skip_moves();
    /// games.next_game();
    /// assert_eq!(games.tags().variant(), Ok(Variant::Atomic));
    /// ```
    pub fn variant(&self) -> Result<Variant, UnknownVariant> {
        let variant = self.named_variant()?;
        match self.fen() {
            Some(fen) if variant == Variant::Standard => Ok(match game_start(&tag_text(fen)) {
                Err(LineError::OtherVariant { variant, .. }) => variant,
                _ => variant,
            }),
            _ => Ok(variant),
        }
    }

    /// Returns the variant that the `Variant` tag of the game names. If the tag is missing, or if its value is empty,
    /// `?` or `-`, returns the variant that
    /// [`GameReader::with_untagged_variant`](super::GameReader::with_untagged_variant) set.
    ///
    /// # Errors
    ///
    /// Returns an error if the tag does not name a supported variant.
    pub(crate) fn named_variant(&self) -> Result<Variant, UnknownVariant> {
        match self.get(b"Variant").map(<[u8]>::trim_ascii) {
            None | Some(b"" | b"?" | b"-") => Ok(self.untagged),
            tag => Variant::from_tag(tag),
        }
    }

    /// Returns the value of the `FEN` tag. Returns `None` if the tag is missing, or if its value is empty, `?` or
    /// `-`.
    pub(crate) fn fen(&self) -> Option<&'a [u8]> {
        let fen = self.get(b"FEN").map(<[u8]>::trim_ascii);
        fen.filter(|fen| !matches!(*fen, b"" | b"?" | b"-"))
    }

    /// Returns an iterator over the tags in the order of the file.
    pub fn iter(&self) -> std::slice::Iter<'_, Tag<'a>> {
        self.pairs.iter()
    }

    /// Returns `true` if the game has no tags.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.pairs.clear();
    }

    /// Adds a tag of the current game. If the game already has [`MAX_TAGS`] tags, ignores the tag unless [`USED_TAGS`]
    /// contains its name. A tag that is kept for this reason replaces an earlier tag of the same name, if there is one.
    pub(super) fn push(&mut self, tag: Tag<'a>) {
        if self.pairs.len() < MAX_TAGS {
            self.pairs.push(tag);
        } else if is_used(tag.name) {
            let mut pairs = self.pairs.iter_mut().rev();
            match pairs.find(|it| it.name == tag.name) {
                Some(known) => known.value = tag.value,
                None => self.pairs.push(tag),
            }
        }
    }

    /// Returns `true` if `name` is not `Event` and these tags contain no tag named `name`. A tag with this name that
    /// follows these tags then probably belongs to the same game, because the tags of the next game usually begin with
    /// `Event`, or with the same tag as those of this game.
    pub(super) fn lacks_name(&self, name: &[u8]) -> bool {
        name != b"Event" && self.get(name).is_none()
    }

    /// Returns `true` if `tag`, which follows these tags of a game, begins the next game. This requires that these tags
    /// already contain a tag with the same name, because a game rarely has two tags of one name. In addition, one of
    /// these conditions must be met:
    ///
    /// - `blank_line` is `true`, because a blank line precedes `tag`.
    /// - `tag` is an `Event` tag.
    /// - `tag` is another tag of the seven-tag roster, and has a new value.
    pub(super) fn end_before(&self, tag: Tag<'_>, blank_line: bool) -> bool {
        let in_roster = matches!(
            tag.name,
            b"Event" | b"Site" | b"Date" | b"Round" | b"White" | b"Black"
        );
        if !blank_line && !in_roster {
            return false;
        }
        // If this limit did not exist, reading a file that contains nothing but tags would take quadratic time.
        let mut first = self.pairs.iter().take(32);
        first
            .find(|earlier| earlier.name == tag.name)
            .is_some_and(|earlier| blank_line || tag.name == b"Event" || earlier.value != tag.value)
    }

    /// Returns the result in the `Result` tag. Returns `None` if the tag is missing or does not contain a result.
    pub(crate) fn result(&self) -> Option<GameResult> {
        self.get(b"Result").and_then(GameResult::from_text)
    }

    /// Returns `true` if the game has a `Result` tag whose value cannot be read as a result. An empty value and `?` are
    /// readable, and mean that the result is unknown.
    pub(crate) fn has_unreadable_result(&self) -> bool {
        self.get(b"Result").is_some_and(|text| {
            !matches!(text.trim_ascii(), b"" | b"?") && GameResult::from_text(text).is_none()
        })
    }
}

/// Returns the offset at which to continue reading after a bracket that does not begin a tag pair. `bracket` is the
/// offset of this bracket. If a tag pair begins before the closing bracket, or directly after it on the same line, the
/// result is the offset of this pair. Otherwise it is the end of the line.
pub(super) fn end_of_bad_tag(text: Text<'_>, bracket: usize) -> usize {
    // The end of the line is not searched for at each bracket, so that a line of many brackets is read in linear
    // time.
    let stop = text.find3(*b"]\n\r", bracket);
    let Some(close) = stop.filter(|stop| text.get(*stop) == Some(&b']')) else {
        return stop.unwrap_or(text.len());
    };
    // `[Board [FEN "..."]`
    let inside = bracket + 1;
    if let Some(tag) = first_tag(text.part(inside, close)) {
        return inside + tag;
    }
    let next = after_blanks(text, close + 1);
    if is_tag_start(text, next) {
        next
    } else {
        text.line_end(next)
    }
}

/// Parses a damaged `FEN` or `Variant` tag without a quotation mark before its value. Returns the tag. Its value does
/// not include a quotation mark at its end and the closing bracket. Returns `None` for any other line.
pub(super) fn damaged_start_tag(line: &[u8]) -> Option<Tag<'_>> {
    let line = line.strip_prefix(b"[")?.trim_ascii_start();
    let name = [&b"FEN"[..], b"Variant"].into_iter().find(|name| {
        let start = line.get(..name.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(name))
            && line.get(name.len()).is_none_or(|byte| !is_name_byte(*byte))
    })?;
    let end = memchr(b']', line).unwrap_or(line.len());
    let mut value = line.get(name.len()..end)?.trim_ascii();
    while let Some(mark) = last_mark(value) {
        value = &value[..value.len() - mark];
    }
    Some(Tag { name, value })
}

/// The kind of lines that follow a damaged line between the tags of a game. It shows whether the tags of the game
/// continue.
pub(super) enum NextLines<'a> {
    /// A tag pair follows. Other lines may precede it, but no blank line.
    Tag {
        /// The tag pair that follows.
        tag: Tag<'a>,
        /// The offset of the opening bracket of the tag.
        at: usize,
        /// Whether a line before the tag looks like moves or contains a comment that is not closed on the line.
        may_end_tags: bool,
    },
    /// The next line is blank. Contains the offset of the first line after it that is not blank.
    BlankLine(usize),
    /// Neither a blank line nor a tag pair follows within the limits on the number and the length of lines.
    Other,
}

/// Examines the lines after the line at the offset `at`, to find out whether the tags of the game continue there.
pub(super) fn tag_on_next_lines(text: Text<'_>, at: usize) -> NextLines<'_> {
    let (mut line, mut may_end_tags) = (at, false);
    for number in 0..MAX_BAD_LINES {
        let Some(next) = next_line_if_near(text, line) else {
            return NextLines::Other;
        };
        if let Some((tag, _)) = read_tag(text, next) {
            return NextLines::Tag {
                tag,
                at: next,
                may_end_tags,
            };
        }
        let rest = text.passed(next, text.line_end(next));
        if rest.trim_ascii().is_empty() {
            let mut after = next;
            while text.get(after).is_some_and(u8::is_ascii_whitespace) {
                after += 1;
            }
            return match number {
                0 => NextLines::BlankLine(after),
                _ => NextLines::Other,
            };
        }
        let are_moves = moves_begin(text.ahead(next));
        // Other text may precede a tag in its line.
        if !are_moves
            && !b"{;%".contains(&rest[0])
            && let Some(at) = first_tag(Text::new(rest)).map(|at| next + at)
            && let Some((tag, _)) = read_tag(text, at)
        {
            return NextLines::Tag {
                tag,
                at,
                may_end_tags,
            };
        }
        let is_open = memrchr2(b'{', b'}', rest).is_some_and(|brace| rest[brace] == b'{');
        may_end_tags |= is_open || are_moves;
        line = next;
    }
    NextLines::Other
}

/// Finds out whether brackets begin damaged lines between the tags of a game. Caches the range of lines that were
/// examined, so that each line of a text is examined about once.
#[derive(Clone, Default, Debug)]
pub(super) struct BadTagLines {
    /// The start of the first examined line. It and all lines before `end` begin with brackets, and are not tag pairs.
    start: usize,
    /// The start of the line at which the last search stopped.
    end: usize,
    /// The start of a line that no other line follows within [`MAX_BAD_TAG_LENGTH`] bytes.
    long_line: Option<usize>,
}

impl BadTagLines {
    /// Returns `true` if the bracket at the offset `at`, the start of a line, begins a damaged line between the tags of a
    /// game. This is the case if a tag pair begins a line within [`MAX_BAD_TAG_LENGTH`] bytes, and every line between
    /// the bracket and the tag pair begins with a bracket, too. A bracket between moves does not meet these conditions.
    /// No tag pair may begin at `at`. All calls must pass the same text.
    pub fn contain(&mut self, text: Text<'_>, at: usize) -> bool {
        if text.get(at) != Some(&b'[') || text.get(at + 1) == Some(&b'%') {
            return false;
        }
        let mut line = self.end;
        if !(self.start..self.end).contains(&at) {
            (self.start, line) = (at, at);
        }
        let is_found = loop {
            if line != at && is_tag_start(text, line) {
                break true;
            }
            if text.get(line) != Some(&b'[')
                || line - at > MAX_BAD_TAG_LENGTH
                || self.long_line == Some(line)
            {
                break false;
            }
            match next_line_if_near(text, line) {
                Some(next) => line = next,
                None => {
                    self.long_line = Some(line);
                    break false;
                }
            }
        };
        self.end = line;
        is_found
    }
}

/// The maximum number of consecutive damaged lines that the reader skips to find the next tag pair.
const MAX_BAD_LINES: usize = 16;

/// Returns the offset of the line after the one that contains the offset `at`. Returns `None` if it does not begin
/// within about [`MAX_BAD_TAG_LENGTH`] bytes.
fn next_line_if_near(text: Text<'_>, at: usize) -> Option<usize> {
    let end = text.line_end_before(at, at + MAX_BAD_TAG_LENGTH)?;
    Some(text.next_line(end))
}

/// The number of a move, and whether the move is Black's.
pub(super) type MoveNumber = (u32, bool);

/// Examines tags at the offset `at`, which follow moves of a game, to find out whether they begin the next game.
/// Returns the number of the first move after the tags if no game can begin there: no tag contains a starting position,
/// and the number is neither missing nor `1`. The current game then continues, if this is the number of its next move.
/// Otherwise returns `None`. Also returns `None` if the tags have more than [`WINDOW`] bytes, or begin with an `Event`
/// tag after a blank line.
pub(super) fn number_after_tags(text: Text<'_>, at: usize) -> Option<MoveNumber> {
    let mut rest = text.ahead(at);
    if rest.starts_with(b"[Event ") && ends_with_blank_line(text.behind(0, at)) {
        return None;
    }
    while rest.starts_with(b"[") {
        let end = rest.iter().position(|byte| b"\n\r".contains(byte))?;
        let (line, after) = rest.split_at(end);
        let starts = memchr_iter(b'[', line).any(|bracket| {
            let name = line[bracket + 1..].trim_ascii_start();
            name.get(..3)
                .is_some_and(|name| name.eq_ignore_ascii_case(b"FEN"))
        });
        if starts {
            return None;
        }
        rest = after.trim_ascii_start();
    }
    number_of_late_move(rest)
}

/// Returns `true` if `before` ends with a blank line.
pub(super) fn ends_with_blank_line(before: &[u8]) -> bool {
    let blanks = &before[before.trim_ascii_end().len()..];
    let has_two = |line_break| memchr_iter(line_break, blanks).nth(1).is_some();
    has_two(b'\n') || has_two(b'\r')
}

/// Reads a move number at the start of a text. Returns `None` if there is no number, if no move can follow it, or if it
/// is the number of White's first move, 1 or 0.
pub(super) fn number_of_late_move(text: &[u8]) -> Option<MoveNumber> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = match str::from_utf8(&text[..digits]) {
        Ok(digits) if !digits.is_empty() => digits.parse().unwrap_or(u32::MAX),
        _ => return None,
    };
    let (mut at, mut dots, mut is_closed) = (digits, 0, false);
    loop {
        let (length, its_dots) = match text[at..] {
            // The number may be in brackets or before one.
            [b']' | b')', ..] if !is_closed => {
                is_closed = true;
                (1, 0)
            }
            [b'.', ..] => (1, 1),
            // `5.- e4`, and `5\. e4` from Markdown.
            [b'-', b' ', ..] if dots > 0 => (1, 0),
            [b'\\', ..] => (1, 0),
            [0x85, ..] => (1, 3),
            [0xe2, 0x80, 0xa6, ..] => (3, 3),
            [byte, ..] if byte.is_ascii_whitespace() => (1, 0),
            ref rest => (blank(rest), 0),
        };
        if length == 0 {
            break;
        }
        at += length;
        dots += its_dots;
    }
    let is_black = dots > 2;
    if number < 2 && !(number == 1 && is_black) {
        return None;
    }
    let rest = &text[at..];
    let follows = first_word(&rest[..rest.len().min(MAX_MARKER_LENGTH)]);
    let later = follows
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let is_number = later > 0 && matches!(follows.get(later), None | Some(b'.'));
    let may_be_move = match rest.first() {
        None | Some(b'*' | b'[' | b'-' | b'/' | b':') => false,
        Some(next) if at == digits => {
            next.is_ascii_alphabetic() || !next.is_ascii() || b"@{(".contains(next)
        }
        Some(_) => !is_number && GameResult::from_marker(follows).is_none(),
    };
    may_be_move.then_some((number, is_black))
}

/// Returns `true` if a tag pair begins at the offset `at`: a bracket, a name, optional blanks and a quotation mark.
#[inline]
pub(super) fn is_tag_start(text: Text<'_>, at: usize) -> bool {
    text.get(at) == Some(&b'[') && name_and_mark(text.ahead(at)).is_some()
}

/// Returns the standard spelling of the name of a tag if it is one of [`USED_TAGS`], ignoring case, and colons or
/// equals signs at its end. Returns any other name unchanged.
fn standard_name(name: &[u8]) -> &[u8] {
    if is_used(name) {
        return name;
    }
    let end = name.iter().rposition(|byte| !b":=".contains(byte));
    let plain = &name[..end.map_or(0, |last| last + 1)];
    let is_same = |known: &&&[u8]| known.eq_ignore_ascii_case(plain);
    USED_TAGS.iter().find(is_same).map_or(name, |known| known)
}

/// The quotation marks that can enclose the value of a tag, in UTF-8, in Windows-1252 and as character references. The
/// quote of the PGN standard comes first.
const MARKS: [&[u8]; 72] = [
    b"\"",
    b"\\\"",
    b"'",
    b"\\'",
    b"`",
    b"\xc2\xb4", // "'`´
    b"\xe2\x80\x98",
    b"\xe2\x80\x99",
    b"\xe2\x80\x9a",
    b"\xe2\x80\x9b", // ‘’‚‛
    b"\xe2\x80\x9c",
    b"\xe2\x80\x9d",
    b"\xe2\x80\x9e",
    b"\xe2\x80\x9f", // “”„‟
    b"\xe2\x80\xb2",
    b"\xe2\x80\xb3",
    b"\xe2\x80\xb9",
    b"\xe2\x80\xba", // ′″‹›
    b"\xc2\xab",
    b"\xc2\xbb",
    b"\xef\xbc\x82",
    b"\xef\xbc\x87",
    b"\xe3\x80\x8c",
    b"\xe3\x80\x8d", // «»＂＇「」
    b"\xe3\x80\x8e",
    b"\xe3\x80\x8f",
    b"\xe3\x80\x88",
    b"\xe3\x80\x89",
    b"\xe3\x80\x8a",
    b"\xe3\x80\x8b", // 『』〈〉《》
    b"\xe3\x80\x9d",
    b"\xe3\x80\x9e",
    b"\xe3\x80\x9f", // 〝〞〟
    b"\xe2\x9d\x9b",
    b"\xe2\x9d\x9c",
    b"\xe2\x9d\x9d",
    b"\xe2\x9d\x9e", // ❛❜❝❞
    b"\xca\xb9",
    b"\xca\xba",
    b"\xd7\xb4", // ʹʺ״
    b"&quot;",
    b"&QUOT;",
    b"&#34;",
    b"&#034;",
    b"&#x22;",
    b"&apos;",
    b"&#39;",
    b"&#039;",
    b"&#x27;",
    b"&ldquo;",
    b"&rdquo;",
    b"&bdquo;",
    b"&laquo;",
    b"&raquo;",
    b"&lsquo;",
    b"&rsquo;",
    b"&sbquo;",
    b"&lsaquo;",
    b"&rsaquo;",
    b"&#8216;",
    b"&#8217;",
    b"&#8220;",
    b"&#8221;",
    b"&#8222;",
    b"\x84",
    b"\x91",
    b"\x92",
    b"\x93",
    b"\x94",
    b"\xab",
    b"\xbb",
    b"\xb4",
];

/// Returns the length in bytes of the quotation mark at the start of `text`, or `None` if there is none.
#[inline]
fn first_mark(text: &[u8]) -> Option<usize> {
    /// A table that says for each byte whether a quotation mark can begin with it.
    static BEGINS_MARK: [bool; 256] = {
        let mut begins_mark = [false; 256];
        let mut mark = 0;
        while mark < MARKS.len() {
            begins_mark[MARKS[mark][0] as usize] = true;
            mark += 1;
        }
        begins_mark
    };
    let first = *text.first()?;
    if !BEGINS_MARK[usize::from(first)] {
        return None;
    }
    let mark = MARKS
        .iter()
        .find(|mark| mark[0] == first && text.starts_with(mark))?;
    Some(mark.len())
}

/// Returns the length in bytes of the longest quotation mark at the end of `text`, or `None` if there is none.
fn last_mark(text: &[u8]) -> Option<usize> {
    let text = Text::new(text).behind(0, text.len());
    // The window may begin inside a character.
    let starts = if text.len() < WINDOW { 0..=0 } else { 0..=3 };
    // The last byte of a letter in UTF-8 may be a quotation mark in Windows-1252.
    let is_utf8 = || {
        starts
            .clone()
            .any(|start| str::from_utf8(&text[start..]).is_ok())
    };
    let is_whole = |mark: &&&[u8]| mark[0] < 0x80 || mark.len() > 1 || !is_utf8();
    let ends = MARKS
        .iter()
        .filter(|mark| text.ends_with(mark))
        .filter(is_whole);
    ends.map(|mark| mark.len()).max()
}

/// Returns the name of a tag, and the offset of the quotation mark before the tag's value. `tag` begins at the opening
/// bracket. Returns `None` if no tag begins there.
fn name_and_mark(tag: &[u8]) -> Option<(&[u8], usize)> {
    let name_at = after_blanks_in(tag, 1);
    let mut at = name_at;
    while tag.get(at).is_some_and(|byte| is_name_byte(*byte)) {
        at += 1;
    }
    let name = &tag[name_at.min(tag.len())..at.min(tag.len())];
    at = after_blanks_in(tag, at);
    // `[White = "Tal"]`
    if at > name_at + name.len() && matches!(tag.get(at), Some(b'=' | b':')) {
        at = after_blanks_in(tag, at + 1);
    }
    (!name.is_empty() && first_mark(&tag[at..]).is_some()).then_some((name, at))
}

/// Returns the offset of the first byte of `tag` at or after `at` that is not part of a blank. Both ASCII blanks and
/// [unusual blanks](blank) are skipped, but not line breaks.
fn after_blanks_in(tag: &[u8], mut at: usize) -> usize {
    loop {
        let length = match tag.get(at) {
            Some(b' ' | b'\t' | 0x0b | 0x0c) => 1,
            Some(byte) if !byte.is_ascii() || is_control(*byte) => blank(&tag[at..]),
            _ => 0,
        };
        if length == 0 {
            return at;
        }
        at += length;
    }
}

#[inline]
fn is_name_byte(byte: u8) -> bool {
    /// A table that says for each byte whether the name of a tag may contain it.
    static IS_NAME_BYTE: [bool; 256] = {
        let mut is_name_byte = [false; 256];
        let mut byte = 0;
        while byte < 256 {
            is_name_byte[byte] = (byte as u8).is_ascii_alphanumeric()
                || matches!(byte as u8, b'_' | b'+' | b'#' | b'=' | b':' | b'-' | b'/');
            byte += 1;
        }
        is_name_byte
    };
    IS_NAME_BYTE[usize::from(byte)]
}

/// Returns the offset of the first byte at or after `at` that is neither a space nor a tab.
fn after_blanks(text: Text<'_>, mut at: usize) -> usize {
    while matches!(text.get(at), Some(b' ' | b'\t')) {
        at += 1;
    }
    at
}

/// Reads the tag pair whose opening bracket is at the offset `at`. Returns the tag and the offset after it. Returns
/// `None` if no tag pair begins there.
pub(super) fn read_tag(text: Text<'_>, at: usize) -> Option<(Tag<'_>, usize)> {
    if text.get(at) != Some(&b'[') {
        return None;
    }
    let (name, mark) = name_and_mark(text.ahead(at))?;
    let name = standard_name(name);
    let mark = at + mark;
    if text.get(mark) != Some(&b'"') {
        return Some(oddly_quoted(text, name, mark));
    }
    let start = mark + 1;
    let mut at = start;
    // Where the tag ends if the quote before the bracket is not escaped.
    let mut escaped_end = None;
    loop {
        let Some(found) = text.find3(*b"\"\n\r", at) else {
            return escaped_end.or_else(|| Some(unclosed(text, name, start, text.len())));
        };
        if text.get(found) != Some(&b'"') {
            let broken = || value_over_lines(text, name, start, found);
            let unclosed = || Some(unclosed(text, name, start, found));
            return escaped_end.or_else(broken).or_else(unclosed);
        }
        let segment = text.passed(at, found);
        at = found + 1;
        let after = after_blanks(text, at);
        let tag = || Tag {
            name,
            value: text.passed(start, found),
        };
        let is_escaped = is_escaped(segment);
        match text.get(after) {
            // A backslash is the last character of the value if the line or another tag follows the bracket.
            Some(b']') if is_escaped => {
                let next = after_blanks(text, after + 1);
                if matches!(text.get(next), None | Some(b'\n' | b'\r')) || is_tag_start(text, next)
                {
                    return Some((tag(), after + 1));
                }
                escaped_end.get_or_insert_with(|| (tag(), after + 1));
            }
            // The reader must not search a long line for each tag in it.
            _ if escaped_end.is_some_and(|(_, end)| found > end + WINDOW) => return escaped_end,
            _ if is_escaped => {}
            Some(b']') => return Some((tag().without_second_quotes(), after + 1)),
            // Markdown escapes brackets.
            Some(b'\\') if text.get(after + 1) == Some(&b']') => return Some((tag(), after + 2)),
            None | Some(b'\n' | b'\r') => return Some((tag(), after)),
            // `[White "A”][Black "B"]`
            Some(_) => {
                if let Some((length, end)) = closing_mark(segment)
                    && is_tag_start(text, after_blanks(text, found - segment.len() + end))
                {
                    let from = found - segment.len();
                    let value = text.passed(start, from + length);
                    return Some((Tag { name, value }, from + end));
                }
            }
        }
    }
}

/// Returns `true` if `before`, the text before a quote, ends with an odd number of backslashes. The quote is then
/// escaped.
fn is_escaped(before: &[u8]) -> bool {
    let backslashes = before.iter().rev().take_while(|byte| **byte == b'\\');
    backslashes.count() % 2 == 1
}

/// Reads a tag whose value begins with another quotation mark than `"`. `name` is the name of the tag, and `mark` is
/// the offset of the quotation mark. The value ends on the same line: at the first quotation mark before a bracket, at
/// a quotation mark at the end of the line, or at the last bracket. Returns the tag and the offset after it.
#[cold]
fn oddly_quoted<'a>(text: Text<'a>, name: &'a [u8], mark: usize) -> (Tag<'a>, usize) {
    let start = mark + first_mark(text.ahead(mark)).unwrap_or_default();
    let mut at = start;
    loop {
        let stop = text.find3(*b"]\n\r", at).unwrap_or(text.len());
        if text.get(stop) != Some(&b']') {
            return unclosed(text, name, start, stop);
        }
        let before = text.behind(start, stop).trim_ascii_end();
        let before = before.strip_suffix(b"\\").unwrap_or(before);
        if let Some(close) = last_mark(before) {
            let after = text.behind(start, stop).len() - before.len();
            let (open, close) = (text.part(mark, start), &before[before.len() - close..]);
            let value = text.passed(start, stop - after - close.len());
            // `[White ''Tal'']`
            let inner = value.strip_prefix(open.ahead(0));
            let inner = inner.and_then(|inner| inner.strip_suffix(close));
            let value = inner.unwrap_or(value);
            return (Tag { name, value }, stop + 1);
        }
        at = stop + 1;
    }
}

/// Finds the first quotation mark of any kind before a closing bracket. Returns its offset in `line`, and the offset
/// after the bracket.
fn closing_mark(line: &[u8]) -> Option<(usize, usize)> {
    memchr_iter(b']', line).find_map(|bracket| {
        let value = line[..bracket].trim_ascii_end();
        let mark = last_mark(value)?;
        Some((value.len() - mark, bracket + 1))
    })
}

/// Reads a tag whose value spans several lines. `name` is the name of the tag. The value begins at the offset `start`,
/// and its first line ends at the offset `first_end`. Returns the tag and the offset after it. Returns `None` if no
/// quote closes the value on one of the next lines.
#[cold]
fn value_over_lines<'a>(
    text: Text<'a>,
    name: &'a [u8],
    start: usize,
    first_end: usize,
) -> Option<(Tag<'a>, usize)> {
    let limit = text.len().min(first_end + MAX_CONTINUATION_LENGTH);
    let mut at = text.next_line(first_end);
    while at < limit {
        let end = text.line_end(at).min(limit);
        let line = text.part(at, end);
        if line.get(0) == Some(&b'[') {
            return None;
        }
        let closed = closing_quote(line);
        let is_value = match closed {
            Some((quote, _)) => !has_tag(line.part(0, quote + 1)),
            None => {
                let last = line.behind(0, line.len());
                line.trimmed_len() > 0 && !has_tag(line) && !ends_game(last)
            }
        };
        if !is_value {
            return None;
        }
        if let Some((quote, after)) = closed {
            let value = text.passed(start, at + quote);
            return Some((Tag { name, value }, at + after));
        }
        at = text.next_line(end);
    }
    None
}

/// Finds the quote that closes the value of a tag in `line`. This is the first unescaped quote before a closing
/// bracket, or an escaped one before a bracket at the end of the line. Returns the offset of the quote and the offset
/// after the bracket. Returns `None` if there is no such quote.
pub(super) fn closing_quote(line: Text<'_>) -> Option<(usize, usize)> {
    let end = line.trimmed_len();
    let mut at = 0;
    loop {
        let quote = line.find(b'"', at)?;
        let after = after_blanks(line, quote + 1) + 1;
        if line.get(after - 1) == Some(&b']')
            && (after >= end || !is_escaped(line.passed(at, quote)))
        {
            return Some((quote, after));
        }
        at = quote + 1;
    }
}

/// Returns `true` if a tag begins at any offset in a line.
pub(super) fn has_tag(line: Text<'_>) -> bool {
    first_tag(line).is_some()
}

/// Returns the offset at which the first tag in a line begins, or `None` if no tag begins in the line.
pub(super) fn first_tag(line: Text<'_>) -> Option<usize> {
    let mut at = line.find(b'[', 0)?;
    while !is_tag_start(line, at) {
        at = line.find(b'[', at + 1)?;
    }
    Some(at)
}

/// Returns `true` if the last word of a line is a termination marker, such as `1-0`.
pub(super) fn ends_game(line: &[u8]) -> bool {
    let mut words = line.trim_ascii_end().rsplit(u8::is_ascii_whitespace);
    words.next().and_then(GameResult::from_marker).is_some()
}

/// Reads a tag without a closing quote. `name` is the name of the tag. Its value begins at the offset `start`, and ends
/// with the line, at the offset `end`. A closing bracket at the end of the line does not belong to the value, nor does
/// a quotation mark of another kind before it. Returns the tag and the offset `end`.
#[cold]
fn unclosed<'a>(text: Text<'a>, name: &'a [u8], start: usize, end: usize) -> (Tag<'a>, usize) {
    let value = text.passed(start, end).trim_ascii_end();
    let value = value.strip_suffix(b"]").unwrap_or(value);
    let mark = last_mark(value).unwrap_or_default();
    let value = &value[..value.len() - mark];
    (Tag { name, value }, end)
}

/// Decodes the value of a tag as UTF-8 or, if it is not valid UTF-8, as Latin-1. Replaces each line break with a
/// blank.
pub(crate) fn tag_text(value: &[u8]) -> Cow<'_, str> {
    let text = match std::str::from_utf8(value) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => value.iter().map(|byte| char::from(*byte)).collect(),
    };
    if text.contains(['\n', '\r']) {
        return text.replace("\r\n", " ").replace(['\n', '\r'], " ").into();
    }
    text
}

/// Skips the number of White's first move at the start of `text`, such as `1.` or `1`, and the blanks after it. Returns
/// the rest of the text, or `None` if `text` does not begin with this number.
pub(super) fn after_first_number(text: &[u8]) -> Option<&[u8]> {
    let rest = text.strip_prefix(b"1")?;
    let rest = rest.strip_prefix(b"]").unwrap_or(rest);
    let dots = rest.iter().take_while(|byte| **byte == b'.').count();
    (dots < 3).then(|| rest[dots..].trim_ascii_start())
}

/// Returns the offset of the first move number 1 in `text` that a move follows, as in `1. e4`. Returns `None` if there
/// is none.
pub(super) fn find_first_move(text: &[u8]) -> Option<usize> {
    memchr_iter(b'1', text).find(|at| {
        !text[..*at].last().is_some_and(u8::is_ascii_digit) && first_move_follows(&text[*at..])
    })
}

/// Returns `true` if `text` begins with White's first move and its number, such as `1. e4`. Blanks may precede them.
pub(super) fn first_move_follows(text: &[u8]) -> bool {
    after_first_number(text.trim_ascii_start())
        .is_some_and(|rest| looks_like_move(without_marks(first_word(rest))))
}

/// Decodes a comment as UTF-8 or, if it is not valid UTF-8, as Latin-1. Leaves out commands such as `[%clk 0:02:59]`,
/// and replaces each run of white space with a blank.
pub(crate) fn comment_text(comment: &[u8]) -> String {
    let text = tag_text(comment);
    let mut said = String::new();
    let mut rest = &*text;
    while let Some(start) = rest.find("[%") {
        let Some(len) = rest[start..].find(']') else {
            break;
        };
        said.push_str(&rest[..start]);
        rest = &rest[start + len + 1..];
    }
    said.push_str(rest);
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The kind of text at the beginning of the moves of a game.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Movetext {
    /// A move number, such as `1.` or `[1]`. A sign may precede it, as in `| 1.`.
    Number,
    /// A move without a number, or a null move that another move follows.
    Move,
    /// A termination marker, such as `1-0`. Contains its length in bytes.
    Marker(usize),
}

/// Returns `true` if a text starts like the moves of a game. Examines at most [`WINDOW`] bytes.
pub(super) fn moves_begin(text: &[u8]) -> bool {
    beginning_of_moves(text).is_some()
}

/// Returns the kind of movetext with which `text` begins, or `None` if `text` does not begin like movetext. Examines at
/// most [`WINDOW`] bytes. A null move alone is not accepted, because it may be a line of dashes.
pub(super) fn beginning_of_moves(text: &[u8]) -> Option<Movetext> {
    let text = &text[..text.len().min(WINDOW)];
    // `| 1. e4`
    if let [sign, rest @ ..] = text
        && b"|,/~>=+#^-".contains(sign)
        && first_move_follows(rest)
    {
        return Some(Movetext::Number);
    }
    let number = bracketed_number(text);
    if number > 0 {
        let after = text[number..].trim_ascii_start();
        let is_move = |after| {
            matches!(
                beginning_of_moves(after),
                Some(Movetext::Number | Movetext::Move)
            )
        };
        return (bracketed_number(after) == 0 && is_move(after)).then_some(Movetext::Number);
    }
    // Any other bracket begins a tag, or something else that is not movetext.
    if text.first() == Some(&b'[') {
        return None;
    }
    let is_between = |at: usize| match text.get(at) {
        Some(b'.' | b' ' | b'\n' | b'\r') => 1,
        Some(byte) if !byte.is_ascii() || is_control(*byte) => blank(&text[at..]),
        _ => 0,
    };
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let is_number = digits > 0 && is_between(digits) > 0;
    let mut at = if is_number { digits } else { 0 };
    while is_between(at) > 0 {
        at += is_between(at);
    }
    // The number or the asterisk of a list, before a tag.
    if text.get(at) == Some(&b'[') && is_number && is_tag_start(Text::new(text), at) {
        return None;
    }
    if let [b'*', rest @ ..] = &text[at..]
        && let rest = rest.trim_ascii_start()
        && is_tag_start(Text::new(rest), 0)
        && !text[..text.len() - rest.len()].contains(&b'\n')
    {
        return None;
    }
    // Nearly all games begin with `1.` and a blank or a letter, which no marker does.
    if is_number && text[digits] == b'.' && !text.get(digits + 1).is_some_and(u8::is_ascii_digit) {
        return Some(Movetext::Number);
    }
    let first = first_word(&text[..text.len().min(MAX_MARKER_LENGTH)]);
    // `0.5-0.5` begins like a move number.
    if GameResult::from_marker(first).is_some() {
        return Some(Movetext::Marker(first.len()));
    }
    if let Some((_, length, is_last)) = GameResult::spaced_marker(text)
        && !is_last
    {
        return Some(Movetext::Marker(length));
    }
    // A move number with a dot is enough, whatever follows.
    if is_number && matches!(text[digits], b'.' | 0x80..) {
        return Some(Movetext::Number);
    }
    let of_move = match digits {
        0 => Movetext::Move,
        _ => Movetext::Number,
    };
    if text.get(at) == Some(&b'*') {
        let is_emphasis = digits == 0 && emphasized(&text[at..]).is_some();
        return Some(match is_emphasis {
            true => of_move,
            false => Movetext::Marker(at + 1),
        });
    }
    let word = first_word(&text[at..]);
    if GameResult::from_marker(word).is_some()
        || GameResult::from_marker_among_signs(word).is_some()
    {
        return Some(Movetext::Marker(at + word.len()));
    }
    let follows = || first_word(text[at + word.len()..].trim_ascii_start());
    let is_move = looks_like_move(without_marks(word))
        || ((null_move(word).is_some() || is_null_move(without_marks(word)))
            && looks_like_move(without_marks(follows())))
        // `1Nf3`
        || (!is_number && looks_like_move(without_marks(&word[digits.min(word.len())..])));
    is_move.then_some(of_move)
}

/// Finds Markdown emphasis at the start of `text`, such as `*Nf3*` or `**1. e4 e5**`. The asterisks must not be
/// separated from the moves by blanks. Returns the number of asterisks before the moves, and the offset of those after
/// them. Returns `None` if there is no emphasis; a single asterisk is then a termination marker.
pub(super) fn emphasized(text: &[u8]) -> Option<(usize, usize)> {
    let length = text
        .iter()
        .take(4)
        .take_while(|byte| **byte == b'*')
        .count();
    if !(1..=3).contains(&length) {
        return None;
    }
    let (mark, inside) = text.split_at(length);
    let close = memchr3(b'*', b'\n', b'\r', inside).filter(|close| *close > 0)?;
    let after = inside[close..].strip_prefix(mark)?.first();
    let is_closed = !inside[0].is_ascii_whitespace()
        && !inside[close - 1].is_ascii_whitespace()
        && !after.is_some_and(|byte| *byte == b'*' || byte.is_ascii_alphanumeric());
    // The text between the asterisks must not contain the end of a game.
    let is_move_or_number = |word: &[u8]| {
        let digits = word.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let dots = word[digits..]
            .iter()
            .take_while(|byte| **byte == b'.')
            .count();
        let rest = &word[digits + dots..];
        rest.is_empty() || looks_like_move(without_marks(rest))
    };
    let mut words = inside[..close].split(|byte| byte.is_ascii_whitespace());
    (is_closed && words.all(is_move_or_number)).then_some((length, length + close))
}

/// Returns the length in bytes of the move number in brackets or parentheses at the start of `text`, such as `[12]`.
/// Returns 0 if there is no such number.
pub(super) fn bracketed_number(text: &[u8]) -> usize {
    let (close, rest) = match text {
        [b'[', rest @ ..] => (b']', rest),
        [b'(', rest @ ..] => (b')', rest),
        _ => return 0,
    };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let dots = rest[digits..]
        .iter()
        .take_while(|byte| **byte == b'.')
        .count();
    if (1..=4).contains(&digits) && rest.get(digits + dots) == Some(&close) {
        digits + dots + 2
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_tag(text: &str, name: &str, value: &str, rest: &str) {
        let (tag, end) = read_tag(Text::new(text.as_bytes()), 0).expect(text);
        assert_eq!(tag.name, name.as_bytes());
        assert_eq!(String::from_utf8_lossy(tag.value), value);
        assert_eq!(&text[end..], rest);
    }

    #[test]
    fn tags_in_common_forms_are_read() {
        assert_tag("[White \"A\"]\n", "White", "A", "\n");
        assert_tag("[ White\t\"A\" ] x", "White", "A", " x");
        assert_tag("[White \"A\"][Black \"B\"]", "White", "A", "[Black \"B\"]");
        assert_tag("[White \"\"]", "White", "", "");
        assert_tag("[Event \"a ] b [ c\"]", "Event", "a ] b [ c", "");
        assert_tag(
            r#"[Event "the \"Big\" one"]"#,
            "Event",
            r#"the \"Big\" one"#,
            "",
        );
        assert_tag(
            r#"[Event "the "Big" one"]"#,
            "Event",
            r#"the "Big" one"#,
            "",
        );
        assert_tag(r#"[Event "ends in \\"]"#, "Event", r"ends in \\", "");
    }

    #[test]
    fn other_quotation_marks_are_quotes() {
        for (open, close) in [
            ("“", "”"),
            ("„", "“"),
            ("”", "”"),
            ("‘", "’"),
            ("'", "'"),
            ("`", "'"),
            ("´", "´"),
            ("«", "»"),
            ("»", "«"),
            ("‹", "›"),
            ("″", "″"),
            ("＂", "＂"),
            ("「", "」"),
            ("&quot;", "&quot;"),
            ("&#34;", "&#34;"),
            ("\\\"", "\\\""),
            ("&ldquo;", "&rdquo;"),
            ("“", "\""),
            ("\"", "”"),
            ("\"\"", "\"\""),
            ("'", "’"),
        ] {
            for value in ["Paulus, K", "O'Neil", "", "a ] b [ c", "8/8/8[Qn] w"] {
                let tag = format!("[White {open}{value}{close}]");
                assert_tag(&tag, "White", value, "");
                assert_tag(
                    &format!("{tag}\r\n[Black \"B\"]"),
                    "White",
                    value,
                    "\r\n[Black \"B\"]",
                );
                let next = format!("[Black {open}B{close}]");
                if open != "\"" {
                    assert_tag(
                        &format!("{tag} {next}"),
                        "White",
                        value,
                        &format!(" {next}"),
                    );
                }
            }
        }
        assert_tag("[White “A]\n", "White", "A", "\n");
        assert_tag("[White “A”\n", "White", "A", "\n");
        for (open, close) in [(0x93, 0x94), (0x84, 0x93), (0x91, 0x92), (0xab, 0xbb)] {
            let text = [b"[White ", &[open][..], b"M\xfcller", &[close], b"]"].concat();
            let (tag, _) = read_tag(Text::new(&text), 0).unwrap();
            assert_eq!(tag.value, b"M\xfcller");
        }
        // The last byte of this letter is a quotation mark in Windows-1252.
        assert_tag("[White “Vukovi\u{104}]", "White", "Vukovi\u{104}", "");
    }

    #[test]
    fn a_backslash_may_be_the_last_character_of_a_value() {
        for (text, value, rest) in [
            (r#"[White "Gus\"]"#, r"Gus\", ""),
            (
                "[White \"C:\\bases\\\"] \n1. e4 {\"x\"]}",
                "C:\\bases\\",
                " \n1. e4 {\"x\"]}",
            ),
            (r#"[White "Gus\"][Black "B"]"#, r"Gus\", r#"[Black "B"]"#),
            (
                r#"[White "Gus\" ]  [Black "B"]"#,
                r"Gus\",
                r#"  [Black "B"]"#,
            ),
            (r#"[White "Gus\"] 1. e4"#, r"Gus\", " 1. e4"),
            (r#"[White "a \"b\"] c"]"#, r#"a \"b\"] c"#, ""),
            ("[White \"a\nb\\\"]\n", "a\nb\\", "\n"),
        ] {
            assert_tag(text, "White", value, rest);
        }
    }

    #[test]
    fn an_unclosed_tag_ends_with_its_line() {
        assert_tag("[White \"A\n[Black \"B\"]", "White", "A", "\n[Black \"B\"]");
        assert_tag(
            "[White \"A]\r\n[Black \"B\"]",
            "White",
            "A",
            "\r\n[Black \"B\"]",
        );
        assert_tag(
            "[White \"A\"\n[Black \"B\"]",
            "White",
            "A",
            "\n[Black \"B\"]",
        );
    }

    #[test]
    fn a_value_may_be_broken_over_lines() {
        assert_tag(
            "[Event \"a\nb\"]\n[Black \"B\"]",
            "Event",
            "a\nb",
            "\n[Black \"B\"]",
        );
        assert_tag(
            "[Event \"a\r\nb\r\n\"c\" d\" ]x",
            "Event",
            "a\r\nb\r\n\"c\" d",
            "x",
        );
        assert_tag(
            r#"[Event "a
\"b\"]"]"#,
            "Event",
            "a\n\\\"b\\\"]",
            "",
        );
        for rest in [
            "\n\nb\"]",
            "\n[b \"]\"]",
            "\nx [B \"b\"]",
            "\n1. e4 1-0\n1. d4 {\"]",
            "\nb\" ",
            "",
        ] {
            assert_tag(&format!("[Event \"a{rest}"), "Event", "a", rest);
        }
        let long = "x\n".repeat(MAX_CONTINUATION_LENGTH / 2 + 1);
        let rest = format!("\n{long}\"]");
        assert_tag(&format!("[Event \"a{rest}"), "Event", "a", &rest);
    }

    #[test]
    fn the_number_of_tags_is_bounded_but_used_tags_are_kept() {
        let names: Vec<String> = (0..3 * MAX_TAGS).map(|i| format!("x{i}")).collect();
        let mut tags = Tags::default();
        let mut push = |name, value| {
            tags.push(Tag { name, value });
        };
        for name in &names {
            push(name.as_bytes(), b"1");
        }
        for _ in 0..1000 {
            push(b"x3", b"2");
            push(b"FEN", b"3");
        }
        push(b"FEN", b"4");
        assert_eq!(tags.get(b"x3"), Some(&b"1"[..]));
        assert_eq!(tags.get(b"FEN"), Some(&b"4"[..]));
        assert_eq!(tags.get(names[2 * MAX_TAGS].as_bytes()), None);
        assert_eq!(tags.iter().len(), MAX_TAGS + 1);
    }

    #[test]
    fn text_that_is_not_a_tag_is_not_read_as_one() {
        for text in [
            "[%clk 0:01:00]",
            "[",
            "[White]",
            "[\"x\"]",
            "[White\n\"x\"]",
            "x",
        ] {
            assert!(!is_tag_start(Text::new(text.as_bytes()), 0), "{text}");
        }
    }
}

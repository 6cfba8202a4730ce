//! Reads tag pairs, such as `[White "Morphy, Paul"]`.
//!
//! A tag ends with its line, so an unclosed tag damages at most itself. A value may continue on the next lines only
//! if it is closed there, before a blank line, another tag or the end of a game. Quotes inside a value need no
//! backslash, because the value ends at the quote before a `]` or before the end of the line.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter, memchr2, memchr3, memrchr2};

use super::{
    result::GameResult,
    word::{blank, first_word, without_marks},
};
use crate::position::{LineError, UnknownVariant, Variant, game_start, looks_like_move};

/// The maximum length in bytes of a tag's value after its first line: 1 MiB. Most values have a single line.
pub(super) const MAX_CONTINUATION_LENGTH: usize = 1 << 20;

/// The maximum length in bytes of a damaged line between the tags of a game. After a longer line, the reader does not
/// look for further tags of this game.
const MAX_BAD_TAG_LENGTH: usize = 4096;

/// The maximum number of tags that are kept for one game. Further tags are kept only if polybook itself uses them.
const MAX_TAGS: usize = 256;

/// Defines the names of the tags that are kept even if a game has very many tags. They are needed to filter, replay or
/// index games.
macro_rules! used_tags {
    ($($name:literal)*) => {
        const USED_TAGS: &[&[u8]] = &[$($name),*];

        /// Returns `true` if [`USED_TAGS`] contains `name`. Faster than a search, because each tag is looked up.
        fn is_used(name: &[u8]) -> bool {
            matches!(name, $($name)|*)
        }
    };
}

used_tags! {
    b"Event" b"Site" b"Date" b"Round" b"White" b"Black" b"Result" b"WhiteElo" b"BlackElo" b"ECO" b"FEN" b"SetUp"
    b"Variant" b"TimeControl" b"UTCDate" b"PlyCount" b"EventDate" b"EventType"
}

/// A tag pair of PGN, such as `[White "Tal"]`. The value contains the bytes of the file without decoding.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Tag<'a> {
    /// The name, which usually consists of letters and digits. Names of tags that polybook uses have the spelling of
    /// the PGN standard, even if the file contains `[fen "..."]` or `[FEN: "..."]`.
    pub name: &'a [u8],
    /// The text between the quotes, including escapes and line breaks.
    pub value: &'a [u8],
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
    /// Chess960 instead of standard chess if the castling rights in the `FEN` tag are possible only in Chess960.
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
            Some(fen) if variant == Variant::Standard => {
                let start = game_start(&tag_text(fen));
                let is_chess960 = matches!(start, Err(LineError::Chess960 { .. }));
                Ok(match is_chess960 {
                    true => Variant::Chess960,
                    false => variant,
                })
            }
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

    /// Returns `true` if a tag with the name `name` that follows these tags belongs to the same game. This is assumed
    /// if `name` is not `Event` and these tags contain no tag with this name, because the tags of the next game usually
    /// begin with `Event`, or with the same tag as those of this game.
    pub(super) fn lacks_name(&self, name: &[u8]) -> bool {
        name != b"Event" && self.get(name).is_none()
    }

    /// Returns `true` if `tag`, which follows these tags of a game, begins the next game. The first condition is that
    /// these tags already contain a tag with the same name, because a game rarely has two tags of one name. In
    /// addition, one of these conditions must be met:
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
/// offset of this bracket. Returns the offset of the next tag pair if one directly follows the closing bracket on the
/// same line. Otherwise returns the end of the line.
pub(super) fn end_of_bad_tag(text: &[u8], bracket: usize) -> usize {
    // The end of the line is not searched for at each bracket, so that a line of many brackets is read in linear
    // time.
    let stop = memchr3(b']', b'\n', b'\r', &text[bracket..]).map(|length| bracket + length);
    let Some(close) = stop.filter(|stop| text[*stop] == b']') else {
        return stop.unwrap_or(text.len());
    };
    let after = close + 1;
    let blanks = text[after..]
        .iter()
        .take_while(|byte| b" \t".contains(byte));
    let next = after + blanks.count();
    match is_tag_start(text, next) {
        true => next,
        false => line_end(text, next),
    }
}

/// Reads a line as a damaged `FEN` or `Variant` tag, such as a tag with typographic quotation marks. Returns the tag
/// with its value, but without the quotation marks and the closing bracket. Returns `None` for any other line.
pub(super) fn damaged_start_tag(line: &[u8]) -> Option<Tag<'_>> {
    let line = line.strip_prefix(b"[")?.trim_ascii_start();
    let name = [&b"FEN"[..], b"Variant"].into_iter().find(|name| {
        let start = line.get(..name.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(name))
            && line.get(name.len()).is_none_or(|byte| !is_name_byte(*byte))
    })?;
    let end = memchr(b']', line).unwrap_or(line.len());
    let mut value = line.get(name.len()..end)?.trim_ascii();
    let marks = ["\"", "'", "`", "“", "”", "„", "‘", "’", "«", "»"];
    while let Some(rest) = marks
        .iter()
        .find_map(|mark| value.strip_prefix(mark.as_bytes()))
    {
        value = rest;
    }
    while let Some(rest) = marks
        .iter()
        .find_map(|mark| value.strip_suffix(mark.as_bytes()))
    {
        value = rest;
    }
    Some(Tag { name, value })
}

/// A description of the lines after a damaged line between the tags of a game. It shows whether the tags of the game
/// continue.
pub(super) enum NextLines<'a> {
    /// A tag pair follows, perhaps after other lines that are not blank.
    Tag {
        /// The tag.
        tag: Tag<'a>,
        /// Whether a line before the tag looks like moves or contains a comment that is not closed on the line.
        may_end_tags: bool,
    },
    /// The next line is blank. Contains the offset of the first line after it that is not blank.
    BlankLine(usize),
    /// No tag pair follows within the limits on the number and the length of lines.
    Other,
}

/// Examines the lines after the line at the offset `at`, to find out whether the tags of the game continue there.
pub(super) fn tag_on_next_lines(text: &[u8], at: usize) -> NextLines<'_> {
    let (mut line, mut may_end_tags) = (at, false);
    // If the limit did not exist, reading a text of many stray lines would take quadratic time.
    for number in 0..MAX_BAD_LINES {
        let Some(next) = next_line_if_near(text, line) else {
            return NextLines::Other;
        };
        if let Some((tag, _)) = read_tag(text, next) {
            return NextLines::Tag { tag, may_end_tags };
        }
        let rest = &text[next..line_end(text, next)];
        if rest.trim_ascii().is_empty() {
            let blanks = text[next..].len() - text[next..].trim_ascii_start().len();
            return match number {
                0 => NextLines::BlankLine(next + blanks),
                _ => NextLines::Other,
            };
        }
        let are_moves = moves_begin(rest);
        // Other text may precede a tag in its line.
        if !are_moves
            && !b"{;%".contains(&rest[0])
            && let Some((tag, _)) = first_tag(rest).and_then(|at| read_tag(text, next + at))
        {
            return NextLines::Tag { tag, may_end_tags };
        }
        let is_open = memrchr2(b'{', b'}', rest).is_some_and(|brace| rest[brace] == b'{');
        may_end_tags |= is_open || are_moves;
        line = next;
    }
    NextLines::Other
}

/// Returns `true` if the bracket at the offset `at` begins a damaged line between the tags of a game. This is the case
/// if a tag pair follows on one of the next lines, and every line between the bracket at `at` and this tag pair begins
/// with a bracket, too. A bracket between moves does not meet these conditions.
pub(super) fn is_bad_tag_line(text: &[u8], at: usize) -> bool {
    if text.get(at) != Some(&b'[') || text.get(at + 1) == Some(&b'%') {
        return false;
    }
    let mut line = at;
    // If the limit did not exist, reading a text that consists of brackets only would take quadratic time.
    for _ in 0..MAX_BAD_LINES {
        match next_line_if_near(text, line) {
            Some(next) if is_tag_start(text, next) => return true,
            Some(next) if text.get(next) == Some(&b'[') => line = next,
            _ => return false,
        }
    }
    false
}

/// The maximum number of consecutive damaged lines that the reader skips to find the next tag pair.
const MAX_BAD_LINES: usize = 16;

/// Returns the offset of the next line after the offset `at`, if it begins within about [`MAX_BAD_TAG_LENGTH`] bytes.
/// Otherwise, returns `None`.
fn next_line_if_near(text: &[u8], at: usize) -> Option<usize> {
    let window = &text[at..text.len().min(at + MAX_BAD_TAG_LENGTH)];
    let length = memchr2(b'\n', b'\r', window)?;
    Some(next_line(text, at + length))
}

/// Returns `true` if a tag pair begins at the offset `at`: a bracket, a name, optional blanks and a quote.
#[inline]
pub(super) fn is_tag_start(text: &[u8], at: usize) -> bool {
    name_and_quote(text, at).is_some()
}

/// Returns the standard spelling of the name of a tag, if it is one of [`USED_TAGS`]. Ignores case, and colons or
/// equals signs at the end of the name. Returns any other name unchanged.
fn standard_name(name: &[u8]) -> &[u8] {
    if is_used(name) {
        return name;
    }
    let end = name.iter().rposition(|byte| !b":=".contains(byte));
    let plain = &name[..end.map_or(0, |last| last + 1)];
    let is_same = |known: &&&[u8]| known.eq_ignore_ascii_case(plain);
    USED_TAGS.iter().find(is_same).map_or(name, |known| known)
}

/// Returns the name of a tag, and the offset of the quote before the tag's value. `bracket` is the offset of the
/// opening bracket. Returns `None` if no tag begins at this bracket.
fn name_and_quote(text: &[u8], bracket: usize) -> Option<(&[u8], usize)> {
    if text.get(bracket) != Some(&b'[') {
        return None;
    }
    let mut at = bracket + 1;
    while matches!(text.get(at), Some(b' ' | b'\t')) {
        at += 1;
    }
    let name_at = at;
    while matches!(text.get(at), Some(b) if is_name_byte(*b)) {
        at += 1;
    }
    let name = &text[name_at..at];
    while matches!(text.get(at), Some(b' ' | b'\t')) {
        at += 1;
    }
    (!name.is_empty() && text.get(at) == Some(&b'"')).then_some((name, at))
}

#[inline]
fn is_name_byte(byte: u8) -> bool {
    /// For each byte, whether the name of a tag may contain it.
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

/// Reads the tag pair whose opening bracket is at the offset `at`. Returns the tag and the offset after it. Returns
/// `None` if no tag pair begins there.
pub(super) fn read_tag(text: &[u8], at: usize) -> Option<(Tag<'_>, usize)> {
    let (name, quote) = name_and_quote(text, at)?;
    let name = standard_name(name);
    let start = quote + 1;
    let mut at = start;
    loop {
        let Some(found) = memchr3(b'"', b'\n', b'\r', &text[at..]).map(|i| at + i) else {
            return Some(unclosed(text, name, start, text.len()));
        };
        if text[found] != b'"' {
            let broken = value_over_lines(text, name, start, found);
            return broken.or_else(|| Some(unclosed(text, name, start, found)));
        }
        at = found + 1;
        if is_escaped(text, start, found) {
            continue;
        }
        let mut after = at;
        while matches!(text.get(after), Some(b' ' | b'\t')) {
            after += 1;
        }
        let value = &text[start..found];
        match text.get(after) {
            Some(b']') => return Some((Tag { name, value }, after + 1)),
            None | Some(b'\n' | b'\r') => return Some((Tag { name, value }, after)),
            Some(_) => {}
        }
    }
}

/// Returns `true` if the quote at the offset `quote` is escaped, because an odd number of backslashes precedes it.
/// Ignores bytes before the offset `start`.
fn is_escaped(text: &[u8], start: usize, quote: usize) -> bool {
    text[start..quote]
        .iter()
        .rev()
        .take_while(|byte| **byte == b'\\')
        .count()
        % 2
        == 1
}

/// Reads a tag whose value spans several lines. `name` is the name of the tag. The value begins at the offset `start`,
/// and its first line ends at the offset `first_end`. Returns the tag and the offset after it. Returns `None` if no
/// quote closes the value on one of the next lines.
#[cold]
fn value_over_lines<'a>(
    text: &'a [u8],
    name: &'a [u8],
    start: usize,
    first_end: usize,
) -> Option<(Tag<'a>, usize)> {
    let limit = text.len().min(first_end + MAX_CONTINUATION_LENGTH);
    let mut at = next_line(text, first_end);
    while at < limit {
        let end = line_end(&text[..limit], at);
        let line = &text[at..end];
        if line.starts_with(b"[") {
            return None;
        }
        let closed = closing_quote(line);
        let is_value = match closed {
            Some((quote, _)) => !has_tag(&line[..=quote]),
            None => !line.trim_ascii().is_empty() && !has_tag(line) && !ends_game(line),
        };
        if !is_value {
            return None;
        }
        if let Some((quote, after)) = closed {
            let value = &text[start..at + quote];
            return Some((Tag { name, value }, at + after));
        }
        at = next_line(text, end);
    }
    None
}

/// Returns the offset of the line after the line break at the offset `end`.
fn next_line(text: &[u8], end: usize) -> usize {
    match text[end..] {
        [b'\r', b'\n', ..] => end + 2,
        [_, ..] => end + 1,
        [] => end,
    }
}

/// Finds the quote that closes the value of a tag. It is the first unescaped quote before a closing bracket. Returns
/// the offset of the quote in `line` and the offset after the bracket. Returns `None` if there is no such quote.
pub(super) fn closing_quote(line: &[u8]) -> Option<(usize, usize)> {
    memchr_iter(b'"', line)
        .filter(|quote| !is_escaped(line, 0, *quote))
        .find_map(|quote| {
            let rest = &line[quote + 1..];
            let blanks = rest.iter().take_while(|byte| b" \t".contains(byte));
            let bracket = quote + 1 + blanks.count();
            (line.get(bracket) == Some(&b']')).then_some((quote, bracket + 1))
        })
}

/// Returns `true` if a tag begins at any offset in a line.
pub(super) fn has_tag(line: &[u8]) -> bool {
    first_tag(line).is_some()
}

/// Returns the offset at which the first tag in a line begins, or `None` if no tag begins in the line.
pub(super) fn first_tag(line: &[u8]) -> Option<usize> {
    memchr_iter(b'[', line).find(|at| is_tag_start(line, *at))
}

/// Returns `true` if the last word of a line is a termination marker, such as `1-0`.
pub(super) fn ends_game(line: &[u8]) -> bool {
    let mut words = line.trim_ascii_end().rsplit(u8::is_ascii_whitespace);
    words.next().and_then(GameResult::from_marker).is_some()
}

/// Reads a tag without a closing quote. `name` is the name of the tag. The value begins at the offset `start`. `end` is
/// the offset of the end of the line, which also ends the value. A closing bracket before `end` is not part of the
/// value. Returns the tag and the offset `end`.
fn unclosed<'a>(text: &'a [u8], name: &'a [u8], start: usize, end: usize) -> (Tag<'a>, usize) {
    let value = text[start..end].trim_ascii_end();
    let value = value.strip_suffix(b"]").unwrap_or(value);
    (Tag { name, value }, end)
}

/// Returns the offset of the first line break at or after `at`, or the length of the text if there is none.
#[inline]
pub(super) fn line_end(text: &[u8], at: usize) -> usize {
    memchr2(b'\n', b'\r', &text[at..]).map_or(text.len(), |i| at + i)
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

/// The maximum number of bytes between a move number and its move, such as dots and blanks, that are skipped to find
/// the move.
const MAX_START_LENGTH: usize = 256;

/// Returns `true` if a text starts like the moves of a game: with a move, with a termination marker such as `1-0`,
/// or with a move number such as `1.`.
pub(super) fn moves_begin(text: &[u8]) -> bool {
    let is_between = |at: usize| match text.get(at) {
        Some(b'.' | b' ' | b'\n' | b'\r') => 1,
        Some(0x80..) => blank(&text[at..]),
        _ => 0,
    };
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let is_number = digits > 0 && is_between(digits) > 0;
    let mut at = if is_number { digits } else { 0 };
    // If the limit did not exist, reading a text of many lines of dots would take quadratic time.
    while at < MAX_START_LENGTH && is_between(at) > 0 {
        at += is_between(at);
    }
    let word = first_word(&text[at..]);
    GameResult::from_marker(word).is_some()
        // `0.5-0.5` begins like a move number.
        || GameResult::from_marker(first_word(text)).is_some()
        || GameResult::spaced_marker(text).is_some_and(|(_, _, is_last)| !is_last)
        || looks_like_move(without_marks(word))
        // `1Nf3`
        || (!is_number && looks_like_move(without_marks(&word[digits.min(word.len())..])))
        || text.get(at) == Some(&b'*')
        // A move number with a dot is enough, whatever follows.
        || (is_number && matches!(text[digits], b'.' | 0x80..))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_tag(text: &str, name: &str, value: &str, rest: &str) {
        let (tag, end) = read_tag(text.as_bytes(), 0).expect(text);
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
            assert!(!is_tag_start(text.as_bytes(), 0), "{text}");
        }
    }
}

//! Tag pairs: `[White "Morphy, Paul"]`.
//!
//! A tag ends with its line, so one that is not closed costs at most itself. Only a value that is closed
//! on one of the next lines, before anything that looks like another tag, a blank line or the end of a
//! game, was broken over lines. Quotes inside a value need no backslash: the value ends at the quote
//! that a `]` or the end of the line follows.

use memchr::{memchr, memchr_iter, memchr2, memchr3};

use super::result::GameResult;

/// How far after its first line a value that is broken over lines may be closed: 1 MiB.
pub(super) const LONGEST_CONTINUATION: usize = 1 << 20;

/// The most bytes of a line that may be passed over as a damaged tag before another tag.
const LONGEST_BAD_TAG: usize = 4096;

/// How many tags of a game are kept whatever their names are.
const KEPT: usize = 256;

/// The names that are kept however many tags come before them: those that choosing, replaying and
/// indexing games ask for.
const ALWAYS_KEPT: [&[u8]; 18] = [
    b"Event",
    b"Site",
    b"Date",
    b"Round",
    b"White",
    b"Black",
    b"Result",
    b"WhiteElo",
    b"BlackElo",
    b"ECO",
    b"FEN",
    b"SetUp",
    b"Variant",
    b"TimeControl",
    b"UTCDate",
    b"PlyCount",
    b"EventDate",
    b"EventType",
];

/// A tag pair, its bytes as they are in the file.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Tag<'a> {
    /// The name, letters and digits mostly.
    pub name: &'a [u8],
    /// The text between the quotes. Escapes and line breaks are left as they are.
    pub value: &'a [u8],
}

/// The tags of one game, in the order of the file.
///
/// Of the tags after the first 256 of a game, only those that polybook itself reads are kept, so that
/// memory stays bounded.
#[derive(Clone, Default, Debug)]
pub struct Tags<'a>(Vec<Tag<'a>>);

impl<'a> Tags<'a> {
    /// The value of a tag, the last one if there are several.
    #[inline]
    pub fn get(&self, name: &[u8]) -> Option<&'a [u8]> {
        self.0
            .iter()
            .rev()
            .find(|tag| tag.name == name)
            .map(|tag| tag.value)
    }

    /// All tags.
    pub fn iter(&self) -> std::slice::Iter<'_, Tag<'a>> {
        self.0.iter()
    }

    /// Whether the game has no tags at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn push(&mut self, tag: Tag<'a>) {
        if self.0.len() < KEPT {
            self.0.push(tag);
        } else if ALWAYS_KEPT.contains(&tag.name) {
            match self.0.iter_mut().rev().find(|it| it.name == tag.name) {
                Some(known) => known.value = tag.value,
                None => self.0.push(tag),
            }
        }
    }

    /// Returns `true` if `tag` is one of the next game: its name is among the first of these tags, and it follows a blank
    /// line, is `Event`, or gives another value to a name of the seven-tag roster.
    pub(super) fn end_before(&self, tag: Tag<'_>, blank_line: bool) -> bool {
        let in_roster = matches!(
            tag.name,
            b"Event" | b"Site" | b"Date" | b"Round" | b"White" | b"Black" | b"Result"
        );
        if !blank_line && !in_roster {
            return false;
        }
        // The limit keeps a file of nothing but tags from being read in quadratic time.
        let mut first = self.0.iter().take(32);
        first
            .find(|earlier| earlier.name == tag.name)
            .is_some_and(|earlier| blank_line || tag.name == b"Event" || earlier.value != tag.value)
    }
}

/// Returns where the text goes on after a bracket that begins no tag pair: at a tag pair after the closing bracket, or at
/// the end of the line.
pub(super) fn end_of_bad_tag(text: &[u8], bracket: usize) -> usize {
    let end = line_end(text, bracket);
    let Some(close) = memchr(b']', &text[bracket..end]) else {
        return end;
    };
    let after = bracket + close + 1;
    let blanks = text[after..end]
        .iter()
        .take_while(|byte| b" \t".contains(byte));
    let next = after + blanks.count();
    if is_tag_start(text, next) { next } else { end }
}

/// Returns `true` if the line at `at`, which begins no tag pair, is directly followed by one.
pub(super) fn is_followed_by_tag(text: &[u8], at: usize) -> bool {
    next_if_short(text, at).is_some_and(|next| is_tag_start(text, next))
}

/// Returns `true` if the bracket at `at` begins a line that stands among tags though it is no tag pair: the next line
/// begins with a bracket too.
pub(super) fn is_bad_tag_line(text: &[u8], at: usize) -> bool {
    text.get(at) == Some(&b'[')
        && text.get(at + 1) != Some(&b'%')
        && next_if_short(text, at).is_some_and(|next| text.get(next) == Some(&b'['))
}

/// Returns where the line after the one at `at` begins, or `None` if the line at `at` is too long for a tag.
fn next_if_short(text: &[u8], at: usize) -> Option<usize> {
    let window = &text[at..text.len().min(at + LONGEST_BAD_TAG)];
    let length = memchr2(b'\n', b'\r', window)?;
    Some(next_line(text, at + length))
}

/// Whether a tag pair begins at `at`: a bracket, a name, blanks and a quote.
#[inline]
pub(super) fn is_tag_start(text: &[u8], at: usize) -> bool {
    name_and_quote(text, at).is_some()
}

/// The name of the tag at a bracket, and where its opening quote is.
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

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_+#=:-/".contains(&byte)
}

/// Reads the tag pair whose bracket is at `at`, and says where the text goes on.
pub(super) fn read_tag(text: &[u8], at: usize) -> Option<(Tag<'_>, usize)> {
    let (name, quote) = name_and_quote(text, at)?;
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

/// Whether an odd number of backslashes comes before a quote.
fn is_escaped(text: &[u8], start: usize, quote: usize) -> bool {
    text[start..quote]
        .iter()
        .rev()
        .take_while(|byte| **byte == b'\\')
        .count()
        % 2
        == 1
}

/// A tag whose value goes on after the line that ends at `first_end`, and is closed there.
#[cold]
fn value_over_lines<'a>(
    text: &'a [u8],
    name: &'a [u8],
    start: usize,
    first_end: usize,
) -> Option<(Tag<'a>, usize)> {
    let limit = text.len().min(first_end + LONGEST_CONTINUATION);
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

/// Where the line begins that follows one ending at `end`.
fn next_line(text: &[u8], end: usize) -> usize {
    match text[end..] {
        [b'\r', b'\n', ..] => end + 2,
        [_, ..] => end + 1,
        [] => end,
    }
}

/// The quote in a line that closes the value of a tag and is followed by its bracket, and where the line
/// goes on after the bracket.
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

/// Whether a tag begins anywhere in a line.
pub(super) fn has_tag(line: &[u8]) -> bool {
    memchr_iter(b'[', line).any(|at| is_tag_start(line, at))
}

/// Returns `true` if the last word of `line` is a termination marker.
pub(super) fn ends_game(line: &[u8]) -> bool {
    let mut words = line.trim_ascii_end().rsplit(u8::is_ascii_whitespace);
    words.next().and_then(GameResult::from_marker).is_some()
}

/// A tag whose value is not closed: it is the rest of the line.
fn unclosed<'a>(text: &'a [u8], name: &'a [u8], start: usize, end: usize) -> (Tag<'a>, usize) {
    let value = text[start..end].trim_ascii_end();
    let value = value.strip_suffix(b"]").unwrap_or(value);
    (Tag { name, value }, end)
}

/// The end of the line that `at` is in: where its line break or the end of the text is.
#[inline]
pub(super) fn line_end(text: &[u8], at: usize) -> usize {
    memchr2(b'\n', b'\r', &text[at..]).map_or(text.len(), |i| at + i)
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
    fn tags_as_they_are_found() {
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
        let long = "x\n".repeat(LONGEST_CONTINUATION / 2 + 1);
        let rest = format!("\n{long}\"]");
        assert_tag(&format!("[Event \"a{rest}"), "Event", "a", &rest);
    }

    #[test]
    fn tags_are_bounded_and_those_that_count_are_kept() {
        let names: Vec<String> = (0..3 * KEPT).map(|i| format!("x{i}")).collect();
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
        assert_eq!(tags.get(names[2 * KEPT].as_bytes()), None);
        assert_eq!(tags.iter().len(), KEPT + 1);
    }

    #[test]
    fn what_is_no_tag() {
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

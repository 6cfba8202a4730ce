//! Tag pairs: `[White "Morphy, Paul"]`.
//!
//! A tag never reaches past its line, so one that nobody closed costs at most itself. Quotes inside
//! a value need no backslash: the value ends at the quote that a `]` or the end of the line follows.

use memchr::{memchr2, memchr3};

/// A tag pair, its bytes as they stand in the file.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Tag<'a> {
    /// The name, letters and digits mostly.
    pub name: &'a [u8],
    /// What stands between the quotes, escapes left as they are.
    pub value: &'a [u8],
}

/// The tags of one game, in the order of the file.
#[derive(Clone, Default, Debug)]
pub struct Tags<'a>(Vec<Tag<'a>>);

impl<'a> Tags<'a> {
    /// The value of a tag, the last one if it stands twice.
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
        self.0.push(tag);
    }

    /// Whether a name is among the first of the tags.
    pub(super) fn begins_with_name(&self, name: &[u8]) -> bool {
        // A bound, so that a file of nothing but tags is not read in quadratic time.
        self.0.iter().take(32).any(|tag| tag.name == name)
    }
}

/// Whether a tag pair begins at `at`: a bracket, a name, blanks and a quote.
#[inline]
pub(super) fn is_tag_start(text: &[u8], at: usize) -> bool {
    name_and_quote(text, at).is_some()
}

/// The name of the tag at a bracket, and where its opening quote stands.
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

/// Reads the tag pair whose bracket stands at `at`, and says where the text goes on.
pub(super) fn read_tag(text: &[u8], at: usize) -> Option<(Tag<'_>, usize)> {
    let (name, quote) = name_and_quote(text, at)?;
    let start = quote + 1;
    let mut at = start;
    loop {
        let Some(found) = memchr3(b'"', b'\n', b'\r', &text[at..]).map(|i| at + i) else {
            return Some(unclosed(text, name, start, text.len()));
        };
        if text[found] != b'"' {
            return Some(unclosed(text, name, start, found));
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

/// Whether an odd number of backslashes stands before a quote.
fn is_escaped(text: &[u8], start: usize, quote: usize) -> bool {
    text[start..quote]
        .iter()
        .rev()
        .take_while(|byte| **byte == b'\\')
        .count()
        % 2
        == 1
}

/// A tag whose value nobody closed: it is the rest of the line.
fn unclosed<'a>(text: &'a [u8], name: &'a [u8], start: usize, end: usize) -> (Tag<'a>, usize) {
    let value = text[start..end].trim_ascii_end();
    let value = value.strip_suffix(b"]").unwrap_or(value);
    (Tag { name, value }, end)
}

/// The end of the line that `at` stands in: where its line break or the end of the text is.
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

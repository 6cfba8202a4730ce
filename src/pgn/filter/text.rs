//! Conditions on the text of tags.

use std::{borrow::Cow, fmt, str::FromStr};

use unicode_normalization::UnicodeNormalization;

use super::GameFilterError;
use crate::pgn::Tags;

/// A condition on the text of a tag, such as `Event=blitz`: the value of a tag with this name must contain the text. Upper
/// and lower case are not distinguished. Every value contains the empty text, so `Annotator=` only requires that the tag
/// exists.
///
/// ```
/// use polybook::pgn::{GameReader, TagText};
///
/// let mut games = GameReader::new(b"[Event \"Rated Blitz game\"]\n\n1. e4 *");
/// games.next_game();
/// let blitz: TagText = "Event=blitz".parse()?;
/// assert!(blitz.is_in(games.tags()));
/// # Ok::<(), polybook::pgn::GameFilterError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TagText {
    name: String,
    text: String,
    lowercase: String,
}

impl TagText {
    /// Returns `true` if a tag with the name contains the text. The names of tags are compared without case, too.
    pub fn is_in(&self, tags: &Tags<'_>) -> bool {
        tags.iter()
            .filter(|tag| tag.name.eq_ignore_ascii_case(self.name.as_bytes()))
            .any(|tag| lowercase(&tag_text(tag.value)).contains(&self.lowercase))
    }
}

impl fmt::Display for TagText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.text)
    }
}

/// Parses `NAME=TEXT`, where the name contains no blanks.
impl FromStr for TagText {
    type Err = GameFilterError;

    fn from_str(text: &str) -> Result<TagText, GameFilterError> {
        let malformed = || GameFilterError::Malformed {
            text: text.to_owned(),
            what: "a tag and a text: write NAME=TEXT, such as Event=blitz",
        };
        let (name, value) = text.split_once('=').ok_or_else(malformed)?;
        let name = name.trim();
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err(malformed());
        }
        Ok(TagText {
            name: name.to_owned(),
            text: value.to_owned(),
            lowercase: lowercase(value),
        })
    }
}

fn lowercase(text: &str) -> String {
    without_escapes(text).to_lowercase()
}

/// Returns whether a game is rated, if the words of its `Event` tag say so, as in "Rated Blitz game", "FICS unrated blitz
/// game", "Non-rated" and "Casual Rapid game". Returns `None` if they do not say.
pub(in crate::pgn) fn is_rated(tags: &Tags<'_>) -> Option<bool> {
    let event = tags.get(b"Event")?.to_ascii_lowercase();
    let words = event.split(|byte| !byte.is_ascii_alphanumeric());
    let (mut before, mut is_rated) = (&b""[..], None);
    for word in words.filter(|word| !word.is_empty()) {
        match (before, word) {
            (_, b"casual" | b"unrated" | b"nonrated") | (b"non" | b"un" | b"not", b"rated") => {
                return Some(false);
            }
            (_, b"rated") => is_rated = Some(true),
            _ => {}
        }
        before = word;
    }
    is_rated
}

/// How the names of players and events are compared. Both names are normalized to Unicode's form NFC, to lower case, and to
/// single blanks between words.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum NameMatch {
    /// The names must be equal.
    #[default]
    Whole,
    /// The wanted name must be a part of the other name.
    Part,
}

impl NameMatch {
    /// Returns `true` if a name matches the wanted name. Both must be [`folded`].
    pub(crate) fn matches(self, name: &str, wanted: &str) -> bool {
        match self {
            NameMatch::Whole => name == wanted,
            NameMatch::Part => name.contains(wanted),
        }
    }

    /// Returns `true` if the value of a tag matches one of the names, with both [`folded`] before.
    pub(super) fn matches_any(self, value: &[u8], names: &[String]) -> bool {
        let value = folded(&tag_text(value));
        names.iter().any(|name| self.matches(&value, &folded(name)))
    }
}

/// Removes each backslash before a quote or another backslash. PGN escapes these two in the values of tags, and people do not
/// write the escapes when they search.
fn without_escapes(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut rest = text.chars().peekable();
    let mut plain = String::with_capacity(text.len());
    while let Some(char) = rest.next() {
        if char != '\\' || !matches!(rest.peek(), Some('"' | '\\')) {
            plain.push(char);
        }
    }
    plain.into()
}

/// Returns a name in the form in which names are compared: in Unicode's form NFC, in lower case, without the escapes of PGN, with
/// single blanks between words and no blanks at the ends.
pub(crate) fn folded(name: &str) -> String {
    let name = &*without_escapes(name);
    let lower: Cow<'_, str> = match name.is_ascii() {
        true => name.to_ascii_lowercase().into(),
        // The lower case of a letter may not be in NFC, so the text is normalized again.
        false => name.nfc().flat_map(char::to_lowercase).nfc().collect(),
    };
    let mut folded = String::with_capacity(lower.len());
    for word in lower.split_whitespace() {
        if !folded.is_empty() {
            folded.push(' ');
        }
        folded.push_str(word);
    }
    folded
}

/// Decodes the value of a tag as UTF-8 or, if it is not valid UTF-8, as Latin-1. Line breaks become blanks.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pgn::GameReader;

    fn tags(text: &str, check: impl Fn(&Tags<'_>)) {
        let text = format!("{text} *");
        let mut games = GameReader::new(text.as_bytes());
        assert!(games.next_game());
        check(games.tags());
    }

    #[test]
    fn conditions_on_tags_match_parts_of_values() {
        tags("[Event \"Rated Blitz Game\"][Annotator \"\"]", |tags| {
            for (condition, expected) in [
                ("Event=blitz", true),
                ("event=Rated B", true),
                ("Event=bullet", false),
                ("Site=", false),
                ("Annotator=", true),
                ("Annotator=x", false),
                (r#"Event="Open""#, false),
            ] {
                let condition: TagText = condition.parse().unwrap();
                assert_eq!(condition.is_in(tags), expected, "{condition}");
            }
        });
        tags(r#"[Event "The \"Open\""]"#, |tags| {
            for condition in [r#"Event="open""#, r#"Event=\"open\""#] {
                let condition: TagText = condition.parse().unwrap();
                assert!(condition.is_in(tags), "{condition}");
            }
        });
        for wrong in ["", "Event", "=blitz", "Two Words=x"] {
            assert!(wrong.parse::<TagText>().is_err(), "{wrong}");
        }
        // Only the first `=` separates the name from the text.
        assert_eq!("A=b=c".parse::<TagText>().unwrap().to_string(), "A=b=c");
    }

    #[test]
    fn names_are_folded_before_they_are_compared() {
        for (name, other) in [
            ("MÜLLER, Hans", "  Mu\u{308}ller,\u{a0} HANS\t"),
            ("Ａ", "ａ"),
            ("ΟΔΟΣ", "οδοσ"),
            ("İstanbul", "i\u{307}stanbul"),
            ("Nguye\u{302}\u{303}n", "NGUYỄN"),
            ("TAL,  Mikhail", "tal, mikhail"),
            (r#"Joe \"Ace\" Doe"#, r#"joe "ace" doe"#),
            (r"Back\\slash", r"back\slash"),
            (r#"\\\"x"#, r#""x"#),
        ] {
            assert_eq!(folded(name), folded(other), "{name}");
            assert_eq!(folded(&folded(name)), folded(name), "{name}");
        }
        assert_ne!(folded("Müller"), folded("Muller"));
        assert_ne!(folded("Tal, M"), folded("Tal,M"));
        assert_eq!(folded(" \n "), "");
        assert!(NameMatch::Part.matches_any(b"Mu\xcc\x88ller,  Hans", &["ÜLLER, h".to_owned()]));
        assert!(!NameMatch::Whole.matches_any(b"M\xfcller", &["ller".to_owned()]));
    }

    #[test]
    fn the_word_rated_may_be_negated() {
        for (event, expected) in [
            ("Rated Blitz game", Some(true)),
            ("FICS rated standard game", Some(true)),
            ("FICS unrated blitz game", Some(false)),
            ("Casual Blitz game", Some(false)),
            ("Non-rated game", Some(false)),
            ("Un-Rated", Some(false)),
            ("nonrated", Some(false)),
            ("Blitz (not rated)", Some(false)),
            ("Rated Casual Club", Some(false)),
            ("Not a Rated game", Some(true)),
            ("Casualty Memorial", None),
            ("", None),
        ] {
            tags(&format!("[Event \"{event}\"]"), |tags| {
                assert_eq!(is_rated(tags), expected, "{event}");
            });
        }
    }
}

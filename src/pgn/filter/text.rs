//! Conditions on the text of tags.

use std::{borrow::Cow, fmt, str::FromStr};

use unicode_normalization::UnicodeNormalization;

use super::GameFilterError;
use crate::pgn::Tags;

/// A text that a tag of this name has in it, in any case: `Event=blitz`. No text at all is in every value, so
/// `Annotator=` asks for the tag alone.
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
    /// Whether a tag of the name has the text in it. Names are compared in any case, too.
    pub fn is_in(&self, tags: &Tags<'_>) -> bool {
        tags.iter()
            .filter(|tag| tag.name.eq_ignore_ascii_case(self.name.as_bytes()))
            .any(|tag| tag_text(tag.value).to_lowercase().contains(&self.lowercase))
    }
}

impl fmt::Display for TagText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.text)
    }
}

/// `NAME=TEXT`, a name without blanks.
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
            lowercase: value.to_lowercase(),
        })
    }
}

/// Whether a game is rated, if a word of its `Event` tag says so, as in "Rated Blitz game", "FICS unrated blitz game",
/// "Non-rated" and "Casual Rapid game".
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

/// How the name of a player or an event is looked for. Names are compared in Unicode's form NFC, in any case, with
/// single blanks.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum NameMatch {
    /// All of it.
    #[default]
    Whole,
    /// Part of it.
    Part,
}

impl NameMatch {
    /// Whether a name matches one that is looked for, both of them [`folded`].
    pub(crate) fn matches(self, name: &str, wanted: &str) -> bool {
        match self {
            NameMatch::Whole => name == wanted,
            NameMatch::Part => name.contains(wanted),
        }
    }

    /// Whether the value of a tag matches one of some names.
    pub(super) fn matches_any(self, value: &[u8], names: &[String]) -> bool {
        let value = folded(&tag_text(value));
        names.iter().any(|name| self.matches(&value, &folded(name)))
    }
}

/// A name as it is compared: in Unicode's form NFC, in lower case, with single blanks between its words and none around
/// them.
pub(crate) fn folded(name: &str) -> String {
    let lower: Cow<'_, str> = match name.is_ascii() {
        true => name.to_ascii_lowercase().into(),
        // A letter in lower case may be one that NFC takes apart, or joins to the mark that follows.
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

/// The text of a tag, which is UTF-8 or else Latin-1, with a blank where it is broken over lines.
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
    fn a_tag_has_a_text_in_it() {
        tags("[Event \"Rated Blitz Game\"][Annotator \"\"]", |tags| {
            for (condition, expected) in [
                ("Event=blitz", true),
                ("event=Rated B", true),
                ("Event=bullet", false),
                ("Site=", false),
                ("Annotator=", true),
                ("Annotator=x", false),
            ] {
                let condition: TagText = condition.parse().unwrap();
                assert_eq!(condition.is_in(tags), expected, "{condition}");
            }
        });
        for wrong in ["", "Event", "=blitz", "Two Words=x"] {
            assert!(wrong.parse::<TagText>().is_err(), "{wrong}");
        }
        // Everything after the first sign is text.
        assert_eq!("A=b=c".parse::<TagText>().unwrap().to_string(), "A=b=c");
    }

    #[test]
    fn names_are_the_same_however_they_are_written() {
        for (name, other) in [
            ("MÜLLER, Hans", "  Mu\u{308}ller,\u{a0} HANS\t"),
            ("Ａ", "ａ"),
            ("ΟΔΟΣ", "οδοσ"),
            ("İstanbul", "i\u{307}stanbul"),
            ("Nguye\u{302}\u{303}n", "NGUYỄN"),
            ("TAL,  Mikhail", "tal, mikhail"),
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
    fn rated_is_a_word_and_may_be_negated() {
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

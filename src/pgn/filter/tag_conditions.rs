//! Conditions on the values of tags: their text, and ranges of ECO codes and of time controls.

use std::{borrow::Cow, fmt, str::FromStr};

use unicode_normalization::UnicodeNormalization;

use super::GameFilterError;
use crate::pgn::Tags;

/// A range of ECO codes, such as `B20-B99`. A prefix such as `C` or `A4` means all codes that begin with it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EcoRange {
    first: [u8; 3],
    last: [u8; 3],
}

impl EcoRange {
    /// Returns `true` if the value of an `ECO` tag is a code in the range. Blanks around the code, and text after its
    /// three characters, are ignored.
    pub fn contains(&self, eco: &[u8]) -> bool {
        let Some(code) = eco.trim_ascii().first_chunk::<3>() else {
            return false;
        };
        let code = code.map(|byte| byte.to_ascii_uppercase());
        code[1..].iter().all(u8::is_ascii_digit) && (self.first..=self.last).contains(&code)
    }
}

impl fmt::Display for EcoRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |code: &[u8; 3]| String::from_utf8_lossy(code).into_owned();
        write!(f, "{}-{}", text(&self.first), text(&self.last))
    }
}

impl FromStr for EcoRange {
    type Err = GameFilterError;

    fn from_str(text: &str) -> Result<EcoRange, GameFilterError> {
        let error = || GameFilterError::Malformed {
            text: text.to_owned(),
            what: "a range of ECO codes: write B20-B99, B2 for B20-B29, or B",
        };
        let padded = |code: &str, filler: u8| {
            let code = code.trim().as_bytes();
            let well_formed = matches!(code, [b'A'..=b'E' | b'a'..=b'e', rest @ ..]
                if rest.len() <= 2 && rest.iter().all(u8::is_ascii_digit));
            well_formed.then(|| {
                let mut full = [filler; 3];
                full[..code.len()].copy_from_slice(code);
                full.map(|byte| byte.to_ascii_uppercase())
            })
        };
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let range = EcoRange {
            first: padded(first, b'0').ok_or_else(error)?,
            last: padded(last, b'9').ok_or_else(error)?,
        };
        if range.first > range.last {
            return Err(error());
        }
        Ok(range)
    }
}

// Time controls.

/// A range of time controls, such as `180-480`, `600-` or `-60`. The bounds are the numbers of seconds that a player
/// can expect to use for 40 moves.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct TimeControlRange {
    min: u64,
    max: u64,
}

impl TimeControlRange {
    /// Returns `true` if a time control of `seconds` seconds for 40 moves is in the range. Both bounds belong to the
    /// range.
    pub fn contains(&self, seconds: u64) -> bool {
        (self.min..=self.max).contains(&seconds)
    }
}

impl fmt::Display for TimeControlRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-", self.min)?;
        if self.max < u64::MAX {
            write!(f, "{}", self.max)?;
        }
        Ok(())
    }
}

impl FromStr for TimeControlRange {
    type Err = GameFilterError;

    fn from_str(text: &str) -> Result<TimeControlRange, GameFilterError> {
        let error = || GameFilterError::Malformed {
            text: text.to_owned(),
            what: "a range of seconds: write 180-480, 600- or -60",
        };
        let (min, max) = text.split_once('-').ok_or_else(error)?;
        let bound = |bound: &str, open: u64| match bound.trim() {
            "" => Ok(open),
            number => number.parse().map_err(|_| error()),
        };
        let range = TimeControlRange {
            min: bound(min, 0)?,
            max: bound(max, u64::MAX)?,
        };
        if range.min > range.max {
            return Err(error());
        }
        Ok(range)
    }
}

/// The maximum length of a `TimeControl` tag in bytes. Real values have about 40 bytes at most; the limit bounds the
/// memory for parsing longer values.
const LONGEST_CONTROL: usize = 1024;

/// The number of moves that the expected time of a game covers.
const MOVES: u64 = 40;

/// Returns the number of seconds that a `TimeControl` tag gives a player for 40 moves: the base times of all periods up
/// to move 40, and an increment for each move. The last period repeats. Times may have decimals, as in `8+0.08`; the
/// sum is rounded down.
///
/// Returns `None` for `-`, for `?`, for values longer than [`LONGEST_CONTROL`], and for values that do not follow the
/// PGN standard, such as `G/60` and `1:30:00`.
pub(in crate::pgn) fn estimated_seconds(value: &[u8]) -> Option<u64> {
    let text = str::from_utf8(value)
        .ok()
        .filter(|text| text.len() <= LONGEST_CONTROL)?;
    let periods = text
        .split(':')
        .map(|period| TimeControlPeriod::parse(period.trim()));
    let periods = periods.collect::<Option<Vec<TimeControlPeriod>>>()?;
    let (last, earlier) = periods.split_last()?;
    let (mut millis, mut left) = (0_u64, MOVES);
    for period in earlier {
        let moves = period.moves?;
        if left > 0 {
            millis = millis.saturating_add(period.millis(left));
            left = left.saturating_sub(moves);
        }
    }
    while left > 0 {
        millis = millis.saturating_add(last.millis(left));
        left = left.saturating_sub(last.moves.unwrap_or(left));
    }
    Some(millis / 1000)
}

/// A period of a time control: `40/7200`, `300+5` or `*180`.
struct TimeControlPeriod {
    /// The number of moves after which the period ends, or `None` if it ends with the game.
    moves: Option<u64>,
    /// The base time in milliseconds.
    base: u64,
    /// The increment in milliseconds.
    increment: u64,
}

impl TimeControlPeriod {
    fn parse(text: &str) -> Option<TimeControlPeriod> {
        let (base, increment) = text.split_once('+').unwrap_or((text, "0"));
        let (moves, base) = match base.split_once('/') {
            Some((moves, base)) => (Some(number(moves).filter(|moves| *moves > 0)?), base),
            None => (None, base),
        };
        Some(TimeControlPeriod {
            moves,
            base: millis(base.strip_prefix('*').unwrap_or(base))?,
            increment: millis(increment)?,
        })
    }

    /// Returns the time in milliseconds that a player gets in this period for `moves` moves, or for the whole period if
    /// it has fewer.
    fn millis(&self, moves: u64) -> u64 {
        let moves = self.moves.map_or(moves, |own| own.min(moves));
        self.base
            .saturating_add(self.increment.saturating_mul(moves))
    }
}

/// Parses a number of seconds, such as `8` or `0.08`, to milliseconds. Returns `None` for other texts.
pub(in crate::pgn) fn millis(text: &str) -> Option<u64> {
    let (whole, decimals) = text.trim().split_once('.').unwrap_or((text, "0"));
    let decimals = decimals.trim();
    let decimals = decimals.get(..3).unwrap_or(decimals);
    let part = number(decimals)? * 10_u64.pow(3 - decimals.len() as u32);
    Some(number(whole)?.saturating_mul(1000).saturating_add(part))
}

/// Parses an unsigned number in decimal digits. Returns `None` for other texts, such as `+1`.
fn number(text: &str) -> Option<u64> {
    let digits = text.trim();
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number)
}

/// A condition on the text of a tag, such as `Event=blitz`: the value of a tag with this name must contain the text.
/// Case is ignored. Every value contains the empty text, so `Annotator=` only requires that the tag exists.
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
    /// Returns `true` if a tag with the name of the condition contains its text. Case is ignored in names and in
    /// values.
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
    let text = without_escapes(text);
    match text.is_ascii() {
        true => text.to_ascii_lowercase(),
        false => caseless(text.chars()).collect(),
    }
}

/// Returns the lower case of the letters' upper case. Letters that have the same upper case become equal: `ß` and `ss`, `ς` and
/// `σ`.
fn caseless(letters: impl Iterator<Item = char>) -> impl Iterator<Item = char> {
    letters
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
}

/// Returns whether a game is rated, according to words in its `Event` tag, as in "Rated Blitz game", "FICS unrated
/// blitz game" or "Casual Rapid game". Returns `None` if the tag contains no such word.
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

/// The way in which names of players and events are compared. Both names are first normalized to Unicode's form NFC, to
/// lower case, and to single blanks between words.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum NameMatch {
    /// The names must be equal.
    #[default]
    Whole,
    /// The wanted name must be a part of the other name.
    Part,
}

impl NameMatch {
    /// Returns `true` if `name` matches the name `wanted`. Both must have been normalized by [`folded`].
    pub(crate) fn matches(self, name: &str, wanted: &str) -> bool {
        match self {
            NameMatch::Whole => name == wanted,
            NameMatch::Part => name.contains(wanted),
        }
    }

    /// Returns `true` if the value of a tag matches one of `names`. Normalizes the value and the names before the
    /// comparison.
    pub(crate) fn matches_any(self, value: &[u8], names: &[String]) -> bool {
        let value = folded(&tag_text(value));
        names.iter().any(|name| self.matches(&value, &folded(name)))
    }
}

/// Returns the text without the escapes of PGN: removes each backslash before a quote or another backslash.
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

/// Normalizes a name for comparisons: converts it to Unicode's form NFC and [to lower case](caseless), removes the escapes
/// of PGN, and reduces blanks to one between two words.
pub(crate) fn folded(name: &str) -> String {
    let name = &*without_escapes(name);
    let lower: Cow<'_, str> = match name.is_ascii() {
        true => name.to_ascii_lowercase().into(),
        // The lower case of a letter may not be in NFC, so the text is normalized again.
        false => caseless(name.nfc()).nfc().collect(),
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

/// Decodes the value of a tag as UTF-8 or, if it is not valid UTF-8, as Latin-1. Replaces line breaks with blanks.
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
            ("Weiß, Jürgen", "WEISS, JÜRGEN"),
            ("Σίσυφος", "ΣΊΣΥΦΟΣ"),
            ("Işık", "IŞIK"),
            ("Ἀΐδης", "ἈΪ\u{301}ΔΗΣ"),
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

//! Parses and compares the values of tags: ratings, dates, names, ECO codes, time controls and other texts. The
//! conditions with which games are filtered use them. A condition whose value cannot be parsed results in a
//! [`ConditionError`].

use std::{borrow::Cow, fmt, str::FromStr};

use thiserror::Error;
use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

use crate::games::pgn::{Tags, tag_text};

/// The highest number that is accepted as a rating. A greater number, such as 27000 instead of 2700, is probably a
/// typing error.
pub(crate) const HIGHEST_RATING: u16 = 4000;

/// Parses the value of a rating tag, such as `2400`, `1200?`, `1400 (club)`, `DWZ=1500`, `2,400` or `2400.5`. Ignores
/// decimal places, and the number of games after the `P` in a provisional rating of the US Chess Federation, such as
/// `1500P23`. The rest of the text must contain exactly one number, and this number must be from 1 to 4,000. Otherwise
/// returns `None`.
pub(crate) fn rating(value: &[u8]) -> Option<u16> {
    let is_digit = u8::is_ascii_digit;
    let start = value.iter().position(is_digit)?;
    let digits = |text: &[u8]| text.iter().take_while(|byte| is_digit(byte)).count();
    let (number, rest) = value[start..].split_at(digits(&value[start..]));
    let (thousands, number, rest) = match (number, rest) {
        // `2,400`
        ([thousands], [b',' | b'.' | b'\'' | b' ', rest @ ..]) if digits(rest) == 3 => {
            let (number, rest) = rest.split_at(3);
            (u16::from(thousands - b'0'), number, rest)
        }
        _ => (0, number, rest),
    };
    let rest = match rest {
        [b'P' | b'p', games @ ..] if !games.is_empty() && games.iter().all(is_digit) => &[],
        // `2400.5`
        [b'.' | b',', rest @ ..] if number.len() > 2 && (1..=2).contains(&digits(rest)) => {
            &rest[digits(rest)..]
        }
        rest => rest,
    };
    if value[..start].ends_with(b"-") || rest.iter().any(is_digit) {
        return None;
    }
    let elo: u16 = str::from_utf8(number).ok()?.parse().ok()?;
    let elo = elo.checked_add(1000 * thousands);
    elo.filter(|elo| (1..=HIGHEST_RATING).contains(elo))
}

/// The error for an invalid [`Selection`](crate::games::selection::Selection): a condition cannot be parsed, or no game
/// can meet all conditions.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum ConditionError {
    /// The text of a condition cannot be parsed.
    #[error("cannot read \"{text}\": {what}")]
    Malformed {
        /// The text of the condition, as the user wrote it.
        text: String,
        /// Advice on how to write such a condition.
        what: &'static str,
    },
    /// The first day is after the last day, so no game could be admitted.
    #[error(
        "the first date, {since}, is later than the last date, {until}: exchange the two dates"
    )]
    Dates {
        /// The first day on which a game may have been played.
        since: Date,
        /// The last day on which a game may have been played.
        until: Date,
    },
    /// The lowest rating is above the highest rating, so no game could be admitted.
    #[error(
        "the lowest rating, {min}, is higher than the highest rating, {max}: exchange the two ratings"
    )]
    Ratings {
        /// The lowest rating that a game may have.
        min: u32,
        /// The highest rating that a game may have.
        max: u32,
    },
    /// The condition requires a player, but no player is given.
    #[error("{condition} is a condition on the player: also give the name of a player")]
    NeedsPlayer {
        /// The name of the condition that requires a player, such as `color`.
        condition: &'static str,
    },
    /// A query to an index contains too many names of one player.
    #[error("{names} names are too many: give at most {most}")]
    TooManyNames {
        /// The number of names in the query.
        names: usize,
        /// The maximum number of names in a query.
        most: usize,
    },
}

/// A range of ECO codes, such as `B20-B99`. ECO codes classify chess openings. A prefix such as `C` or `A4` stands for
/// all codes that begin with it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EcoRange {
    first: [u8; 3],
    last: [u8; 3],
}

impl EcoRange {
    /// Returns `true` if `eco`, the value of an `ECO` tag, is a code in the range. Examines only the first three
    /// characters of the value, and ignores blanks before them.
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
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<EcoRange, ConditionError> {
        let error = || ConditionError::Malformed {
            text: text.to_owned(),
            what: "use a range of ECO codes, such as B20-B99, B2 for B20-B29, or B",
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

/// An inclusive range of ratings. An unknown rating lies outside of every range.
///
/// ```
/// use polybook::pgn::RatingRange;
///
/// let range: RatingRange = "2000-2199".parse()?;
/// assert!(range.contains(2199) && !range.contains(2200));
/// assert!("2500-".parse::<RatingRange>()?.contains(2800) && !"-1999".parse::<RatingRange>()?.contains(0));
/// # Ok::<(), polybook::pgn::ConditionError>(())
/// ```
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct RatingRange {
    lowest: u16,
    highest: u16,
}

impl RatingRange {
    /// Returns `true` if `rating` lies within the range. An unknown rating, which is 0, never does.
    #[inline]
    pub fn contains(self, rating: u16) -> bool {
        rating > 0 && self.lowest <= rating && rating <= self.highest
    }
}

impl fmt::Display for RatingRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.lowest > 0 {
            self.lowest.fmt(f)?;
        }
        f.write_str("-")?;
        if self.highest < u16::MAX {
            self.highest.fmt(f)?;
        }
        Ok(())
    }
}

impl FromStr for RatingRange {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<RatingRange, ConditionError> {
        let error = || ConditionError::Malformed {
            text: text.to_owned(),
            what: "use a range of ratings such as 2000-2199, 2000- or -2199",
        };
        let (lowest, highest) = text.split_once('-').ok_or_else(error)?;
        let bound = |bound: &str, open: u16| match bound.trim() {
            "" => Ok(open),
            number => number.parse().map_err(|_| error()),
        };
        let range = RatingRange {
            lowest: bound(lowest, 0)?,
            highest: bound(highest, u16::MAX)?,
        };
        if range.lowest <= range.highest && text.trim() != "-" {
            Ok(range)
        } else {
            Err(error())
        }
    }
}

// Time controls.

/// A range of times in seconds, such as `180-480`, `600-` or `-60`. It selects games by their time control: the time
/// that a player has for 40 moves must be in this range.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct TimeControlRange {
    min: u64,
    max: u64,
}

impl TimeControlRange {
    /// Returns `true` if `seconds` is in the range, which includes its bounds. `seconds` is the time that a player
    /// has for 40 moves: the base time plus 40 increments.
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
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<TimeControlRange, ConditionError> {
        let error = || ConditionError::Malformed {
            text: text.to_owned(),
            what: "use a range of seconds, such as 180-480, 600- or -60",
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

/// The maximum length in bytes of a `TimeControl` value. Longer values are not parsed. Real values have at most about
/// 40 bytes.
const MAX_CONTROL_LENGTH: usize = 1024;

/// The number of moves for which [`estimated_seconds`] adds up the time of a player. Lichess uses the same number to
/// determine the speed of a game.
const ESTIMATED_MOVES: u64 = 40;

/// Returns the number of seconds that a player has for 40 moves. `value` is the value of a `TimeControl` tag. The
/// result is the sum of the base times of all periods up to move 40, plus an increment for each move. The last period
/// is repeated if necessary. If an earlier period does not say after how many moves it ends, as in `5400+30:1800+30`,
/// only its base time is added, and its moves get the increment of the next period. Times may have decimals, as in
/// `8+0.08`; the sum is rounded down.
///
/// Returns `None` for `-`, for `?`, and for values longer than [`MAX_CONTROL_LENGTH`]. Also returns `None` for values
/// that do not follow the PGN standard, such as `G/60` and `1:30:00`.
pub(crate) fn estimated_seconds(value: &[u8]) -> Option<u64> {
    let text = str::from_utf8(value)
        .ok()
        .filter(|text| text.len() <= MAX_CONTROL_LENGTH)?;
    let periods = text
        .split(':')
        .map(|period| TimeControlPeriod::parse(period.trim()));
    let periods = periods.collect::<Option<Vec<TimeControlPeriod>>>()?;
    let (last, earlier) = periods.split_last()?;
    let (mut millis, mut left) = (0_u64, ESTIMATED_MOVES);
    for period in earlier {
        if left == 0 {
            break;
        }
        match period.moves {
            // Without moves and increments, these may be hours, minutes and seconds.
            None if left == ESTIMATED_MOVES && !text.contains('+') => return None,
            Some(moves) => {
                millis = millis.saturating_add(period.millis(left));
                left = left.saturating_sub(moves);
            }
            None => millis = millis.saturating_add(period.base),
        }
    }
    while left > 0 {
        millis = millis.saturating_add(last.millis(left));
        left = left.saturating_sub(last.moves.unwrap_or(left));
    }
    Some(millis / 1000)
}

/// A period of a time control, such as `40/7200` (7200 seconds for 40 moves), `300+5` (an increment of 5 seconds) or
/// `*180` (a sandclock).
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

    /// Returns the time that a player has for `moves` moves in this period, in milliseconds: the base time plus an
    /// increment for each move. If the period has fewer moves, returns the time for the whole period.
    fn millis(&self, moves: u64) -> u64 {
        let moves = self.moves.map_or(moves, |own| own.min(moves));
        self.base
            .saturating_add(self.increment.saturating_mul(moves))
    }
}

/// Parses a number of seconds, such as `8` or `0.08`, and returns it in milliseconds. Returns `None` for any other
/// text.
pub(super) fn millis(text: &str) -> Option<u64> {
    let (whole, decimals) = text.trim().split_once('.').unwrap_or((text, "0"));
    let decimals = decimals.trim();
    let decimals = decimals.get(..3).unwrap_or(decimals);
    let part = number(decimals)? * 10_u64.pow(3 - decimals.len() as u32);
    Some(number(whole)?.saturating_mul(1000).saturating_add(part))
}

/// Parses an unsigned decimal number. Ignores white space around it. Returns `None` for any other string, such as `+1`
/// or an empty string, and for numbers that exceed [`u64::MAX`].
fn number(text: &str) -> Option<u64> {
    let digits = text.trim();
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number)
}

/// A condition on the value of a tag, such as `Event=blitz`: a game meets this condition if its `Event` tag contains
/// the text `blitz`, ignoring case. A condition without a text, such as `Annotator=`, requires only that the game has
/// the tag.
///
/// ```
/// use polybook::pgn::{GameReader, TagText};
///
/// let mut games = GameReader::new(b"[Event \"Rated Blitz game\"]\n\n1. e4 *");
/// games.next_game();
/// let blitz: TagText = "Event=blitz".parse()?;
/// assert!(blitz.is_in(games.tags()));
/// # Ok::<(), polybook::pgn::ConditionError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TagText {
    name: String,
    text: String,
    lowercase: String,
}

impl TagText {
    /// Returns `true` if `tags` contains the required tag and its value contains the required text, ignoring case.
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
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<TagText, ConditionError> {
        let malformed = || ConditionError::Malformed {
            text: text.to_owned(),
            what: "give a tag and a text, such as Event=blitz",
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
    if text.is_ascii() {
        text.to_ascii_lowercase()
    } else {
        caseless(text.chars()).collect()
    }
}

/// Converts letters to a form for comparisons that ignore case: first to upper case, and then to lower case. Because of
/// the first step, letters with the same upper case become equal too, such as `ß` and `ss`, or `ς` and `σ`.
fn caseless(letters: impl Iterator<Item = char>) -> impl Iterator<Item = char> {
    letters
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
}

/// Returns whether a game is rated, according to its `Event` tag, such as "Rated Blitz game", "FICS unrated blitz game"
/// or "Casual Rapid game". Returns `None` if the tag is missing, or if it contains neither the word "rated" nor a word
/// such as "unrated" or "casual".
pub(crate) fn is_rated(tags: &Tags<'_>) -> Option<bool> {
    rated_event(tags.get(b"Event")?)
}

/// Returns whether a game is rated, according to the name of its event. Returns `None` if the name does not tell.
pub(crate) fn rated_event(event: &[u8]) -> Option<bool> {
    let event = event.to_ascii_lowercase();
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

/// The method of comparing the name of a player or event with a wanted name. Before the comparison, both names are
/// converted to Unicode's normalization form C and to lower case, with single blanks between words.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum NameMatch {
    /// The names must be equal.
    #[default]
    Whole,
    /// The name must contain the wanted name.
    Part,
}

impl NameMatch {
    /// Returns `true` if `name` matches `wanted`: if the names are equal ([`NameMatch::Whole`]), or if `name` contains
    /// `wanted` ([`NameMatch::Part`]). The caller must have normalized both with [`normalized`].
    pub(crate) fn matches(self, name: &str, wanted: &str) -> bool {
        match self {
            NameMatch::Whole => name == wanted,
            NameMatch::Part => name.contains(wanted),
        }
    }

    /// Returns `true` if `value`, the value of a tag, matches at least one of `names`. Normalizes the value and the
    /// names before comparing them.
    pub(crate) fn matches_any(self, value: &[u8], names: &[String]) -> bool {
        if names.is_empty() {
            return false;
        }
        let value = normalized(&tag_text(value));
        names
            .iter()
            .any(|name| self.matches(&value, &normalized(name)))
    }
}

/// Removes the backslashes with which PGN escapes quotes and other backslashes in the value of a tag.
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

/// Normalizes a name for comparisons. Removes the backslashes that escape characters in PGN, and converts the name to
/// Unicode's normalization form C (NFC) and [to lower case](caseless). Replaces blanks between words with a single blank,
/// removes blanks before and after a comma, and replaces the period after an initial with a blank. `Carlsen, M.` thus
/// equals `Carlsen,M`, and `J.R.` equals `J. R.`.
pub(crate) fn normalized(name: &str) -> String {
    let name = &*without_escapes(name);
    let lower: Cow<'_, str> = if name.is_ascii() {
        name.to_ascii_lowercase().into()
    } else {
        // The lower case of a letter may not be in NFC, so the text is normalized again.
        caseless(name.nfc()).nfc().collect()
    };
    let mut folded = String::with_capacity(lower.len());
    // The number of letters since the start of the word. After 1, a period ends an initial.
    let (mut letters, mut after_initial, mut blank) = (0, false, false);
    let mut rest = lower.chars().peekable();
    while let Some(char) = rest.next() {
        if char.is_whitespace() || char == '.' && letters == 1 {
            // A hyphen may join two initials, as in `J.-P.`.
            blank |= char != '.' || rest.peek().is_some_and(|next| next.is_alphanumeric());
            after_initial = char == '.';
            letters = usize::from(after_initial);
            continue;
        }
        if blank && char != ',' && !folded.is_empty() && !folded.ends_with(',') {
            folded.push(' ');
        }
        blank = false;
        folded.push(char);
        letters = match char {
            char if char.is_alphabetic() && after_initial => 1,
            char if char.is_alphabetic() => letters + 1,
            char if is_combining_mark(char) => letters,
            // A number is not an initial.
            char if char.is_numeric() => 2,
            _ => 0,
        };
        after_initial = false;
    }
    folded
}

/// The date of a game. Its year, month and day may be unknown.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Date {
    pub(super) year: Option<u16>,
    month: Option<u8>,
    day: Option<u8>,
}

impl Date {
    /// Parses the value of a `Date` tag, in which `?` represents an unknown digit. If the day does not exist in the
    /// month, the day of the result is unknown. If the value has another form, the whole date is unknown.
    ///
    /// There are four groups of accepted forms:
    ///
    /// - `2017.07.09`, `2017-07-09`, `2017/07/09` and `2017-Jul-09`, with or without a time after them
    /// - `20170709`
    /// - a date with the English name of the month, such as `Sun Jul 09 2017` or `July 2017`
    /// - a date that ends with its year, such as `29.07.2017` or `07/2017`; if the order of day and month is unclear,
    ///   as in `10.03.2024`, only the year is known
    ///
    /// ```
    /// use polybook::pgn::Date;
    /// assert_eq!(Date::of_tag(b"2024.02.30"), Date::of_tag(b"2024.02.??"));
    /// assert_eq!(Date::of_tag(b"15.03.2024"), Date::new(2024, 3, 15));
    /// assert_eq!(Date::of_tag(b"10.03.2024"), Date::new(2024, 0, 0));
    /// ```
    pub fn of_tag(value: &[u8]) -> Date {
        let mut parts = value
            .split(|byte| b".-/".contains(byte))
            .map(<[u8]>::trim_ascii);
        let year = parts.next().unwrap_or_default();
        let Some(year) = parse_digits(year).filter(|_| year.len() == 4) else {
            return in_digits(value)
                .or_else(|| year_last(value))
                .or_else(|| with_month(value))
                .unwrap_or_default();
        };
        let mut part = || {
            let part = parts.next().unwrap_or_default();
            // A time may follow the day.
            let digits = part.split(|byte| b" T".contains(byte)).next();
            let known = digits
                .and_then(parse_digits)
                .and_then(|part| part.try_into().ok());
            known.or_else(|| month_number(part)).unwrap_or(0)
        };
        Date::new(year, part(), part())
    }

    /// The names of the tags that may contain the date of a game. Earlier tags in this list are preferred.
    pub(crate) const TAGS: [&[u8]; 3] = [b"Date", b"UTCDate", b"EventDate"];

    /// Returns the date of a game: the first date with a known year in the tags that [`TAGS`](Date::TAGS) lists. If
    /// no tag contains such a date, the year, month and day of the result are unknown.
    pub(crate) fn of_tags(tags: &Tags<'_>) -> Date {
        Date::with_tag(tags).unwrap_or_default().1
    }

    /// Returns the date of a game, like [`of_tags`](Date::of_tags), and the name of the tag that contains it. Returns
    /// `None` if no tag contains a date with a known year.
    pub(crate) fn with_tag(tags: &Tags<'_>) -> Option<(&'static [u8], Date)> {
        let dates = Date::TAGS.into_iter();
        let mut dates = dates.filter_map(|name| Some((name, Date::of_tag(tags.get(name)?))));
        dates.find(|(_, date)| date.year.is_some())
    }

    /// Creates a date from a year, a month and a day, where 0 means unknown. A month that does not exist becomes
    /// unknown. A day that does not exist in its month also becomes unknown.
    ///
    /// ```
    /// use polybook::pgn::Date;
    /// assert_eq!(Date::new(1999, 12, 0), "1999.12".parse()?);
    /// # Ok::<(), polybook::pgn::ConditionError>(())
    /// ```
    pub fn new(year: u16, month: u8, day: u8) -> Date {
        let mut date = Date {
            year: (year > 0).then_some(year),
            month: (1..=12).contains(&month).then_some(month),
            day: None,
        };
        date.day = (1..=date.max_days_in_month()).contains(&day).then_some(day);
        date
    }

    /// Returns the year, or `None` if it is unknown.
    pub fn year(self) -> Option<u16> {
        self.year
    }

    /// Returns the month from 1 to 12, or `None` if it is unknown.
    pub fn month(self) -> Option<u8> {
        self.month
    }

    /// Returns the day of the month from 1 to 31, or `None` if it is unknown.
    pub fn day(self) -> Option<u8> {
        self.day
    }

    /// Returns the number of days in the month of this date. If the month or the year is unknown, returns the greatest
    /// possible number: 31 for an unknown month, and 29 for February of an unknown year.
    fn max_days_in_month(self) -> u8 {
        let is_leap = |year: u16| {
            year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
        };
        match self.month {
            Some(2) => 28 + u8::from(self.year.is_none_or(is_leap)),
            Some(4 | 6 | 9 | 11) => 30,
            _ => 31,
        }
    }

    /// Returns `true` if this date is certainly before `other`. Returns `false` if the answer depends on an unknown
    /// year, month or day.
    pub(crate) fn is_before(self, other: Date) -> bool {
        let pairs = [
            (self.year, other.year),
            (self.month.map(u16::from), other.month.map(u16::from)),
            (self.day.map(u16::from), other.day.map(u16::from)),
        ];
        for (ours, theirs) in pairs {
            match (ours, theirs) {
                (Some(ours), Some(theirs)) if ours != theirs => return ours < theirs,
                (Some(_), Some(_)) => {}
                _ => return false,
            }
        }
        false
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.year {
            Some(year) => write!(f, "{year:04}")?,
            None => write!(f, "????")?,
        }
        match (self.month, self.day) {
            (None, None) => Ok(()),
            (None, Some(day)) => write!(f, ".??.{day:02}"),
            (Some(month), None) => write!(f, ".{month:02}"),
            (Some(month), Some(day)) => write!(f, ".{month:02}.{day:02}"),
        }
    }
}

/// Parses `YYYY`, `YYYY.MM` or `YYYY.MM.DD`, with a year of four digits. The day must exist.
impl FromStr for Date {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Date, ConditionError> {
        let malformed = |what| ConditionError::Malformed {
            text: text.to_owned(),
            what,
        };
        let date = Date::of_tag(text.as_bytes());
        let known = [
            date.year.is_some(),
            date.month.is_some(),
            date.day.is_some(),
        ];
        let parts: Vec<&str> = text.split(['.', '-', '/']).collect();
        if let [_, _, day] = parts[..]
            && known == [true, true, false]
            && parse_digits(day.trim().as_bytes()).is_some_and(|day| (1..=31).contains(&day))
        {
            return Err(malformed(match date.max_days_in_month() {
                28 => "use a day from 1 to 28 for this month",
                29 => "use a day from 1 to 29 for this month",
                _ => "use a day from 1 to 30 for this month",
            }));
        }
        if parts.len() > 3 || known[..parts.len()].contains(&false) {
            return Err(malformed(
                "use a date of the form YYYY, YYYY.MM or YYYY.MM.DD, with four digits for the year",
            ));
        }
        Ok(date)
    }
}

/// Parses a date of eight digits, such as `20170709`. Returns `None` for any other text, and for a date that does not
/// exist.
#[cold]
fn in_digits(value: &[u8]) -> Option<Date> {
    let value = value.trim_ascii();
    let (year, rest) = value.split_at_checked(4)?;
    let (month, day) = rest.split_at_checked(2).filter(|_| rest.len() == 4)?;
    let (year, month, day) = (
        parse_digits(year)?,
        parse_digits(month)?,
        parse_digits(day)?,
    );
    let date = Date::new(year, month as u8, day as u8);
    date.month.and(date.day).map(|_| date)
}

/// Parses a date that ends with its year, such as `29.07.2017`, `7/29/2017` or `07/2017`. A time may follow the date.
/// If a day and a month are given, but their order is unclear or one of them is `??`, the result contains only the
/// year. Returns `None` for any other text.
#[cold]
fn year_last(value: &[u8]) -> Option<Date> {
    let mut parts = value.splitn(3, |byte| b".-/".contains(byte));
    let mut part = || parts.next().map(<[u8]>::trim_ascii);
    let short = |part: &[u8]| match part {
        b"?" | b"??" => Some(0),
        part => parse_digits(part).filter(|_| part.len() <= 2),
    };
    let long = |part: &[u8]| {
        let word = part.split(|byte| b" ,T".contains(byte)).next()?;
        parse_digits(word).filter(|_| word.len() == 4)
    };
    let (first, second) = (short(part()?)? as u8, part()?);
    let Some(third) = part() else {
        return Some(Date::new(long(second)?, first, 0));
    };
    let (month, day) = match (first, short(second)? as u8) {
        (0, _) | (_, 0) => (0, 0),
        (day, month @ ..=12) if day > 12 || day == month => (month, day),
        (month @ ..=12, day @ 13..) => (month, day),
        _ => (0, 0),
    };
    Some(Date::new(long(third)?, month, day))
}

/// Returns the number of an English month, from 1 to 12. Returns `None` if `word` is not the name of a month.
/// Compares only the first three letters, so it accepts both `Jul` and `July`.
fn month_number(word: &[u8]) -> Option<u8> {
    const MONTHS: [&str; 12] = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ];
    let start = word.get(..3)?;
    let mut months = MONTHS.iter();
    let index = months.position(|name| start.eq_ignore_ascii_case(name.as_bytes()))?;
    Some(index as u8 + 1)
}

/// Parses a date with the English name of its month, such as `July 2017` or `Sun Jul 09 2017`. The year must have four
/// digits. The parts may be in any order. If the date contains a day, it may also contain other words, such as a
/// weekday. Returns `None` for any other text.
#[cold]
fn with_month(value: &[u8]) -> Option<Date> {
    let text = str::from_utf8(value).ok()?;
    let words = text.split(|c: char| !c.is_alphanumeric());
    let (mut year, mut month, mut day) = (None, None, None);
    let is_month = words.clone().filter(|word| !word.is_empty()).count() == 2;
    for word in words.filter(|word| !word.is_empty()) {
        let (part, known) = match (parse_digits(word.as_bytes()), word.len()) {
            (Some(number), 4) => (&mut year, number),
            (Some(number), 1..=2) => (&mut day, number),
            (Some(_), _) => return None,
            (None, _) => match month_number(word.as_bytes()) {
                Some(number) => (&mut month, u16::from(number)),
                None => continue,
            },
        };
        if part.replace(known).is_some() {
            return None;
        }
    }
    let date = Date::new(year?, month? as u8, day.unwrap_or(0) as u8);
    (date.day.is_some() || is_month && day.is_none()).then_some(date)
}

/// Parses an unsigned decimal number. Returns `None` for any other text, such as `+1` or an empty text, and for numbers
/// that exceed 65,535.
fn parse_digits(text: &[u8]) -> Option<u16> {
    let is_number = text.iter().all(u8::is_ascii_digit);
    let text = str::from_utf8(text).ok().filter(|_| is_number)?;
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::games::pgn::GameReader;

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
            ("Carlsen,Magnus", "Carlsen , \u{a0}Magnus"),
            ("Carlsen,M.", "Carlsen, M"),
            ("Tolkien, J.R.R.", "Tolkien,J. R. R"),
            ("J.R. Capablanca", "J. R.  Capablanca"),
            ("Cramling, D.-P.", "Cramling,D-P"),
            ("İ. X", "İ.X"),
            ("A.", "a"),
            ("A..B", "A. B"),
        ] {
            assert_eq!(normalized(name), normalized(other), "{name}");
            assert_eq!(normalized(&normalized(name)), normalized(name), "{name}");
        }
        assert_ne!(normalized("Müller"), normalized("Muller"));
        for (name, other) in [
            ("St. Louis", "St Louis"),
            ("Tal M", "Tal,M"),
            ("JR", "J.R."),
            ("1.e4", "1e4"),
        ] {
            assert_ne!(normalized(name), normalized(other));
        }
        assert_eq!(normalized("No. 5, A. B ,C"), "no. 5,a b,c");
        assert_eq!(normalized(" \n "), "");
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

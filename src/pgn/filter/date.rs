//! The dates of games: days, months and years.

use std::{fmt, str::FromStr};

use super::GameFilterError;
use crate::pgn::Tags;

/// The date of a game as a year, a month and a day, each of which may be unknown.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Date {
    pub(super) year: Option<u16>,
    month: Option<u8>,
    day: Option<u8>,
}

impl Date {
    /// Parses the value of a `Date` tag, with `?` for unknown digits. The accepted forms are `2017.07.09`,
    /// `2017-07-09`, `2017/07/09` and `2017-Jul-09`, with or without a time after them; `20170709`; a date with the
    /// English name of the month, such as `Sun Jul 09 2017` or `July 2017`; and a date that ends in its year, such as
    /// `29.07.2017` or `07/2017`. If both orders of day and month are possible, as in `10.03.2024`, only the year is
    /// known. For other texts, the year, month and day are unknown. A day that does not exist in its month is unknown.
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
        let Some(year) = number(year).filter(|_| year.len() == 4) else {
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
                .and_then(number)
                .and_then(|part| part.try_into().ok());
            known.or_else(|| month_named(part)).unwrap_or(0)
        };
        Date::new(year, part(), part())
    }

    /// The names of the tags that may contain the date of a game, in order of preference.
    pub(crate) const TAGS: [&[u8]; 3] = [b"Date", b"UTCDate", b"EventDate"];

    /// Returns the date of a game: the first date with a year among its tags [`TAGS`](Date::TAGS). If no tag has a date
    /// with a year, all parts of the result are unknown.
    pub(crate) fn of_tags(tags: &Tags<'_>) -> Date {
        Date::with_tag(tags).unwrap_or_default().1
    }

    /// Returns the name of the tag that contains the date of a game, and the date. Returns `None` if no tag has a date
    /// with a year.
    pub(crate) fn with_tag(tags: &Tags<'_>) -> Option<(&'static [u8], Date)> {
        let dates = Date::TAGS.into_iter();
        let mut dates = dates.filter_map(|name| Some((name, Date::of_tag(tags.get(name)?))));
        dates.find(|(_, date)| date.year.is_some())
    }

    /// Creates a date from a year, a month and a day, where 0 means unknown. A month that does not exist, or a day that
    /// does not exist in its month, becomes unknown.
    ///
    /// ```
    /// use polybook::pgn::Date;
    /// assert_eq!(Date::new(1999, 12, 0), "1999.12".parse()?);
    /// # Ok::<(), polybook::pgn::GameFilterError>(())
    /// ```
    pub fn new(year: u16, month: u8, day: u8) -> Date {
        let mut date = Date {
            year: (year > 0).then_some(year),
            month: (1..=12).contains(&month).then_some(month),
            day: None,
        };
        date.day = (1..=date.longest_month()).contains(&day).then_some(day);
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

    /// Returns the number of days in the month of the date. An unknown month has 31 days, and February of an unknown
    /// year 29.
    fn longest_month(self) -> u8 {
        let is_leap = |year: u16| {
            year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
        };
        match self.month {
            Some(2) => 28 + u8::from(self.year.is_none_or(is_leap)),
            Some(4 | 6 | 9 | 11) => 30,
            _ => 31,
        }
    }

    /// Returns `true` if this date is certainly before `other`. Compares year, month and day in this order, and returns
    /// `false` if one of the dates lacks a component that is needed to decide.
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
    type Err = GameFilterError;

    fn from_str(text: &str) -> Result<Date, GameFilterError> {
        let malformed = |what| GameFilterError::Malformed {
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
            && number(day.trim().as_bytes()).is_some_and(|day| (1..=31).contains(&day))
        {
            return Err(malformed("a day of the calendar"));
        }
        if parts.len() > 3 || known[..parts.len()].contains(&false) {
            return Err(malformed(
                "a date: write YYYY, YYYY.MM or YYYY.MM.DD, the year with four digits",
            ));
        }
        Ok(date)
    }
}

/// Parses a date of eight digits: year, month and day, such as `20170709`. Returns `None` if the text has another form
/// or the day does not exist.
#[cold]
fn in_digits(value: &[u8]) -> Option<Date> {
    let value = value.trim_ascii();
    let (year, rest) = value.split_at_checked(4)?;
    let (month, day) = rest.split_at_checked(2).filter(|_| rest.len() == 4)?;
    let (year, month, day) = (number(year)?, number(month)?, number(day)?);
    let date = Date::new(year, month as u8, day as u8);
    date.month.and(date.day).map(|_| date)
}

/// Parses a date that ends with its year, such as `29.07.2017`, `7/29/2017` or `07/2017`. A time may follow. If the
/// first two numbers could be a day and a month in either order, or if one of them is unknown, only the year is known.
/// Returns `None` for other texts.
#[cold]
fn year_last(value: &[u8]) -> Option<Date> {
    let mut parts = value.splitn(3, |byte| b".-/".contains(byte));
    let mut part = || parts.next().map(<[u8]>::trim_ascii);
    let short = |part: &[u8]| match part {
        b"?" | b"??" => Some(0),
        part => number(part).filter(|_| part.len() <= 2),
    };
    let long = |part: &[u8]| {
        let word = part.split(|byte| b" ,T".contains(byte)).next()?;
        number(word).filter(|_| word.len() == 4)
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

/// Returns the number, from 1 to 12, of the month whose English name has the same first three letters as `word`, or
/// `None` if there is no such month.
fn month_named(word: &[u8]) -> Option<u8> {
    const MONTHS: [&str; 12] = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ];
    let start = word.get(..3)?;
    let mut months = MONTHS.iter();
    let index = months.position(|name| start.eq_ignore_ascii_case(name.as_bytes()))?;
    Some(index as u8 + 1)
}

/// Parses a date with the English name of its month and a year of four digits, such as `July 2017` or
/// `Sun Jul 09 2017`. The parts may have any order. If a day is given, other words without digits are ignored. Returns
/// `None` for other texts.
#[cold]
fn with_month(value: &[u8]) -> Option<Date> {
    let text = str::from_utf8(value).ok()?;
    let words = text.split(|c: char| !c.is_alphanumeric());
    let (mut year, mut month, mut day) = (None, None, None);
    let is_month = words.clone().filter(|word| !word.is_empty()).count() == 2;
    for word in words.filter(|word| !word.is_empty()) {
        let (part, known) = match (number(word.as_bytes()), word.len()) {
            (Some(number), 4) => (&mut year, number),
            (Some(number), 1..=2) => (&mut day, number),
            (Some(_), _) => return None,
            (None, _) => match month_named(word.as_bytes()) {
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

/// Parses an unsigned number in decimal digits. Returns `None` for other texts, such as `+1`.
fn number(text: &[u8]) -> Option<u16> {
    let is_number = text.iter().all(u8::is_ascii_digit);
    let text = str::from_utf8(text).ok().filter(|_| is_number)?;
    text.parse().ok()
}

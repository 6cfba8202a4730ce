//! Days, months and years in which games were played.

use std::{fmt, str::FromStr};

use super::SelectionError;

/// A day, or a month or year of which the rest is not known.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Date {
    pub(super) year: Option<u16>,
    month: Option<u8>,
    day: Option<u8>,
}

impl Date {
    /// The value of a `Date` tag, with `?` for what is not known. All parts of a text that is not a date are unknown.
    pub fn of_tag(value: &[u8]) -> Date {
        let mut parts = value
            .split(|byte| b".-/".contains(byte))
            .map(|part| std::str::from_utf8(part).ok().map(str::trim));
        let mut next = || parts.next().flatten();
        Date {
            year: next().and_then(|text| text.parse().ok()).filter(|y| *y > 0),
            month: next()
                .and_then(|text| text.parse().ok())
                .filter(|m| (1..=12).contains(m)),
            day: next()
                .and_then(|text| text.parse().ok())
                .filter(|d| (1..=31).contains(d)),
        }
    }

    /// A day by its numbers, 0 for parts that are not known.
    ///
    /// ```
    /// use polybook::pgn::Date;
    /// assert_eq!(Date::new(1999, 12, 0), "1999.12".parse()?);
    /// # Ok::<(), polybook::pgn::SelectionError>(())
    /// ```
    pub fn new(year: u16, month: u8, day: u8) -> Date {
        Date {
            year: (year > 0).then_some(year),
            month: (1..=12).contains(&month).then_some(month),
            day: (1..=31).contains(&day).then_some(day),
        }
    }

    /// The year, if it is known.
    pub fn year(self) -> Option<u16> {
        self.year
    }

    /// The month from 1, if it is known.
    pub fn month(self) -> Option<u8> {
        self.month
    }

    /// The day of the month from 1, if it is known.
    pub fn day(self) -> Option<u8> {
        self.day
    }

    /// How many days the month has, `None` if it is not known.
    fn days_in_month(self) -> Option<u8> {
        let year = self.year?;
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        Some(match self.month? {
            2 => 28 + u8::from(is_leap),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        })
    }

    /// Whether this is certainly before `other`: parts that either does not know decide nothing.
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
        for part in [self.month, self.day].into_iter().flatten() {
            write!(f, ".{part:02}")?;
        }
        Ok(())
    }
}

/// `YYYY`, `YYYY.MM` or `YYYY.MM.DD`: a day that the calendar has, the year with four digits.
impl FromStr for Date {
    type Err = SelectionError;

    fn from_str(text: &str) -> Result<Date, SelectionError> {
        let malformed = |what| SelectionError::Malformed {
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
        if parts.len() > 3 || known[..parts.len()].contains(&false) || parts[0].trim().len() != 4 {
            return Err(malformed(
                "a date: write YYYY, YYYY.MM or YYYY.MM.DD, the year with four digits",
            ));
        }
        if date.day > date.days_in_month() {
            return Err(malformed("a day of the calendar"));
        }
        Ok(date)
    }
}

//! Dates as numbers that compare quickly.
//!
//! The number of a date has the day in bits 0 to 4, the month in bits 5 to 8 and the year above; an unknown part is 0.

use super::query::Filters;
use crate::{index::store::game_rows::date_number, pgn::Date};

/// An inclusive range of days, stored as the numbers that [`date_number`] returns.
///
/// A date with unknown parts lies in the range if one of the days that it can mean does. For example, a game of 1999
/// lies in a range that begins in May 1999.
#[derive(Copy, Clone, Debug)]
pub(super) struct DateRange {
    first: u32,
    last: u32,
    /// The smallest number of a date that counts as known: 0 if unknown dates lie in the range too.
    smallest: u32,
}

/// The least date number of a date whose year is known. See [`date_number`].
const FIRST_YEAR: u32 = 1 << 9;

impl DateRange {
    pub(super) fn new(filters: &Filters) -> DateRange {
        let (since, until) = (filters.since, filters.until);
        DateRange {
            first: since.map_or(0, |date| earliest(date_number(date))),
            last: until.map_or(u32::MAX, |date| latest(date_number(date))),
            smallest: if filters.require_date { FIRST_YEAR } else { 0 },
        }
    }

    /// Returns `true` if a game with the date `date` may have been played in the range. Parts of the date can be
    /// unknown; then one possible day is enough. [`date_number`] returns the number of a date.
    #[inline]
    pub(super) fn contains(self, date: u32) -> bool {
        (self.first <= latest(date)) & (earliest(date) <= self.last) & (self.smallest <= date)
    }

    /// Returns `true` if the range contains every date, known or unknown.
    pub(super) fn is_all(self) -> bool {
        self.first == 0 && self.last == u32::MAX && self.smallest == 0
    }
}

/// Returns the day number of the earliest day that matches `date`, a number that [`date_number`] returned and that may
/// have unknown parts. The code has no branches, so the compiler can vectorize it.
#[inline]
pub(super) fn earliest(date: u32) -> u32 {
    let has_year = mask(date >> 9 > 0);
    let has_month = mask(date >> 5 & 15 > 0);
    date & has_year & (has_month | !0x1ff)
}

/// Returns the number of the last day that `date` can mean. `date` is a number that [`date_number`] returns, and may
/// have unknown parts. If the year is unknown, the result is greater than every day.
#[inline]
pub(super) fn latest(date: u32) -> u32 {
    let has_year = mask(date >> 9 > 0);
    let has_month = mask(date >> 5 & 15 > 0);
    let has_day = mask(date & 31 > 0);
    date | !has_year | !has_month & 0x1ff | !has_day & 31
}

/// Formats a date number as `2006-01-02`. If the day or the month is unknown, formats the known parts only, as
/// `2006-01` or `2006`. Returns `None` if the year is unknown.
pub(super) fn text_of_number(number: u32) -> Option<String> {
    let (year, month, day) = (number >> 9, number >> 5 & 15, number & 31);
    Some(match (year, month, day) {
        (0, ..) => return None,
        (_, 0, _) => format!("{year:04}"),
        (_, _, 0) => format!("{year:04}-{month:02}"),
        _ => format!("{year:04}-{month:02}-{day:02}"),
    })
}

pub(super) fn date_of_number(number: u32) -> Date {
    Date::new(
        (number >> 9) as u16,
        (number >> 5 & 15) as u8,
        (number & 31) as u8,
    )
}

/// Returns a number whose bits are all set if `is_true`, otherwise 0.
#[inline]
fn mask(is_true: bool) -> u32 {
    u32::from(is_true).wrapping_neg()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn dates() -> impl Strategy<Value = Date> {
        (0..3u16, 0..4u8, 0..4u8).prop_map(|(year, month, day)| Date::new(year, month, day))
    }

    proptest! {
        #[test]
        fn unknown_parts_decide_nothing(
            date in dates(),
            since in proptest::option::of(dates()),
            until in proptest::option::of(dates()),
            require_date: bool,
        ) {
            let range = DateRange::new(&Filters { since, until, require_date, ..Filters::default() });
            let passes = (!require_date || date.year().is_some())
                && since.is_none_or(|since| !date.is_before(since))
                && until.is_none_or(|until| !until.is_before(date));
            prop_assert_eq!(range.contains(date_number(date)), passes);
            prop_assert!(passes || !range.is_all());
        }
    }
}

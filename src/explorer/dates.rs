//! Dates encoded as numbers, which are fast to compare.
//!
//! Bits 0 to 4 of a date number are the day, bits 5 to 8 the month, and the higher bits the year. An unknown part
//! is 0.

use super::query::Filters;
use crate::{index::store::game_rows::date_number, pgn::Date};

/// An inclusive range of days. Its bounds are date numbers as returned by [`date_number`].
///
/// A date without a known day or month lies in the range if any of its possible days does. For example, the date 1999
/// lies in a range that begins in May 1999.
#[derive(Copy, Clone, Debug)]
pub(super) struct DateRange {
    first: u32,
    last: u32,
    /// The smallest date number that passes: 0 if games without a known year pass too.
    smallest: u32,
}

/// The smallest date number with a known year. Smaller numbers belong to dates without a year. See
/// [`date_number`].
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

    /// Returns `true` if a game with the date number `date` may have been played in the range. If parts of the date are
    /// unknown, it is enough that one possible day lies in the range. See [`date_number`].
    #[inline]
    pub(super) fn contains(self, date: u32) -> bool {
        (self.first <= latest(date)) & (earliest(date) <= self.last) & (self.smallest <= date)
    }

    /// Returns `true` if the range contains every date, known or unknown.
    pub(super) fn is_all(self) -> bool {
        self.first == 0 && self.last == u32::MAX && self.smallest == 0
    }
}

/// Returns the earliest day on which a game with the date `date` may have been played, or 0 if the year is unknown. The
/// argument and the result are date numbers as returned by [`date_number`].
#[inline]
pub(super) fn earliest(date: u32) -> u32 {
    let has_year = mask(date >> 9 > 0);
    let has_month = mask(date >> 5 & 15 > 0);
    date & has_year & (has_month | !0x1ff)
}

/// Returns the latest day on which a game with the date `date` may have been played. The argument and the result are
/// date numbers as returned by [`date_number`]. If the year is unknown, returns `u32::MAX`.
#[inline]
pub(super) fn latest(date: u32) -> u32 {
    let has_year = mask(date >> 9 > 0);
    let has_month = mask(date >> 5 & 15 > 0);
    let has_day = mask(date & 31 > 0);
    date | !has_year | !has_month & 0x1ff | !has_day & 31
}

/// Formats a date number as `2006-01-02`, or as `2006-01` or `2006` if the rest of the date is unknown. Returns
/// `None` if the year is unknown.
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

/// Returns a bit mask, which the caller uses to avoid branches: all bits are 1 if `is_true`, otherwise all bits are 0.
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

//! How much time the players had.

use std::{fmt, str::FromStr};

use super::SelectionError;

/// A range of time controls, in seconds that a player may expect for a game of 40 moves: `180-480`,
/// `600-` or `-60`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct TimeControlRange {
    min: u64,
    max: u64,
}

impl TimeControlRange {
    /// Whether an estimate lies in the range, its ends among it.
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
    type Err = SelectionError;

    fn from_str(text: &str) -> Result<TimeControlRange, SelectionError> {
        let error = || SelectionError::Malformed {
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

/// The seconds that a `TimeControl` tag gives a player for a game of 40 moves: those of the first
/// period, and 40 increments. `-` and `?` say nothing.
pub(in crate::pgn) fn estimated_seconds(value: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(value).ok()?;
    let first = text.split(':').next()?.trim();
    let (base, increment) = first.split_once('+').unwrap_or((first, "0"));
    let base = base
        .split_once('/')
        .map_or(base, |(_moves, seconds)| seconds);
    let base: u64 = base.trim_start_matches('*').trim().parse().ok()?;
    let increment: u64 = increment.trim().parse().ok()?;
    Some(base.saturating_add(increment.saturating_mul(40)))
}

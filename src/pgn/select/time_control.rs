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
    /// Whether an estimate is in the range, which includes its ends.
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
/// period, and 40 increments. `-` and `?` say nothing, nor does a value that does not have the form of the PGN
/// standard: `G/60` and `1:30:00` are not in seconds.
pub(in crate::pgn) fn estimated_seconds(value: &[u8]) -> Option<u64> {
    let text = str::from_utf8(value).ok()?;
    let mut periods = text.split(':').map(|period| Period::parse(period.trim()));
    let first = periods.next()??;
    let mut last = first;
    for period in periods {
        if !last.ends_with_a_move {
            return None;
        }
        last = period?;
    }
    Some(first.seconds)
}

/// A field of a `TimeControl` tag: `40/7200`, `300+5` or `*180`.
#[derive(Copy, Clone)]
struct Period {
    seconds: u64,
    /// Whether the period ends after some moves, not with the game.
    ends_with_a_move: bool,
}

impl Period {
    fn parse(text: &str) -> Option<Period> {
        let (base, increment) = text.split_once('+').unwrap_or((text, "0"));
        let (moves, base) = match base.split_once('/') {
            Some((moves, base)) => (Some(number(moves)?), base),
            None => (None, base),
        };
        let base = number(base.strip_prefix('*').unwrap_or(base))?;
        let increments = number(increment)?.saturating_mul(40);
        Some(Period {
            seconds: base.saturating_add(increments),
            ends_with_a_move: moves.is_some(),
        })
    }
}

/// A number of digits alone.
fn number(text: &str) -> Option<u64> {
    let digits = text.trim();
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number)
}

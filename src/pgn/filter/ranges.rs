//! Ranges of ECO codes and of time controls.

use std::{fmt, str::FromStr};

use super::GameFilterError;

/// A range of ECO codes, such as `B20-B99`. A prefix stands for all codes that begin with it: `C`, `A4`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EcoRange {
    first: [u8; 3],
    last: [u8; 3],
}

impl EcoRange {
    /// Returns `true` if a code is in the range. Blanks around the code and text after its three characters are ignored.
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

/// A range of time controls, such as `180-480`, `600-` or `-60`. The numbers are the seconds that a player can expect to use
/// for 40 moves.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct TimeControlRange {
    min: u64,
    max: u64,
}

impl TimeControlRange {
    /// Returns `true` if a number of seconds is in the range, which includes both ends.
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

/// The maximum length of a time control in bytes. Real ones have at most some 40; the limit bounds the memory for the periods
/// of a longer text.
const LONGEST_CONTROL: usize = 1024;

/// The assumed number of moves of a game.
const MOVES: u64 = 40;

/// Returns the seconds that a `TimeControl` tag gives a player for 40 moves: the time of its periods up to move 40, and an
/// increment for each move. The last period repeats. Times may have decimals, as in `8+0.08`; the sum is rounded down.
///
/// Returns `None` for `-`, `?`, texts longer than [`LONGEST_CONTROL`], and values that do not follow the PGN standard, such as `G/60` and `1:30:00`, which are not
/// in seconds.
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

    /// Returns the time in milliseconds that a player gets for `moves` moves of this period, or for the whole period if
    /// it has fewer moves.
    fn millis(&self, moves: u64) -> u64 {
        let moves = self.moves.map_or(moves, |own| own.min(moves));
        self.base
            .saturating_add(self.increment.saturating_mul(moves))
    }
}

/// Parses a number of seconds, with or without decimals, as whole milliseconds.
pub(in crate::pgn) fn millis(text: &str) -> Option<u64> {
    let (whole, decimals) = text.trim().split_once('.').unwrap_or((text, "0"));
    let decimals = decimals.trim();
    let decimals = decimals.get(..3).unwrap_or(decimals);
    let part = number(decimals)? * 10_u64.pow(3 - decimals.len() as u32);
    Some(number(whole)?.saturating_mul(1000).saturating_add(part))
}

/// Parses a number that consists only of digits.
fn number(text: &str) -> Option<u64> {
    let digits = text.trim();
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number)
}

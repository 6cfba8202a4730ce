//! Weights games by their dates, so that recent games count more.

use std::{fmt, str::FromStr};

use super::open_index::{GameSummary, date_of_number};

/// The number of years after which a game counts half as much: at least [`MIN`](HalfLife::MIN).
#[derive(Copy, Clone, PartialEq, PartialOrd, Debug, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HalfLife(f64);

impl HalfLife {
    /// The minimum half-life in years.
    pub const MIN: f64 = 0.1;

    /// Creates a half-life of `years` years. Returns `None` if `years` is less than [`MIN`](HalfLife::MIN) or not
    /// finite.
    pub fn new(years: f64) -> Option<HalfLife> {
        (years.is_finite() && years >= HalfLife::MIN).then_some(HalfLife(years))
    }
}

/// Formats the half-life with its unit, such as `2 years`.
impl fmt::Display for HalfLife {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = if self.0 == 1.0 { "year" } else { "years" };
        write!(f, "{} {unit}", self.0)
    }
}

/// Parses a number of years. The error of an invalid text says which numbers are valid.
impl FromStr for HalfLife {
    type Err = String;

    fn from_str(text: &str) -> Result<HalfLife, String> {
        let years = text.trim().parse().ok().and_then(HalfLife::new);
        years.ok_or_else(|| format!("use {HALF_LIVES}"))
    }
}

/// A description of the texts that can be parsed as a [`HalfLife`], for error messages.
pub const HALF_LIVES: &str = "a number of years such as 2 or 0.5, at least 0.1";

/// The number of bits after the binary point in a weight, which is a fixed-point number. Sums of weights are exact, so
/// they do not depend on the order of the games.
const FRACTION_BITS: f64 = 80.0;

/// Weights the games of one player by their age.
#[derive(Copy, Clone, Debug)]
pub(super) struct Recency {
    half_life: Option<HalfLife>,
    /// The end of the year in which the player's last game was played.
    end: f64,
    /// The date number of the player's first game with a known year, or 0 if no year is known.
    first: u32,
}

impl Recency {
    /// Creates the weights for the games of a player, or equal weights if `half_life` is `None`. `first` and `last` are
    /// the date numbers of the player's first and last game with a known year, or 0 if no year is known.
    pub(super) fn new(half_life: Option<HalfLife>, first: u32, last: u32) -> Recency {
        Recency {
            half_life,
            end: years_of(last).floor() + 1.0,
            first,
        }
    }

    /// Returns the weight of a game. A game without a known year weighs as much as the player's first game.
    pub(super) fn weight(self, game: &GameSummary) -> u128 {
        let Some(HalfLife(years)) = self.half_life else {
            return 1;
        };
        let date = if game.year() == 0 {
            self.first
        } else {
            game.date
        };
        let age = (self.end - years_of(date)) / years;
        // No weight is 0, because the shares of moves in old games would be unknown.
        ((FRACTION_BITS - age).exp2() as u128).max(1)
    }
}

/// Returns a date as a number of years with a fraction. An unknown day is taken as the middle of the month, and an
/// unknown month as the middle of the year.
fn years_of(date: u32) -> f64 {
    let date = date_of_number(date);
    let day = date.day().map_or(15.5, |day| f64::from(day) - 0.5);
    let month = date.month().map(|month| f64::from(month) - 1.0);
    let of_year = month.map_or(0.5, |month| (month + day / 31.0) / 12.0);
    f64::from(date.year().unwrap_or_default()) + of_year
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_lives_are_numbers_of_years() {
        let years = |text: &str| text.parse::<HalfLife>().map(|HalfLife(years)| years);
        assert_eq!(years(" 2 "), Ok(2.0));
        assert_eq!(years("0.1"), Ok(0.1));
        for text in ["0", "-2", "2y", "", "inf", "nan", "0.09"] {
            assert_eq!(years(text), Err(format!("use {HALF_LIVES}")), "{text}");
        }
        assert_eq!(HalfLife(1.0).to_string(), "1 year");
        assert_eq!(HalfLife(0.5).to_string(), "0.5 years");
    }

    #[test]
    fn dates_are_numbers_of_years() {
        let years = |year: u32, month: u32, day: u32| years_of(year << 9 | month << 5 | day);
        assert_eq!(years(2020, 0, 0), 2020.5);
        assert_eq!(years(2020, 1, 0), 2020.0 + 0.5 / 12.0);
        assert!(years(2020, 12, 31) < 2021.0 && years(2020, 12, 31) > 2020.99);
        assert!(years(2021, 1, 1) > 2021.0 && years(2021, 1, 1) < 2021.01);
    }
}

//! Choosing games by what their tags say.

use std::{fmt, str::FromStr};

use thiserror::Error;

use super::{GameResult, Tags};

/// Which games count. The default is all of them.
///
/// What a game does not say of itself is treated so: a missing rating or an unknown part of a date
/// passes; a missing player, ECO code or time control does not match one that is asked for.
///
/// ```
/// use polybook::pgn::{GameReader, Selection};
///
/// let mut games = GameReader::new(b"[White \"Tal\"]\n[Date \"1960.05.??\"]\n\n1. e4 1-0");
/// games.next_game();
/// let mut selection = Selection::default();
/// selection.player = Some("tal".to_owned());
/// selection.since = Some("1960.05.07".parse()?);
/// assert!(selection.admits(games.tags()));
/// selection.since = Some("1961".parse()?);
/// assert!(!selection.admits(games.tags()));
/// # Ok::<(), polybook::pgn::SelectionError>(())
/// ```
#[derive(Clone, Default, Debug)]
pub struct Selection {
    /// The lowest rating that each player may have.
    pub min_elo: Option<u32>,
    /// The highest.
    pub max_elo: Option<u32>,
    /// Whether both players must have a rating.
    pub require_elo: bool,
    /// How many half-moves a game must at least have. [`admits`](Selection::admits) cannot know.
    pub min_plies: usize,
    /// The first day.
    pub since: Option<Date>,
    /// The last day.
    pub until: Option<Date>,
    /// The results, none for any. [`admits`](Selection::admits) leaves them to the caller, who knows
    /// the termination marker as well.
    pub results: Vec<GameResult>,
    /// Part of the name of either player, in any case.
    pub player: Option<String>,
    /// Part of White's name.
    pub white: Option<String>,
    /// Part of Black's name.
    pub black: Option<String>,
    /// The openings.
    pub eco: Option<EcoRange>,
    /// How much time the players had.
    pub time_control: Option<TimeControlRange>,
}

/// Why a condition could not be read.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("\"{text}\" is no {what}")]
pub struct SelectionError {
    text: String,
    what: &'static str,
}

impl Selection {
    /// Whether the tags of a game meet all conditions that concern tags, the result aside.
    pub fn admits(&self, tags: &Tags<'_>) -> bool {
        self.admits_ratings(tags)
            && self.admits_date(tags)
            && self.admits_names(tags)
            && self
                .eco
                .as_ref()
                .is_none_or(|range| tags.get(b"ECO").is_some_and(|eco| range.contains(eco)))
            && self.time_control.as_ref().is_none_or(|range| {
                tags.get(b"TimeControl")
                    .and_then(estimated_seconds)
                    .is_some_and(|seconds| range.contains(seconds))
            })
    }

    /// Whether a game with this result counts.
    pub fn admits_result(&self, result: GameResult) -> bool {
        self.results.is_empty() || self.results.contains(&result)
    }

    /// The conditions as they are written on a command line.
    pub(crate) fn option_text(&self) -> String {
        let mut options = Vec::new();
        let mut say = |name: &str, value: Option<String>| {
            options.extend(value.map(|value| format!("--{name} {value}")));
        };
        let quoted = |text: &Option<String>| text.as_ref().map(|text| format!("{text:?}"));
        say("min-elo", self.min_elo.map(|elo| elo.to_string()));
        say("max-elo", self.max_elo.map(|elo| elo.to_string()));
        say(
            "min-plies",
            (self.min_plies > 0).then(|| self.min_plies.to_string()),
        );
        say("since", self.since.map(|date| date.to_string()));
        say("until", self.until.map(|date| date.to_string()));
        for result in &self.results {
            say("result", Some(result.token().to_owned()));
        }
        say("player", quoted(&self.player));
        say("white", quoted(&self.white));
        say("black", quoted(&self.black));
        say("eco", self.eco.as_ref().map(|range| range.to_string()));
        say(
            "time-control",
            self.time_control.map(|range| range.to_string()),
        );
        if self.require_elo {
            options.push("--require-elo".to_owned());
        }
        options.join(" ")
    }

    fn admits_ratings(&self, tags: &Tags<'_>) -> bool {
        if self.min_elo.is_none() && self.max_elo.is_none() && !self.require_elo {
            return true;
        }
        [&b"WhiteElo"[..], b"BlackElo"].into_iter().all(|name| {
            match tags.get(name).and_then(rating) {
                Some(elo) => {
                    self.min_elo.is_none_or(|min| min <= elo)
                        && self.max_elo.is_none_or(|max| elo <= max)
                }
                None => !self.require_elo,
            }
        })
    }

    fn admits_date(&self, tags: &Tags<'_>) -> bool {
        if self.since.is_none() && self.until.is_none() {
            return true;
        }
        let date = [&b"Date"[..], b"UTCDate"]
            .into_iter()
            .filter_map(|name| tags.get(name))
            .map(Date::of_tag)
            .find(|date| date.year.is_some())
            .unwrap_or_default();
        self.since.is_none_or(|since| !date.is_before(since))
            && self.until.is_none_or(|until| !until.is_before(date))
    }

    fn admits_names(&self, tags: &Tags<'_>) -> bool {
        let matches = |name: &[u8], part: &String| {
            tags.get(name).is_some_and(|value| {
                String::from_utf8_lossy(value)
                    .to_lowercase()
                    .contains(&part.to_lowercase())
            })
        };
        self.player
            .as_ref()
            .is_none_or(|part| matches(b"White", part) || matches(b"Black", part))
            && self
                .white
                .as_ref()
                .is_none_or(|part| matches(b"White", part))
            && self
                .black
                .as_ref()
                .is_none_or(|part| matches(b"Black", part))
    }
}

/// A rating; an empty value, `?`, `-` and `0` are none.
fn rating(value: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(value).ok()?;
    text.trim().parse().ok().filter(|elo| *elo > 0)
}

/// A day, or a month or year of which the rest is not known.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Date {
    year: Option<u16>,
    month: Option<u8>,
    day: Option<u8>,
}

impl Date {
    /// The value of a `Date` tag, with `?` for what is not known. What is no date is all unknown.
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

    /// Whether this is certainly before `other`: parts that either does not know decide nothing.
    fn is_before(self, other: Date) -> bool {
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

/// `YYYY`, `YYYY.MM` or `YYYY.MM.DD`.
impl FromStr for Date {
    type Err = SelectionError;

    fn from_str(text: &str) -> Result<Date, SelectionError> {
        let date = Date::of_tag(text.as_bytes());
        let known = [
            date.year.is_some(),
            date.month.is_some(),
            date.day.is_some(),
        ];
        let given = text.split(['.', '-', '/']).count();
        if given > 3 || known[..given].contains(&false) {
            return Err(SelectionError {
                text: text.to_owned(),
                what: "date: write YYYY, YYYY.MM or YYYY.MM.DD",
            });
        }
        Ok(date)
    }
}

/// A range of ECO codes: `B20-B99`, `C`, `A4`, `E60`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EcoRange {
    first: [u8; 3],
    last: [u8; 3],
}

impl EcoRange {
    /// Whether a code, further letters behind it or not, lies in the range.
    pub fn contains(&self, eco: &[u8]) -> bool {
        let Some(code) = eco.first_chunk::<3>() else {
            return false;
        };
        let code = code.map(|byte| byte.to_ascii_uppercase());
        (self.first..=self.last).contains(&code)
    }
}

impl fmt::Display for EcoRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |code: &[u8; 3]| String::from_utf8_lossy(code).into_owned();
        write!(f, "{}-{}", text(&self.first), text(&self.last))
    }
}

impl FromStr for EcoRange {
    type Err = SelectionError;

    fn from_str(text: &str) -> Result<EcoRange, SelectionError> {
        let error = || SelectionError {
            text: text.to_owned(),
            what: "range of ECO codes: write B20-B99, B2 or B",
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
        let error = || SelectionError {
            text: text.to_owned(),
            what: "range of seconds: write 180-480, 600- or -60",
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
fn estimated_seconds(value: &[u8]) -> Option<u64> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pgn::GameReader;

    fn admits(selection: &Selection, tags: &str) -> bool {
        let text = format!("{tags} *");
        let mut games = GameReader::new(text.as_bytes());
        assert!(games.next_game());
        selection.admits(games.tags())
    }

    #[test]
    fn ratings() {
        let mut selection = Selection {
            min_elo: Some(2000),
            max_elo: Some(2500),
            ..Selection::default()
        };
        let both =
            |white: &str, black: &str| format!("[WhiteElo \"{white}\"][BlackElo \"{black}\"]");
        assert!(admits(&selection, &both("2000", "2500")));
        assert!(!admits(&selection, &both("1999", "2500")));
        assert!(!admits(&selection, &both("2000", "2501")));
        for unknown in ["", "?", "-", "0"] {
            assert!(admits(&selection, &both("2100", unknown)));
            assert!(!admits(&selection, &both("1000", unknown)));
        }
        assert!(admits(&selection, ""));
        selection.require_elo = true;
        assert!(!admits(&selection, &both("2100", "?")));
        assert!(!admits(&selection, ""));
    }

    #[test]
    fn dates() {
        let between = |since: &str, until: &str| Selection {
            since: Some(since.parse().unwrap()),
            until: Some(until.parse().unwrap()),
            ..Selection::default()
        };
        let of = |date: &str| format!("[Date \"{date}\"]");
        let year = between("1990", "1990");
        assert!(admits(&year, &of("1990.12.31")) && admits(&year, &of("1990.??.??")));
        assert!(!admits(&year, &of("1989.12.31")) && !admits(&year, &of("1991.01.01")));
        let days = between("1990.05.02", "1990.06.03");
        assert!(admits(&days, &of("1990.05.02")) && admits(&days, &of("1990.06.??")));
        assert!(!admits(&days, &of("1990.05.01")) && !admits(&days, &of("1990.07.??")));
        assert!(admits(&days, &of("????.??.??")) && admits(&days, ""));
        for wrong in ["", "90.13", "1990.00", "1990.1.2.3", "May 1990"] {
            assert!(wrong.parse::<Date>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_openings_and_time_controls() {
        let tags = "[White \"Tal, M\"][Black \"Müller\"][ECO \"B87\"][TimeControl \"180+2\"]";
        let player = |name: &str| Selection {
            player: Some(name.to_owned()),
            ..Selection::default()
        };
        assert!(admits(&player("tal"), tags) && admits(&player("MÜLLER"), tags));
        assert!(!admits(&player("Botvinnik"), tags) && !admits(&player("tal"), ""));
        let white = Selection {
            white: Some("müll".to_owned()),
            ..Selection::default()
        };
        assert!(!admits(&white, tags));
        for (range, expected) in [("B20-B99", true), ("B", true), ("b8", true), ("C-E", false)] {
            let selection = Selection {
                eco: Some(range.parse().unwrap()),
                ..Selection::default()
            };
            assert_eq!(admits(&selection, tags), expected, "{range}");
            assert!(!admits(&selection, ""));
        }
        for (range, expected) in [
            ("180-480", true),
            ("260-260", true),
            ("-259", false),
            ("600-", false),
        ] {
            let selection = Selection {
                time_control: Some(range.parse().unwrap()),
                ..Selection::default()
            };
            assert_eq!(admits(&selection, tags), expected, "{range}");
            assert!(!admits(&selection, "[TimeControl \"-\"]"));
        }
        assert_eq!(estimated_seconds(b"40/7200:3600"), Some(7200));
        for wrong in ["", "F00", "B99-B20", "B2x"] {
            assert!(wrong.parse::<EcoRange>().is_err(), "{wrong}");
        }
        for wrong in ["", "60", "9-1", "a-b"] {
            assert!(wrong.parse::<TimeControlRange>().is_err(), "{wrong}");
        }
    }
}

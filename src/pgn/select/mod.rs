//! Choosing games by what their tags say.

mod condition;
mod date;
mod eco;
mod time_control;

use std::borrow::Cow;

use thiserror::Error;

use self::time_control::estimated_seconds;
pub use self::{condition::Condition, date::Date, eco::EcoRange, time_control::TimeControlRange};
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

/// Why games cannot be chosen as asked.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum SelectionError {
    /// A condition cannot be read.
    #[error("\"{text}\" is not {what}")]
    Malformed {
        /// The text that was given.
        text: String,
        /// What it should be, and how that is written.
        what: &'static str,
    },
    /// The first day lies behind the last.
    #[error("no game is played since {since} and until {until}: exchange the dates")]
    Dates {
        /// The first day.
        since: Date,
        /// The last day.
        until: Date,
    },
    /// The lowest rating lies above the highest.
    #[error("no rating is at least {min} and at most {max}: exchange the ratings")]
    Ratings {
        /// The lowest rating.
        min: u32,
        /// The highest rating.
        max: u32,
    },
}

impl Selection {
    /// Makes sure that a game can meet all conditions.
    ///
    /// # Errors
    ///
    /// [`SelectionError::Dates`] and [`SelectionError::Ratings`] where two conditions exclude each other.
    ///
    /// ```
    /// use polybook::pgn::Selection;
    /// let mut selection = Selection { min_elo: Some(2000), ..Selection::default() };
    /// assert!(selection.check().is_ok());
    /// selection.max_elo = Some(1800);
    /// assert!(selection.check().is_err());
    /// ```
    pub fn check(&self) -> Result<(), SelectionError> {
        if let (Some(since), Some(until)) = (self.since, self.until)
            && until.is_before(since)
        {
            return Err(SelectionError::Dates { since, until });
        }
        if let (Some(min), Some(max)) = (self.min_elo, self.max_elo)
            && max < min
        {
            return Err(SelectionError::Ratings { min, max });
        }
        Ok(())
    }

    /// Whether the tags of a game meet all conditions that concern tags, the result aside.
    pub fn admits(&self, tags: &Tags<'_>) -> bool {
        self.unmet(tags).is_none()
    }

    /// The first condition that the tags of a game do not meet, of those that concern tags, the result aside.
    pub fn unmet(&self, tags: &Tags<'_>) -> Option<Condition> {
        if !self.admits_ratings(tags) {
            return Some(Condition::Rating);
        }
        if !self.admits_date(tags) {
            return Some(Condition::Date);
        }
        if !self.admits_names(tags) {
            return Some(Condition::Player);
        }
        if !self.admits_eco(tags) {
            return Some(Condition::Eco);
        }
        (!self.admits_time_control(tags)).then_some(Condition::TimeControl)
    }

    fn admits_eco(&self, tags: &Tags<'_>) -> bool {
        self.eco
            .as_ref()
            .is_none_or(|range| tags.get(b"ECO").is_some_and(|eco| range.contains(eco)))
    }

    fn admits_time_control(&self, tags: &Tags<'_>) -> bool {
        self.time_control.as_ref().is_none_or(|range| {
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
            tags.get(name)
                .is_some_and(|value| decoded(value).to_lowercase().contains(&part.to_lowercase()))
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

/// The text of a tag, which is UTF-8 or else Latin-1, with a blank where it is broken over lines.
fn decoded(value: &[u8]) -> Cow<'_, str> {
    let text = match std::str::from_utf8(value) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => value.iter().map(|byte| char::from(*byte)).collect(),
    };
    if text.contains(['\n', '\r']) {
        return text.replace("\r\n", " ").replace(['\n', '\r'], " ").into();
    }
    text
}

/// A rating; an empty value, `?`, `-` and `0` are none.
fn rating(value: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(value).ok()?;
    text.trim().parse().ok().filter(|elo| *elo > 0)
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
        for wrong in [
            "",
            "90.13",
            "1990.00",
            "1990.1.2.3",
            "May 1990",
            "24",
            "02024",
            "2024.02.31",
            "2023.02.29",
            "1900.02.29",
            "1990.04.31",
        ] {
            assert!(wrong.parse::<Date>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn conditions_that_exclude_each_other() {
        for (since, until, possible) in [
            ("2024", "2024", true),
            ("2024.06", "2024", true),
            ("2024.02.29", "2024.03", true),
            ("2024", "2023.12", false),
            ("2024.06.02", "2024.06.01", false),
        ] {
            let selection = Selection {
                since: Some(since.parse().unwrap()),
                until: Some(until.parse().unwrap()),
                ..Selection::default()
            };
            assert_eq!(selection.check().is_ok(), possible, "{since} {until}");
        }
    }

    #[test]
    fn names_in_latin_1_and_over_lines() {
        let player = |name: &str| Selection {
            player: Some(name.to_owned()),
            ..Selection::default()
        };
        let mut games = GameReader::new(b"[White \"M\xdcLLER,\r\nHans\"] *");
        assert!(games.next_game());
        assert!(player("müller").admits(games.tags()));
        assert!(player("Müller, Hans").admits(games.tags()));
        assert!(!player("Möller").admits(games.tags()));
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

//! Selects games by their tags.
//!
//! A [`Condition`] names the kind of condition that a game does not meet, so that a report can count the games that
//! each kind of filter left out.

mod conditions;

use std::fmt;

use serde::{
    Deserialize, Serialize,
    de::{IntoDeserializer, value},
};

use super::{GameResult, Tags};
use crate::provenance::{option_text, switch, valued};

pub(crate) use self::conditions::folded;
pub(super) use self::conditions::millis;
pub use self::conditions::{
    ConditionError, Date, EcoRange, NameMatch, RatingRange, TagText, TimeControlRange,
};
pub(crate) use self::conditions::{estimated_seconds, is_rated};

/// A filter that selects games by their tags. The default filter admits all games.
///
/// Games with an unknown rating or date meet the conditions on ratings or dates. Set `require_elo` or `require_date`
/// to reject them. Any other condition that needs a tag, such as the ECO code, rejects games without the tag.
///
/// ```
/// use polybook::pgn::{GameReader, GameFilter};
///
/// let mut games = GameReader::new(b"[White \"Tal\"]\n[Date \"1960.05.??\"]\n\n1. e4 1-0");
/// games.next_game();
/// let mut game_filter = GameFilter::default();
/// game_filter.players.push("tal".to_owned());
/// game_filter.since = Some("1960.05.07".parse()?);
/// assert!(game_filter.admits(games.tags()));
/// game_filter.since = Some("1961".parse()?);
/// assert!(!game_filter.admits(games.tags()));
/// # Ok::<(), polybook::pgn::ConditionError>(())
/// ```
#[derive(Clone, Default, Debug)]
pub struct GameFilter {
    /// The lowest rating that each player may have.
    pub min_elo: Option<u32>,
    /// The highest rating that each player may have.
    pub max_elo: Option<u32>,
    /// If `true`, both players must have a rating.
    pub require_elo: bool,
    /// If `true`, the year of the game must be known.
    pub require_date: bool,
    /// The minimum length of a game in half-moves. [`admits`](GameFilter::admits) does not check it.
    pub min_plies: usize,
    /// The first day on which a game may have been played.
    pub since: Option<Date>,
    /// The last day on which a game may have been played.
    pub until: Option<Date>,
    /// The admitted results. If empty, all results are admitted. [`admits`](GameFilter::admits) does not check the
    /// result, because it may be known only after the moves have been read: call
    /// [`admits_result`](GameFilter::admits_result) for that.
    pub results: Vec<GameResult>,
    /// Parts of names, in any case. The name of White or of Black must contain one of them. If empty, all names are
    /// admitted.
    pub players: Vec<String>,
    /// Parts of names, in any case. The name of White must contain one of them. If empty, all names are admitted.
    pub white: Vec<String>,
    /// Parts of names, in any case. The name of Black must contain one of them. If empty, all names are admitted.
    pub black: Vec<String>,
    /// If `true`, the names must match completely instead of in part.
    pub exact: bool,
    /// The admitted ranges of ECO codes. If empty, all games are admitted.
    pub eco: Vec<EcoRange>,
    /// Conditions on the text of tags, which must all be met.
    pub tags: Vec<TagText>,
    /// Conditions on the text of tags, none of which may be met.
    pub not_tags: Vec<TagText>,
    /// If `true`, the `Event` tag must say that the game is rated.
    pub rated: bool,
    /// The admitted range of time controls.
    pub time_control: Option<TimeControlRange>,
}

impl GameFilter {
    /// Checks that the conditions of the filter do not contradict each other, and that no name is empty.
    ///
    /// # Errors
    ///
    /// - [`ConditionError::Dates`] if the first day is after the last day.
    /// - [`ConditionError::Ratings`] if the lowest rating is above the highest rating.
    /// - [`ConditionError::Malformed`] if a name contains only blanks, because it would match every name.
    ///
    /// ```
    /// use polybook::pgn::GameFilter;
    /// let mut game_filter = GameFilter { min_elo: Some(2000), ..GameFilter::default() };
    /// assert!(game_filter.check().is_ok());
    /// game_filter.max_elo = Some(1800);
    /// assert!(game_filter.check().is_err());
    /// ```
    pub fn check(&self) -> Result<(), ConditionError> {
        if let (Some(since), Some(until)) = (self.since, self.until)
            && until.is_before(since)
        {
            return Err(ConditionError::Dates { since, until });
        }
        if let (Some(min), Some(max)) = (self.min_elo, self.max_elo)
            && max < min
        {
            return Err(ConditionError::Ratings { min, max });
        }
        let mut names = [&self.players, &self.white, &self.black]
            .into_iter()
            .flatten();
        match names.find(|name| folded(name).is_empty()) {
            Some(name) => Err(ConditionError::Malformed {
                text: name.clone(),
                what: "give at least one letter of the name",
            }),
            None => Ok(()),
        }
    }

    /// Returns `true` if the tags of a game meet the conditions of the filter. Conditions on the length and the result
    /// of the game are not checked. The caller must check them separately.
    pub fn admits(&self, tags: &Tags<'_>) -> bool {
        self.unmet(tags).is_none()
    }

    /// Returns the first condition of the filter that the tags of a game do not meet, or `None` if they meet all
    /// conditions. Conditions on the length and the result of the game are not checked. The caller must check them
    /// separately.
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
        if !self.admits_time_control(tags) {
            return Some(Condition::TimeControl);
        }
        if self.rated && is_rated(tags) != Some(true) {
            return Some(Condition::Rated);
        }
        (!self.admits_texts(tags)).then_some(Condition::Tag)
    }

    fn admits_eco(&self, tags: &Tags<'_>) -> bool {
        let is_in_a_range = |eco| self.eco.iter().any(|range| range.contains(eco));
        self.eco.is_empty() || tags.get(b"ECO").is_some_and(is_in_a_range)
    }

    fn admits_texts(&self, tags: &Tags<'_>) -> bool {
        self.tags.iter().all(|text| text.is_in(tags))
            && !self.not_tags.iter().any(|text| text.is_in(tags))
    }

    fn admits_time_control(&self, tags: &Tags<'_>) -> bool {
        self.time_control.as_ref().is_none_or(|range| {
            tags.get(b"TimeControl")
                .and_then(estimated_seconds)
                .is_some_and(|seconds| range.contains(seconds))
        })
    }

    /// Returns `true` if the filter admits games with the result `result`.
    pub fn admits_result(&self, result: GameResult) -> bool {
        self.results.is_empty() || self.results.contains(&result)
    }

    /// Returns the command-line options that set the conditions of the filter, such as `--min-elo 2000`.
    pub(crate) fn option_text(&self) -> String {
        // All fields are named, so that a new condition cannot be forgotten here.
        let GameFilter {
            min_elo,
            max_elo,
            require_elo,
            require_date,
            min_plies,
            since,
            until,
            results,
            players,
            white,
            black,
            exact,
            eco,
            tags,
            not_tags,
            rated,
            time_control,
        } = self;
        let mut options = vec![
            valued("min-elo", *min_elo),
            valued("max-elo", *max_elo),
            valued("min-plies", Some(min_plies).filter(|plies| **plies > 0)),
            valued("since", *since),
            valued("until", *until),
        ];
        let mut each = |name: &str, values: &mut dyn Iterator<Item = String>| {
            options.extend(values.map(|value| valued(name, Some(value))));
        };
        let quoted = |name: &String| format!("{name:?}");
        let condition = |text: &TagText| format!("{:?}", text.to_string());
        let results = results.iter();
        each(
            "result",
            &mut results.map(|result| result.token().to_owned()),
        );
        each("player", &mut players.iter().map(quoted));
        each("white", &mut white.iter().map(quoted));
        each("black", &mut black.iter().map(quoted));
        each("eco", &mut eco.iter().map(ToString::to_string));
        each("tag", &mut tags.iter().map(condition));
        each("not-tag", &mut not_tags.iter().map(condition));
        options.extend([
            valued("time-control", *time_control),
            switch("require-elo", *require_elo),
            switch("require-date", *require_date),
            switch("exact", *exact),
            switch("rated", *rated),
        ]);
        option_text(options)
    }

    fn filters_dates(&self) -> bool {
        self.since.is_some() || self.until.is_some()
    }

    /// Returns `true` if a game with the tags `tags` meets the filter's condition on the date only because the year of
    /// the game is unknown. Returns `false` if the filter has no condition on the date.
    pub(crate) fn passes_undated(&self, tags: &Tags<'_>) -> bool {
        self.filters_dates() && Date::of_tags(tags).year.is_none()
    }

    /// Returns `true` if at least one player meets the filter's condition on ratings only because this player's rating
    /// is missing or unreadable. Returns `false` if the filter has no condition on ratings.
    pub(crate) fn passes_unrated(&self, tags: &Tags<'_>) -> bool {
        let is_unrated = |name: &[u8]| tags.get(name).and_then(rating).is_none();
        (self.min_elo.is_some() || self.max_elo.is_some())
            && (is_unrated(b"WhiteElo") || is_unrated(b"BlackElo"))
    }

    fn admits_ratings(&self, tags: &Tags<'_>) -> bool {
        if self.min_elo.is_none() && self.max_elo.is_none() && !self.require_elo {
            return true;
        }
        [&b"WhiteElo"[..], b"BlackElo"].into_iter().all(|name| {
            match tags.get(name).and_then(rating).map(u32::from) {
                Some(elo) => {
                    self.min_elo.is_none_or(|min| min <= elo)
                        && self.max_elo.is_none_or(|max| elo <= max)
                }
                None => !self.require_elo,
            }
        })
    }

    fn admits_date(&self, tags: &Tags<'_>) -> bool {
        if !self.filters_dates() && !self.require_date {
            return true;
        }
        let date = Date::of_tags(tags);
        if self.require_date && date.year.is_none() {
            return false;
        }
        self.since.is_none_or(|since| !date.is_before(since))
            && self.until.is_none_or(|until| !until.is_before(date))
    }

    /// Returns `true` if the filter has a condition on the names of players.
    pub(crate) fn has_names(&self) -> bool {
        !(self.players.is_empty() && self.white.is_empty() && self.black.is_empty())
    }

    /// Returns the names of players that the filter contains.
    pub(crate) fn names(&self) -> Vec<String> {
        [&self.players[..], &self.white, &self.black].concat()
    }

    /// Returns the names of the players whose color the filter by names examines: White, Black or both. Each item
    /// contains the value of the tag `White` or `Black`, and `true` if it matches a name in the filter.
    pub(crate) fn player_tags<'t>(
        &self,
        tags: &'t Tags<'_>,
    ) -> impl Iterator<Item = (&'t [u8], bool)> {
        let sides: [(&[u8], _); 2] = [(b"White", &self.white), (b"Black", &self.black)];
        sides.into_iter().filter_map(|(tag, names)| {
            let value = tags
                .get(tag)
                .filter(|_| !(self.players.is_empty() && names.is_empty()))?;
            let how = self.name_match();
            let is_match = how.matches_any(value, names) || how.matches_any(value, &self.players);
            Some((value, is_match))
        })
    }

    /// Returns how the filter compares names of players and events: as a whole or in part.
    pub(crate) fn name_match(&self) -> NameMatch {
        match self.exact {
            true => NameMatch::Whole,
            false => NameMatch::Part,
        }
    }

    fn admits_names(&self, tags: &Tags<'_>) -> bool {
        let how = self.name_match();
        let matches = |tag: &[u8], names: &[String]| {
            tags.get(tag)
                .is_some_and(|value| how.matches_any(value, names))
        };
        (self.players.is_empty()
            || matches(b"White", &self.players)
            || matches(b"Black", &self.players))
            && (self.white.is_empty() || matches(b"White", &self.white))
            && (self.black.is_empty() || matches(b"Black", &self.black))
    }
}

/// The highest number that is accepted as a rating. A greater number, such as 27000 for 2700, is probably a typing
/// error.
pub(crate) const HIGHEST_RATING: u16 = 4000;

/// Parses the value of a rating tag, such as `2400`, `1200?`, `1400 (club)` or `DWZ=1500`. Ignores the number of games
/// after the `P` in a provisional rating of the US Chess Federation, such as `1500P23`. The rest of the text must
/// contain exactly one number, and this number must be from 1 to 4,000. Otherwise returns `None`.
pub(crate) fn rating(value: &[u8]) -> Option<u16> {
    let is_digit = u8::is_ascii_digit;
    let start = value.iter().position(is_digit)?;
    let digits = value[start..].iter().take_while(|byte| is_digit(byte));
    let end = start + digits.count();
    let rest = match &value[end..] {
        [b'P' | b'p', games @ ..] if !games.is_empty() && games.iter().all(is_digit) => &[],
        rest => rest,
    };
    if value[..start].ends_with(b"-") || rest.iter().any(is_digit) {
        return None;
    }
    let elo = str::from_utf8(&value[start..end]).ok()?.parse().ok();
    elo.filter(|elo| (1..=HIGHEST_RATING).contains(elo))
}

/// The kind of a filter condition, such as the date. A report counts the rejected games by the kind of condition that
/// they do not meet.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Condition {
    /// The ratings of the players.
    Rating,
    /// The date of the game.
    Date,
    /// The names of the players.
    Player,
    /// The ECO code.
    #[serde(alias = "ECO code")]
    Eco,
    /// The opening by the moves of the game.
    Opening,
    /// The name of the event.
    Event,
    /// The speed.
    Speed,
    /// The time control.
    #[serde(rename = "time_control", alias = "time control")]
    TimeControl,
    /// The result. A game without a result also fails this condition.
    Result,
    /// The number of half-moves.
    Length,
    /// The variant.
    Variant,
    /// The text of a tag.
    Tag,
    /// The rating status: whether the game is rated.
    Rated,
    /// A condition that rejects duplicates: games with the same moves, players and result as an earlier game.
    Duplicate,
}

impl Condition {
    /// Returns the condition with the name `name`, or `None` if no condition has this name.
    ///
    /// ```
    /// use polybook::pgn::Condition;
    /// assert_eq!(Condition::from_name("eco"), Some(Condition::Eco));
    /// assert_eq!(Condition::Eco.to_string(), "ECO code");
    /// ```
    pub fn from_name(name: &str) -> Option<Condition> {
        let name: value::StrDeserializer<'_, value::Error> = name.into_deserializer();
        Condition::deserialize(name).ok()
    }
}

/// Writes the name of the condition for people, such as `ECO code`. The name in JSON is `eco`.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Condition::Eco => f.write_str("ECO code"),
            Condition::TimeControl => f.write_str("time control"),
            condition => condition.serialize(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pgn::GameReader;

    fn admits(game_filter: &GameFilter, tags: &str) -> bool {
        let text = format!("{tags} *");
        let mut games = GameReader::new(text.as_bytes());
        assert!(games.next_game());
        game_filter.admits(games.tags())
    }

    #[test]
    fn ratings_must_be_in_the_range() {
        let mut game_filter = GameFilter {
            min_elo: Some(2000),
            max_elo: Some(2500),
            ..GameFilter::default()
        };
        let both =
            |white: &str, black: &str| format!("[WhiteElo \"{white}\"][BlackElo \"{black}\"]");
        assert!(admits(&game_filter, &both("2000", "2500")));
        assert!(!admits(&game_filter, &both("1999", "2500")));
        assert!(!admits(&game_filter, &both("2000", "2501")));
        for unknown in ["", "?", "-", "0", "4001", "27000", "99999999999"] {
            assert!(admits(&game_filter, &both("2100", unknown)));
            assert!(!admits(&game_filter, &both("1000", unknown)));
        }
        assert!(admits(&game_filter, ""));
        game_filter.require_elo = true;
        assert!(!admits(&game_filter, &both("2100", "?")));
        assert!(!admits(&game_filter, ""));
    }

    #[test]
    fn ratings_may_have_text_around_them() {
        for (text, elo) in [
            ("1200?", 1200),
            ("1300P", 1300),
            ("1300P23", 1300),
            ("1400 (club)", 1400),
            ("DWZ=1500", 1500),
            ("Elo=1480", 1480),
            ("+1600", 1600),
            (" ~1700 ", 1700),
        ] {
            assert_eq!(rating(text.as_bytes()), Some(elo), "{text}");
        }
        for text in ["1500/1600", "-1500", "unrated", "1500.5", "0", "4001"] {
            assert_eq!(rating(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn unambiguous_dates_are_read() {
        for (text, date) in [
            ("2019-02-26", "2019.02.26"),
            ("20230517", "2023.05.17"),
            ("Sun Jul 09 2017", "2017.07.09"),
            ("9 July 2017", "2017.07.09"),
            ("Dec 1, 1999", "1999.12.01"),
            ("2021-03-04T10:00:00Z", "2021.03.04"),
            ("2021.03.04 10:00", "2021.03.04"),
            ("26.02.2019", "2019.02.26"),
            ("2/26/2019, 2:39:21 PM", "2019.02.26"),
            ("26-2-2019", "2019.02.26"),
            ("05.05.2018", "2018.05.05"),
            ("Feb 2019", "2019.02"),
            ("2017-Jul-09", "2017.07.09"),
            ("2017.OCT.9", "2017.10.09"),
            ("2017/September", "2017.09"),
            ("09-Jul-2017", "2017.07.09"),
            ("05/2024", "2024.05"),
            ("??.05.2024", "2024"),
            // The year is known, although the order of day and month is unclear or the day does not exist.
            ("3/10/2018, 2:39:21 PM", "2018"),
            ("10.01.2024", "2024"),
            ("14.15.1990", "1990"),
            ("31.02.1990", "1990.02"),
        ] {
            assert_eq!(Date::of_tag(text.as_bytes()).to_string(), date, "{text}");
        }
        for text in [
            "12345678",
            "20231301",
            "Jul 9 17",
            "10.01.24",
            "1.2.3.2024",
            "????.??.??",
            "10.01",
        ] {
            assert_eq!(Date::of_tag(text.as_bytes()), Date::default(), "{text}");
        }
        let filter = GameFilter {
            require_date: true,
            ..GameFilter::default()
        };
        assert!(admits(&filter, "[Date \"2017\"]"));
        assert!(admits(&filter, "[Date \"10.03.2018\"]") && !admits(&filter, ""));
    }

    #[test]
    fn dates_must_be_in_the_range() {
        let between = |since: &str, until: &str| GameFilter {
            since: Some(since.parse().unwrap()),
            until: Some(until.parse().unwrap()),
            ..GameFilter::default()
        };
        let of = |date: &str| format!("[Date \"{date}\"]");
        let year = between("1990", "1990");
        assert!(admits(&year, &of("1990.12.31")) && admits(&year, &of("1990.??.??")));
        assert!(!admits(&year, &of("1989.12.31")) && !admits(&year, &of("1991.01.01")));
        let days = between("1990.05.02", "1990.06.03");
        assert!(admits(&days, &of("1990.05.02")) && admits(&days, &of("1990.06.??")));
        assert!(!admits(&days, &of("1990.05.01")) && !admits(&days, &of("1990.07.??")));
        assert!(admits(&days, &of("????.??.??")) && admits(&days, ""));
        // Years in other forms and nonexistent days are unknown, so these games pass.
        for odd in ["10.03.24", "90.01.01", "19900.01.01", "10.03.1990"] {
            assert!(admits(&days, &of(odd)), "{odd}");
        }
        for other in ["10.03.2024", "03/10/2024", "1991-Jul-09"] {
            assert!(!admits(&days, &of(other)), "{other}");
        }
        assert!(admits(&days, &of("1990.06.31")) && !admits(&days, &of("1990.07.32")));
        assert!(!admits(
            &days,
            "[Date \"????.??.??\"][EventDate \"1991.01.01\"]"
        ));
        assert!(admits(
            &days,
            "[Date \"1990.05.05\"][EventDate \"1991.01.01\"]"
        ));
        for wrong in [
            "",
            "90.13",
            "1990.00",
            "1990.1.2.3",
            "14.15.1990",
            "31.02.1990",
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
    fn dates_show_only_their_known_parts() {
        for date in ["2024.03.05", "2024.??.05", "2024.03", "2024", "????"] {
            assert_eq!(Date::of_tag(date.as_bytes()).to_string(), date);
        }
    }

    #[test]
    fn conditions_that_exclude_each_other_are_rejected() {
        for (since, until, possible) in [
            ("2024", "2024", true),
            ("2024.06", "2024", true),
            ("2024.02.29", "2024.03", true),
            ("2024", "2023.12", false),
            ("2024.06.02", "2024.06.01", false),
        ] {
            let game_filter = GameFilter {
                since: Some(since.parse().unwrap()),
                until: Some(until.parse().unwrap()),
                ..GameFilter::default()
            };
            assert_eq!(game_filter.check().is_ok(), possible, "{since} {until}");
        }
    }

    #[test]
    fn a_name_needs_a_letter() {
        for (name, possible) in [("", false), (" \u{a0}\t", false), (" a", true)] {
            let of = |name: &str| vec!["Tal".to_owned(), name.to_owned()];
            for game_filter in [
                GameFilter {
                    players: of(name),
                    ..GameFilter::default()
                },
                GameFilter {
                    white: of(name),
                    ..GameFilter::default()
                },
                GameFilter {
                    black: of(name),
                    ..GameFilter::default()
                },
            ] {
                assert_eq!(game_filter.check().is_ok(), possible, "{name:?}");
            }
        }
    }

    #[test]
    fn names_in_latin_1_and_over_several_lines_match() {
        let player = |name: &str| GameFilter {
            players: vec![name.to_owned()],
            ..GameFilter::default()
        };
        let mut games = GameReader::new(b"[White \"M\xdcLLER,\r\nHans\"] *");
        assert!(games.next_game());
        assert!(player("müller").admits(games.tags()));
        assert!(player("Müller, Hans").admits(games.tags()));
        assert!(!player("Möller").admits(games.tags()));
    }

    #[test]
    fn games_match_names_openings_and_time_controls() {
        let tags = "[White \"Tal, M\"][Black \"Müller\"][ECO \"B87\"][TimeControl \"180+2\"]";
        let player = |name: &str| GameFilter {
            players: vec![name.to_owned()],
            ..GameFilter::default()
        };
        assert!(admits(&player("tal"), tags) && admits(&player("MÜLLER"), tags));
        assert!(!admits(&player("Botvinnik"), tags) && !admits(&player("tal"), ""));
        let white = GameFilter {
            white: vec!["müll".to_owned()],
            ..GameFilter::default()
        };
        assert!(!admits(&white, tags));
        for (range, expected) in [("B20-B99", true), ("B", true), ("b8", true), ("C-E", false)] {
            let game_filter = GameFilter {
                eco: vec![range.parse().unwrap()],
                ..GameFilter::default()
            };
            assert_eq!(admits(&game_filter, tags), expected, "{range}");
            assert_eq!(admits(&game_filter, "[ECO \" B87 \"]"), expected, "{range}");
            for none in ["", "[ECO \"B8\"]", "[ECO \"B8x\"]"] {
                assert!(!admits(&game_filter, none), "{none}");
            }
        }
        for (range, expected) in [
            ("180-480", true),
            ("260-260", true),
            ("-259", false),
            ("600-", false),
        ] {
            let game_filter = GameFilter {
                time_control: Some(range.parse().unwrap()),
                ..GameFilter::default()
            };
            assert_eq!(admits(&game_filter, tags), expected, "{range}");
            for unknown in [
                "-",
                "G/60",
                "1:30:00",
                "90:00",
                "40/7200,G/60",
                "0/60",
                "3600:20/60",
                "+5",
            ] {
                assert!(
                    !admits(&game_filter, &format!("[TimeControl \"{unknown}\"]")),
                    "{unknown}"
                );
            }
        }
        // A text that is longer than any time control is not parsed, so it takes no memory for its periods.
        let many = "1:".repeat(7 << 20) + "1";
        assert_eq!(estimated_seconds(many.as_bytes()), None);
        for (tag, seconds) in [
            ("18446744073709551615+18446744073709551615", u64::MAX / 1000),
            (
                "40/18446744073709551615:1+18446744073709551615",
                u64::MAX / 1000,
            ),
            ("40/7200:3600", 7200),
            ("40/5400+30:20/3600+30:900+30", 6600),
            ("20/3600", 7200),
            ("20/3600:1800", 5400),
            ("30/3600+10:20/1800+30", 6000),
            ("1/86400", 3_456_000),
            ("60/7200:900", 7200),
            ("1/18446744073709551615", u64::MAX / 1000),
            ("8+0.08", 11),
            ("10+0.1", 14),
            ("0.5", 0),
            ("40/60.5", 60),
            ("*180", 180),
            (" 60 + 1 ", 100),
        ] {
            assert_eq!(estimated_seconds(tag.as_bytes()), Some(seconds), "{tag}");
        }
        let two = GameFilter {
            eco: vec!["A".parse().unwrap(), "B8".parse().unwrap()],
            ..GameFilter::default()
        };
        assert!(admits(&two, tags));
        for wrong in ["", "F00", "B99-B20", "B2x"] {
            assert!(wrong.parse::<EcoRange>().is_err(), "{wrong}");
        }
        for wrong in ["", "60", "9-1", "a-b"] {
            assert!(wrong.parse::<TimeControlRange>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn one_of_several_names_is_enough() {
        let tags = "[White \"Tal, M\"][Black \"Karpov\"]";
        let names = |names: &[&str], exact| GameFilter {
            players: names.iter().map(|name| (*name).to_owned()).collect(),
            exact,
            ..GameFilter::default()
        };
        assert!(admits(&names(&["Fischer", "tal"], false), tags));
        assert!(!admits(&names(&["Fischer", "tal"], true), tags));
        assert!(admits(&names(&["Fischer", "TAL, M"], true), tags));
        assert!(!admits(&names(&["Fischer", "Spassky"], false), tags));
    }

    #[test]
    fn conditions_are_all_required_or_excluded() {
        let tags = "[Event \"Rated Blitz game\"][Termination \"Time forfeit\"]";
        let texts = |tags: &[&str], not_tags: &[&str]| {
            let parsed = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
            GameFilter {
                tags: parsed(tags),
                not_tags: parsed(not_tags),
                rated: true,
                ..GameFilter::default()
            }
        };
        assert!(admits(&texts(&["Event=blitz", "Event=game"], &[]), tags));
        assert!(!admits(&texts(&["Event=blitz", "Event=960"], &[]), tags));
        assert!(!admits(
            &texts(&[], &["Site=x", "Termination=forfeit"]),
            tags
        ));
        assert!(admits(&texts(&[], &["Site=x"]), tags));
        assert!(!admits(&texts(&[], &[]), "[Event \"Casual Blitz game\"]"));
        assert_eq!(
            texts(&["Event=Blitz"], &["Site=x"]).option_text(),
            "--tag \"Event=Blitz\" --not-tag \"Site=x\" --rated"
        );
    }
}

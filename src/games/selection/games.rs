//! Applies the conditions of a selection to games in PGN.

use shakmaty::Color;

use super::{Condition, RatedStatus, Selection};
use crate::{
    chess::position::Variant,
    games::{
        board_query::Matcher,
        openings::{self, OpeningNumber},
        pgn::{Date, GameResult, RatingGroup, Speed, Tags, estimated_seconds, is_rated, rating},
    },
};

/// The names of the tags with the name and the rating of each player, for White and for Black.
const SIDES: [(Color, &[u8], &[u8]); 2] = [
    (Color::White, b"White", b"WhiteElo"),
    (Color::Black, b"Black", b"BlackElo"),
];

/// Returns the ratings of White and Black, where 0 means unknown.
fn ratings(tags: &Tags<'_>) -> [u16; 2] {
    SIDES.map(|(_, _, elo)| tags.get(elo).and_then(rating).unwrap_or(0))
}

impl Selection {
    /// Returns `true` if the tags of a game meet the conditions. Conditions on the result, the length, the opening and
    /// duplicates are not checked.
    pub fn admits(&self, tags: &Tags<'_>) -> bool {
        self.unmet(tags).is_none()
    }

    /// Returns the first condition that the tags of a game do not meet, or `None` if they meet all conditions.
    /// Conditions on the result, the length, the opening and duplicates are not checked: see
    /// [`admits_result`](Selection::admits_result) and [`unmet_by_moves`](Selection::unmet_by_moves).
    pub fn unmet(&self, tags: &Tags<'_>) -> Option<Condition> {
        // The pattern names every field, so that a new condition does not compile until it is considered here.
        let Selection {
            min_elo: _,
            max_elo: _,
            require_elo: _,
            rating,
            since: _,
            until: _,
            require_date: _,
            player: _,
            color: _,
            opponent: _,
            opponent_rating: _,
            white: _,
            black: _,
            exact: _,
            event: _,
            eco,
            tag,
            not_tag,
            speed,
            time_control,
            rated,
            // These are checked when the moves are known.
            result: _,
            skip_unfinished: _,
            min_plies: _,
            opening: _,
            position: _,
            duplicates: _,
            // An index has names of sources, PGN has none.
            source: _,
        } = self;
        let is_in_a_range = |code| eco.iter().any(|range| range.contains(code));
        let time = || tags.get(b"TimeControl");
        if !self.admits_elos(tags)
            || rating.is_some() && !self.admits_rating(RatingGroup::of_game(ratings(tags)))
        {
            return Some(Condition::Rating);
        }
        if !self.admits_date_of(tags) {
            return Some(Condition::Date);
        }
        if !self.admits_names(tags) {
            return Some(Condition::Player);
        }
        if !eco.is_empty() && !tags.get(b"ECO").is_some_and(is_in_a_range) {
            return Some(Condition::Eco);
        }
        if !self.admits_event(tags) {
            return Some(Condition::Event);
        }
        if speed.is_some() && !self.admits_speed(Speed::of_tag(time())) {
            return Some(Condition::Speed);
        }
        if let Some(range) = time_control
            && !time()
                .and_then(estimated_seconds)
                .is_some_and(|seconds| range.contains(seconds))
        {
            return Some(Condition::TimeControl);
        }
        if rated.is_some() && !self.admits_rated(RatedStatus::of(is_rated(tags))) {
            return Some(Condition::Rated);
        }
        let admits_texts =
            tag.iter().all(|text| text.is_in(tags)) && !not_tag.iter().any(|text| text.is_in(tags));
        (!admits_texts).then_some(Condition::Tag)
    }

    /// Returns `true` if a game with the result `result` meets the condition on results. The other conditions are not
    /// checked; `tags`, the tags of the game, must meet them.
    pub fn admits_result(&self, tags: &Tags<'_>, result: GameResult) -> bool {
        let player = || {
            self.player_color(tags)
                .filter(|_| self.has_player_results())
        };
        self.result.is_empty() && !self.skip_unfinished || self.admits_result_of(result, player())
    }

    /// Returns a matcher for the condition on positions in a game of `variant`. Returns `None` if there is no such
    /// condition.
    pub(crate) fn matcher(&self, variant: Variant) -> Option<Matcher> {
        let mut matcher = self.board_query()?.matcher();
        matcher.begin(variant);
        Some(matcher)
    }

    /// Returns the first of the conditions on the length, the opening and the positions that a game does not meet, or
    /// `None` if it meets them all. `plies` is the number of half-moves, and `opening` is the opening of the game. If
    /// there is a condition on positions, `matcher` must have visited the positions of the game.
    pub fn unmet_by_moves(
        &self,
        plies: usize,
        opening: OpeningNumber,
        matcher: Option<&Matcher>,
    ) -> Option<Condition> {
        if plies < self.min_plies as usize {
            Some(Condition::Length)
        } else if self
            .opening
            .as_ref()
            .is_some_and(|wanted| !wanted.contains(opening))
        {
            Some(Condition::Opening)
        } else if self.board_query().is_some() && !matcher.is_some_and(Matcher::has_matched) {
            Some(Condition::Position)
        } else {
            None
        }
    }

    /// Returns `true` if a game meets the conditions on the result, the length, the opening and the positions. The
    /// moves of the game must have been played, and its tags must meet the other conditions. `identities` contains the
    /// identities of its positions, from the first to the last. If there is a condition on positions, `matcher` must
    /// have visited them.
    pub(crate) fn admits_played(
        &self,
        tags: &Tags<'_>,
        result: GameResult,
        variant: Variant,
        identities: &[u64],
        matcher: Option<&Matcher>,
    ) -> bool {
        let opening = match self.opening {
            Some(_) => openings::of_game(variant, identities.iter().copied()),
            None => OpeningNumber::default(),
        };
        let plies = identities.len().saturating_sub(1);
        self.admits_result(tags, result) && self.unmet_by_moves(plies, opening, matcher).is_none()
    }

    /// Returns `true` if a game with the tags `tags` meets the condition on the date only because the year of the game
    /// is unknown. Returns `false` if there is no condition on the date.
    pub(crate) fn passes_undated(&self, tags: &Tags<'_>) -> bool {
        (self.since.is_some() || self.until.is_some()) && Date::of_tags(tags).year().is_none()
    }

    /// Returns `true` if at least one player meets the condition on ratings only because this player's rating is
    /// missing or unreadable. Returns `false` if there is no condition on ratings.
    pub(crate) fn passes_unrated(&self, tags: &Tags<'_>) -> bool {
        (self.min_elo.is_some() || self.max_elo.is_some()) && ratings(tags).contains(&0)
    }

    fn admits_elos(&self, tags: &Tags<'_>) -> bool {
        if self.min_elo.is_none() && self.max_elo.is_none() && !self.require_elo {
            return true;
        }
        ratings(tags)
            .into_iter()
            .map(u32::from)
            .all(|elo| match elo {
                0 => !self.require_elo,
                elo => {
                    self.min_elo.is_none_or(|min| min <= elo)
                        && self.max_elo.is_none_or(|max| elo <= max)
                }
            })
    }

    /// Returns `true` if the games of a class are admitted. A class consists of all games with the same speed, rating
    /// group and month. `rating` is `None` if no rating is known, and `date` contains only the year and the month. The
    /// selection must have only conditions that [`Evaluator::Counts`](super::Evaluator::Counts) can apply.
    pub(crate) fn admits_class(
        &self,
        speed: Speed,
        rating: Option<RatingGroup>,
        date: Date,
    ) -> bool {
        self.admits_speed(speed) && self.admits_rating(rating) && self.admits_date(date)
    }

    fn admits_date_of(&self, tags: &Tags<'_>) -> bool {
        let has_condition = self.since.is_some() || self.until.is_some() || self.require_date;
        !has_condition || self.admits_date(Date::of_tags(tags))
    }

    fn admits_date(&self, date: Date) -> bool {
        (date.year().is_some() || !self.require_date)
            && self.since.is_none_or(|since| !date.is_before(since))
            && self.until.is_none_or(|until| !until.is_before(date))
    }

    /// Returns an iterator over the names in the tags `White` and `Black` that a condition on names examines. Each item
    /// contains the name, and `true` if it matches a name in the selection.
    pub(crate) fn player_tags<'t>(
        &self,
        tags: &'t Tags<'_>,
    ) -> impl Iterator<Item = (&'t [u8], bool)> {
        SIDES.into_iter().filter_map(|(color, tag, _)| {
            let of_side = color.fold_wb(&self.white, &self.black);
            let names = [of_side, &self.player, &self.opponent];
            let value = tags
                .get(tag)
                .filter(|_| names.iter().any(|names| !names.is_empty()))?;
            let how = self.name_match();
            let is_match = names.iter().any(|names| how.matches_any(value, names));
            Some((value, is_match))
        })
    }

    /// Returns the color in a game of the player that the selection names. If the names of both sides match, the player
    /// is White. Returns `None` if the selection names no player.
    pub(crate) fn player_color(&self, tags: &Tags<'_>) -> Option<Color> {
        if self.player.is_empty() {
            return None;
        }
        let is_white = || self.has_player(tags, Color::White);
        Some(self.color.unwrap_or_else(|| Color::from_white(is_white())))
    }

    /// Returns `true` if the name of the side `color` matches the player, and that of the other side matches the
    /// opponent.
    fn has_player(&self, tags: &Tags<'_>, color: Color) -> bool {
        is_named(self, tags, color, &self.player) && is_named(self, tags, !color, &self.opponent)
    }

    pub(crate) fn admits_event(&self, tags: &Tags<'_>) -> bool {
        self.event.as_ref().is_none_or(|name| {
            let (how, names) = (self.name_match(), std::slice::from_ref(name));
            let event = tags.get(b"Event");
            event.is_some_and(|event| how.matches_any(event, names))
        })
    }

    fn admits_names(&self, tags: &Tags<'_>) -> bool {
        if !self.has_names() {
            return true;
        }
        let is_player = match self.player_color(tags) {
            None => Color::ALL
                .iter()
                .any(|color| is_named(self, tags, *color, &self.opponent)),
            Some(color) => {
                let [white, black] = ratings(tags);
                let other = color.fold_wb(black, white);
                self.has_player(tags, color)
                    && self
                        .opponent_rating
                        .is_none_or(|range| range.contains(other))
            }
        };
        is_player
            && is_named(self, tags, Color::White, &self.white)
            && is_named(self, tags, Color::Black, &self.black)
    }
}

/// Returns `true` if the name of the side `color` matches one of `names`, or if `names` is empty.
fn is_named(selection: &Selection, tags: &Tags<'_>, color: Color, names: &[String]) -> bool {
    let (_, tag, _) = SIDES[usize::from(color.is_black())];
    names.is_empty()
        || tags
            .get(tag)
            .is_some_and(|value| selection.name_match().matches_any(value, names))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::games::pgn::{EcoRange, GameReader, TimeControlRange};

    fn admits(selection: &Selection, tags: &str) -> bool {
        let text = format!("{tags}\n\n1. e4 *");
        let mut games = GameReader::new(text.as_bytes());
        assert!(games.next_game());
        selection.admits(games.tags())
    }

    #[test]
    fn ratings_must_be_in_the_range() {
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
        for unknown in ["", "?", "-", "0", "4001", "27000", "99999999999"] {
            assert!(admits(&selection, &both("2100", unknown)));
            assert!(!admits(&selection, &both("1000", unknown)));
        }
        assert!(admits(&selection, ""));
        selection.require_elo = true;
        assert!(!admits(&selection, &both("2100", "?")));
        assert!(!admits(&selection, ""));
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
            ("2,400", 2400),
            ("2.400", 2400),
            ("1'850?", 1850),
            ("2 100 (club)", 2100),
            ("2400.5", 2400),
            ("1500,25", 1500),
            ("2,400.5", 2400),
            ("2400 (rapid)", 2400),
            ("1.500P23", 1500),
        ] {
            assert_eq!(rating(text.as_bytes()), Some(elo), "{text}");
        }
        for text in [
            "1500/1600",
            "-1500",
            "unrated",
            "0",
            "4001",
            "4,001",
            "9,999",
            "65,999",
            "2,40",
            "2,4000",
            "2400.555",
            "2400 2350",
            "2.5",
            "2,400,000",
            "2400.5.5",
        ] {
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
        let filter = Selection {
            require_date: true,
            ..Selection::default()
        };
        assert!(admits(&filter, "[Date \"2017\"]"));
        assert!(admits(&filter, "[Date \"10.03.2018\"]") && !admits(&filter, ""));
    }

    #[test]
    fn dates_must_be_in_the_range() {
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
            let selection = Selection {
                since: Some(since.parse().unwrap()),
                until: Some(until.parse().unwrap()),
                ..Selection::default()
            };
            assert_eq!(selection.check().is_ok(), possible, "{since} {until}");
        }
    }

    #[test]
    fn a_name_needs_a_letter() {
        for (name, possible) in [("", false), (" \u{a0}\t", false), (" a", true)] {
            let of = |name: &str| vec!["Tal".to_owned(), name.to_owned()];
            for selection in [
                Selection {
                    player: of(name),
                    ..Selection::default()
                },
                Selection {
                    white: of(name),
                    ..Selection::default()
                },
                Selection {
                    black: of(name),
                    ..Selection::default()
                },
                Selection {
                    opponent: of(name),
                    ..Selection::default()
                },
            ] {
                assert_eq!(selection.check().is_ok(), possible, "{name:?}");
            }
        }
    }

    #[test]
    fn names_in_latin_1_and_over_several_lines_match() {
        let player = |name: &str| Selection {
            player: vec![name.to_owned()],
            ..Selection::default()
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
        let player = |name: &str| Selection {
            player: vec![name.to_owned()],
            ..Selection::default()
        };
        assert!(admits(&player("tal"), tags) && admits(&player("MÜLLER"), tags));
        assert!(!admits(&player("Botvinnik"), tags) && !admits(&player("tal"), ""));
        let white = Selection {
            white: vec!["müll".to_owned()],
            ..Selection::default()
        };
        assert!(!admits(&white, tags));
        for (range, expected) in [("B20-B99", true), ("B", true), ("b8", true), ("C-E", false)] {
            let selection = Selection {
                eco: vec![range.parse().unwrap()],
                ..Selection::default()
            };
            assert_eq!(admits(&selection, tags), expected, "{range}");
            assert_eq!(admits(&selection, "[ECO \" B87 \"]"), expected, "{range}");
            for none in ["", "[ECO \"B8\"]", "[ECO \"B8x\"]"] {
                assert!(!admits(&selection, none), "{none}");
            }
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
                    !admits(&selection, &format!("[TimeControl \"{unknown}\"]")),
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
        let two = Selection {
            eco: vec!["A".parse().unwrap(), "B8".parse().unwrap()],
            ..Selection::default()
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
        let names = |names: &[&str], exact| Selection {
            player: names.iter().map(|name| (*name).to_owned()).collect(),
            exact,
            ..Selection::default()
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
            Selection {
                tag: parsed(tags),
                not_tag: parsed(not_tags),
                rated: Some(vec![RatedStatus::Rated]),
                ..Selection::default()
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

    fn selection(conditions: &[(&str, &str)]) -> Selection {
        let mut selection = Selection::default();
        for (name, text) in conditions {
            selection.set(name, text).unwrap();
        }
        selection.check().unwrap();
        selection
    }

    const TAGS: &str = "[Event \"Rated Blitz game\"][White \"Tal, M.\"][Black \"Karpov,A\"][WhiteElo \"2400\"]\
        [BlackElo \"2000\"][TimeControl \"180+2\"]";

    #[test]
    fn players_have_colors_opponents_and_results() {
        for (conditions, expected) in [
            (&[("player", "tal,m"), ("color", "white")][..], true),
            (&[("player", "tal"), ("color", "black")], false),
            (
                &[
                    ("player", "Karpov, A."),
                    ("opponent", "Tal,M"),
                    ("exact", "true"),
                ],
                true,
            ),
            (&[("player", "tal"), ("opponent", "spassky")], false),
            (&[("opponent", "karpov")], true),
            (&[("opponent", "spassky")], false),
            (&[("player", "tal"), ("opponent-rating", "-2000")], true),
            (&[("player", "karpov"), ("opponent-rating", "-2000")], false),
            (&[("white", "tal"), ("black", "karpov")], true),
            (&[("black", "tal")], false),
            (&[("speed", "blitz,bullet")], true),
            (&[("speed", "rapid")], false),
            (&[("rating", "2200")], true),
            (&[("rating", "2000,unknown")], false),
            (&[("event", "BLITZ")], true),
            (&[("event", "blitz"), ("exact", "true")], false),
            (&[("rated", "rated")], true),
            (&[("rated", "unknown,casual")], false),
        ] {
            let selection = selection(conditions);
            assert_eq!(admits(&selection, TAGS), expected, "{conditions:?}");
        }
        let all = "0,1000,1200,1400,1600,1800,2000,2200,2500";
        assert!(admits(&selection(&[("rating", all)]), ""));
        assert!(!admits(&selection(&[("rating", &all[2..])]), ""));
    }

    #[test]
    fn results_are_those_of_the_player() {
        let text = format!("{TAGS} *");
        let mut games = GameReader::new(text.as_bytes());
        assert!(games.next_game());
        for (player, result, expected) in [
            ("tal", "win", [true, false, false]),
            ("karpov", "win", [false, true, false]),
            ("karpov", "loss", [true, false, false]),
            ("karpov", "loss,draw", [true, false, true]),
            ("a", "win", [true, false, false]),
        ] {
            let selection = selection(&[("player", player), ("result", result)]);
            let results = [
                GameResult::WhiteWins,
                GameResult::BlackWins,
                GameResult::Draw,
            ];
            let admitted = results.map(|result| selection.admits_result(games.tags(), result));
            assert_eq!(admitted, expected, "{player} {result}");
        }
    }
}

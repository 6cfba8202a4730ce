//! Classifies games by speed, mode and rating group, the properties by which opening explorers filter games.

use std::{fmt, str::FromStr};

use thiserror::Error;

use super::{
    Tags,
    values::{estimated_seconds, is_rated},
};

/// The speed of a game, such as bullet or blitz.
///
/// The speed depends on the time that a player has for 40 moves: the base time plus 40 increments. If the time
/// control has several periods, the times of all periods up to move 40 are added up.
///
/// ```
/// use polybook::pgn::Speed;
/// assert_eq!(Speed::of_tag(Some(b"180+2")), Speed::Blitz);
/// assert_eq!(Speed::of_tag(Some(b"-")), Speed::Correspondence);
/// assert_eq!(Speed::of_tag(None), Speed::Classical);
/// assert_eq!("ultraBullet".parse(), Ok(Speed::UltraBullet));
/// ```
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Speed {
    /// Less than 30 seconds for 40 moves.
    UltraBullet,
    /// Less than 3 minutes for 40 moves.
    Bullet,
    /// Less than 8 minutes for 40 moves.
    Blitz,
    /// Less than 25 minutes for 40 moves.
    Rapid,
    /// Less than 6 hours for 40 moves, or an unknown time control.
    Classical,
    /// At least 6 hours for 40 moves, or a game without a clock.
    Correspondence,
}

/// The error for a string that is not the name of a [`Speed`].
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("use ultraBullet, bullet, blitz, rapid, classical or correspondence")]
pub struct UnknownSpeed;

impl Speed {
    /// All speeds, from the fastest to the slowest.
    pub const ALL: [Speed; 6] = [
        Speed::UltraBullet,
        Speed::Bullet,
        Speed::Blitz,
        Speed::Rapid,
        Speed::Classical,
        Speed::Correspondence,
    ];

    /// Returns the speed of a game. `value` is the value of the game's `TimeControl` tag, or `None` if the game has
    /// no such tag. An unknown or unreadable time control counts as [`Classical`](Speed::Classical).
    pub fn of_tag(value: Option<&[u8]>) -> Speed {
        let value = value.unwrap_or_default().trim_ascii();
        if value == b"-" {
            return Speed::Correspondence;
        }
        match estimated_seconds(value) {
            None => Speed::Classical,
            Some(0..30) => Speed::UltraBullet,
            Some(30..180) => Speed::Bullet,
            Some(180..480) => Speed::Blitz,
            Some(480..1500) => Speed::Rapid,
            Some(1500..21600) => Speed::Classical,
            Some(_) => Speed::Correspondence,
        }
    }

    /// Returns the name of the speed as the Lichess opening explorer writes it, such as `ultraBullet`.
    pub fn name(self) -> &'static str {
        match self {
            Speed::UltraBullet => "ultraBullet",
            Speed::Bullet => "bullet",
            Speed::Blitz => "blitz",
            Speed::Rapid => "rapid",
            Speed::Classical => "classical",
            Speed::Correspondence => "correspondence",
        }
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Speed {
    type Err = UnknownSpeed;

    fn from_str(text: &str) -> Result<Speed, UnknownSpeed> {
        let named = |speed: &&Speed| speed.name().eq_ignore_ascii_case(text.trim());
        Speed::ALL.iter().find(named).copied().ok_or(UnknownSpeed)
    }
}

/// The mode of a game: rated or casual. Only a rated game changes the ratings of its players.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The game was rated, or does not say whether it was.
    Rated,
    /// The `Event` tag says that the game was not rated: it contains "casual", "unrated", "non-rated" or "not rated".
    Casual,
}

/// The error for a string that is not the name of a [`Mode`].
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("use rated or casual")]
pub struct UnknownMode;

impl Mode {
    /// All modes: rated and casual.
    pub const ALL: [Mode; 2] = [Mode::Rated, Mode::Casual];

    /// Returns the mode of a game, according to its `Event` tag. A game counts as rated unless the tag says that it is
    /// not.
    pub(crate) fn of_tags(tags: &Tags<'_>) -> Mode {
        match is_rated(tags) {
            Some(false) => Mode::Casual,
            Some(true) | None => Mode::Rated,
        }
    }

    /// Returns the name of the mode in lower case: `rated` or `casual`.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Rated => "rated",
            Mode::Casual => "casual",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Mode, UnknownMode> {
        let named = |mode: &&Mode| mode.name().eq_ignore_ascii_case(text.trim());
        Mode::ALL.iter().find(named).copied().ok_or(UnknownMode)
    }
}

// Groups of ratings.

/// The lowest ratings of the rating groups, in ascending order.
const FLOORS: [u32; 9] = [0, 1000, 1200, 1400, 1600, 1800, 2000, 2200, 2500];

/// A group of games whose players have similar ratings. The mean of the known ratings in a game determines its group.
/// A game without known ratings belongs to no group.
///
/// ```
/// use polybook::pgn::RatingGroup;
/// assert_eq!(RatingGroup::of_game([2400, 1801]), Some(RatingGroup::of(2100)));
/// assert_eq!(RatingGroup::of_game([2800, 0]), Some(RatingGroup::of(2800)));
/// assert_eq!(RatingGroup::of_game([0, 0]), None);
/// assert_eq!(RatingGroup::of(1700).floor(), 1600);
/// assert_eq!(RatingGroup::of(3000), RatingGroup::of(2500));
/// assert_eq!("1600".parse(), Ok(RatingGroup::of(1700)));
/// ```
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RatingGroup(u8);

/// The error for a string or a number that is not the lowest rating of a [`RatingGroup`].
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum UnknownRatingGroup {
    /// The string is not a number. The message also lists `unknown`, which filters accept for games without ratings.
    #[error("use 0, 1000, 1200, 1400, 1600, 1800, 2000, 2200, 2500 or unknown")]
    NotANumber,
    /// The rating belongs to a group, but is not its lowest rating.
    #[error("{rating} is in the rating group {group}: use {group}")]
    NotTheLowest {
        /// The rating that is not the lowest one of a group.
        rating: u32,
        /// The group to which the rating belongs.
        group: RatingGroup,
    },
}

impl RatingGroup {
    /// The number of rating groups.
    pub(crate) const COUNT: usize = FLOORS.len();

    /// Returns an iterator over all rating groups, from the lowest to the highest.
    pub fn all() -> impl Iterator<Item = RatingGroup> {
        (0..FLOORS.len()).map(|number| RatingGroup(number as u8))
    }

    /// Returns the rating group that contains `rating`.
    pub fn of(rating: u32) -> RatingGroup {
        let above = FLOORS.iter().rposition(|floor| *floor <= rating);
        RatingGroup(above.unwrap_or(0) as u8)
    }

    /// Returns the rating group whose lowest rating is `floor`.
    ///
    /// # Errors
    ///
    /// Returns [`UnknownRatingGroup::NotTheLowest`] if no group begins at this rating.
    pub fn beginning_at(floor: u32) -> Result<RatingGroup, UnknownRatingGroup> {
        match RatingGroup::of(floor) {
            group if group.floor() == floor => Ok(group),
            group => Err(UnknownRatingGroup::NotTheLowest {
                rating: floor,
                group,
            }),
        }
    }

    /// Returns the rating group of a game. `ratings` contains the ratings of White and Black, where 0 means unknown.
    /// The mean of the known ratings determines the group. Returns `None` if both ratings are unknown.
    pub fn of_game(ratings: [u16; 2]) -> Option<RatingGroup> {
        match doubled_mean(ratings) {
            0 => None,
            doubled => Some(RatingGroup::of(doubled / 2)),
        }
    }

    /// Returns the lowest rating in the group.
    pub fn floor(self) -> u32 {
        FLOORS[usize::from(self.0)]
    }

    /// Returns the index of the group, counted from 0 for the group with the lowest ratings.
    pub(crate) fn number(self) -> usize {
        usize::from(self.0)
    }
}

/// Returns twice the mean of the known ratings of White and Black, so that the result is an integer. A rating of 0 is
/// unknown. Returns 0 if both ratings are unknown.
#[inline]
pub(crate) fn doubled_mean([white, black]: [u16; 2]) -> u32 {
    let sum = u32::from(white) + u32::from(black);
    if white == 0 || black == 0 {
        2 * sum
    } else {
        sum
    }
}

/// Parses the lowest rating of a group, such as `1600`.
impl FromStr for RatingGroup {
    type Err = UnknownRatingGroup;

    fn from_str(text: &str) -> Result<RatingGroup, UnknownRatingGroup> {
        let floor = text.parse().map_err(|_| UnknownRatingGroup::NotANumber)?;
        RatingGroup::beginning_at(floor)
    }
}

impl fmt::Display for RatingGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.floor().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::games::pgn::GameReader;

    #[test]
    fn speeds_follow_from_time_controls() {
        for (tag, speed) in [
            ("15+0", Speed::UltraBullet),
            ("30", Speed::Bullet),
            ("60+2", Speed::Bullet),
            ("60+3", Speed::Blitz),
            ("300+3", Speed::Blitz),
            ("300+4.5", Speed::Rapid),
            ("8+0.08", Speed::UltraBullet),
            ("10+0.1", Speed::UltraBullet),
            ("300+0.5", Speed::Blitz),
            ("0.5+0.0125", Speed::UltraBullet),
            ("300+5", Speed::Rapid),
            ("900+15", Speed::Classical),
            ("40/7200:3600", Speed::Classical),
            // The first period does not say after how many moves it ends.
            ("5400+30:1800+30", Speed::Classical),
            ("300+0:60+0", Speed::Blitz),
            ("40/5400:1800:900", Speed::Classical),
            ("180+2:60+2", Speed::Blitz),
            ("480:60+2", Speed::Rapid),
            ("21600", Speed::Correspondence),
            ("1/60", Speed::Classical),
            ("1/600", Speed::Correspondence),
            ("1/259200", Speed::Correspondence),
            ("-", Speed::Correspondence),
            ("?", Speed::Classical),
            ("G/60", Speed::Classical),
            ("1:30:00", Speed::Classical),
            ("", Speed::Classical),
        ] {
            assert_eq!(Speed::of_tag(Some(tag.as_bytes())), speed, "{tag}");
        }
    }

    #[test]
    fn names_are_parsed_back() {
        for speed in Speed::ALL {
            assert_eq!(speed.to_string().parse(), Ok(speed));
        }
        for mode in Mode::ALL {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        assert!("fast".parse::<Speed>().is_err() && "".parse::<Mode>().is_err());
    }

    #[test]
    fn modes_follow_from_events() {
        for (event, mode) in [
            ("Casual Blitz game", Mode::Casual),
            ("lichess casual", Mode::Casual),
            ("FICS unrated blitz game", Mode::Casual),
            ("Non-rated game", Mode::Casual),
            ("Rated Blitz game", Mode::Rated),
            ("Casualty Memorial", Mode::Rated),
            ("", Mode::Rated),
        ] {
            let text = format!("[Event \"{event}\"] *");
            let mut games = GameReader::new(text.as_bytes());
            assert!(games.next_game());
            assert_eq!(Mode::of_tags(games.tags()), mode, "{event}");
        }
    }
}

//! The values that conditions on games compare: ratings, dates, codes, names and texts of tags.
//!
//! A [`Condition`] names the kind of condition that a game does not meet, so that a report can count the games that
//! each kind of filter left out.

mod conditions;

use std::fmt;

use serde::{
    Deserialize, Serialize,
    de::{IntoDeserializer, value},
};

pub(crate) use self::conditions::folded;
pub(super) use self::conditions::millis;
pub use self::conditions::{
    ConditionError, Date, EcoRange, NameMatch, RatingRange, TagText, TimeControlRange,
};
pub(crate) use self::conditions::{estimated_seconds, is_rated, rated_event};

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

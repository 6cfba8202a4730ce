//! The kinds of conditions on games. Reports contain the number of games that fail each kind of condition.

use std::fmt;

use serde::{
    Deserialize, Serialize,
    de::{IntoDeserializer, value},
};

/// The kind of a condition on games, such as a condition on the date. A report counts the rejected games by the kind of
/// condition that they do not meet.
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
    /// The opening, which is determined by the moves of the game.
    Opening,
    /// The pieces on the board in the positions of the game.
    Position,
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
    /// use polybook::selection::Condition;
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

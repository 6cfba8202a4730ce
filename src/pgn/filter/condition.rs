//! The kinds of conditions in a filter for games.

use std::fmt;

use serde::{
    Deserialize, Serialize,
    de::{IntoDeserializer, value},
};

/// The kind of condition because of which a filter rejected a game.
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
    #[serde(rename = "ECO code")]
    Eco,
    /// The opening by the moves of the game.
    Opening,
    /// The time control.
    #[serde(rename = "time control")]
    TimeControl,
    /// The result. A game without a result also fails this condition.
    Result,
    /// The number of half-moves.
    Length,
    /// The variant.
    Variant,
    /// The text of a tag.
    Tag,
    /// Whether the game is rated.
    Rated,
    /// The game has the same moves, players and result as an earlier game.
    Duplicate,
}

impl Condition {
    /// Returns the condition with this name, or `None` if no condition has the name.
    ///
    /// ```
    /// use polybook::pgn::Condition;
    /// assert_eq!(Condition::from_name("ECO code"), Some(Condition::Eco));
    /// assert_eq!(Condition::Eco.to_string(), "ECO code");
    /// ```
    pub fn from_name(name: &str) -> Option<Condition> {
        let name: value::StrDeserializer<'_, value::Error> = name.into_deserializer();
        Condition::deserialize(name).ok()
    }
}

/// Writes the name of the condition.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

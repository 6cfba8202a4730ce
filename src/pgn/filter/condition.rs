//! The filters that can reject a game.

use std::fmt;

use serde::{
    Deserialize, Serialize,
    de::{IntoDeserializer, value},
};

/// A kind of condition that a game did not meet.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Condition {
    /// The ratings of the players.
    Rating,
    /// When it was played.
    Date,
    /// Who played it.
    Player,
    /// The ECO code.
    #[serde(rename = "ECO code")]
    Eco,
    /// The time control.
    #[serde(rename = "time control")]
    TimeControl,
    /// The result, or that there is none.
    Result,
    /// The number of half-moves.
    Length,
    /// The variant.
    Variant,
    /// The text of a tag.
    Tag,
    /// Whether it is rated.
    Rated,
    /// That no game before has the same moves, players and result.
    Duplicate,
}

impl Condition {
    /// The condition of a name.
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

/// Its name.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

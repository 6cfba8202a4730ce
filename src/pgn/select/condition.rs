//! The filters that can reject a game.

use std::fmt;

/// A kind of condition that a game did not meet.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Condition {
    /// The ratings of the players.
    Rating,
    /// When it was played.
    Date,
    /// Who played it.
    Player,
    /// The ECO code.
    Eco,
    /// The time control.
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
    /// All of them.
    const ALL: [Condition; 11] = [
        Condition::Rating,
        Condition::Date,
        Condition::Player,
        Condition::Eco,
        Condition::TimeControl,
        Condition::Result,
        Condition::Length,
        Condition::Variant,
        Condition::Tag,
        Condition::Rated,
        Condition::Duplicate,
    ];

    /// The condition that [`name`](Condition::name) names so.
    ///
    /// ```
    /// use polybook::pgn::Condition;
    /// assert_eq!(Condition::from_name("ECO code"), Some(Condition::Eco));
    /// ```
    pub fn from_name(name: &str) -> Option<Condition> {
        let mut all = Condition::ALL.into_iter();
        all.find(|condition| condition.name() == name)
    }

    /// The condition in words.
    pub fn name(self) -> &'static str {
        match self {
            Condition::Rating => "rating",
            Condition::Date => "date",
            Condition::Player => "player",
            Condition::Eco => "ECO code",
            Condition::TimeControl => "time control",
            Condition::Result => "result",
            Condition::Length => "length",
            Condition::Variant => "variant",
            Condition::Tag => "tag",
            Condition::Rated => "rated",
            Condition::Duplicate => "duplicate",
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// As its name.
impl serde::Serialize for Condition {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

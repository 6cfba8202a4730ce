//! The properties of games by which counts are grouped, besides the position and the move.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::class::CountClass;

/// The properties of games that counts are grouped by, besides position and move. The default is none.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<&'static str>")]
pub struct Grouping {
    /// Whether counts are grouped by the speed of the games.
    pub speed: bool,
    /// Whether counts are grouped by rating group, the group of the mean of the known ratings.
    pub rating: bool,
    /// Whether counts are grouped by the month of the games.
    pub month: bool,
}

/// The error for a text that does not name such properties.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("write speed, rating and month, joined by commas, or none")]
pub struct UnknownClass;

impl Grouping {
    /// Returns `true` if counts are not grouped.
    pub fn is_none(self) -> bool {
        self == Grouping::default()
    }

    /// Returns `true` if counts grouped by `other` can be calculated from counts grouped by `self`.
    pub fn has(self, other: Grouping) -> bool {
        let mine = self.fields();
        other
            .fields()
            .iter()
            .zip(mine)
            .all(|(theirs, mine)| !theirs.1 || mine.1)
    }

    /// Returns the class with 0 for each property that counts are not grouped by.
    pub(crate) fn of(self, class: CountClass) -> CountClass {
        CountClass {
            speed: if self.speed { class.speed } else { 0 },
            group: if self.rating { class.group } else { 0 },
            month: if self.month { class.month } else { 0 },
            book_only: class.book_only,
        }
    }

    fn fields(self) -> [(&'static str, bool); 3] {
        let Grouping {
            speed,
            rating,
            month,
        } = self;
        [("speed", speed), ("rating", rating), ("month", month)]
    }

    fn names(self) -> Vec<&'static str> {
        let fields = self.fields().into_iter();
        fields
            .filter(|field| field.1)
            .map(|field| field.0)
            .collect()
    }

    fn of_names<'a>(names: impl Iterator<Item = &'a str>) -> Result<Grouping, UnknownClass> {
        let mut by = Grouping::default();
        for name in names {
            match name.trim() {
                "speed" => by.speed = true,
                "rating" => by.rating = true,
                "month" => by.month = true,
                _ => return Err(UnknownClass),
            }
        }
        Ok(by)
    }
}

impl fmt::Display for Grouping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_none() {
            true => f.pad("none"),
            false => f.pad(&self.names().join(",")),
        }
    }
}

impl FromStr for Grouping {
    type Err = UnknownClass;

    fn from_str(text: &str) -> Result<Grouping, UnknownClass> {
        match text {
            "none" => Ok(Grouping::default()),
            _ => Grouping::of_names(text.split(',')),
        }
    }
}

impl From<Grouping> for Vec<&'static str> {
    fn from(by: Grouping) -> Vec<&'static str> {
        by.names()
    }
}

impl TryFrom<Vec<String>> for Grouping {
    type Error = UnknownClass;

    fn try_from(names: Vec<String>) -> Result<Grouping, UnknownClass> {
        Grouping::of_names(names.iter().map(String::as_str))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_written_in_one_order() {
        let by: Grouping = "month,speed,month".parse().unwrap();
        assert_eq!(by.to_string(), "speed,month");
        assert_eq!(serde_json::to_string(&by).unwrap(), "[\"speed\",\"month\"]");
        assert_eq!(
            serde_json::from_str::<Grouping>("[\"month\",\"speed\"]").unwrap(),
            by
        );
        assert_eq!("none".parse(), Ok(Grouping::default()));
        for wrong in ["", "elo", "speed,", "none,speed", "speed;month"] {
            assert!(wrong.parse::<Grouping>().is_err(), "{wrong}");
        }
        assert!(by.has(Grouping::default()) && by.has(by) && !Grouping::default().has(by));
    }
}

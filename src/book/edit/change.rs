//! A change of a position, and how it is written.

use std::str::FromStr;

use thiserror::Error;

/// A change of a position. Moves are as people write them. A move that is not legal can be removed by its
/// [`BookMove::uci`](crate::position::BookMove::uci).
#[derive(Clone, PartialEq, Debug)]
pub enum Change {
    /// Gives a move a weight, and adds it if it is not there.
    Set {
        /// The move.
        mv: String,
        /// Its weight.
        weight: NewWeight,
    },
    /// Removes a move.
    Remove(String),
    /// Removes all moves, with the positions that only they led to.
    RemovePosition,
}

/// A weight of a move.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum NewWeight {
    /// As the book stores it.
    Absolute(u16),
    /// The share of the weights of the position in percent, over 0 and at most 100. Moves that get shares in the same
    /// edit get them together, and the others share the rest as before.
    Percent(f64),
}

/// Why a text is no change.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("\"{text}\" is not {what}")]
pub struct ChangeError {
    /// The text.
    pub text: String,
    /// What it should be.
    pub what: &'static str,
}

impl ChangeError {
    fn new(text: &str, what: &'static str) -> ChangeError {
        let text = text.to_owned();
        ChangeError { text, what }
    }
}

impl Change {
    /// The change of `--set`: `MOVE=WEIGHT` or `MOVE=PERCENT%`.
    ///
    /// # Errors
    ///
    /// A text of another form.
    pub fn set(text: &str) -> Result<Change, ChangeError> {
        let what = "a move and its weight: write Nf3=100 or Nf3=25%";
        // A promotion has a sign of its own: e8=Q=5.
        let (mv, weight) = text
            .rsplit_once('=')
            .ok_or_else(|| ChangeError::new(text, what))?;
        let weight = weight.parse().map_err(|_| ChangeError::new(text, what))?;
        match mv.trim() {
            "" => Err(ChangeError::new(text, what)),
            mv => Ok(Change::Set {
                mv: mv.to_owned(),
                weight,
            }),
        }
    }
}

/// A number from 0 to 65535, or a percentage.
impl FromStr for NewWeight {
    type Err = ChangeError;

    fn from_str(text: &str) -> Result<NewWeight, ChangeError> {
        let text = text.trim();
        match text.strip_suffix('%') {
            Some(percent) => percent
                .trim()
                .parse()
                .ok()
                .filter(|percent| *percent > 0.0 && *percent <= 100.0)
                .map(NewWeight::Percent)
                .ok_or_else(|| ChangeError::new(text, "a percentage over 0% and up to 100%")),
            None => text
                .parse()
                .map(NewWeight::Absolute)
                .map_err(|_| ChangeError::new(text, "a weight from 0 to 65535")),
        }
    }
}

/// `set MOVE=WEIGHT`, `remove MOVE` or `remove-position`.
impl FromStr for Change {
    type Err = ChangeError;

    fn from_str(text: &str) -> Result<Change, ChangeError> {
        let text = text.trim();
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        match (word, rest.trim()) {
            ("set", change) => Change::set(change),
            ("remove", mv) if !mv.is_empty() => Ok(Change::Remove(mv.to_owned())),
            ("remove-position", "") => Ok(Change::RemovePosition),
            _ => Err(ChangeError::new(
                text,
                "a change: write set MOVE=WEIGHT, remove MOVE or remove-position",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_read() {
        let set = |mv: &str, weight| Change::Set {
            mv: mv.to_owned(),
            weight,
        };
        for (text, expected) in [
            ("set Nf3=100", set("Nf3", NewWeight::Absolute(100))),
            ("set  e8=Q = 5 ", set("e8=Q", NewWeight::Absolute(5))),
            ("set e4=12.5%", set("e4", NewWeight::Percent(12.5))),
            ("remove f4", Change::Remove("f4".to_owned())),
            (" remove-position ", Change::RemovePosition),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        for wrong in [
            "",
            "set",
            "set Nf3",
            "set =5",
            "set Nf3=65536",
            "set Nf3=-1",
            "set Nf3=0%",
            "set Nf3=101%",
            "set Nf3=NaN%",
            "remove",
            "remove-position now",
            "add Nf3=1",
        ] {
            assert!(wrong.parse::<Change>().is_err(), "{wrong}");
        }
    }
}

//! What became of the games.

use std::{fmt, ops::AddAssign};

/// What became of the games.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Games {
    /// All games of the inputs.
    pub read: u64,
    /// Games whose moves count.
    pub counted: u64,
    /// Games that the selection leaves out.
    pub filtered: u64,
    /// Games that could not be replayed to their end.
    pub rejected: u64,
}

impl Games {
    /// Reads the text that [`Display`](fmt::Display) writes.
    ///
    /// ```
    /// use polybook::tally::Games;
    /// let games = Games { read: 9, counted: 5, filtered: 3, rejected: 1 };
    /// assert_eq!(games.to_string(), "9 read, 5 counted, 3 filtered, 1 rejected");
    /// assert_eq!(Games::from_text(&games.to_string()), Some(games));
    /// ```
    pub fn from_text(text: &str) -> Option<Games> {
        let mut numbers = text
            .split(", ")
            .map(|part| part.split(' ').next()?.parse().ok());
        let mut next = || numbers.next().flatten();
        Some(Games {
            read: next()?,
            counted: next()?,
            filtered: next()?,
            rejected: next()?,
        })
    }
}

impl AddAssign for Games {
    fn add_assign(&mut self, other: Games) {
        let Games {
            read,
            counted,
            filtered,
            rejected,
        } = other;
        self.read += read;
        self.counted += counted;
        self.filtered += filtered;
        self.rejected += rejected;
    }
}

impl fmt::Display for Games {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Games {
            read,
            counted,
            filtered,
            rejected,
        } = self;
        write!(
            f,
            "{read} read, {counted} counted, {filtered} filtered, {rejected} rejected"
        )
    }
}

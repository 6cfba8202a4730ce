//! Changes to the moves of a position, and their text form.

use std::str::FromStr;

use shakmaty::variant::VariantPosition;
use thiserror::Error;

use super::PositionEdit;
use crate::position::{LineError, Variant};

/// A change to the moves of a position in a book. Moves are given as text, in algebraic or coordinate notation. To
/// remove a record whose move is not legal, give the text that [`BookMove::uci`](crate::position::BookMove::uci)
/// returns for the move.
#[derive(Clone, PartialEq, Debug)]
pub enum Change {
    /// Sets the weight of a move, and adds the move if the position does not have it.
    Set {
        /// The move.
        mv: String,
        /// The new weight of the move.
        weight: NewWeight,
    },
    /// Removes a move.
    Remove(String),
    /// Removes all moves of the position, and the positions that only these moves led to.
    RemovePosition,
}

/// The new weight of a move.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum NewWeight {
    /// The weight itself.
    Absolute(u16),
    /// The share of the sum of the position's weights, in percent, more than 0 and at most 100. All shares in one
    /// [`PositionEdit`] are applied together. The other moves share the rest in their old proportions.
    Percent(f64),
}

/// The error returned if a text is not a change.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("\"{text}\" is not {what}")]
pub struct ChangeError {
    /// The text that cannot be parsed.
    pub text: String,
    /// A description of the expected text.
    pub what: &'static str,
}

impl ChangeError {
    fn new(text: &str, what: &'static str) -> ChangeError {
        let text = text.to_owned();
        ChangeError { text, what }
    }
}

impl Change {
    /// Parses the value of the option `--set`: `MOVE=WEIGHT` or `MOVE=PERCENT%`.
    ///
    /// # Errors
    ///
    /// Returns an error if the text does not have this form, or if the number is out of range.
    pub fn set(text: &str) -> Result<Change, ChangeError> {
        let what = "a move and its weight: write Nf3=100 or Nf3=25%";
        // The last equals sign separates the weight, because a promotion contains one itself: e8=Q=5.
        let (mv, weight) = text
            .rsplit_once('=')
            .ok_or_else(|| ChangeError::new(text, what))?;
        let number = weight.trim().trim_end_matches('%').trim_end();
        let weight = weight.parse().map_err(|err| match number.parse::<f64>() {
            // The text is a number, but it is out of range.
            Ok(_) => err,
            Err(_) => ChangeError::new(text, what),
        })?;
        match mv.trim() {
            "" => Err(ChangeError::new(text, what)),
            mv => Ok(Change::Set {
                mv: mv.to_owned(),
                weight,
            }),
        }
    }
}

/// Reads a number from 0 to 65535, or a percentage that is more than 0% and at most 100%.
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

/// Reads `set MOVE=WEIGHT`, `remove MOVE` or `remove-position`.
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

/// A reader of scripts, which list changes line by line:
///
/// ```text
/// # What I play against the Sicilian
/// 1. e4 c5; remove f4; set Nf3=70%; set Nc3=20%
/// ; set c3=5%
/// rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 0 2; remove-position
/// ```
///
/// A line consists of a position, given as a FEN or as moves from the start, a semicolon, and one or more changes
/// separated by semicolons. A line without a position changes the position of the previous line. The shares on a line
/// are applied together. A later line for the same position changes the result of the earlier line. Blank lines and
/// lines that begin with `#` are ignored.
///
/// ```
/// use polybook::{book::Script, position::Variant};
///
/// let mut script = Script::new(Variant::Standard, Variant::Standard.start());
/// assert!(script.line("# nothing").unwrap().is_none());
/// let edit = script.line("1. e4 c5; set Nf3=70%; remove f4").unwrap().expect("two changes");
/// assert_eq!(edit.changes.len(), 2);
/// assert!(script.line("; remove Ke3").is_ok(), "whether moves are legal is seen later");
/// assert!(script.line("e4 e4; remove-position").is_err());
/// ```
#[derive(Clone, Debug)]
pub struct Script {
    variant: Variant,
    pos: VariantPosition,
}

/// The error returned if a line of a script cannot be parsed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// The position cannot be read.
    #[error(transparent)]
    Position(#[from] LineError),
    /// A change cannot be read.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// The line has no change.
    #[error("no change: write a position, a semicolon and a change, such as 1. e4 c5; set Nf3=100")]
    NoChange,
}

impl Script {
    /// Creates a reader for a script about `variant`. Lines without a position change `pos`, until a line names another
    /// position.
    pub fn new(variant: Variant, pos: VariantPosition) -> Script {
        Script { variant, pos }
    }

    /// Parses the next line. Returns its position with the changes to it, or `None` if the line is blank or a comment.
    ///
    /// Does not check that moves are legal: [`edit_book`](super::edit_book) does.
    ///
    /// # Errors
    ///
    /// Returns a [`ScriptError`] if the position or a change cannot be read, or if the line has no change.
    pub fn line(&mut self, line: &str) -> Result<Option<PositionEdit>, ScriptError> {
        let line = line.trim_start_matches('\u{feff}').trim();
        if line.is_empty() || line.starts_with('#') {
            return Ok(None);
        }
        let (position, changes) = line.split_once(';').ok_or(ScriptError::NoChange)?;
        match position.trim() {
            "" => {}
            // A FEN contains seven slashes, and a move contains none.
            fen if fen.contains('/') => self.pos = self.variant.from_text(Some(fen), None)?,
            moves => self.pos = self.variant.from_text(None, Some(moves))?,
        }
        let changes = changes.split(';').map(str::trim);
        let changes = changes.filter(|change| !change.is_empty());
        let changes = changes
            .map(str::parse)
            .collect::<Result<Vec<Change>, _>>()?;
        if changes.is_empty() {
            return Err(ScriptError::NoChange);
        }
        Ok(Some(PositionEdit {
            pos: self.pos.clone(),
            changes,
        }))
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

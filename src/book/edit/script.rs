//! Changes as lines of text.

use shakmaty::variant::VariantPosition;
use thiserror::Error;

use super::{Change, ChangeError, PositionEdit};
use crate::position::{LineError, Variant};

/// Reads changes line by line:
///
/// ```text
/// # What I play against the Sicilian
/// 1. e4 c5; remove f4; set Nf3=70%; set Nc3=20%
/// ; set c3=5%
/// rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 0 2; remove-position
/// ```
///
/// A line has a position, as a FEN or as moves from the start, and one or more changes. Without a position it is about
/// that of the line before. Shares on one line are taken together; a later line starts from the result. Blank lines and lines that begin with `#` say nothing.
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

/// Why a line cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// Its position.
    #[error(transparent)]
    Position(#[from] LineError),
    /// One of its changes.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// There is none.
    #[error("no change: write a position, a semicolon and a change, such as 1. e4 c5; set Nf3=100")]
    NoChange,
}

impl Script {
    /// Positions are of a variant; lines without one are about `pos` until another line names one.
    pub fn new(variant: Variant, pos: VariantPosition) -> Script {
        Script { variant, pos }
    }

    /// The changes of the next line, `None` if it says nothing.
    ///
    /// # Errors
    ///
    /// [`ScriptError`] says what is wrong with the line.
    pub fn line(&mut self, line: &str) -> Result<Option<PositionEdit>, ScriptError> {
        let line = line.trim_start_matches('\u{feff}').trim();
        if line.is_empty() || line.starts_with('#') {
            return Ok(None);
        }
        let (position, changes) = line.split_once(';').ok_or(ScriptError::NoChange)?;
        match position.trim() {
            "" => {}
            // No move holds a slash, every FEN seven.
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

//! Stores of evaluations, which are files that contain an evaluation for each of many positions.
//!
//! [`MakeEvals`] builds a store from PGN with `[%eval]` comments, from EPDs, from the file of evaluations that
//! Lichess publishes, and from other stores. It keeps the deepest evaluation of each position. [`Evals`] finds
//! the evaluation of a position in a store.
//!
//! ```
//! use polybook::{evals::{Evals, EvalsFormat, MakeEvals, eval_key}, pgn::Input, position::from_text};
//!
//! # let dir = tempfile::tempdir()?;
//! # let (pgn, store) = (dir.path().join("games.pgn"), dir.path().join("games.evals"));
//! std::fs::write(&pgn, "1. e4 { [%eval 0.33,20] } e5 { [%eval 0.4] } *")?;
//! MakeEvals::new([Input::file(&pgn)]).run(&store, EvalsFormat::Store)?;
//!
//! let evals = Evals::open(&store)?;
//! let found = evals.find(eval_key(&from_text(None, Some("e4"))?))?.expect("it is evaluated");
//! assert_eq!((found.score.to_string(), found.depth), ("+0.33".to_owned(), 20));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod analysis;
mod games;
mod inputs;
mod journal;
mod layout;
mod lines;
mod loss;
mod maker;
#[cfg(feature = "parquet")]
mod parquet;
mod store;
mod value;
mod writer;

use std::{fmt, path::PathBuf};

use serde::Serialize;

pub(crate) use self::{
    analysis::{EXPANSION_LOSS, check_memory},
    games::evaluation,
    loss::Loss,
    value::Value,
};
pub use self::{
    analysis::{EngineOptions, EnginePosition, Positions, read_positions},
    journal::kept_journal,
    layout::{Eval, Score, eval_key},
    loss::MaxLoss,
    maker::{ClaimedEvals, EvalsFormat, MakeEvals},
    store::Evals,
};
pub use crate::chess::uci::end_engines;
use crate::provenance::as_text;

/// A game or line of an input that was rejected because it could not be read completely.
#[derive(Clone, PartialEq, Eq, Serialize, Debug)]
pub struct BadEntry {
    /// The path of the input.
    #[serde(serialize_with = "as_text")]
    pub file: PathBuf,
    /// Whether the entry is a game of a PGN rather than a line.
    pub is_game: bool,
    /// The number of the game or line in the input. In this field, games are counted from 0 and lines from 1; the
    /// `Display` text counts both from 1.
    pub number: u64,
    /// The offset of the fault in the decompressed input, in bytes.
    pub offset: u64,
    /// The reason why the entry was rejected.
    pub reason: String,
}

impl fmt::Display for BadEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let thing = if self.is_game { "game" } else { "line" };
        let number = self.number + u64::from(self.is_game);
        let (file, offset) = (self.file.display(), self.offset);
        write!(
            f,
            "{file}: {thing} {number}, byte {offset}: {}",
            self.reason
        )
    }
}

/// A report on a store of evaluations that [`MakeEvals`] has made. It contains the numbers of games, lines and
/// evaluations in the inputs, and the number of positions in the output.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Debug)]
pub struct EvalsReport {
    /// The number of games in all inputs. The moves of games without an evaluation are not examined.
    pub games: u64,
    /// The number of games that were left out because they are not games of standard chess.
    pub filtered: u64,
    /// The number of lines of EPD files and of Lichess's file.
    pub lines: u64,
    /// The number of evaluations that were read.
    pub evaluations: u64,
    /// The number of evaluations with an unknown syntax, plus the number of lines without an evaluation.
    pub ignored: u64,
    /// The number of positions in the output.
    pub positions: u64,
    /// The number of lines that could not be read, plus the number of games that could not be played to their end. The
    /// output contains the evaluations before the fault in such a game.
    pub rejected: u64,
    /// The first rejected games and lines, in the order of the inputs.
    pub described: Vec<BadEntry>,
    /// The report on the positions that an engine evaluated, or `None` if no engine was set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineReport>,
    /// Warnings about games of unknown variants, one line each.
    #[serde(skip)]
    pub warnings: Vec<String>,
}

/// A report on the positions that an engine was asked to evaluate: how many it evaluated, how many already had an
/// evaluation, and at how many it failed.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Debug)]
pub struct EngineReport {
    /// The name of the engine.
    pub name: String,
    /// The number of positions that the engine evaluated in this run.
    pub evaluated: u64,
    /// The number of positions for which the old output or the journal already contained a sufficiently thorough
    /// evaluation.
    pub known: u64,
    /// The number of evaluations that an interrupted run had saved in the journal, from which this run continued.
    pub continued: u64,
    /// The number of positions at which the engine failed.
    pub failed: u64,
    /// The first positions at which the engine failed, in the order of the input.
    pub described: Vec<FailedPosition>,
}

/// A position that an engine could not evaluate.
#[derive(Clone, PartialEq, Eq, Serialize, Debug)]
pub struct FailedPosition {
    /// The position as FEN.
    pub fen: String,
    /// A description of the failure.
    pub reason: String,
}

impl EvalsReport {
    /// The maximum number of rejected games and lines that a report describes individually. The report also describes
    /// at most this many positions that an engine could not evaluate.
    pub const MAX_DESCRIBED: usize = 10;
}

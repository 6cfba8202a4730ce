//! What making a store did.

use std::{fmt, path::PathBuf};

use serde::Serialize;

use crate::provenance::as_text;

/// A game or a line that could not be read.
#[derive(Clone, PartialEq, Eq, Serialize, Debug)]
pub struct BadEntry {
    /// The input.
    #[serde(serialize_with = "as_text")]
    pub file: PathBuf,
    /// Whether it is a game of a PGN, and not a line.
    pub is_game: bool,
    /// Its number in the input: games count from 0, lines from 1.
    pub number: u64,
    /// Where the fault is in the unpacked input, in bytes.
    pub offset: u64,
    /// What is wrong.
    pub reason: String,
}

impl fmt::Display for BadEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let thing = if self.is_game { "game" } else { "line" };
        let (file, number, offset) = (self.file.display(), self.number, self.offset);
        write!(
            f,
            "{file}: {thing} {number}, byte {offset}: {}",
            self.reason
        )
    }
}

/// What [`MakeEvals`](super::MakeEvals) did.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Debug)]
pub struct EvalsReport {
    /// Games of all inputs. Those without an evaluation are not played.
    pub games: u64,
    /// Games of other variants than standard chess, which are left out.
    pub filtered: u64,
    /// Lines of EPD files and of Lichess's.
    pub lines: u64,
    /// Evaluations that were read.
    pub evaluations: u64,
    /// Evaluations that are not in a known form, and lines without one.
    pub ignored: u64,
    /// Positions that were written.
    pub positions: u64,
    /// Games that could not be played to their end, whose evaluations are read up to there, and lines that are left out.
    pub rejected: u64,
    /// The first of them, in the order of the inputs.
    pub described: Vec<BadEntry>,
    /// What the engine did, if one was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineReport>,
}

/// What an engine did.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Debug)]
pub struct EngineReport {
    /// What it calls itself.
    pub name: String,
    /// Positions that it evaluated in this run.
    pub evaluated: u64,
    /// Positions that were evaluated before, by it or with as many nodes.
    pub known: u64,
    /// Positions that it did not evaluate.
    pub failed: u64,
    /// The first of these, in their order.
    pub described: Vec<FailedPosition>,
}

/// A position that an engine did not evaluate.
#[derive(Clone, PartialEq, Eq, Serialize, Debug)]
pub struct FailedPosition {
    /// The position.
    pub fen: String,
    /// What the engine did.
    pub reason: String,
}

impl EvalsReport {
    /// How many bad games and lines are described.
    pub const DESCRIBED: usize = 10;
}

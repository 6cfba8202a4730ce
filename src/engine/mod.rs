//! The moves of books, databases and indexes as a UCI engine, with a second engine for other positions.
//!
//! [`SourceEngine`] answers `go` from the first source that knows the position. In other positions the second
//! engine plays, or there is no move.
//!
//! ```
//! use polybook::{MakeBook, book::Book, engine::{EngineSource, Play, Settings, SourceEngine}, pgn::Input};
//!
//! # let dir = tempfile::tempdir()?;
//! # let bin = dir.path().join("book.bin");
//! MakeBook::new([Input::file("data/famous.pgn")]).min_game(6).bin(&bin).run()?;
//! let engine = SourceEngine {
//!     sources: vec![EngineSource::Moves(Box::new(Book::open(&bin)?))],
//!     settings: Settings { play: Play::Best, ..Settings::default() },
//!     behind: None,
//! };
//! let mut answers = Vec::new();
//! engine.run(&b"uci\nposition startpos\ngo\nquit\n"[..], &mut answers)?;
//! assert!(String::from_utf8(answers)?.contains("bestmove e2e4"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod choice;
mod command;
mod second_engine;
mod session;
mod settings;

use std::{
    ffi::OsString,
    io::{Read, Write},
    path::PathBuf,
};

pub use self::settings::{Fallback, Play, Settings};
use self::{
    second_engine::{Event, SecondEngine},
    session::Session,
};
use crate::{error::Result, explorer::Explorer, task, uci::read_lines, walk::Source};

/// The maximum number of lines of the program and of the second engine that may wait until they are handled.
const AHEAD: usize = 64;

/// A source of moves.
pub enum EngineSource {
    /// A source without filters.
    Moves(Box<dyn Source>),
    /// An index of games or counts, whose games are [filtered](Settings::filters).
    Games(Box<Explorer>),
}

/// A UCI engine that plays the moves of its sources.
pub struct SourceEngine {
    /// The sources. The first one that knows a position answers.
    pub sources: Vec<EngineSource>,
    /// The initial values of the options.
    pub settings: Settings,
    /// The program of the engine that plays in other positions, and its arguments.
    pub behind: Option<(PathBuf, Vec<OsString>)>,
}

impl SourceEngine {
    /// Reads UCI commands until `quit` or the end of `input`, and writes answers to `output`. A thread reads `input`; it
    /// goes on waiting for a line after `quit`.
    ///
    /// # Errors
    ///
    /// Returns an error if the second engine cannot be started or does not speak UCI, if a source cannot be read, or if
    /// `output` cannot be written.
    pub fn run(self, input: impl Read + Send + 'static, output: impl Write) -> Result<()> {
        let (feeder, mut events) = task::channel(AHEAD);
        let behind = self
            .behind
            .map(|(program, args)| SecondEngine::start(&program, &args, &feeder, &mut events));
        let behind = behind.transpose()?;
        feeder.start("input", |feeder| {
            read_lines(input, |line| feeder.send(Event::Command(line)))?;
            feeder.send(Event::End)
        })?;
        let session = Session::new(self.sources, self.settings, behind, output);
        session.run(&mut events)
    }
}

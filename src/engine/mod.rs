//! A UCI engine that plays the moves of books, databases and indexes, and passes all other positions to a second
//! engine.
//!
//! [`SourceEngine`] answers `go` with a move of the first source that contains the position. If no source contains
//! it, the second engine searches. Without a second engine, the [`Fallback`] setting decides.
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
//!     second_engine: None,
//! };
//! let mut answers = Vec::new();
//! engine.run(&b"uci\nposition startpos\ngo\nquit\n"[..], &mut answers)?;
//! assert!(String::from_utf8(answers)?.contains("bestmove e2e4"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod second_engine;
mod session;
mod settings;

use std::{
    ffi::OsString,
    io::{Read, Write},
    path::PathBuf,
};

use self::{
    second_engine::{Event, SecondEngine},
    session::Session,
};
pub use self::{
    session::EngineSource,
    settings::{Fallback, Play, Settings},
};
use crate::{error::Result, task, uci::read_lines};

/// The maximum number of lines that wait to be handled: commands of the user interface, and output of the second
/// engine, which plays in positions outside the book. When the queue is full, the threads that read these lines wait
/// until there is room.
const MAX_QUEUED_LINES: usize = 64;

/// A UCI engine that plays the moves of books, databases and indexes. It can pass all other positions to a second
/// engine.
pub struct SourceEngine {
    /// The sources of moves, in the order in which they are searched. The first source that contains a position
    /// answers.
    pub sources: Vec<EngineSource>,
    /// The initial values of the UCI options.
    pub settings: Settings,
    /// The program and arguments of the second engine, which plays in positions that no source contains. `None` means
    /// that there is no second engine.
    pub second_engine: Option<(PathBuf, Vec<OsString>)>,
}

impl SourceEngine {
    /// Runs the engine: reads UCI commands from `input` until `quit` or the end of the input, and writes answers to
    /// `output`. A separate thread reads `input`. It may still be waiting for a line when this function returns.
    ///
    /// # Errors
    ///
    /// Returns an error if the second engine cannot be started or does not speak UCI, or if `output` cannot be written.
    /// If a source cannot be read, only informs the user interface. If reading `input` fails, treats this as the end of
    /// the input.
    pub fn run(self, input: impl Read + Send + 'static, output: impl Write) -> Result<()> {
        let (feeder, mut events) = task::channel(MAX_QUEUED_LINES);
        let second_engine = self
            .second_engine
            .map(|(program, args)| SecondEngine::start(&program, &args, &feeder, &mut events));
        let second_engine = second_engine.transpose()?;
        feeder.start("input", |feeder| {
            read_lines(input, |line| feeder.send(Event::Command(line)))?;
            feeder.send(Event::End)
        })?;
        let session = Session::new(self.sources, self.settings, second_engine, output);
        session.run(&mut events)
    }
}

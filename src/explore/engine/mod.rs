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
//!     sources: vec![(EngineSource::Moves(Box::new(Book::open(&bin)?)), None)],
//!     settings: Settings { play: Play::Best, ..Settings::default() },
//!     second_engine: None,
//! };
//! let (answers, output) = std::io::pipe()?;
//! engine.run(&b"uci\nposition startpos\ngo\nquit\n"[..], output)?;
//! assert!(std::io::read_to_string(answers)?.contains("bestmove e2e4"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod output;
mod second_engine;
mod session;
mod settings;

use std::{
    ffi::OsString,
    io::{Read, Write},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use shakmaty::Color;

use self::{
    output::LineQueue,
    second_engine::{Event, SecondEngine},
    session::{Session, split_command},
};
pub use self::{
    session::EngineSource,
    settings::{Fallback, Play, Settings},
};
use crate::{
    chess::uci::{UciLine, UciLines},
    error::{Error, Result},
    task,
};

/// The capacity of each of the two queues of the engine: one for commands of the user interface, and one for lines of
/// the second engine. The thread that reads commands or lines waits while its queue is full. The queues are separate so
/// that a second engine that floods its output does not delay the command `quit`.
const MAX_QUEUED_LINES: usize = 1 << 10;

/// The maximum time that the session waits, after the command `quit`, for the second engine or for a user interface
/// that does not read. There are at most two such waits.
const QUIT_TIMEOUT: Duration = Duration::from_millis(400);

/// A UCI engine that plays the moves of books, databases and indexes. It can pass all other positions to a second
/// engine.
pub struct SourceEngine {
    /// The sources of moves, in the order in which they are searched. The first source that contains a position
    /// provides the move. A source with a color is searched only if the engine plays this color.
    pub sources: Vec<(EngineSource, Option<Color>)>,
    /// The initial values of the UCI options.
    pub settings: Settings,
    /// The program and arguments of the second engine, which plays in positions that no source contains. `None` means
    /// that there is no second engine.
    pub second_engine: Option<(PathBuf, Vec<OsString>)>,
}

impl SourceEngine {
    /// Runs the engine: reads UCI commands from `input` until `quit` or the end of the input, and writes answers to
    /// `output`. Separate threads read `input` and write `output`; they may still be waiting when this function
    /// returns.
    ///
    /// After `quit`, the function returns within a second, even if the second engine hangs or nobody reads `output`.
    ///
    /// # Errors
    ///
    /// Returns an error if the second engine cannot be started or does not speak UCI, or if `output` cannot be written.
    /// If a source cannot be read, only informs the user interface. A failure to read `input` counts as the end of the
    /// input.
    pub fn run(
        self,
        input: impl Read + Send + 'static,
        output: impl Write + Send + 'static,
    ) -> Result<()> {
        let (feeder, mut events) = task::channel(2 * MAX_QUEUED_LINES);
        let is_quitting = Arc::new(AtomicBool::new(false));
        let quit = Arc::clone(&is_quitting);
        feeder.start("input", move |feeder| {
            for line in UciLines::new(input) {
                let event = match line {
                    UciLine::Text(text) => {
                        if split_command(&text).is_some_and(|(word, _)| word == "quit") {
                            quit.store(true, Ordering::Relaxed);
                        }
                        Event::Command(text)
                    }
                    UciLine::TooLong => Event::TooLongCommand,
                };
                feeder.send(event)?;
            }
            feeder.send(Event::End)
        })?;
        let second_engine = match &self.second_engine {
            Some((program, args)) => {
                match SecondEngine::start(program, args, &feeder, &is_quitting)? {
                    None => return Ok(()),
                    started => started,
                }
            }
            None => None,
        };
        let output = LineQueue::start(output, is_quitting)?;
        let session = Session::new(self.sources, self.settings, second_engine, output);
        match session.run(&mut events) {
            // Nobody read the answers after `quit`.
            Err(Error::Interrupted) => Ok(()),
            ended => ended,
        }
    }
}

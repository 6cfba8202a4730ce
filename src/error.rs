//! What can go wrong, in one line each.

use std::{
    io,
    path::{Path, PathBuf},
};

use thiserror::Error;

use crate::book::header::HeaderError;

/// An error of the library. Its text is one line that names the file and says what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused something.
    #[error("{}: cannot {doing}: {}", .path.display(), plain(.source))]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What was tried, as a verb.
        doing: &'static str,
        /// Its answer.
        source: io::Error,
    },
    /// A file is not what it was taken for.
    #[error("{}: {problem}", .path.display())]
    File {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong with it and what to do.
        problem: String,
    },
    /// A game was rejected in a strict run.
    #[error("{0}; without --strict the game would be left out")]
    Rejected(Box<crate::make_book::Rejection>),
    /// A book's header is missing or malformed.
    #[error("{}: {source}", .path.display())]
    Header {
        /// The book.
        path: PathBuf,
        /// What is wrong with its header.
        source: HeaderError,
    },
    /// The run was asked to stop.
    #[error("interrupted; nothing was written")]
    Interrupted,
}

/// The result of most functions of the library.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Something is wrong with a file, in words.
    pub(crate) fn file(path: impl Into<PathBuf>, problem: impl Into<String>) -> Error {
        Error::File {
            path: path.into(),
            problem: problem.into(),
        }
    }
}

/// Adds to an I/O error the path and the deed that it happened in.
pub(crate) trait At<T> {
    fn at(self, path: impl AsRef<Path>, doing: &'static str) -> Result<T>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, path: impl AsRef<Path>, doing: &'static str) -> Result<T> {
        self.map_err(|source| Error::Io {
            path: path.as_ref().to_owned(),
            doing,
            source,
        })
    }
}

/// The operating system's words without the number that Rust puts behind them.
fn plain(err: &io::Error) -> String {
    let text = err.to_string();
    match text.find(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

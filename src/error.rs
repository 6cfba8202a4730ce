//! The error type of the library, and advice for users in error messages.

use std::{
    any::Any,
    borrow::Cow,
    error::Error as StdError,
    fmt, io,
    path::{Path, PathBuf},
};

use thiserror::Error;

/// Formats a number together with a noun, for example `1 game`, `2 games` or `3 entries`. `thing` is the noun in the
/// singular.
pub fn plural(number: u64, thing: &str) -> String {
    match (number, thing.strip_suffix('y')) {
        (1, _) => format!("1 {thing}"),
        (_, Some(stem)) => format!("{number} {stem}ies"),
        _ => format!("{number} {thing}s"),
    }
}

/// A reference to an option in advice for the user: an option of the operation that failed or, if `command` is given,
/// of another command.
///
/// The name of an option is stored in kebab-case, and each interface spells it in its own way: `--min-game` on the
/// command line, `minGame` over HTTP, and `min_game` in Rust and Python, which is also the [`Display`](fmt::Display)
/// form.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedOption {
    /// The command of polybook that has the option, or `None` for the operation that failed.
    pub command: Option<&'static str>,
    /// The name of the option in kebab-case.
    pub name: &'static str,
    /// The value that the user should give to the option, or `None` if there is no particular value.
    pub value: Option<String>,
}

impl NamedOption {
    /// Returns the option as it is given on the command line, for example `--min-game 1` or `polybook verify --fix`.
    pub fn on_command_line(&self) -> String {
        let command = self.command.map(|command| format!("polybook {command} "));
        let value = self.value.iter().map(|value| format!(" {value}"));
        let option = format!("{}--{}", command.unwrap_or_default(), self.name);
        option + &value.collect::<String>()
    }
}

/// Writes the option as in Rust and Python, such as `min_game` or `min_game=1`. An option of another command is written
/// as on the command line.
impl fmt::Display for NamedOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.command.is_some() {
            return f.write_str(&self.on_command_line());
        }
        f.write_str(&self.name.replace('-', "_"))?;
        match &self.value {
            Some(value) => write!(f, "={value}"),
            None => Ok(()),
        }
    }
}

/// A function that spells the options in advice for one interface, such as the command line. It returns `None` if the
/// interface does not have the option. The advice is then left out of the message.
pub type SpellOption = fn(&NamedOption) -> Option<String>;

/// A sentence that tells the user how to solve a problem. It names at most one option of a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Advice {
    /// The sentence. `{}` stands for the option, if there is one.
    sentence: Cow<'static, str>,
    option: Option<NamedOption>,
}

impl Advice {
    /// Creates the advice to increase the value of an option of the failed operation.
    pub fn larger(name: &'static str) -> Advice {
        Advice::option("use a larger {}", name)
    }

    /// Creates the advice to decrease the value of an option of the failed operation.
    pub fn smaller(name: &'static str) -> Advice {
        Advice::option("use a smaller {}", name)
    }

    /// Creates advice that names an option of the failed operation. In `sentence`, `{}` stands for the option.
    pub const fn option(sentence: &'static str, name: &'static str) -> Advice {
        Advice {
            sentence: Cow::Borrowed(sentence),
            option: Some(NamedOption {
                command: None,
                name,
                value: None,
            }),
        }
    }

    /// Sets the command to which the option in the advice belongs.
    pub fn of_command(mut self, command: &'static str) -> Advice {
        if let Some(option) = &mut self.option {
            option.command = Some(command);
        }
        self
    }

    /// Sets the value that the user should give to the option in the advice.
    pub fn with_value(mut self, value: impl fmt::Display) -> Advice {
        if let Some(option) = &mut self.option {
            option.value = Some(value.to_string());
        }
        self
    }

    /// Returns the sentence, in which `spell` spells the option. Returns `None` if the interface does not have the
    /// option.
    fn worded(&self, spell: SpellOption) -> Option<String> {
        match &self.option {
            None => Some(self.sentence.clone().into_owned()),
            Some(option) => Some(self.sentence.replacen("{}", &spell(option)?, 1)),
        }
    }
}

/// Creates advice that names no option.
impl<T: Into<Cow<'static, str>>> From<T> for Advice {
    fn from(sentence: T) -> Advice {
        Advice {
            sentence: sentence.into(),
            option: None,
        }
    }
}

/// A description of a problem, with advice for the user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnosis {
    text: String,
    /// Alternative pieces of advice, from which the user can choose.
    advice: Vec<Advice>,
}

impl Diagnosis {
    /// Creates a diagnosis without advice. `text` describes what is wrong.
    pub fn new(text: impl Into<String>) -> Diagnosis {
        Diagnosis {
            text: text.into(),
            advice: Vec::new(),
        }
    }

    /// Adds advice that the user can follow instead of the earlier advice.
    pub fn advise(mut self, advice: impl Into<Advice>) -> Diagnosis {
        self.advice.push(advice.into());
        self
    }

    /// Returns the description without the advice.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns `true` if the diagnosis contains advice, so that no general advice is needed.
    pub fn has_advice(&self) -> bool {
        !self.advice.is_empty()
    }

    /// Returns the description and the advice as one message. `spell` spells the options in the advice.
    pub fn worded(&self, spell: SpellOption) -> String {
        let advice = self.advice.iter().filter_map(|advice| advice.worded(spell));
        let advice = advice.collect::<Vec<_>>().join(", or ");
        if advice.is_empty() {
            self.text.clone()
        } else {
            format!("{}: {advice}", self.text)
        }
    }
}

/// Writes the description and the advice, with the names of options as in Rust and Python.
impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.worded(|option| Some(option.to_string())))
    }
}

impl<T: Into<String>> From<T> for Diagnosis {
    fn from(text: T) -> Diagnosis {
        Diagnosis::new(text)
    }
}

/// An error returned by polybook.
///
/// The message is one line that names the file and gives advice. It does not contain the cause, so print the error and
/// then each [`source`](std::error::Error::source), as the format `{:#}` of the crate `anyhow` does. Advice in the
/// message names options as in Rust; [`worded`](Error::worded) returns the message for another interface. Use
/// [`kind`](Error::kind) to react to certain errors, for example to retry after [`Busy`](ErrorKind::Busy).
///
/// ```
/// use polybook::{Error, book::Book};
///
/// let err = Book::open("missing.bin").unwrap_err();
/// assert!(err.to_string().ends_with("missing.bin"));
/// assert!(matches!(err, Error::Io { .. }));
/// assert!(std::error::Error::source(&err).is_some());
/// ```
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// An operation of the operating system failed.
    #[error("cannot {doing} {}", .path.display())]
    Io {
        /// The path of the file or directory.
        path: PathBuf,
        /// The operation that failed, as a verb such as "open", "read" or "write".
        doing: &'static str,
        /// The error that the operating system reported.
        source: io::Error,
    },
    /// A file or directory cannot be used for the operation, for example because of its format.
    #[error("{}: {problem}", .path.display())]
    File {
        /// The path of the file or directory.
        path: PathBuf,
        /// The kind of the problem.
        kind: ErrorKind,
        /// A description of the problem with the file, with advice for the user.
        problem: Diagnosis,
    },
    /// The value of an option cannot be used for the operation.
    #[error("{option}: {problem}")]
    Option {
        /// The option whose value cannot be used.
        option: NamedOption,
        /// The kind of the problem.
        kind: ErrorKind,
        /// A description of the problem with the option, with advice for the user.
        problem: Diagnosis,
    },
    /// An output, such as an index or a database, already exists, and the operation does not replace it by default.
    #[error("{} exists", .path.display())]
    Exists {
        /// The path of the existing file or directory.
        path: PathBuf,
    },
    /// Another process of polybook is writing the file or directory.
    #[error("{}: another run of polybook is writing this output: wait until that run ends, or choose another output", .path.display())]
    Busy {
        /// The path of the file or directory that is being written.
        path: PathBuf,
    },
    /// The outputs would be empty, which the operation does not permit by default.
    #[error("nothing was written, because {reason}")]
    Empty {
        /// The number of games or moves that were read, and why they were skipped.
        reason: Diagnosis,
    },
    /// The content of a file violates its format. The source of the error has the error type of the format, for
    /// example [`HeaderError`](crate::formats::book::header::HeaderError).
    #[error("{}", .path.display())]
    Format {
        /// The path of the file.
        path: PathBuf,
        /// The violation, in the error type of the format.
        source: Box<dyn StdError + Send + Sync>,
    },
    /// A game cannot be replayed, and the operation is configured to fail instead of skipping it. The inner error is a
    /// [`Rejection`](crate::make_book::Rejection).
    #[error(transparent)]
    Rejected(Box<dyn StdError + Send + Sync>),
    /// The operation was interrupted, for example because its stop flag was set.
    #[error("interrupted")]
    Interrupted,
    /// A thread of the operation panicked. This is a bug in polybook or in a library that polybook uses.
    #[error("internal error: {message}; please report this message")]
    Panicked {
        /// The message of the panic, on one line.
        message: String,
    },
}

/// The kind of an [`enum@Error`], for programs that react to certain errors. The details are in the message of the
/// error.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An operation of the operating system failed.
    Io,
    /// A file does not have the format that the operation needs.
    Foreign(ForeignFormat),
    /// A file is truncated, violates its format, or does not match its checksum.
    Damaged,
    /// Another program changed or replaced a file, or has it open.
    Changed,
    /// The data exceeds a limit of a file format, of the memory budget or of polybook.
    TooLarge,
    /// A file or an option cannot be used for this operation, or two options contradict each other.
    Unsuitable,
    /// An output already exists, and is not replaced by default.
    Exists,
    /// Another process of polybook is writing the output.
    Busy,
    /// The outputs would be empty.
    Empty,
    /// A game cannot be replayed, and the operation is configured to fail instead of skipping it.
    Rejected,
    /// The operation was interrupted, for example because its stop flag was set.
    Interrupted,
    /// The operation panicked.
    Panicked,
}

/// The actual format of a file, if the operation needs a different format. Contained in [`ErrorKind::Foreign`].
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ForeignFormat {
    /// Chess games in PGN.
    Pgn,
    /// An SQLite database.
    Sqlite,
    /// Any other format, whether polybook recognizes it or not.
    Other,
}

/// A [`Result`](std::result::Result) whose error type defaults to [`enum@Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    fn of_file(kind: ErrorKind, path: impl Into<PathBuf>, problem: impl Into<Diagnosis>) -> Error {
        Error::File {
            path: path.into(),
            kind,
            problem: problem.into(),
        }
    }

    /// Creates an error of the kind [`ErrorKind::Unsuitable`], for a file that cannot be used for the operation.
    /// `problem` describes the problem, with advice for the user.
    pub fn file(path: impl Into<PathBuf>, problem: impl Into<Diagnosis>) -> Error {
        Error::of_file(ErrorKind::Unsuitable, path, problem)
    }

    /// Creates an [`Error::Option`] for an option of the operation. `name` is the name of the option in kebab-case.
    pub(crate) fn option(
        kind: ErrorKind,
        name: &'static str,
        problem: impl Into<Diagnosis>,
    ) -> Error {
        Error::Option {
            option: NamedOption {
                command: None,
                name,
                value: None,
            },
            kind,
            problem: problem.into(),
        }
    }

    /// Creates an error of the kind [`ErrorKind::Io`], for an operation of the operating system on `path` that failed.
    /// `problem` describes the operation.
    pub(crate) fn failed(path: impl Into<PathBuf>, problem: impl Into<Diagnosis>) -> Error {
        Error::of_file(ErrorKind::Io, path, problem)
    }

    /// Creates an error of the kind [`ErrorKind::Empty`], for an output at `path` that would be empty. `problem` gives
    /// the reason.
    pub fn empty(path: impl Into<PathBuf>, problem: impl Into<Diagnosis>) -> Error {
        Error::of_file(ErrorKind::Empty, path, problem)
    }

    /// Creates an error of the kind [`ErrorKind::Foreign`], for a file whose format is not the one that the operation
    /// needs. The error reports the actual format as [`ForeignFormat::Other`]. `problem` describes the problem, with
    /// advice for the user.
    pub fn foreign(path: impl Into<PathBuf>, problem: impl Into<Diagnosis>) -> Error {
        Error::of_file(ErrorKind::Foreign(ForeignFormat::Other), path, problem)
    }

    /// Creates an error of the kind [`ErrorKind::Foreign`], for a file whose format is not the one that the operation
    /// needs. `format` is the actual format of the file. `problem` describes the problem, with advice for the user.
    pub fn of_format(
        format: ForeignFormat,
        path: impl Into<PathBuf>,
        problem: impl Into<Diagnosis>,
    ) -> Error {
        Error::of_file(ErrorKind::Foreign(format), path, problem)
    }

    /// Creates an error of the kind [`ErrorKind::Damaged`], for a file that is truncated or violates its format. Must
    /// not be used for errors of the operating system.
    pub(crate) fn damaged(path: impl Into<PathBuf>, problem: impl Into<Diagnosis>) -> Error {
        Error::of_file(ErrorKind::Damaged, path, problem)
    }

    /// Creates an error of the kind [`ErrorKind::Changed`], for a file that another program changed during the
    /// operation or has open. `problem` says what happened.
    pub(crate) fn changed(path: impl Into<PathBuf>, problem: impl Into<Diagnosis>) -> Error {
        Error::of_file(ErrorKind::Changed, path, problem)
    }

    /// Creates an error of the kind [`ErrorKind::TooLarge`], for data that exceeds a limit. `problem` names the limit.
    pub fn too_large(path: impl Into<PathBuf>, problem: impl Into<Diagnosis>) -> Error {
        Error::of_file(ErrorKind::TooLarge, path, problem)
    }

    /// Creates an error of the kind [`ErrorKind::Exists`], for an output that exists already.
    pub(crate) fn exists(path: impl Into<PathBuf>) -> Error {
        Error::Exists { path: path.into() }
    }

    /// Creates an [`Error::Format`] for the file at `path`, whose content violates its format. `source` is the detailed
    /// error of the module that reads the format. [`carried`](Error::carried) returns it.
    pub(crate) fn format(
        path: impl Into<PathBuf>,
        source: impl StdError + Send + Sync + 'static,
    ) -> Error {
        Error::Format {
            path: path.into(),
            source: Box::new(source),
        }
    }

    /// Converts the payload of a panic to an error of the kind [`ErrorKind::Panicked`].
    pub(crate) fn panicked(panic: &(dyn Any + Send)) -> Error {
        let message = match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
            (Some(message), _) => message,
            (_, Some(message)) => message.as_str(),
            _ => "no message",
        };
        let message = message.lines().map(str::trim).collect::<Vec<_>>().join(" ");
        Error::Panicked { message }
    }

    /// Returns the kind of the error, for programs that react to certain errors.
    ///
    /// ```
    /// use polybook::{ErrorKind, ForeignFormat, book::Book};
    ///
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("games.pgn");
    /// std::fs::write(&path, "[Event \"?\"]\n\n1. e4 e5 *\n")?;
    /// let err = Book::open(&path).unwrap_err();
    /// assert_eq!(err.kind(), ErrorKind::Foreign(ForeignFormat::Pgn));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Io { .. } => ErrorKind::Io,
            Error::File { kind, .. } | Error::Option { kind, .. } => *kind,
            Error::Exists { .. } => ErrorKind::Exists,
            Error::Busy { .. } => ErrorKind::Busy,
            Error::Empty { .. } => ErrorKind::Empty,
            Error::Format { .. } => ErrorKind::Damaged,
            Error::Rejected(_) => ErrorKind::Rejected,
            Error::Interrupted => ErrorKind::Interrupted,
            Error::Panicked { .. } => ErrorKind::Panicked,
        }
    }

    /// Returns the message of the error for one interface, such as the command line. `spell` spells the names of
    /// options as in this interface.
    pub fn worded(&self, spell: SpellOption) -> String {
        match self {
            Error::File { path, problem, .. } => {
                format!("{}: {}", path.display(), problem.worded(spell))
            }
            Error::Option {
                option, problem, ..
            } => {
                let problem = problem.worded(spell);
                match spell(option) {
                    Some(option) => format!("{option}: {problem}"),
                    None => problem,
                }
            }
            Error::Empty { reason } => {
                format!("nothing was written, because {}", reason.worded(spell))
            }
            _ => self.to_string(),
        }
    }

    /// Returns the inner error of an [`Error::Format`] or an [`Error::Rejected`], such as the detailed error of a file
    /// format, if it has the type `E`. Otherwise returns `None`.
    ///
    /// ```
    /// use polybook::book::header::{self, HeaderError};
    ///
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("book.bin");
    /// std::fs::write(&path, [])?;
    /// let err = header::read(&path).unwrap_err();
    /// assert_eq!(err.carried(), Some(&HeaderError::NoHeader));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn carried<E: StdError + 'static>(&self) -> Option<&E> {
        match self {
            Error::Format { source, .. } | Error::Rejected(source) => source.downcast_ref(),
            _ => None,
        }
    }
}

/// An extension trait for [`io::Result`]. Its method converts an I/O error to an [`Error::Io`] with the path and the
/// failed operation. `doing` is the operation as a verb, such as `write`.
pub(crate) trait At<T> {
    fn at(self, path: impl AsRef<Path>, doing: &'static str) -> Result<T>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, path: impl AsRef<Path>, doing: &'static str) -> Result<T> {
        self.map_err(|source| {
            let path = path.as_ref();
            Error::Io {
                path: path.to_owned(),
                doing,
                source: of_directory(without_path(source), path),
            }
        })
    }
}

/// Returns the message of an I/O error without the suffix `(os error N)`, which the standard library appends.
pub(crate) fn reason(err: &io::Error) -> String {
    let text = err.to_string();
    match text.split_once(" (os error ") {
        Some((reason, _)) => reason.to_owned(),
        None => text,
    }
}

/// Converts an error of the crate `tempfile` to the error of the operating system that it wraps. This removes the path
/// of the temporary file from the message, because this path is of no use to users. Returns other errors unchanged. The
/// error code is parsed from the message, because `tempfile` provides it in no other way.
fn without_path(err: io::Error) -> io::Error {
    let code = err.get_ref().and_then(|inner| {
        let text = inner.to_string();
        let (reason, _path) = text.split_once(" at path ")?;
        let (_, number) = reason.rsplit_once("(os error ")?;
        number.strip_suffix(')')?.parse().ok()
    });
    code.map_or(err, io::Error::from_raw_os_error)
}

/// Corrects the error that Windows reports if a program opens a directory as a file: if `path` is a directory, replaces
/// "permission denied" with "is a directory". Returns all other errors unchanged.
fn of_directory(err: io::Error, path: &Path) -> io::Error {
    if cfg!(windows) && err.kind() == io::ErrorKind::PermissionDenied && path.is_dir() {
        return io::ErrorKind::IsADirectory.into();
    }
    err
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_names_are_not_told() {
        let err = tempfile::NamedTempFile::new_in("/no/such/directory");
        assert!(
            err.as_ref()
                .is_err_and(|err| err.to_string().contains("/no/such"))
        );
        let err = err.map(drop).at("book.bin", "write").unwrap_err();
        let cause = StdError::source(&err).unwrap().downcast_ref::<io::Error>();
        assert_eq!(cause.unwrap().kind(), io::ErrorKind::NotFound);
        assert!(!cause.unwrap().to_string().contains("/no/such"));
        let kept = io::Result::<()>::Err(io::Error::other("damaged")).at("a", "read");
        let kept = kept.unwrap_err();
        assert_eq!(StdError::source(&kept).unwrap().to_string(), "damaged");
    }

    #[test]
    fn refusals_have_the_kind_of_their_reason() {
        use crate::{
            formats::book::{Book, Filter, begin_book, filter_books},
            progress::Meter,
            storage::sort::Memory,
        };
        let dir = tempfile::tempdir().unwrap();
        let [book, text] = ["book.bin", "text.bin"].map(|name| dir.path().join(name));
        let record = [&1u64.to_be_bytes()[..], &[0x03, 0x1c, 0, 1, 0, 0, 0, 0]].concat();
        std::fs::write(&book, record).unwrap();
        std::fs::write(&text, "no book\n").unwrap();
        let nothing = Filter {
            min_weight: u16::MAX,
            ..Filter::default()
        };
        let out = dir.path().join("out.bin");
        let (memory, meter) = (Memory::default(), Meter::default());
        let filtered = filter_books(
            &[Book::open(book).unwrap()],
            begin_book(&out, false).unwrap(),
            &nothing,
            None,
            &memory,
            &meter,
        );
        assert_eq!(filtered.unwrap_err().kind(), ErrorKind::Empty);
        let begun = begin_book(&text, false).unwrap_err();
        assert_eq!(begun.kind(), ErrorKind::Exists);
    }
}

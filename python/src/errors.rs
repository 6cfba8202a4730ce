//! Turns errors of the library into exceptions.

use std::{error::Error as _, io::ErrorKind, path::Path};

use polybook::make_book::Rejection;
use pyo3::{
    create_exception,
    exceptions::{
        PyException, PyFileExistsError, PyFileNotFoundError, PyKeyboardInterrupt, PyOSError,
        PyValueError,
    },
    prelude::*,
};

create_exception!(polybook, Error, PyException, "An error of polybook.");
create_exception!(
    polybook,
    GameError,
    Error,
    "A game that cannot be replayed. It has the attributes file, game, offset, ply, move and reason."
);

/// Returns the exception for an error of the library. An error of the operating system becomes an `OSError` with the
/// name of the file.
pub fn exception(py: Python<'_>, err: polybook::Error) -> PyErr {
    if let Some(rejection) = err.carried::<Rejection>() {
        return game_error(py, rejection).unwrap_or_else(|err| err);
    }
    match &err {
        polybook::Error::Interrupted => PyKeyboardInterrupt::new_err(()),
        polybook::Error::Exists { path } => PyFileExistsError::new_err(format!(
            "{} exists: remove it, or pass force=True to replace it",
            path.display()
        )),
        polybook::Error::Io { path, source, .. } => match source.raw_os_error() {
            Some(number) => of_system(number, source, path),
            None if source.kind() == ErrorKind::NotFound => {
                PyFileNotFoundError::new_err(in_one_line(&err))
            }
            None => PyOSError::new_err(in_one_line(&err)),
        },
        _ => Error::new_err(in_one_line(&err)),
    }
}

fn of_system(number: i32, source: &std::io::Error, path: &Path) -> PyErr {
    let text = source.to_string();
    let reason = text.split(" (os error ").next().unwrap_or_default();
    PyOSError::new_err((number, reason.to_owned(), path.as_os_str().to_owned()))
}

fn game_error(py: Python<'_>, rejection: &Rejection) -> PyResult<PyErr> {
    let err = GameError::new_err(rejection.to_string());
    let value = err.value(py);
    value.setattr("file", rejection.file.as_os_str())?;
    value.setattr("game", rejection.game)?;
    value.setattr("offset", rejection.offset)?;
    value.setattr("ply", rejection.ply)?;
    value.setattr("move", &rejection.mv)?;
    value.setattr("reason", &rejection.reason)?;
    Ok(err)
}

/// Returns the messages of an error and its causes, separated by colons.
fn in_one_line(err: &polybook::Error) -> String {
    let mut line = err.to_string();
    let mut cause = err.source();
    while let Some(err) = cause {
        line.push_str(&format!(": {err}"));
        cause = err.source();
    }
    in_python(&line)
}

/// Replaces the names of command-line options in a message of the library by the names of arguments: `--max-ply` becomes
/// `max_ply`. An option after the name of a command, as in `polybook verify --fix OUT`, stays as it is.
fn in_python(message: &str) -> String {
    let mut text = String::new();
    for clause in message.split_inclusive([':', ';', ',']) {
        let mut is_command = false;
        for word in clause.split_inclusive([' ', '(']) {
            is_command |= ["polybook", "make-book"].contains(&word.trim_end());
            let name = word.strip_prefix("--").filter(|_| !is_command);
            match name.filter(|name| name.starts_with(|first: char| first.is_ascii_lowercase())) {
                Some(name) => text += &name.replace('-', "_"),
                None => text += word,
            }
        }
    }
    text
}

/// Returns a `ValueError` with the message of an error.
pub fn value_error(err: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(in_python(&err.to_string()))
}

#[cfg(test)]
mod tests {
    use super::in_python;

    #[test]
    fn advice_names_arguments() {
        for (message, expected) in [
            (
                "a: use a larger --memory or a smaller --max-ply",
                "a: use a larger memory or a smaller max_ply",
            ),
            (
                "no move is kept (--min-game 1 keeps it)",
                "no move is kept (min_game 1 keeps it)",
            ),
            ("give --variant atomic", "give variant atomic"),
            (
                "polybook verify --fix OUT writes a copy, or use --min-game",
                "polybook verify --fix OUT writes a copy, or use min_game",
            ),
            ("1. e4 -- 2. d4; a--b", "1. e4 -- 2. d4; a--b"),
        ] {
            assert_eq!(in_python(message), expected);
        }
    }
}

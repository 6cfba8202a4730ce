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
    line
}

/// Returns a `ValueError` with the message of an error.
pub fn value_error(err: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(err.to_string())
}

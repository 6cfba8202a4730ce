//! The command line, for `python -m polybook`.

use std::ffi::OsString;

use pyo3::prelude::*;

use crate::cli;

/// Runs a command line and returns its exit status. `stdout_was_closed` says whether standard output was closed when
/// Python started. If it was, the caller must have replaced standard output with a pipe that nobody reads.
#[pyfunction]
#[pyo3(name = "_run")]
pub fn run(py: Python<'_>, args: Vec<OsString>, stdout_was_closed: bool) -> u8 {
    py.detach(|| cli::run(args, stdout_was_closed))
}

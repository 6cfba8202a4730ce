//! The command line, for `python -m polybook`.

use std::ffi::OsString;

use pyo3::prelude::*;

use crate::cli;

/// Runs a command line and returns its exit status.
#[pyfunction]
#[pyo3(name = "_run")]
pub fn run(py: Python<'_>, args: Vec<OsString>) -> u8 {
    py.detach(|| cli::run(args))
}

//! The Python package polybook. It converts arguments and return values between Python and Rust, and contains no logic
//! of its own.

#![forbid(unsafe_code)]

mod book;
/// The command line of the program, so that wheels contain the command.
#[path = "../../src/cli/mod.rs"]
mod cli;
mod command;
mod errors;
mod explorer;
mod index;
mod make_book;
mod obs;
mod options;
mod plies;
mod position;
mod results;
mod threads;

#[pyo3::pymodule]
#[pyo3(name = "_polybook")]
mod extension {
    use pyo3::{
        Bound, PyResult,
        types::{PyModule, PyModuleMethods},
    };

    #[pymodule_export]
    use crate::{
        book::Book,
        command::run,
        errors::{Error, GameError},
        explorer::Explorer,
        index::Index,
        make_book::make_book,
        obs::Obs,
        plies::{Batch, Positions, positions},
        position::key,
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}

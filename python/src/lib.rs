//! polybook for Python: arguments and answers are turned into Python's own, and nothing else is done here.

#![forbid(unsafe_code)]

mod book;
mod errors;
mod explorer;
mod index;
mod make_book;
mod obs;
mod options;
mod plies;
mod position;
mod threads;

#[pyo3::pymodule]
mod polybook {
    use pyo3::{
        Bound, PyResult,
        types::{PyModule, PyModuleMethods},
    };

    #[pymodule_export]
    use crate::{
        book::Book,
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

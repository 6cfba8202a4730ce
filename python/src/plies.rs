//! Half-moves as NumPy arrays.

use std::{path::PathBuf, sync::Mutex};

use numpy::{IntoPyArray, PyArray1};
use polybook::{
    pgn::Input,
    plies::{Plies, PlyOptions},
};
use pyo3::{exceptions::PyRuntimeError, prelude::*, types::PyDict};

use crate::{
    errors::{detached, exception},
    options::Options,
};

/// Half-moves of some games, as arrays of the same length.
#[pyclass(frozen, get_all, module = "polybook")]
pub struct Batch {
    /// The Polyglot keys of the positions before the moves (uint64).
    keys: Py<PyArray1<u64>>,
    /// The moves as 16-bit Polyglot numbers (uint16).
    moves: Py<PyArray1<u16>>,
    /// 1 where White won the game, 0 for a draw, -1 where Black won (int8).
    results: Py<PyArray1<i8>>,
    /// The numbers of the games in the file, from 0 (uint64).
    games: Py<PyArray1<u64>>,
}

#[pymethods]
impl Batch {
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.keys.bind(py).len()
    }
}

/// The batches of a PGN.
#[pyclass(frozen, module = "polybook")]
pub struct Positions {
    plies: Mutex<Plies>,
}

#[pymethods]
impl Positions {
    fn __iter__(slf: Py<Positions>) -> Py<Positions> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        let next = py.detach(|| Some(self.plies.lock().ok()?.next_batch()));
        let next =
            next.ok_or_else(|| PyRuntimeError::new_err("polybook panicked: please report it"))?;
        let Some(plies) = next.map_err(|err| exception(py, err))? else {
            return Ok(None);
        };
        Ok(Some(Batch {
            keys: plies.keys.into_pyarray(py).unbind(),
            moves: plies.moves.into_pyarray(py).unbind(),
            results: plies.results.into_pyarray(py).unbind(),
            games: plies.games.into_pyarray(py).unbind(),
        }))
    }

    /// How many games were read so far.
    #[getter]
    fn games(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.plies.lock().map_or(0, |plies| plies.games()))
    }

    /// How many of them could not be replayed and were left out.
    #[getter]
    fn rejected(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.plies.lock().map_or(0, |plies| plies.rejected()))
    }
}

/// The half-moves of the games of standard chess in a PGN, batch by batch.
#[pyfunction]
#[pyo3(signature = (pgn, **options))]
pub fn positions<'py>(
    py: Python<'py>,
    pgn: PathBuf,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Positions> {
    let mut options = Options::new(py, options)?;
    let defaults = PlyOptions::default();
    let wanted = PlyOptions {
        max_ply: options.take("max_ply")?.unwrap_or(defaults.max_ply),
        selection: options.selection()?,
        unfinished: options.unfinished()?.unwrap_or(defaults.unfinished),
        strict: options.take("strict")?.unwrap_or(defaults.strict),
    };
    options.finish("positions")?;
    let plies = detached(py, || Plies::open(Input::file(pgn), wanted))?;
    Ok(Positions {
        plies: Mutex::new(plies),
    })
}

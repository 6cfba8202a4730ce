//! The function `positions`, which returns half-moves as NumPy arrays.

use std::{
    path::PathBuf,
    process,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use numpy::{IntoPyArray, PyArray1};
use polybook::{
    pgn::Input,
    plies::{Plies, PlyOptions},
};
use pyo3::{exceptions::PyRuntimeError, prelude::*, types::PyDict};

use crate::{
    options::Options,
    threads::{pool, watched},
};

/// The half-moves of some games, as arrays of equal length.
#[pyclass(frozen, get_all, module = "polybook")]
pub struct Batch {
    /// The Polyglot keys of the positions before the moves (uint64).
    keys: Py<PyArray1<u64>>,
    /// The moves as 16-bit Polyglot numbers (uint16).
    moves: Py<PyArray1<u16>>,
    /// The result of the game: 1 if White won, 0 for a draw, -1 if Black won (int8).
    results: Py<PyArray1<i8>>,
    /// The number of the game in the file, counted from 0 (uint64).
    games: Py<PyArray1<u64>>,
    /// The seconds that the player's clock showed after the move, or NaN if the game contains no clock time (float64).
    /// `None` if `comments` is `False`.
    clock: Option<Py<PyArray1<f64>>>,
    /// The evaluation after the move, encoded as in stores of evaluations, or NaN if the game contains none (float64).
    /// `None` if `comments` is `False`.
    eval: Option<Py<PyArray1<f64>>>,
}

#[pymethods]
impl Batch {
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.keys.bind(py).len()
    }
}

/// An iterator over the batches of half-moves of a PGN file.
#[pyclass(frozen, module = "polybook")]
pub struct Positions {
    plies: Mutex<Plies>,
    /// Whether batches contain clocks and evaluations.
    comments: bool,
    stop: Arc<AtomicBool>,
    /// The id of the process that opened the file. The thread that reads the file exists only in this process.
    process: u32,
}

#[pymethods]
impl Positions {
    fn __iter__(slf: Py<Positions>) -> Py<Positions> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        self.check_process()?;
        if self.stop.load(Ordering::Relaxed) {
            return Err(PyRuntimeError::new_err(
                "this iterator was interrupted: call positions() again",
            ));
        }
        let pool = pool()?;
        let next = watched(
            py,
            &self.stop,
            |_| Ok(()),
            || {
                let mut plies = self.plies.lock().expect("the call before did not panic");
                let plies = &mut *plies;
                pool.install(|| plies.next_batch())
            },
        );
        let Some(plies) = next? else {
            return Ok(None);
        };
        let column = |numbers: Vec<f64>| self.comments.then(|| numbers.into_pyarray(py).unbind());
        let clock = plies.clock.into_iter();
        let clock = clock.map(|left| left.unwrap_or(f64::NAN)).collect();
        let eval = plies.eval.into_iter();
        let eval = eval.map(|eval| eval.map_or(f64::NAN, |score| score.to_code().into()));
        let eval = eval.collect();
        Ok(Some(Batch {
            keys: plies.keys.into_pyarray(py).unbind(),
            moves: plies.moves.into_pyarray(py).unbind(),
            results: plies.results.into_pyarray(py).unbind(),
            games: plies.games.into_pyarray(py).unbind(),
            clock: column(clock),
            eval: column(eval),
        }))
    }

    /// Returns the number of games read so far.
    #[getter]
    fn games(&self, py: Python<'_>) -> PyResult<u64> {
        self.check_process()?;
        Ok(py.detach(|| self.plies.lock().map_or(0, |plies| plies.games())))
    }

    /// Returns the number of games that could not be replayed and were skipped.
    #[getter]
    fn rejected(&self, py: Python<'_>) -> PyResult<u64> {
        self.check_process()?;
        Ok(py.detach(|| self.plies.lock().map_or(0, |plies| plies.rejected())))
    }
}

impl Positions {
    /// Raises `RuntimeError` in a forked child. The thread that reads the file does not exist there, and the lock of `plies` may
    /// be held by a thread of the parent.
    fn check_process(&self) -> PyResult<()> {
        match self.process == process::id() {
            true => Ok(()),
            false => Err(PyRuntimeError::new_err(
                "this iterator was made before a fork: call positions() again in the child",
            )),
        }
    }
}

/// Returns an iterator over the half-moves of the games of standard chess in a PGN file, batch by batch.
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
        game_filter: options.game_filter()?,
        comments: options.take("comments")?.unwrap_or(defaults.comments),
        unfinished: options.unfinished()?.unwrap_or(defaults.unfinished),
        strict: options.take("strict")?.unwrap_or(defaults.strict),
        stop: defaults.stop,
    };
    options.finish("positions")?;
    let stop = Arc::clone(&wanted.stop);
    let comments = wanted.comments;
    let plies = watched(
        py,
        &stop,
        |_| Ok(()),
        || Plies::open(Input::file(pgn), wanted),
    )?;
    Ok(Positions {
        plies: Mutex::new(plies),
        comments,
        stop,
        process: process::id(),
    })
}

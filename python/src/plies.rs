//! The function `positions`, which returns half-moves as NumPy arrays.

use std::{
    convert::identity,
    path::PathBuf,
    process,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    vec,
};

use numpy::{Element, IntoPyArray, PyArray1, PyArrayMethods};
use polybook::{
    pgn::Input,
    plies::{Plies, PlyBatch, PlyOptions},
};
use pyo3::{
    exceptions::{PyImportError, PyModuleNotFoundError, PyRuntimeError},
    prelude::*,
    types::PyDict,
};

use crate::{
    errors::value_error,
    options::{Options, paths},
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
    /// The number of the game, counted from 0 through all files (uint64).
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

    /// Returns the arrays as the columns `key`, `move`, `result`, `game`, `clock` and `eval` of a data frame of pandas,
    /// or else of polars, or else of a table of pyarrow. `key` (int64) and `move` (int32) are as in counts. Raises
    /// `ImportError` if none of these packages is installed.
    fn to_frame<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        frame(py, &[self])
    }
}

/// Returns the arrays of all batches as the columns of a data frame. Keys and moves have the types of counts, because
/// an unsigned key equals no negative key, and polars joins only columns of equal types.
fn frame<'py>(py: Python<'py>, batches: &[&Batch]) -> PyResult<Bound<'py, PyAny>> {
    /// Joins `arrays` to one array, whose items are converted with `convert`.
    fn joined<'py, 'a, T: Element + Copy + 'static, U: Element>(
        py: Python<'py>,
        arrays: impl Iterator<Item = &'a Py<PyArray1<T>>>,
        convert: impl Fn(T) -> U,
    ) -> PyResult<Bound<'py, PyArray1<U>>> {
        let mut all = Vec::new();
        for array in arrays {
            let array = array.bind(py).readonly();
            all.extend(array.as_slice()?.iter().copied().map(&convert));
        }
        Ok(all.into_pyarray(py))
    }
    let batches = batches.iter();
    let columns = PyDict::new(py);
    let keys = batches.clone().map(|batch| &batch.keys);
    columns.set_item("key", joined(py, keys, u64::cast_signed)?)?;
    let moves = batches.clone().map(|batch| &batch.moves);
    columns.set_item("move", joined(py, moves, i32::from)?)?;
    let results = batches.clone().map(|batch| &batch.results);
    columns.set_item("result", joined(py, results, identity)?)?;
    let games = batches.clone().map(|batch| &batch.games);
    columns.set_item("game", joined(py, games, identity)?)?;
    if batches.clone().all(|batch| batch.clock.is_some()) {
        let clocks = batches.clone().filter_map(|batch| batch.clock.as_ref());
        columns.set_item("clock", joined(py, clocks, identity)?)?;
        let evals = batches.filter_map(|batch| batch.eval.as_ref());
        columns.set_item("eval", joined(py, evals, identity)?)?;
    }
    for (module, class) in FRAMES {
        match py.import(module) {
            Ok(module) => return module.getattr(class)?.call1((columns,)),
            Err(err) if err.is_instance_of::<PyModuleNotFoundError>(py) => {}
            Err(err) => return Err(err),
        }
    }
    Err(PyImportError::new_err(
        "to_frame() needs pandas, polars or pyarrow: install one of them, for example with pip install pandas",
    ))
}

/// The packages that have data frames, with the class or function that makes one of a dict of arrays.
const FRAMES: [(&str, &str); 3] = [
    ("pandas", "DataFrame"),
    ("polars", "DataFrame"),
    ("pyarrow", "table"),
];

/// The half-moves of PGN files, which are read one after the other.
struct FilePlies {
    current: Plies,
    /// The files after the current one.
    rest: vec::IntoIter<PathBuf>,
    options: PlyOptions,
    /// The numbers of games and of rejected games in the files before the current one.
    games: u64,
    rejected: u64,
}

impl FilePlies {
    fn open(paths: Vec<PathBuf>, options: PlyOptions) -> polybook::Result<Option<FilePlies>> {
        let mut rest = paths.into_iter();
        let Some(first) = rest.next() else {
            return Ok(None);
        };
        Ok(Some(FilePlies {
            current: Plies::open(Input::file(first), options.clone())?,
            rest,
            options,
            games: 0,
            rejected: 0,
        }))
    }

    /// Returns the next batch of the current file or, at its end, of the next file that has one.
    fn next_batch(&mut self) -> polybook::Result<Option<PlyBatch>> {
        loop {
            if let Some(mut batch) = self.current.next_batch()? {
                batch.games.iter_mut().for_each(|game| *game += self.games);
                return Ok(Some(batch));
            }
            let Some(next) = self.rest.next() else {
                return Ok(None);
            };
            let next = Plies::open(Input::file(next), self.options.clone())?;
            self.games += self.current.games();
            self.rejected += self.current.rejected();
            self.current = next;
        }
    }
}

/// An iterator over the batches of half-moves of PGN files.
#[pyclass(frozen, module = "polybook")]
pub struct Positions {
    plies: Mutex<FilePlies>,
    /// Whether batches contain clocks and evaluations.
    comments: bool,
    stop: Arc<AtomicBool>,
    /// Whether a call failed. The next batch would then follow a gap.
    failed: AtomicBool,
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
        if self.failed.load(Ordering::Relaxed) {
            return Err(PyRuntimeError::new_err(
                "this iterator failed before: call positions() again",
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
        let failed = |_: &PyErr| self.failed.store(true, Ordering::Relaxed);
        let Some(plies) = next.inspect_err(failed)? else {
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

    /// Reads all remaining batches, and returns their arrays as the columns of a data frame of pandas, or else of
    /// polars, or else of a table of pyarrow. Raises `ImportError` if none of these packages is installed.
    fn to_frame<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut batches = Vec::new();
        while let Some(batch) = self.__next__(py)? {
            batches.push(batch);
        }
        frame(py, &Vec::from_iter(&batches))
    }

    /// Returns the number of games read so far.
    #[getter]
    fn games(&self, py: Python<'_>) -> PyResult<u64> {
        self.check_process()?;
        Ok(py.detach(|| {
            self.plies
                .lock()
                .map_or(0, |plies| plies.games + plies.current.games())
        }))
    }

    /// Returns the number of games that could not be replayed and were skipped.
    #[getter]
    fn rejected(&self, py: Python<'_>) -> PyResult<u64> {
        self.check_process()?;
        Ok(py.detach(|| {
            self.plies
                .lock()
                .map_or(0, |plies| plies.rejected + plies.current.rejected())
        }))
    }
}

impl Positions {
    /// Raises `RuntimeError` in a forked child. The thread that reads the file does not exist there, and the lock of
    /// `plies` may be held by a thread of the parent.
    fn check_process(&self) -> PyResult<()> {
        if self.process == process::id() {
            Ok(())
        } else {
            Err(PyRuntimeError::new_err(
                "this iterator was made before a fork: call positions() again in the child process",
            ))
        }
    }
}

/// Returns an iterator over the half-moves of the games of standard chess in one or more PGN files, batch by batch.
#[pyfunction]
#[pyo3(
    signature = (pgn, **options),
    text_signature = "(pgn, *, max_ply=None, comments=True, unfinished='skip', strict=False, temp_dir=None, \
    **conditions)"
)]
pub fn positions<'py>(
    py: Python<'py>,
    pgn: &Bound<'py, PyAny>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Positions> {
    let paths = paths(pgn, "pgn")?;
    let mut options = Options::new(py, options)?;
    let defaults = PlyOptions::default();
    let mut memory = defaults.memory;
    if let Some(path) = options.take::<PathBuf>("temp_dir")? {
        memory.temp_dir = path;
    }
    let wanted = PlyOptions {
        max_ply: options.take("max_ply")?.unwrap_or(defaults.max_ply),
        selection: options.selection(false)?,
        comments: options.take("comments")?.unwrap_or(defaults.comments),
        unfinished: options.unfinished()?.unwrap_or(defaults.unfinished),
        strict: options.take("strict")?.unwrap_or(defaults.strict),
        memory,
        stop: defaults.stop,
    };
    options.finish("positions")?;
    let stop = Arc::clone(&wanted.stop);
    let comments = wanted.comments;
    let plies = watched(py, &stop, |_| Ok(()), || FilePlies::open(paths, wanted))?;
    let plies = plies
        .ok_or_else(|| value_error("the list of PGN files is empty: name at least one file"))?;
    Ok(Positions {
        plies: Mutex::new(plies),
        comments,
        stop,
        failed: AtomicBool::new(false),
        process: process::id(),
    })
}

//! OOBS databases.

use std::{path::PathBuf, process};

use polybook::obs;
use pyo3::{
    prelude::*,
    types::{PyDict, PyList},
};

use crate::{
    position::{Given, from_argument},
    threads::detached,
};

/// An OOBS database that is open for reading.
#[pyclass(frozen, module = "polybook")]
pub struct Obs {
    obs: obs::Obs,
    path: PathBuf,
    /// The process that opened the database. A forked child must not use SQLite's connections.
    process: u32,
}

#[pymethods]
impl Obs {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Obs> {
        let obs = detached(py, || obs::Obs::open(&path))?;
        Ok(Obs {
            obs,
            path,
            process: process::id(),
        })
    }

    /// Returns the moves of a position as dicts. Wins and losses are those of the side to move.
    #[pyo3(signature = (position=None))]
    fn moves<'py>(&self, py: Python<'py>, position: Given<'_, '_>) -> PyResult<Bound<'py, PyList>> {
        let pos = from_argument(position, self.obs.info().variant.parse().ok())?;
        let rows = detached(py, || {
            if self.process == process::id() {
                self.obs.moves(&pos)
            } else {
                obs::Obs::open(&self.path)?.moves(&pos)
            }
        })?;
        let to_dict = |row: obs::ObsRow| {
            let dict = PyDict::new(py);
            dict.set_item("uci", &row.mv)?;
            dict.set_item(
                "san",
                obs::legal_move(&pos, &row.mv).and_then(|mv| mv.san(&pos)),
            )?;
            dict.set_item("active", row.is_active())?;
            dict.set_item("wins", row.stats.wins)?;
            dict.set_item("draws", row.stats.draws)?;
            dict.set_item("losses", row.stats.losses)?;
            dict.set_item("comment", &row.comment)?;
            Ok(dict)
        };
        let dicts = rows.into_iter().map(to_dict);
        PyList::new(py, dicts.collect::<PyResult<Vec<_>>>()?)
    }
}

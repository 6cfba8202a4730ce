//! Indexes of games by position.

use std::path::PathBuf;

use polybook::{index, position::Keyed};
use pyo3::{
    Py,
    prelude::*,
    types::{PyBytes, PyDict, PyList},
};

use shakmaty::Color;

use crate::{
    errors::exception,
    position::{Given, from_argument},
    threads::detached,
};

/// The number of ids that are converted before the GIL is released. Converting them takes about a millisecond.
const AT_ONCE: usize = 1 << 16;

/// An index that is open for reading.
#[pyclass(frozen, module = "polybook")]
pub struct Index {
    index: index::Index,
}

#[pymethods]
impl Index {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Index> {
        let index = detached(py, || index::Index::open(path))?;
        Ok(Index { index })
    }

    /// Returns the ids of the games that reached a position, in ascending order.
    #[pyo3(signature = (position=None))]
    fn games<'py>(&self, py: Python<'py>, position: Given<'_, '_>) -> PyResult<Bound<'py, PyList>> {
        let pos = Keyed::new(from_argument(position, self.index.variant().only())?);
        let ids = detached(py, || self.index.games_of(&pos))?;
        let list = PyList::empty(py);
        for ids in ids.chunks(AT_ONCE) {
            ids.iter().try_for_each(|id| list.append(id))?;
            py.detach(|| {});
            py.check_signals()?;
        }
        Ok(list)
    }

    /// Returns the header of a game as a dict: its tags, its file, and its byte offset in the unpacked file.
    fn header<'py>(&self, py: Python<'py>, id: u32) -> PyResult<Bound<'py, PyDict>> {
        let game = detached(py, || self.index.header(id))?;
        let dict = PyDict::new(py);
        for (name, value) in game.fields() {
            match name {
                "white_rating" => dict.set_item(name, game.rating(Color::White))?,
                "black_rating" => dict.set_item(name, game.rating(Color::Black))?,
                "ply_count" => dict.set_item(name, game.ply_count())?,
                "offset" => dict.set_item(name, game.offset())?,
                _ => dict.set_item(name, value)?,
            }
        }
        let path = self.index.path_of_game(id);
        let path = path.map_err(|err| exception(py, err))?;
        dict.set_item("file", path.to_string_lossy())?;
        Ok(dict)
    }

    /// Returns the PGN of a game, byte for byte as in the input.
    fn text(&self, py: Python<'_>, id: u32) -> PyResult<Py<PyBytes>> {
        let text = detached(py, || self.index.text(id))?;
        Ok(PyBytes::new(py, &text).unbind())
    }

    /// Returns the number of games.
    fn __len__(&self) -> usize {
        usize::try_from(self.index.game_count()).unwrap_or(usize::MAX)
    }
}

//! Polyglot books.

use std::path::PathBuf;

use polybook::book;
use pyo3::{
    exceptions::PyIndexError,
    prelude::*,
    types::{PyDict, PyList},
};
use rand::RngExt;

use crate::{
    position::{Given, from_argument},
    threads::detached,
};

/// A Polyglot book that is open for reading.
#[pyclass(frozen, module = "polybook")]
pub struct Book {
    book: book::Book,
}

/// A move of a book.
struct Move {
    uci: String,
    /// The move in SAN, or `None` if it is illegal.
    san: Option<String>,
    weight: u16,
    /// The probability that an engine chooses the move, in percent, or `None` if the move is illegal.
    share: Option<f64>,
    learn: u32,
}

impl Move {
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("uci", &self.uci)?;
        dict.set_item("san", &self.san)?;
        dict.set_item("weight", self.weight)?;
        dict.set_item("probability", self.share)?;
        dict.set_item("learn", self.learn)?;
        Ok(dict)
    }
}

#[pymethods]
impl Book {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Book> {
        let book = detached(py, || book::Book::open(path))?;
        Ok(Book { book })
    }

    /// Returns the moves of a position as dicts, sorted by weight in descending order.
    #[pyo3(signature = (position=None))]
    fn moves<'py>(&self, py: Python<'py>, position: Given<'_, '_>) -> PyResult<Bound<'py, PyList>> {
        let moves = self.found(py, position)?;
        let dicts = moves.iter().map(|mv| mv.to_dict(py));
        PyList::new(py, dicts.collect::<PyResult<Vec<_>>>()?)
    }

    /// Returns a random legal move. The probability of a move is proportional to its weight, as in an engine.
    ///
    /// Raises `IndexError` if the position has no legal move with a weight above 0.
    #[pyo3(signature = (position=None))]
    fn weighted_choice<'py>(
        &self,
        py: Python<'py>,
        position: Given<'_, '_>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let mut moves = self.found(py, position)?;
        moves.retain(|mv| mv.san.is_some());
        let total: u64 = moves.iter().map(|mv| u64::from(mv.weight)).sum();
        if total == 0 {
            return Err(PyIndexError::new_err(
                "the book has no move to play in this position",
            ));
        }
        let mut rest = rand::rng().random_range(0..total);
        for mv in &moves {
            match rest.checked_sub(u64::from(mv.weight)) {
                Some(less) => rest = less,
                None => return mv.to_dict(py),
            }
        }
        unreachable!("the number is below the sum of the weights")
    }

    /// Returns the variants and the comment of the header as a dict, or `None` if the book has no header.
    fn header<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let header = detached(py, || match self.book.header() {
            Err(err) if err.carried() == Some(&book::header::HeaderError::NoHeader) => Ok(None),
            header => header.map(Some),
        })?;
        let Some(header) = header else {
            return Ok(None);
        };
        let dict = PyDict::new(py);
        dict.set_item("variants", &header.variants)?;
        dict.set_item("comment", &header.comment)?;
        Ok(Some(dict))
    }

    /// Returns the number of records, including those of the header.
    fn __len__(&self) -> usize {
        usize::try_from(self.book.len()).unwrap_or(usize::MAX)
    }
}

impl Book {
    fn found(&self, py: Python<'_>, position: Given<'_, '_>) -> PyResult<Vec<Move>> {
        let pos = from_argument(position, detached(py, || self.book.variant())?)?;
        detached(py, || {
            let moves = self.book.moves_of(&pos)?;
            let mut moves: Vec<Move> = moves
                .into_iter()
                .map(|entry| Move {
                    uci: entry.mv.uci(&pos),
                    san: entry.mv.san(&pos),
                    weight: entry.weight,
                    share: None,
                    learn: entry.learn,
                })
                .collect();
            moves.sort_by_key(|mv| std::cmp::Reverse(mv.weight));
            let legal = |mv: &Move| mv.san.is_some().then_some(mv.weight.into());
            let shares = book::shares(&moves.iter().map(legal).collect::<Vec<_>>());
            for (mv, share) in moves.iter_mut().zip(shares) {
                mv.share = share;
            }
            Ok(moves)
        })
    }
}

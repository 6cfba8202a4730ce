//! Turns results of the library into dictionaries.

use pyo3::{exceptions::PyValueError, prelude::*};
use serde::Serialize;

/// Returns the dictionary whose keys and values are those of the JSON document of `result`. Arrays become lists.
pub fn dictionary<'py>(py: Python<'py>, result: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    // pythonize would turn arrays of a fixed length into tuples.
    let document =
        serde_json::to_value(result).map_err(|err| PyValueError::new_err(err.to_string()))?;
    Ok(pythonize::pythonize(py, &document)?)
}

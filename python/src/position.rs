//! Positions as arguments: `None` for the start, a FEN, or a board of python-chess.

use polybook::position::{self, Variant};
use pyo3::{exceptions::PyTypeError, prelude::*};
use shakmaty::variant::VariantPosition;

use crate::errors::value_error;

/// An argument that denotes a position: a FEN, a board of python-chess, or `None` for the start.
pub type Given<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// Returns the position that an argument denotes. Its variant is that of the board if the board has one, otherwise
/// `variant`, the variant of the file that is read.
pub fn from_argument(
    argument: Given<'_, '_>,
    variant: Option<Variant>,
) -> PyResult<VariantPosition> {
    let usual = variant.unwrap_or_default();
    let Some(argument) = argument.filter(|argument| !argument.is_none()) else {
        return Ok(usual.start());
    };
    if let Ok(fen) = argument.extract::<String>() {
        return usual.from_text(Some(&fen), None).map_err(value_error);
    }
    if !argument.hasattr("fen")? {
        return Err(PyTypeError::new_err(
            "a position must be None, a FEN or a board of python-chess",
        ));
    }
    let fen: String = argument.call_method0("fen")?.extract()?;
    let variant = of_board(argument, usual)?;
    variant.from_text(Some(&fen), None).map_err(value_error)
}

/// Returns the variant of a board of python-chess, or `usual` if the board is one of standard chess.
fn of_board(board: &Bound<'_, PyAny>, usual: Variant) -> PyResult<Variant> {
    if board.hasattr("chess960")? && board.getattr("chess960")?.is_truthy()? {
        return Ok(Variant::Chess960);
    }
    if !board.hasattr("uci_variant")? {
        return Ok(usual);
    }
    let name: Option<String> = board.getattr("uci_variant")?.extract()?;
    match name.as_deref() {
        None | Some("chess") => Ok(usual),
        Some(name) => name.parse().map_err(value_error),
    }
}

/// Returns the FEN of the first position of `board`, and the moves that were made on it, in UCI notation and separated
/// by commas. Returns `None` if `board` is not a board of python-chess.
pub fn moves_of_board(board: &Bound<'_, PyAny>) -> Option<(String, String)> {
    let start = board.call_method0("root").ok()?.call_method0("fen").ok()?;
    let moves = board.getattr("move_stack").ok()?.try_iter().ok()?;
    let moves: Option<Vec<String>> = moves
        .map(|mv| mv.ok()?.call_method0("uci").ok()?.extract().ok())
        .collect();
    Some((start.extract().ok()?, moves?.join(",")))
}

/// Returns the Polyglot key of a position.
#[pyfunction]
#[pyo3(signature = (position=None, *, variant=None))]
pub fn key(position: Given<'_, '_>, variant: Option<&str>) -> PyResult<u64> {
    let variant = variant
        .map(|name| name.parse().map_err(value_error))
        .transpose()?;
    Ok(position::key(&from_argument(position, variant)?))
}

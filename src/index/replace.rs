//! Telling an index from anything else at its target, before it is replaced.

use std::{fs, path::Path};

use super::{
    layout,
    leveldb::{Database, is_file_of_database},
};
use crate::error::{At, Error, Result};

/// Whether an index may be made where something is already: an empty directory always, an index with
/// `force`.
///
/// # Errors
///
/// [`Error::Exists`] for an index without `force`, [`Error::File`] for anything else.
pub(crate) fn check_replaceable(path: &Path, force: bool) -> Result<()> {
    if is_empty_directory(path) {
        return Ok(());
    }
    match is_index(path) {
        Ok(true) if force => Ok(()),
        Ok(true) => Err(Error::exists(path)),
        Ok(false) => Err(Error::file(
            path,
            "exists and is not an index: name another directory",
        )),
        Err(err) => Err(Error::file(
            path,
            format!("exists and may not be an index ({err}): remove it, or name another directory"),
        )),
    }
}

pub(super) fn is_empty_directory(path: &Path) -> bool {
    fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

/// Whether there is a LevelDB database at `path`.
pub(super) fn holds_database(path: &Path) -> bool {
    path.join("CURRENT").is_file()
}

/// Whether there is an index at `path`, and no file that is not of it.
///
/// # Errors
///
/// A LevelDB database that is damaged or cannot be read, so that it cannot be told.
pub fn is_index(path: impl AsRef<Path>) -> Result<bool> {
    let path = path.as_ref();
    if !holds_database(path) {
        return Ok(false);
    }
    for entry in fs::read_dir(path).at(path, "read")? {
        if !is_file_of_database(&entry.at(path, "read")?.file_name()) {
            return Ok(false);
        }
    }
    let games = Database::open(path)?.get(layout::TOTAL_GAMES)?;
    Ok(games.is_some())
}

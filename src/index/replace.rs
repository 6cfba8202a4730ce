//! Telling an index from anything else at its target, before it is replaced.

use std::{
    ffi::{OsStr, OsString},
    fs,
    io::ErrorKind,
    path::Path,
};

use super::{
    layout,
    leveldb::{Database, is_file_of_database},
};
use crate::{
    error::{At, Error, Result},
    output::own_files,
};

/// Whether an index may be made where something is already: an empty directory always, an index with
/// `force`. Returns the files of the index.
///
/// # Errors
///
/// [`Error::Exists`] for an index without `force`, [`Error::File`] for anything else.
pub(super) fn check_replaceable(path: &Path, force: bool) -> Result<Vec<OsString>> {
    if is_empty_directory(path) {
        return Ok(Vec::new());
    }
    let problem = match content(path) {
        Ok(TargetContent::Index(files)) if force => return Ok(files),
        Ok(TargetContent::Index(_)) => return Err(Error::exists(path)),
        Ok(TargetContent::IndexAnd(other)) => format!(
            "exists and has {} in it, which is not an index's: move that away, or name another directory",
            other.display()
        ),
        Ok(TargetContent::Other) => "exists and is not an index: name another directory".to_owned(),
        Err(err) => {
            format!("exists and may not be an index ({err}): remove it, or name another directory")
        }
    };
    Err(Error::foreign(path, problem))
}

pub(super) fn is_empty_directory(path: &Path) -> bool {
    fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

/// Returns `true` if there is a LevelDB database at `path`: something with the name of the file that every database has.
///
/// # Errors
///
/// Returns an error if the system does not tell.
pub(super) fn holds_database(path: &Path) -> Result<bool> {
    match path.join("CURRENT").symlink_metadata() {
        Ok(_) => Ok(true),
        Err(err) if matches!(err.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(false)
        }
        Err(err) => Err(err).at(path, "open"),
    }
}

/// Whether there is an index at `path`, and no file that is not of it.
///
/// # Errors
///
/// A LevelDB database that is damaged or cannot be read: it may or may not be an index.
pub fn is_index(path: impl AsRef<Path>) -> Result<bool> {
    Ok(matches!(content(path.as_ref())?, TargetContent::Index(_)))
}

/// The contents of a path.
enum TargetContent {
    /// An index of these files.
    Index(Vec<OsString>),
    /// An index, and this file or directory, which no manifest names.
    IndexAnd(OsString),
    Other,
}

fn content(path: &Path) -> Result<TargetContent> {
    if !holds_database(path)? || Database::open(path)?.get(layout::TOTAL_GAMES)?.is_none() {
        return Ok(TargetContent::Other);
    }
    let known = Database::names_in(path)?;
    let is_known = |name: &OsStr| name.to_str().is_some_and(|name| known.contains(name));
    let files = own_files(path, is_known)?;
    Ok(files.map_or_else(TargetContent::IndexAnd, TargetContent::Index))
}

/// Removes an index, or the rest of one. Files of others stay, and then their directory stays too.
///
/// # Errors
///
/// Files that cannot be removed, or that are not of an index. A link to a directory.
pub(crate) fn remove(path: &Path) -> Result<()> {
    if !path.symlink_metadata().at(path, "read")?.is_dir() {
        return Err(Error::foreign(path, "is not an index: move it away"));
    }
    for entry in fs::read_dir(path).at(path, "read")? {
        let entry = entry.at(path, "read")?;
        let is_file = entry.file_type().at(path, "read")?.is_file();
        if is_file && is_file_of_database(&entry.file_name()) {
            fs::remove_file(entry.path()).at(entry.path(), "remove")?;
        }
    }
    fs::remove_dir(path).at(path, "remove")
}

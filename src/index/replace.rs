//! Deciding whether a new index may replace what exists at its path, and removing an index.

use std::{
    ffi::{OsStr, OsString},
    fs,
    path::Path,
};

use super::layout;
#[cfg(feature = "serve")]
use crate::storage::output::remove_abandoned_directories;
use crate::{
    error::{At, Error, ErrorKind, Result},
    leveldb::{Database, is_file_of_database},
    storage::output::{is_absent, is_empty_directory, own_files},
};

/// Checks whether a new index may replace the file or directory at `path`, which must exist. An empty directory may
/// always be replaced. An index may be replaced only if `force` is `true`.
///
/// Returns the names of the files of the old index. For an empty directory, returns an empty list.
///
/// # Errors
///
/// Returns [`Error::Exists`] for an index if `force` is `false`. Returns [`Error::foreign`] for anything else,
/// such as a directory that contains files which do not belong to an index. Also returns an error if the
/// operating system cannot read the directory.
pub(super) fn check_replaceable(path: &Path, force: bool) -> Result<Vec<OsString>> {
    if is_empty_directory(path)? {
        return Ok(Vec::new());
    }
    let problem = match content(path) {
        Ok(TargetContent::Index(files)) if force => return Ok(files),
        Ok(TargetContent::Index(_)) => return Err(Error::exists(path)),
        Ok(TargetContent::IndexAnd(other)) => format!(
            "this index exists and contains {}, which is not a file of an index: move that file away, or choose \
             another directory",
            other.display()
        ),
        Ok(TargetContent::Other) => {
            "this path exists and is not an index: choose another directory".to_owned()
        }
        Err(err) if err.kind() == ErrorKind::Io => return Err(err),
        Err(err) => {
            format!(
                "this directory exists and does not look like an index ({err}): remove the directory, or choose \
                 another one"
            )
        }
    };
    Err(Error::foreign(path, problem))
}

/// Returns `true` if the directory `path` contains a LevelDB database. Every such database has a file named `CURRENT`.
///
/// # Errors
///
/// Returns an error if the file system cannot tell whether the file exists.
pub(super) fn holds_database(path: &Path) -> Result<bool> {
    match path.join("CURRENT").symlink_metadata() {
        Ok(_) => Ok(true),
        Err(err) if is_absent(&err) => Ok(false),
        Err(err) => Err(err).at(path, "open"),
    }
}

/// Returns `true` if `path` is an index and its directory contains no other files.
///
/// # Errors
///
/// Returns an error if there is a LevelDB database at `path` that is damaged or cannot be read, because it might be an
/// index.
pub fn is_index(path: impl AsRef<Path>) -> Result<bool> {
    Ok(matches!(content(path.as_ref())?, TargetContent::Index(_)))
}

/// The result of checking what already exists at the path at which a new index will be placed.
enum TargetContent {
    /// An index, which consists of these files.
    Index(Vec<OsString>),
    /// An index, and a file or directory that does not belong to it.
    IndexAnd(OsString),
    /// Anything else.
    Other,
}

/// Determines whether there is an index at `path`. Also lists the files of the index, and finds out whether its
/// directory contains anything else.
fn content(path: &Path) -> Result<TargetContent> {
    if !holds_database(path)? || Database::open(path)?.get(layout::TOTAL_GAMES)?.is_none() {
        return Ok(TargetContent::Other);
    }
    let known = Database::names_in(path)?;
    let is_known = |name: &OsStr| name.to_str().is_some_and(|name| known.contains(name));
    let files = own_files(path, is_known)?;
    Ok(files.map_or_else(TargetContent::IndexAnd, TargetContent::Index))
}

/// Returns `true` if `name` has the form of the name of a LevelDB file. When a new index replaces an old one, this
/// function recognizes the files of the old index, which are then removed. `_directory` is not used. The parameter
/// exists because the corresponding function for another file format needs the directory of the file.
pub(super) fn is_own_file(_directory: &Path, name: &OsStr) -> bool {
    is_file_of_database(name)
}

/// Removes unfinished indexes that were being written to temporary directories for `target`. Such a directory remains
/// if the process is killed while it writes an index.
///
/// # Errors
///
/// Returns an error if another process is writing an index to `target`, or if a directory with an unfinished index
/// contains files that do not belong to an index.
#[cfg(feature = "serve")]
pub(crate) fn remove_unfinished(target: &Path) -> Result<()> {
    remove_abandoned_directories(target, is_own_file)
}

/// Removes the directory `path` and all files in it that have names of LevelDB files.
///
/// # Errors
///
/// Returns an error if `path` is not a directory (for example, a symbolic link), if a file cannot be removed, or
/// if the directory contains other files. Other files are kept.
pub(crate) fn remove(path: &Path) -> Result<()> {
    if !path.symlink_metadata().at(path, "read")?.is_dir() {
        return Err(Error::foreign(
            path,
            "this path is not an index: move it away",
        ));
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

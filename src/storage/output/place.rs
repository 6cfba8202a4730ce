//! Renames finished outputs to their targets, which are their final paths.

use std::{
    collections::BTreeMap,
    fmt::Display,
    fs::File,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use super::{
    rename,
    target::{Target, parent},
    temporary::{Temporary, begin_commit, claim_replaced, remove_directory},
};
use crate::{
    error::{self, Error, Result},
    task,
};

/// An output file or directory that is complete and flushed to disk, but not yet renamed to its target. The output is
/// removed if the value is dropped.
#[derive(Debug)]
pub struct Finished {
    pub(super) target: Target,
    /// The temporary file or directory. `None` for a device or pipe, to which all bytes have already been written.
    pub(super) temporary: Option<Temporary>,
}

/// An old directory that was replaced, and has a temporary name until it is removed.
struct Replaced {
    target: Target,
    path: PathBuf,
    /// A lock that prevents other processes from removing or restoring the old directory.
    _claim: Option<File>,
}

/// The failure to rename an output to its target.
struct CommitFailure {
    target: PathBuf,
    /// The reason for the failure.
    reason: io::Error,
    /// The path at which the finished output is kept, or `None` if it could not be kept.
    kept: Option<PathBuf>,
}

impl Finished {
    /// Returns the path to which the output will be renamed, as the caller wrote it.
    pub fn target(&self) -> &Path {
        &self.target.name
    }

    /// Renames the output to its target, and removes the output that it replaces.
    ///
    /// # Errors
    ///
    /// Fails for the same reasons as [`commit_all`].
    pub fn commit(self) -> Result<()> {
        commit_all(vec![self])
    }

    /// Prepares the rename to the target: checks that no other program uses an old database, and opens the parent
    /// directory of the target. Returns the path and the handle of the parent directory, which the caller must flush
    /// after the rename. The handle is `None` if the system cannot open directories. Returns `None` for a device or
    /// pipe, which is not renamed.
    fn prepare(&self) -> io::Result<Option<(PathBuf, Option<File>)>> {
        if self.temporary.is_none() {
            return Ok(None);
        }
        self.target.refuse_database_in_use()?;
        let path = parent(&self.target.path);
        Ok(Some((path.to_owned(), open_directory(path)?)))
    }

    /// Renames the output to its target. Returns the old directory, which has a temporary name after the rename, or
    /// `None` if there is no old directory to remove.
    fn rename_to_target(self) -> Result<Option<Replaced>, CommitFailure> {
        let target = self.target;
        let Some(temporary) = self.temporary else {
            return Ok(None);
        };
        let claim = target
            .is_directory()
            .then(|| claim_replaced(&target.path))
            .flatten();
        let (temporary_path, _own) = temporary.keep();
        match rename::to_target(&temporary_path, &target) {
            Ok(replaced) => Ok(replaced.map(|path| Replaced {
                target,
                path,
                _claim: claim,
            })),
            Err(reason) => Err(CommitFailure {
                kept: keep(&temporary_path, &target.path),
                target: target.name,
                reason: with_advice(reason),
            }),
        }
    }
}

/// Renames all outputs of an operation to their targets, and removes the old outputs that they replace.
///
/// # Errors
///
/// Returns an error if a rename fails. Outputs that have not been renamed are then kept under other names, which the
/// error message lists. Also returns an error if a directory cannot be flushed to disk, and [`Error::Interrupted`] if
/// [`discard_all`](super::discard_all) has been called.
pub fn commit_all(outputs: Vec<Finished>) -> Result<()> {
    task::fault("put in place");
    let _commit = begin_commit()?;
    let mut directories = BTreeMap::new();
    for output in &outputs {
        match output.prepare() {
            Ok(directory) => directories.extend(directory),
            Err(reason) => {
                let failure = CommitFailure {
                    target: output.target().to_owned(),
                    reason,
                    kept: None,
                };
                return Err(not_placed(failure, outputs, &[]));
            }
        }
    }
    let mut placed = Vec::with_capacity(outputs.len());
    let mut replaced = Vec::new();
    let mut outputs = outputs.into_iter();
    let mut result = Ok(());
    while let Some(output) = outputs.next() {
        let target = output.target().to_owned();
        match output.rename_to_target() {
            Ok(old) => {
                placed.push(target);
                replaced.extend(old);
            }
            Err(failure) => {
                result = Err(not_placed(failure, outputs, &placed));
                break;
            }
        }
    }
    // The old directories are removed only after the new ones are safely on disk. If several steps fail, the first
    // error is returned, because it is the most informative.
    result = result.and(sync(&directories, &placed));
    for old in replaced {
        // A directory that cannot be removed now is left for the next run.
        let _ = remove_directory(&old.path, old.target.files());
    }
    result
}

/// Flushes directories to disk, so that renames in them survive a crash of the system. `directories` maps the path of
/// each directory to its open handle, or to `None` if it could not be opened. `placed` contains the paths of the
/// renamed outputs, for an error message.
fn sync(directories: &BTreeMap<PathBuf, Option<File>>, placed: &[PathBuf]) -> Result<()> {
    for (path, directory) in directories {
        sync_directory(directory.as_ref()).map_err(|err| {
            let problem = format!(
                "cannot flush the directory to the disk: {}; complete outputs: {}",
                error::reason(&err),
                list(placed.iter().map(|path| path.display()))
            );
            Error::failed(path, problem)
        })?;
    }
    Ok(())
}

/// Opens a directory in order to flush the renames in it to disk. Returns `None` if the system cannot open
/// directories, or if the user may not read the directory.
pub(super) fn open_directory(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        // A user may be allowed to write a directory but not to read it. Windows cannot open directories.
        Err(err) if cfg!(windows) || err.kind() == ErrorKind::PermissionDenied => Ok(None),
        opened => opened.map(Some),
    }
}

/// Flushes the renames in an open directory to disk. Does nothing if `directory` is `None`, or if the file system
/// does not support flushing directories.
pub(super) fn sync_directory(directory: Option<&File>) -> io::Result<()> {
    use ErrorKind::{InvalidInput, Unsupported};
    match directory.map(File::sync_all) {
        Some(Err(err)) if !matches!(err.kind(), InvalidInput | Unsupported) => Err(err),
        _ => Ok(()),
    }
}

fn list(names: impl Iterator<Item = impl Display>) -> String {
    let names: Vec<String> = names.map(|name| name.to_string()).collect();
    names.join(", ")
}

/// Handles the failure to rename one of several outputs to its target. Gives permanent names to this output and to all
/// later ones, so that they are not removed. Returns an error that lists these names.
///
/// - `failure`: the output whose rename failed
/// - `rest`: the outputs that should have been renamed after it
/// - `placed`: the targets that have already been replaced
fn not_placed(
    failure: CommitFailure,
    rest: impl IntoIterator<Item = Finished>,
    placed: &[PathBuf],
) -> Error {
    let mut kept: Vec<PathBuf> = failure.kept.into_iter().collect();
    kept.extend(rest.into_iter().filter_map(|output| {
        let (temporary_path, _own) = output.temporary?.keep();
        keep(&temporary_path, &output.target.path)
    }));
    let mut problem = format!(
        "the finished output cannot be renamed: {}",
        error::reason(&failure.reason)
    );
    if !kept.is_empty() {
        problem.push_str(&format!(
            "; the finished output is kept as {}",
            list(kept.iter().map(|path| path.display()))
        ));
    }
    if !placed.is_empty() {
        problem.push_str(&format!(
            "; complete outputs: {}",
            list(placed.iter().map(|path| path.display()))
        ));
    }
    Error::failed(failure.target, problem)
}

/// Adds advice for the user to an error if Windows denied a rename. This happens if another program has the file open.
/// Returns all other errors unchanged.
fn with_advice(err: io::Error) -> io::Error {
    /// The Windows error for a file that another program has open, which has no [`io::ErrorKind`].
    const ERROR_SHARING_VIOLATION: i32 = 32;
    let is_denied = matches!(
        err.kind(),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ResourceBusy
    );
    let is_held =
        cfg!(windows) && (is_denied || err.raw_os_error() == Some(ERROR_SHARING_VIOLATION));
    if is_held {
        let reason = "another program has the old output open, or the old output is read-only; close that program and \
                      rename the finished output";
        return io::Error::other(reason);
    }
    err
}

/// Renames the finished output at `temporary_path`, whose target is `target`, so that the next run does not remove it.
/// The new name of an output `book.bin` is `book.bin.new` or, if this name is taken, the temporary name without its
/// extension. Returns the new path, or `None` if the output cannot be renamed.
fn keep(temporary_path: &Path, target: &Path) -> Option<PathBuf> {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let names = [
        target.with_file_name(name),
        temporary_path.with_extension(""),
    ];
    names
        .into_iter()
        .find(|name| rename::to_new(temporary_path, name).is_ok())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn an_output_that_cannot_be_renamed_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let (temporary_path, target) = (at(".book.bin.part"), at("book.bin"));
        assert_eq!(keep(&temporary_path, &target), None);
        for expected in [at("book.bin.new"), at(".book.bin")] {
            fs::write(&temporary_path, "new").unwrap();
            assert_eq!(keep(&temporary_path, &target), Some(expected));
        }
        fs::write(&temporary_path, "new").unwrap();
        assert_eq!(keep(&temporary_path, &target), None);
        assert!(temporary_path.exists());
    }

    #[cfg(unix)]
    #[test]
    fn advice_about_open_files_is_for_windows() {
        let err = with_advice(ErrorKind::PermissionDenied.into());
        assert_eq!(err.kind(), ErrorKind::PermissionDenied);
    }
}

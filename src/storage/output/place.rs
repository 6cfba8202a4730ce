//! Renames finished outputs to their targets.

use std::{
    collections::BTreeMap,
    fmt::{self, Display, Formatter},
    fs::{self, File},
    io::{self, ErrorKind},
    iter::once_with,
    path::{Path, PathBuf},
};

use super::{
    identity::FileState,
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

/// An old output that was replaced. It has a temporary name until it is removed.
struct Replaced {
    target: Target,
    path: PathBuf,
    /// The claim that prevents other processes from removing the old output.
    _claim: Option<File>,
}

/// The failure to rename an output to its target. Contains the target, the reason, and the path at which the output is
/// kept.
struct CommitFailure {
    target: PathBuf,
    reason: io::Error,
    /// The path at which the finished output is kept, or `None` if it could not be kept.
    kept: Option<Kept>,
}

/// The path at which an output is kept instead of being removed. The output is a new one that could not be renamed to
/// its target, or an old one that another program has changed.
struct Kept {
    path: PathBuf,
    /// Whether the output has a permanent name. If not, it still has a temporary name, and the next process that
    /// writes the target would remove it.
    is_renamed: bool,
}

impl Display for Kept {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        match self.is_renamed {
            true => Ok(()),
            false => f.write_str(" (rename it, because the next run with this output removes it)"),
        }
    }
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

    /// Prepares the rename to the target: checks that no other program has changed the target, and opens the target's
    /// parent directory. Returns the path and the handle of this directory. The caller must flush the directory after
    /// the rename. The handle is `None` if the system cannot open directories. Returns `None` for a device or pipe,
    /// which is not renamed.
    fn prepare(&self) -> io::Result<Option<(PathBuf, Option<File>)>> {
        if self.temporary.is_none() {
            return Ok(None);
        }
        self.target.check()?;
        let path = parent(&self.target.path);
        Ok(Some((path.to_owned(), open_directory(path)?)))
    }

    /// Renames the output to its target. Returns the old output, which then has a temporary name, or `None` if there is
    /// no old output to remove.
    fn rename_to_target(self) -> Result<Option<Replaced>, CommitFailure> {
        let target = self.target;
        let Some(temporary) = self.temporary else {
            return Ok(None);
        };
        let claim = target.exists().then(|| claim_replaced(&target.path));
        let (temporary_path, own) = temporary.keep();
        match rename::to_target(&temporary_path, &target) {
            Ok(replaced) => Ok(replaced.map(|path| Replaced {
                target,
                path,
                _claim: claim.flatten(),
            })),
            Err(reason) => Err(CommitFailure {
                kept: keep_new(&temporary_path, own.as_ref(), &target.path),
                target: target.name,
                reason: with_advice(reason),
            }),
        }
    }

    /// Renames the output to an unused name next to its target, so that it is not removed, and returns this name.
    /// Returns `None` if the output is a device or pipe, or no longer exists.
    fn keep(self) -> Option<Kept> {
        let (temporary_path, own) = self.temporary?.keep();
        keep_new(&temporary_path, own.as_ref(), &self.target.path)
    }
}

impl Replaced {
    /// Removes the old output, which has a temporary name next to the target, and returns `None`. If the old output
    /// cannot be removed now, the next process that writes the target removes it.
    ///
    /// If another program may have changed the old output, keeps the old output instead: renames it to an unused name
    /// that ends with `.old`, and returns a message for the user with this name.
    fn remove(self) -> Option<String> {
        let target = &self.target;
        let is_changed = if target.is_directory() {
            let files = target.files();
            let unchanged =
                files.filter(|name| target.contains_unchanged(&self.path, name).unwrap_or(false));
            let removed = remove_directory(&self.path, unchanged);
            removed.is_err_and(|err| err.kind() == ErrorKind::DirectoryNotEmpty)
        } else {
            let is_unchanged = target.is_unchanged_file(&self.path).unwrap_or(false);
            if is_unchanged {
                // A file that cannot be removed now is left for the next run.
                let _ = fs::remove_file(&self.path);
            }
            !is_unchanged
        };
        let kept = is_changed.then(|| keep(&self.path, &target.path, ".old"))??;
        Some(format!(
            "the new output is complete, but the old output was changed by another program or cannot be examined: the \
             old output is kept as {kept}"
        ))
    }
}

/// Renames all outputs of an operation to their targets, and removes the old outputs that they replace.
///
/// # Errors
///
/// Returns an error if another program has written a target since the output was created, or if a rename fails. Outputs
/// that have not been renamed are then kept under other names, which the error message lists. Also returns an error if
/// a directory cannot be flushed to disk, or if an old output is kept because another program has changed it. Returns
/// [`Error::Interrupted`] if [`discard_all`](super::discard_all) has been called.
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
    // The old outputs are removed only after the new ones are safely on disk. If several steps fail, the first error
    // is returned, because it is the most informative.
    result = result.and(sync(&directories, &placed));
    let mut kept = Vec::new();
    for old in replaced {
        let target = old.target.name.clone();
        kept.extend(old.remove().map(|problem| (target, problem)));
    }
    with_kept(result, kept)
}

/// Adds messages about old outputs that were kept to `result`, the result of a commit. Each element of `kept` contains
/// the target of an old output, and a message that states where this output is kept. If `kept` is empty, returns
/// `result` unchanged. Otherwise, returns an error that contains the messages.
fn with_kept(result: Result<()>, kept: Vec<(PathBuf, String)>) -> Result<()> {
    kept.into_iter().fold(result, |result, (target, message)| {
        let mut err = match result {
            Ok(()) => return Err(Error::changed(target, message)),
            Err(err) => err,
        };
        if let Error::File { problem, .. } = &mut err {
            problem.push_str(&format!("; {}: {message}", target.display()));
        }
        Err(err)
    })
}

/// Flushes directories to disk, so that renames in these directories are durable. `directories` maps the path of each
/// directory to its open handle, or to `None` if it could not be opened. `placed` contains the paths of the renamed
/// outputs, for an error message.
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
    let mut kept: Vec<Kept> = failure.kept.into_iter().collect();
    kept.extend(rest.into_iter().filter_map(Finished::keep));
    let mut problem = format!(
        "the finished output cannot be renamed: {}",
        error::reason(&failure.reason)
    );
    if !kept.is_empty() {
        problem.push_str(&format!(
            "; the finished output is kept as {}",
            list(kept.iter())
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

/// Returns an error with advice for the user if Windows denied a rename. Windows does not rename files that another
/// program has open. Returns all other errors unchanged.
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

/// Renames the finished output at `temporary_path` to an unused name next to `target`. Returns this name, or `None` if
/// the output no longer exists.
///
/// `own` is an open handle to the output. If nothing exists at `temporary_path`, the parent directory may have been
/// renamed. In that case, the handle is used to find the current path of the output, and the output is kept in the
/// renamed directory.
fn keep_new(temporary_path: &Path, own: Option<&File>, target: &Path) -> Option<Kept> {
    let moved = match FileState::of(temporary_path) {
        Ok(None) => own.and_then(|own| path_of_open(own).ok()),
        _ => None,
    };
    match moved {
        Some(temporary_path) => keep(
            &temporary_path,
            &temporary_path.with_file_name(target.file_name().unwrap_or_default()),
            ".new",
        ),
        None => keep(temporary_path, target, ".new"),
    }
}

/// Returns the current path of an open file or directory.
///
/// # Errors
///
/// Returns an error if the system does not know the path.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn path_of_open(file: &File) -> io::Result<PathBuf> {
    use std::os::fd::AsRawFd;

    use super::FileId;

    let path = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    // Linux appends a word to the path of a file that has been removed.
    match FileId::of(&path)? == Some(FileId::of_open(file)?) {
        true => Ok(path),
        false => Err(ErrorKind::NotFound.into()),
    }
}

/// Returns the current path of an open file or directory.
///
/// # Errors
///
/// Returns an error if the system does not know the path.
#[cfg(target_vendor = "apple")]
fn path_of_open(file: &File) -> io::Result<PathBuf> {
    use std::{ffi::OsString, os::unix::ffi::OsStringExt};
    let path = rustix::fs::getpath(file)?;
    Ok(OsString::from_vec(path.into_bytes()).into())
}

/// Always returns an error. Systems other than Linux and those of Apple either cannot report the path of an open file,
/// or do not allow its directory to be renamed.
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn path_of_open(_file: &File) -> io::Result<PathBuf> {
    Err(ErrorKind::Unsupported.into())
}

/// Renames an output from `temporary_path` to an unused name next to `target`, and returns this name. Returns `None` if
/// nothing exists at `temporary_path`. For the target `book.bin` and the ending `.old`, tries the names `book.bin.old`,
/// `book.bin.1.old` and so on up to `book.bin.99.old`. If all of them exist, tries the temporary name without its
/// extension, which would mark the output for removal. If this fails too, the output keeps its temporary name.
fn keep(temporary_path: &Path, target: &Path, ending: &str) -> Option<Kept> {
    let numbered = (0..100).map(|number| {
        let mut name = target.file_name().unwrap_or_default().to_owned();
        name.push(match number {
            0 => ending.to_owned(),
            _ => format!(".{number}{ending}"),
        });
        target.with_file_name(name)
    });
    let mut names = numbered.chain(once_with(|| temporary_path.with_extension("")));
    match names.find(|name| rename::to_new(temporary_path, name).is_ok()) {
        Some(path) => Some(Kept {
            path,
            is_renamed: true,
        }),
        None if matches!(FileState::of(temporary_path), Ok(None)) => None,
        None => Some(Kept {
            path: temporary_path.to_owned(),
            is_renamed: false,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_file_that_is_written_into_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("book.bin");
        fs::write(&target, "old").unwrap();
        let of_target = Target::resolve(&target).unwrap();
        let path = dir.path().join(".book.bin.AbCd1234.part");
        fs::rename(&target, &path).unwrap();
        fs::write(&path, "longer").unwrap();
        let replaced = Replaced {
            target: of_target,
            path,
            _claim: None,
        };
        let err = replaced.remove().unwrap();
        assert!(
            err.contains("the new output is complete") && err.contains("book.bin.old"),
            "{err}"
        );
        let kept = dir.path().join("book.bin.old");
        assert_eq!(fs::read(kept).unwrap(), b"longer");
    }

    #[test]
    fn an_old_directory_that_is_written_into_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("index");
        fs::create_dir(&target).unwrap();
        for name in ["CURRENT", "000003.ldb"] {
            fs::write(target.join(name), "old").unwrap();
        }
        let mut of_target = Target::resolve(&target).unwrap();
        of_target
            .enter_files(vec!["CURRENT".into(), "000003.ldb".into()])
            .unwrap();
        let path = dir.path().join(".index.AbCd1234.part");
        fs::rename(&target, &path).unwrap();
        fs::write(path.join("thesis.txt"), "mine").unwrap();
        let replaced = Replaced {
            target: of_target,
            path,
            _claim: None,
        };
        let problem = replaced.remove().unwrap();
        assert!(problem.contains("index.old"), "{problem}");
        let kept = dir.path().join("index.old/thesis.txt");
        assert_eq!(fs::read(kept).unwrap(), b"mine");
    }

    #[test]
    fn an_output_that_cannot_be_renamed_is_kept_where_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let (temporary_path, target) = (at(".book.bin.part"), at("missing/book.bin"));
        assert!(keep(&temporary_path, &target, ".new").is_none());
        fs::write(&temporary_path, "new").unwrap();
        fs::write(at(".book.bin"), "another's").unwrap();
        let kept = keep(&temporary_path, &target, ".new").unwrap();
        assert_eq!(kept.path, temporary_path);
        assert!(kept.to_string().contains("rename it"), "{kept}");
        fs::remove_file(at(".book.bin")).unwrap();
        let kept = keep(&temporary_path, &target, ".new").unwrap();
        assert_eq!(kept.to_string(), at(".book.bin").display().to_string());
        assert_eq!(fs::read(kept.path).unwrap(), b"new");
    }

    #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
    #[test]
    fn an_output_is_kept_where_its_directory_was_renamed_to() {
        use super::super::{AtomicDir, AtomicFile};
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for is_replaced in [false, true] {
            let _ = fs::remove_dir_all(at("new"));
            fs::create_dir(at("old")).unwrap();
            let file = AtomicFile::create(at("old/book.bin")).unwrap();
            file.write_at(b"book", 0).unwrap();
            let index = AtomicDir::create_over(at("old/index"), |_, _| true, |_| Ok(Vec::new()));
            let index = index.unwrap();
            fs::write(index.path().join("CURRENT"), "index").unwrap();
            let outputs = vec![file.finish().unwrap(), index.finish().unwrap()];
            fs::rename(at("old"), at("new")).unwrap();
            if is_replaced {
                fs::create_dir(at("old")).unwrap();
            }
            let err = commit_all(outputs).unwrap_err().to_string();
            let new = at("new").canonicalize().unwrap();
            for (name, bytes) in [("book.bin.new", "book"), ("index.new/CURRENT", "index")] {
                assert_eq!(fs::read_to_string(new.join(name)).unwrap(), bytes, "{err}");
            }
            for name in ["book.bin.new", "index.new"] {
                assert!(err.contains(&new.join(name).display().to_string()), "{err}");
            }
            if is_replaced {
                fs::remove_dir(at("old")).unwrap();
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn advice_about_open_files_is_for_windows() {
        let err = with_advice(ErrorKind::PermissionDenied.into());
        assert_eq!(err.kind(), ErrorKind::PermissionDenied);
    }
}

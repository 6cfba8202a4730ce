//! Putting finished outputs in place.

use std::{
    collections::BTreeMap,
    fmt::{self, Display, Formatter},
    fs::{self, File},
    io::{self, ErrorKind},
    iter::once_with,
    path::{Path, PathBuf},
};

use super::{
    claim,
    identity::FileState,
    rename,
    target::{Target, parent},
    temporary::{Temporary, begin_commit, remove_directory},
};
use crate::{
    error::{self, Error, Result},
    task,
};

/// An output that is complete and on the disk, but not in place. Dropped, it is removed.
#[derive(Debug)]
pub struct Finished {
    pub(super) target: Target,
    /// `None` for a device or pipe, which has its bytes already.
    pub(super) temporary: Option<Temporary>,
}

/// An old output that a new one replaced, under a temporary name.
struct Replaced {
    target: Target,
    path: PathBuf,
    /// Keeps other runs from removing it.
    _claim: Option<File>,
}

/// Why an output is not in place, and where it is instead.
struct CommitFailure {
    target: PathBuf,
    reason: io::Error,
    /// Where the finished output was kept.
    kept: Option<Kept>,
}

/// Where a finished or an old output is kept.
struct Kept {
    path: PathBuf,
    /// Whether it has a name that the next run does not take for that of a temporary.
    is_renamed: bool,
}

impl Display for Kept {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        match self.is_renamed {
            true => Ok(()),
            false => f.write_str(" (rename it: the next run with this output removes it)"),
        }
    }
}

impl Finished {
    /// Where the output will be.
    pub fn target(&self) -> &Path {
        &self.target.name
    }

    /// Puts the output in place.
    ///
    /// # Errors
    ///
    /// As [`commit_all`].
    pub fn commit(self) -> Result<()> {
        commit_all(vec![self])
    }

    /// Looks whether the output can be put in place, and opens the directory that it will be in.
    fn prepare(&self) -> io::Result<Option<(PathBuf, Option<File>)>> {
        if self.temporary.is_none() {
            return Ok(None);
        }
        self.target.check()?;
        let path = parent(&self.target.path);
        Ok(Some((path.to_owned(), open_directory(path)?)))
    }

    /// Gives the output its name. Returns what it replaced, if that is still there.
    fn place(self) -> Result<Option<Replaced>, CommitFailure> {
        let target = self.target;
        let Some(temporary) = self.temporary else {
            return Ok(None);
        };
        let claim = target.exists().then(|| claim::replaced(&target.path));
        let (made, _own) = temporary.keep();
        match rename::to_target(&made, &target) {
            Ok(replaced) => Ok(replaced.map(|path| Replaced {
                target,
                path,
                _claim: claim.flatten(),
            })),
            Err(reason) => Err(CommitFailure {
                kept: keep(&made, &target.path, ".new"),
                target: target.name,
                reason: in_words(reason),
            }),
        }
    }

    /// Keeps the output under another name in the directory of its target; returns the name.
    fn keep(self) -> Option<Kept> {
        let (made, _own) = self.temporary?.keep();
        keep(&made, &self.target.path, ".new")
    }
}

impl Replaced {
    /// Removes the old output. One that cannot be removed is left for the next run. If the old output is not known to be
    /// unchanged, it is kept under another name: returns a message with this name.
    fn remove(self) -> Option<String> {
        let target = &self.target;
        let is_changed = if target.is_directory() {
            let files = target.files();
            let unchanged =
                files.filter(|name| target.has_unchanged(&self.path, name).unwrap_or(false));
            let removed = remove_directory(&self.path, unchanged);
            removed.is_err_and(|err| err.kind() == ErrorKind::DirectoryNotEmpty)
        } else {
            let is_unchanged = target.is_unchanged_file(&self.path).unwrap_or(false);
            if is_unchanged {
                let _ = fs::remove_file(&self.path);
            }
            !is_unchanged
        };
        let kept = is_changed.then(|| keep(&self.path, &target.path, ".old"))??;
        Some(format!(
            "is in place; another program wrote into the old one, or it cannot be looked at: it is kept as {kept}"
        ))
    }
}

/// Puts all outputs of an operation in place, one rename each, and removes what they replace.
///
/// # Errors
///
/// A target that another program wrote since the output was begun, or a rename that fails. The outputs that
/// are not in place are kept, and the error says under which names, and which outputs are in place.
/// A directory that cannot be flushed to the disk, with all outputs in place.
/// [`Error::Interrupted`] after [`discard_all`](super::discard_all).
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
        match output.place() {
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
    // The old outputs are there until it is certain that the new ones are. The first error says the most.
    result = result.and(sync(&directories, &placed));
    let mut kept = Vec::new();
    for old in replaced {
        let target = old.target.name.clone();
        kept.extend(old.remove().map(|problem| (target, problem)));
    }
    with_kept(result, kept)
}

/// Adds to the result of a commit which old outputs are kept, each with its target and a message. Returns an error if there are some.
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

/// Flushes the directories of outputs that are in place.
fn sync(directories: &BTreeMap<PathBuf, Option<File>>, placed: &[PathBuf]) -> Result<()> {
    for (path, directory) in directories {
        sync_directory(directory.as_ref()).map_err(|err| {
            let problem = format!(
                "cannot flush the directory to the disk: {}; in place: {}",
                error::reason(&err),
                list(placed.iter().map(|path| path.display()))
            );
            Error::failed(path, problem)
        })?;
    }
    Ok(())
}

/// Opens a directory whose names are to be flushed; `None` where the system does not open directories.
pub(super) fn open_directory(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        // Who may write a directory may still not be allowed to read it. Windows opens none.
        Err(err) if cfg!(windows) || err.kind() == ErrorKind::PermissionDenied => Ok(None),
        opened => opened.map(Some),
    }
}

/// Makes renames in a directory durable, where its file system can.
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

/// Keeps the outputs that are left and says where everything is.
fn not_placed(
    failure: CommitFailure,
    rest: impl IntoIterator<Item = Finished>,
    placed: &[PathBuf],
) -> Error {
    let mut kept: Vec<Kept> = failure.kept.into_iter().collect();
    kept.extend(rest.into_iter().filter_map(Finished::keep));
    let mut problem = format!("cannot put it in place: {}", error::reason(&failure.reason));
    if !kept.is_empty() {
        problem.push_str(&format!(
            "; the finished output is kept as {}",
            list(kept.iter())
        ));
    }
    if !placed.is_empty() {
        problem.push_str(&format!(
            "; in place: {}",
            list(placed.iter().map(|path| path.display()))
        ));
    }
    Error::failed(failure.target, problem)
}

/// The error with what to do about it. Windows denies access to what another program has open.
fn in_words(err: io::Error) -> io::Error {
    let is_held = cfg!(windows)
        && matches!(
            err.kind(),
            io::ErrorKind::PermissionDenied | io::ErrorKind::ResourceBusy
        );
    if is_held {
        let reason = "another program has it open, or it is read-only; close that program and rename \
                      the finished output";
        return io::Error::other(reason);
    }
    err
}

/// Keeps an output that could not be put in place, or an old one that could not be removed, next to its target; answers its
/// name. The last that is tried is the temporary name without its ending: the next run removes what has that.
fn keep(made: &Path, target: &Path, ending: &str) -> Option<Kept> {
    let numbered = (0..100).map(|number| {
        let mut name = target.file_name().unwrap_or_default().to_owned();
        name.push(match number {
            0 => ending.to_owned(),
            _ => format!(".{number}{ending}"),
        });
        target.with_file_name(name)
    });
    let mut names = numbered.chain(once_with(|| made.with_extension("")));
    match names.find(|name| rename::to_new(made, name).is_ok()) {
        Some(path) => Some(Kept {
            path,
            is_renamed: true,
        }),
        None if matches!(FileState::of(made), Ok(None)) => None,
        None => Some(Kept {
            path: made.to_owned(),
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
            err.contains("is in place") && err.contains("book.bin.old"),
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
}

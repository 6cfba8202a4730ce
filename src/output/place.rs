//! Putting finished outputs in place.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io,
    iter::once_with,
    path::{Path, PathBuf},
};

use tempfile::{NamedTempFile, PersistError, TempDir};

use super::{
    claim,
    directory::Directory,
    live::Commit,
    rename,
    target::{Target, parent},
    temporary::{Owned, remove_directory},
};
use crate::{
    error::{Error, Result},
    task,
};

/// An output that is complete and on the disk, but not in place. Dropped, it is removed.
#[derive(Debug)]
pub struct Finished {
    target: Target,
    part: Part,
}

#[derive(Debug)]
enum Part {
    File(Owned<NamedTempFile>),
    Directory(Owned<TempDir>),
    /// A device or pipe has its bytes already.
    Written,
}

/// An old output that a new one replaced, under a temporary name.
struct Replaced {
    target: Target,
    path: PathBuf,
    /// Keeps other runs from removing it.
    _claim: Option<File>,
}

/// Why an output is not in place, and where it is instead.
struct Failure {
    target: PathBuf,
    reason: io::Error,
    /// Where the finished output was kept.
    kept: Option<PathBuf>,
}

impl Finished {
    pub(super) fn file(target: Target, file: Owned<NamedTempFile>) -> Finished {
        Finished {
            target,
            part: Part::File(file),
        }
    }

    pub(super) fn directory(target: Target, directory: Owned<TempDir>) -> Finished {
        Finished {
            target,
            part: Part::Directory(directory),
        }
    }

    pub(super) fn written(target: Target) -> Finished {
        Finished {
            target,
            part: Part::Written,
        }
    }

    /// Where the output will be.
    pub fn target(&self) -> &Path {
        self.target.name()
    }

    /// Puts the output in place.
    ///
    /// # Errors
    ///
    /// As [`commit_all`].
    pub fn commit(self) -> Result<()> {
        commit_all(vec![self])
    }

    fn check(&self) -> io::Result<()> {
        match self.part {
            Part::Written => Ok(()),
            _ => self.target.before().check(self.target.path()),
        }
    }

    /// The failure of what comes before the first rename.
    fn not_begun(&self, reason: io::Error) -> Failure {
        Failure {
            target: self.target().to_owned(),
            reason,
            kept: None,
        }
    }

    /// Gives the output its name. Answers what it replaced, if that is still there.
    fn place(self) -> Result<Option<Replaced>, Failure> {
        let target = self.target;
        let claim = target.exists().then(|| claim::replaced(target.path()));
        let placed = match self.part {
            Part::Written => Ok(None),
            Part::File(file) => place_file(file.into_inner().0, &target),
            Part::Directory(directory) => {
                let (made, _claim) = directory.into_inner();
                place_directory(made.keep(), &target)
            }
        };
        match placed {
            Ok(replaced) => Ok(replaced.map(|path| Replaced {
                target,
                path,
                _claim: claim.flatten(),
            })),
            Err((reason, kept)) => Err(Failure {
                target: target.name().to_owned(),
                reason,
                kept,
            }),
        }
    }

    /// Keeps the output under another name in the directory of its target; answers the name.
    fn keep(self) -> Option<PathBuf> {
        match self.part {
            Part::Written => None,
            Part::File(file) => keep_file(file.into_inner().0, self.target.path()),
            Part::Directory(directory) => {
                let (made, _claim) = directory.into_inner();
                keep_directory(made.keep(), self.target.path(), ".new")
            }
        }
    }
}

impl Replaced {
    /// Removes the old output. One that cannot be removed is left for the next run.
    ///
    /// # Errors
    ///
    /// A directory that another program wrote into. What it wrote is kept.
    fn remove(self) -> Result<()> {
        let before = self.target.before();
        if !before.is_directory() {
            if before.check_renamed(&self.path).is_ok() {
                let _ = fs::remove_file(&self.path);
            }
            return Ok(());
        }
        let unchanged = before
            .files()
            .filter(|name| before.has_unchanged(&self.path, name));
        match remove_directory(&self.path, unchanged) {
            Err(err) if err.kind() == io::ErrorKind::DirectoryNotEmpty => {
                let kept = keep_directory(self.path, self.target.path(), ".old");
                let problem = format!(
                    "is in place; another program wrote into the old one, which is kept as {}",
                    kept.unwrap_or_default().display()
                );
                Err(Error::changed(self.target.name(), problem))
            }
            _ => Ok(()),
        }
    }
}

/// The directories that outputs will be in, by their paths.
fn directories_of(outputs: &[Finished]) -> Result<BTreeMap<PathBuf, Directory>, Failure> {
    let mut directories = BTreeMap::new();
    for output in outputs {
        if !matches!(output.part, Part::Written) {
            let path = parent(output.target.path());
            let directory = Directory::open(path).map_err(|err| output.not_begun(err))?;
            directories.insert(path.to_owned(), directory);
        }
    }
    Ok(directories)
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
    let _commit = Commit::begin()?;
    let checked = outputs
        .iter()
        .try_for_each(|output| output.check().map_err(|err| output.not_begun(err)));
    let directories = match checked.and_then(|()| directories_of(&outputs)) {
        Ok(directories) => directories,
        Err(failure) => return Err(not_placed(failure, outputs, &[])),
    };
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
    for old in replaced {
        let removed = old.remove();
        result = result.and(removed);
    }
    result
}

/// Flushes the directories of outputs that are in place.
fn sync(directories: &BTreeMap<PathBuf, Directory>, placed: &[PathBuf]) -> Result<()> {
    for (path, directory) in directories {
        directory.sync().map_err(|err| {
            let problem = format!(
                "cannot flush the directory to the disk: {}; in place: {}",
                without_number(&err),
                list(placed)
            );
            Error::file(path, problem)
        })?;
    }
    Ok(())
}

fn list(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    names.join(", ")
}

/// Keeps the outputs that are left and says where everything is.
fn not_placed(
    failure: Failure,
    rest: impl IntoIterator<Item = Finished>,
    placed: &[PathBuf],
) -> Error {
    let mut kept: Vec<PathBuf> = failure.kept.into_iter().collect();
    kept.extend(rest.into_iter().filter_map(Finished::keep));
    let mut problem = format!(
        "cannot put it in place: {}",
        without_number(&failure.reason)
    );
    if !kept.is_empty() {
        problem.push_str(&format!("; the finished output is kept as {}", list(&kept)));
    }
    if !placed.is_empty() {
        problem.push_str(&format!("; in place: {}", list(placed)));
    }
    Error::file(failure.target, problem)
}

/// The reason in the words of the operating system, without the number that Rust appends.
fn without_number(err: &io::Error) -> String {
    let text = err.to_string();
    match text.find(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

/// Where the old output is, if there was one and it is still there; or why the new one is not in place, and where that is.
type Placed = Result<Option<PathBuf>, (io::Error, Option<PathBuf>)>;

fn place_file(file: NamedTempFile, target: &Target) -> Placed {
    let path = target.path();
    let failed = |err, file| Err((in_words(err), keep_file(file, path)));
    if path.symlink_metadata().is_err() {
        return name_new(file, path)
            .map(|()| None)
            .or_else(|err| failed(err.error, err.file));
    }
    match rename::exchange(file.path(), path, target.before()) {
        // Its name is the old file's now.
        Some(Ok(())) => match file.into_temp_path().keep() {
            Ok(old) => Ok(Some(old)),
            Err(err) => Err((err.error, None)),
        },
        Some(Err(err)) => failed(err, file),
        None => file
            .persist(path)
            .map(|_| None)
            .or_else(|err| failed(err.error, err.file)),
    }
}

/// Gives a file a name that nothing has.
fn name_new(file: NamedTempFile, name: &Path) -> Result<(), PersistError> {
    let PersistError { error, file } = match file.persist_noclobber(name) {
        Ok(_) => return Ok(()),
        Err(err) => err,
    };
    if cfg!(windows) || error.kind() == io::ErrorKind::AlreadyExists {
        return Err(PersistError { error, file });
    }
    // File systems without hard links, as exFAT, may have no rename either that refuses a name that is taken.
    match rename::to_new(file.path(), name) {
        Ok(()) => {
            let _ = file.keep();
            Ok(())
        }
        Err(error) => Err(PersistError { error, file }),
    }
}

fn place_directory(made: PathBuf, target: &Target) -> Placed {
    let path = target.path();
    let placed = if path.symlink_metadata().is_ok() {
        rename::replace(&made, path, target.before()).map(Some)
    } else {
        rename::to_new(&made, path).map(|()| None)
    };
    placed.map_err(|reason| (in_words(reason), keep_directory(made, path, ".new")))
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

/// Names for an output that could not be put in place, or for an old one that could not be removed. The last one is the
/// temporary name without its ending: the next run removes what has that.
fn names_to_keep(made: &Path, target: &Path, ending: &str) -> impl Iterator<Item = PathBuf> {
    let numbered = (0..100).map(move |number| {
        let mut name = target.file_name().unwrap_or_default().to_owned();
        name.push(match number {
            0 => ending.to_owned(),
            _ => format!(".{number}{ending}"),
        });
        target.with_file_name(name)
    });
    numbered.chain(once_with(|| made.with_extension("")))
}

fn keep_file(mut file: NamedTempFile, target: &Path) -> Option<PathBuf> {
    let path = file.path().to_owned();
    for name in names_to_keep(&path, target, ".new") {
        match name_new(file, &name) {
            Ok(()) => return Some(name),
            Err(err) => file = err.file,
        }
    }
    // Where nothing can be renamed, the next run cannot remove it.
    file.keep().ok().filter(|_| path.exists()).map(|_| path)
}

fn keep_directory(made: PathBuf, target: &Path, ending: &str) -> Option<PathBuf> {
    for name in names_to_keep(&made, target, ending) {
        if rename::to_new(&made, &name).is_ok() {
            return Some(name);
        }
    }
    made.exists().then_some(made)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let err = replaced.remove().unwrap_err().to_string();
        assert!(err.contains("index.old"), "{err}");
        let kept = dir.path().join("index.old/thesis.txt");
        assert_eq!(fs::read(kept).unwrap(), b"mine");
    }
}

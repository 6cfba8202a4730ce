//! Putting finished outputs in place.

use std::{
    io,
    path::{Path, PathBuf},
};

use tempfile::{NamedTempFile, TempDir};

use super::{live::Commit, rename, sync_parent, target::Target, temporary::Owned};
use crate::error::{Error, Result};

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
            _ => self.target.check_unchanged(),
        }
    }

    /// Gives the output its name.
    fn place(self) -> Result<PathBuf, Failure> {
        let target = self.target.name().to_owned();
        let placed = match self.part {
            Part::Written => return Ok(target),
            Part::File(file) => place_file(file.into_inner(), &self.target),
            Part::Directory(directory) => {
                place_directory(directory.into_inner().keep(), &self.target)
            }
        };
        match placed {
            Ok(()) => {
                sync_parent(self.target.path());
                Ok(target)
            }
            Err((reason, kept)) => Err(Failure {
                target,
                reason,
                kept,
            }),
        }
    }

    /// Keeps the output under another name beside its target; answers the name.
    fn keep(self) -> Option<PathBuf> {
        match self.part {
            Part::Written => None,
            Part::File(file) => keep_file(file.into_inner(), self.target.path()),
            Part::Directory(directory) => {
                keep_directory(directory.into_inner().keep(), self.target.path())
            }
        }
    }
}

/// Puts all outputs of an operation in place, one rename each.
///
/// # Errors
///
/// A target that another program wrote since the output was begun, or a rename that fails. The outputs that
/// are not in place are kept, and the error says under which names, and which outputs are in place.
/// [`Error::Interrupted`] after [`discard_all`](super::discard_all).
pub fn commit_all(outputs: Vec<Finished>) -> Result<()> {
    let _commit = Commit::begin()?;
    let checked = outputs
        .iter()
        .find_map(|output| Some((output.target().to_owned(), output.check().err()?)));
    if let Some((target, reason)) = checked {
        let failure = Failure {
            target,
            reason,
            kept: None,
        };
        return Err(not_placed(failure, outputs, &[]));
    }
    let mut placed = Vec::with_capacity(outputs.len());
    let mut outputs = outputs.into_iter();
    while let Some(output) = outputs.next() {
        match output.place() {
            Ok(target) => placed.push(target),
            Err(failure) => return Err(not_placed(failure, outputs, &placed)),
        }
    }
    Ok(())
}

/// Keeps the outputs that are left and says where everything is.
fn not_placed(
    failure: Failure,
    rest: impl IntoIterator<Item = Finished>,
    placed: &[PathBuf],
) -> Error {
    let mut kept: Vec<PathBuf> = failure.kept.into_iter().collect();
    kept.extend(rest.into_iter().filter_map(Finished::keep));
    let list = |paths: &[PathBuf]| {
        let names: Vec<String> = paths
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        names.join(", ")
    };
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

type Placed = Result<(), (io::Error, Option<PathBuf>)>;

fn place_file(file: NamedTempFile, target: &Target) -> Placed {
    let persisted = if target.exists() {
        file.persist(target.path())
    } else {
        file.persist_noclobber(target.path())
    };
    persisted
        .map(drop)
        .map_err(|err| (in_words(err.error), keep_file(err.file, target.path())))
}

fn place_directory(made: PathBuf, target: &Target) -> Placed {
    let placed = if target.path().symlink_metadata().is_ok() {
        rename::replace(&made, target.path())
    } else {
        rename::to_new(&made, target.path())
    };
    placed.map_err(|reason| (in_words(reason), keep_directory(made, target.path())))
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

/// Names for an output that could not be put in place.
fn names_to_keep(target: &Path) -> impl Iterator<Item = PathBuf> + '_ {
    (0..100).map(|number| {
        let mut name = target.file_name().unwrap_or_default().to_owned();
        name.push(match number {
            0 => ".new".to_owned(),
            _ => format!(".{number}.new"),
        });
        target.with_file_name(name)
    })
}

fn keep_file(mut file: NamedTempFile, target: &Path) -> Option<PathBuf> {
    for name in names_to_keep(target) {
        match file.persist_noclobber(&name) {
            Ok(_) => return Some(name),
            Err(err) => file = err.file,
        }
    }
    // The temporary name is the last resort.
    let path = file.path().to_owned();
    file.keep().ok().filter(|_| path.exists()).map(|_| path)
}

fn keep_directory(made: PathBuf, target: &Path) -> Option<PathBuf> {
    for name in names_to_keep(target) {
        if rename::to_new(&made, &name).is_ok() {
            return Some(name);
        }
    }
    made.exists().then_some(made)
}

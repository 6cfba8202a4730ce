//! Renames files and directories without overwriting the files of other programs.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{identity::FileState, target::Target};

/// The extension of the temporary name that an old directory has while the new directory is renamed to the target. It
/// is used only on systems that cannot exchange two names in one step.
pub(super) const ASIDE: &str = ".old";

/// The behavior of a rename if the new name already exists: the rename fails, or it exchanges the two names.
#[derive(Copy, Clone, Debug)]
enum IfExists {
    Refuse,
    Exchange,
}

/// Renames the file or directory at `from` to `to`, which must not exist yet.
///
/// # Errors
///
/// Returns an error of kind `AlreadyExists` if something exists at `to`.
pub(super) fn to_new(from: &Path, to: &Path) -> io::Result<()> {
    if let Some(renamed) = rename_atomically(from, to, IfExists::Refuse) {
        return renamed;
    }
    if fs::symlink_metadata(from)?.is_file() {
        match fs::hard_link(from, to) {
            Ok(()) => {
                // The file has its new name now, so the rename has succeeded. If the temporary name cannot be removed,
                // the next run removes it.
                let _ = fs::remove_file(from);
                return Ok(());
            }
            Err(err) if err.kind() == io::ErrorKind::AlreadyExists => return Err(err),
            // File systems such as exFAT have no hard links.
            Err(_) => {}
        }
    }
    if FileState::of(to)?.is_some() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    fs::rename(from, to)
}

/// Renames the finished output at `temporary_path` to its target. Returns the new temporary path of the old output, or
/// `None` if there was no old output or if it was overwritten.
///
/// # Errors
///
/// Returns an error if another program has changed or replaced the target since the output was created. In this case,
/// the target remains as the other program left it.
pub(super) fn to_target(temporary_path: &Path, target: &Target) -> io::Result<Option<PathBuf>> {
    let path = &target.path;
    target.check()?;
    if FileState::of(path)?.is_none() {
        return to_new(temporary_path, path).map(|()| None);
    }
    #[cfg(test)]
    staged::act();
    let exchange = || rename_atomically(temporary_path, path, IfExists::Exchange);
    if let Some(exchanged) = exchange() {
        exchanged?;
        // Check the old output under its temporary name, because no other program writes it there.
        let unsupported = || Err(io::ErrorKind::Unsupported.into());
        target
            .check_renamed(temporary_path)
            .map_err(|reason| put_back(reason, || exchange().unwrap_or_else(unsupported)))?;
        return Ok(Some(temporary_path.to_owned()));
    }
    if !fs::symlink_metadata(temporary_path)?.is_dir() {
        return over_file(temporary_path, target);
    }
    // For a moment, neither the old nor the new output is at the target. If the run is killed then, the next run
    // restores the old output.
    let aside = temporary_path.with_extension(&ASIDE[1..]);
    to_new(path, &aside)?;
    target
        .check_renamed(&aside)
        .and_then(|()| to_new(temporary_path, path))
        .map_err(|reason| put_back(reason, || to_new(&aside, path)))?;
    Ok(Some(aside))
}

/// Replaces the target, an existing file, with the temporary file at `temporary_path`. Used on systems that cannot
/// exchange the names of two files.
///
/// If the file system supports hard links, the old file first gets a second name, which is returned. If another
/// program turns out to have changed the old file, the replacement is undone. Without hard links, the old file is
/// overwritten, and the function returns `None`.
fn over_file(temporary_path: &Path, target: &Target) -> io::Result<Option<PathBuf>> {
    let path = &target.path;
    let aside = temporary_path.with_extension(&ASIDE[1..]);
    if let Err(err) = fs::hard_link(path, &aside) {
        if err.kind() == io::ErrorKind::AlreadyExists {
            return Err(err);
        }
        return fs::rename(temporary_path, path).map(|()| None);
    }
    let renamed = fs::rename(temporary_path, path);
    let back = || {
        fs::hard_link(path, temporary_path)?;
        fs::rename(&aside, path)
    };
    match renamed.map(|()| target.check_renamed(&aside)) {
        Ok(Ok(())) => Ok(Some(aside)),
        Ok(Err(reason)) => Err(put_back(reason, back)),
        Err(err) => {
            // If the second name of the old file cannot be removed now, the next run removes it.
            let _ = fs::remove_file(&aside);
            Err(err)
        }
    }
}

/// Undoes a rename by calling `back`. Returns `reason`, the error that made this necessary. If `back` fails too,
/// appends its error to the message of `reason`.
fn put_back(reason: io::Error, back: impl FnOnce() -> io::Result<()>) -> io::Error {
    match back() {
        Ok(()) => reason,
        Err(err) => io::Error::other(format!(
            "{reason}; the old output cannot be restored: {err}"
        )),
    }
}

/// Renames the file or directory at `from` to `to` with a single atomic system call. `if_exists` determines what
/// happens if `to` exists. Returns `None` if the operating system or the file system does not support this call.
#[cfg(any(target_vendor = "apple", target_os = "linux", target_os = "android"))]
fn rename_atomically(from: &Path, to: &Path, if_exists: IfExists) -> Option<io::Result<()>> {
    use rustix::{
        fs::{CWD, RenameFlags, renameat_with},
        io::Errno,
    };
    #[cfg(test)]
    if staged::CANNOT_EXCHANGE.get() {
        return None;
    }
    let flag = match if_exists {
        IfExists::Refuse => RenameFlags::NOREPLACE,
        IfExists::Exchange => RenameFlags::EXCHANGE,
    };
    match renameat_with(CWD, from, CWD, to, flag) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => None,
        renamed => Some(renamed.map_err(io::Error::from)),
    }
}

#[cfg(not(any(target_vendor = "apple", target_os = "linux", target_os = "android")))]
fn rename_atomically(_from: &Path, _to: &Path, _if_exists: IfExists) -> Option<io::Result<()>> {
    None
}

/// Actions that tests schedule for the next exchange on their thread.
#[cfg(test)]
pub(super) mod staged {
    use std::cell::{Cell, RefCell};

    type Act = Box<dyn FnOnce()>;

    thread_local! {
        /// A function that a test sets to simulate a change by another program. It is called once, between the last
        /// check of a target and its replacement.
        pub static MEANWHILE: RefCell<Option<Act>> = const { RefCell::new(None) };
        /// `true` if tests on this thread simulate a system that cannot exchange two names in one step.
        pub static CANNOT_EXCHANGE: Cell<bool> = const { Cell::new(false) };
    }

    /// Runs the hook [`MEANWHILE`] if a test has set one. Called after the last check of a target and before the target
    /// is replaced.
    pub(super) fn act() {
        if let Some(act) = MEANWHILE.take() {
            act();
        }
    }
}

#[cfg(all(test, any(target_vendor = "apple", target_os = "linux")))]
mod tests {
    use super::*;

    #[test]
    fn a_new_name_never_replaces_a_file() {
        for cannot_exchange in [false, true] {
            staged::CANNOT_EXCHANGE.set(cannot_exchange);
            let dir = tempfile::tempdir().unwrap();
            let at = |name: &str| dir.path().join(name);
            for (name, text) in [("file", "new"), ("taken", "another's")] {
                fs::write(at(name), text).unwrap();
            }
            fs::create_dir(at("directory")).unwrap();
            for from in ["file", "directory"] {
                let err = to_new(&at(from), &at("taken")).unwrap_err();
                assert_eq!(err.kind(), io::ErrorKind::AlreadyExists);
                assert!(at(from).exists());
                assert_eq!(fs::read(at("taken")).unwrap(), b"another's");
                to_new(&at(from), &at(&format!("{from}.new"))).unwrap();
                assert!(!at(from).exists());
            }
            assert_eq!(fs::read(at("file.new")).unwrap(), b"new");
            assert!(at("directory.new").is_dir());
            staged::CANNOT_EXCHANGE.set(false);
        }
    }
}

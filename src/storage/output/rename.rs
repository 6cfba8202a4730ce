//! Renames files and directories without overwriting the files of other programs.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{identity::metadata_if_any, target::Target};

/// The extension of the temporary name of an old directory while the new directory is renamed to the target. Used only
/// on systems that cannot exchange two names in one step.
pub(super) const ASIDE: &str = ".old";

/// The behavior of a rename if the new name already exists: it fails, or it exchanges the two names.
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
    if fs::symlink_metadata(to).is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    fs::rename(from, to)
}

/// Renames the finished output at `temporary_path` to its target. A file overwrites the old file. Returns the temporary
/// path of an old directory, or `None` if there was none.
///
/// # Errors
///
/// Returns an error if nothing existed at the target when the output was created, but another program has put something
/// there since. The target then remains as the other program left it.
pub(super) fn to_target(temporary_path: &Path, target: &Target) -> io::Result<Option<PathBuf>> {
    let path = &target.path;
    if !target.exists() || metadata_if_any(path)?.is_none() {
        return to_new(temporary_path, path).map(|()| None);
    }
    if !target.is_directory() {
        return fs::rename(temporary_path, path).map(|()| None);
    }
    if let Some(exchanged) = rename_atomically(temporary_path, path, IfExists::Exchange) {
        return exchanged.map(|()| Some(temporary_path.to_owned()));
    }
    // For a moment, neither the old nor the new output is at the target. If the run is killed then, the next run
    // restores the old output.
    let aside = temporary_path.with_extension(&ASIDE[1..]);
    to_new(path, &aside)?;
    to_new(temporary_path, path).map_err(|reason| match to_new(&aside, path) {
        Ok(()) => reason,
        Err(err) => io::Error::other(format!(
            "{reason}; the old output cannot be restored: {err}"
        )),
    })?;
    Ok(Some(aside))
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
    if CANNOT_EXCHANGE.get() {
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

#[cfg(test)]
thread_local! {
    /// `true` if tests on this thread simulate a system that cannot exchange two names in one step.
    pub(super) static CANNOT_EXCHANGE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

#[cfg(all(test, any(target_vendor = "apple", target_os = "linux")))]
mod tests {
    use super::*;

    #[test]
    fn a_new_name_never_replaces_a_file() {
        for cannot_exchange in [false, true] {
            CANNOT_EXCHANGE.set(cannot_exchange);
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
            CANNOT_EXCHANGE.set(false);
        }
    }
}

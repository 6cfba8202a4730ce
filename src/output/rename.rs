//! Renames that take no name from another program's file.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{identity::FileState, target::Target};

/// The ending of an old directory that makes way for a new one, where the two cannot change places.
pub(super) const ASIDE: &str = ".old";

/// What a rename does with a name that is taken.
#[derive(Copy, Clone, Debug)]
enum Taken {
    Refuse,
    Exchange,
}

/// Renames a file or directory to a name that nothing has.
pub(super) fn to_new(from: &Path, to: &Path) -> io::Result<()> {
    if let Some(renamed) = in_one_step(from, to, Taken::Refuse) {
        return renamed;
    }
    if fs::symlink_metadata(from)?.is_file() {
        match fs::hard_link(from, to) {
            Ok(()) => {
                // The new name is there, so the rename is done. The next run removes a temporary that is left.
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

/// Gives what was made the name of its target. Answers where the old output is then, if there was one and it is still
/// there.
///
/// # Errors
///
/// What would be replaced is not what was there before: it has its name back then.
pub(super) fn to_target(made: &Path, target: &Target) -> io::Result<Option<PathBuf>> {
    let path = &target.path;
    target.check()?;
    if FileState::of(path)?.is_none() {
        return to_new(made, path).map(|()| None);
    }
    #[cfg(test)]
    let can_exchange = !staged::act();
    #[cfg(not(test))]
    let can_exchange = true;
    let exchange = || in_one_step(made, path, Taken::Exchange);
    if can_exchange && let Some(exchanged) = exchange() {
        exchanged?;
        // Only under the temporary name nobody else writes it.
        let unsupported = || Err(io::ErrorKind::Unsupported.into());
        target
            .check_renamed(made)
            .map_err(|reason| put_back(reason, || exchange().unwrap_or_else(unsupported)))?;
        return Ok(Some(made.to_owned()));
    }
    if !fs::symlink_metadata(made)?.is_dir() {
        return fs::rename(made, path).map(|()| None);
    }
    // There is a moment with neither: the next run puts back what was moved aside.
    let aside = made.with_extension(&ASIDE[1..]);
    to_new(path, &aside)?;
    target
        .check_renamed(&aside)
        .and_then(|()| to_new(made, path))
        .map_err(|reason| put_back(reason, || to_new(&aside, path)))?;
    Ok(Some(aside))
}

/// Undoes a rename; the reason for that, and what else went wrong.
fn put_back(reason: io::Error, back: impl FnOnce() -> io::Result<()>) -> io::Error {
    match back() {
        Ok(()) => reason,
        Err(err) => io::Error::other(format!("{reason}; the old one cannot be put back: {err}")),
    }
}

/// A rename as one step of the system; `None` where the system or its file system has no such step.
#[cfg(any(target_vendor = "apple", target_os = "linux", target_os = "android"))]
fn in_one_step(from: &Path, to: &Path, taken: Taken) -> Option<io::Result<()>> {
    use rustix::{
        fs::{CWD, RenameFlags, renameat_with},
        io::Errno,
    };
    let flag = match taken {
        Taken::Refuse => RenameFlags::NOREPLACE,
        Taken::Exchange => RenameFlags::EXCHANGE,
    };
    match renameat_with(CWD, from, CWD, to, flag) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => None,
        renamed => Some(renamed.map_err(io::Error::from)),
    }
}

#[cfg(not(any(target_vendor = "apple", target_os = "linux", target_os = "android")))]
fn in_one_step(_from: &Path, _to: &Path, _taken: Taken) -> Option<io::Result<()>> {
    None
}

/// What tests arrange for the next exchange of their thread.
#[cfg(test)]
pub(super) mod staged {
    use std::cell::{Cell, RefCell};

    type Act = Box<dyn FnOnce()>;

    thread_local! {
        /// What another program does between the last look at a target and the exchange.
        pub static MEANWHILE: RefCell<Option<Act>> = const { RefCell::new(None) };
        /// Whether the system is one that cannot exchange names.
        pub static CANNOT_EXCHANGE: Cell<bool> = const { Cell::new(false) };
    }

    /// Does what was arranged; returns whether names cannot be exchanged.
    pub(super) fn act() -> bool {
        if let Some(act) = MEANWHILE.take() {
            act();
        }
        CANNOT_EXCHANGE.get()
    }
}

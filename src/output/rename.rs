//! Renames that take no name from another program's file.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::before::Before;

/// The ending of an old directory that makes way for a new one, where the two cannot change places.
pub(super) const ASIDE: &str = ".old";

/// What a rename does with a name that is taken.
#[derive(Copy, Clone, Debug)]
enum Taken {
    Refuse,
    Exchange,
}

/// Renames a directory to a name that nothing has.
pub(super) fn to_new(from: &Path, to: &Path) -> io::Result<()> {
    in_one_step(from, to, Taken::Refuse).unwrap_or_else(|| {
        if to.symlink_metadata().is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        fs::rename(from, to)
    })
}

/// Exchanges the names of what was made and of what it replaces, in one step. `None` where the system or the file
/// system has no such step.
///
/// # Errors
///
/// What is replaced is not what was there before: it has its name back then.
pub(super) fn exchange(made: &Path, target: &Path, before: &Before) -> Option<io::Result<()>> {
    #[cfg(test)]
    if staged::act() {
        return None;
    }
    let exchanged = in_one_step(made, target, Taken::Exchange)?;
    // Only under the temporary name nobody else writes it.
    let checked = exchanged.and_then(|()| {
        before
            .check_renamed(made)
            .map_err(|reason| put_back(reason, || exchange_back(made, target)))
    });
    Some(checked)
}

fn exchange_back(made: &Path, target: &Path) -> io::Result<()> {
    in_one_step(made, target, Taken::Exchange)
        .unwrap_or_else(|| Err(io::ErrorKind::Unsupported.into()))
}

/// Puts a directory in the place of another; answers where that one is then. Where names cannot be exchanged, there is
/// a moment with neither: the next run puts back what was moved aside.
pub(super) fn replace(made: &Path, target: &Path, before: &Before) -> io::Result<PathBuf> {
    match exchange(made, target, before) {
        Some(exchanged) => exchanged.map(|()| made.to_owned()),
        None => replace_in_steps(made, target, before),
    }
}

/// Moves the old directory aside first, and back if the new one cannot take its place.
fn replace_in_steps(made: &Path, target: &Path, before: &Before) -> io::Result<PathBuf> {
    let aside = made.with_extension(&ASIDE[1..]);
    to_new(target, &aside)?;
    before
        .check_renamed(&aside)
        .and_then(|()| to_new(made, target))
        .map_err(|reason| put_back(reason, || to_new(&aside, target)))?;
    Ok(aside)
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

    /// Does what was arranged; answers whether names cannot be exchanged.
    pub(super) fn act() -> bool {
        if let Some(act) = MEANWHILE.take() {
            act();
        }
        CANNOT_EXCHANGE.get()
    }
}

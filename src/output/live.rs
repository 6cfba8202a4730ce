//! The temporaries of this process, so that a program that a signal ends leaves none.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::error::{Error, Result};

static LIVE: Mutex<Live> = Mutex::new(Live {
    paths: BTreeSet::new(),
    is_closed: false,
});

/// Held while outputs are put in place.
static COMMIT: Mutex<()> = Mutex::new(());

struct Live {
    paths: BTreeSet<PathBuf>,
    /// Set when the process is about to end: nothing is begun or put in place any more.
    is_closed: bool,
}

/// Locks the list. A thread that panicked with the lock cannot have left it half changed.
fn live() -> MutexGuard<'static, Live> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes all unfinished outputs of this process and prevents that any other is begun or put in place. For
/// a program that a signal ends: afterwards it can exit at any point.
///
/// A commit that is under way is completed first.
pub fn discard_all() {
    let _commit = COMMIT.lock().unwrap_or_else(PoisonError::into_inner);
    let mut live = live();
    live.is_closed = true;
    for path in std::mem::take(&mut live.paths) {
        if path.is_dir() {
            // Other threads may still add files; without the directory they fail.
            for _ in 0..100 {
                if fs::remove_dir_all(&path).is_ok() || !path.exists() {
                    break;
                }
            }
        } else {
            // One that cannot be removed is left for the next run.
            let _ = fs::remove_file(&path);
        }
    }
}

/// Keeps [`discard_all`] out while outputs are put in place.
pub(super) struct Commit {
    _lock: MutexGuard<'static, ()>,
}

impl Commit {
    /// # Errors
    ///
    /// [`Error::Interrupted`] if the process is about to end.
    pub(super) fn begin() -> Result<Commit> {
        let lock = COMMIT.lock().unwrap_or_else(PoisonError::into_inner);
        if live().is_closed {
            return Err(Error::Interrupted);
        }
        Ok(Commit { _lock: lock })
    }
}

/// Holds the list while a temporary is created, so that none is missing from it.
pub(super) struct Registering {
    live: MutexGuard<'static, Live>,
}

impl Registering {
    pub(super) fn begin() -> Registering {
        Registering { live: live() }
    }

    /// Enters the temporary that was created.
    ///
    /// # Errors
    ///
    /// [`Error::Interrupted`] if the process is about to end.
    pub(super) fn enter(mut self, path: &Path) -> Result<Registered> {
        if self.live.is_closed {
            return Err(Error::Interrupted);
        }
        self.live.paths.insert(path.to_owned());
        Ok(Registered {
            path: path.to_owned(),
        })
    }
}

/// The entry of a temporary in the list.
#[derive(Debug)]
pub(super) struct Registered {
    path: PathBuf,
}

impl Drop for Registered {
    fn drop(&mut self) {
        live().paths.remove(&self.path);
    }
}

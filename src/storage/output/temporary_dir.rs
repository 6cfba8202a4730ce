//! Temporary directories for files that a run needs but that are not outputs.

use std::{
    fs::{self, Metadata},
    path::Path,
    time::Duration,
};

use tempfile::Builder;

use super::{
    claim,
    temporary::{RANDOM, Temporary, is_temporary, with_mode},
};
use crate::error::Result;

// The prefix and the suffix of the names of temporary directories.
const PREFIX: &str = "polybook-temporary-";
const SUFFIX: &str = ".tmp";

/// The age after which a temporary directory counts as abandoned if it is not marked as in use. A process marks a
/// directory shortly after creating it, so a younger directory may belong to a process that is still running.
const UNCLAIMED: Duration = Duration::from_secs(60);

/// The access rights of a temporary directory. Only the owner has access, because the directory may contain private
/// games.
const OWNER_ONLY: u32 = 0o700;

/// A temporary directory of this process. It is removed when the value is dropped. If a signal ends the process,
/// [`discard_all`](super::discard_all) removes it. If the process is killed, the next process of polybook that creates
/// a temporary directory in the same parent directory removes it.
#[derive(Debug)]
pub struct TemporaryDir(Temporary);

impl TemporaryDir {
    /// Creates a temporary directory in `parent`. Also tries to remove temporary directories that killed processes have
    /// left in `parent`.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory cannot be created, and [`Error::Interrupted`](crate::Error::Interrupted) if
    /// the process is about to end.
    pub fn new_in(parent: &Path) -> Result<TemporaryDir> {
        let mut builder = Builder::new();
        builder.prefix(PREFIX).suffix(SUFFIX).rand_bytes(RANDOM);
        with_mode(&mut builder, OWNER_ONLY);
        let made = Temporary::create(
            &builder,
            parent,
            true,
            (parent, "make a temporary directory in"),
        )?;
        remove_left_behind(parent, made.path());
        Ok(TemporaryDir(made))
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

/// Removes the temporary directories in `parent` that killed processes of this user have left. Keeps `own`, the
/// temporary directory of this process.
fn remove_left_behind(parent: &Path, own: &Path) {
    let Ok(own) = own.metadata() else {
        return;
    };
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        // These are the metadata of the entry itself, even if it is a link.
        let may_be_left = is_temporary(name.as_encoded_bytes(), PREFIX.as_ref(), SUFFIX)
            && entry
                .metadata()
                .is_ok_and(|found| is_as_own(&found, &own) && was_claimed(&path, &found));
        if may_be_left && let Ok(Some(_claim)) = claim::left_behind(&path, true) {
            // The system cleans the parent directory too, so a directory that cannot be removed is left.
            let _ = fs::remove_dir_all(&path);
        }
    }
}

/// Returns `true` if `found` describes a directory that belongs to the owner of `own` and that only this owner can
/// access.
fn is_as_own(found: &Metadata, own: &Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        if found.uid() != own.uid() || found.mode() & 0o777 != OWNER_ONLY {
            return false;
        }
    }
    #[cfg(not(unix))]
    let _ = own;
    found.is_dir()
}

/// Returns `true` if the process that created a temporary directory must have had time to mark it as in use. This is
/// the case if the directory contains a file, because files are created only after marking, or if the directory is
/// older than [`UNCLAIMED`]. `found` is the metadata of the directory.
fn was_claimed(path: &Path, found: &Metadata) -> bool {
    let age = found.modified().ok().and_then(|time| time.elapsed().ok());
    fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some())
        || age.is_some_and(|age| age > UNCLAIMED)
}

#[cfg(all(test, unix))]
mod tests {
    use std::{
        fs::{DirBuilder, File, Permissions},
        os::unix::fs::{DirBuilderExt, PermissionsExt, symlink},
        time::SystemTime,
    };

    use super::*;

    #[test]
    fn only_what_a_run_left_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let parent = dir.path();
        let make = |name: &str| {
            let path = parent.join(name);
            DirBuilder::new().mode(0o700).create(&path).unwrap();
            path
        };
        let fill = |path: &Path| fs::write(path.join("games"), "1. e4 *").unwrap();
        let living = TemporaryDir::new_in(parent).unwrap();
        let full = make("polybook-temporary-AbCd1234.tmp");
        let old = make("polybook-temporary-AbCd1235.tmp");
        let young = make("polybook-temporary-AbCd1236.tmp");
        let shared = make("polybook-temporary-AbCd1237.tmp");
        let backups = make("polybook-temporary-my-games.tmp");
        let theirs = make("theirs");
        let link = parent.join("polybook-temporary-AbCd1238.tmp");
        symlink(&theirs, &link).unwrap();
        symlink(&theirs, full.join("link")).unwrap();
        for path in [living.path(), &full, &shared, &backups, &theirs] {
            fill(path);
        }
        fs::set_permissions(&shared, Permissions::from_mode(0o755)).unwrap();
        let time = SystemTime::now() - 2 * UNCLAIMED;
        File::open(&old).unwrap().set_modified(time).unwrap();

        let new = TemporaryDir::new_in(parent).unwrap();
        let mode = new.path().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        assert!(!full.exists() && !old.exists());
        assert!(young.exists() && link.exists());
        for path in [living.path(), &shared, &backups, &theirs] {
            assert!(path.join("games").exists(), "{}", path.display());
        }
        let path = new.path().to_owned();
        fill(&path);
        drop(new);
        assert!(!path.exists());
    }
}

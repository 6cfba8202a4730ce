//! Indexes that are made of PGN files to be served, and found again next time.

use std::{
    fs::{self, DirBuilder},
    path::{Path, PathBuf},
};

use super::hash;
use crate::{
    MakeBook,
    error::{At, Error, Result},
    index::{is_index, remove},
    output::{TemporaryDir, claim_left_behind},
    pgn::Input,
    position::VariantChoice,
};

/// Changes with the contents of indexes, so that those of an older version are made again.
const GENERATION: u32 = 8;

/// A directory of indexes, each named by its PGN file and what that was like.
#[derive(Debug)]
pub struct Cache {
    directory: PathBuf,
    /// Removes a temporary directory.
    _temporary: Option<TemporaryDir>,
}

/// The place of the index of one PGN file as it is now.
#[derive(Clone, Debug)]
pub struct CachedIndex {
    pgn: PathBuf,
    path: PathBuf,
    /// What the names of all indexes of the file begin with.
    prefix: String,
}

impl Cache {
    /// A cache in a directory. A new directory is readable by its owner only.
    ///
    /// # Errors
    ///
    /// A directory that cannot be made.
    pub fn new(directory: impl Into<PathBuf>) -> Result<Cache> {
        let directory = directory.into();
        let mut builder = DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        let created = builder.recursive(true).create(&directory);
        created.at(&directory, "create")?;
        Ok(Cache {
            directory,
            _temporary: None,
        })
    }

    /// A cache for one run, in a temporary directory that goes with it.
    ///
    /// # Errors
    ///
    /// A directory that cannot be made.
    pub fn temporary() -> Result<Cache> {
        let directory = TemporaryDir::new_in(&std::env::temp_dir())?;
        Ok(Cache {
            directory: directory.path().to_owned(),
            _temporary: Some(directory),
        })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.directory
    }

    /// Where the index of a file is, or is to be made: another place for every path, size and time of the file.
    ///
    /// # Errors
    ///
    /// A file that is not there.
    pub fn of(&self, pgn: &Path) -> Result<CachedIndex> {
        let pgn = fs::canonicalize(pgn).at(pgn, "open")?;
        let metadata = pgn.metadata().at(&pgn, "open")?;
        // A file system without times shows changes by the size alone.
        let state = (
            metadata.len(),
            metadata.modified().ok(),
            GENERATION,
            env!("CARGO_PKG_VERSION"),
        );
        let prefix = format!("{:016x}-", hash(&pgn));
        let path = self
            .directory
            .join(format!("{prefix}{:016x}", hash(&state)));
        Ok(CachedIndex { pgn, path, prefix })
    }
}

impl CachedIndex {
    /// The directory of the index.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it has been made. It may be damaged all the same.
    pub fn is_made(&self) -> bool {
        is_index(&self.path).unwrap_or(false)
    }

    /// Removes a damaged index or the rest of one, if there is any. It stays if it `is_sound` by now,
    /// because another server has made it in the meantime.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] while another server removes it. Files that cannot be removed, or that are not of an index.
    pub fn remove_unless(&self, is_sound: impl FnOnce() -> bool) -> Result<()> {
        let _claim = match claim_left_behind(&self.path, true) {
            Ok(None) => {
                let path = self.path.clone();
                return Err(Error::Busy { path });
            }
            // Where nothing can be locked, looking again has to do.
            claim => claim.ok(),
        };
        match self.path.exists() && !is_sound() {
            true => remove(&self.path),
            false => Ok(()),
        }
    }

    /// The run that makes it, of games of all variants.
    pub fn make(&self) -> MakeBook {
        MakeBook::new([Input::file(&self.pgn)])
            .variant(VariantChoice::Auto)
            .explorer(true)
            .leveldb(&self.path)
    }

    /// Removes indexes of what the file was before, as far as they can be removed; one that is damaged stays. A server
    /// that has one open goes on answering from it.
    pub fn remove_older(&self) {
        let directory = self.path.parent().unwrap_or(&self.path);
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_older = entry.file_name().to_string_lossy().starts_with(&self.prefix)
                && path != self.path
                // What a link leads to was not made here.
                && entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_older && is_index(&path).unwrap_or(false) {
                // An old index that cannot be removed now is left for the next server.
                let _ = remove(&path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_found_again_until_its_file_changes() {
        let dir = tempfile::tempdir().unwrap();
        let pgn = dir.path().join("games.pgn");
        fs::copy("data/famous.pgn", &pgn).unwrap();
        let cache = Cache::new(dir.path().join("cache/polybook")).unwrap();
        let first = cache.of(&pgn).unwrap();
        assert!(!first.is_made());
        first.make().run().unwrap();
        assert!(cache.of(&pgn).unwrap().is_made());

        fs::write(&pgn, fs::read_to_string("data/selfplay.pgn").unwrap()).unwrap();
        let second = cache.of(&pgn).unwrap();
        assert!(!second.is_made());
        second.make().run().unwrap();
        second.remove_older();
        assert!(second.is_made() && !first.is_made());
        assert!(cache.of(&dir.path().join("none.pgn")).is_err());
    }

    #[test]
    fn an_older_index_with_other_files_is_kept_and_so_is_one_elsewhere() {
        let dir = tempfile::tempdir().unwrap();
        let pgn = dir.path().join("games.pgn");
        fs::copy("data/famous.pgn", &pgn).unwrap();
        let cache = Cache::new(dir.path().join("cache")).unwrap();
        let first = cache.of(&pgn).unwrap();
        first.make().run().unwrap();
        fs::write(first.path().join("thesis.txt"), "mine").unwrap();
        fs::write(&pgn, "[Event \"a\"]\n\n1. e4 *\n").unwrap();
        let second = cache.of(&pgn).unwrap();
        let count = || fs::read_dir(first.path()).unwrap().count();
        let files = count();
        second.remove_older();
        assert_eq!(count(), files);

        #[cfg(unix)]
        {
            fs::remove_file(first.path().join("thesis.txt")).unwrap();
            let elsewhere = dir.path().join("elsewhere");
            fs::rename(first.path(), &elsewhere).unwrap();
            std::os::unix::fs::symlink(&elsewhere, first.path()).unwrap();
            second.remove_older();
            assert!(is_index(&elsewhere).unwrap());
        }
    }

    #[test]
    fn what_is_left_of_an_index_is_removed_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let pgn = dir.path().join("games.pgn");
        fs::copy("data/famous.pgn", &pgn).unwrap();
        let cache = Cache::new(dir.path().join("cache")).unwrap();
        let index = cache.of(&pgn).unwrap();
        index.remove_unless(|| index.is_made()).unwrap();
        index.make().run().unwrap();
        fs::remove_file(index.path().join("CURRENT")).unwrap();
        fs::write(index.path().join("thesis.txt"), "mine").unwrap();
        index.remove_unless(|| index.is_made()).unwrap_err();
        assert!(index.path().join("thesis.txt").exists());
        fs::remove_file(index.path().join("thesis.txt")).unwrap();
        index.remove_unless(|| index.is_made()).unwrap();
        index.make().run().unwrap();
        assert!(index.is_made());
        // Another server was faster, or is at it.
        index.remove_unless(|| index.is_made()).unwrap();
        assert!(index.is_made());
        let claim = claim_left_behind(index.path(), true).unwrap().unwrap();
        let busy = index.remove_unless(|| false).unwrap_err();
        assert!(matches!(busy, Error::Busy { .. }) && index.is_made());
        drop(claim);
        index.remove_unless(|| false).unwrap();
        assert!(!index.path().exists());
    }
}

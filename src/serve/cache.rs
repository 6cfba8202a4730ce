//! Indexes that are made of PGN files to be served, and found again next time.

use std::{
    fs::{self, File},
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
};

use tempfile::TempDir;

use crate::{
    MakeBook,
    error::{At, Result},
    index::{is_index, remove},
    output::{claim_directory, claim_left_behind},
    pgn::Input,
    position::VariantChoice,
};

/// Changes with what the indexes hold, so that those of an older version are made again.
const GENERATION: u32 = 3;

/// A directory of indexes, each named by its PGN file and what that was like.
#[derive(Clone, Debug)]
pub struct Cache {
    directory: PathBuf,
}

/// A cache for one run, in a temporary directory that goes with it. Where the run is killed, the next one removes it.
#[derive(Debug)]
pub struct TemporaryCache {
    cache: Cache,
    /// Says that the run lives. Windows does not remove a directory that is open, so this is closed first.
    _claim: File,
    directory: TempDir,
}

/// What the names of temporary caches begin with.
const TEMPORARY: &str = "polybook-serve-";

impl TemporaryCache {
    /// Makes the directory, and removes those of runs that were killed.
    ///
    /// # Errors
    ///
    /// A directory that cannot be made.
    pub fn new() -> Result<TemporaryCache> {
        let parent = std::env::temp_dir();
        remove_abandoned(&parent);
        let directory = tempfile::Builder::new()
            .prefix(TEMPORARY)
            .tempdir_in(&parent);
        let directory = directory.at(&parent, "create a directory in")?;
        Ok(TemporaryCache {
            _claim: claim_directory(directory.path()).at(directory.path(), "open")?,
            cache: Cache::new(directory.path())?,
            directory,
        })
    }

    /// The cache.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// Removes the temporary caches of runs that were killed, as far as they can be removed.
fn remove_abandoned(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let random = name.as_encoded_bytes().strip_prefix(TEMPORARY.as_bytes());
        let is_ours = random.is_some_and(|random| random.iter().all(u8::is_ascii_alphanumeric));
        if is_ours && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            // What cannot be removed is left for the system, which cleans the directory too.
            let _ = remove_cache(&entry.path());
        }
    }
}

/// Removes the indexes of a temporary cache and its directory, unless its run lives or something else is in it.
fn remove_cache(path: &Path) -> Result<()> {
    let Some(_claim) = claim_left_behind(path, true).at(path, "open")? else {
        return Ok(());
    };
    for entry in fs::read_dir(path).at(path, "read")? {
        remove(&entry.at(path, "read")?.path())?;
    }
    fs::remove_dir(path).at(path, "remove")
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
    /// A cache in a directory, which is made.
    ///
    /// # Errors
    ///
    /// A directory that cannot be made.
    pub fn new(directory: impl Into<PathBuf>) -> Result<Cache> {
        let directory = directory.into();
        fs::create_dir_all(&directory).at(&directory, "create")?;
        Ok(Cache { directory })
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

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
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

    /// Removes a damaged index or what is left of one, if there is anything.
    ///
    /// # Errors
    ///
    /// Files that cannot be removed, or that are not of an index.
    pub fn remove(&self) -> Result<()> {
        match self.path.exists() {
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

    /// Removes indexes of what the file was before. A server that has one open goes on answering from it.
    ///
    /// # Errors
    ///
    /// A directory that cannot be read, or an index that cannot be removed.
    pub fn remove_older(&self) -> Result<()> {
        let directory = self.path.parent().unwrap_or(&self.path);
        for entry in fs::read_dir(directory).at(directory, "read")? {
            let path = entry.at(directory, "read")?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with(&self.prefix) && path != self.path && is_index(&path)? {
                remove(&path)?;
            }
        }
        Ok(())
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
        second.remove_older().unwrap();
        assert!(second.is_made() && !first.is_made());
        assert!(cache.of(&dir.path().join("none.pgn")).is_err());
    }

    #[test]
    fn what_is_left_of_an_index_is_removed_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let pgn = dir.path().join("games.pgn");
        fs::copy("data/famous.pgn", &pgn).unwrap();
        let cache = Cache::new(dir.path().join("cache")).unwrap();
        let index = cache.of(&pgn).unwrap();
        index.remove().unwrap();
        index.make().run().unwrap();
        fs::remove_file(index.path().join("CURRENT")).unwrap();
        fs::write(index.path().join("thesis.txt"), "mine").unwrap();
        index.remove().unwrap_err();
        assert!(index.path().join("thesis.txt").exists());
        fs::remove_file(index.path().join("thesis.txt")).unwrap();
        index.remove().unwrap();
        index.make().run().unwrap();
        assert!(index.is_made());
    }
}

//! Indexes that are made of PGN files to be served, and found again next time.

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
};

use crate::{
    MakeBook,
    error::{At, Result},
    index::is_index,
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

    /// Whether it has been made.
    pub fn is_made(&self) -> bool {
        is_index(&self.path).unwrap_or(false)
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
                fs::remove_dir_all(&path).at(&path, "remove")?;
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
}

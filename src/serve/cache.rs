//! A cache of indexes that were made from PGN files, so that a later server can reuse them.

use std::{
    fs::{self, DirBuilder, Metadata},
    path::{Path, PathBuf},
};

use super::hash;
use crate::{
    MakeBook,
    error::{At, Error, Result},
    explorer::Explorer,
    index::{is_index, remove, remove_unfinished},
    pgn::Input,
    position::{Variant, VariantChoice},
    storage::output::{FileId, TemporaryDir, claim_abandoned, is_absent},
};

/// The version of the contents of cached indexes. It must be increased when the contents change. Indexes of a lower
/// version are then rebuilt.
const GENERATION: u32 = 12;

/// A directory of indexes that were built from PGN files. The name of an index contains two hashes: one of the path of
/// its PGN file, and one of the state of this file.
#[derive(Debug)]
pub struct Cache {
    directory: PathBuf,
    /// Removes the directory when dropped, if it is temporary.
    _temporary: Option<TemporaryDir>,
}

/// The location of the cached index of a PGN file in its current state. The index need not exist.
#[derive(Clone, Debug)]
pub struct CachedIndex {
    pgn: PathBuf,
    path: PathBuf,
    /// The prefix of the names of all indexes of this file, including those of older states.
    prefix: String,
    /// The variant of games without a `Variant` tag.
    untagged: Variant,
}

impl Cache {
    /// Opens the cache in a directory, and creates the directory if it does not exist. Only the owner can read a new
    /// directory.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory cannot be created.
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

    /// Creates an empty cache in a temporary directory, which is removed when the cache is dropped.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory cannot be created.
    pub fn temporary() -> Result<Cache> {
        let directory = TemporaryDir::new_in(&std::env::temp_dir())?;
        Ok(Cache {
            directory: directory.path().to_owned(),
            _temporary: Some(directory),
        })
    }

    /// Returns the path of the cache's directory.
    pub fn path(&self) -> &Path {
        &self.directory
    }

    /// Returns the location of the index of a PGN file. It depends on the path, the size and the times of the file, and
    /// on `untagged`, the variant of games without a `Variant` tag. The times are the modification time and, on Unix, the
    /// time of the last change of status, which changes even if a program writes the file and restores its modification
    /// time.
    ///
    /// # Errors
    ///
    /// Returns an error if the file does not exist.
    pub fn of(&self, pgn: &Path, untagged: Variant) -> Result<CachedIndex> {
        CachedIndex::in_directory(&self.directory, pgn, untagged)
    }
}

impl CachedIndex {
    /// Returns the location of the index of a PGN file in the cache `directory`, like [`Cache::of`].
    fn in_directory(directory: &Path, pgn: &Path, untagged: Variant) -> Result<CachedIndex> {
        let pgn = fs::canonicalize(pgn).at(pgn, "open")?;
        let metadata = pgn.metadata().at(&pgn, "open")?;
        // If the file system has no times, only a change of the size is noticed.
        let state = (
            metadata.len(),
            metadata.modified().ok(),
            changed(&metadata),
            GENERATION,
            env!("CARGO_PKG_VERSION"),
            untagged,
        );
        // An index of the same file with another variant is kept, because it is not an older one.
        let prefix = match untagged {
            Variant::Standard => format!("{:016x}-", hash(&pgn)),
            _ => format!("{:016x}-", hash(&(&pgn, untagged))),
        };
        let path = directory.join(format!("{prefix}{:016x}", hash(&state)));
        Ok(CachedIndex {
            pgn,
            path,
            prefix,
            untagged,
        })
    }

    /// Returns the path of the index's directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns `true` if an index exists at the location. The index may be damaged.
    ///
    /// # Errors
    ///
    /// Returns an error if the operating system cannot tell whether the index exists.
    pub fn is_made(&self) -> Result<bool> {
        Ok(unless_damaged(is_index(&self.path))?.unwrap_or(false))
    }

    /// Returns `true` if the index exists and can be opened.
    ///
    /// # Errors
    ///
    /// Returns an error if the operating system does not allow this process to read the index, for example because too
    /// many files are open. Such an error does not mean that the index is damaged.
    pub fn is_sound(&self) -> Result<bool> {
        let opened = Explorer::open([(String::new(), self.path.clone())]);
        Ok(unless_damaged(opened)?.is_some())
    }

    /// Removes a damaged or incomplete index. Does nothing if no index exists, or if `is_sound` returns `true`, for
    /// example if another server has rebuilt the index meanwhile.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Busy`] while another server removes the index, the error of `is_sound`, or an error if a file
    /// cannot be removed or does not belong to an index.
    pub fn remove_unless(&self, is_sound: impl FnOnce() -> Result<bool>) -> Result<()> {
        let _claim = match claim_abandoned(&self.path, true) {
            Ok(None) => {
                let path = self.path.clone();
                return Err(Error::Busy { path });
            }
            // If locking is not possible, checking again has to suffice.
            claim => claim.ok(),
        };
        let is_absent = FileId::of(&self.path).at(&self.path, "open")?.is_none();
        match is_absent || is_sound()? {
            true => Ok(()),
            false => remove(&self.path),
        }
    }

    /// Returns a [`MakeBook`] that builds the index of the PGN file when it is run. The index contains games of all
    /// variants.
    pub fn make(&self) -> MakeBook {
        MakeBook::new([Input::file(&self.pgn).with_untagged_variant(self.untagged)])
            .variant(VariantChoice::Auto)
            .explorer(&self.path)
    }

    /// Returns the name of the index of an earlier state of the PGN file if `name` is the temporary name of this index
    /// while it is built: a dot, the name of the index, a dot, random characters and an ending. Otherwise returns `None`.
    fn older_unfinished<'n>(&self, name: &'n str) -> Option<&'n str> {
        let (older, _) = name.strip_prefix('.')?.split_once('.')?;
        let is_older = older.starts_with(&self.prefix) && self.path.file_name()? != older;
        is_older.then_some(older)
    }

    /// Removes the indexes of earlier states of the PGN file, and the incomplete ones that killed processes have left.
    /// Ignores errors, and keeps damaged indexes. Another server that has an index open can continue to use it.
    ///
    /// Removes nothing if the PGN file has changed since this location was determined, or cannot be examined, because
    /// another process may have made the index of its current state.
    pub fn remove_older(&self) {
        let directory = self.path.parent().unwrap_or(&self.path);
        let current = CachedIndex::in_directory(directory, &self.pgn, self.untagged);
        // If the file cannot be examined, the index of its current state is not known.
        if !current.is_ok_and(|current| current.path == self.path) {
            return;
        }
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            if let Some(older) = self.older_unfinished(&name) {
                // An index that another process is building, or that contains other files, stays.
                let _ = remove_unfinished(&directory.join(older));
            }
            let is_older = name.starts_with(&self.prefix)
                && path != self.path
                // Do not follow links, because their targets were not created by a cache.
                && entry.file_type().is_ok_and(|kind| kind.is_dir());
            // An index that cannot be read stays.
            if is_older && is_index(&path).unwrap_or(false) {
                // The next server can remove an index that cannot be removed now.
                let _ = remove(&path);
            }
        }
    }
}

/// Returns the time at which the content, the rights or the name of a file last changed, in seconds and nanoseconds.
#[cfg(unix)]
fn changed(metadata: &Metadata) -> Option<(i64, i64)> {
    use std::os::unix::fs::MetadataExt;
    Some((metadata.ctime(), metadata.ctime_nsec()))
}

/// Always returns `None`, because other systems do not have the time of the last change of status.
#[cfg(not(unix))]
fn changed(_metadata: &Metadata) -> Option<(i64, i64)> {
    None
}

/// Converts the error for a damaged or incomplete index to `None`. Returns a value as `Some`.
///
/// # Errors
///
/// Returns an error of the operating system unchanged, because it does not mean that the index is damaged.
fn unless_damaged<T>(opened: Result<T>) -> Result<Option<T>> {
    match opened {
        Err(Error::Io { source, .. }) if is_absent(&source) => Ok(None),
        Err(err @ Error::Io { .. }) => Err(err),
        opened => Ok(opened.ok()),
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
        let first = cache.of(&pgn, Variant::Standard).unwrap();
        assert!(!first.is_made().unwrap());
        first.make().run().unwrap();
        assert!(
            cache
                .of(&pgn, Variant::Standard)
                .unwrap()
                .is_made()
                .unwrap()
        );

        fs::write(&pgn, fs::read_to_string("data/selfplay.pgn").unwrap()).unwrap();
        let second = cache.of(&pgn, Variant::Standard).unwrap();
        assert!(!second.is_made().unwrap());
        second.make().run().unwrap();
        second.remove_older();
        assert!(second.is_made().unwrap() && !first.is_made().unwrap());
        // A process that has made the index of the earlier state must not remove the index of the current one.
        first.remove_older();
        assert!(second.is_made().unwrap());
        assert!(
            cache
                .of(&dir.path().join("none.pgn"), Variant::Standard)
                .is_err()
        );
    }

    /// A program may write a file and restore its modification time, as `touch -r` does.
    #[cfg(unix)]
    #[test]
    fn a_file_of_the_old_size_and_time_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let pgn = dir.path().join("games.pgn");
        fs::write(&pgn, "[Event \"a\"]\n\n1. e4 *\n").unwrap();
        let cache = Cache::new(dir.path().join("cache")).unwrap();
        let first = cache.of(&pgn, Variant::Standard).unwrap();
        let before = pgn.metadata().unwrap();
        // The clock of file systems ticks a few hundred times a second.
        while changed(&pgn.metadata().unwrap()) == changed(&before) {
            fs::write(&pgn, "[Event \"a\"]\n\n1. d4 *\n").unwrap();
            let file = fs::File::options().write(true).open(&pgn).unwrap();
            file.set_modified(before.modified().unwrap()).unwrap();
        }
        let after = pgn.metadata().unwrap();
        assert_eq!(
            (after.len(), after.modified().unwrap()),
            (before.len(), before.modified().unwrap())
        );
        let second = cache.of(&pgn, Variant::Standard).unwrap();
        assert_ne!(second.path(), first.path());
    }

    #[test]
    fn unfinished_indexes_of_an_earlier_state_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let pgn = dir.path().join("games.pgn");
        let cache = Cache::new(dir.path().join("cache")).unwrap();
        // Returns the directory that a process leaves if it is killed while it builds the index.
        let unfinished = |text: &str, random: &str| {
            fs::write(&pgn, text).unwrap();
            let index = cache.of(&pgn, Variant::Standard).unwrap();
            let name = index.path().file_name().unwrap().to_str().unwrap();
            let part = cache.path().join(format!(".{name}.{random}.part"));
            fs::create_dir(&part).unwrap();
            fs::write(part.join("000003.ldb"), "half").unwrap();
            part
        };
        let left = unfinished("[Event \"a\"]\n\n1. e4 *\n", "AbCd1234");
        let held = unfinished("[Event \"a\"]\n\n1. e4 e5 *\n", "AbCd1234");
        let full = unfinished("[Event \"a\"]\n\n1. e4 e5 2. Nf3 *\n", "AbCd1234");
        fs::write(full.join("thesis.txt"), "mine").unwrap();
        let other = cache.path().join(".other.AbCd1234.part");
        fs::create_dir(&other).unwrap();
        let claim = claim_abandoned(&held, true).unwrap().unwrap();
        fs::write(&pgn, "[Event \"a\"]\n\n1. d4 *\n").unwrap();
        let current = cache.of(&pgn, Variant::Standard).unwrap();
        current.make().run().unwrap();
        current.remove_older();
        assert!(!left.exists());
        assert!(held.join("000003.ldb").exists() && full.join("thesis.txt").exists());
        assert!(other.exists() && current.is_made().unwrap());
        drop(claim);
        current.remove_older();
        assert!(!held.exists());
    }

    #[test]
    fn an_older_index_with_other_files_is_kept_and_so_is_one_elsewhere() {
        let dir = tempfile::tempdir().unwrap();
        let pgn = dir.path().join("games.pgn");
        fs::copy("data/famous.pgn", &pgn).unwrap();
        let cache = Cache::new(dir.path().join("cache")).unwrap();
        let first = cache.of(&pgn, Variant::Standard).unwrap();
        first.make().run().unwrap();
        fs::write(first.path().join("thesis.txt"), "mine").unwrap();
        fs::write(&pgn, "[Event \"a\"]\n\n1. e4 *\n").unwrap();
        let second = cache.of(&pgn, Variant::Standard).unwrap();
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
    fn only_the_remains_of_an_index_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let pgn = dir.path().join("games.pgn");
        fs::copy("data/famous.pgn", &pgn).unwrap();
        let cache = Cache::new(dir.path().join("cache")).unwrap();
        let index = cache.of(&pgn, Variant::Standard).unwrap();
        index.remove_unless(|| index.is_made()).unwrap();
        index.make().run().unwrap();
        fs::remove_file(index.path().join("CURRENT")).unwrap();
        fs::write(index.path().join("thesis.txt"), "mine").unwrap();
        index.remove_unless(|| index.is_made()).unwrap_err();
        assert!(index.path().join("thesis.txt").exists());
        fs::remove_file(index.path().join("thesis.txt")).unwrap();
        index.remove_unless(|| index.is_made()).unwrap();
        index.make().run().unwrap();
        assert!(index.is_made().unwrap());
        // Another server has made the index, or is making it.
        index.remove_unless(|| index.is_made()).unwrap();
        assert!(index.is_made().unwrap());
        let claim = claim_abandoned(index.path(), true).unwrap().unwrap();
        let busy = index.remove_unless(|| Ok(false)).unwrap_err();
        assert!(matches!(busy, Error::Busy { .. }) && index.is_made().unwrap());
        drop(claim);
        index.remove_unless(|| Ok(false)).unwrap();
        assert!(!index.path().exists());
    }

    #[cfg(unix)]
    #[test]
    fn an_error_of_the_system_is_not_taken_for_damage() {
        let dir = tempfile::tempdir().unwrap();
        let pgn = dir.path().join("games.pgn");
        fs::copy("data/famous.pgn", &pgn).unwrap();
        let index = Cache::new(dir.path().join("cache"))
            .unwrap()
            .of(&pgn, Variant::Standard)
            .unwrap();
        index.make().run().unwrap();
        assert!(index.is_sound().unwrap());
        // A link to itself is an error for every user, the administrator too.
        let (current, kept) = (index.path().join("CURRENT"), dir.path().join("kept"));
        fs::rename(&current, &kept).unwrap();
        std::os::unix::fs::symlink("CURRENT", &current).unwrap();
        assert!(index.is_made().is_err());
        assert!(index.is_sound().is_err());
        index.remove_unless(|| index.is_made()).unwrap_err();
        fs::rename(&kept, &current).unwrap();
        assert!(index.is_sound().unwrap());
    }
}

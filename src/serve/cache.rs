//! Caches indexes that were built from PGN files, so that later runs of the program can use them.

use std::{
    fs::{self, DirBuilder, Metadata},
    path::{Path, PathBuf},
};

use super::hash;
use crate::{
    MakeBook,
    chess::position::{Variant, VariantChoice},
    error::{At, Error, Result},
    explore::explorer::Explorer,
    formats::index::{Index, IndexKind, is_index, remove, remove_unfinished},
    games::{pgn::Input, results::MEASURES},
    storage::output::{FileId, TemporaryDir, canonical, claim_abandoned, is_absent},
};

/// The version of the content of cached indexes. Increase it when this content changes, so that indexes cached by older
/// versions of polybook are rebuilt.
const GENERATION: u32 = 14;

/// A directory of indexes that were built from PGN files. The name of an index contains a hash of the path of its PGN
/// file, and a hash of everything whose change requires a new index, such as the size and the times of the PGN file and
/// the version of polybook. Renaming a finished index to this name therefore also marks it as current.
#[derive(Debug)]
pub struct Cache {
    directory: PathBuf,
    /// The temporary directory, which is removed when the cache is dropped. `None` if the directory is permanent.
    _temporary: Option<TemporaryDir>,
}

/// The index of a PGN file in a [`Cache`], which may not have been built yet. Its path depends on the size and the
/// times of the PGN file, so that a changed file gets a new index.
#[derive(Clone, Debug)]
pub struct CachedIndex {
    pgn: PathBuf,
    path: PathBuf,
    /// The prefix of the names of all indexes of this PGN file, including those of earlier versions of the file.
    prefix: String,
    /// The variant that is assumed for games without a `Variant` tag.
    untagged: Variant,
}

impl Cache {
    /// Opens the cache in `directory`. If the directory does not exist, creates it so that only its owner can read
    /// it.
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

    /// Creates an empty cache in a temporary directory. Dropping the cache removes the directory.
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

    /// Returns the index of a PGN file, which may not have been built yet. The path of the index depends on the path,
    /// the size and the times of the PGN file, and on `untagged`, the variant that is assumed for games without a
    /// `Variant` tag.
    ///
    /// # Errors
    ///
    /// Returns an error if the file does not exist or cannot be examined.
    pub fn of(&self, pgn: &Path, untagged: Variant) -> Result<CachedIndex> {
        CachedIndex::in_directory(&self.directory, pgn, untagged)
    }
}

impl CachedIndex {
    /// Returns the index of the PGN file `pgn` in the cache `directory`. Implements [`Cache::of`].
    fn in_directory(directory: &Path, pgn: &Path, untagged: Variant) -> Result<CachedIndex> {
        let pgn = canonical(pgn).at(pgn, "open")?;
        let metadata = pgn.metadata().at(&pgn, "open")?;
        // If the file system stores no times, only a change of the size is detected.
        let state = (
            metadata.len(),
            metadata.modified().ok(),
            changed(&metadata),
            (GENERATION, MEASURES.len()),
            env!("CARGO_PKG_VERSION"),
            untagged,
        );
        // Indexes for different values of `untagged` have different prefixes, so that one is not removed as an
        // earlier state of the other.
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

    /// Returns the path of the directory of the index.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns `true` if an index exists for the current content of the PGN file. It may be damaged.
    ///
    /// # Errors
    ///
    /// Returns an error if the operating system cannot tell whether the index exists.
    pub fn is_made(&self) -> Result<bool> {
        Ok(unless_damaged(is_index(&self.path))?.unwrap_or(false))
    }

    /// Returns `true` if the index exists and can be opened. Returns `false` if it is missing, incomplete or damaged.
    ///
    /// # Errors
    ///
    /// Returns an error if the operating system does not let this process read the index, for example because too
    /// many files are open. The index may be intact in this case.
    pub fn is_sound(&self) -> Result<bool> {
        let opened = Explorer::open([(String::new(), self.path.clone())]);
        Ok(unless_damaged(opened)?.is_some())
    }

    /// Removes the index unless `is_sound` returns `true`. Does nothing if the index does not exist. `is_sound` is
    /// called while the index is locked, because another process may just have rebuilt the index.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Busy`] if another process is building or removing the index. Returns another error if
    /// `is_sound` fails, if a file cannot be removed, or if the directory is kept because it contains a file that does
    /// not belong to an index.
    pub fn remove_unless(&self, is_sound: impl FnOnce() -> Result<bool>) -> Result<()> {
        let _claim = match claim_abandoned(&self.path, true) {
            Ok(None) => {
                let path = self.path.clone();
                return Err(Error::Busy { path });
            }
            // If locking is not possible, calling `is_sound` must suffice.
            claim => claim.ok(),
        };
        let is_absent = FileId::of(&self.path).at(&self.path, "open")?.is_none();
        if !is_absent {
            if is_sound()? {
                return Ok(());
            }
            remove(&self.path)?;
        }
        Ok(())
    }

    /// Returns a [`MakeBook`] that builds the index of the PGN file when it is run. The index will contain the games of
    /// all variants, with all their half-moves.
    pub fn make(&self) -> MakeBook {
        MakeBook::new([Input::file(&self.pgn).with_untagged_variant(self.untagged)])
            .variant(VariantChoice::Auto)
            .max_ply(usize::MAX)
            .explorer(&self.path)
    }

    /// Returns the name of the index that was being built in the directory `name`, if it is an index of an earlier
    /// version of the PGN file. Otherwise, returns `None`. The directory of an unfinished index is named
    /// `.INDEX.RANDOM.ENDING`, where INDEX is the name of the index.
    fn older_unfinished<'n>(&self, name: &'n str) -> Option<&'n str> {
        let (older, _) = name.strip_prefix('.')?.split_once('.')?;
        let is_older = older.starts_with(&self.prefix) && self.path.file_name()? != older;
        is_older.then_some(older)
    }

    /// Removes indexes that are no longer needed: those of PGN files that no longer exist, and those of earlier
    /// versions of this PGN file, including unfinished ones that killed processes have left. Ignores errors, and keeps
    /// damaged indexes. A server that has one of these indexes open can continue to use it.
    ///
    /// Removes nothing if the PGN file cannot be examined or has changed since this value was created, because another
    /// process may already have built an index of the new content.
    pub fn remove_older(&self) {
        let directory = self.path.parent().unwrap_or(&self.path);
        let current = CachedIndex::in_directory(directory, &self.pgn, self.untagged);
        // If the file cannot be examined, the location of its current index is unknown.
        if !current.is_ok_and(|current| current.path == self.path) {
            return;
        }
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            if let Some(older) = self.older_unfinished(&name) {
                // An index is kept if another process is building it or if its directory contains foreign files.
                let _ = remove_unfinished(&directory.join(older));
            }
            // Do not follow links, because their targets were not created by a cache.
            if path == self.path || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let is_older = name.starts_with(&self.prefix);
            // An index that cannot be read stays.
            if (is_older && is_index(&path).unwrap_or(false)) || is_orphan(&path) {
                // The next server can remove an index that cannot be removed now.
                let _ = remove(&path);
            }
        }
    }
}

/// Returns the time of a file's last status change (`ctime`), in seconds and nanoseconds. It is updated when the
/// content, the access rights or the name of the file changes.
#[cfg(unix)]
fn changed(metadata: &Metadata) -> Option<(i64, i64)> {
    use std::os::unix::fs::MetadataExt;
    Some((metadata.ctime(), metadata.ctime_nsec()))
}

/// Always returns `None`, because systems other than Unix do not store the time of the last status change.
#[cfg(not(unix))]
fn changed(_metadata: &Metadata) -> Option<(i64, i64)> {
    None
}

/// Returns `true` if `path` is an index in a cache whose PGN file no longer exists. Returns `false` if the index cannot
/// be opened, for example because another version of polybook made it. Also returns `false` if the directory of the PGN
/// file is missing or empty, because it may be on a drive that is not mounted.
fn is_orphan(path: &Path) -> bool {
    let Ok(index) = Index::open(path) else {
        return false;
    };
    let is_removed = |pgn: &Path| {
        let mut others = pgn
            .parent()
            .and_then(|directory| fs::read_dir(directory).ok());
        pgn.metadata().is_err_and(|err| is_absent(&err))
            && others
                .as_mut()
                .is_some_and(|others| others.next().is_some())
    };
    let mut pgns = index.files().map(|(_, pgn)| pgn).peekable();
    index.kind() == IndexKind::Explorer && pgns.peek().is_some() && pgns.all(is_removed)
}

/// Converts the result of opening an index: `Ok(None)` means that the index is damaged or incomplete, and `Some`
/// contains the opened index.
///
/// # Errors
///
/// Returns all other errors unchanged, because they do not mean that the index is damaged.
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
        let current = || cache.of(&pgn, Variant::Standard).unwrap();
        current().make().run().unwrap();
        assert!(current().is_made().unwrap());
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
        assert!(!current().is_made().unwrap());
        let second = current();
        second.make().run().unwrap();
        second.remove_older();
        assert!(current().is_made().unwrap());
        assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 1);
    }

    #[test]
    fn the_indexes_of_removed_files_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::new(dir.path().join("cache")).unwrap();
        let [first, second] = ["a.pgn", "b.pgn"].map(|name| {
            let pgn = dir.path().join(name);
            fs::write(&pgn, "[Event \"a\"]\n\n1. e4 *\n").unwrap();
            let index = cache.of(&pgn, Variant::Standard).unwrap();
            index.make().run().unwrap();
            index
        });
        second.remove_older();
        assert!(first.path().exists());
        fs::remove_file(dir.path().join("a.pgn")).unwrap();
        second.remove_older();
        assert!(!first.path().exists() && second.is_made().unwrap());
    }

    /// A drive that is not mounted has no directory, or an empty one.
    #[test]
    fn the_indexes_of_files_that_may_come_back_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::new(dir.path().join("cache")).unwrap();
        let made = |path: &str| {
            let pgn = dir.path().join(path);
            fs::create_dir_all(pgn.parent().unwrap()).unwrap();
            fs::write(&pgn, "[Event \"a\"]\n\n1. e4 *\n").unwrap();
            let index = cache.of(&pgn, Variant::Standard).unwrap();
            index.make().run().unwrap();
            index
        };
        let kept = [made("gone/a.pgn"), made("empty/a.pgn")];
        let current = made("used/b.pgn");
        fs::remove_dir_all(dir.path().join("gone")).unwrap();
        fs::remove_file(dir.path().join("empty/a.pgn")).unwrap();
        current.remove_older();
        assert!(kept.iter().all(|index| index.path().exists()));
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

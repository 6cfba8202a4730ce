//! Atomic output: all files and directories that an operation writes appear complete and together, or not at all.
//!
//! An output is created under a temporary name next to its target, which is its final path. When the output is
//! complete, [`finish`](AtomicFile::finish) flushes it to disk and returns it as a [`Finished`] output. As the last
//! step of the operation, [`commit_all`] renames all outputs to their targets. If the program is stopped before this
//! step, all old outputs are unchanged. If a process is killed, the next process that writes the same target removes
//! the temporary file or directory.
//!
//! # When an existing file is replaced
//!
//! When an output is created, [`AtomicFile::create_over`] and [`AtomicDir::create_over`] call a function `may_replace`,
//! which the format of the output defines. A new book may replace a book that polybook wrote. All other formats replace
//! an existing file only if the caller passes `force`. For a directory, `may_replace` lists the files that belong to
//! the old output, and no other files are removed. Every format replaces empty files, and none replaces read-only
//! files.
//!
//! # Renaming
//!
//! [`commit_all`] renames a file over the old file. On Linux (`renameat2`) and macOS (`renamex_np`), it exchanges the
//! names of the old and the new directory in one step, so that a reader always finds a complete output. Then it flushes
//! the directories, and removes the old files.
//!
//! On other systems, an old directory is first renamed to `.NAME.RANDOM.old`. If polybook is killed before the new
//! directory is renamed, the target is missing. The next run with this target then renames the old directory back.

mod identity;
mod in_use;
mod place;
mod rename;
mod target;
mod temporary;

use std::{
    ffi::OsString,
    fs::{self, File, Permissions},
    io::{self, BufWriter, IntoInnerError, Write},
    path::{Path, PathBuf},
};

#[cfg(feature = "serve")]
pub(crate) use self::temporary::remove_abandoned_directories;
pub(crate) use self::{
    identity::{
        FileId, FileState, is_absent, is_empty_directory, metadata_if_any, open_again_if_replaced,
        read_again_if_replaced,
    },
    in_use::{check_not_in_use, side_file},
    target::{canonical, is_special, parent},
    temporary::{RemovedAtEnd, claim_abandoned, own_files, shortened},
};
pub use self::{
    identity::{is_directory, is_regular_file, repeated},
    place::{Finished, commit_all},
    target::{is_standard_output, refuse_clashes},
    temporary::{IsOwnFile, TemporaryDir, discard_all},
};
use self::{
    place::{open_directory, sync_directory},
    target::{Target, is_device, names_directory, standard_output},
    temporary::Temporary,
};
use crate::{
    error::{At, Error, Result},
    storage::positioned::write_all_at,
};

/// An output file that is written under a temporary name and replaces its target when it is committed. If it is
/// dropped without being committed, the target remains unchanged.
#[derive(Debug)]
pub struct AtomicFile {
    target: Target,
    destination: Destination,
}

#[derive(Debug)]
enum Destination {
    Temporary(Temporary),
    /// A device, a pipe or standard output. It is written directly, because a rename would replace a device or pipe
    /// with a file, and standard output has no path.
    Special(File),
}

impl AtomicFile {
    /// Creates an output file that replaces any existing file at `target` when it is committed. If `target` is a
    /// symbolic link, the file to which the link leads is replaced. `-` means standard output.
    ///
    /// # Errors
    ///
    /// Returns an error if `target` ends with a slash, is a directory or is read-only, if its directory does not exist or
    /// cannot be written, or if another process is writing to `target`.
    pub fn create(target: impl AsRef<Path>) -> Result<AtomicFile> {
        AtomicFile::create_over(target, |_| Ok(()))
    }

    /// Creates an output file that replaces an existing file at `target` only if `may_replace` permits it. If a file
    /// exists at `target`, `may_replace` is called with its path, and must return an error if the file must be kept.
    ///
    /// # Errors
    ///
    /// Returns the error of `may_replace`, or fails for the same reasons as [`create`](AtomicFile::create).
    pub fn create_over(
        target: impl AsRef<Path>,
        may_replace: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<AtomicFile> {
        let path = target.as_ref();
        if path == Path::new("-") {
            let file = standard_output().at("standard output", "open")?;
            return Ok(AtomicFile::special("standard output", file));
        }
        if is_device(path).at(path, "open")? {
            let file = File::options().write(true).open(path).at(path, "open")?;
            return Ok(AtomicFile::special(path, file));
        }
        let target = Target::resolve(path)?;
        if target.is_directory() {
            return Err(Error::file(
                path,
                "this is a directory: give the name of a file",
            ));
        }
        if names_directory(path) {
            return Err(Error::file(
                path,
                "a name that ends with a slash is the name of a directory: give the name of a file",
            ));
        }
        if target.exists() {
            target.refuse_mounted_file()?;
            may_replace(&target.name)?;
            target.refuse_read_only()?;
            target.refuse_fixed_file()?;
            target.refuse_if_held()?;
        }
        let temporary = Temporary::next_to(&target, None)?;
        if let Some(permissions) = target.permissions() {
            keep_rights(temporary.file().set_permissions(permissions), &target)?;
        }
        let is_database =
            target.exists() && in_use::is_database(&target.path).at(&target.name, "read")?;
        let mut file = AtomicFile {
            target,
            destination: Destination::Temporary(temporary),
        };
        if is_database {
            file.refuse_database_in_use()?;
        }
        Ok(file)
    }

    fn special(path: impl Into<PathBuf>, file: File) -> AtomicFile {
        AtomicFile {
            target: Target::special(path.into()),
            destination: Destination::Special(file),
        }
    }

    /// Checks that no other program uses the target as an SQLite database: neither a write-ahead log nor a journal with
    /// content may be next to it. The commit repeats this check before it renames the outputs. If the check then fails,
    /// the targets remain unchanged, and the new files are kept under other names.
    ///
    /// # Errors
    ///
    /// Returns an error if another program uses the target, or has ended without closing it.
    pub(crate) fn refuse_database_in_use(&mut self) -> Result<()> {
        if self.is_seekable() {
            check_not_in_use(self.resolved_target(), self.target())?;
            self.target.is_database = true;
        }
        Ok(())
    }

    /// Returns the path that the output replaces, as the caller passed it. Symbolic links in it are not resolved.
    pub fn target(&self) -> &Path {
        &self.target.name
    }

    /// Returns the path that the output replaces, with symbolic links resolved.
    pub fn resolved_target(&self) -> &Path {
        &self.target.path
    }

    /// Returns `true` if bytes can be written at any offset of the output. Returns `false` for a device, a pipe and
    /// standard output.
    pub fn is_seekable(&self) -> bool {
        matches!(self.destination, Destination::Temporary(_))
    }

    /// Writes all of `bytes` to the file, starting at `offset`. Several threads may write at the same time.
    ///
    /// # Errors
    ///
    /// Returns an error if the operating system cannot write the bytes. Devices and pipes have no offsets, so writing
    /// to them with this function fails.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        write_all_at(self.file(), bytes, offset).at(self.target(), "write")
    }

    /// Returns the open file to which the output is written. This is the temporary file, or the device or pipe.
    pub fn file(&self) -> &File {
        match &self.destination {
            Destination::Temporary(file) => file.file(),
            Destination::Special(file) => file,
        }
    }

    /// Returns the path at which the unfinished output can be opened: the temporary path, or the path of a device or
    /// pipe.
    pub fn temporary_path(&self) -> &Path {
        match &self.destination {
            Destination::Temporary(file) => file.path(),
            Destination::Special(_) => self.target(),
        }
    }

    /// Flushes the complete file to disk. The caller passes the returned output to [`commit_all`], which renames it to
    /// its target together with other outputs.
    ///
    /// # Errors
    ///
    /// Returns an error if the data cannot be flushed to disk.
    pub fn finish(self) -> Result<Finished> {
        let (flushed, temporary) = match self.destination {
            Destination::Special(mut file) => (file.flush(), None),
            Destination::Temporary(file) => (file.file().sync_data(), Some(file)),
        };
        flushed.at(&self.target.name, "write")?;
        Ok(Finished {
            target: self.target,
            temporary,
        })
    }

    /// Flushes the complete file to disk and renames it to its target. Call [`finish`](AtomicFile::finish) and
    /// [`commit_all`] instead to rename several outputs together.
    ///
    /// # Errors
    ///
    /// Fails for the same reasons as [`finish`](AtomicFile::finish) and [`commit_all`].
    pub fn commit(self) -> Result<()> {
        self.finish()?.commit()
    }
}

impl Write for AtomicFile {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.file().write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file().flush()
    }
}

/// An [`AtomicFile`] that is written sequentially through a buffer. It replaces its target only when it is committed.
#[derive(Debug)]
pub struct BufferedFile {
    out: BufWriter<AtomicFile>,
}

impl BufferedFile {
    /// Creates a buffered writer for an output file.
    pub fn new(file: AtomicFile) -> BufferedFile {
        BufferedFile {
            out: BufWriter::with_capacity(1 << 16, file),
        }
    }

    /// Returns the path that the output replaces, as the caller passed it. Symbolic links in it are not resolved.
    pub fn target(&self) -> &Path {
        self.out.get_ref().target()
    }

    /// Writes all of `bytes` through the buffer.
    ///
    /// # Errors
    ///
    /// Returns an error that names the file if the bytes cannot be written.
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.out.write_all(bytes);
        written.at(self.target(), "write")
    }

    /// Writes the remaining buffer, and flushes the complete file to disk. The caller passes the returned output to
    /// [`commit_all`], which renames it to its target together with other outputs.
    ///
    /// # Errors
    ///
    /// Returns an error if the buffer cannot be written, or if the data cannot be flushed to disk.
    pub fn finish(self) -> Result<Finished> {
        let target = self.target().to_owned();
        let file = self.out.into_inner().map_err(IntoInnerError::into_error);
        let file = file.at(&target, "write")?;
        file.finish()
    }

    /// Writes the remaining buffer, flushes the complete file to disk and renames it to its target.
    ///
    /// # Errors
    ///
    /// Fails for the same reasons as [`finish`](BufferedFile::finish) and [`commit_all`].
    pub fn commit(self) -> Result<()> {
        self.finish()?.commit()
    }
}

impl Write for BufferedFile {
    #[inline]
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.out.write(buf)
    }

    #[inline]
    fn write_all(&mut self, buf: &[u8]) -> io::Result<()> {
        self.out.write_all(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The operation in the error message `cannot keep the rights of PATH`: copying the access rights of the old output to
/// the new one.
const COPYING_RIGHTS: &str = "keep the rights of";

/// Handles the result `set` of giving a new output the access rights of the old output. Ignores the error of a file
/// system without access rights, such as exFAT, which denies the change although this process owns the new output.
fn keep_rights(set: io::Result<()>, target: &Target) -> Result<()> {
    use io::ErrorKind::{PermissionDenied, Unsupported};
    match set {
        Err(err) if matches!(err.kind(), PermissionDenied | Unsupported) => Ok(()),
        set => set.at(&target.name, COPYING_RIGHTS),
    }
}

/// Creates a text output file at `path`. An existing file is replaced only if it is empty or if `force` is `true`.
///
/// # Errors
///
/// Returns [`Error::Exists`] if the file must not be replaced. Otherwise, fails for the same reasons as
/// [`AtomicFile::create_over`].
pub fn begin_text(path: impl AsRef<Path>, force: bool) -> Result<AtomicFile> {
    AtomicFile::create_over(path, |old| check_replaceable(old, force))
}

/// Checks that the file at `old` may be replaced: it must be empty, or `force` must be `true`.
pub(crate) fn check_replaceable(old: &Path, force: bool) -> Result<()> {
    if force || old.metadata().at(old, "open")?.len() == 0 {
        Ok(())
    } else {
        Err(Error::exists(old))
    }
}

/// An output directory that is written under a temporary name and replaces its target when it is committed. If it is
/// dropped without being committed, the target remains unchanged.
#[derive(Debug)]
pub struct AtomicDir {
    target: Target,
    temporary: Temporary,
    /// The access rights of the first file of the old directory. Every new file gets these rights. `None` if the old
    /// directory has no files or does not exist.
    permissions: Option<Permissions>,
}

impl AtomicDir {
    /// Creates an output directory that replaces any existing directory at `target` when it is committed. Symbolic
    /// links are followed.
    ///
    /// If something exists at `target`, `may_replace` is called with its path. It must return the names of the files
    /// that belong to the old output and may be removed, or an error if the directory must be kept. `is_own` decides
    /// which files may be removed from a temporary directory that a killed process has left behind.
    ///
    /// # Errors
    ///
    /// Returns an error if the parent directory does not exist or cannot be written, if `target` is read-only, or if
    /// another process is writing to it. Also returns the errors of `may_replace`.
    pub fn create_over(
        target: impl AsRef<Path>,
        is_own: IsOwnFile,
        may_replace: impl FnOnce(&Path) -> Result<Vec<OsString>>,
    ) -> Result<AtomicDir> {
        let name = target.as_ref();
        let mut target = Target::resolve(name)?;
        if !target.exists() && temporary::restore(&target)? {
            target = Target::resolve(name)?;
        }
        if target.exists() {
            let files = may_replace(&target.name)?;
            target.enter_files(files)?;
            target.refuse_read_only()?;
        }
        let temporary = Temporary::next_to(&target, Some(is_own))?;
        if let Some(permissions) = target.permissions() {
            keep_rights(fs::set_permissions(temporary.path(), permissions), &target)?;
        }
        let first = target.files().next();
        let of_file = first.map(|first| fs::metadata(target.path.join(first)));
        let of_file = of_file.transpose().at(&target.name, COPYING_RIGHTS)?;
        Ok(AtomicDir {
            permissions: of_file.map(|of_file| of_file.permissions()),
            target,
            temporary,
        })
    }

    /// Returns the path that the output replaces, as the caller passed it. Symbolic links in it are not resolved.
    pub fn target(&self) -> &Path {
        &self.target.name
    }

    /// Returns the temporary path of the unfinished directory, in which the caller creates files. The path is valid
    /// until the directory is committed.
    pub fn path(&self) -> &Path {
        self.temporary.path()
    }

    /// Flushes all files of the complete directory to disk. The caller passes the returned output to [`commit_all`],
    /// which renames it to its target together with other outputs.
    ///
    /// # Errors
    ///
    /// Returns an error if the data cannot be flushed to disk.
    pub fn finish(self) -> Result<Finished> {
        let target = &self.target.name;
        for entry in fs::read_dir(self.path()).at(target, "write")? {
            let path = entry.at(target, "write")?.path();
            let file = File::options().write(true).open(&path);
            let file = file.at(target, "write")?;
            if let Some(permissions) = &self.permissions {
                keep_rights(file.set_permissions(permissions.clone()), &self.target)?;
            }
            file.sync_data().at(target, "write")?;
        }
        open_directory(self.path())
            .and_then(|directory| sync_directory(directory.as_ref()))
            .at(target, "write")?;
        Ok(Finished {
            target: self.target,
            temporary: Some(self.temporary),
        })
    }

    /// Flushes the complete directory to disk and renames it to its target. Call [`finish`](AtomicDir::finish) and
    /// [`commit_all`] instead to rename several outputs together.
    ///
    /// # Errors
    ///
    /// Fails for the same reasons as [`finish`](AtomicDir::finish) and [`commit_all`].
    pub fn commit(self) -> Result<()> {
        self.finish()?.commit()
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn file_of(target: &Path, text: &[u8]) -> AtomicFile {
        let mut file = AtomicFile::create(target).unwrap();
        file.write_all(text).unwrap();
        file
    }

    fn directory(target: &Path) -> Result<AtomicDir> {
        let all = |target: &Path| Ok(names(target).into_iter().map(OsString::from).collect());
        AtomicDir::create_over(target, is_own, all)
    }

    fn is_own(_: &Path, name: &OsStr) -> bool {
        name != "thesis.txt"
    }

    #[test]
    fn of_simultaneous_outputs_with_one_target_at_most_one_is_created() {
        const THREADS: usize = 4;
        let dir = tempfile::tempdir().unwrap();
        let together = std::sync::Barrier::new(THREADS);
        for round in 0..200 {
            let create = || {
                together.wait();
                let file = (round % 2 == 0).then(|| AtomicFile::create(dir.path().join("file")));
                let index = (round % 2 == 1).then(|| directory(&dir.path().join("index")));
                together.wait();
                file.is_some_and(|file| file.is_ok()) || index.is_some_and(|index| index.is_ok())
            };
            let created = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(create)).collect();
                let created = threads.into_iter().map(|thread| thread.join().unwrap());
                created.filter(|is_created| *is_created).count()
            });
            assert!(created <= 1, "{created} in round {round}");
            assert!(names(dir.path()).is_empty());
        }
    }

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("book.bin");
        fs::write(&target, "old").unwrap();

        drop(file_of(&target, b"half"));
        assert_eq!(fs::read(&target).unwrap(), b"old");
        drop(file_of(&target, b"whole").finish().unwrap());
        assert_eq!(fs::read(&target).unwrap(), b"old");

        let file = file_of(&target, b"new");
        assert_eq!(fs::read(&target).unwrap(), b"old");
        file.commit().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"new");
        assert_eq!(names(dir.path()), ["book.bin"]);
    }

    #[test]
    fn what_may_not_be_replaced_is_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("book.bin");
        let refuse = |path: &Path| Err(Error::file(path, "precious"));
        AtomicFile::create_over(&target, refuse).unwrap();
        fs::write(&target, "old").unwrap();
        assert!(AtomicFile::create_over(&target, refuse).is_err());
        let refuse = |path: &Path| Err(Error::file(path, "precious"));
        assert!(AtomicDir::create_over(dir.path(), is_own, refuse).is_err());
        assert_eq!(names(dir.path()), ["book.bin"]);
    }

    #[test]
    fn a_target_that_appears_meanwhile_is_kept_and_so_is_the_output() {
        let dir = tempfile::tempdir().unwrap();
        let (bin, index) = (dir.path().join("book.bin"), dir.path().join("index"));
        let file = file_of(&bin, b"new").finish().unwrap();
        let made = directory(&index).unwrap();
        fs::write(made.path().join("CURRENT"), "new").unwrap();
        let made = made.finish().unwrap();
        fs::write(&bin, "theirs").unwrap();

        let err = commit_all(vec![file, made]).unwrap_err().to_string();
        assert_eq!(fs::read(&bin).unwrap(), b"theirs");
        assert!(!index.exists());
        assert_eq!(names(dir.path()), ["book.bin", "book.bin.new", "index.new"]);
        assert_eq!(fs::read(dir.path().join("book.bin.new")).unwrap(), b"new");
        assert!(
            err.contains("book.bin.new") && err.contains("index.new"),
            "{err}"
        );
    }

    /// Any output may replace a database if `--force` is given.
    #[test]
    fn a_database_that_another_program_has_open_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("live.db3");
        let write_ahead_log = dir.path().join("live.db3-wal");
        fs::write(&target, "SQLite format 3\0 and more").unwrap();
        fs::write(&write_ahead_log, "").unwrap();
        let err = AtomicFile::create(&target).unwrap_err().to_string();
        assert!(err.contains("the file live.db3-wal exists"), "{err}");
        // The database is opened by another program after the run has begun.
        fs::remove_file(&write_ahead_log).unwrap();
        let file = file_of(&target, b"ours");
        fs::write(&write_ahead_log, "").unwrap();
        let err = file.commit().unwrap_err().to_string();
        assert!(err.contains("the file live.db3-wal exists"), "{err}");
        assert!(fs::read(&target).unwrap().starts_with(b"SQLite"));
        assert_eq!(fs::read(dir.path().join("live.db3.new")).unwrap(), b"ours");
        // A `-wal` file next to a file that is not a database is ignored.
        let text = dir.path().join("text");
        fs::write(&text, "SQLite format 3").unwrap();
        fs::write(dir.path().join("text-wal"), "").unwrap();
        file_of(&text, b"ours").commit().unwrap();
    }

    /// Simulates a process that was killed after it moved the old directory aside, on a system that cannot exchange
    /// names.
    #[test]
    fn a_directory_that_a_kill_left_aside_is_restored() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("index");
        let aside = dir.path().join(".index.AbCd1234.old");
        let part = dir.path().join(".index.AbCd1234.part");
        for (directory, text) in [(&aside, "old"), (&part, "new")] {
            fs::create_dir(directory).unwrap();
            fs::write(directory.join("CURRENT"), text).unwrap();
        }
        let refuse = |path: &Path| {
            assert_eq!(fs::read(path.join("CURRENT")).unwrap(), b"old");
            Err(Error::file(path, "precious"))
        };
        assert!(AtomicDir::create_over(&target, is_own, refuse).is_err());
        assert!(names(dir.path()).contains(&"index".to_owned()));
        let made = directory(&target).unwrap();
        fs::write(made.path().join("CURRENT"), "newer").unwrap();
        made.commit().unwrap();
        assert_eq!(names(dir.path()), ["index"]);
        assert_eq!(fs::read(target.join("CURRENT")).unwrap(), b"newer");
        // Simulates a process that was killed before it removed the old directory.
        fs::create_dir(&aside).unwrap();
        fs::write(aside.join("CURRENT"), "old").unwrap();
        drop(directory(&target).unwrap());
        assert_eq!(names(dir.path()), ["index"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_replaced_output_keeps_its_rights() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let mode = |name: &str| at(name).metadata().unwrap().mode() & 0o7777;
        let set = |name: &str, mode| {
            fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
        };
        fs::write(at("book.bin"), "old").unwrap();
        fs::create_dir(at("index")).unwrap();
        fs::write(at("index/CURRENT"), "old").unwrap();
        for (file, directory) in [(0o600, 0o700), (0o664, 0o2775), (0o644, 0o755)] {
            for name in names(&at("index")) {
                set(&format!("index/{name}"), file);
            }
            set("book.bin", file);
            set("index", directory);
            let book = file_of(&at("book.bin"), b"new");
            assert_eq!(book.file().metadata().unwrap().mode() & 0o7777, file);
            book.commit().unwrap();
            let made = self::directory(&at("index")).unwrap();
            fs::write(made.path().join("CURRENT"), "new").unwrap();
            fs::write(made.path().join("000003.ldb"), "new").unwrap();
            made.commit().unwrap();
            assert_eq!(mode("index"), directory);
            for name in ["book.bin", "index/CURRENT", "index/000003.ldb"] {
                assert_eq!(fs::read(at(name)).unwrap(), b"new");
                assert_eq!(mode(name), file, "{name}");
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn what_is_read_only_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let set = |name: &str, mode| {
            fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
        };
        fs::write(at("book.bin"), "old").unwrap();
        fs::create_dir(at("index")).unwrap();
        fs::write(at("index/CURRENT"), "old").unwrap();
        set("book.bin", 0o444);
        let err = AtomicFile::create(at("book.bin")).unwrap_err().to_string();
        assert!(err.contains("book.bin: this file is read-only"), "{err}");
        set("index/CURRENT", 0o444);
        let err = directory(&at("index")).unwrap_err().to_string();
        assert!(err.contains("CURRENT: this file is read-only"), "{err}");
        set("index/CURRENT", 0o644);
        set("index", 0o555);
        let err = directory(&at("index")).unwrap_err().to_string();
        assert!(err.contains("index: this file is read-only"), "{err}");
        set("index", 0o755);
        assert_eq!(names(dir.path()), ["book.bin", "index"]);
    }

    // Windows keeps the name of a file that is open.
    #[cfg(unix)]
    #[test]
    fn a_rename_that_fails_says_what_is_in_place_and_what_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let (first, second) = (dir.path().join("a"), dir.path().join("b"));
        let finished = vec![
            file_of(&first, b"1").finish().unwrap(),
            file_of(&second, b"2").finish().unwrap(),
        ];
        // The temporary file of the second output is removed, so its rename fails after that of the first output.
        for name in names(dir.path()) {
            if name.starts_with(".b.") {
                fs::remove_file(dir.path().join(name)).unwrap();
            }
        }
        let err = commit_all(finished).unwrap_err().to_string();
        assert_eq!(fs::read(&first).unwrap(), b"1");
        let in_place = format!("complete outputs: {}", first.display());
        assert!(err.contains(&in_place) && !second.exists(), "{err}");
        assert!(!err.contains("kept as"), "{err}");
    }

    #[test]
    fn the_next_run_does_not_remove_what_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        for (target, is_directory) in [("book.bin", false), ("index", true)] {
            let target = dir.path().join(target);
            let output = if is_directory {
                directory(&target).unwrap().finish().unwrap()
            } else {
                file_of(&target, b"new").finish().unwrap()
            };
            fs::write(&target, "another's").unwrap();
            let mut taken = target.clone().into_os_string();
            taken.push(".new");
            fs::write(taken, "kept before").unwrap();
            let err = output.commit().unwrap_err().to_string();
            let (_, kept) = err.split_once("kept as ").unwrap();
            let kept = Path::new(kept);
            assert!(kept.extension().unwrap() != "part", "{err}");
            fs::remove_file(&target).unwrap();
            if is_directory {
                directory(&target).unwrap().commit().unwrap();
            } else {
                file_of(&target, b"newer").commit().unwrap();
            }
            assert!(kept.exists(), "{err}");
        }
    }

    #[test]
    fn a_text_is_replaced_only_if_it_is_empty_or_by_force() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("table.csv");
        fs::write(&path, "").unwrap();
        begin_text(&path, false).unwrap().commit().unwrap();
        fs::write(&path, "mine").unwrap();
        let err = begin_text(&path, false).unwrap_err();
        assert!(matches!(err, Error::Exists { .. }), "{err}");
        assert_eq!(fs::read(&path).unwrap(), b"mine");
        begin_text(&path, true).unwrap().commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"");
    }

    #[test]
    fn what_is_written_through_a_buffer_or_at_an_offset_arrives() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("out");
        let file = AtomicFile::create(&target).unwrap();
        let temporary = file.temporary_path().to_owned();
        let mut file = BufferedFile::new(file);
        file.put(b"ab").unwrap();
        assert_eq!(file.write(b"cd").unwrap(), 2);
        file.flush().unwrap();
        assert_eq!(fs::read(&temporary).unwrap(), b"abcd");
        file.out.get_ref().write_at(b"BC", 1).unwrap();
        file.commit().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"aBCd");
    }

    #[test]
    fn two_runs_for_one_target() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("book.bin");
        let first = file_of(&target, b"first");
        let err = AtomicFile::create(&target).unwrap_err().to_string();
        assert!(err.contains("another run"), "{err}");
        // Names that only have a common prefix are different targets.
        drop(file_of(&dir.path().join("book.bin.x"), b"x"));
        first.commit().unwrap();
        file_of(&target, b"second").commit().unwrap();
        let made = directory(&dir.path().join("index")).unwrap();
        assert!(directory(&dir.path().join("index")).is_err());
        drop(made);
    }

    #[test]
    fn what_a_kill_left_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("book.bin");
        fs::write(dir.path().join(".book.bin.AbCd1234.part"), "left").unwrap();
        fs::write(dir.path().join(".book.bin.x.AbCd1234.part"), "other's").unwrap();
        let left = dir.path().join(".index.AbCd1234.part");
        fs::create_dir(&left).unwrap();
        fs::write(left.join("000003.ldb"), "left").unwrap();
        file_of(&target, b"new").commit().unwrap();
        directory(&dir.path().join("index"))
            .unwrap()
            .commit()
            .unwrap();
        assert_eq!(
            names(dir.path()),
            [".book.bin.x.AbCd1234.part", "book.bin", "index"]
        );
    }

    #[test]
    fn what_a_kill_did_not_leave_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let left = at(".index.AbCd1234.part");
        fs::create_dir(&left).unwrap();
        fs::write(left.join("CURRENT"), "left").unwrap();
        fs::write(left.join("thesis.txt"), "mine").unwrap();
        let err = directory(&at("index")).unwrap_err().to_string();
        assert!(
            err.contains("thesis.txt") && err.contains("move that file away"),
            "{err}"
        );
        assert_eq!(names(&left), ["CURRENT", "thesis.txt"]);
        fs::remove_file(left.join("thesis.txt")).unwrap();
        drop(directory(&at("index")).unwrap());
        assert!(!left.exists());
        // A temporary directory is not the remainder of an output file.
        let left = at(".book.bin.AbCd1234.part");
        fs::create_dir(&left).unwrap();
        fs::write(left.join("thesis.txt"), "mine").unwrap();
        file_of(&at("book.bin"), b"new").commit().unwrap();
        assert_eq!(names(&left), ["thesis.txt"]);
    }

    #[cfg(windows)]
    #[test]
    fn a_book_that_is_opened_meanwhile_is_kept_and_so_is_the_output() {
        use std::os::windows::fs::OpenOptionsExt;
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("book.bin");
        fs::write(&target, "old").unwrap();
        let file = file_of(&target, b"new").finish().unwrap();
        let open = File::options().read(true).share_mode(1).open(&target);
        let err = file.commit().unwrap_err().to_string();
        drop(open.unwrap());
        assert!(err.contains("another program has the"), "{err}");
        assert!(
            err.contains("book.bin.new") && !err.contains(r"\\?\"),
            "{err}"
        );
        assert_eq!(fs::read(&target).unwrap(), b"old");
        assert_eq!(fs::read(dir.path().join("book.bin.new")).unwrap(), b"new");
    }

    #[cfg(unix)]
    #[test]
    fn links_and_devices_stay_what_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let (target, link) = (dir.path().join("real.bin"), dir.path().join("link.bin"));
        fs::write(&target, "old").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        file_of(&link, b"new").commit().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&target).unwrap(), b"new");

        fs::remove_file(&target).unwrap();
        file_of(&link, b"anew").commit().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&target).unwrap(), b"anew");

        let (target, link) = (dir.path().join("real"), dir.path().join("link"));
        fs::create_dir(&target).unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        directory(&link).unwrap().commit().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());

        AtomicFile::create("/dev/null").unwrap().commit().unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }

    #[test]
    fn a_directory_is_replaced_whole() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("index");
        for content in ["old", "new"] {
            let made = directory(&target).unwrap();
            fs::write(made.path().join(content), content).unwrap();
            made.commit().unwrap();
            assert_eq!(names(&target), [content]);
        }
        drop(directory(&target).unwrap());
        assert_eq!(names(dir.path()), ["index"]);
    }

    #[test]
    fn errors_name_the_target() {
        let err = AtomicFile::create("/nonexistent/book.bin").unwrap_err();
        assert!(err.to_string().contains("/nonexistent/book.bin"), "{err}");
        assert!(AtomicFile::create(std::env::temp_dir()).is_err());
    }
}

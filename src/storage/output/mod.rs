//! Atomic output: the files and directories of an operation appear complete and together, or not at all.
//!
//! An output is created under a temporary name next to its target, the path that it will finally have. When it is
//! complete, [`finish`](AtomicFile::finish) flushes it to disk and returns it as a [`Finished`] output. As the last
//! step of the operation, [`commit_all`] renames all outputs to their targets. If the program is stopped before that,
//! all old outputs are unchanged. If a process is killed, the next process that writes the same target removes the
//! temporary file or directory.
//!
//! # When an existing file is replaced
//!
//! An existing file is checked twice:
//!
//! - When an output is created. [`AtomicFile::create_over`] and [`AtomicDir::create_over`] call the function
//!   `may_replace` of the output's format. A new book may replace an old book, and a [text with a seal](begin_text)
//!   may replace a text that nobody has changed. All other formats replace an existing file only if the caller passes
//!   `force`. For a directory, `may_replace` lists the files that belong to the old output, and no other files are
//!   removed. Every format replaces empty files, and none replaces read-only files.
//! - When the outputs are renamed. `Target::check` compares the old output with its state at the time when the new
//!   output was created. If another program has changed the old output since then, the old output stays, the new one
//!   is kept under another name, and [`commit_all`] returns an error.
//!
//! # Renaming
//!
//! On Linux (`renameat2`) and macOS (`renamex_np`), [`commit_all`] moves an output to its target in four steps:
//!
//! 1. Check the target, as described above.
//! 2. Exchange the names of the old and the new output in one step, so that a reader always finds a complete output.
//! 3. Check again. If another program changed the target before the exchange, exchange the names back and fail.
//! 4. Flush the directories, and remove the old files.
//!
//! On other systems, a file first gets a second name by a hard link, if the file system has hard links, and then the
//! new file is renamed over it. A directory is first renamed to `.NAME.XXXXXXXX.old`. If polybook is killed
//! between these two renames, the target is missing. The next run with this target then renames the old directory back.

mod identity;
mod in_use;
mod place;
mod rename;
mod seal;
mod target;
mod temporary;

use std::{
    ffi::OsString,
    fs::{self, File},
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
    target::{canonical, is_special, parent, refuse_append_only},
    temporary::{RemovedAtEnd, claim_abandoned, own_files, shortened},
};
pub use self::{
    identity::{is_directory, is_regular_file, repeated},
    place::{Finished, commit_all},
    seal::{UNSEALED, begin_text, check_text_replaceable, seal_matches},
    target::{check_first_line, is_standard_output, refuse_clashes},
    temporary::{IsOwnFile, TemporaryDir, discard_all},
};
use self::{
    place::{open_directory, sync_directory},
    target::{Attributes, Target, is_device, standard_output},
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
    /// A device, a pipe or standard output. It is written directly, because a rename would destroy it or cannot reach
    /// it.
    Special(File),
}

impl AtomicFile {
    /// Creates an output file that replaces any existing file at `target` when it is committed. If `target` is a
    /// symbolic link, the file to which the link leads is replaced. `-` means standard output.
    ///
    /// # Errors
    ///
    /// Returns an error if `target` is a directory or read-only, if its directory does not exist or cannot be written,
    /// or if another process is writing to `target`.
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
        let mut target = Target::resolve(path)?;
        if target.is_directory() {
            return Err(Error::file(
                path,
                "this is a directory: give the name of a file",
            ));
        }
        if target.exists() {
            target.refuse_mounted_file()?;
            in_use::check_not_locked_here(&target.path)
                .map_err(|err| Error::changed(&target.name, err.to_string()))?;
            may_replace(&target.name)?;
            target.refuse_read_only()?;
            target.refuse_fixed_file()?;
            target.refuse_if_held()?;
        }
        let temporary = Temporary::next_to(&target, None)?;
        target.refresh_change_time()?;
        if let Some(attributes) = attributes_of(&target)? {
            let given = attributes.set_on(temporary.file());
            given.at(&target.name, COPYING_RIGHTS)?;
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

    /// Checks that no other program has the target open as an SQLite database. The commit repeats this check
    /// immediately before and after it renames the new file to the target. If the check then fails, the target remains
    /// unchanged, and the new file is kept under another name.
    ///
    /// # Errors
    ///
    /// Returns an error if another program seems to have the target open, or seems to have ended without closing it.
    pub(crate) fn refuse_database_in_use(&mut self) -> Result<()> {
        if self.is_seekable() {
            check_not_in_use(self.resolved_target(), self.target())?;
            self.target.set_guard(in_use::check_unused);
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
    is_sealed: bool,
}

impl BufferedFile {
    /// Creates a buffered writer for an output file.
    pub fn new(file: AtomicFile) -> BufferedFile {
        BufferedFile {
            out: BufWriter::with_capacity(1 << 16, file),
            is_sealed: false,
        }
    }

    /// Creates a buffered writer for a text file that will contain its own checksum. The caller must write the
    /// placeholder [`UNSEALED`] within the first 4 KiB of the text. [`finish`](BufferedFile::finish) replaces the zeros
    /// of the placeholder with the checksum of the whole text. [`check_text_replaceable`] later uses the checksum to
    /// recognize an unchanged file. If the output is a pipe or a device, the zeros remain.
    pub fn sealed(file: AtomicFile) -> BufferedFile {
        BufferedFile {
            is_sealed: file.is_seekable(),
            ..BufferedFile::new(file)
        }
    }

    /// Returns `true` if [`finish`](BufferedFile::finish) writes a checksum into the text.
    pub fn is_sealed(&self) -> bool {
        self.is_sealed
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
        if self.is_sealed {
            seal::seal(file.file()).at(&target, "write")?;
        }
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

/// The operation in the error message `cannot keep the rights of PATH`. This error means that the access rights of the
/// old output cannot be copied to the new output.
const COPYING_RIGHTS: &str = "keep the rights of";

/// Returns the attributes (access rights, owner and extended attributes) of the file or directory that will be
/// replaced. Returns `None` if nothing exists at the target.
fn attributes_of(target: &Target) -> Result<Option<Attributes>> {
    let of = |target: &Target| Attributes::of(&target.path).at(&target.name, COPYING_RIGHTS);
    target.exists().then(|| of(target)).transpose()
}

/// An output directory that is written under a temporary name and replaces its target when it is committed. If it is
/// dropped without being committed, the target remains unchanged.
#[derive(Debug)]
pub struct AtomicDir {
    target: Target,
    temporary: Temporary,
    /// The attributes of the first file of the old directory. Every new file inherits these attributes. `None` if the
    /// old directory has no files or does not exist.
    attributes: Option<Attributes>,
}

impl AtomicDir {
    /// Creates an output directory that replaces any existing directory at `target` when it is committed. Symbolic
    /// links are followed.
    ///
    /// If something exists at `target`, `may_replace` is called with its path. It must return the names of the files
    /// that belong to the old output and may be removed, or an error if the directory must be kept. `is_own` decides
    /// which files may be removed from a temporary directory that a killed process has left.
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
        if let Some(attributes) = attributes_of(&target)? {
            let given = attributes.set_on_directory(temporary.path());
            given.at(&target.name, COPYING_RIGHTS)?;
        }
        let first = target.files().next();
        let of_file = first.map(|first| Attributes::of(&target.path.join(first)));
        Ok(AtomicDir {
            attributes: of_file.transpose().at(&target.name, COPYING_RIGHTS)?,
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
            if let Some(attributes) = &self.attributes {
                attributes.set_on(&file).at(target, COPYING_RIGHTS)?;
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

    #[test]
    fn a_target_that_was_exchanged_meanwhile_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("book.bin");
        fs::write(&target, "old").unwrap();
        let file = file_of(&target, b"new").finish().unwrap();
        fs::rename(&target, dir.path().join("moved")).unwrap();
        fs::write(&target, "theirs").unwrap();
        assert!(file.commit().is_err());
        assert_eq!(fs::read(&target).unwrap(), b"theirs");
    }

    #[test]
    fn a_target_that_was_written_in_place_meanwhile_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("book.bin");
        // In the last case, only the time of the last status change differs, which Windows does not record.
        for (text, keeps_time) in [("longer", false), ("new", false), ("own", cfg!(unix))] {
            fs::write(&target, "old").unwrap();
            let modified = target.metadata().unwrap().modified().unwrap();
            let file = file_of(&target, b"ours").finish().unwrap();
            // The clock of file systems ticks a few hundred times a second.
            std::thread::sleep(std::time::Duration::from_millis(50));
            fs::write(&target, text).unwrap();
            if keeps_time {
                let theirs = File::options().write(true).open(&target).unwrap();
                theirs.set_modified(modified).unwrap();
            }
            let err = file.commit().unwrap_err().to_string();
            assert!(
                err.contains("another program wrote this output during the run"),
                "{err}"
            );
            assert_eq!(fs::read(&target).unwrap(), text.as_bytes());
        }
    }

    #[test]
    fn a_file_of_a_directory_that_was_written_in_place_meanwhile_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("index");
        fs::create_dir(&target).unwrap();
        fs::write(target.join("CURRENT"), "old").unwrap();
        let made = directory(&target).unwrap();
        fs::write(made.path().join("CURRENT"), "new").unwrap();
        let made = made.finish().unwrap();
        // The clock of file systems ticks a few hundred times a second.
        std::thread::sleep(std::time::Duration::from_millis(50));
        fs::write(target.join("CURRENT"), "own").unwrap();
        let err = made.commit().unwrap_err().to_string();
        let expected = "another program wrote CURRENT into this output during the run";
        assert!(err.contains(expected), "{err}");
        assert_eq!(fs::read(target.join("CURRENT")).unwrap(), b"own");
    }

    /// Sets a function that plays the role of another program between the last check of a target and the exchange.
    #[cfg(any(target_vendor = "apple", target_os = "linux"))]
    fn meanwhile(act: impl FnOnce() + 'static) {
        rename::staged::MEANWHILE.set(Some(Box::new(act)));
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

    #[cfg(any(target_vendor = "apple", target_os = "linux"))]
    #[test]
    fn a_file_that_is_written_at_the_last_moment_is_kept() {
        for cannot_exchange in [false, true] {
            rename::staged::CANNOT_EXCHANGE.set(cannot_exchange);
            let dir = tempfile::tempdir().unwrap();
            let target = dir.path().join("book.bin");
            fs::write(&target, "old").unwrap();
            let theirs = dir.path().join("theirs");
            fs::write(&theirs, "theirs").unwrap();
            let file = file_of(&target, b"ours").finish().unwrap();
            let to = target.clone();
            meanwhile(move || fs::rename(theirs, to).unwrap());
            let err = file.commit().unwrap_err().to_string();
            assert!(
                err.contains(
                    "another program wrote this output during the run; the finished output is kept"
                ),
                "{err}"
            );
            assert_eq!(fs::read(&target).unwrap(), b"theirs");
            assert_eq!(fs::read(dir.path().join("book.bin.new")).unwrap(), b"ours");
            assert_eq!(names(dir.path()), ["book.bin", "book.bin.new"]);
            // If no other program writes the target, the commit removes the old file.
            fs::remove_file(dir.path().join("book.bin.new")).unwrap();
            file_of(&target, b"ours").commit().unwrap();
            assert_eq!(fs::read(&target).unwrap(), b"ours");
            assert_eq!(names(dir.path()), ["book.bin"]);
            rename::staged::CANNOT_EXCHANGE.set(false);
        }
    }

    #[cfg(any(target_vendor = "apple", target_os = "linux"))]
    #[test]
    fn what_is_put_into_a_directory_at_the_last_moment_is_kept() {
        for cannot_exchange in [false, true] {
            rename::staged::CANNOT_EXCHANGE.set(cannot_exchange);
            let dir = tempfile::tempdir().unwrap();
            let target = dir.path().join("index");
            fs::create_dir(&target).unwrap();
            fs::write(target.join("CURRENT"), "old").unwrap();
            let made = directory(&target).unwrap();
            fs::write(made.path().join("CURRENT"), "new").unwrap();
            let made = made.finish().unwrap();
            let thesis = target.join("thesis.txt");
            meanwhile(move || fs::write(thesis, "mine").unwrap());
            let err = made.commit().unwrap_err().to_string();
            rename::staged::CANNOT_EXCHANGE.set(false);
            assert!(
                err.contains("another program wrote thesis.txt into this output during the run"),
                "{err}"
            );
            assert_eq!(names(&target), ["CURRENT", "thesis.txt"]);
            assert_eq!(fs::read(target.join("CURRENT")).unwrap(), b"old");
            assert_eq!(names(dir.path()), ["index", "index.new"]);
        }
    }

    #[test]
    fn files_that_do_not_belong_to_a_directory_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("index");
        fs::create_dir(&target).unwrap();
        fs::write(target.join("CURRENT"), "old").unwrap();
        fs::create_dir(target.join("000099.ldb")).unwrap();
        fs::write(target.join("000099.ldb/thesis.txt"), "mine").unwrap();
        let of_index = |_: &Path| Ok(vec![OsString::from("CURRENT")]);
        let made = AtomicDir::create_over(&target, is_own, of_index).unwrap();
        let err = made.commit().unwrap_err().to_string();
        assert!(err.contains("000099.ldb"), "{err}");
        assert_eq!(
            fs::read(target.join("000099.ldb/thesis.txt")).unwrap(),
            b"mine"
        );
        assert_eq!(fs::read(target.join("CURRENT")).unwrap(), b"old");
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
        use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let mode = |name: &str| at(name).metadata().unwrap().mode() & 0o7777;
        let set = |name: &str, mode| {
            fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
        };
        fs::write(at("book.bin"), "old").unwrap();
        fs::create_dir(at("index")).unwrap();
        fs::write(at("index/CURRENT"), "old").unwrap();
        for (file, directory, user, group) in [
            (0o600, 0o700, 1000, 1000),
            (0o664, 0o2775, 0, 1000),
            (0o644, 0o755, 1000, 0),
        ] {
            // Only the administrator may give a file away.
            let give = |name: &str| chown(at(name), Some(user), Some(group)).is_ok();
            let is_given = give("book.bin");
            for name in names(&at("index")) {
                let name = format!("index/{name}");
                assert_eq!(give(&name), is_given);
                set(&name, file);
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
                let found = at(name).metadata().unwrap();
                assert!(
                    !is_given || (found.uid(), found.gid()) == (user, group),
                    "{name}"
                );
            }
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_replaced_file_keeps_its_extended_attributes() {
        use rustix::fs::{XattrFlags, getxattr, setxattr};
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("book.bin");
        fs::write(&target, "old").unwrap();
        // An access control list: version 2; the owner, user 1000, the group, the mask and others may read.
        let entry = |tag: u16, may: u16, id: u32| {
            [
                &tag.to_le_bytes()[..],
                &may.to_le_bytes(),
                &id.to_le_bytes(),
            ]
            .concat()
        };
        let none = u32::MAX;
        let acl = [
            2_u32.to_le_bytes().to_vec(),
            entry(0x01, 6, none),
            entry(0x02, 4, 1000),
            entry(0x04, 0, none),
            entry(0x10, 4, none),
            entry(0x20, 0, none),
        ]
        .concat();
        let attributes = [
            ("user.from", b"the club".to_vec()),
            ("system.posix_acl_access", acl),
        ];
        for (name, value) in &attributes {
            if setxattr(&target, *name, value, XattrFlags::empty()).is_err() {
                eprintln!("skipped: the file system has no extended attributes");
                return;
            }
        }
        file_of(&target, b"new").commit().unwrap();
        for (name, value) in &attributes {
            let mut kept = [0; 100];
            let length = getxattr(&target, *name, &mut kept[..]).unwrap();
            assert_eq!(kept[..length], value[..], "{name}");
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

    #[cfg(any(target_vendor = "apple", target_os = "linux"))]
    #[test]
    fn a_finished_directory_is_claimed_until_it_is_in_place() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("index");
        fs::create_dir(&target).unwrap();
        fs::write(target.join("CURRENT"), "old").unwrap();
        let made = directory(&target).unwrap();
        fs::write(made.path().join("CURRENT"), "new").unwrap();
        let other = target.clone();
        meanwhile(move || {
            let err = directory(&other).unwrap_err().to_string();
            assert!(err.contains("another run"), "{err}");
        });
        made.commit().unwrap();
        assert_eq!(fs::read(target.join("CURRENT")).unwrap(), b"new");
        assert_eq!(names(dir.path()), ["index"]);
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
            for number in 0..100 {
                let ending = match number {
                    0 => ".new".to_owned(),
                    _ => format!(".{number}.new"),
                };
                let mut taken = target.clone().into_os_string();
                taken.push(ending);
                fs::write(taken, "kept before").unwrap();
            }
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
    fn nothing_is_put_in_place_if_another_target_has_changed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["a", "b"] {
            fs::write(at(name), "old").unwrap();
        }
        let outputs = ["a", "b"].map(|name| file_of(&at(name), b"new").finish().unwrap());
        fs::write(at("b"), "another's").unwrap();
        let err = commit_all(outputs.into()).unwrap_err().to_string();
        assert!(
            err.contains("another program wrote this output during the run"),
            "{err}"
        );
        assert_eq!(fs::read(at("a")).unwrap(), b"old");
        assert_eq!(fs::read(at("b")).unwrap(), b"another's");
        assert_eq!(fs::read(at("a.new")).unwrap(), b"new");
    }

    #[test]
    fn a_guard_that_refuses_keeps_the_old_file() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a.obs.db3");
        fs::write(&target, "old").unwrap();
        let mut file = file_of(&target, b"new");
        file.target
            .set_guard(|_, _| Err(io::Error::other("in use")));
        let err = file.commit().unwrap_err().to_string();
        assert!(err.contains("in use") && err.contains("kept as"), "{err}");
        assert_eq!(fs::read(&target).unwrap(), b"old");
    }

    #[test]
    fn what_is_written_through_a_buffer_or_at_an_offset_arrives() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("out");
        let file = AtomicFile::create(&target).unwrap();
        let temporary = file.temporary_path().to_owned();
        let mut file = BufferedFile::sealed(file);
        assert!(file.is_sealed());
        file.put(b"ab").unwrap();
        assert_eq!(file.write(b"cd").unwrap(), 2);
        file.flush().unwrap();
        assert_eq!(fs::read(&temporary).unwrap(), b"abcd");
        file.out.get_ref().write_at(b"BC", 1).unwrap();
        file.commit().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"aBCd");
        // A stream keeps no bytes in which a checksum could be filled in.
        let stream = AtomicFile::create("-").unwrap();
        assert!(!BufferedFile::sealed(stream).is_sealed());
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

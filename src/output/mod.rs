//! Outputs that appear whole, together, or not at all.
//!
//! A file or directory is made under a temporary name beside its target. When it is complete,
//! [`finish`](AtomicFile::finish) flushes it to the disk and hands it back, and [`commit_all`] puts the outputs of
//! an operation in place as its last act. Whatever stops the program before that leaves every old output as it
//! was. A temporary that a kill left behind is removed by the next run for its target.

mod claim;
mod live;
mod place;
mod rename;
mod repeated;
mod target;
mod temporary;

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use tempfile::{NamedTempFile, TempDir};

pub use self::{
    live::discard_all,
    place::{Finished, commit_all},
    repeated::repeated,
    target::{check_first_line, refuse_clashes},
};
use self::{
    target::{Target, is_device, parent},
    temporary::Owned,
};
use crate::{
    error::{At, Error, Result},
    positioned::write_all_at,
};

/// A file that replaces its target when it is committed.
#[derive(Debug)]
pub struct AtomicFile {
    target: Target,
    destination: Destination,
}

#[derive(Debug)]
enum Destination {
    Temporary(Owned<NamedTempFile>),
    /// A device, a pipe or standard output, which a rename would destroy or cannot reach.
    Special(File),
}

impl AtomicFile {
    /// Starts a file for `target`, whatever is there. Through a symbolic link, the file it points to is
    /// replaced. `-` is standard output.
    ///
    /// # Errors
    ///
    /// A directory that does not exist or cannot be written, a target that is a directory, or one that another
    /// run is writing.
    pub fn create(target: impl AsRef<Path>) -> Result<AtomicFile> {
        AtomicFile::create_over(target, |_| Ok(()))
    }

    /// Starts a file for `target`. If there is a file, `may_replace` judges it.
    ///
    /// # Errors
    ///
    /// As [`create`](AtomicFile::create), and what `may_replace` answers.
    pub fn create_over(
        target: impl AsRef<Path>,
        may_replace: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<AtomicFile> {
        let path = target.as_ref();
        if path == Path::new("-") {
            let file = standard_output().at("standard output", "open")?;
            return Ok(AtomicFile::special("standard output", file));
        }
        if is_device(path) {
            let file = File::options().write(true).open(path).at(path, "open")?;
            return Ok(AtomicFile::special(path, file));
        }
        if path.is_dir() {
            return Err(Error::file(path, "a directory: name a file to write"));
        }
        let target = Target::resolve(path)?;
        if target.exists() {
            may_replace(target.name())?;
            target.refuse_if_held()?;
        }
        let temporary = temporary::file_for(&target)?;
        Ok(AtomicFile {
            target,
            destination: Destination::Temporary(temporary),
        })
    }

    fn special(path: impl Into<PathBuf>, file: File) -> AtomicFile {
        AtomicFile {
            target: Target::special(path.into()),
            destination: Destination::Special(file),
        }
    }

    /// The file that will be replaced.
    pub fn target(&self) -> &Path {
        self.target.name()
    }

    /// Whether bytes can be written at any place of the file, not only at its end.
    pub fn is_seekable(&self) -> bool {
        matches!(self.destination, Destination::Temporary(_))
    }

    /// Writes bytes at a place of the file, from any thread.
    ///
    /// # Errors
    ///
    /// The operating system's; a device or pipe has no places.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        write_all_at(self.file(), bytes, offset).at(self.target(), "write")
    }

    /// The file being written, before it has its name.
    pub fn file(&self) -> &File {
        match &self.destination {
            Destination::Temporary(file) => file.get().as_file(),
            Destination::Special(file) => file,
        }
    }

    /// Where the unfinished file is, for code that must open it by name.
    pub fn temporary_path(&self) -> &Path {
        match &self.destination {
            Destination::Temporary(file) => file.get().path(),
            Destination::Special(_) => self.target(),
        }
    }

    /// Flushes the complete file to the disk.
    ///
    /// # Errors
    ///
    /// A disk that cannot take the rest.
    pub fn finish(self) -> Result<Finished> {
        match self.destination {
            Destination::Special(mut file) => {
                file.flush().at(self.target.name(), "write")?;
                Ok(Finished::written(self.target))
            }
            Destination::Temporary(file) => {
                let synced = file.get().as_file().sync_data();
                synced.at(self.target.name(), "write")?;
                Ok(Finished::file(self.target, file))
            }
        }
    }

    /// Finishes the file and puts it in place, for an operation with one output.
    ///
    /// # Errors
    ///
    /// As [`finish`](AtomicFile::finish) and [`commit_all`].
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

#[cfg(unix)]
fn standard_output() -> io::Result<File> {
    use std::os::fd::AsFd;
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

#[cfg(windows)]
fn standard_output() -> io::Result<File> {
    use std::os::windows::io::AsHandle;
    Ok(File::from(io::stdout().as_handle().try_clone_to_owned()?))
}

/// A directory that takes the place of its target when it is committed.
#[derive(Debug)]
pub struct AtomicDir {
    target: Target,
    temporary: Owned<TempDir>,
}

impl AtomicDir {
    /// Starts a directory for `target`. If there is something, `may_replace` judges it. Through a symbolic
    /// link, the directory it points to is replaced.
    ///
    /// # Errors
    ///
    /// A parent that does not exist or cannot be written, a target that another run is writing, and what
    /// `may_replace` answers.
    pub fn create_over(
        target: impl AsRef<Path>,
        may_replace: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<AtomicDir> {
        let target = Target::resolve(target.as_ref())?;
        if target.exists() {
            may_replace(target.name())?;
        }
        let temporary = temporary::directory_for(&target)?;
        Ok(AtomicDir { target, temporary })
    }

    /// The directory that will be replaced.
    pub fn target(&self) -> &Path {
        self.target.name()
    }

    /// Where the unfinished directory is.
    pub fn path(&self) -> &Path {
        self.temporary.get().path()
    }

    /// Flushes the files of the complete directory to the disk.
    ///
    /// # Errors
    ///
    /// A disk that cannot take the rest.
    pub fn finish(self) -> Result<Finished> {
        let target = self.target.name();
        for entry in fs::read_dir(self.path()).at(target, "write")? {
            let path = entry.at(target, "write")?.path();
            File::options()
                .write(true)
                .open(&path)
                .and_then(|file| file.sync_data())
                .at(target, "write")?;
        }
        sync_directory(self.path());
        Ok(Finished::directory(self.target, self.temporary))
    }

    /// Finishes the directory and puts it in place, for an operation with one output.
    ///
    /// # Errors
    ///
    /// As [`finish`](AtomicDir::finish) and [`commit_all`].
    pub fn commit(self) -> Result<()> {
        self.finish()?.commit()
    }
}

/// Makes a rename durable. Where directories cannot be flushed, a crash may undo the rename.
fn sync_directory(path: &Path) {
    if let Ok(directory) = File::open(path) {
        let _ = directory.sync_all();
    }
}

/// Flushes the directory that a target is in.
fn sync_parent(target: &Path) {
    sync_directory(parent(target));
}

#[cfg(test)]
mod tests {
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
        AtomicDir::create_over(target, |_| Ok(()))
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
        assert!(AtomicDir::create_over(dir.path(), refuse).is_err());
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
        // The second loses its temporary, so its rename fails after the first one's.
        for name in names(dir.path()) {
            if name.starts_with(".b.") {
                fs::remove_file(dir.path().join(name)).unwrap();
            }
        }
        let err = commit_all(finished).unwrap_err().to_string();
        assert_eq!(fs::read(&first).unwrap(), b"1");
        let in_place = format!("in place: {}", first.display());
        assert!(err.contains(&in_place) && !second.exists(), "{err}");
    }

    #[test]
    fn two_runs_for_one_target() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("book.bin");
        let first = file_of(&target, b"first");
        let err = AtomicFile::create(&target).unwrap_err().to_string();
        assert!(err.contains("another run"), "{err}");
        // Names that only begin alike are other targets.
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
        assert!(err.contains("another program has it open"), "{err}");
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

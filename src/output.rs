//! Outputs that appear whole or not at all.
//!
//! A file or directory is made under a temporary name beside its target, flushed to the disk and then
//! renamed. Whatever stops the program before that leaves the old output as it was.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use tempfile::{NamedTempFile, TempDir};

use crate::error::{At, Error, Result};

/// A file that replaces its target when it is [committed](AtomicFile::commit).
#[derive(Debug)]
pub struct AtomicFile {
    target: PathBuf,
    destination: Destination,
}

#[derive(Debug)]
enum Destination {
    Temporary(NamedTempFile),
    /// A device or pipe, which a rename would destroy.
    Special(File),
}

impl AtomicFile {
    /// Starts a file for `target`. Through a symbolic link, the file it points to is replaced.
    ///
    /// # Errors
    ///
    /// A directory that does not exist or may not be written, or a target that is one.
    pub fn create(target: impl Into<PathBuf>) -> Result<AtomicFile> {
        let mut target = target.into();
        if let Ok(metadata) = fs::metadata(&target) {
            if metadata.is_dir() {
                return Err(Error::file(target, "is a directory: name a file to write"));
            }
            if !metadata.is_file() {
                let file = File::options()
                    .write(true)
                    .open(&target)
                    .at(&target, "write to it")?;
                return Ok(AtomicFile {
                    target,
                    destination: Destination::Special(file),
                });
            }
            target = fs::canonicalize(&target).at(&target, "follow it")?;
        }
        let mut builder = tempfile::Builder::new();
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let prefix = format!(".{name}.");
        builder.prefix(&prefix).suffix(".part");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        let file = builder
            .tempfile_in(parent(&target))
            .at(&target, "make a file beside it")?;
        Ok(AtomicFile {
            target,
            destination: Destination::Temporary(file),
        })
    }

    /// The file that will be replaced.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Whether bytes can be written anywhere in the file, not only one after the other.
    pub fn is_seekable(&self) -> bool {
        matches!(self.destination, Destination::Temporary(_))
    }

    /// Writes bytes at a place of the file, from any thread.
    ///
    /// # Errors
    ///
    /// The operating system's; a device or pipe has no places.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        write_all_at(self.file(), bytes, offset).at(&self.target, "write it")
    }

    /// The file being written, before it has its name.
    pub fn file(&self) -> &File {
        match &self.destination {
            Destination::Temporary(file) => file.as_file(),
            Destination::Special(file) => file,
        }
    }

    /// Where the unfinished file is, for those who must open it by name.
    pub fn temporary_path(&self) -> &Path {
        match &self.destination {
            Destination::Temporary(file) => file.path(),
            Destination::Special(_) => &self.target,
        }
    }

    /// Gives the file its name.
    ///
    /// # Errors
    ///
    /// A disk that cannot take the rest, or a target that may not be replaced.
    pub fn commit(self) -> Result<()> {
        match self.destination {
            Destination::Special(_) => Ok(()),
            Destination::Temporary(file) => {
                file.as_file().sync_data().at(&self.target, "write it")?;
                file.persist(&self.target)
                    .map_err(|err| err.error)
                    .at(&self.target, "put it in place")?;
                sync_directory(parent(&self.target));
                Ok(())
            }
        }
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

/// A directory that takes its target's place when it is [committed](AtomicDir::commit).
#[derive(Debug)]
pub struct AtomicDir {
    target: PathBuf,
    temporary: TempDir,
}

impl AtomicDir {
    /// Starts a directory for `target`.
    ///
    /// # Errors
    ///
    /// A parent that does not exist or may not be written.
    pub fn create(target: impl Into<PathBuf>) -> Result<AtomicDir> {
        let target = target.into();
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let prefix = format!(".{name}.");
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix).suffix(".part");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(fs::Permissions::from_mode(0o777));
        }
        let temporary = builder
            .tempdir_in(parent(&target))
            .at(&target, "make a directory beside it")?;
        Ok(AtomicDir { target, temporary })
    }

    /// Where the unfinished directory is.
    pub fn path(&self) -> &Path {
        self.temporary.path()
    }

    /// Gives the directory its name; what was there before is removed.
    ///
    /// # Errors
    ///
    /// A disk that cannot take the rest, or a target that may not be replaced.
    pub fn commit(self) -> Result<()> {
        for entry in fs::read_dir(self.path()).at(self.path(), "read it")? {
            let path = entry.at(self.path(), "read it")?.path();
            File::open(&path)
                .and_then(|file| file.sync_data())
                .at(&path, "write it")?;
        }
        sync_directory(self.path());
        // A directory cannot be renamed over one that is not empty: the old one steps aside first.
        let old = match fs::symlink_metadata(&self.target) {
            Ok(_) => {
                let aside = AtomicDir::create(&self.target)?.temporary;
                let place = aside.path().join("old");
                fs::rename(&self.target, &place).at(&self.target, "move it aside")?;
                Some((aside, place))
            }
            Err(_) => None,
        };
        let finished = self.temporary.keep();
        if let Err(err) = fs::rename(&finished, &self.target) {
            if let Some((_aside, place)) = old {
                fs::rename(place, &self.target).at(&self.target, "put the old one back")?;
            }
            let _ = fs::remove_dir_all(&finished);
            return Err(err).at(&self.target, "put it in place");
        }
        sync_directory(parent(&self.target));
        Ok(())
    }
}

#[cfg(unix)]
fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

#[cfg(windows)]
fn write_all_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    use std::os::windows::fs::FileExt;
    while !bytes.is_empty() {
        let written = file.seek_write(bytes, offset)?;
        bytes = &bytes[written..];
        offset += written as u64;
    }
    Ok(())
}

/// The directory that a path is in.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// Makes a rename last. Where directories cannot be synced, it lasts all the same or is not done.
fn sync_directory(path: &Path) {
    if let Ok(directory) = File::open(path) {
        let _ = directory.sync_all();
    }
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

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("book.bin");
        fs::write(&target, "old").unwrap();

        let mut file = AtomicFile::create(&target).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert_eq!(fs::read(&target).unwrap(), b"old");

        let mut file = AtomicFile::create(&target).unwrap();
        file.write_all(b"new").unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"old");
        file.commit().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"new");
        assert_eq!(names(dir.path()), ["book.bin"]);
    }

    #[cfg(unix)]
    #[test]
    fn links_and_devices_stay_what_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let (target, link) = (dir.path().join("real.bin"), dir.path().join("link.bin"));
        fs::write(&target, "old").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let mut file = AtomicFile::create(&link).unwrap();
        file.write_all(b"new").unwrap();
        file.commit().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&target).unwrap(), b"new");

        let file = AtomicFile::create("/dev/null").unwrap();
        file.commit().unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }

    #[test]
    fn a_directory_is_replaced_whole() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("index");
        for content in ["old", "new"] {
            let made = AtomicDir::create(&target).unwrap();
            fs::write(made.path().join(content), content).unwrap();
            made.commit().unwrap();
            assert_eq!(names(&target), [content]);
        }
        drop(AtomicDir::create(&target).unwrap());
        assert_eq!(names(dir.path()), ["index"]);
    }

    #[test]
    fn errors_name_the_target() {
        let err = AtomicFile::create("/nonexistent/book.bin").unwrap_err();
        assert!(err.to_string().contains("/nonexistent/book.bin"), "{err}");
        assert!(AtomicFile::create(std::env::temp_dir()).is_err());
    }
}

//! What was at a target when its output was begun, and whether it is still there unchanged.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs, io,
    path::Path,
};

/// What was at a target when its output was begun.
#[derive(Clone, Default, Debug)]
pub(super) struct Before {
    /// `None` if nothing was there.
    identity: Option<Identity>,
    /// The files of an output that is a directory.
    files: BTreeMap<OsString, Identity>,
}

impl Before {
    /// What is at `path` now. Of a directory, no file belongs to the output yet.
    pub(super) fn of(path: &Path) -> io::Result<Before> {
        Ok(Before {
            identity: Identity::of(path)?,
            files: BTreeMap::new(),
        })
    }

    /// Enters the files of the directory at `path` that belong to the output. Only they may be removed.
    pub(super) fn enter_files(&mut self, path: &Path, names: Vec<OsString>) -> io::Result<()> {
        for name in names {
            if let Some(identity) = Identity::of(&path.join(&name))? {
                self.files.insert(name, identity);
            }
        }
        Ok(())
    }

    pub(super) fn exists(&self) -> bool {
        self.identity.is_some()
    }

    pub(super) fn is_directory(&self) -> bool {
        self.identity.is_some_and(|identity| identity.is_directory)
    }

    /// The names of the files that belong to a directory.
    pub(super) fn files(&self) -> impl DoubleEndedIterator<Item = &OsStr> {
        self.files.keys().map(OsString::as_os_str)
    }

    /// An error if `path` has something else now, or a directory there has a file that was changed or does not belong
    /// to it. What is gone is not an error.
    pub(super) fn check(&self, path: &Path) -> io::Result<()> {
        self.check_as(path, |identity| identity)
    }

    /// The same of what was renamed to `path`. A rename is a change of its own.
    pub(super) fn check_renamed(&self, path: &Path) -> io::Result<()> {
        self.check_as(path, |identity| Identity {
            changed: None,
            ..identity
        })
    }

    fn check_as(&self, path: &Path, aspect: impl Fn(Identity) -> Identity) -> io::Result<()> {
        let Some(now) = Identity::of(path)? else {
            return Ok(());
        };
        if self.identity.map(&aspect) != Some(aspect(now)) {
            return Err(io::Error::other("another program wrote it meanwhile"));
        }
        if !now.is_directory {
            return Ok(());
        }
        // Only known files are removed, so one that cannot be listed is safe.
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        let mut names = entries.map(|entry| entry.file_name());
        match names.find(|name| !self.has_unchanged(path, name)) {
            None => Ok(()),
            Some(name) => Err(io::Error::other(format!(
                "another program wrote {} into it meanwhile",
                name.display()
            ))),
        }
    }

    /// Whether the file `name` in the directory at `path` belongs to it and was not changed.
    pub(super) fn has_unchanged(&self, path: &Path, name: &OsStr) -> bool {
        let now = Identity::of(&path.join(name));
        matches!(now, Ok(Some(now)) if self.files.get(name) == Some(&now))
    }
}

/// Distinguishes a file or directory from others, and a file from itself after it was written again.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Identity {
    device: u64,
    number: u64,
    is_directory: bool,
    /// What every write changes. A directory has none of it: it changes with the files in it.
    size: Option<u64>,
    modified: Option<(i64, i64)>,
    /// When the file, its rights or its name changed, where the system says so.
    changed: Option<(i64, i64)>,
}

impl Identity {
    /// What is at a path, `None` if nothing is.
    fn of(path: &Path) -> io::Result<Option<Identity>> {
        use io::ErrorKind::{NotADirectory, NotFound};
        match Identity::found(path) {
            Err(err) if matches!(err.kind(), NotFound | NotADirectory) => Ok(None),
            found => found.map(Some),
        }
    }

    #[cfg(unix)]
    fn found(path: &Path) -> io::Result<Identity> {
        use std::os::unix::fs::MetadataExt;
        let metadata = fs::symlink_metadata(path)?;
        let is_directory = metadata.is_dir();
        let is_file = !is_directory;
        Ok(Identity {
            device: metadata.dev(),
            number: metadata.ino(),
            is_directory,
            size: is_file.then_some(metadata.size()),
            modified: is_file.then_some((metadata.mtime(), metadata.mtime_nsec())),
            changed: is_file.then_some((metadata.ctime(), metadata.ctime_nsec())),
        })
    }

    #[cfg(windows)]
    fn found(path: &Path) -> io::Result<Identity> {
        use std::os::windows::fs::OpenOptionsExt;
        use windows_sys::Win32::Storage::FileSystem::{
            FILE_ATTRIBUTE_DIRECTORY, FILE_FLAG_BACKUP_SEMANTICS, FILE_FLAG_OPEN_REPARSE_POINT,
        };
        // The right to read nothing is enough, and is given whatever others do with the file.
        let file = fs::File::options()
            .access_mode(0)
            .custom_flags(FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT)
            .open(path)?;
        let information = winapi_util::file::information(&file)?;
        let is_directory = information.file_attributes() & u64::from(FILE_ATTRIBUTE_DIRECTORY) != 0;
        let is_file = !is_directory;
        let written = information.last_write_time().unwrap_or_default();
        Ok(Identity {
            device: information.volume_serial_number(),
            number: information.file_index(),
            is_directory,
            size: is_file.then_some(information.file_size()),
            modified: is_file.then_some((written.cast_signed(), 0)),
            changed: None,
        })
    }
}

//! Determines whether two paths lead to the same file, and whether a file has been changed or replaced.

use std::{
    collections::HashSet,
    fs::{self, File, Metadata},
    io,
    path::Path,
};

use crate::{
    error::{At, Result},
    kind::is_windows_device,
};

/// The identity of a file or directory. Two paths lead to the same file if and only if their `FileId`s are equal.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct FileId {
    device: u64,
    number: u64,
}

impl FileId {
    /// Returns the identity of the file or directory to which `path` leads. Returns `None` if `path` leads to nothing,
    /// to a device or to a pipe.
    ///
    /// On Unix, does not open the file, because closing it would release all locks that the process holds on the file,
    /// including the locks of SQLite. Never opens a pipe, because opening waits for the process at the other end.
    ///
    /// # Errors
    ///
    /// Returns an error if the operating system cannot examine `path`.
    pub(crate) fn of(path: &Path) -> io::Result<Option<FileId>> {
        if is_windows_device(path) {
            return Ok(None);
        }
        match metadata_if_any(path)? {
            Some(metadata) if metadata.is_file() || metadata.is_dir() => {
                #[cfg(unix)]
                return Ok(Some(FileId::of_metadata(&metadata)));
                #[cfg(windows)]
                return FileId::of_open(&opened(path, 0)?).map(Some);
            }
            _ => Ok(None),
        }
    }

    /// Returns the identity of an open file or directory.
    #[cfg(unix)]
    pub(crate) fn of_open(file: &File) -> io::Result<FileId> {
        Ok(FileId::of_metadata(&file.metadata()?))
    }

    /// Returns the identity of an open file or directory.
    #[cfg(windows)]
    pub(crate) fn of_open(file: &File) -> io::Result<FileId> {
        let information = winapi_util::file::information(file)?;
        Ok(FileId {
            device: information.volume_serial_number(),
            number: information.file_index(),
        })
    }

    #[cfg(unix)]
    fn of_metadata(metadata: &Metadata) -> FileId {
        use std::os::unix::fs::MetadataExt;
        FileId {
            device: metadata.dev(),
            number: metadata.ino(),
        }
    }
}

/// Returns `true` if an error means that nothing exists at the path that was used. After any other error, something may
/// exist there.
pub(crate) fn is_absent(err: &io::Error) -> bool {
    use io::ErrorKind::{InvalidFilename, NotADirectory, NotFound};
    matches!(err.kind(), NotFound | NotADirectory | InvalidFilename)
}

/// Returns the metadata of the file or directory to which a path leads, or `None` if nothing exists at the path.
///
/// # Errors
///
/// Returns an error if the operating system cannot examine the path.
pub(crate) fn metadata_if_any(path: &Path) -> io::Result<Option<Metadata>> {
    none_if_absent(fs::metadata(path))
}

/// Returns `true` if a path leads to a directory, and `false` if it leads to a file or to nothing. Unlike
/// [`Path::is_dir`], does not return `false` if an error occurs, so an unreadable directory is not mistaken for a file.
///
/// # Errors
///
/// Returns an error if the operating system cannot examine the path.
pub fn is_directory(path: &Path) -> Result<bool> {
    has_metadata(path, Metadata::is_dir)
}

/// Returns `true` if a path leads to a regular file, and `false` if it leads to a directory, a pipe, a device or
/// nothing. Unlike [`Path::is_file`], does not return `false` if an error occurs, so an unreadable file is not mistaken
/// for a missing one.
///
/// # Errors
///
/// Returns an error if the operating system cannot examine the path.
pub fn is_regular_file(path: &Path) -> Result<bool> {
    has_metadata(path, Metadata::is_file)
}

/// Returns `true` if something exists at `path` and its metadata satisfies `predicate`. Always returns `false` for a
/// device on Windows.
fn has_metadata(path: &Path, predicate: fn(&Metadata) -> bool) -> Result<bool> {
    // Reading the metadata of a device fails on Windows.
    if is_windows_device(path) {
        return Ok(false);
    }
    let metadata = metadata_if_any(path).at(path, "open")?;
    Ok(metadata.as_ref().is_some_and(predicate))
}

/// Returns `true` if `path` is an empty directory, and `false` if it is anything else or does not exist.
///
/// # Errors
///
/// Returns an error if the operating system cannot read the directory.
pub(crate) fn is_empty_directory(path: &Path) -> Result<bool> {
    let entries = none_if_absent(fs::read_dir(path)).at(path, "read")?;
    match entries.map(|mut entries| entries.next().transpose()) {
        Some(first) => Ok(first.at(path, "read")?.is_none()),
        None => Ok(false),
    }
}

/// Converts the result of an operation on a path: a success to `Some`, and an error that means that nothing exists at
/// the path to `Ok(None)`. Returns all other errors unchanged.
fn none_if_absent<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Err(err) if is_absent(&err) => Ok(None),
        found => found.map(Some),
    }
}

/// Opens a file or directory only to examine its metadata. This succeeds even if another program has the file or
/// directory open exclusively. `flags` are additional flags of `CreateFile`.
#[cfg(windows)]
fn opened(path: &Path, flags: u32) -> io::Result<File> {
    use std::os::windows::fs::OpenOptionsExt;
    use windows_sys::Win32::Storage::FileSystem::FILE_FLAG_BACKUP_SEMANTICS;
    File::options()
        .access_mode(0)
        .custom_flags(FILE_FLAG_BACKUP_SEMANTICS | flags)
        .open(path)
}

/// Calls `open`, which opens several files in the directory `path`, or the file `path` several times. If another
/// program replaces `path` meanwhile, `open` gets a mixture of old and new files, which looks damaged. Therefore, calls
/// `open` again as long as it fails and `path` has been replaced.
pub(crate) fn open_again_if_replaced<T>(path: &Path, open: impl FnMut() -> Result<T>) -> Result<T> {
    read_again_if_replaced(path, open, |_| false)
}

/// Calls `read`, which reads several files in the directory `path`, or opens the file `path` several times. If another
/// program replaces `path` meanwhile, `read` gets a mixture of old and new files, which looks damaged. Therefore, calls
/// `read` again if `path` was replaced and `read` failed or returned a value for which `has_damage` returns `true`.
pub(crate) fn read_again_if_replaced<T>(
    path: &Path,
    mut read: impl FnMut() -> Result<T>,
    has_damage: impl Fn(&T) -> bool,
) -> Result<T> {
    loop {
        let before = FileId::of(path).at(path, "open")?;
        let result = read();
        let is_sound = result.as_ref().is_ok_and(|found| !has_damage(found));
        // A directory that is being replaced may have no name for a moment.
        if is_sound || FileId::of(path).at(path, "open")? == before {
            return result;
        }
    }
}

/// Returns an iterator over the inputs that lead to the same file or directory as an earlier input, even if the paths
/// differ. The input `-` means standard input. Skips inputs that the operating system cannot examine.
pub fn repeated<'a>(inputs: impl IntoIterator<Item = &'a Path>) -> impl Iterator<Item = &'a Path> {
    let mut known = HashSet::new();
    inputs.into_iter().filter(move |path| {
        let is_standard_input = *path == Path::new("-");
        let file = FileId::of(path).ok().flatten();
        let file = file.filter(|_| !is_standard_input);
        (is_standard_input || file.is_some()) && !known.insert(file)
    })
}

/// A snapshot of the identity, size and times of a file or directory. If two snapshots of the same path differ, the
/// file or directory was changed or replaced.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct FileState {
    file: FileId,
    pub(super) is_directory: bool,
    /// The size in bytes. For a directory, the size and the times are `None`, because they change whenever a file in it
    /// does.
    size: Option<u64>,
    modified: Option<(i64, i64)>,
    /// The time of the last change of the content, the access rights or the name, if the system records it.
    changed: Option<(i64, i64)>,
}

impl FileState {
    /// Takes a snapshot of the file or directory at `path`, without following links. Returns `None` if nothing exists
    /// at `path`.
    pub(crate) fn of(path: &Path) -> io::Result<Option<FileState>> {
        none_if_absent(FileState::read(path))
    }

    /// Returns a copy without the time of the last change. Because a rename also changes this time, it must be left out
    /// when snapshots from before and after a rename are compared.
    pub(crate) fn renamed(self) -> FileState {
        FileState {
            changed: None,
            ..self
        }
    }

    #[cfg(unix)]
    fn read(path: &Path) -> io::Result<FileState> {
        use std::os::unix::fs::MetadataExt;
        let metadata = fs::symlink_metadata(path)?;
        let is_directory = metadata.is_dir();
        let is_file = !is_directory;
        Ok(FileState {
            file: FileId::of_metadata(&metadata),
            is_directory,
            size: is_file.then_some(metadata.size()),
            modified: is_file.then_some((metadata.mtime(), metadata.mtime_nsec())),
            changed: is_file.then_some((metadata.ctime(), metadata.ctime_nsec())),
        })
    }

    #[cfg(windows)]
    fn read(path: &Path) -> io::Result<FileState> {
        use windows_sys::Win32::Storage::FileSystem::{
            FILE_ATTRIBUTE_DIRECTORY, FILE_FLAG_OPEN_REPARSE_POINT,
        };
        let file = opened(path, FILE_FLAG_OPEN_REPARSE_POINT)?;
        let information = winapi_util::file::information(&file)?;
        let is_directory = information.file_attributes() & u64::from(FILE_ATTRIBUTE_DIRECTORY) != 0;
        let is_file = !is_directory;
        let written = information.last_write_time().unwrap_or_default();
        Ok(FileState {
            file: FileId::of_open(&file)?,
            is_directory,
            size: is_file.then_some(information.file_size()),
            modified: is_file.then_some((written.cast_signed(), 0)),
            changed: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_between_two_directories_opens_the_new_one() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["old", "new"] {
            fs::create_dir(at(name)).unwrap();
            fs::write(at(name).join("CURRENT"), name).unwrap();
            fs::write(at(name).join(name), "").unwrap();
        }
        let mut opened = Vec::new();
        let read = |opened: &mut Vec<String>| {
            let current = at("old").join("CURRENT");
            let name = fs::read_to_string(&current).at(&current, "read")?;
            opened.push(name.clone());
            if opened.len() == 1 {
                // The other directory takes the name now.
                fs::rename(at("old"), at("older")).unwrap();
                fs::rename(at("new"), at("old")).unwrap();
            }
            let path = at("old").join(&name);
            fs::read_to_string(&path).at(&path, "read")
        };
        open_again_if_replaced(&at("old"), || read(&mut opened)).unwrap();
        assert_eq!(opened, ["old", "new"]);
        // Damage is reported unless the directory was replaced. In this case, the new directory is read.
        let mut times = 0;
        let mut found = |replaces: bool| {
            times += 1;
            if replaces && times == 1 {
                fs::rename(at("old"), at("new")).unwrap();
                fs::rename(at("older"), at("old")).unwrap();
            }
            Ok(times)
        };
        let is_damaged = |times: &i32| *times < 3;
        for (replaces, expected) in [(true, 2), (false, 3), (false, 4)] {
            let result = read_again_if_replaced(&at("old"), || found(replaces), is_damaged);
            assert_eq!(result.unwrap(), expected);
        }
        fs::rename(at("old"), at("older")).unwrap();
        fs::rename(at("new"), at("old")).unwrap();
        // A directory that stays is opened once.
        fs::remove_file(at("old").join("new")).unwrap();
        open_again_if_replaced(&at("old"), || read(&mut opened)).unwrap_err();
        assert_eq!(opened, ["old", "new", "new"]);
    }

    #[cfg(unix)]
    #[test]
    fn inputs_that_are_named_twice_are_found_through_links() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("a"), "").unwrap();
        fs::write(at("b"), "").unwrap();
        std::os::unix::fs::symlink(at("a"), at("link")).unwrap();
        let names = ["a", "missing", "-", "link", "missing", "b", "-"];
        let paths = names.map(|name| match name {
            "-" => "-".into(),
            name => at(name),
        });
        let found: Vec<&Path> = repeated(paths.iter().map(|path| &**path)).collect();
        assert_eq!(found, [&at("link"), Path::new("-")]);
    }

    #[cfg(unix)]
    #[test]
    fn an_error_of_the_system_is_not_taken_for_an_absent_file() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("file"), "").unwrap();
        std::os::unix::fs::symlink(at("loop"), at("loop")).unwrap();
        assert!(FileId::of(&at("file")).unwrap().is_some());
        for absent in [at("missing"), at("file/in it"), at(&"n".repeat(256))] {
            assert_eq!(FileId::of(&absent).unwrap(), None);
        }
        assert!(FileId::of(&at("loop")).is_err());
        // A device has no identity, so it may be given for several outputs.
        assert_eq!(FileId::of(Path::new("/dev/null")).unwrap(), None);
    }
}

//! Claims on temporary files and directories. A run claims its own, so that another run for the same target does not
//! remove them.
//!
//! On Unix, a claim is an advisory lock, which does not hinder reading and writing. On Windows, a lock would block
//! reads through any other handle, even in the same process, and SQLite opens its own handles. So on Windows, a claim
//! is an open handle with write access: as long as it exists, the file cannot be opened without sharing it for writing.

use std::{fs::File, io, path::Path};

/// Marks an open temporary file as in use by this process, with an advisory lock, so that other processes of polybook
/// do not remove it. Ignores errors, because some file systems have no locks.
#[cfg(unix)]
pub(super) fn file(file: &File) {
    // An error is ignored, because the run does not need the claim.
    let _ = file.try_lock();
}

/// Does nothing. On Windows, a file that is open for writing is protected from removal anyway.
#[cfg(windows)]
pub(super) fn file(_file: &File) {
    // The open handle is the claim.
}

/// Marks a temporary directory as in use by this process, so that other processes of polybook do not remove it. Returns
/// a handle to the directory. The mark lasts until the handle is dropped.
#[cfg(unix)]
pub(super) fn directory(path: &Path) -> io::Result<File> {
    let directory = File::open(path)?;
    file(&directory);
    Ok(directory)
}

/// Marks a temporary directory as in use by this process, so that other processes of polybook do not remove it. Returns
/// a handle to the directory. The mark lasts until the handle is dropped.
#[cfg(windows)]
pub(super) fn directory(path: &Path) -> io::Result<File> {
    use std::os::windows::fs::OpenOptionsExt;
    use windows_sys::Win32::Storage::FileSystem::{
        FILE_ADD_FILE, FILE_FLAG_BACKUP_SEMANTICS, FILE_LIST_DIRECTORY,
    };
    File::options()
        .access_mode(FILE_ADD_FILE | FILE_LIST_DIRECTORY)
        .custom_flags(FILE_FLAG_BACKUP_SEMANTICS)
        .open(path)
}

/// Marks an old output as in use while it is being replaced: it has a temporary name for a moment, under which another
/// process of polybook might remove it. The mark lasts until the returned file is dropped. Returns `None` if the output
/// cannot be opened. Always returns `None` on Windows, which does not rename open files.
pub(super) fn replaced(path: &Path) -> Option<File> {
    if cfg!(windows) {
        return None;
    }
    let replaced = File::open(path).ok()?;
    file(&replaced);
    Some(replaced)
}

/// Takes over the temporary file or directory at `path`, which another process created, so that it can be removed.
/// `is_directory` says which of the two it is. No third process can take it over until the returned file is dropped.
/// Returns `None` if the process that created it is still running.
///
/// # Errors
///
/// Returns an error if the file or directory cannot be opened or locked. In this case, it is unknown whether its
/// creator is still running.
#[cfg(unix)]
pub(crate) fn left_behind(path: &Path, is_directory: bool) -> io::Result<Option<File>> {
    use std::fs::TryLockError;
    let left = File::options().read(true).write(!is_directory).open(path)?;
    match left.try_lock() {
        Ok(()) => Ok(Some(left)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(err)) => Err(err),
    }
}

/// Opens a temporary file or directory that another process created, so that it can be removed. Returns `None` if the
/// process that created it is still running.
///
/// # Errors
///
/// Returns an error if the file or directory cannot be opened. In this case, it is unknown whether its creator is still
/// running.
#[cfg(windows)]
pub(crate) fn left_behind(path: &Path, _is_directory: bool) -> io::Result<Option<File>> {
    use std::os::windows::fs::OpenOptionsExt;
    use windows_sys::Win32::{
        Foundation::ERROR_SHARING_VIOLATION,
        Storage::FileSystem::{FILE_FLAG_BACKUP_SEMANTICS, FILE_SHARE_DELETE, FILE_SHARE_READ},
    };
    let opened = File::options()
        .read(true)
        .share_mode(FILE_SHARE_READ | FILE_SHARE_DELETE)
        .custom_flags(FILE_FLAG_BACKUP_SEMANTICS)
        .open(path);
    match opened {
        Err(err) if err.raw_os_error() == Some(ERROR_SHARING_VIOLATION.cast_signed()) => Ok(None),
        opened => opened.map(Some),
    }
}

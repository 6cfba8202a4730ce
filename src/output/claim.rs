//! How a run claims its temporaries, so that another run for the same target does not remove them.
//!
//! On Unix the claim is a lock, which is advisory: reading and writing go on as without it. A lock of Windows blocks
//! reads through any other handle, even by the process that holds it, and SQLite opens handles of its own. So there the
//! claim is an open handle that may write: opening the file without sharing it for writing fails while there is one.

use std::{fs::File, io, path::Path};

/// Claims a temporary file. Where files cannot be locked, only the name protects the temporary.
#[cfg(unix)]
pub(super) fn file(file: &File) {
    let _ = file.try_lock();
}

/// The handle that is open for writing is the claim.
#[cfg(windows)]
pub(super) fn file(_file: &File) {}

/// Claims a temporary directory until the answer is dropped.
#[cfg(unix)]
pub(super) fn directory(path: &Path) -> io::Result<File> {
    let directory = File::open(path)?;
    file(&directory);
    Ok(directory)
}

/// Claims a temporary directory until the answer is dropped.
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

/// Claims what is replaced, which has a temporary name for a moment. Windows renames nothing that is open.
pub(super) fn replaced(path: &Path) -> Option<File> {
    if cfg!(windows) {
        return None;
    }
    let replaced = File::open(path).ok()?;
    file(&replaced);
    Some(replaced)
}

/// Claims what a run left until the answer is dropped; `None` if that run lives.
///
/// # Errors
///
/// What cannot be opened or locked, so that it is not known whether the run lives.
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

/// Claims what a run left until the answer is dropped; `None` if that run lives.
///
/// # Errors
///
/// What cannot be opened, so that it is not known whether the run lives.
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

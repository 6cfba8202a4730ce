//! How a run claims its temporaries, so that another run for the same target does not remove them.
//!
//! On Unix the claim is a lock, which is advisory: reading and writing go on as without it. A lock of Windows blocks
//! reads through any other handle, even by the process that holds it, and SQLite opens handles of its own. So there the
//! claim is an open handle that may write: opening the file without sharing it for writing fails while there is one.

use std::{
    fs::{self, File},
    io,
    path::Path,
};

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
    let _ = directory.try_lock();
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

/// Removes a temporary that no run claims; answers whether one does. One that cannot be removed is left.
#[cfg(unix)]
pub(super) fn remove_unless_claimed(path: &Path, is_directory: bool) -> bool {
    let opened = File::options().read(true).write(!is_directory).open(path);
    let Ok(left) = opened else { return false };
    match left.try_lock() {
        Err(fs::TryLockError::WouldBlock) => return true,
        Err(fs::TryLockError::Error(_)) => {}
        Ok(()) => remove(path, is_directory),
    }
    false
}

/// Removes a temporary that no run claims; answers whether one does. One that cannot be removed is left.
#[cfg(windows)]
pub(super) fn remove_unless_claimed(path: &Path, is_directory: bool) -> bool {
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
        Err(err) => err.raw_os_error() == Some(ERROR_SHARING_VIOLATION.cast_signed()),
        Ok(_unclaimed) => {
            remove(path, is_directory);
            false
        }
    }
}

fn remove(path: &Path, is_directory: bool) {
    let _ = if is_directory {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    };
}

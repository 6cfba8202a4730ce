//! Making names durable.

use std::{
    fs::File,
    io::{
        self,
        ErrorKind::{InvalidInput, PermissionDenied, Unsupported},
    },
    path::Path,
};

/// A directory whose names are flushed to the disk.
pub(super) struct Directory {
    /// `None` where the system does not open directories.
    opened: Option<File>,
}

impl Directory {
    pub(super) fn open(path: &Path) -> io::Result<Directory> {
        let opened = match File::open(path) {
            // Who may write a directory may still not be allowed to read it. Windows opens none.
            Err(err) if cfg!(windows) || err.kind() == PermissionDenied => None,
            opened => Some(opened?),
        };
        Ok(Directory { opened })
    }

    /// Makes renames in the directory durable, where its file system can.
    pub(super) fn sync(&self) -> io::Result<()> {
        let Some(directory) = &self.opened else {
            return Ok(());
        };
        match directory.sync_all() {
            Err(err) if matches!(err.kind(), InvalidInput | Unsupported) => Ok(()),
            synced => synced,
        }
    }
}

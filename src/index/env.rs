//! The file system that LevelDB is given: files on the disk underneath, and whatever is written on top
//! of them in memory.
//!
//! With a disk underneath, an index is read without a byte of it being changed: not its lock, its log or
//! its manifest, so a read-only medium will do and other programs may read it meanwhile. Without one,
//! LevelDB makes a table in memory.

use std::{
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use rusty_leveldb::{
    MemEnv, PosixDiskEnv, Result,
    env::{Env, FileLock, Logger, RandomAccess},
};

/// Files in memory over files on the disk.
pub(super) struct Overlay {
    memory: MemEnv,
    disk: Option<PosixDiskEnv>,
}

impl Overlay {
    /// Nothing but memory.
    pub(super) fn in_memory() -> Overlay {
        Overlay {
            memory: MemEnv::new(),
            disk: None,
        }
    }

    /// Over the disk, which is never written.
    pub(super) fn over_disk() -> Overlay {
        Overlay {
            memory: MemEnv::new(),
            disk: Some(PosixDiskEnv::new()),
        }
    }

    /// Where a file that is read is to be found.
    fn holder(&self, path: &Path) -> &dyn Env {
        match &self.disk {
            Some(disk) if !self.memory.exists(path).unwrap_or(false) => disk,
            _ => &self.memory,
        }
    }
}

/// Write-ahead logs are of no use here: what is written is never recovered.
fn is_log(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "log")
}

impl Env for Overlay {
    fn open_sequential_file(&self, path: &Path) -> Result<Box<dyn Read>> {
        self.holder(path).open_sequential_file(path)
    }

    fn open_random_access_file(&self, path: &Path) -> Result<Box<dyn RandomAccess>> {
        self.holder(path).open_random_access_file(path)
    }

    fn open_writable_file(&self, path: &Path) -> Result<Box<dyn Write>> {
        if is_log(path) {
            return Ok(Box::new(io::sink()));
        }
        self.memory.open_writable_file(path)
    }

    fn open_appendable_file(&self, path: &Path) -> Result<Box<dyn Write>> {
        if is_log(path) || self.disk.is_some() {
            return Ok(Box::new(io::sink()));
        }
        self.memory.open_appendable_file(path)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.holder(path).exists(path)
    }

    fn children(&self, path: &Path) -> Result<Vec<PathBuf>> {
        let mut children = self.memory.children(path).unwrap_or_default();
        if let Some(disk) = &self.disk {
            children.extend(disk.children(path)?);
        }
        children.sort();
        children.dedup();
        Ok(children)
    }

    fn size_of(&self, path: &Path) -> Result<usize> {
        self.holder(path).size_of(path)
    }

    fn delete(&self, path: &Path) -> Result<()> {
        if self.memory.exists(path)? {
            self.memory.delete(path)?;
        }
        Ok(())
    }

    fn mkdir(&self, _path: &Path) -> Result<()> {
        Ok(())
    }

    fn rmdir(&self, _path: &Path) -> Result<()> {
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.memory.rename(from, to)
    }

    fn lock(&self, path: &Path) -> Result<FileLock> {
        // Nothing is written that others could see.
        Ok(FileLock {
            id: path.to_string_lossy().into_owned(),
        })
    }

    fn unlock(&self, _lock: FileLock) -> Result<()> {
        Ok(())
    }

    fn new_logger(&self, _path: &Path) -> Result<Logger> {
        Ok(Logger::new(Box::new(io::sink())))
    }

    fn micros(&self) -> u64 {
        self.memory.micros()
    }

    fn sleep_for(&self, micros: u32) {
        self.memory.sleep_for(micros);
    }
}

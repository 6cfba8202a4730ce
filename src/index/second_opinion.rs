//! Reading an index with the crate `rusty-leveldb`, an independent implementation of LevelDB, to verify
//! polybook's own reader.

use std::{
    cell::RefCell,
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    rc::Rc,
};

use rusty_leveldb::{
    DB, DBIterator, LdbIterator, MemEnv, Options,
    env::{Env, FileLock, Logger, RandomAccess},
};

use crate::{
    error::{Error, Result},
    storage::positioned::read_exact_at,
};

/// The maximum number of files that the crate `rusty-leveldb` may keep open: 64 tables, and ten files that the crate
/// reserves for other purposes.
const OPEN_TABLES: usize = 74;

/// A shared store for the first error that the operating system reports while `rusty-leveldb` reads files.
/// `rusty-leveldb` itself turns such an error into text, or treats it as the end of the data, so a failing disk would
/// look like a damaged index.
#[derive(Clone, Default)]
pub(super) struct SystemError(Rc<RefCell<Option<io::Error>>>);

impl SystemError {
    /// Removes the error from the store and returns it. Returns `None` if no error is stored.
    pub(super) fn take(&self) -> Option<io::Error> {
        self.0.take()
    }

    /// Returns `result` unchanged. If it is an error, also stores a copy of the error, unless an earlier error is
    /// already stored.
    fn noted<T>(&self, result: io::Result<T>) -> io::Result<T> {
        if let Err(err) = &result {
            let copy = match err.raw_os_error() {
                Some(code) => io::Error::from_raw_os_error(code),
                None => io::Error::new(err.kind(), err.to_string()),
            };
            self.0.borrow_mut().get_or_insert(copy);
        }
        result
    }
}

/// A second reader for the entries of an index, which uses the crate `rusty-leveldb`. To verify an index, polybook
/// compares these entries with those from its own reader.
pub(super) struct SecondOpinion {
    entries: DBIterator,
    _database: DB,
}

impl SecondOpinion {
    /// Opens the database in `directory` with `rusty-leveldb`, without changing the directory. `failure` receives the
    /// first error that the operating system reports, now or while entries are read later.
    ///
    /// # Errors
    ///
    /// Returns an error if `rusty-leveldb` cannot open the database.
    pub(super) fn open(directory: &Path, failure: SystemError) -> Result<SecondOpinion> {
        let options = Options {
            env: Rc::new(Box::new(ReadOnly {
                directory: directory.to_owned(),
                memory: MemEnv::new(),
                failure,
            })),
            create_if_missing: false,
            reuse_logs: false,
            reuse_manifest: false,
            max_open_files: OPEN_TABLES,
            ..Options::default()
        };
        let open = || {
            let mut database = DB::open(NAME, options)?;
            let mut entries = database.new_iter()?;
            entries.seek_to_first();
            Ok(SecondOpinion {
                entries,
                _database: database,
            })
        };
        open().map_err(|err: rusty_leveldb::Status| {
            Error::damaged(
                directory,
                format!(
                    "the library rusty-leveldb, which checks the index a second time, cannot \
                                               open the index: {err}"
                ),
            )
        })
    }

    /// Returns the key of the current entry, or `None` if the reader has reached the end of the database.
    pub(super) fn key(&self) -> Option<Vec<u8>> {
        self.entries.current().map(|(key, _)| key.to_vec())
    }

    /// Compares the current entry with `key` and `value`, and advances to the next entry. Returns `true` if the entry
    /// has this key and this value. Returns `false` if it differs, or if no entry is left.
    pub(super) fn agrees(&mut self, key: &[u8], value: &[u8]) -> bool {
        let Some(present) = self.entries.current() else {
            return false;
        };
        self.entries.advance();
        (&present.0[..], &present.1[..]) == (key, value)
    }
}

/// A file whose `read` always fills the whole buffer, except at the end of the file. On network file systems, a read
/// may return fewer bytes, and `rusty-leveldb` would treat this as the end of the file. The second field receives
/// errors of the operating system.
struct Filling(File, SystemError);

impl Read for Filling {
    fn read(&mut self, mut buffer: &mut [u8]) -> io::Result<usize> {
        let mut wanted = (&self.0).take(buffer.len() as u64);
        let read = io::copy(&mut wanted, &mut buffer);
        self.1.noted(read).map(|read| read as usize)
    }
}

impl RandomAccess for Filling {
    fn read_at(&self, offset: usize, buffer: &mut [u8]) -> rusty_leveldb::Result<usize> {
        let size = self.1.noted(self.0.metadata())?.len() as usize;
        let length = size.saturating_sub(offset).min(buffer.len());
        let read = read_exact_at(&self.0, &mut buffer[..length], offset as u64);
        self.1.noted(read)?;
        Ok(length)
    }
}

/// The directory name that is passed to `rusty-leveldb`. It has no effect, because [`ReadOnly`] ignores directory
/// names.
const NAME: &str = "\0";

/// A file system environment for `rusty-leveldb`. It reads existing files from a directory on disk, but keeps new files
/// in memory, so the directory is never changed.
struct ReadOnly {
    directory: PathBuf,
    memory: MemEnv,
    failure: SystemError,
}

impl ReadOnly {
    /// Returns the path on disk of the file that `rusty-leveldb` calls `path`. Only the file name in `path` is used.
    fn on_disk(&self, path: &Path) -> PathBuf {
        self.directory.join(path.file_name().unwrap_or_default())
    }

    /// Opens the file on disk that `rusty-leveldb` calls `path`.
    fn open(&self, path: &Path) -> io::Result<Filling> {
        let file = self.failure.noted(File::open(self.on_disk(path)))?;
        Ok(Filling(file, self.failure.clone()))
    }
}

impl Env for ReadOnly {
    fn open_sequential_file(&self, path: &Path) -> rusty_leveldb::Result<Box<dyn Read>> {
        match self.memory.exists(path)? {
            true => self.memory.open_sequential_file(path),
            false => Ok(Box::new(self.open(path)?)),
        }
    }

    fn open_random_access_file(&self, path: &Path) -> rusty_leveldb::Result<Box<dyn RandomAccess>> {
        match self.memory.exists(path)? {
            true => self.memory.open_random_access_file(path),
            false => Ok(Box::new(self.open(path)?)),
        }
    }

    fn open_writable_file(&self, path: &Path) -> rusty_leveldb::Result<Box<dyn Write>> {
        self.memory.open_writable_file(path)
    }

    fn open_appendable_file(&self, path: &Path) -> rusty_leveldb::Result<Box<dyn Write>> {
        self.memory.open_appendable_file(path)
    }

    fn exists(&self, path: &Path) -> rusty_leveldb::Result<bool> {
        let on_disk = || self.failure.noted(self.on_disk(path).try_exists());
        Ok(self.memory.exists(path)? || on_disk()?)
    }

    fn children(&self, path: &Path) -> rusty_leveldb::Result<Vec<PathBuf>> {
        let mut children = self.memory.children(path)?;
        for entry in self.failure.noted(fs::read_dir(&self.directory))? {
            children.push(self.failure.noted(entry)?.file_name().into());
        }
        Ok(children)
    }

    fn size_of(&self, path: &Path) -> rusty_leveldb::Result<usize> {
        match self.memory.exists(path)? {
            true => self.memory.size_of(path),
            false => {
                let metadata = self.failure.noted(self.on_disk(path).metadata());
                Ok(metadata?.len() as usize)
            }
        }
    }

    fn delete(&self, _: &Path) -> rusty_leveldb::Result<()> {
        Ok(())
    }

    fn mkdir(&self, _: &Path) -> rusty_leveldb::Result<()> {
        Ok(())
    }

    fn rmdir(&self, _: &Path) -> rusty_leveldb::Result<()> {
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> rusty_leveldb::Result<()> {
        self.memory.rename(from, to)
    }

    fn lock(&self, _: &Path) -> rusty_leveldb::Result<FileLock> {
        Ok(FileLock { id: String::new() })
    }

    fn unlock(&self, _: FileLock) -> rusty_leveldb::Result<()> {
        Ok(())
    }

    fn new_logger(&self, _: &Path) -> rusty_leveldb::Result<Logger> {
        Ok(Logger::new(Box::new(io::sink())))
    }

    fn micros(&self) -> u64 {
        0
    }

    fn sleep_for(&self, _: u32) {}
}

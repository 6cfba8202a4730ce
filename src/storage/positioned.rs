//! Reads and writes files at given offsets, from any thread. On Windows, this also moves the file's cursor, so a caller
//! that also reads or writes sequentially must seek first.

use std::{
    fs::{File, Metadata},
    io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    time::SystemTime,
};

/// The number of files that all [`StoredFile`]s of this process currently keep open.
static OPEN_FILES: AtomicUsize = AtomicUsize::new(0);

/// The maximum number of files that all [`StoredFile`]s of this process keep open. It is low because some systems allow
/// a process only 256 open files.
const MAX_OPEN_FILES: usize = 64;

/// A file that is read at arbitrary offsets. It is kept open unless the process already keeps [`MAX_OPEN_FILES`] such
/// files open. In that case, each read opens the file again.
#[derive(Debug)]
pub(crate) enum StoredFile {
    Open {
        file: File,
        /// The expected stamp of the file, which is checked after each read. `None` for a temporary file, because no
        /// other program writes it.
        stamp: Option<FileStamp>,
        /// Whether the file is included in the number [`OPEN_FILES`].
        is_counted: bool,
    },
    /// A file that is opened for each read, given by its path and expected stamp.
    Named(PathBuf, FileStamp),
}

/// A value that differs after a file was modified or replaced. It contains the two numbers that identify the file in
/// the file system, its size in bytes and, if known, its modification time.
type FileStamp = ([u64; 3], Option<SystemTime>);

impl StoredFile {
    /// Creates a file that can be read at arbitrary offsets. `path` must be the path of `file`. If too many files are
    /// already open, closes `file`; each read then opens it again by its path.
    ///
    /// # Errors
    ///
    /// Returns an error if the metadata of the file cannot be read.
    pub(crate) fn new(file: File, path: &Path) -> io::Result<StoredFile> {
        let one_more = |held| (held < MAX_OPEN_FILES).then_some(held + 1);
        let stamp = stamp(&file.metadata()?);
        match OPEN_FILES.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more) {
            Ok(_) => Ok(StoredFile::Open {
                file,
                stamp: Some(stamp),
                is_counted: true,
            }),
            Err(_) => Ok(StoredFile::Named(path.to_owned(), stamp)),
        }
    }

    /// Fills `buffer` with the bytes at `offset` of the file.
    ///
    /// # Errors
    ///
    /// Returns an error if the file ends before the buffer is full, if it cannot be read, or if it has been changed or
    /// replaced since it was first opened.
    pub(crate) fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        match self {
            StoredFile::Open { file, stamp, .. } => {
                read_exact_at(file, buffer, offset)?;
                stamp.map_or(Ok(()), |expected| {
                    refuse_changed(&file.metadata()?, expected)
                })
            }
            StoredFile::Named(path, expected) => {
                // Opening the file would block if it was replaced by a pipe.
                refuse_changed(&path.metadata()?, *expected)?;
                let file = File::open(path)?;
                refuse_changed(&file.metadata()?, *expected)?;
                read_exact_at(&file, buffer, offset)?;
                refuse_changed(&file.metadata()?, *expected)
            }
        }
    }
}

impl Drop for StoredFile {
    fn drop(&mut self) {
        if let StoredFile::Open {
            is_counted: true, ..
        } = self
        {
            OPEN_FILES.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Returns an error if a file was changed or replaced: if the identity, size or modification time in `metadata` differs
/// from `expected`.
fn refuse_changed(metadata: &Metadata, expected: FileStamp) -> io::Result<()> {
    if stamp(metadata) == expected {
        Ok(())
    } else {
        Err(io::Error::other("the file was changed while it was read"))
    }
}

fn stamp(metadata: &Metadata) -> FileStamp {
    #[cfg(unix)]
    let id = {
        use std::os::unix::fs::MetadataExt;
        [metadata.dev(), metadata.ino()]
    };
    #[cfg(windows)]
    let id = {
        use std::os::windows::fs::MetadataExt;
        [metadata.creation_time(), 0]
    };
    ([id[0], id[1], metadata.len()], metadata.modified().ok())
}

/// Fills `buffer` with the bytes at `offset` of a file.
///
/// # Errors
///
/// Returns an error of kind `UnexpectedEof` if the file ends before the buffer is full.
#[cfg(unix)]
pub(crate) fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
}

/// Fills `buffer` with the bytes at `offset` of a file.
///
/// # Errors
///
/// Returns an error of kind `UnexpectedEof` if the file ends before the buffer is full.
#[cfg(windows)]
pub(crate) fn read_exact_at(file: &File, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
    use std::os::windows::fs::FileExt;
    while !buffer.is_empty() {
        match file.seek_read(buffer, offset)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                buffer = &mut buffer[read..];
                offset += read as u64;
            }
        }
    }
    Ok(())
}

/// Writes all of `bytes` at `offset` of a file.
#[cfg(unix)]
pub(crate) fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

/// Writes all of `bytes` at `offset` of a file.
#[cfg(windows)]
pub(crate) fn write_all_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    use std::os::windows::fs::FileExt;
    while !bytes.is_empty() {
        let written = file.seek_write(bytes, offset)?;
        bytes = &bytes[written..];
        offset += written as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_that_is_changed_in_place_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("book.bin");
        fs::write(&path, "old").unwrap();
        let opened = File::open(&path).unwrap();
        let known = stamp(&opened.metadata().unwrap());
        let files = [
            StoredFile::new(opened, &path).unwrap(),
            StoredFile::Named(path.clone(), known),
        ];
        let read = |file: &StoredFile| file.read_exact_at(&mut [0; 2], 1);
        files.iter().for_each(|file| read(file).unwrap());
        let writer = File::options().write(true).open(&path).unwrap();
        write_all_at(&writer, b"new", 0).unwrap();
        writer
            .set_modified(known.1.unwrap() + std::time::Duration::from_secs(1))
            .unwrap();
        for file in &files {
            let err = read(file).unwrap_err();
            assert_eq!(err.to_string(), "the file was changed while it was read");
        }
    }

    #[test]
    fn a_file_that_is_opened_for_each_read_must_be_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("book.bin");
        fs::write(&path, "old").unwrap();
        let known = stamp(&fs::metadata(&path).unwrap());
        let file = StoredFile::Named(path.clone(), known);
        let mut bytes = [0; 2];
        file.read_exact_at(&mut bytes, 1).unwrap();
        assert_eq!(&bytes, b"ld");
        fs::remove_file(&path).unwrap();
        fs::write(&path, "newer").unwrap();
        let read = |bytes: &mut [u8]| file.read_exact_at(bytes, 1).unwrap_err().to_string();
        assert_eq!(read(&mut bytes), "the file was changed while it was read");
        // Opening this pipe would block, because no program writes to it.
        #[cfg(unix)]
        {
            fs::remove_file(&path).unwrap();
            let made = std::process::Command::new("mkfifo").arg(&path).status();
            assert!(made.unwrap().success());
            assert_eq!(read(&mut bytes), "the file was changed while it was read");
        }
    }
}

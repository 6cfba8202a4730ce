//! Inputs: files and standard input, compressed or not.

mod kind;
mod stream;
#[cfg(feature = "compression")]
mod unpack;
mod window;

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
};

pub use self::stream::Stream;
use self::window::zstd_window;
use super::GameReader;
use crate::{
    error::{At, Error, Result},
    kind::FileKind,
    position::Variant,
};

/// A source of PGN: a file or standard input. [`MakeBook`](crate::MakeBook) also accepts a directory of
/// [counts](crate::counts).
///
/// If the crate's feature `compression` is enabled, gzip, bzip2, zstd and zip are decompressed. The compression is
/// recognized by the first bytes, not by the name. All members of a gzip file, all streams of a bzip2 file, all frames of a
/// zstd file and all `.pgn` members of a zip archive are read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Input {
    /// The path of the file, or `None` for standard input.
    path: Option<PathBuf>,
    /// The variant of games without a `Variant` tag.
    untagged: Variant,
}

/// Options for opening an [`Input`].
#[derive(Clone, Debug)]
pub struct StreamOptions {
    /// A flag that cancels reading. After it is set, reading fails with [`Error::Interrupted`] within a tenth of a second,
    /// even if it waits for a silent pipe.
    pub stop: Arc<AtomicBool>,
    /// The memory budget for unpacking, in bytes. 8 MiB are always allowed. A zstd file states how much memory it needs, and
    /// is refused if that is more. Default: 128 MiB.
    pub memory: usize,
}

impl Default for StreamOptions {
    fn default() -> StreamOptions {
        StreamOptions {
            stop: Arc::default(),
            memory: 128 << 20,
        }
    }
}

/// The maximum size, in bytes, of a zstd window that is allowed with any memory budget. A file that was compressed
/// without long-range matching has no larger window.
const SMALL_WINDOW: usize = 8 << 20;

impl Input {
    /// Creates an input that reads a file.
    pub fn file(path: impl Into<PathBuf>) -> Input {
        Input {
            path: Some(path.into()),
            untagged: Variant::Standard,
        }
    }

    /// Creates an input that reads standard input.
    pub fn stdin() -> Input {
        Input {
            path: None,
            untagged: Variant::Standard,
        }
    }

    /// Creates the input for a path from the command line, where `-` means standard input.
    pub fn from_argument(path: impl Into<PathBuf>) -> Input {
        let path = path.into();
        if path == Path::new("-") {
            Input::stdin()
        } else {
            Input::file(path)
        }
    }

    /// Reads games without a `Variant` tag as games of this variant. Default: standard chess.
    pub fn with_untagged_variant(mut self, variant: Variant) -> Input {
        self.untagged = variant;
        self
    }

    /// Returns the variant of games without a `Variant` tag.
    pub(crate) fn untagged_variant(&self) -> Variant {
        self.untagged
    }

    /// Creates a reader for the games in `text`, which is a part of this input.
    pub(crate) fn reader<'a>(&self, text: &'a [u8]) -> GameReader<'a> {
        GameReader::new(text).with_untagged_variant(self.untagged)
    }

    /// Returns the path of the file, or `-` for standard input.
    pub fn path(&self) -> &Path {
        self.path.as_deref().unwrap_or(Path::new("-"))
    }

    /// Returns `true` for standard input.
    pub fn is_stdin(&self) -> bool {
        self.path.is_none()
    }

    /// Returns the file name without directories and without the extension of its compression, so that a file has the same
    /// name compressed and unpacked.
    pub fn name(&self) -> String {
        let Some(path) = &self.path else {
            return "standard input".to_owned();
        };
        let name = path.file_name().unwrap_or(path.as_os_str());
        let name = name.to_string_lossy();
        for packing in [".gz", ".bz2", ".zst", ".zip"] {
            if let Some(stem) = name.strip_suffix(packing) {
                let pgn = stem.to_ascii_lowercase().ends_with(".pgn");
                return if pgn {
                    stem.to_owned()
                } else {
                    format!("{stem}.pgn")
                };
            }
        }
        name.into_owned()
    }

    /// Returns the size of the file on disk, before decompression, in bytes. Returns `None` if the input is not a
    /// regular file.
    pub fn size(&self) -> Option<u64> {
        let metadata = self.path.as_ref()?.metadata().ok()?;
        metadata.is_file().then_some(metadata.len())
    }

    /// Returns the kind of the file; [`FileKind::Other`] for standard input.
    ///
    /// # Errors
    ///
    /// Returns an error if the file does not exist or cannot be read.
    pub fn kind(&self) -> Result<FileKind> {
        self.path.as_ref().map_or(Ok(FileKind::Other), FileKind::of)
    }

    /// Returns `true` if the input is compressed. Then all bytes before a game must be unpacked to read the game.
    ///
    /// # Errors
    ///
    /// Returns an error if the file does not exist or cannot be read.
    pub fn is_packed(&self) -> Result<bool> {
        Ok(self.kind()?.is_unpacked())
    }

    /// Checks that the input exists and can be read. A named pipe is not opened, because that would block until a program
    /// writes to it.
    ///
    /// # Errors
    ///
    /// Returns an error if the file does not exist, cannot be read or is a directory.
    pub fn check(&self) -> Result<()> {
        match &self.path {
            Some(path) if self.size().is_some() || !path.exists() || path.is_dir() => {
                open(path).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Returns how many of the `memory` bytes of a run must be reserved for unpacking this input. A zstd file states its need
    /// in its first bytes, and gets at most half of the memory. Files that need at most 8 MiB get nothing, because that is
    /// always allowed. The need of a pipe is unknown, so a pipe gets an eighth.
    pub fn unpacking_memory(&self, memory: usize) -> usize {
        let (Some(path), Some(_)) = (&self.path, self.size()) else {
            return memory / 8;
        };
        let window = file_start(path).ok().and_then(|start| zstd_window(&start));
        match window {
            Some(window) if window > SMALL_WINDOW as u64 => {
                let needed = window
                    .checked_next_power_of_two()
                    .and_then(|bytes| usize::try_from(bytes).ok())
                    .unwrap_or(usize::MAX);
                needed.min(memory / 2)
            }
            _ => 0,
        }
    }

    /// Opens the input, and returns a stream of its unpacked bytes. A separate thread opens, reads and unpacks the input. The
    /// input is opened once, so it may be a pipe.
    ///
    /// # Errors
    ///
    /// Returns an error if the file does not exist, cannot be read or is a directory, and [`Error::Interrupted`] if the
    /// stop flag is set.
    ///
    /// Reading the stream fails if the file's first bytes show that it is not PGN, if the file changes while it is
    /// read, or if unpacking needs more memory than [`StreamOptions::memory`]. For a zip archive, it also fails if the
    /// archive is damaged or encrypted, contains no `.pgn` file, or contains several files with the same name.
    pub fn open(&self, options: &StreamOptions) -> Result<Stream> {
        self.open_until(options, Arc::default())
    }

    /// Opens the input like [`open`](Input::open), with `failed` as a second stop flag.
    pub(crate) fn open_until(
        &self,
        options: &StreamOptions,
        failed: Arc<AtomicBool>,
    ) -> Result<Stream> {
        Stream::open(self.clone(), options, failed)
    }

    /// Converts an error of reading the [`Stream`] of this input to the error to report.
    pub fn error(&self, err: io::Error) -> Error {
        match err.downcast::<Error>() {
            Ok(err) => err,
            // An error without a number comes from a decoder, not from the operating system.
            Err(err)
                if err.raw_os_error().is_none() && err.kind() != io::ErrorKind::OutOfMemory =>
            {
                let problem = format!("damaged: {err}; unpack or download it again");
                Error::damaged(self.path(), problem)
            }
            Err(source) => Error::Io {
                path: self.path().to_owned(),
                doing: "read",
                source,
            },
        }
    }
}

/// The number of bytes at the start of a file from which its compression and the size of its zstd window can be
/// determined.
const START: usize = 18;

/// Opens a file for reading, or returns an error that gives advice if the path leads to a directory.
fn open(path: &Path) -> Result<File> {
    // Windows cannot open directories. The metadata of the file is not used because a Windows console has none.
    if path.is_dir() {
        return Err(Error::file(
            path,
            "is a directory: name the PGN files in it",
        ));
    }
    File::open(path).at(path, "open")
}

/// Reads the first [`START`] bytes of a file, from which its compression can be determined.
fn file_start(path: &Path) -> io::Result<Vec<u8>> {
    read_start(&mut File::open(path)?)
}

/// Reads the first [`START`] bytes, or all bytes if there are fewer.
fn read_start(source: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut start = Vec::with_capacity(START);
    source.take(START as u64).read_to_end(&mut start)?;
    Ok(start)
}

#[cfg(all(test, feature = "compression"))]
mod tests;

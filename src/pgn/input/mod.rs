//! Inputs: files and standard input, packed or not.

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
use crate::{
    error::{At, Error, Result},
    kind::FileKind,
};

/// A source of PGN: a file, or standard input. [`MakeBook`](crate::MakeBook) also takes a directory of
/// [counts](crate::counts).
///
/// Its first bytes, not its name, show whether it is packed: gzip (many members), bzip2
/// (many streams), zstd (many frames) and zip (every `.pgn` member) are unpacked, if the crate's feature
/// `compression` is on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Input {
    /// `None` for standard input.
    path: Option<PathBuf>,
}

/// How an [`Input`] is read.
#[derive(Clone, Debug)]
pub struct StreamOptions {
    /// Once this is set, waiting for the input ends with [`Error::Interrupted`] within a tenth of a
    /// second, even if a pipe gives nothing.
    pub stop: Arc<AtomicBool>,
    /// The most memory for unpacking, in bytes. 8 MiB are always allowed. Archives of zstd say how much they
    /// need; one that needs more is refused. Default: 128 MiB.
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

/// Windows of zstd up to this size are always allowed: 8 MiB, what archives have that are not packed for
/// a long range.
const SMALL_WINDOW: usize = 8 << 20;

impl Input {
    /// A file.
    pub fn file(path: impl Into<PathBuf>) -> Input {
        Input {
            path: Some(path.into()),
        }
    }

    /// Standard input.
    pub fn stdin() -> Input {
        Input { path: None }
    }

    /// What the command line means by a name: `-` is standard input.
    pub fn from_argument(path: impl Into<PathBuf>) -> Input {
        let path = path.into();
        if path == Path::new("-") {
            Input::stdin()
        } else {
            Input::file(path)
        }
    }

    /// The file, or `-`.
    pub fn path(&self) -> &Path {
        self.path.as_deref().unwrap_or(Path::new("-"))
    }

    /// Whether this is standard input.
    pub fn is_stdin(&self) -> bool {
        self.path.is_none()
    }

    /// The name of the PGN for people, without directories and without the ending that its packing
    /// gave it, so that a file has the same name packed and unpacked.
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

    /// The size of the file as it is, packed or not; `None` where that is not known.
    pub fn size(&self) -> Option<u64> {
        let metadata = self.path.as_ref()?.metadata().ok()?;
        metadata.is_file().then_some(metadata.len())
    }

    /// The kind of the file; [`FileKind::Other`] for standard input.
    ///
    /// # Errors
    ///
    /// A missing or unreadable file.
    pub fn kind(&self) -> Result<FileKind> {
        self.path.as_ref().map_or(Ok(FileKind::Other), FileKind::of)
    }

    /// Whether the input is packed, so that all before a game must be unpacked to read the game.
    ///
    /// # Errors
    ///
    /// A missing or unreadable file.
    pub fn is_packed(&self) -> Result<bool> {
        Ok(self.kind()?.is_unpacked())
    }

    /// Makes sure that the input is there and can be read. A named pipe is not opened, because that
    /// would wait for its other end.
    ///
    /// # Errors
    ///
    /// A missing or unreadable file, or a directory.
    pub fn check(&self) -> Result<()> {
        match &self.path {
            Some(path) if self.size().is_some() || !path.exists() || path.is_dir() => {
                open(path).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// How many bytes of a run's memory must be kept free for unpacking this input. Files of zstd say in
    /// their first bytes what they need, and get at most half of the memory; most need so little that it
    /// is not worth a budget, and get none. The size of a pipe is unknown, so it gets an eighth.
    pub fn unpacking_memory(&self, memory: usize) -> usize {
        let (Some(path), Some(_)) = (&self.path, self.size()) else {
            return memory / 8;
        };
        let window = file_start(path).ok().and_then(|start| zstd_window(&start));
        match window {
            Some(window) if window > SMALL_WINDOW as u64 => {
                let needed = usize::try_from(window.next_power_of_two()).unwrap_or(usize::MAX);
                needed.min(memory / 2)
            }
            _ => 0,
        }
    }

    /// Opens the input for reading its unpacked bytes. A thread of its own opens, reads and unpacks it;
    /// this waits until the thread knows how it is packed.
    ///
    /// # Errors
    ///
    /// A missing or unreadable file, a directory, a zip archive that is damaged, encrypted or holds no
    /// `.pgn` member, an archive that needs more than [`StreamOptions::memory`], a file that is
    /// certainly not PGN, and [`Error::Interrupted`].
    pub fn open(&self, options: &StreamOptions) -> Result<Stream> {
        self.open_until(options, Arc::default())
    }

    /// As [`open`](Input::open). When `failed` is set, reading ends as if it were the stop flag.
    pub(crate) fn open_until(
        &self,
        options: &StreamOptions,
        failed: Arc<AtomicBool>,
    ) -> Result<Stream> {
        Stream::open(self.clone(), options, failed)
    }

    /// The error to report when reading the [`Stream`] of this input failed.
    pub fn error(&self, err: io::Error) -> Error {
        match err.downcast::<Error>() {
            Ok(err) => err,
            // What the operating system did not say, an unpacker did.
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

/// This many bytes show how a file is packed, and the window of zstd.
const START: usize = 18;

fn open(path: &Path) -> Result<File> {
    // Windows opens no directory, and a console has no metadata there.
    if path.is_dir() {
        return Err(Error::file(
            path,
            "is a directory: name the PGN files in it",
        ));
    }
    File::open(path).at(path, "open")
}

/// The first bytes of a file, which show how it is packed.
fn file_start(path: &Path) -> io::Result<Vec<u8>> {
    read_start(&mut File::open(path)?)
}

/// The first bytes, fewer if there are no more.
fn read_start(source: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut start = Vec::with_capacity(START);
    source.take(START as u64).read_to_end(&mut start)?;
    Ok(start)
}

#[cfg(all(test, feature = "compression"))]
mod tests;

//! Inputs: files and standard input, compressed or not. Files that are certainly not PGN are refused.
//!
//! A [`Stream`] has the unpacked bytes of an input, which a separate thread reads and unpacks. The thread sends chunks through
//! a bounded queue, so unpacking and parsing overlap. A caller that waits for a silent pipe can be cancelled: the thread stays
//! blocked until the pipe provides data or the process ends.

#[cfg(all(test, feature = "compression"))]
mod tests;
#[cfg(feature = "compression")]
mod unpack;
mod window;

use std::{
    fmt,
    fs::File,
    io::{self, Cursor, Read},
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::SystemTime,
};

use self::window::zstd_window;
use super::GameReader;
use crate::{
    error::{At, Error, Result},
    kind::{FileKind, Format, is_windows_device},
    position::{BookMove, Variant},
    task::{self, Feed, Feeder},
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

/// The size of a chunk in bytes.
const CHUNK: usize = 1 << 18;

/// The maximum number of chunks in the queue.
const AHEAD: usize = 4;

/// A reader of the unpacked bytes of an [`Input`].
///
/// Convert errors of [`read`](Read::read) with [`Input::error`].
pub struct Stream {
    chunks: Feed<Vec<u8>>,
    chunk: Cursor<Vec<u8>>,
    stop: [Arc<AtomicBool>; 2],
    /// The number of bytes that have been read from the input, before unpacking.
    pub taken: Arc<AtomicU64>,
    /// A description of the files of a zip archive that are not read, if there are any.
    pub(crate) left_out: Arc<OnceLock<String>>,
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("taken", &self.taken)
            .finish_non_exhaustive()
    }
}

impl Stream {
    /// Starts the thread that reads the input, and waits until the input is open.
    pub(super) fn open(
        input: Input,
        options: &StreamOptions,
        failed: Arc<AtomicBool>,
    ) -> Result<Stream> {
        let stop = [Arc::clone(&options.stop), failed];
        let taken = Arc::new(AtomicU64::new(0));
        let left_out = Arc::<OnceLock<String>>::default();
        let source = Sender {
            input,
            taken: Arc::clone(&taken),
            left_out: Arc::clone(&left_out),
            memory: options.memory.max(SMALL_WINDOW),
        };
        let (mut chunks, _) = task::start("unpack", AHEAD, move |chunks| source.send_all(chunks))?;
        // The thread sends an empty first chunk as soon as the input is open.
        let start = chunks.next(&stop.each_ref().map(|flag| &**flag))?;
        Ok(Stream {
            chunks,
            chunk: Cursor::new(start.unwrap_or_default()),
            stop,
            taken,
            left_out,
        })
    }
}

impl Read for Stream {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.chunk.read(buf)?;
            if read > 0 || buf.is_empty() {
                return Ok(read);
            }
            let stop = self.stop.each_ref().map(|flag| &**flag);
            match self.chunks.next(&stop).map_err(io::Error::other)? {
                Some(chunk) => self.chunk = Cursor::new(chunk),
                None => return Ok(0),
            }
        }
    }
}

/// The size and the modification time of a regular file. The states before and after reading differ if a program changed the
/// file meanwhile. Pipes and devices always have the same state.
#[derive(PartialEq, Eq)]
struct SizeAndTime(Option<(u64, Option<SystemTime>)>);

impl SizeAndTime {
    /// Returns the state of `file`, which was opened at `path`.
    fn of(file: &File, path: &Path) -> io::Result<SizeAndTime> {
        if is_windows_device(path) {
            return Ok(SizeAndTime(None));
        }
        let metadata = file.metadata()?;
        let modified = metadata.modified().ok();
        Ok(SizeAndTime(
            metadata.is_file().then_some((metadata.len(), modified)),
        ))
    }
}

/// The reading and decompressing side of a [`Stream`], which runs on a separate thread.
pub(super) struct Sender {
    pub(super) input: Input,
    pub(super) taken: Arc<AtomicU64>,
    /// Receives a description of the files of a zip archive that are not read.
    pub(super) left_out: Arc<OnceLock<String>>,
    pub(super) memory: usize,
}

/// The sending half of the queue of chunks.
pub(super) type Chunks = Feeder<Vec<u8>>;

impl Sender {
    /// Opens the input and sends all of its decompressed bytes.
    fn send_all(&self, chunks: &Chunks) -> Result<()> {
        let path = self.input.path();
        if self.input.is_stdin() {
            return self.send_source(chunks, io::stdin(), None);
        }
        let file = open(path)?;
        let opened = SizeAndTime::of(&file, path).at(path, "open")?;
        let sent = self.send_source(chunks, &file, Some(&file));
        // A file that changes while it is unpacked looks damaged, so the change is reported first.
        if SizeAndTime::of(&file, path).at(path, "read")? != opened {
            let problem = "changed while it was read: start again when no program writes it";
            return Err(Error::changed(path, problem));
        }
        sent
    }

    /// Sends the decompressed bytes of `source`. `file` is the file that `source` reads, or `None` for standard input; a zip
    /// archive needs it for seeking.
    fn send_source(&self, chunks: &Chunks, source: impl Read, file: Option<&File>) -> Result<()> {
        let mut source = CountingReader::new(source, &self.taken);
        let start = read_start(&mut source).at(self.input.path(), "read")?;
        let kind = FileKind::of_start(&start);
        chunks.send(Vec::new())?;
        if kind.is_unpacked() {
            return self.send_packed(chunks, kind, start, source, file);
        }
        self.send_text(chunks, Cursor::new(start).chain(source), true)
    }

    #[cfg(not(feature = "compression"))]
    fn send_packed(
        &self,
        _: &Chunks,
        _: FileKind,
        _: Vec<u8>,
        _: impl Read,
        _: Option<&File>,
    ) -> Result<()> {
        let problem = "packed, and this program was built to read plain PGN only: unpack it";
        Err(Error::file(self.input.path(), problem))
    }

    /// Sends all bytes of `reader`. If `is_start` is `true`, refuses bytes that are certainly not PGN.
    pub(super) fn send_text(
        &self,
        chunks: &Chunks,
        mut reader: impl Read,
        is_start: bool,
    ) -> Result<()> {
        let mut size = if is_start { LOOKED_AT } else { CHUNK };
        let mut is_start = is_start;
        loop {
            let mut chunk = Vec::with_capacity(size);
            (&mut reader)
                .take(size as u64)
                .read_to_end(&mut chunk)
                .map_err(|err| self.input.error(self.named(err)))?;
            if std::mem::take(&mut is_start)
                && let Some(what) = foreign(self.input.path(), &chunk)
            {
                return Err(Error::foreign(self.input.path(), what));
            }
            if chunk.is_empty() {
                return Ok(());
            }
            task::fault("unpack");
            chunks.send(chunk)?;
            size = CHUNK;
        }
    }

    /// Replaces the decoder's error about a window that is too large with an error that gives advice. Returns other
    /// errors unchanged.
    fn named(&self, err: io::Error) -> io::Error {
        if !err.to_string().contains("requires too much memory") {
            return err;
        }
        io::Error::other(Error::too_large(
            self.input.path(),
            format!(
                "a frame of it has a window of more than {} MiB: allow more memory, or unpack it first",
                self.memory >> 20
            ),
        ))
    }
}

/// A reader that counts the bytes it returns.
pub(super) struct CountingReader<R> {
    pub(super) inner: R,
    taken: Arc<AtomicU64>,
}

impl<R> CountingReader<R> {
    pub(super) fn new(inner: R, taken: &Arc<AtomicU64>) -> CountingReader<R> {
        CountingReader {
            inner,
            taken: Arc::clone(taken),
        }
    }
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buf)?;
        self.taken.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// The maximum number of bytes at the start of a file that are examined.
pub(super) const LOOKED_AT: usize = 1 << 16;

/// If a file is certainly not PGN, returns a description of its format and advice for the user. Returns `None` if the file
/// may be PGN.
pub(super) fn foreign(path: &Path, text: &[u8]) -> Option<String> {
    let start = &text[..text.len().min(LOOKED_AT)];
    let described = |name: &str, advice: &str| Some(format!("{name}: {advice}"));
    if let Some(format) = Format::of_start(start) {
        return match format.kind {
            kind if kind.is_unpacked() => described("packed twice", "unpack it once"),
            _ => described(format.name, format.advice),
        };
    }
    if !start.contains(&0) {
        return None;
    }
    if is_utf_16(start) {
        return described(
            "text in UTF-16",
            "convert it to UTF-8, for instance with iconv -f UTF-16 -t UTF-8",
        );
    }
    if has_tags(start) {
        return None;
    }
    if let Some(format) = Format::of_extension(path) {
        return described(format.name, format.advice);
    }
    if is_polyglot_book(start) {
        return described("Polyglot book, not PGN", "name the games it was made of");
    }
    described(
        "binary data, not PGN",
        "name a PGN file, plain or packed with gzip, bzip2, zstd or zip",
    )
}

/// Returns `true` if almost every other byte is 0, as in English text in UTF-16.
fn is_utf_16(start: &[u8]) -> bool {
    let zeros = |first: usize| {
        let bytes = start.iter().skip(first).step_by(2);
        let total = bytes.len().max(1);
        bytes.filter(|byte| **byte == 0).count() * 100 / total
    };
    let (even, odd) = (zeros(0), zeros(1));
    start.len() >= 4 && (even.max(odd) > 90 && even.min(odd) < 10)
}

/// Returns `true` if the bytes begin with a header of a book, or with 16-byte records in ascending order of their keys. A file
/// of few records also needs moves that a piece can make.
fn is_polyglot_book(start: &[u8]) -> bool {
    if start.get(..8) == Some(&[0; 8]) && start.get(8..12) == Some(b"@PG@") {
        return true;
    }
    let keys: Vec<u64> = start
        .chunks_exact(16)
        .take(64)
        .filter_map(|record| record.first_chunk().copied().map(u64::from_be_bytes))
        .collect();
    let are_moves = || {
        let mut records = start.as_chunks::<16>().0.iter();
        let is_move =
            |record: &[u8; 16]| BookMove(u16::from_be_bytes([record[8], record[9]])).is_possible();
        start.len().is_multiple_of(16) && start.len() < LOOKED_AT && records.all(is_move)
    };
    keys.is_sorted() && (keys.len() >= 8 && keys.first() < keys.last() || are_moves())
}

/// Returns `true` if any line in `start`, the first bytes of a file, looks like a tag pair.
fn has_tags(start: &[u8]) -> bool {
    start.split(|byte| *byte == b'\n').any(|line| {
        matches!(line, [b'[', letter, ..] if letter.is_ascii_alphabetic()) && line.contains(&b'"')
    })
}

//! Opens inputs: files and standard input, compressed or not. Rejects files that are certainly not PGN, and zstd files
//! whose window, the memory that a decoder needs, is too large.
//!
//! A [`Stream`] provides the decompressed bytes of an input. A separate thread reads and decompresses the input,
//! and sends the bytes in chunks through a bounded queue, so that decompression and parsing overlap. A caller that
//! waits for a silent pipe can be cancelled; the thread itself stays blocked until the pipe provides data or the
//! process ends.

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

use super::GameReader;
use crate::{
    error::{At, Error, Result},
    kind::{FileKind, Format, is_windows_device},
    position::{BookMove, Variant},
    task::{self, Feed, Feeder},
};

#[cfg(all(test, feature = "compression"))]
mod tests;
#[cfg(feature = "compression")]
mod unpack;

/// A source of PGN: a file or standard input. [`MakeBook`](crate::MakeBook) also accepts a directory of
/// [counts](crate::counts).
///
/// If the crate's feature `compression` is enabled, files in the formats gzip, bzip2, zstd and zip are decompressed.
/// The format is recognized by the first bytes of a file, not by its name. A file may have several gzip members,
/// bzip2 streams or zstd frames. All `.pgn` files in a zip archive are read.
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
    /// A flag that cancels reading. After it is set, reading fails with [`Error::Interrupted`] within a tenth of a
    /// second, even if it waits for a silent pipe.
    pub stop: Arc<AtomicBool>,
    /// The memory budget for decompression, in bytes. A zstd file states how much memory it needs, and is rejected if
    /// it needs more than the budget and more than 8 MiB. Default: 128 MiB.
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

/// The size of a zstd window, in bytes, up to which decompression is allowed even if the window exceeds the memory
/// budget. Files that were compressed without long-range matching need no larger window.
const SMALL_WINDOW: usize = 8 << 20;

impl Input {
    /// The [name](Input::name) of standard input.
    pub(crate) const STDIN_NAME: &str = "standard input";

    /// Creates an input that reads the file at `path`.
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

    /// Creates an input for a path from the command line. The path `-` means standard input.
    pub fn from_argument(path: impl Into<PathBuf>) -> Input {
        let path = path.into();
        if path == Path::new("-") {
            Input::stdin()
        } else {
            Input::file(path)
        }
    }

    /// Sets the variant that is assumed for games without a `Variant` tag. The default is standard chess.
    pub fn with_untagged_variant(mut self, variant: Variant) -> Input {
        self.untagged = variant;
        self
    }

    /// Returns the variant that is assumed for games without a `Variant` tag.
    pub(crate) fn untagged_variant(&self) -> Variant {
        self.untagged
    }

    /// Creates a reader of the games in `text`, a part of the decompressed input. `text` must not begin in the middle
    /// of a game.
    pub(crate) fn reader<'a>(&self, text: &'a [u8]) -> GameReader<'a> {
        GameReader::new(text).with_untagged_variant(self.untagged)
    }

    /// Returns the path of the file, or `-` for standard input.
    pub fn path(&self) -> &Path {
        self.path.as_deref().unwrap_or(Path::new("-"))
    }

    /// Returns `true` if the input is standard input.
    pub fn is_stdin(&self) -> bool {
        self.path.is_none()
    }

    /// Returns the name of the file without directories and without a compression extension such as `.gz`. A compressed
    /// file therefore has the same name as the uncompressed file. Returns `standard input` for standard input.
    pub fn name(&self) -> String {
        let Some(path) = &self.path else {
            return Input::STDIN_NAME.to_owned();
        };
        let name = path.file_name().unwrap_or(path.as_os_str());
        let name = name.to_string_lossy();
        let lower = name.to_ascii_lowercase();
        for packing in [".gz", ".bz2", ".zst", ".zip"] {
            if let Some(stem) = lower.strip_suffix(packing) {
                let end = if stem.ends_with(".pgn") { "" } else { ".pgn" };
                return format!("{}{end}", &name[..stem.len()]);
            }
        }
        name.into_owned()
    }

    /// Returns the size of the file on disk in bytes. For a compressed file, this is the compressed size. Returns
    /// `None` if the input is not a regular file.
    pub fn size(&self) -> Option<u64> {
        let metadata = self.path.as_ref()?.metadata().ok()?;
        metadata.is_file().then_some(metadata.len())
    }

    /// Returns the type of the file, such as PGN or Polyglot book. Returns [`FileKind::Other`] for standard input.
    ///
    /// # Errors
    ///
    /// Returns an error if the file does not exist or cannot be read.
    pub fn kind(&self) -> Result<FileKind> {
        self.path.as_ref().map_or(Ok(FileKind::Other), FileKind::of)
    }

    /// Returns `true` if the input is compressed. Reading a game in a compressed file requires decompressing all bytes
    /// before the game.
    ///
    /// # Errors
    ///
    /// Returns an error if the file does not exist or cannot be read.
    pub fn is_packed(&self) -> Result<bool> {
        Ok(self.kind()?.is_unpacked())
    }

    /// Checks that the input exists and can be read. Does not open a named pipe, because this would block until a
    /// program writes to the pipe.
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

    /// Returns the number of bytes of memory to reserve for decompressing the input. `memory` is the memory budget in
    /// bytes.
    ///
    /// A zstd file states in its first bytes how much memory it needs. If this is more than 8 MiB, the result is this
    /// number, but at most half of the budget. For a pipe, which cannot be examined in advance, the result is an eighth
    /// of the budget. For all other files, the result is 0, because they need little memory.
    pub fn unpacking_memory(&self, memory: usize) -> usize {
        let most = memory / usize::from(self.unpacking_divisor());
        let (Some(path), Some(_)) = (&self.path, self.size()) else {
            return most;
        };
        // If the file cannot be read, reading its games fails as well.
        let window = file_start(path).ok().and_then(|start| zstd_window(&start));
        match window {
            Some(window) if window > SMALL_WINDOW as u64 => {
                let needed = window
                    .checked_next_power_of_two()
                    .and_then(|bytes| usize::try_from(bytes).ok())
                    .unwrap_or(usize::MAX);
                needed.min(most)
            }
            _ => 0,
        }
    }

    /// Returns the number by which the memory budget is divided to get the most memory that decompressing the input may
    /// use.
    fn unpacking_divisor(&self) -> u8 {
        match self.size() {
            Some(_) => 2,
            None => 8,
        }
    }

    /// Opens the input, and returns a stream of its decompressed bytes. A separate thread reads and decompresses the
    /// input. The thread opens the input only once, so the input may be a pipe.
    ///
    /// # Errors
    ///
    /// Returns an error if the file does not exist, cannot be read or is a directory, and [`Error::Interrupted`] if
    /// the stop flag is set.
    ///
    /// Reading the stream fails if the file is certainly not PGN, if it is changed while it is read, or if
    /// decompression needs more memory than [`StreamOptions::memory`].
    ///
    /// Reading a zip archive also fails if it is damaged or encrypted, contains no `.pgn` file, or contains several
    /// files with the same name.
    pub fn open(&self, options: &StreamOptions) -> Result<Stream> {
        self.open_until(options, Arc::default())
    }

    /// Opens the input like [`open`](Input::open). In addition to the stop flag in `options`, the caller can set the
    /// flag `failed` to cancel reading.
    pub(crate) fn open_until(
        &self,
        options: &StreamOptions,
        failed: Arc<AtomicBool>,
    ) -> Result<Stream> {
        Stream::open(self.clone(), options, failed)
    }

    /// Converts an error of the [`Stream`] of this input to an error that names the input.
    pub fn error(&self, err: io::Error) -> Error {
        match err.downcast::<Error>() {
            Ok(err) => err,
            // An error without a number comes from a decoder, not from the operating system.
            Err(err)
                if err.raw_os_error().is_none() && err.kind() != io::ErrorKind::OutOfMemory =>
            {
                let problem =
                    format!("the file is damaged: {err}; unpack or download the file again");
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

/// The number of bytes at the start of a file that are examined to recognize its compression. For zstd, they also
/// contain the size of the window.
const MAGIC_BYTES: usize = 18;

/// Opens a file for reading. If `path` is a directory, returns an error with the advice to name files.
fn open(path: &Path) -> Result<File> {
    // Windows cannot open directories. The metadata of the file is not used because a Windows console has none.
    if path.is_dir() {
        return Err(Error::file(
            path,
            "this is a directory: give the PGN files in the directory",
        ));
    }
    File::open(path).at(path, "open")
}

/// Reads the first [`MAGIC_BYTES`] bytes of a file, which are needed to recognize its compression.
fn file_start(path: &Path) -> io::Result<Vec<u8>> {
    read_start(&mut File::open(path)?)
}

/// Reads the first [`MAGIC_BYTES`] bytes of `source`, or all of its bytes if it has fewer.
fn read_start(source: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut start = Vec::with_capacity(MAGIC_BYTES);
    source.take(MAGIC_BYTES as u64).read_to_end(&mut start)?;
    Ok(start)
}

/// The size in bytes of the chunks of decompressed data that the reading thread sends to the consumer.
const CHUNK_SIZE: usize = 1 << 18;

/// The maximum number of chunks of decompressed data that wait in the queue between the reading thread and the
/// consumer.
const MAX_QUEUED_CHUNKS: usize = 4;

/// A reader of the decompressed bytes of an [`Input`].
///
/// Use [`Input::error`] to convert the errors that [`read`](Read::read) returns.
pub struct Stream {
    chunks: Feed<Vec<u8>>,
    chunk: Cursor<Vec<u8>>,
    stop: [Arc<AtomicBool>; 2],
    /// The number of bytes that have been read from the input so far, before decompression.
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
    /// Starts a thread that reads and decompresses the input, and waits until the input is open. The caller can set
    /// either of two flags to cancel reading: `failed`, or the stop flag in `options`.
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
        let (mut chunks, _) = task::start("unpack", MAX_QUEUED_CHUNKS, move |chunks| {
            source.send_all(chunks)
        })?;
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

/// The size and the modification time of a file, or `None` for a pipe or device. The values before and after reading
/// are compared, to detect that the file was changed in between.
#[derive(PartialEq, Eq)]
struct SizeAndTime(Option<(u64, Option<SystemTime>)>);

impl SizeAndTime {
    /// Returns the size and the modification time of `file`, the open file at `path`.
    fn of(file: &File, path: &Path) -> io::Result<SizeAndTime> {
        if is_windows_device(path) {
            return Ok(SizeAndTime(None));
        }
        let metadata = file.metadata()?;
        // On a system without modification times, only the size is compared.
        let modified = metadata.modified().ok();
        Ok(SizeAndTime(
            metadata.is_file().then_some((metadata.len(), modified)),
        ))
    }
}

/// The part of a [`Stream`] that runs on a separate thread. It reads and decompresses an input, and sends the bytes
/// in chunks.
pub(super) struct Sender {
    pub(super) input: Input,
    pub(super) taken: Arc<AtomicU64>,
    /// Receives a description of the files of a zip archive that are not read.
    pub(super) left_out: Arc<OnceLock<String>>,
    pub(super) memory: usize,
}

/// The sending half of a queue of chunks of decompressed data.
pub(super) type Chunks = Feeder<Vec<u8>>;

impl Sender {
    /// Opens the input and sends all of its decompressed bytes to `chunks`.
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
            let problem = "the file changed while it was read: run the command again when no other program is writing \
                           the file";
            return Err(Error::changed(path, problem));
        }
        sent
    }

    /// Decompresses `source` if necessary, and sends its bytes to `chunks`. `file` is the file from which `source`
    /// reads, or `None` for standard input. If `file` can seek, a zip archive is read without a temporary copy.
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
        let problem =
            "the file is compressed, but this build of polybook reads only uncompressed PGN";
        Err(Error::file(self.input.path(), problem))
    }

    /// Sends all bytes of `reader` to `chunks`. `reader` must return decompressed bytes. If `is_start` is `true`, they
    /// are the start of the input. In this case, examines them first, and returns an error if the input is certainly
    /// not PGN.
    pub(super) fn send_text(
        &self,
        chunks: &Chunks,
        mut reader: impl Read,
        is_start: bool,
    ) -> Result<()> {
        let mut size = if is_start { SNIFFED_BYTES } else { CHUNK_SIZE };
        let mut is_start = is_start;
        loop {
            let mut chunk = Vec::with_capacity(size);
            (&mut reader)
                .take(size as u64)
                .read_to_end(&mut chunk)
                .map_err(|err| self.input.error(self.with_advice(err)))?;
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
            size = CHUNK_SIZE;
        }
    }

    /// Replaces an error of the zstd decoder about a window that is too large with an error that contains advice for
    /// the user. Returns any other error unchanged.
    fn with_advice(&self, err: io::Error) -> io::Error {
        if !err.to_string().contains("requires too much memory") {
            return err;
        }
        // The memory for a regular file depends only on its first frame, so a larger budget would not help.
        let advice = match self.input.size() {
            Some(_) => "unpack the file first",
            None => "use a larger --memory, or unpack the file first",
        };
        io::Error::other(Error::too_large(
            self.input.path(),
            format!(
                "unpacking this zstd file takes more than {} MiB of memory: {advice}",
                self.memory >> 20
            ),
        ))
    }
}

/// A reader that counts the bytes that are read through it, for the progress of reading an input.
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

/// The maximum number of bytes at the start of a file that are examined to decide whether it is PGN.
pub(super) const SNIFFED_BYTES: usize = 1 << 16;

/// Returns a description of the format of a file that is certainly not PGN, with advice for the user. Returns `None` if
/// the file may be PGN. `text` is the start of the file at `path`.
pub(super) fn foreign(path: &Path, text: &[u8]) -> Option<String> {
    let start = &text[..text.len().min(SNIFFED_BYTES)];
    let described = |name: &str, advice: &str| Some(format!("this is {name}: {advice}"));
    if let Some(format) = Format::of_start(start) {
        return match format.kind {
            kind if kind.is_unpacked() => {
                described("a file that was compressed twice", "unpack the file once")
            }
            _ => described(format.name, format.advice),
        };
    }
    if !start.contains(&0) {
        return None;
    }
    if is_utf_16(start) {
        return described(
            "text in UTF-16",
            "convert the file to UTF-8, for instance with iconv -f UTF-16 -t UTF-8",
        );
    }
    if has_tags(start) {
        return None;
    }
    if let Some(format) = Format::of_extension(path) {
        return described(format.name, format.advice);
    }
    if is_polyglot_book(start) {
        return described(
            "a Polyglot book, not PGN",
            "give the games from which the book was made",
        );
    }
    described(
        "binary data, not PGN",
        "give a PGN file, uncompressed or compressed with gzip, bzip2, zstd or zip",
    )
}

/// Returns `true` if the start of a file looks like English text in UTF-16. In such text, nearly all bytes at even
/// offsets, or nearly all at odd offsets, are 0.
fn is_utf_16(start: &[u8]) -> bool {
    let zeros = |first: usize| {
        let bytes = start.iter().skip(first).step_by(2);
        let total = bytes.len().max(1);
        bytes.filter(|byte| **byte == 0).count() * 100 / total
    };
    let (even, odd) = (zeros(0), zeros(1));
    start.len() >= 4 && (even.max(odd) > 90 && even.min(odd) < 10)
}

/// Returns `true` if the start of a file looks like a Polyglot book. A book begins with a header, or with records of
/// 16 bytes that are sorted by key. If there are fewer than eight records, they must also contain only possible
/// moves.
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
        start.len().is_multiple_of(16) && start.len() < SNIFFED_BYTES && records.all(is_move)
    };
    keys.is_sorted() && (keys.len() >= 8 && keys.first() < keys.last() || are_moves())
}

/// Returns `true` if a line in the start of a file looks like a tag pair of PGN.
fn has_tags(start: &[u8]) -> bool {
    start.split(|byte| *byte == b'\n').any(|line| {
        matches!(line, [b'[', letter, ..] if letter.is_ascii_alphabetic()) && line.contains(&b'"')
    })
}

/// Checks that decompressing a zstd file takes at most `memory` bytes. The first bytes of the file, `start`, state
/// the window size of its first frame. The decoder allocates this size, rounded up to a power of two. `divisor` is
/// `Input::unpacking_divisor` of the input.
///
/// # Errors
///
/// Returns an error that says how much memory is needed.
pub(super) fn refuse_large_window(
    path: &Path,
    start: &[u8],
    memory: usize,
    divisor: u8,
) -> Result<()> {
    let Some(window) = zstd_window(start) else {
        return Ok(());
    };
    let unpacking = window.checked_next_power_of_two().unwrap_or(u64::MAX);
    if unpacking <= memory as u64 {
        return Ok(());
    }
    Err(Error::too_large(
        path,
        format!(
            "unpacking this zstd file takes {} MiB of memory, but polybook may use only {} MiB of memory for \
             unpacking: use at least --memory {}MiB, or unpack the file first",
            unpacking >> 20,
            memory >> 20,
            (unpacking >> 20).saturating_mul(divisor.into()),
        ),
    ))
}

/// Returns the window size in bytes that the first frame of a zstd file states (RFC 8878, 3.1.1.1). `start` contains
/// the first bytes of the file. Returns `None` if these bytes are not the start of a zstd file.
pub(super) fn zstd_window(start: &[u8]) -> Option<u64> {
    let [0x28, 0xb5, 0x2f, 0xfd, descriptor, rest @ ..] = start else {
        return None;
    };
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let is_single_segment = descriptor & 0x20 != 0;
    if !is_single_segment {
        let window = rest.first()?;
        let base = 1u64 << (10 + (window >> 3));
        return Some(base + base / 8 * u64::from(window & 7));
    }
    // The window is the whole content.
    let size = [1, 2, 4, 8][usize::from(descriptor >> 6)];
    let field = rest.get(dictionary..dictionary + size)?;
    let mut bytes = [0; 8];
    bytes[..size].copy_from_slice(field);
    let content = u64::from_le_bytes(bytes);
    Some(if size == 2 { content + 256 } else { content })
}

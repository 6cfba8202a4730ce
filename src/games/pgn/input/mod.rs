//! Opens PGN inputs: files and standard input, compressed or not. Rejects files that are certainly not PGN, and zstd
//! files whose decompression needs too much memory.
//!
//! A [`Stream`] provides the decompressed bytes of an input. A separate thread reads and decompresses the input,
//! and sends the bytes in chunks through a bounded queue, so that decompression and parsing overlap. A caller that
//! waits for a silent pipe can be cancelled; the thread itself stays blocked until the pipe provides data or the
//! process ends.

use std::{
    env, fmt,
    fs::File,
    io::{self, BufRead, Cursor, Read},
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::SystemTime,
};

use super::GameReader;
use crate::{
    chess::position::{Variant, looks_like_book},
    error::{Advice, At, Diagnosis, Error, Result},
    kind::{FileKind, Format, is_windows_device},
    storage::sort::Memory,
    task::{self, Feed, Feeder},
};

#[cfg(feature = "compression")]
mod frames;
#[cfg(feature = "compression")]
mod packed;
#[cfg(feature = "compression")]
mod unpack;

#[cfg(feature = "compression")]
use self::{frames::memory_ahead, packed::send_packed};

/// A source of PGN: a file or standard input. [`MakeBook`](crate::MakeBook) also accepts a [counts
/// directory](crate::formats::counts) as an input.
///
/// If the crate's feature `compression` is enabled, files in the formats gzip, bzip2, zstd and zip are decompressed.
/// The format is recognized by the first bytes of a file, not by its name. A file may consist of several gzip members,
/// bzip2 streams or zstd frames. In a zip archive, all `.pgn` files are read.
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
    /// A flag that cancels reading. After the flag is set, reading fails with [`Error::Interrupted`] within a tenth of
    /// a second, even while waiting for a pipe without data.
    pub stop: Arc<AtomicBool>,
    /// The memory budget for decompression, in bytes. A zstd file states how much memory it needs, and is rejected if
    /// this is more than the budget and more than 8 MiB. Default: 128 MiB.
    pub memory: usize,
    /// The directory to which a zip archive from a pipe is copied. Default: the temporary directory of the system.
    pub temp_dir: PathBuf,
}

impl Default for StreamOptions {
    fn default() -> StreamOptions {
        StreamOptions {
            stop: Arc::default(),
            memory: 128 << 20,
            temp_dir: env::temp_dir(),
        }
    }
}

impl StreamOptions {
    /// Creates options for reading an input within the memory budget `memory`. A zip archive that comes from a pipe is
    /// copied to the directory for temporary files in `memory`.
    pub fn within(memory: &Memory) -> StreamOptions {
        StreamOptions {
            memory: memory.bytes,
            temp_dir: memory.temp_dir.clone(),
            ..StreamOptions::default()
        }
    }
}

/// The window size in bytes up to which a zstd file is decompressed even if the window exceeds the memory budget. Files
/// that were compressed without long-range matching need no larger window.
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
    pub fn untagged_variant(&self) -> Variant {
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

    /// Returns the name of the file without directories and without a compression extension such as `.gz`, so a
    /// compressed file has the same name as the uncompressed file. Returns `standard input` for standard input.
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
    /// amount, but at most half of the budget. If several frames of any other zstd file can be decompressed at the same
    /// time, the result is the memory for this, but at most a quarter of the budget. For a pipe, which cannot be
    /// examined in advance, the result is an eighth of the budget. For all other files, the result is 0, because they
    /// need little memory.
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
            #[cfg(feature = "compression")]
            _ => memory_ahead(path, memory / 4),
            #[cfg(not(feature = "compression"))]
            _ => 0,
        }
    }

    /// Returns the divisor for the part of the memory budget that decompressing the input may use: 2 means half of the
    /// budget.
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

    /// Converts an error that the [`Stream`] of this input returned to an error that names the input.
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

/// The number of bytes at the start of a file that are examined to recognize its compression. In a zstd file, they also
/// state the window size.
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

/// The maximum number of chunks in the queue between the thread that decompresses the data and the consumer.
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
    /// A description of the parts that were not read: bytes after the end of a compressed file, or files of a zip
    /// archive. Set only if there are such parts.
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
            temp_dir: options.temp_dir.clone(),
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
        let read = self.fill_buf()?.read(buf)?;
        self.consume(read);
        Ok(read)
    }
}

impl BufRead for Stream {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.chunk.position() == self.chunk.get_ref().len() as u64 {
            let stop = self.stop.each_ref().map(|flag| &**flag);
            match self.chunks.next(&stop).map_err(io::Error::other)? {
                Some(chunk) => self.chunk = Cursor::new(chunk),
                None => break,
            }
        }
        self.chunk.fill_buf()
    }

    fn consume(&mut self, bytes: usize) {
        self.chunk.consume(bytes);
    }
}

/// The size and the modification time of a file, or `None` for a pipe or device. They are compared before and after
/// reading, to detect that the file was changed in the meantime.
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
    /// Receives a description of the parts that were not read: bytes after the end of a compressed file, or files of a
    /// zip archive.
    pub(super) left_out: Arc<OnceLock<String>>,
    pub(super) memory: usize,
    pub(super) temp_dir: PathBuf,
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
    fn send_source(
        &self,
        chunks: &Chunks,
        mut source: impl Read,
        file: Option<&File>,
    ) -> Result<()> {
        let start = read_start(&mut source).at(self.input.path(), "read")?;
        let kind = FileKind::of_start(&start);
        chunks.send(Vec::new())?;
        if kind.is_unpacked() {
            self.taken.fetch_add(start.len() as u64, Ordering::Relaxed);
            let source = CountingReader::new(source, &self.taken);
            return send_packed(self, chunks, kind, start, source, file);
        }
        // Read through a `CountingReader`, each chunk would first be set to zero.
        let reader = Cursor::new(start).chain(source);
        self.send_chunks(chunks, reader, None, |bytes| {
            self.taken.fetch_add(bytes, Ordering::Relaxed);
        })
    }

    /// Sends all bytes of `reader` to `chunks`. `reader` must return decompressed bytes. Examines the first bytes, and
    /// returns an error if they are certainly not PGN. `member` is the name of a file in a zip archive, or `None` if
    /// the input is not a zip archive.
    pub(super) fn send_text(
        &self,
        chunks: &Chunks,
        reader: impl Read,
        member: Option<&str>,
    ) -> Result<()> {
        self.send_chunks(chunks, reader, member, |_| {})
    }

    /// Sends all bytes of `reader` like [`send_text`](Sender::send_text). Calls `count` with the number of bytes of each
    /// chunk.
    fn send_chunks(
        &self,
        chunks: &Chunks,
        mut reader: impl Read,
        member: Option<&str>,
        count: impl Fn(u64),
    ) -> Result<()> {
        let mut size = SNIFFED_BYTES;
        let mut is_start = true;
        loop {
            let mut chunk = Vec::with_capacity(size);
            (&mut reader)
                .take(size as u64)
                .read_to_end(&mut chunk)
                .map_err(|err| self.input.error(self.with_advice(err)))?;
            if std::mem::take(&mut is_start)
                && let Some(what) = foreign(member.map_or(self.input.path(), Path::new), &chunk)
            {
                let subject = match member {
                    Some(name) => format!("the file \"{}\" in this archive", name.escape_debug()),
                    None => "this".to_owned(),
                };
                return Err(Error::foreign(
                    self.input.path(),
                    format!("{subject} is {what}"),
                ));
            }
            if chunk.is_empty() {
                return Ok(());
            }
            task::fault("unpack");
            count(chunk.len() as u64);
            chunks.send(chunk)?;
            size = CHUNK_SIZE;
        }
    }

    /// Adds advice for the user to an error of the zstd decoder about a window that is too large. Returns any other
    /// error unchanged.
    fn with_advice(&self, err: io::Error) -> io::Error {
        if !err.to_string().contains("requires too much memory") {
            return err;
        }
        // The memory for a regular file depends only on its first frame, so a larger budget would not help.
        let mut problem = Diagnosis::new(format!(
            "unpacking this zstd file takes more than {} MiB of memory",
            self.memory >> 20
        ));
        if self.input.size().is_none() {
            problem = problem.advise(Advice::larger("memory"));
        }
        io::Error::other(Error::too_large(
            self.input.path(),
            problem.advise("unpack the file first"),
        ))
    }
}

/// Returns an error, because this build of polybook cannot decompress files.
#[cfg(not(feature = "compression"))]
fn send_packed(
    sender: &Sender,
    _: &Chunks,
    _: FileKind,
    _: Vec<u8>,
    _: impl Read,
    _: Option<&File>,
) -> Result<()> {
    let problem = "the file is compressed, but this build of polybook reads only uncompressed PGN";
    Err(Error::file(sender.input.path(), problem))
}

/// A reader that counts the bytes read through it, to show the progress of reading an input.
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

/// Returns the name of the format of a file that is certainly not PGN, with advice for the user. Returns `None` if the
/// file may be PGN. `text` is the start of the file at `path`.
pub(super) fn foreign(path: &Path, text: &[u8]) -> Option<String> {
    let start = &text[..text.len().min(SNIFFED_BYTES)];
    let described = |name: &str, advice: &str| Some(format!("{name}: {advice}"));
    if let Some(format) = Format::of_start(start) {
        return match format.kind {
            kind if kind.is_unpacked() => {
                described("a file that was compressed twice", "unpack the file once")
            }
            _ => described(format.name, format.advice),
        };
    }
    if !start.contains(&0) || is_filled_up_text(start) {
        return None;
    }
    if let Some(format) = Format::of_wide_text(start) {
        return described(format.name, format.advice);
    }
    if has_tags(start) {
        return None;
    }
    if let Some(format) = Format::of_extension(path) {
        return described(format.name, format.advice);
    }
    if start.len() >= 16 && looks_like_book(start) {
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

/// Returns `true` if `start` is text that is filled up with zeros. Some programs write such zeros after Ctrl-Z.
fn is_filled_up_text(start: &[u8]) -> bool {
    let end = start.iter().rposition(|byte| *byte != 0);
    let mut text = start[..end.map_or(0, |last| last + 1)].iter();
    end.is_some() && text.all(|byte| !byte.is_ascii_control() || b"\t\n\r\x1a".contains(byte))
}

/// Returns `true` if a line in the start of a file looks like a tag pair of PGN.
fn has_tags(start: &[u8]) -> bool {
    start.split(|byte| *byte == b'\n').any(|line| {
        matches!(line, [b'[', letter, ..] if letter.is_ascii_alphabetic()) && line.contains(&b'"')
    })
}

/// Checks that decompressing a zstd file takes at most `memory` bytes. `start` contains the first bytes of the file,
/// which state the window size of its first frame. The decoder allocates this size, rounded up to a power of two.
/// `divisor` is `Input::unpacking_divisor` of the input.
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
        Diagnosis::new(format!(
            "unpacking this zstd file takes {} MiB of memory, but polybook may use only {} MiB of memory for unpacking",
            unpacking >> 20,
            memory >> 20,
        ))
        .advise(Advice::option("use at least {}", "memory").with_value(format_args!(
            "{}MiB",
            (unpacking >> 20).saturating_mul(divisor.into())
        )))
        .advise("unpack the file first"),
    ))
}

/// Returns the window size in bytes of the first frame of a zstd file (RFC 8878, 3.1.1.1). `start` contains the first
/// bytes of the file. Returns `None` if these bytes are not the start of a zstd file.
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

#[cfg(all(test, feature = "compression"))]
mod tests {
    use std::io::{Cursor, Write};

    use super::*;

    const PGN: &[u8] = b"[Event \"x\"]\n\n1. e4 *\n";

    fn unpacked(bytes: &[u8]) -> Result<Vec<u8>> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("games");
        std::fs::write(&path, bytes).unwrap();
        let mut text = Vec::new();
        let input = Input::file(&path);
        let mut stream = input.open(&StreamOptions::default())?;
        stream
            .read_to_end(&mut text)
            .map_err(|err| input.error(err))?;
        Ok(text)
    }

    fn gz(bytes: &[u8]) -> Vec<u8> {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), Default::default());
        packer.write_all(bytes).unwrap();
        packer.finish().unwrap()
    }

    fn bz2(bytes: &[u8]) -> Vec<u8> {
        let mut packer = bzip2::write::BzEncoder::new(Vec::new(), Default::default());
        packer.write_all(bytes).unwrap();
        packer.finish().unwrap()
    }

    fn zip(members: &[(&str, &[u8])]) -> Vec<u8> {
        let mut packer = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for (name, bytes) in members {
            let options = zip::write::SimpleFileOptions::default();
            packer.start_file(*name, options).unwrap();
            packer.write_all(bytes).unwrap();
        }
        packer.finish().unwrap().into_inner()
    }

    #[test]
    fn every_packing_is_recognized_by_content() {
        assert_eq!(unpacked(PGN).unwrap(), PGN);
        assert_eq!(unpacked(&gz(PGN)).unwrap(), PGN);
        assert_eq!(unpacked(&bz2(PGN)).unwrap(), PGN);
        assert_eq!(unpacked(&zstd::encode_all(PGN, 3).unwrap()).unwrap(), PGN);
        assert_eq!(unpacked(&zip(&[("a.pgn", PGN)])).unwrap(), PGN);
        assert_eq!(unpacked(b"").unwrap(), b"");
        assert_eq!(unpacked(b"BZ").unwrap(), b"BZ");
    }

    #[test]
    fn members_streams_and_frames_follow_one_another() {
        let twice = [PGN, PGN].concat();
        assert_eq!(unpacked(&gz(PGN).repeat(2)).unwrap(), twice);
        assert_eq!(unpacked(&bz2(PGN).repeat(2)).unwrap(), twice);
        let frame = zstd::encode_all(PGN, 3).unwrap();
        assert_eq!(unpacked(&frame.repeat(2)).unwrap(), twice);
        let members = zip(&[("a.PGN", PGN), ("notes.txt", b"no"), ("b/c.pgn", PGN)]);
        assert_eq!(unpacked(&members).unwrap(), [PGN, b"\n", PGN].concat());
    }

    #[test]
    fn damage_is_an_error() {
        let many: Vec<u8> = (0..20_000u32)
            .flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes())
            .collect();
        for packed in [
            gz(&many),
            bz2(&many),
            zstd::encode_all(&many[..], 3).unwrap(),
            zip(&[("a.pgn", &many)]),
        ] {
            assert!(unpacked(&packed[..packed.len() / 2]).is_err());
        }
        let mut packed = gz(&many);
        let middle = packed.len() / 2;
        packed[middle] ^= 0xff;
        assert!(unpacked(&packed).is_err());
        assert!(unpacked(&zip(&[("a.txt", PGN)])).is_err());
    }

    #[test]
    fn names_do_not_tell_the_packing() {
        for path in [
            "/x/a.pgn",
            "a.pgn.gz",
            "a.pgn.zst",
            "a.zip",
            "b/a.pgn.bz2",
            "a.pgn.GZ",
            "a.Zip",
        ] {
            assert_eq!(Input::file(path).name(), "a.pgn", "{path}");
        }
        assert_eq!(Input::from_argument("-"), Input::stdin());
    }

    #[test]
    fn a_directory_is_no_input() {
        let dir = tempfile::tempdir().unwrap();
        let err = Input::file(dir.path()).check().unwrap_err().to_string();
        assert!(err.contains("is a directory"), "{err}");
    }

    #[test]
    fn what_is_no_pgn_is_named() {
        let tar = [&[0; 257][..], b"ustar", &[0; 300]].concat();
        for (bytes, what) in [
            (tar.clone(), "tar"),
            (gz(&tar), "tar"),
            (b"\xfd7zXZ\0\0\0".to_vec(), "xz"),
            (gz(&gz(PGN)), "compressed twice"),
            (zip(&[("a.txt", PGN)]), "no .pgn file"),
        ] {
            let err = unpacked(&bytes).unwrap_err().to_string();
            assert!(err.contains(what), "{what}: {err}");
        }
    }

    #[test]
    fn an_encrypted_zip_is_named() {
        let mut packer = zip::ZipWriter::new(Cursor::new(Vec::new()));
        packer
            .start_file("a.pgn", zip::write::SimpleFileOptions::default())
            .unwrap();
        packer.write_all(PGN).unwrap();
        let mut bytes = packer.finish().unwrap().into_inner();
        // Set the encryption flag, in the header of the member and in the table of contents.
        bytes[6] |= 1;
        let entry = bytes.windows(4).position(|at| at == b"PK\x01\x02");
        bytes[entry.unwrap() + 8] |= 1;
        let err = unpacked(&bytes).unwrap_err().to_string();
        assert!(err.contains("encrypted"), "{err}");
    }

    #[test]
    fn windows_are_bounded_by_memory() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("long.zst");
        let frame = |log| {
            let mut packer = zstd::Encoder::new(Vec::new(), 1).unwrap();
            packer.window_log(log).unwrap();
            packer.write_all(PGN).unwrap();
            packer.flush().unwrap();
            packer.finish().unwrap()
        };
        std::fs::write(&path, [frame(23), frame(27)].concat()).unwrap();
        let input = Input::file(&path);
        // Memory is reserved for reading frames ahead, because another frame follows the first one.
        assert_eq!(
            input.unpacking_memory(1 << 30),
            memory_ahead(&path, 1 << 28)
        );
        let read = |memory| {
            let mut text = Vec::new();
            let options = StreamOptions {
                memory,
                ..StreamOptions::default()
            };
            let mut stream = input.open(&options)?;
            let read = stream.read_to_end(&mut text);
            read.map(|_| text).map_err(|err| input.error(err))
        };
        assert_eq!(read(1 << 27).unwrap(), [PGN, PGN].concat());
        for memory in [0, 1 << 26] {
            let err = read(memory).unwrap_err().to_string();
            assert!(
                err.contains("MiB of memory: unpack the file first"),
                "{err}"
            );
        }
        std::fs::write(&path, frame(27)).unwrap();
        let err = read(1 << 26).unwrap_err().to_string();
        assert!(err.contains("takes 128 MiB of memory"), "{err}");
        assert_eq!(input.unpacking_memory(1 << 30), 1 << 27);
        assert_eq!(input.unpacking_memory(1 << 27), 1 << 26);
    }

    /// Opening a named pipe blocks until a program writes to it.
    #[cfg(unix)]
    #[test]
    fn waiting_for_a_pipe_ends_when_asked() {
        use std::{sync::atomic::Ordering, time::Duration};
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let options = StreamOptions::default();
        let input = Input::file(&path);
        input.check().unwrap();
        let stop = Arc::clone(&options.stop);
        let stopper = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            stop.store(true, Ordering::Relaxed);
        });
        let err = input.open(&options).unwrap_err();
        assert!(matches!(err, Error::Interrupted), "{err}");
        stopper.join().unwrap();
        // Now a program opens the pipe, but writes nothing to it.
        let writer = File::options().read(true).write(true).open(&path).unwrap();
        options.stop.store(false, Ordering::Relaxed);
        let stop = Arc::clone(&options.stop);
        let stopper = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            stop.store(true, Ordering::Relaxed);
        });
        assert!(matches!(input.open(&options), Err(Error::Interrupted)));
        stopper.join().unwrap();
        drop(writer);
    }

    #[test]
    fn a_zip_with_members_of_one_name_is_refused() {
        // The library that packs the archive rejects duplicate names, so the name is changed afterwards.
        let mut bytes = zip(&[("a.pgn", PGN), ("b.pgn", PGN), ("c.pgn", PGN)]);
        while let Some(at) = bytes.windows(5).position(|name| name == b"b.pgn") {
            bytes[at] = b'a';
        }
        let err = unpacked(&bytes).unwrap_err().to_string();
        assert!(err.contains("several files with the same name"), "{err}");
    }

    #[test]
    fn a_zip_with_too_many_members_is_refused_before_its_table_is_read() {
        let mut bytes = zip(&[("a.pgn", PGN)]);
        let end = bytes.windows(4).position(|at| at == b"PK\x05\x06").unwrap();
        // The last records of a zip archive with more than 65,535 files: its ZIP64 end record and locator.
        let mut end_64 = [0; 76];
        end_64[..4].copy_from_slice(b"PK\x06\x06");
        end_64[32..40].copy_from_slice(&2_000_000u64.to_le_bytes());
        end_64[56..60].copy_from_slice(b"PK\x06\x07");
        bytes.splice(end..end, end_64);
        let err = unpacked(&bytes).unwrap_err();
        assert_eq!(err.kind(), crate::ErrorKind::TooLarge);
        assert!(err.to_string().contains("more than 65536 files"), "{err}");
    }

    /// Reads the first bytes of a file, changes the file, and returns the error of reading the rest.
    fn read_while_it_changes(bytes: &[u8], change: impl FnOnce(&std::path::Path)) -> Error {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("games.pgn");
        std::fs::write(&path, bytes).unwrap();
        let input = Input::file(&path);
        let mut stream = input.open(&StreamOptions::default()).unwrap();
        stream.read_exact(&mut [0]).unwrap();
        change(&path);
        let read = stream.read_to_end(&mut Vec::new());
        let error = input.error(read.unwrap_err());
        let advice = "run the command again when no other program is writing";
        assert!(error.to_string().contains(advice), "{error}");
        // The file can be read again, except a compressed file that was cut.
        let mut again = input.open(&StreamOptions::default()).unwrap();
        let is_read = again.read_to_end(&mut Vec::new()).is_ok();
        assert_eq!(is_read, !bytes.starts_with(b"\x1f\x8b"));
        error
    }

    #[test]
    fn a_file_that_changes_while_it_is_read_is_refused() {
        // The text is longer than the chunks that the thread reads ahead.
        let long = PGN.repeat(200_000);
        let truncate = |path: &std::path::Path| {
            let file = File::options().write(true).open(path).unwrap();
            file.set_len(3_000_000).unwrap();
        };
        let append = |path: &std::path::Path| {
            let mut file = File::options().append(true).open(path).unwrap();
            file.write_all(PGN).unwrap();
        };
        let touch = |path: &std::path::Path| {
            let file = File::options().write(true).open(path).unwrap();
            file.set_modified(std::time::UNIX_EPOCH).unwrap();
        };
        let changes: [&dyn Fn(&std::path::Path); 3] = [&truncate, &append, &touch];
        for change in changes {
            let err = read_while_it_changes(&long, change);
            assert_eq!(err.kind(), crate::ErrorKind::Changed);
            assert!(
                err.to_string().contains("changed while it was read"),
                "{err}"
            );
        }
        // A truncated compressed file is reported as changed, not as damaged.
        let numbers = (0..2_000_000u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_string());
        let err = read_while_it_changes(&gz(numbers.collect::<String>().as_bytes()), truncate);
        assert_eq!(err.kind(), crate::ErrorKind::Changed, "{err}");
    }

    #[test]
    fn files_that_may_be_pgn_are_accepted() {
        for text in [
            &b""[..],
            b"[Event \"x\"]",
            b"1. e4",
            b"Read me",
            b"[Event \"x\"]\n\0\n",
            b"% escaped",
            b"1. e4 e5\x1a\0\0\0",
        ] {
            assert_eq!(foreign(Path::new("x"), text), None, "{text:?}");
        }
    }

    #[test]
    fn other_formats_are_recognized() {
        let utf_16: Vec<u8> = "[Event \"x\"]"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        let mut tar = vec![0; 1024];
        tar[..5].copy_from_slice(b"a.pgn");
        tar[257..262].copy_from_slice(b"ustar");
        // In POSIX archives, a zero follows the magic `ustar`; in GNU archives, a blank.
        let mut gnu_tar = tar.clone();
        gnu_tar[257..265].copy_from_slice(b"ustar  \0");
        // The archives of Unix version 7 have only a checksum.
        let mut old_tar = vec![0; 1024];
        old_tar[..5].copy_from_slice(b"a.pgn");
        old_tar[100..108].copy_from_slice(b"000644 \0");
        old_tar[148..156].copy_from_slice(b"        ");
        let sum: u32 = old_tar.iter().map(|byte| u32::from(*byte)).sum();
        let field = format!("{sum:06o}\0 ");
        old_tar[148..156].copy_from_slice(field.as_bytes());
        old_tar[512..524].copy_from_slice(b"[Event \"x\"]\n");
        let ace = [&[0x12, 0x34, 0x31, 0, 0, 0x90, 0][..], b"**ACE**", &[0; 30]].concat();
        let book: Vec<u8> = (1..40u64)
            .flat_map(|i| [(i << 58 | i).to_be_bytes(), [9, 0, 0, 1, 0, 0, 0, 0]].concat())
            .collect();
        let headed = [&[0; 8][..], b"@PG@\n1.0", &book].concat();
        for (text, what) in [
            (&utf_16[..], "UTF-16"),
            (&tar, "tar"),
            (&gnu_tar, "tar"),
            (&old_tar, "tar"),
            (&ace, "ACE"),
            (b"\x1f\x5a-lh5-\x99\0", "LHA"),
            (&book, "Polyglot"),
            (&headed, "Polyglot"),
            (b"SQLite format 3\0", "SQLite"),
            (b"PAR1\x15\x04", "Parquet"),
            (b"\xfd7zXZ\0\0", "xz"),
            (b"7z\xbc\xaf\x27\x1c", "7z"),
            (b"Rar!\x1a\x07\x01\0", "RAR"),
            (b"\x7fELF\0\0\0\x99", "binary"),
        ] {
            let kind = foreign(Path::new("x"), text).expect(what);
            assert!(kind.contains(what), "{what}: {kind}");
        }
    }

    /// Tests that a zstd frame with the largest possible window is rejected, and that its size is calculated without
    /// an overflow.
    #[test]
    fn the_largest_windows_are_refused() {
        let all_of_content = [&[0x28, 0xb5, 0x2f, 0xfd, 0xe0][..], &[0xff; 8]].concat();
        let largest = [0x28, 0xb5, 0x2f, 0xfd, 0, 0xff];
        for (start, window) in [
            (&all_of_content[..], u64::MAX),
            (&largest, (1 << 41) / 8 * 15),
        ] {
            assert_eq!(zstd_window(start), Some(window));
            let err = refuse_large_window(Path::new("a.zst"), start, 1 << 30, 2).unwrap_err();
            assert!(err.to_string().contains("unpack the file first"), "{err}");
        }
    }

    #[test]
    fn the_first_bytes_give_the_window() {
        for log in [10, 17, 24, 27] {
            let mut packer = zstd::Encoder::new(Vec::new(), 1).unwrap();
            packer.window_log(log).unwrap();
            // The encoder does not know the length of the content, so it writes a window size.
            packer.write_all(&[0; 1000]).unwrap();
            packer.flush().unwrap();
            let packed = packer.finish().unwrap();
            assert_eq!(zstd_window(&packed), Some(1 << log), "{log}");
        }
        for size in [10, 300, 70_000] {
            let packed = zstd::bulk::compress(&vec![7; size], 3).unwrap();
            assert_eq!(zstd_window(&packed), Some(size as u64));
        }
        assert_eq!(zstd_window(b"[Event \"x\"]"), None);
    }

    #[test]
    fn large_windows_are_refused() {
        let mut packer = zstd::Encoder::new(Vec::new(), 1).unwrap();
        packer.window_log(27).unwrap();
        packer.write_all(&[0; 1000]).unwrap();
        packer.flush().unwrap();
        let packed = packer.finish().unwrap();
        let path = Path::new("x.zst");
        assert!(refuse_large_window(path, &packed, 1 << 27, 2).is_ok());
        let err = refuse_large_window(path, &packed, (1 << 27) - 1, 2).unwrap_err();
        assert!(err.to_string().contains("128 MiB"), "{err}");
    }
}

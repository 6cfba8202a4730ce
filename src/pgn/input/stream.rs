//! The unpacked bytes of an input, which a separate thread reads and unpacks.
//!
//! The thread sends chunks through a bounded queue, so unpacking and parsing overlap. A caller that waits for a silent pipe
//! can be cancelled: the thread stays blocked until the pipe provides data or the process ends.

use std::{
    fmt,
    fs::File,
    io::{self, Cursor, Read},
    path::Path,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::SystemTime,
};

use super::{
    Input, SMALL_WINDOW, StreamOptions,
    kind::{LOOKED_AT, foreign},
    open, read_start,
};
use crate::{
    error::{At, Error, Result},
    kind::{FileKind, is_windows_device},
    task::{self, Feed, Feeder},
};

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

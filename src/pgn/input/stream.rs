//! The unpacked bytes of an input, read and unpacked on a thread of their own.
//!
//! That thread hands over chunks through a bounded queue. So unpacking and cutting run at the same time,
//! and a caller who waits for a silent pipe can stop waiting: the thread stays blocked, and ends with the
//! process or when the pipe gives something.

use std::{
    fmt,
    io::{self, Cursor, Read},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use super::{
    Input, SMALL_WINDOW, StreamOptions,
    kind::{LOOKED_AT, foreign},
    open, read_start,
};
use crate::{
    error::{At, Error, Result},
    kind::FileKind,
    task::{self, Feed, Feeder},
};

/// How many bytes are handed over at once.
const CHUNK: usize = 1 << 18;

/// How many chunks may be ahead of the reader.
const AHEAD: usize = 4;

/// The unpacked bytes of an [`Input`].
///
/// [`Input::error`] gives the whole of an error that [`read`](Read::read) returned.
pub struct Stream {
    chunks: Feed<Vec<u8>>,
    chunk: Cursor<Vec<u8>>,
    stop: [Arc<AtomicBool>; 2],
    /// How many bytes have been taken from the input, packed as they are.
    pub taken: Arc<AtomicU64>,
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("taken", &self.taken)
            .finish_non_exhaustive()
    }
}

impl Stream {
    pub(super) fn open(
        input: Input,
        options: &StreamOptions,
        failed: Arc<AtomicBool>,
    ) -> Result<Stream> {
        let stop = [Arc::clone(&options.stop), failed];
        let taken = Arc::new(AtomicU64::new(0));
        let source = Sender {
            input,
            taken: Arc::clone(&taken),
            memory: options.memory.max(SMALL_WINDOW),
        };
        let (mut chunks, _) = task::start("unpack", AHEAD, move |chunks| source.send_all(chunks))?;
        // The first chunk is empty: the input is open, and its start was looked at.
        let start = chunks.next(&stop.each_ref().map(|flag| &**flag))?;
        Ok(Stream {
            chunks,
            chunk: Cursor::new(start.unwrap_or_default()),
            stop,
            taken,
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

/// The end of a stream that reads and unpacks.
pub(super) struct Sender {
    pub(super) input: Input,
    pub(super) taken: Arc<AtomicU64>,
    pub(super) memory: usize,
}

/// Where the bytes go.
pub(super) type Chunks = Feeder<Vec<u8>>;

impl Sender {
    fn send_all(&self, chunks: &Chunks) -> Result<()> {
        let path = self.input.path();
        let mut source: Box<dyn Read> = if self.input.is_stdin() {
            Box::new(CountingReader::new(io::stdin(), &self.taken))
        } else {
            Box::new(CountingReader::new(open(path)?, &self.taken))
        };
        let start = read_start(&mut source).at(path, "read")?;
        let kind = FileKind::of_start(&start);
        chunks.send(Vec::new())?;
        if kind.is_unpacked() {
            return self.send_packed(chunks, kind, start, source);
        }
        self.send_text(chunks, Cursor::new(start).chain(source), true)
    }

    #[cfg(not(feature = "compression"))]
    fn send_packed(&self, _: &Chunks, _: FileKind, _: Vec<u8>, _: Box<dyn Read>) -> Result<()> {
        let problem = "packed, and this program was built to read plain PGN only: unpack it";
        Err(Error::file(self.input.path(), problem))
    }

    /// Sends all that a reader gives. The start of the whole is looked at first.
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
                && let Some(what) = foreign(&chunk)
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

    /// The decoder's own words for a window that is too large say nothing of what to do.
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

/// Counts the bytes that pass.
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

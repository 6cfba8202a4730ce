//! The unpacked bytes of an input, read and unpacked on a thread of their own.
//!
//! That thread hands over chunks through a bounded queue. So unpacking runs beside cutting, and a caller who
//! waits for a pipe that gives nothing can stop waiting: the thread is left behind, blocked, and ends with
//! the process or when the pipe gives something.

use std::{
    fmt,
    io::{self, Cursor, Read},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, SyncSender},
    },
    thread,
    time::Duration,
};

use super::{
    Input, SMALL_WINDOW, StreamOptions,
    kind::{LOOKED_AT, foreign},
    open,
    packing::Packing,
    read_start,
};
#[cfg(feature = "compression")]
use super::{
    packing::refuse_large_window,
    unpack::{damaged_zip, open_zip, unpacked},
};
use crate::error::{At, Error, Result};

/// How many bytes are handed over at once.
const CHUNK: usize = 1 << 18;

/// How many chunks may be ahead of the reader.
const AHEAD: usize = 4;

/// How often a waiting reader looks at the stop flag.
const PATIENCE: Duration = Duration::from_millis(50);

/// The unpacked bytes of an [`Input`].
///
/// An error that [`read`](Read::read) gives is told in full by [`Input::error`].
pub struct Stream {
    chunks: Receiver<Result<Vec<u8>>>,
    chunk: Cursor<Vec<u8>>,
    stop: Arc<AtomicBool>,
    /// How many bytes have been taken from the input, packed as they are.
    pub taken: Arc<AtomicU64>,
    /// Whether the input is packed.
    pub is_packed: bool,
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("taken", &self.taken)
            .field("is_packed", &self.is_packed)
            .finish_non_exhaustive()
    }
}

impl Stream {
    pub(super) fn open(input: Input, options: &StreamOptions) -> Result<Stream> {
        let taken = Arc::new(AtomicU64::new(0));
        let (packed, is_packed) = mpsc::sync_channel(1);
        let (sender, chunks) = mpsc::sync_channel(AHEAD);
        let path = input.path().to_owned();
        let source = Source {
            input,
            taken: Arc::clone(&taken),
            memory: options.memory.max(SMALL_WINDOW),
            packed,
            chunks: sender,
        };
        thread::Builder::new()
            .name("unpack".to_owned())
            .spawn(move || source.run())
            .at(path, "start a thread to read")?;
        let is_packed = match wait(&is_packed, &options.stop)? {
            Some(is_packed) => is_packed,
            // It could not be opened.
            None => match wait(&chunks, &options.stop)? {
                Some(Err(err)) => return Err(err),
                _ => false,
            },
        };
        Ok(Stream {
            chunks,
            chunk: Cursor::default(),
            stop: Arc::clone(&options.stop),
            taken,
            is_packed,
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
            match wait(&self.chunks, &self.stop) {
                Ok(Some(Ok(chunk))) => self.chunk = Cursor::new(chunk),
                Ok(None) => return Ok(0),
                Ok(Some(Err(err))) | Err(err) => return Err(io::Error::other(err)),
            }
        }
    }
}

/// What another thread sends next, `None` if it has ended, or an error if the flag is set before.
fn wait<T>(receiver: &Receiver<T>, stop: &AtomicBool) -> Result<Option<T>> {
    loop {
        match receiver.recv_timeout(PATIENCE) {
            Ok(sent) => return Ok(Some(sent)),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => {
                return Err(Error::Interrupted);
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// The end of a stream that reads and unpacks.
struct Source {
    input: Input,
    taken: Arc<AtomicU64>,
    memory: usize,
    /// Takes whether the input is packed.
    packed: SyncSender<bool>,
    chunks: SyncSender<Result<Vec<u8>>>,
}

/// The reader has gone, so nothing more is wanted.
struct Unwanted;

/// Why a source ends before its input does.
enum Ended {
    Failed(Error),
    Unwanted,
}

impl From<Error> for Ended {
    fn from(err: Error) -> Ended {
        Ended::Failed(err)
    }
}

impl From<Unwanted> for Ended {
    fn from(_: Unwanted) -> Ended {
        Ended::Unwanted
    }
}

impl Source {
    fn run(self) {
        if let Err(Ended::Failed(err)) = self.send_all() {
            // A reader that has gone need not know.
            let _ = self.chunks.send(Err(err));
        }
    }

    fn send_all(&self) -> Result<(), Ended> {
        let path = self.input.path();
        let mut source: Box<dyn Read> = if self.input.is_stdin() {
            Box::new(Counting::new(io::stdin(), &self.taken))
        } else {
            Box::new(Counting::new(open(path)?, &self.taken))
        };
        let start = read_start(&mut source).at(path, "read")?;
        let packing = Packing::detect(&start);
        let _ = self.packed.send(packing != Packing::None);
        if packing == Packing::None {
            return self.send_text(Cursor::new(start).chain(source), true);
        }
        self.send_packed(packing, start, source)
    }

    #[cfg(not(feature = "compression"))]
    fn send_packed(&self, _: Packing, _: Vec<u8>, _: Box<dyn Read>) -> Result<(), Ended> {
        let problem = "packed, and this program was built to read plain PGN only: unpack it";
        Err(Error::file(self.input.path(), problem).into())
    }

    #[cfg(feature = "compression")]
    fn send_packed(
        &self,
        packing: Packing,
        start: Vec<u8>,
        source: Box<dyn Read>,
    ) -> Result<(), Ended> {
        let path = self.input.path();
        if packing == Packing::Zip {
            return self.send_zip(start, source);
        }
        refuse_large_window(path, &start, self.memory)?;
        let source = Cursor::new(start).chain(source);
        let reader = unpacked(packing, source, self.memory).at(path, "unpack")?;
        self.send_text(reader, true)
    }

    #[cfg(feature = "compression")]
    fn send_zip(&self, start: Vec<u8>, source: Box<dyn Read>) -> Result<(), Ended> {
        let path = self.input.path();
        if self.input.is_stdin() {
            // The table of contents of a zip archive stands at its end.
            let mut spool = tempfile::tempfile().at(path, "make a temporary file for")?;
            io::copy(&mut Cursor::new(start).chain(source), &mut spool)
                .at(path, "copy to a temporary file")?;
            return self.send_members(path, spool);
        }
        drop(source);
        self.taken.store(0, Ordering::Relaxed);
        self.send_members(path, Counting::new(open(path)?, &self.taken))
    }

    /// The members of a zip archive one after the other, a line break between two.
    #[cfg(feature = "compression")]
    fn send_members(
        &self,
        path: &std::path::Path,
        archive: impl Read + io::Seek,
    ) -> Result<(), Ended> {
        let (mut archive, members) = open_zip(path, archive)?;
        let mut is_first = true;
        for member in members {
            if !is_first {
                self.send(b"\n".to_vec())?;
            }
            let member = archive
                .by_index(member)
                .map_err(|err| damaged_zip(path, &err))?;
            self.send_text(member, is_first)?;
            is_first = false;
        }
        Ok(())
    }

    /// Sends all that a reader gives. The start of the whole is looked at first.
    fn send_text(&self, mut reader: impl Read, is_start: bool) -> Result<(), Ended> {
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
                return Err(Error::file(self.input.path(), what).into());
            }
            if chunk.is_empty() {
                return Ok(());
            }
            self.send(chunk)?;
            size = CHUNK;
        }
    }

    /// The decoder's own words for a window that is too large say nothing of what to do.
    fn named(&self, err: io::Error) -> io::Error {
        if !err.to_string().contains("requires too much memory") {
            return err;
        }
        io::Error::other(Error::file(
            self.input.path(),
            format!(
                "a frame of it has a window of more than {} MiB: allow more memory, or unpack it first",
                self.memory >> 20
            ),
        ))
    }

    fn send(&self, chunk: Vec<u8>) -> Result<(), Unwanted> {
        self.chunks.send(Ok(chunk)).map_err(|_| Unwanted)
    }
}

/// Counts the bytes that pass.
struct Counting<R> {
    inner: R,
    taken: Arc<AtomicU64>,
}

impl<R> Counting<R> {
    fn new(inner: R, taken: &Arc<AtomicU64>) -> Counting<R> {
        Counting {
            inner,
            taken: Arc::clone(taken),
        }
    }
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buf)?;
        self.taken.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

#[cfg(feature = "compression")]
impl io::Seek for Counting<std::fs::File> {
    fn seek(&mut self, pos: io::SeekFrom) -> io::Result<u64> {
        self.inner.seek(pos)
    }
}

//! Decompresses gzip, bzip2 and zstd files, one part after another.

use std::{
    io::{self, BufRead, Read},
    sync::{Arc, OnceLock},
};

use bzip2::bufread::BzDecoder;
use flate2::bufread::GzDecoder;

use super::Sender;
use crate::{error::plural, kind::FileKind};

/// A reader of the decompressed bytes of a gzip, bzip2 or zstd file. Such a file consists of parts (gzip members, bzip2
/// streams or zstd frames). Other bytes after the last part are skipped and described in `left_out`.
pub(super) struct Unpacker<'a, R: BufRead> {
    kind: FileKind,
    /// The offset in the file of the first byte that this reader reads.
    offset: u64,
    /// The offset in the file of the current part.
    part_start: u64,
    /// The maximum size of a zstd window in bytes. Must not be 0.
    memory: usize,
    /// The decoder of the current part, or `None` between two parts.
    part: Option<Decoder<Lookahead<R>>>,
    /// The bytes after the current part. `None` while `part` contains this reader, and at the end of the file.
    rest: Option<Lookahead<R>>,
    left_out: &'a Arc<OnceLock<String>>,
}

/// A decoder of one part of a compressed file.
pub(super) enum Decoder<R: BufRead> {
    Gzip(Box<GzDecoder<R>>),
    Bzip2(BzDecoder<R>),
    Zstd(Box<zstd::Decoder<'static, R>>),
}

impl<'a, R: BufRead> Unpacker<'a, R> {
    /// Creates a reader of the rest of a compressed file of the format `kind`. `source` returns the rest of the file,
    /// `offset` is the offset in the file at which it begins, and `sender` is the sender to which the file belongs.
    pub(super) fn new(
        sender: &'a Sender,
        kind: FileKind,
        source: R,
        offset: u64,
    ) -> Unpacker<'a, R> {
        Unpacker {
            kind,
            offset,
            part_start: offset,
            memory: sender.memory,
            part: None,
            rest: Some(Lookahead::new(source)),
            left_out: &sender.left_out,
        }
    }
}

/// Adds to an error of a decoder in which part of the file it occurred. `start` is the offset in the file of this part,
/// and `kind` is the format of the file. Returns an error of the operating system unchanged.
pub(super) fn in_part(err: io::Error, kind: FileKind, start: u64) -> io::Error {
    if err.raw_os_error().is_some() || err.kind() == io::ErrorKind::OutOfMemory {
        return err;
    }
    let part = match kind {
        FileKind::Gzip => "gzip member",
        FileKind::Bzip2 => "bzip2 stream",
        _ => "zstd frame",
    };
    io::Error::new(
        err.kind(),
        format!("{err}, in the {part} that begins at byte {start}"),
    )
}

impl<R: BufRead> Read for Unpacker<'_, R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(part) = &mut self.part {
                let read = part.read(buf);
                let read = read.map_err(|err| in_part(err, self.kind, self.part_start))?;
                if read > 0 || buf.is_empty() {
                    return Ok(read);
                }
                self.rest = self.part.take().map(Decoder::into_rest);
            }
            let Some(mut rest) = self.rest.take() else {
                return Ok(0);
            };
            if !begins_part(self.kind, rest.peek()?) {
                let skipped = io::copy(&mut rest, &mut io::sink())?;
                if skipped > 0 {
                    // No other part of the program describes what is left out of a file that is not a zip archive.
                    let _ = self.left_out.set(trailing(skipped));
                }
                return Ok(0);
            }
            self.part_start = self.offset + rest.passed;
            self.part = Some(Decoder::new(self.kind, rest, self.memory)?);
        }
    }
}

impl<R: BufRead> Decoder<R> {
    /// Creates a decoder of the part at the start of `source`.
    ///
    /// # Panics
    ///
    /// Panics if `kind` is not gzip, bzip2 or zstd.
    pub(super) fn new(kind: FileKind, source: R, memory: usize) -> io::Result<Decoder<R>> {
        Ok(match kind {
            FileKind::Gzip => Decoder::Gzip(Box::new(GzDecoder::new(source))),
            FileKind::Bzip2 => Decoder::Bzip2(BzDecoder::new(source)),
            FileKind::Zstd => {
                let mut decoder = zstd::Decoder::with_buffer(source)?.single_frame();
                decoder.window_log_max(memory.ilog2().min(31))?;
                Decoder::Zstd(Box::new(decoder))
            }
            _ => unreachable!("a zip archive is read member by member"),
        })
    }

    /// Returns the reader of the bytes after the part. The part must have been read to its end.
    fn into_rest(self) -> R {
        match self {
            Decoder::Gzip(decoder) => decoder.into_inner(),
            Decoder::Bzip2(decoder) => decoder.into_inner(),
            Decoder::Zstd(decoder) => decoder.finish(),
        }
    }
}

impl<R: BufRead> Read for Decoder<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Decoder::Gzip(decoder) => decoder.read(buf),
            Decoder::Bzip2(decoder) => decoder.read(buf),
            Decoder::Zstd(decoder) => decoder.read(buf),
        }
    }
}

/// Returns `true` if a part of a file of the format `kind` begins with `start`. `start` contains the next four bytes of
/// the file, or fewer at its end. In this case, it is enough if they are the beginning of the signature, because the
/// file may be truncated.
fn begins_part(kind: FileKind, start: &[u8]) -> bool {
    let signatures: &[&[u8]] = match kind {
        FileKind::Gzip => &[b"\x1f\x8b\x08"],
        FileKind::Bzip2 => &[b"BZh"],
        _ => &[b"\x28\xb5\x2f\xfd"],
    };
    let has_signature = |signature: &&[u8]| start.iter().zip(*signature).all(|(a, b)| a == b);
    !start.is_empty() && (signatures.iter().any(has_signature) || FileKind::of_start(start) == kind)
}

/// Describes `bytes` bytes that follow the compressed data of a file and were not read.
pub(super) fn trailing(bytes: u64) -> String {
    format!(
        "polybook did not read {} after the end of the compressed data",
        plural(bytes, "byte")
    )
}

/// A reader whose next bytes can be examined before they are read.
struct Lookahead<R> {
    /// Bytes that were read from `source`, but not yet from this reader: at most four.
    head: Vec<u8>,
    source: R,
    /// The number of bytes that have been read from this reader.
    passed: u64,
}

impl<R: BufRead> Lookahead<R> {
    fn new(source: R) -> Lookahead<R> {
        Lookahead {
            head: Vec::new(),
            source,
            passed: 0,
        }
    }

    /// Returns the next four bytes, or fewer at the end of the file, without reading them.
    fn peek(&mut self) -> io::Result<&[u8]> {
        let missing = 4_usize.saturating_sub(self.head.len());
        (&mut self.source)
            .take(missing as u64)
            .read_to_end(&mut self.head)?;
        Ok(&self.head)
    }
}

impl<R: BufRead> Read for Lookahead<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let mut available = self.fill_buf()?;
        let read = available.read(buf)?;
        self.consume(read);
        Ok(read)
    }
}

impl<R: BufRead> BufRead for Lookahead<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.head.is_empty() {
            self.source.fill_buf()
        } else {
            Ok(&self.head)
        }
    }

    fn consume(&mut self, read: usize) {
        self.passed += read as u64;
        if self.head.is_empty() {
            self.source.consume(read)
        } else {
            drop(self.head.drain(..read))
        }
    }
}

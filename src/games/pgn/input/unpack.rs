//! Decompresses gzip, bzip2, zstd and zip.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom},
    path::Path,
    sync::{Arc, OnceLock, atomic::Ordering},
};

use bzip2::bufread::BzDecoder;
use flate2::bufread::GzDecoder;
use zip::{CompressionMethod, ZipArchive, result::ZipError};

use super::{
    Chunks, CountingReader, Sender,
    frames::{Frames, frames_ahead},
    refuse_large_window,
};
use crate::{
    error::{At, Error, Result, plural},
    kind::FileKind,
};

/// Decompresses `source`, the data of the input of `sender`, and sends its bytes to `chunks`. `kind` is the
/// compression, and `start` contains the bytes that have already been read from `source`. `file` is the file from which
/// `source` reads, or `None` for standard input.
pub(super) fn send_packed(
    sender: &Sender,
    chunks: &Chunks,
    kind: FileKind,
    start: Vec<u8>,
    source: impl Read,
    file: Option<&File>,
) -> Result<()> {
    let path = sender.input.path();
    if kind == FileKind::Zip {
        return send_zip(sender, chunks, start, source, file);
    }
    refuse_large_window(
        path,
        &start,
        sender.memory,
        sender.input.unpacking_divisor(),
    )?;
    let source = BufReader::with_capacity(1 << 17, Cursor::new(start).chain(source));
    let ahead = frames_ahead(sender.memory);
    // Reading ahead from a pipe would delay the games that have arrived.
    if kind == FileKind::Zstd && ahead > 1 && file.is_some_and(is_regular) {
        return sender.send_text(chunks, Frames::new(sender, source, ahead), None);
    }
    sender.send_text(chunks, Unpacker::new(sender, kind, source, 0), None)
}

fn is_regular(file: &File) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.is_file())
}

/// Sends the contents of the PGN files in a zip archive to `chunks`. `start` contains the bytes that have already been
/// read from `source`. `file` is the file from which `source` reads, or `None` for standard input.
///
/// The table of contents of a zip archive is at its end. A source that cannot seek, such as a pipe, is therefore first
/// copied to a temporary file.
fn send_zip(
    sender: &Sender,
    chunks: &Chunks,
    start: Vec<u8>,
    source: impl Read,
    file: Option<&File>,
) -> Result<()> {
    let path = sender.input.path();
    if let Some(file) = file.filter(|file| is_regular(file)) {
        drop(source);
        sender.taken.store(0, Ordering::Relaxed);
        return send_members(
            sender,
            chunks,
            path,
            CountingReader::new(file, &sender.taken),
        );
    }
    let dir = &sender.temp_dir;
    let mut spool = tempfile::tempfile_in(dir).at(dir, "create a temporary file in")?;
    io::copy(&mut Cursor::new(start).chain(source), &mut spool)
        .at(path, "copy to a temporary file")?;
    send_members(sender, chunks, path, spool)
}

/// Sends the contents of the PGN files in a zip archive to `chunks`, in the order of the archive. Sends a line break
/// between two files.
fn send_members(
    sender: &Sender,
    chunks: &Chunks,
    path: &Path,
    archive: impl Read + Seek,
) -> Result<()> {
    let OpenedArchive {
        mut archive,
        members,
        others,
        trailing,
    } = open_zip(path, archive)?;
    let others = described(&others).map(|description| {
        format!(
            "polybook did not read {description}: unpack the archive and give the files of games"
        )
    });
    let unread: Vec<String> = others.into_iter().chain(trailing).collect();
    if !unread.is_empty() {
        // The stream is opened only once, so `left_out` cannot have a value yet.
        let _ = sender.left_out.set(unread.join("; "));
    }
    for (number, member) in members.into_iter().enumerate() {
        if number > 0 {
            chunks.send(b"\n".to_vec())?;
        }
        let member = archive
            .by_index(member)
            .map_err(|err| zip_error(path, err))?;
        let name = member
            .name()
            .map_or_else(|_| String::new(), |name| name.into_owned());
        sender.send_text(chunks, member, Some(&name))?;
    }
    Ok(())
}

impl<R: Seek> Seek for CountingReader<R> {
    fn seek(&mut self, pos: SeekFrom) -> io::Result<u64> {
        self.inner.seek(pos)
    }
}

/// A reader of the decompressed bytes of a file in the format gzip, bzip2 or zstd. Such a file consists of parts (gzip
/// members, bzip2 streams or zstd frames). Other bytes after the last part are skipped and described in `left_out`.
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
    /// Creates a reader of the rest of a file of the kind `kind`, which `source` returns. `offset` is its offset in the
    /// file, and `sender` is the sender of the file.
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

/// Adds to an error of a decoder in which part of the file it occurred. `start` is the offset of the part in the file,
/// and `kind` is the kind of the file. Returns an error of the operating system unchanged.
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

    /// Returns the reader of the bytes after the part, which must have been read to its end.
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

/// Returns `true` if `start`, up to four bytes before the end of a file, begins a part of a file of the kind `kind`.
/// Fewer than four bytes also begin a part if the signature begins with them, because the file may be cut short.
fn begins_part(kind: FileKind, start: &[u8]) -> bool {
    let signatures: &[&[u8]] = match kind {
        FileKind::Gzip => &[b"\x1f\x8b\x08"],
        FileKind::Bzip2 => &[b"BZh"],
        _ => &[b"\x28\xb5\x2f\xfd"],
    };
    let has_signature = |signature: &&[u8]| start.iter().zip(*signature).all(|(a, b)| a == b);
    !start.is_empty() && (signatures.iter().any(has_signature) || FileKind::of_start(start) == kind)
}

/// Describes `bytes` bytes after the end of the compressed data of a file.
fn trailing(bytes: u64) -> String {
    format!(
        "polybook did not read {} after the end of the compressed data",
        plural(bytes, "byte")
    )
}

/// A reader whose next bytes can be examined before they are read.
struct Lookahead<R> {
    /// Bytes that were read from `source`, but not yet from this reader. At most four.
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

/// An opened zip archive.
struct OpenedArchive<R> {
    archive: ZipArchive<R>,
    /// The indices of the `.pgn` files.
    members: Vec<usize>,
    /// The names of the other files.
    others: Vec<String>,
    /// A description of the bytes after the end of the archive, if there are any.
    trailing: Option<String>,
}

/// Opens a zip archive for reading. Ignores directories, and the files in which macOS stores the attributes of other
/// files.
///
/// # Errors
///
/// Returns an error if the archive is damaged, if it contains no PGN file or too many files, if several files in it
/// have the same name, or if a PGN file in it is encrypted or packed with an unknown method.
fn open_zip<R: Read + Seek>(path: &Path, mut archive: R) -> Result<OpenedArchive<R>> {
    let ends = ends_of(&mut archive).at(path, "read")?;
    if ends.iter().any(|end| end.members > MAX_MEMBERS) {
        let problem = format!(
            "this zip archive contains more than {MAX_MEMBERS} files: unpack the archive and give the files"
        );
        return Err(Error::too_large(path, problem));
    }
    let mut archive = ZipArchive::new(archive).map_err(|err| zip_error(path, err))?;
    // If several members have the same name, the crate `zip` keeps only one of them.
    if ends.is_empty() {
        let problem = "this zip archive is damaged: more than a megabyte of other data follows its end; download or pack \
                       the archive again";
        return Err(Error::damaged(path, problem));
    }
    let members = archive.len() as u64;
    let ends = ends.iter().filter(|end| end.members == members);
    let Some(after) = ends.map(|end| end.after).min() else {
        let problem = "this zip archive contains several files with the same name: unpack each file under a name of \
                       its own, and give the files";
        return Err(Error::file(path, problem));
    };
    let (mut members, mut others) = (Vec::new(), Vec::new());
    for member in 0..archive.len() {
        let name = archive
            .name_for_index(member)
            .and_then(std::result::Result::ok);
        match name.unwrap_or_default() {
            name if name.ends_with('/') || is_of_macos(&name) => {}
            name if name.to_ascii_lowercase().ends_with(".pgn") => members.push(member),
            name => others.push(name.into_owned()),
        }
    }
    if members.is_empty() {
        let problem = match described(&others) {
            Some(others) => format!(
                "this zip archive contains {others} and no .pgn file: unpack the archive and give the files of games"
            ),
            None => "this zip archive contains no files: give a file of games".to_owned(),
        };
        return Err(Error::file(path, problem));
    }
    for member in &members {
        let member = archive
            .by_index_raw(*member)
            .map_err(|err| zip_error(path, err))?;
        if member.encrypted() || member.compression() == CompressionMethod::AES {
            return Err(Error::file(
                path,
                "this zip archive is encrypted: unpack the archive with its password",
            ));
        }
        if !zip::SUPPORTED_COMPRESSION_METHODS.contains(&member.compression()) {
            let name = member.name().unwrap_or_default();
            let problem = format!(
                "the file \"{}\" in this zip archive is compressed with {}, which polybook cannot unpack: unpack the \
                 archive and give the files in it",
                name.escape_debug(),
                method_name(member.compression()),
            );
            return Err(Error::file(path, problem));
        }
    }
    Ok(OpenedArchive {
        archive,
        members,
        others,
        trailing: (after > 0).then(|| trailing(after)),
    })
}

/// Returns `true` if macOS created the member `name` of an archive for the attributes of another file.
fn is_of_macos(name: &str) -> bool {
    let mut parts = name.split(['/', '\\']);
    parts.any(|part| part == "__MACOSX" || part.starts_with("._"))
}

/// Returns the name of a compression method of zip archives (APPNOTE.TXT, 4.4.5).
fn method_name(method: CompressionMethod) -> String {
    match method {
        CompressionMethod::LZMA => "LZMA".to_owned(),
        CompressionMethod::PPMD => "PPMd".to_owned(),
        method => match method.to_string() {
            name if name == "Unknown" => "an unknown method".to_owned(),
            name => name,
        },
    }
}

/// Returns a phrase about the files of an archive that are not PGN. `others` contains the names of these files. The
/// phrase contains their number and the first name. Returns `None` if there are no such files.
fn described(others: &[String]) -> Option<String> {
    let first = others.first()?.escape_debug();
    Some(match others.len() {
        1 => format!("the file \"{first}\""),
        several => format!("{several} other files such as \"{first}\""),
    })
}

/// The maximum number of files in a zip archive. The table of contents of an archive takes about 200 bytes of memory
/// for each file.
const MAX_MEMBERS: u64 = 1 << 16;

/// The number of bytes at the end of a zip archive in which its last record is searched. Bytes may follow the record.
const SEARCHED_BYTES: u64 = 1 << 20;

/// The values in the last record of a zip archive's table of contents.
struct ArchiveEnd {
    /// The number of files in the archive.
    members: u64,
    /// The number of bytes after the record and its comment.
    after: u64,
}

/// Finds the last record of the table of contents of a zip archive (described in APPNOTE.TXT, sections 4.3.14 and
/// 4.3.16). The comment at the end of the archive may contain bytes that look like this record. The function therefore
/// returns one element for each possible record at the end of the archive.
fn ends_of(archive: &mut (impl Read + Seek)) -> io::Result<Vec<ArchiveEnd>> {
    /// The size in bytes of the last record of the table of contents ("end of central directory record"). In archives
    /// with many files (ZIP64), two more records precede it: a larger form of this record, and a locator of the size
    /// `LOCATOR`, which contains the offset of the larger form. The larger form has at least the size `END_64`.
    const END: usize = 22;
    const LOCATOR: usize = 20;
    const END_64: usize = 56;
    let size = archive.seek(SeekFrom::End(0))?;
    let start = archive.seek(SeekFrom::Start(size.saturating_sub(SEARCHED_BYTES)))?;
    let mut tail = Vec::new();
    archive
        .by_ref()
        .take(SEARCHED_BYTES)
        .read_to_end(&mut tail)?;
    let ends = tail
        .windows(END)
        .enumerate()
        .filter(|(_, end)| end.starts_with(b"PK\x05\x06"));
    let ends = ends.map(|(at, end)| {
        let short = u16::from_le_bytes([end[10], end[11]]);
        let comment = u16::from_le_bytes([end[20], end[21]]);
        let mut members = None;
        if let Some(at) = at.checked_sub(LOCATOR)
            && tail[at..].starts_with(b"PK\x06\x07")
        {
            // If other bytes precede the archive, its offsets are wrong.
            let adjacent = (start + at as u64).saturating_sub(END_64 as u64);
            for offset in [number_at(&tail[at..], 8), adjacent] {
                members = members.or(members_64(archive, offset)?);
            }
        }
        let after = tail.len().saturating_sub(at + END + usize::from(comment));
        Ok(ArchiveEnd {
            members: members.unwrap_or(u64::from(short)),
            after: after as u64,
        })
    });
    let ends = ends.collect::<io::Result<_>>()?;
    archive.rewind()?;
    Ok(ends)
}

/// Reads the number of files in a zip archive from the record for archives with many files (ZIP64) at `offset`. Returns
/// `None` if there is no such record.
fn members_64(archive: &mut (impl Read + Seek), offset: u64) -> io::Result<Option<u64>> {
    /// The size in bytes of the fields up to the number of files, and the offset of this number. Further fields follow.
    const START: u64 = 40;
    const MEMBERS: usize = 32;
    let mut start = Vec::new();
    archive.seek(SeekFrom::Start(offset))?;
    archive.take(START).read_to_end(&mut start)?;
    let is_record = start.len() as u64 == START && start.starts_with(b"PK\x06\x06");
    Ok(is_record.then(|| number_at(&start, MEMBERS)))
}

/// Returns the integer of eight bytes at `offset` in `record`, which must be long enough.
fn number_at(record: &[u8], offset: usize) -> u64 {
    record[offset..]
        .first_chunk()
        .map_or(0, |number| u64::from_le_bytes(*number))
}

/// Converts an error of the crate `zip` to an error that names the file `path`. An error that does not come from the
/// operating system becomes an error about a damaged archive.
fn zip_error(path: &Path, err: ZipError) -> Error {
    match err {
        ZipError::Io(source) if source.raw_os_error().is_some() => Error::Io {
            path: path.to_owned(),
            doing: "read",
            source,
        },
        err => Error::damaged(
            path,
            format!("this zip archive is damaged: {err}; download or pack the archive again"),
        ),
    }
}

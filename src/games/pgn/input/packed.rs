//! Decompresses inputs: chooses the decoder for the compression of an input, and reads zip archives.

use std::{
    fs::File,
    io::{self, BufReader, Cursor, Read, Seek, SeekFrom},
    path::Path,
    sync::atomic::Ordering,
};

use zip::{CompressionMethod, ZipArchive, result::ZipError};

use super::{
    Chunks, CountingReader, Sender,
    frames::{Frames, frames_ahead},
    refuse_large_window,
    unpack::{Unpacker, trailing},
};
use crate::{
    error::{At, Error, Result, plural},
    kind::FileKind,
};

/// Decompresses the data of an input and sends the decompressed bytes to `chunks`. `kind` is the compression, `start`
/// contains the bytes that have already been read from `source`, and `source` returns the others. `file` is the file
/// from which `source` reads, or `None` for standard input. `sender` is the sender of the input.
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
/// The table of contents of a zip archive is at the end of the archive. A source that cannot seek, such as a pipe, is
/// therefore first copied to a temporary file.
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
        unread,
    } = open_zip(path, archive)?;
    let others = described(&others).map(|description| {
        format!(
            "polybook did not read {description}: unpack the archive and give the files of games"
        )
    });
    let unread: Vec<String> = others.into_iter().chain(unread).collect();
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

/// An opened zip archive.
struct OpenedArchive<R> {
    archive: ZipArchive<R>,
    /// The indices in the archive of the `.pgn` files.
    members: Vec<usize>,
    /// The names of the other files, which are not read.
    others: Vec<String>,
    /// Descriptions of the bytes before and after the archive, which are not read, if there are any.
    unread: Vec<String>,
}

/// Opens a zip archive for reading. Ignores directories, and the files in which macOS stores the attributes of other
/// files.
///
/// # Errors
///
/// Returns an error if the archive is damaged, contains no PGN file, or contains too many files or several files with
/// the same name. Also returns an error if a PGN file in it is encrypted or compressed with an unknown method.
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
    let Some(end) = ends.min_by_key(|end| end.after) else {
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
    // `cat a.zip b.zip` makes a file in which only the last table of contents is found.
    let before = (end.before > 0).then(|| {
        format!(
            "polybook did not read {} before the last zip archive in the file: give each archive as a file",
            plural(end.before, "byte")
        )
    });
    let after = (end.after > 0).then(|| trailing(end.after));
    Ok(OpenedArchive {
        archive,
        members,
        others,
        unread: before.into_iter().chain(after).collect(),
    })
}

/// Returns `true` if the file `name` in an archive was created by macOS to store the attributes of another file.
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

/// Returns a phrase about the files of an archive that are not PGN, with their number and the first name. `others`
/// contains the names of these files. Returns `None` if there are no such files.
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

/// The number of bytes at the end of a file in which the function searches for the last record of a zip archive. Other
/// bytes may follow the record.
const SEARCHED_BYTES: u64 = 1 << 20;

/// The values in the last record of a zip archive's table of contents.
struct ArchiveEnd {
    /// The number of files in the archive.
    members: u64,
    /// The number of bytes before the archive. Always 0 in the ZIP64 format, which archives with many files have.
    before: u64,
    /// The number of bytes after the record and its comment.
    after: u64,
}

/// Finds the last record in the table of contents of a zip archive (APPNOTE.TXT, sections 4.3.14 and 4.3.16). The
/// comment at the end of the archive may contain bytes that look like this record, so the result contains one element
/// for each record that is possible.
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
        let field =
            |at: usize| u32::from_le_bytes([end[at], end[at + 1], end[at + 2], end[at + 3]]);
        let (contents, offset) = (field(12), field(16));
        let before = match members {
            None => (start + at as u64).saturating_sub(u64::from(contents) + u64::from(offset)),
            Some(_) => 0,
        };
        Ok(ArchiveEnd {
            members: members.unwrap_or(u64::from(short)),
            before,
            after: after as u64,
        })
    });
    let ends = ends.collect::<io::Result<_>>()?;
    archive.rewind()?;
    Ok(ends)
}

/// Reads the number of files in a zip archive from the ZIP64 record at `offset`, which archives with many files have.
/// Returns `None` if there is no such record.
fn members_64(archive: &mut (impl Read + Seek), offset: u64) -> io::Result<Option<u64>> {
    /// The size in bytes of the record's fields up to the number of files, which is at the offset `MEMBERS`. Further
    /// fields follow.
    const START: u64 = 40;
    const MEMBERS: usize = 32;
    let mut start = Vec::new();
    archive.seek(SeekFrom::Start(offset))?;
    archive.take(START).read_to_end(&mut start)?;
    let is_record = start.len() as u64 == START && start.starts_with(b"PK\x06\x06");
    Ok(is_record.then(|| number_at(&start, MEMBERS)))
}

/// Returns the eight-byte integer at `offset` in `record`. `record` must be long enough.
fn number_at(record: &[u8], offset: usize) -> u64 {
    record[offset..]
        .first_chunk()
        .map_or(0, |number| u64::from_le_bytes(*number))
}

/// Converts an error of the crate `zip` to an error about the file `path`. Unless the error comes from the operating
/// system, the result says that the archive is damaged.
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

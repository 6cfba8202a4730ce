//! Decompresses gzip, bzip2, zstd and zip.

use std::{
    fs::File,
    io::{self, BufReader, Cursor, Read, Seek, SeekFrom},
    path::Path,
    sync::atomic::Ordering,
};

use bzip2::read::MultiBzDecoder;
use flate2::read::MultiGzDecoder;
use zip::{ZipArchive, result::ZipError};

use super::{Chunks, CountingReader, Sender, refuse_large_window};
use crate::{
    error::{At, Error, Result},
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
    let source = Cursor::new(start).chain(source);
    let reader = unpacked(kind, source, sender.memory).at(path, "unpack")?;
    sender.send_text(chunks, reader, true)
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
    let is_regular = |file: &&File| file.metadata().is_ok_and(|metadata| metadata.is_file());
    if let Some(file) = file.filter(is_regular) {
        drop(source);
        sender.taken.store(0, Ordering::Relaxed);
        return send_members(
            sender,
            chunks,
            path,
            CountingReader::new(file, &sender.taken),
        );
    }
    let mut spool = tempfile::tempfile().at(path, "create a temporary file for")?;
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
    let (mut archive, members, others) = open_zip(path, archive)?;
    if let Some(description) = described(&others) {
        // The stream is opened only once, so `left_out` cannot have a value yet.
        let _ = sender.left_out.set(format!(
            "polybook did not read {description}: unpack the archive and give the files of games"
        ));
    }
    let mut is_first = true;
    for member in members {
        if !is_first {
            chunks.send(b"\n".to_vec())?;
        }
        let member = archive
            .by_index(member)
            .map_err(|err| zip_error(path, err))?;
        sender.send_text(chunks, member, is_first)?;
        is_first = false;
    }
    Ok(())
}

impl<R: Seek> Seek for CountingReader<R> {
    fn seek(&mut self, pos: SeekFrom) -> io::Result<u64> {
        self.inner.seek(pos)
    }
}

/// Returns a reader of the decompressed bytes of `source`. `kind` is the format of the compression. `memory` is the
/// maximum size of a zstd window in bytes, and must not be 0.
///
/// # Panics
///
/// Panics if `kind` is not gzip, bzip2 or zstd.
fn unpacked<'a>(
    kind: FileKind,
    source: impl Read + 'a,
    memory: usize,
) -> io::Result<Box<dyn Read + 'a>> {
    Ok(match kind {
        FileKind::Gzip => Box::new(MultiGzDecoder::new(BufReader::with_capacity(
            1 << 17,
            source,
        ))),
        FileKind::Bzip2 => Box::new(MultiBzDecoder::new(source)),
        FileKind::Zstd => {
            let mut decoder = zstd::Decoder::new(source)?;
            decoder.window_log_max(memory.ilog2().min(31))?;
            Box::new(decoder)
        }
        _ => unreachable!("a zip archive is read member by member"),
    })
}

/// An opened zip archive, with the indices of its `.pgn` files and the names of its other files.
type OpenedArchive<R> = (ZipArchive<R>, Vec<usize>, Vec<String>);

/// Opens a zip archive for reading. Ignores directories, and the files in which macOS stores the attributes of other
/// files.
///
/// # Errors
///
/// Returns an error if the archive is damaged or encrypted, if it contains no PGN file or too many files, or if several
/// files in it have the same name.
fn open_zip<R: Read + Seek>(path: &Path, mut archive: R) -> Result<OpenedArchive<R>> {
    let listed = listed_members(&mut archive).at(path, "read")?;
    if listed.iter().any(|listed| *listed > MAX_MEMBERS) {
        let problem = format!(
            "this zip archive contains more than {MAX_MEMBERS} files: unpack the archive and give the files"
        );
        return Err(Error::too_large(path, problem));
    }
    let mut archive = ZipArchive::new(archive).map_err(|err| zip_error(path, err))?;
    // If several members have the same name, the crate `zip` keeps only one of them.
    if !listed.contains(&(archive.len() as u64)) {
        let problem = "this zip archive contains several files with the same name: unpack each file under a name of \
                       its own, and give the files";
        return Err(Error::file(path, problem));
    }
    let (mut members, mut others) = (Vec::new(), Vec::new());
    for member in 0..archive.len() {
        let name = archive
            .name_for_index(member)
            .and_then(std::result::Result::ok);
        match name.unwrap_or_default() {
            name if name.ends_with('/') || name.starts_with("__MACOSX/") => {}
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
        let is_encrypted = archive
            .by_index_raw(*member)
            .map_err(|err| zip_error(path, err))?
            .encrypted();
        if is_encrypted {
            return Err(Error::file(
                path,
                "this zip archive is encrypted: unpack the archive with its password",
            ));
        }
    }
    Ok((archive, members, others))
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

/// Reads the number of files in a zip archive from the last record of its table of contents (described in APPNOTE.TXT,
/// sections 4.3.14 and 4.3.16). The comment at the end of the archive may contain bytes that look like this record. The
/// function therefore returns one number for each possible record at the end of the archive.
fn listed_members(archive: &mut (impl Read + Seek)) -> io::Result<Vec<u64>> {
    /// The size in bytes of the last record of the table of contents ("end of central directory record"). In archives
    /// with many files (ZIP64), two more records precede it. Their sizes are `LOCATOR` and `END_64`.
    const END: usize = 22;
    const LOCATOR: usize = 20;
    const END_64: usize = 56;
    const LONGEST: u64 = (END_64 + LOCATOR + END + u16::MAX as usize) as u64;
    let size = archive.seek(SeekFrom::End(0))?;
    archive.seek(SeekFrom::Start(size.saturating_sub(LONGEST)))?;
    let mut tail = Vec::new();
    archive.take(LONGEST).read_to_end(&mut tail)?;
    archive.rewind()?;
    let ends = tail
        .windows(END)
        .enumerate()
        .filter(|(_, end)| end.starts_with(b"PK\x05\x06"));
    let members = ends.map(|(at, end)| {
        let short = u16::from_le_bytes([end[10], end[11]]);
        let long = at.checked_sub(END_64 + LOCATOR).map(|at| &tail[at..]);
        match long.filter(|long| long.starts_with(b"PK\x06\x06")) {
            Some(long) => long[32..]
                .first_chunk()
                .map_or(0, |n| u64::from_le_bytes(*n)),
            None => u64::from(short),
        }
    });
    Ok(members.collect())
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

//! Unpacking gzip, bzip2, zstd and zip.

use std::{
    fs::File,
    io::{self, BufReader, Cursor, Read, Seek, SeekFrom},
    path::Path,
    sync::atomic::Ordering,
};

use bzip2::read::MultiBzDecoder;
use flate2::read::MultiGzDecoder;
use zip::{ZipArchive, result::ZipError};

use super::{
    open,
    stream::{Chunks, CountingReader, Sender},
    window::refuse_large_window,
};
use crate::{
    error::{At, Error, Result},
    kind::FileKind,
};

impl Sender {
    pub(super) fn send_packed(
        &self,
        chunks: &Chunks,
        kind: FileKind,
        start: Vec<u8>,
        source: Box<dyn Read>,
    ) -> Result<()> {
        let path = self.input.path();
        if kind == FileKind::Zip {
            return self.send_zip(chunks, start, source);
        }
        refuse_large_window(path, &start, self.memory)?;
        let source = Cursor::new(start).chain(source);
        let reader = unpacked(kind, source, self.memory).at(path, "unpack")?;
        self.send_text(chunks, reader, true)
    }

    fn send_zip(&self, chunks: &Chunks, start: Vec<u8>, source: Box<dyn Read>) -> Result<()> {
        let path = self.input.path();
        if self.input.is_stdin() {
            // The table of contents of a zip archive is at its end.
            let mut spool = tempfile::tempfile().at(path, "make a temporary file for")?;
            io::copy(&mut Cursor::new(start).chain(source), &mut spool)
                .at(path, "copy to a temporary file")?;
            return self.send_members(chunks, path, spool);
        }
        drop(source);
        self.taken.store(0, Ordering::Relaxed);
        self.send_members(chunks, path, CountingReader::new(open(path)?, &self.taken))
    }

    /// The members of a zip archive one after the other, a line break between two.
    fn send_members(&self, chunks: &Chunks, path: &Path, archive: impl Read + Seek) -> Result<()> {
        let (mut archive, members) = open_zip(path, archive)?;
        let mut is_first = true;
        for member in members {
            if !is_first {
                chunks.send(b"\n".to_vec())?;
            }
            let member = archive
                .by_index(member)
                .map_err(|err| damaged_zip(path, &err))?;
            self.send_text(chunks, member, is_first)?;
            is_first = false;
        }
        Ok(())
    }
}

impl Seek for CountingReader<File> {
    fn seek(&mut self, pos: SeekFrom) -> io::Result<u64> {
        self.inner.seek(pos)
    }
}

/// A reader of the unpacked bytes of anything but a zip archive. Zstd may take `memory` bytes, not 0, for
/// its window.
fn unpacked(
    kind: FileKind,
    source: impl Read + 'static,
    memory: usize,
) -> io::Result<Box<dyn Read>> {
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

/// Opens a zip archive and finds its `.pgn` members, by their numbers.
fn open_zip<R: Read + Seek>(path: &Path, archive: R) -> Result<(ZipArchive<R>, Vec<usize>)> {
    let mut archive = ZipArchive::new(archive).map_err(|err| damaged_zip(path, &err))?;
    let members: Vec<usize> = (0..archive.len())
        .filter(|i| {
            archive.name_for_index(*i).is_some_and(|name| {
                name.is_ok_and(|name| name.to_ascii_lowercase().ends_with(".pgn"))
            })
        })
        .collect();
    if members.is_empty() {
        return Err(Error::file(path, "zip archive without a .pgn file"));
    }
    for member in &members {
        let is_encrypted = archive
            .by_index_raw(*member)
            .map_err(|err| damaged_zip(path, &err))?
            .encrypted();
        if is_encrypted {
            return Err(Error::file(
                path,
                "encrypted zip archive: unpack it with its password",
            ));
        }
    }
    Ok((archive, members))
}

fn damaged_zip(path: &Path, err: &ZipError) -> Error {
    Error::damaged(path, format!("damaged zip: {err}"))
}

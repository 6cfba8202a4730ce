//! Unpacking gzip, bzip2, zstd and zip.

use std::{
    io::{self, BufReader, Read, Seek},
    path::Path,
};

use bzip2::read::MultiBzDecoder;
use flate2::read::MultiGzDecoder;
use zip::{ZipArchive, result::ZipError};

use super::packing::Packing;
use crate::error::{Error, Result};

/// A reader of the unpacked bytes of anything but a zip archive. Zstd may take `memory` bytes, not 0, for
/// its window.
pub(super) fn unpacked(
    packing: Packing,
    source: impl Read + 'static,
    memory: usize,
) -> io::Result<Box<dyn Read>> {
    Ok(match packing {
        Packing::None => Box::new(source),
        Packing::Gzip => Box::new(MultiGzDecoder::new(BufReader::with_capacity(
            1 << 17,
            source,
        ))),
        Packing::Bzip2 => Box::new(MultiBzDecoder::new(source)),
        Packing::Zstd => {
            let mut decoder = zstd::Decoder::new(source)?;
            decoder.window_log_max(memory.ilog2().min(31))?;
            Box::new(decoder)
        }
        Packing::Zip => unreachable!("a zip archive is read member by member"),
    })
}

/// Opens a zip archive and finds its `.pgn` members, by their numbers.
pub(super) fn open_zip<R: Read + Seek>(
    path: &Path,
    archive: R,
) -> Result<(ZipArchive<R>, Vec<usize>)> {
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

pub(super) fn damaged_zip(path: &Path, err: &ZipError) -> Error {
    Error::file(path, format!("damaged zip: {err}"))
}

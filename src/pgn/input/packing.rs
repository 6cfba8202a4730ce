//! How inputs are packed, and unpacking them.

use std::{
    io::{self, BufReader, Read, Seek},
    path::Path,
};

use bzip2::read::MultiBzDecoder;
use flate2::read::MultiGzDecoder;
use zip::ZipArchive;

use crate::error::{Error, Result};

/// How an input is packed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Packing {
    None,
    Gzip,
    Bzip2,
    Zstd,
    Zip,
}

impl Packing {
    /// How many bytes tell the packing, and the window of zstd.
    pub(super) const MAGIC: usize = 18;

    pub(super) fn detect(start: &[u8]) -> Packing {
        match *start {
            [0x1f, 0x8b, ..] => Packing::Gzip,
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Packing::Bzip2,
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Packing::Zstd,
            [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Packing::Zip,
            _ => Packing::None,
        }
    }
}

/// A reader of the unpacked bytes of anything but a zip archive. Zstd may take `memory` bytes, not 0, for
/// its window.
pub(super) fn unpack(
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
        Packing::Zip => unreachable!("a zip archive has members"),
    })
}

/// Refuses an archive whose first frame needs a larger window than the memory allows. Windows are powers
/// of two to the decoder, so it takes up to twice of what it needs.
pub(super) fn refuse_large_window(path: &Path, start: &[u8], memory: usize) -> Result<()> {
    let Some(window) = zstd_window(start) else {
        return Ok(());
    };
    if window.next_power_of_two() <= memory as u64 {
        return Ok(());
    }
    Err(Error::file(
        path,
        format!(
            "is packed with a window of {} MiB, and unpacking may take {} MiB: allow at least {} MiB of \
             memory in all, or unpack it first",
            window >> 20,
            memory >> 20,
            (window.next_power_of_two() >> 20) * 8,
        ),
    ))
}

/// The size of the window that the first frame of a zstd archive declares (RFC 8878, 3.1.1.1), `None` if
/// the text is something else.
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

/// The `.pgn` members of a zip archive, by their numbers.
pub(super) fn members<R: Read + Seek>(
    path: &Path,
    archive: &mut ZipArchive<R>,
) -> Result<Vec<usize>> {
    let members: Vec<usize> = (0..archive.len())
        .filter(|i| {
            archive.name_for_index(*i).is_some_and(|name| {
                name.is_ok_and(|name| name.to_ascii_lowercase().ends_with(".pgn"))
            })
        })
        .collect();
    if members.is_empty() {
        return Err(Error::file(path, "is a zip archive without a .pgn file"));
    }
    for member in &members {
        let is_encrypted = archive
            .by_index_raw(*member)
            .map_err(|err| damaged_zip(path, &err))?
            .encrypted();
        if is_encrypted {
            return Err(Error::file(
                path,
                "is an encrypted zip archive: unpack it with its password",
            ));
        }
    }
    Ok(members)
}

pub(super) fn damaged_zip(path: &Path, err: &zip::result::ZipError) -> Error {
    Error::file(path, format!("damaged zip: {err}"))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn the_window_stands_in_the_first_bytes() {
        for log in [10, 17, 24, 27] {
            let mut packer = zstd::Encoder::new(Vec::new(), 1).unwrap();
            packer.window_log(log).unwrap();
            // Without a known length, so that there is a window.
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
        assert!(refuse_large_window(path, &packed, 1 << 27).is_ok());
        let err = refuse_large_window(path, &packed, (1 << 27) - 1).unwrap_err();
        assert!(err.to_string().contains("128 MiB"), "{err}");
    }
}

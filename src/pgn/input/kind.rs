//! Recognizing files that are certainly not PGN.

use std::path::Path;

use crate::{kind::Format, position::BookMove};

/// The maximum number of bytes at the start of a file that are examined.
pub(super) const LOOKED_AT: usize = 1 << 16;

/// If a file is certainly not PGN, returns a description of its format and advice for the user. Returns `None` if the file
/// may be PGN.
pub(super) fn foreign(path: &Path, text: &[u8]) -> Option<String> {
    let start = &text[..text.len().min(LOOKED_AT)];
    let described = |name: &str, advice: &str| Some(format!("{name}: {advice}"));
    if let Some(format) = Format::of_start(start) {
        return match format.kind {
            kind if kind.is_unpacked() => described("packed twice", "unpack it once"),
            _ => described(format.name, format.advice),
        };
    }
    if !start.contains(&0) {
        return None;
    }
    if is_utf_16(start) {
        return described(
            "text in UTF-16",
            "convert it to UTF-8, for instance with iconv -f UTF-16 -t UTF-8",
        );
    }
    if has_tags(start) {
        return None;
    }
    if let Some(format) = Format::of_extension(path) {
        return described(format.name, format.advice);
    }
    if is_polyglot_book(start) {
        return described("Polyglot book, not PGN", "name the games it was made of");
    }
    described(
        "binary data, not PGN",
        "name a PGN file, plain or packed with gzip, bzip2, zstd or zip",
    )
}

/// Returns `true` if almost every other byte is 0, as in English text in UTF-16.
fn is_utf_16(start: &[u8]) -> bool {
    let zeros = |first: usize| {
        let bytes = start.iter().skip(first).step_by(2);
        let total = bytes.len().max(1);
        bytes.filter(|byte| **byte == 0).count() * 100 / total
    };
    let (even, odd) = (zeros(0), zeros(1));
    start.len() >= 4 && (even.max(odd) > 90 && even.min(odd) < 10)
}

/// Returns `true` if the bytes begin with a header of a book, or with 16-byte records in ascending order of their keys. A file
/// of few records also needs moves that a piece can make.
fn is_polyglot_book(start: &[u8]) -> bool {
    if start.get(..8) == Some(&[0; 8]) && start.get(8..12) == Some(b"@PG@") {
        return true;
    }
    let keys: Vec<u64> = start
        .chunks_exact(16)
        .take(64)
        .filter_map(|record| record.first_chunk().copied().map(u64::from_be_bytes))
        .collect();
    let are_moves = || {
        let mut records = start.as_chunks::<16>().0.iter();
        let is_move =
            |record: &[u8; 16]| BookMove(u16::from_be_bytes([record[8], record[9]])).is_possible();
        start.len().is_multiple_of(16) && start.len() < LOOKED_AT && records.all(is_move)
    };
    keys.is_sorted() && (keys.len() >= 8 && keys.first() < keys.last() || are_moves())
}

/// Returns `true` if any line in `start`, the first bytes of a file, looks like a tag pair.
fn has_tags(start: &[u8]) -> bool {
    start.split(|byte| *byte == b'\n').any(|line| {
        matches!(line, [b'[', letter, ..] if letter.is_ascii_alphabetic()) && line.contains(&b'"')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_may_be_pgn_are_accepted() {
        for text in [
            &b""[..],
            b"[Event \"x\"]",
            b"1. e4",
            b"Read me",
            b"[Event \"x\"]\n\0\n",
            b"% escaped",
        ] {
            assert_eq!(foreign(Path::new("x"), text), None, "{text:?}");
        }
    }

    #[test]
    fn other_formats_are_recognized() {
        let utf_16: Vec<u8> = "[Event \"x\"]"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        let mut tar = vec![0; 1024];
        tar[..5].copy_from_slice(b"a.pgn");
        tar[257..262].copy_from_slice(b"ustar");
        // The magic of POSIX ends with a zero, that of GNU with a blank.
        let mut gnu_tar = tar.clone();
        gnu_tar[257..265].copy_from_slice(b"ustar  \0");
        let ace = [&[0x12, 0x34, 0x31, 0, 0, 0x90, 0][..], b"**ACE**", &[0; 30]].concat();
        let book: Vec<u8> = (1..40u64)
            .flat_map(|i| [(i << 58 | i).to_be_bytes(), [9, 0, 0, 1, 0, 0, 0, 0]].concat())
            .collect();
        let headed = [&[0; 8][..], b"@PG@\n1.0", &book].concat();
        for (text, what) in [
            (&utf_16[..], "UTF-16"),
            (&tar, "tar"),
            (&gnu_tar, "tar"),
            (&ace, "ACE"),
            (b"\x1f\x5a-lh5-\x99\0", "LHA"),
            (&book, "Polyglot"),
            (&headed, "Polyglot"),
            (b"SQLite format 3\0", "SQLite"),
            (b"PAR1\x15\x04", "Parquet"),
            (b"\xfd7zXZ\0\0", "xz"),
            (b"7z\xbc\xaf\x27\x1c", "7z"),
            (b"Rar!\x1a\x07\x01\0", "RAR"),
            (b"\x7fELF\0\0\0\x99", "binary"),
        ] {
            let kind = foreign(Path::new("x"), text).expect(what);
            assert!(kind.contains(what), "{what}: {kind}");
        }
    }
}

//! The kind of a file that is certainly not PGN, by its first bytes.

use crate::kind::FileKind;

/// How many bytes are looked at.
pub(super) const LOOKED_AT: usize = 1 << 16;

/// The kind of a file that is certainly not PGN, and what to do with it. `None` if it may be PGN.
pub(super) fn foreign(text: &[u8]) -> Option<&'static str> {
    let start = &text[..text.len().min(LOOKED_AT)];
    let known = match FileKind::of_start(start) {
        FileKind::Xz => Some("packed with xz: unpack it, for instance with xz -d"),
        FileKind::Sqlite => Some(
            "SQLite database: name a PGN file, or convert the database if it is one of openings",
        ),
        FileKind::Parquet => Some("Parquet file: name the directory of counts that it is in"),
        // Packed within what was unpacked.
        kind if kind.is_unpacked() => Some("packed twice: unpack it once"),
        _ => match *start {
            [b'7', b'z', 0xbc, 0xaf, 0x27, 0x1c, ..] => Some("7z archive: unpack it"),
            [b'R', b'a', b'r', b'!', 0x1a, 0x07, ..] => Some("rar archive: unpack it"),
            [0x04, 0x22, 0x4d, 0x18, ..] => {
                Some("packed with lz4: unpack it, for instance with lz4 -d")
            }
            [0x1f, 0x9d, ..] => {
                Some("packed with compress: unpack it, for instance with uncompress")
            }
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some(UTF_16),
            _ if start.starts_with(b"%PDF-") => Some("PDF document: name a PGN file"),
            _ if start.get(257..262) == Some(b"ustar") => {
                Some("tar archive: unpack it and name the PGN files in it")
            }
            _ => None,
        },
    };
    known.or_else(|| {
        if !start.contains(&0) {
            return None;
        }
        if is_utf_16(start) {
            return Some(UTF_16);
        }
        if is_polyglot_book(start) {
            return Some("Polyglot book, not PGN: name the games it was made of");
        }
        (!has_tags(start)).then_some(
            "binary data, not PGN: name a PGN file, plain or packed with gzip, bzip2, zstd or zip",
        )
    })
}

const UTF_16: &str = "in UTF-16: convert it to UTF-8, for instance with iconv -f UTF-16 -t UTF-8";

/// Whether every other byte is 0, as in English text of 16-bit characters.
fn is_utf_16(start: &[u8]) -> bool {
    let zeros = |first: usize| {
        let bytes = start.iter().skip(first).step_by(2);
        let total = bytes.len().max(1);
        bytes.filter(|byte| **byte == 0).count() * 100 / total
    };
    let (even, odd) = (zeros(0), zeros(1));
    start.len() >= 4 && (even.max(odd) > 90 && even.min(odd) < 10)
}

/// Whether a text is made of 16-byte records by ascending key, as a book is.
fn is_polyglot_book(start: &[u8]) -> bool {
    if start.get(..8) == Some(&[0; 8]) && start.get(8..12) == Some(b"@PG@") {
        return true;
    }
    let keys: Vec<u64> = start
        .chunks_exact(16)
        .take(64)
        .filter_map(|record| record.first_chunk().copied().map(u64::from_be_bytes))
        .collect();
    keys.len() >= 8 && keys.is_sorted() && keys.first() < keys.last()
}

fn has_tags(start: &[u8]) -> bool {
    start.split(|byte| *byte == b'\n').any(|line| {
        matches!(line, [b'[', letter, ..] if letter.is_ascii_alphabetic()) && line.contains(&b'"')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_pgn() {
        for text in [
            &b""[..],
            b"[Event \"x\"]",
            b"1. e4",
            b"Read me",
            b"[Event \"x\"]\n\0\n",
            b"% escaped",
        ] {
            assert_eq!(foreign(text), None, "{text:?}");
        }
    }

    #[test]
    fn what_is_something_else() {
        let utf_16: Vec<u8> = "[Event \"x\"]"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        let mut tar = vec![0; 1024];
        tar[..5].copy_from_slice(b"a.pgn");
        tar[257..262].copy_from_slice(b"ustar");
        let book: Vec<u8> = (1..40u64)
            .flat_map(|i| [(i << 58 | i).to_be_bytes(), [9, 0, 0, 1, 0, 0, 0, 0]].concat())
            .collect();
        let headed = [&[0; 8][..], b"@PG@\n1.0", &book].concat();
        for (text, what) in [
            (&utf_16[..], "UTF-16"),
            (&tar, "tar"),
            (&book, "Polyglot"),
            (&headed, "Polyglot"),
            (b"SQLite format 3\0", "SQLite"),
            (b"PAR1\x15\x04", "Parquet"),
            (b"\xfd7zXZ\0\0", "xz"),
            (b"7z\xbc\xaf\x27\x1c", "7z"),
            (b"Rar!\x1a\x07\x01\0", "rar"),
            (b"\x7fELF\0\0\0\x99", "binary"),
        ] {
            let kind = foreign(text).expect(what);
            assert!(kind.contains(what), "{what}: {kind}");
        }
    }
}

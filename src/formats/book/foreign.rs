//! Recognizes files that are not books by their content.

use std::{
    fs::File,
    io::{self, BufReader, Seek},
    path::Path,
};

use super::{
    header::{self, HeaderError, NullRecords},
    records::{Entry, records_of},
};
use crate::{
    chess::position::{looks_like_book, looks_like_move},
    error::{At, Error, ForeignFormat, Result},
    kind::{FileKind, Format},
    storage::positioned::read_exact_at,
};

/// The number of bytes at the start of a file that are examined to recognize its format.
const EXAMINED_BYTES: u64 = 512;

/// The maximum number of records in a sample of a file. Three samples are read: at the start, in the middle and at the
/// end of the file.
const RECORDS_PER_SAMPLE: u64 = 64;

/// Returns an error if `file` is not a book. The error names `path`, the path of the file, and the real format if it is
/// recognized. Reads only a sample of the file.
pub(super) fn refuse_foreign(file: &File, path: &Path) -> Result<()> {
    let size = file.metadata().at(path, "read")?.len();
    let mut start = vec![0; size.min(EXAMINED_BYTES) as usize];
    read_exact_at(file, &mut start, 0).at(path, "read")?;
    refuse_foreign_start(&start, size, path)?;
    let sample = sampled(file, 0, size / Entry::SIZE as u64).at(path, "read")?;
    refuse_impossible(&sample.concat(), path)
}

/// Returns an error if most of the records contain a move that no piece can make, which shows that the file is not a
/// book. `records` contains all records of the file, or a sample of them. Accepts any file that begins with a header.
/// Errors name `path`, the path of the file.
pub(super) fn refuse_impossible(records: &[u8], path: &Path) -> Result<()> {
    let entries = records.as_chunks().0.iter();
    let mut entries = entries.map(|bytes| Entry::from_bytes(*bytes)).peekable();
    if entries.peek().is_none_or(|first| first.key == 0) {
        return Ok(());
    }
    // A header whose first byte is damaged is followed by further null records.
    let are_moves = entries
        .filter(|entry| entry.key != 0)
        .map(|entry| entry.mv.is_possible());
    let (moves, impossible): (Vec<bool>, Vec<bool>) = are_moves.partition(|is_move| *is_move);
    if impossible.len() <= moves.len() {
        return Ok(());
    }
    let problem = "this is not a Polyglot book, or the book is damaged: most of its records contain no possible move; \
                   use an intact copy, or make the book again";
    Err(Error::foreign(path, problem))
}

/// Returns an error if a file is not a book but begins like a file in another format. `start` contains the first bytes
/// of the file, and `size` is its size in bytes. Error messages name `path`.
///
/// The first key of a book may equal the signature of another format by chance. Bytes that can be the records of a book
/// are therefore accepted despite such a signature. Text that begins like PGN is never accepted.
pub(super) fn refuse_foreign_start(start: &[u8], size: u64, path: &Path) -> Result<()> {
    let start = &start[..start.len().min(EXAMINED_BYTES as usize)];
    let is_whole = size.is_multiple_of(Entry::SIZE as u64);
    let Some((format, name, advice)) = format_of(start, path) else {
        return Ok(());
    };
    let may_be_book = match format {
        ForeignFormat::Pgn => false,
        _ if is_text(start) => is_whole && are_records(start),
        // Some signatures have only two bytes, so a book may begin with one by chance. A damaged book is still a book.
        _ => is_whole && are_records(start) || are_moves(start),
    };
    if may_be_book {
        return Ok(());
    }
    let problem = format!("this is {name}, not a Polyglot book");
    let problem = if advice.is_empty() {
        problem
    } else {
        format!("{problem}: {advice}")
    };
    Err(Error::of_format(format, path, problem))
}

/// Returns `true` if `bytes` contains at least eight records, each with a key other than 0 and a move that a piece can
/// make. Unlike [`are_records`], accepts keys in any order, as in a damaged book.
fn are_moves(bytes: &[u8]) -> bool {
    let records = bytes.as_chunks().0;
    let mut entries = records.iter().map(|bytes| Entry::from_bytes(*bytes));
    records.len() >= 8 && entries.all(|entry| entry.key != 0 && entry.mv.is_possible())
}

/// Returns `true` if `bytes` can be records of a book, other than those of its header. Each record must have a move
/// that a piece can make. The keys must be in ascending order, and none may be 0.
fn are_records(bytes: &[u8]) -> bool {
    let records = bytes.as_chunks().0;
    let entries = records.iter().map(|bytes| Entry::from_bytes(*bytes));
    entries
        .clone()
        .all(|entry| entry.key != 0 && entry.mv.is_possible())
        && entries.map(|entry| entry.key).is_sorted()
}

/// Recognizes the format of a file that is not a book, from `start`, the first bytes of the file, and from the
/// extension of `path`. Returns the format, and its name and some advice for an error message. The advice is empty for
/// PGN and SQLite, because the commands add their own advice for these formats. Returns `None` if the file may be a
/// book.
fn format_of(start: &[u8], path: &Path) -> Option<(ForeignFormat, &'static str, &'static str)> {
    if let Some((format, name)) = text_format(start) {
        let advice = match format {
            ForeignFormat::Other => "choose another file",
            _ => "",
        };
        return Some((format, name, advice));
    }
    let binary = || Format::of_extension(path).filter(|_| !start.is_empty());
    Format::of_start(start)
        .or_else(binary)
        .map(|known| match known.kind {
            FileKind::Sqlite => (ForeignFormat::Sqlite, known.name, ""),
            _ => (ForeignFormat::Other, known.name, known.advice),
        })
}

/// Recognizes the format of a text file from `start`, its first bytes. Returns the format and its name if the bytes are
/// clearly text. Returns `None` if they are binary, begin with the signature of a binary format, or may be a single
/// record of a book.
fn text_format(start: &[u8]) -> Option<(ForeignFormat, &'static str)> {
    if !is_text(start) {
        return None;
    }
    // A single record may consist of printable bytes by chance. Text that is not PGN is recognized if it is longer or
    // ends a line.
    let is_short = start.len() <= Entry::SIZE && !start.ends_with(b"\n");
    match begins_as_pgn(start) {
        _ if Format::of_start(start).is_some() => None,
        true => Some((ForeignFormat::Pgn, "PGN")),
        false => (!is_short).then_some((ForeignFormat::Other, "text")),
    }
}

/// Returns `true` if the bytes look like text. Text has at least one byte and no control characters, and at most a
/// tenth of its bytes are not ASCII.
fn is_text(bytes: &[u8]) -> bool {
    let is_printable = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~' | 0x80..);
    !bytes.is_empty()
        && bytes.iter().all(is_printable)
        && bytes.iter().filter(|byte| !byte.is_ascii()).count() <= bytes.len() / 10
}

/// Returns `true` if `text` begins like PGN: with a tag, a comment, or a move with or without its number. Lines that
/// begin with `%` are skipped, because PGN readers ignore them.
fn begins_as_pgn(text: &[u8]) -> bool {
    let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
    let mut text = text.trim_ascii_start();
    while text.starts_with(b"%") {
        let line = text.iter().take_while(|byte| **byte != b'\n').count();
        text = text[line..].trim_ascii_start();
    }
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let moves = match text[digits..]
        .iter()
        .take_while(|byte| **byte == b'.')
        .count()
    {
        dots if digits > 0 && dots > 0 => text[digits + dots..].trim_ascii_start(),
        _ => text,
    };
    let word = moves.split(u8::is_ascii_whitespace).next();
    // JSON also begins with a bracket or a brace.
    let is_json = (text.starts_with(b"{\"") || text.starts_with(b"[{\""))
        && text[..text.len().min(64)]
            .windows(2)
            .any(|two| two == b"\":");
    !is_json
        && (text.starts_with(b"[") || moves.starts_with(b"{") || word.is_some_and(looks_like_move))
}

/// Returns `true` if the file at `path` is empty or a book that polybook wrote. Such a book is recognized by the
/// checksum in its header, which is missing if the user requested another comment or no header.
pub(super) fn is_own_or_empty(path: &Path) -> Result<bool> {
    if !is_book_or_empty(path)? {
        return Ok(false);
    }
    let file = File::open(path).at(path, "open")?;
    let is_empty = file.metadata().at(path, "open")?.len() == 0;
    let null = NullRecords::read(records_of(BufReader::new(file))).at(path, "read")?;
    let has_checksum = |text| matches!(header::of_records(text), Some(Ok(_)));
    Ok(is_empty || null.text().is_ok_and(has_checksum))
}

/// Returns `true` if the file at `path` is empty or a Polyglot book.
///
/// Reads only samples of the records. A file counts as a book if its size is a multiple of 16, its header is valid or
/// missing, and most of the sampled records contain a move that a piece can make. In a file with few records, the keys
/// must also ascend. All commands use this function to decide whether a file is a book.
///
/// # Errors
///
/// Returns an error if the file cannot be read.
pub fn is_book_or_empty(path: impl AsRef<Path>) -> Result<bool> {
    let path = path.as_ref();
    // On Windows, opening a directory fails.
    if path.is_dir() {
        return Ok(false);
    }
    let file = File::open(path).at(path, "open")?;
    let metadata = file.metadata().at(path, "open")?;
    if !metadata.is_file() || !metadata.len().is_multiple_of(Entry::SIZE as u64) {
        return Ok(false);
    }
    match refuse_foreign(&file, path) {
        Err(err @ Error::Io { .. }) => Err(err),
        Err(_) => Ok(false),
        Ok(()) => looks_like_a_book(&file, metadata.len() / Entry::SIZE as u64).at(path, "read"),
    }
}

/// Returns `true` if the records of the book at `path` seem to be sorted by position key, as the lookup in
/// [`Book`](super::Book) requires. Reads only samples of the records, and does not check their moves.
///
/// # Errors
///
/// Returns an error if the file cannot be read.
pub fn seems_sorted(path: impl AsRef<Path>) -> Result<bool> {
    let path = path.as_ref();
    let file = File::open(path).at(path, "open")?;
    let len = file.metadata().at(path, "open")?.len() / Entry::SIZE as u64;
    let samples = sampled(&file, 0, len).at(path, "read")?;
    let keys = |bytes: &Vec<u8>| {
        let records = bytes.as_chunks().0.iter();
        records
            .map(|bytes| Entry::from_bytes(*bytes).key)
            .is_sorted()
    };
    Ok(samples.iter().all(keys))
}

fn looks_like_a_book(mut file: &File, len: u64) -> io::Result<bool> {
    // On Windows, reading the start moved the position of the file.
    file.rewind()?;
    let null = NullRecords::read(records_of(BufReader::new(file)))?;
    match null.text() {
        Ok(text) if text.starts_with(header::MAGIC) => {}
        Err(HeaderError::NoHeader) => {}
        _ => return Ok(false),
    }
    let first = null.size / Entry::SIZE as u64;
    let records = sampled(file, first, len)?.concat();
    Ok(records.is_empty() || looks_like_book(&records))
}

/// Reads samples of the records after the header of a file: up to [`RECORDS_PER_SAMPLE`] records at the start, in the
/// middle and at the end. `len` is the number of all records. The first `header_len` of them are the header. If the
/// samples would contain all records, the first sample contains them, and the other two are empty.
fn sampled(file: &File, header_len: u64, len: u64) -> io::Result<[Vec<u8>; 3]> {
    let after = len - header_len;
    let sizes = if after <= 3 * RECORDS_PER_SAMPLE {
        [after, 0, 0]
    } else {
        [RECORDS_PER_SAMPLE; 3]
    };
    let starts = [
        header_len,
        header_len + (after - sizes[1]) / 2,
        len - sizes[2],
    ];
    let mut samples = [const { Vec::new() }; 3];
    for ((start, size), bytes) in starts.into_iter().zip(sizes).zip(&mut samples) {
        bytes.resize(size as usize * Entry::SIZE, 0);
        read_exact_at(file, bytes, start * Entry::SIZE as u64)?;
    }
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{chess::position::BookMove, formats::book::Book};

    fn records(keys: impl IntoIterator<Item = u64>) -> Vec<u8> {
        let entry = |key| Entry {
            key,
            mv: BookMove(0o1434),
            weight: 1,
            learn: 0,
        };
        keys.into_iter()
            .flat_map(|key| entry(key).to_bytes())
            .collect()
    }

    #[test]
    fn books_and_nothing_else_may_be_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let judged = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            is_book_or_empty(&path).unwrap()
        };
        let header = header::create_raw(&header::create(&["normal"], "x").unwrap());
        let long: Vec<u8> = records((1..3000).map(|i| i << 50));
        for book in [
            Vec::new(),
            records([7]),
            records([1, 1, 2]),
            long.clone(),
            header.clone(),
            [&header[..], &long].concat(),
        ] {
            assert!(judged(&book), "{} bytes", book.len());
        }
        let middle_out_of_order = [&long[..24_000], &records([1]), &long[24_000..]].concat();
        let sqlite = [b"SQLite format 3\0", &[0x10, 0, 1, 1][..], &[0; 4076]].concat();
        for other in [
            b"x".to_vec(),
            b"sixteen letters\n".to_vec(),
            vec![0; 4096],
            records([2, 1]),
            [records([1]), vec![0; 16]].concat(),
            sqlite,
            header::create_raw("something else"),
            "[Event \"x\"]\n".repeat(16).into_bytes(),
            b"1. e4 e5 2. d4 *".to_vec(),
            b"[E \"\"] 1. e4 e5".to_vec(),
            b"e4 e5 Nf3 Nc6 d4".to_vec(),
            b"1.e4 e5 2.Nf3 Nc6 3.Bb5 a6 4.a4*".to_vec(),
        ] {
            assert!(!judged(&other), "{:?}", &other[..other.len().min(32)]);
        }
        // Some books end with a record without a move, or are out of order.
        let mut sentinel = records([1, 2, 3]);
        sentinel.extend([0xff; 8]);
        sentinel.extend([0; 8]);
        assert!(judged(&sentinel) && judged(&middle_out_of_order));
        assert!(!is_book_or_empty(dir.path()).unwrap());
        assert!(is_book_or_empty(dir.path().join("missing")).is_err());
    }

    #[test]
    fn only_books_that_polybook_wrote_may_be_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let header =
            |comment: &str| header::create_raw(&header::create(&["normal"], comment).unwrap());
        let own = header(&header::with_checksum("x"));
        let long = records((1..3000).map(|i| i << 50));
        for (bytes, may_be_replaced) in [
            (Vec::new(), true),
            ([&own[..], &long].concat(), true),
            (long.clone(), false),
            ([&header("x")[..], &long].concat(), false),
            ([&header("x\nChecksum: 1")[..], &long].concat(), false),
            ([&own[..], &records([2, 1])].concat(), false),
            (b"my notes".to_vec(), false),
        ] {
            fs::write(&path, &bytes).unwrap();
            assert_eq!(is_own_or_empty(&path).unwrap(), may_be_replaced);
        }
    }

    #[test]
    fn a_book_may_begin_as_another_format_does() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("book.bin");
        let begun = |start: &[u8; 8]| records([u64::from_be_bytes(*start), u64::MAX]);
        let text = [b"al#0PG@\n", &b"\t`0-2.\r\n"[..]].concat();
        for book in [
            begun(b"\x28\xb5\x2f\xfd4567"),
            begun(b"\x1f\x8b\x0834567"),
            text,
        ] {
            fs::write(&path, &book).unwrap();
            for opened in [Book::open(&path), Book::open_within(&path, u64::MAX)] {
                assert_eq!(opened.unwrap().len(), book.len() as u64 / 16);
            }
            // A book that was cut short does not count as a book.
            fs::write(&path, &book[..book.len() - 1]).unwrap();
            assert!(Book::open(&path).is_err());
        }
    }

    #[test]
    fn other_files_are_named_as_what_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        for (bytes, kind) in [
            (&b"SQLite format 3\0more"[..], "SQLite"),
            (b"[Event \"Casual\"]\n\n1. e4 *\n", "PGN"),
            (b"\xef\xbb\xbf\n[Event \"Casual\"]\n\n1. e4 *\n", "PGN"),
            (b"% polybook checksum\n%\n[Event \"Casual\"]\n", "PGN"),
            (b"% Notes\non my openings\n", "text"),
            (b"Notes on my openings\n", "text"),
            (b"\x1f\x8b\x08\0\0\0", "gzip"),
        ] {
            fs::write(&path, bytes).unwrap();
            for opened in [Book::open(&path), Book::open_within(&path, u64::MAX)] {
                let err = opened.unwrap_err().to_string();
                assert!(
                    err.contains("not a Polyglot book") && err.contains(kind),
                    "{err}"
                );
            }
        }
    }
}

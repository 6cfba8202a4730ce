//! The `@PG@` header of a book: which variants it is for, and a comment.
//!
//! The header is text in the *null records* at the start of a book, 8 bytes of it behind each null
//! key, ended by a null byte. Programs that look positions up by their keys never see it. Its lines
//! are the magic `@PG@`, the version, how many predefined fields follow, of these the number of
//! variants and their names, and then the comment.
//!
//! ```
//! use polybook::book::header;
//!
//! let text = header::create(&["normal", "suicide"], "(normally comments here)")?;
//! assert_eq!(text, "@PG@\n1.0\n3\n2\nnormal\nsuicide\n(normally comments here)");
//! let header = header::parse(&text)?;
//! assert_eq!(header.variants, ["normal", "suicide"]);
//! assert_eq!(header.comment, "(normally comments here)");
//! # Ok::<(), header::HeaderError>(())
//! ```

use std::{
    fs::File,
    io::{self, BufReader, Read, Seek, SeekFrom, Write},
    path::Path,
};

use thiserror::Error;

use super::Entry;
use crate::{
    error::{At, Error, Result},
    output::AtomicFile,
};

/// The first line of every header.
pub const MAGIC: &str = "@PG@";

/// The version of the headers that [`create`] makes.
pub const VERSION: &str = "1.0";

/// The longest header, its null byte among it, that every program reads.
pub const PORTABLE_LENGTH: usize = 2048;

/// The longest header that is read here: 1 MiB.
pub const LONGEST: usize = 1 << 20;

/// The comment of a header that [`update`] adds without being given one.
pub const DEFAULT_COMMENT: &str = "(default comment created by polybook pgheader)";

/// The variants that headers may name without being forced to, as the Chess Engine Communication
/// Protocol spells them.
pub const KNOWN_VARIANTS: &[&str] = &[
    "normal",
    "wildcastle",
    "nocastle",
    "fischerandom",
    "bughouse",
    "crazyhouse",
    "losers",
    "suicide",
    "giveaway",
    "twokings",
    "kriegspiel",
    "atomic",
    "3check",
    "xiangqi",
    "shogi",
    "capablanca",
    "gothic",
    "falcon",
    "shatranj",
    "courier",
    "knightmate",
    "berolina",
    "janus",
    "caparandom",
    "cylinder",
    "super",
    "great",
    "makruk",
    "seirawan",
    "grand",
    "spartan",
    "unknown",
];

/// What may be wrong with a header or with what one is to be made of.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// The size of the file is not that of records, or their keys do not ascend.
    #[error("badly formatted file: {0}")]
    BadFormat(&'static str),
    /// There are no null records.
    #[error("no header")]
    NoHeader,
    /// A header was to be written from a file to the same file.
    #[error("input and output file are the same")]
    SameFile,
    /// A variant or comment that no header can hold.
    #[error("bad parameter: {0}")]
    BadParameter(String),
    /// Some programs read no more than [`PORTABLE_LENGTH`] bytes of a header, its null byte among them.
    #[error(
        "the header would take {0} bytes, and {PORTABLE_LENGTH} is what every program reads: shorten the comment"
    )]
    TooLong(usize),
    /// There is a header, but it is malformed.
    #[error("bad header: {0}")]
    BadHeader(&'static str),
}

/// What a header says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    /// The names of the variants the book is for.
    pub variants: Vec<String>,
    /// Free text, of several lines perhaps.
    pub comment: String,
}

/// Whether a variant is one of [`KNOWN_VARIANTS`].
pub fn known_variant(name: &str) -> bool {
    KNOWN_VARIANTS.contains(&name)
}

/// Makes the text of a header.
///
/// # Errors
///
/// [`HeaderError::BadParameter`] for a variant name that is empty or not of printable ASCII without
/// blanks and capitals, and for a comment with a null byte.
pub fn create<S: AsRef<str>>(variants: &[S], comment: &str) -> Result<String, HeaderError> {
    if let Some(wrong) = variants.iter().find(|name| !is_variant(name.as_ref())) {
        return Err(HeaderError::BadParameter(format!(
            "\"{}\" cannot be a variant: write lower-case letters, digits and signs without blanks",
            wrong.as_ref().escape_debug()
        )));
    }
    if comment.contains('\0') {
        return Err(HeaderError::BadParameter(
            "the comment holds a null character".to_owned(),
        ));
    }
    let mut text = format!(
        "{MAGIC}\n{VERSION}\n{}\n{}",
        variants.len() + 1,
        variants.len()
    );
    for name in variants {
        text.push('\n');
        text.push_str(name.as_ref());
    }
    text.push('\n');
    text.push_str(comment);
    Ok(text)
}

/// The null records that hold a header, ready to stand before the records of a book.
///
/// ```
/// use polybook::book::header::create_raw;
/// let raw = create_raw("@PG@");
/// assert_eq!(raw, b"\0\0\0\0\0\0\0\0@PG@\0\0\0\0");
/// ```
pub fn create_raw(header: &str) -> Vec<u8> {
    let mut raw = Vec::with_capacity((header.len() / 8 + 1) * Entry::SIZE);
    let mut text = header.as_bytes().to_vec();
    text.push(0);
    for part in text.chunks(8) {
        raw.extend_from_slice(&[0; 8]);
        raw.extend_from_slice(part);
    }
    raw.resize(raw.len().next_multiple_of(Entry::SIZE), 0);
    raw
}

/// Reads the text of a header. Later versions may have more predefined fields, which are skipped.
///
/// # Errors
///
/// [`HeaderError::BadHeader`] says what is malformed.
pub fn parse(text: &str) -> Result<Header, HeaderError> {
    let bad = |what| Err(HeaderError::BadHeader(what));
    let mut lines = text.split('\n');
    if lines.next() != Some(MAGIC) {
        return bad("it does not begin with @PG@");
    }
    if !lines.next().is_some_and(is_version) {
        return bad("the version is not <number>.<number>");
    }
    let Some(fields) = lines.next().and_then(number) else {
        return bad("the number of fields is not a number");
    };
    let Some(count) = lines.next().and_then(number) else {
        return bad("the number of variants is not a number");
    };
    if count >= fields {
        return bad("it has more variants than fields");
    }
    let mut variants = Vec::new();
    for _ in 0..count {
        match lines.next() {
            Some(name) if is_variant(name) => variants.push(name.to_owned()),
            Some(_) => {
                return bad("a variant has a name with blanks, capitals or unprintable signs");
            }
            None => return bad("it has fewer variants than it says"),
        }
    }
    for _ in 1 + count..fields {
        match lines.next() {
            Some(field) if field.trim_matches(' ') == field => {}
            Some(_) => return bad("a predefined field begins or ends with a blank"),
            None => return bad("it has fewer fields than it says"),
        }
    }
    Ok(Header {
        variants,
        comment: lines.collect::<Vec<_>>().join("\n"),
    })
}

fn is_version(text: &str) -> bool {
    text.split_once('.')
        .is_some_and(|(major, minor)| is_number(major) && is_number(minor))
}

/// Digits without a leading zero.
fn is_number(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && (text == "0" || !text.starts_with('0'))
}

fn number(text: &str) -> Option<u64> {
    if is_number(text) {
        text.parse().ok()
    } else {
        None
    }
}

fn is_variant(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && !byte.is_ascii_uppercase())
}

/// The text of the header of a book that is in memory, and the size of its null records.
pub(super) fn extract(book: &[u8]) -> Result<(String, usize), HeaderError> {
    let (raw, size) = null_records(book).map_err(|_| HeaderError::BadHeader("it is cut short"))?;
    if size == 0 {
        return Err(HeaderError::NoHeader);
    }
    Ok((logical(&raw)?, size))
}

/// The text before the first null byte of header data.
fn logical(data: &[u8]) -> Result<String, HeaderError> {
    let Some(end) = data.iter().position(|byte| *byte == 0) else {
        return Err(HeaderError::BadHeader(if data.len() >= LONGEST {
            "it is longer than 1 MiB"
        } else {
            "no null character ends it"
        }));
    };
    match std::str::from_utf8(&data[..end]) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(HeaderError::BadHeader("it is not UTF-8")),
    }
}

/// Reads the null records at the start: the data in them, and how many bytes they take. Of data
/// longer than [`LONGEST`] only so much is kept.
fn null_records(mut book: impl Read) -> io::Result<(Vec<u8>, usize)> {
    let mut data = Vec::new();
    let mut size = 0;
    let mut record = [0; Entry::SIZE];
    loop {
        let mut filled = 0;
        while filled < record.len() {
            match book.read(&mut record[filled..])? {
                0 => break,
                read => filled += read,
            }
        }
        if filled < record.len() || record[..8] != [0; 8] {
            return Ok((data, size));
        }
        if data.len() < LONGEST {
            data.extend_from_slice(&record[8..]);
        }
        size += record.len();
    }
}

/// Whether a file looks like a Polyglot book: its size is that of records, and the keys of the first
/// of them ascend.
///
/// # Errors
///
/// The operating system's, or [`HeaderError::BadFormat`].
pub fn detect(path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    let bad = |what| {
        Err(Error::Header {
            path: path.to_owned(),
            source: HeaderError::BadFormat(what),
        })
    };
    let file = File::open(path).at(path, "open it")?;
    let size = file.metadata().at(path, "open it")?.len();
    if !size.is_multiple_of(Entry::SIZE as u64) {
        return bad("its size is not a multiple of 16");
    }
    let mut start = Vec::new();
    file.take(10 * Entry::SIZE as u64)
        .read_to_end(&mut start)
        .at(path, "read it")?;
    let keys: Vec<&[u8]> = start.chunks_exact(Entry::SIZE).map(|r| &r[..8]).collect();
    if keys.is_sorted() {
        Ok(())
    } else {
        bad("its keys do not ascend")
    }
}

/// The data in the null records of a book, empty if there are none.
///
/// # Errors
///
/// The operating system's.
pub fn read_raw(path: impl AsRef<Path>) -> Result<Vec<u8>> {
    let path = path.as_ref();
    let file = File::open(path).at(path, "open it")?;
    let (data, _) = null_records(BufReader::new(file)).at(path, "read it")?;
    Ok(data)
}

/// The text of a book's header.
///
/// # Errors
///
/// The operating system's, [`HeaderError::NoHeader`], or [`HeaderError::BadHeader`] if no null byte
/// ends it or it is not UTF-8. What it says is for [`parse`] to judge.
pub fn read(path: impl AsRef<Path>) -> Result<String> {
    let path = path.as_ref();
    let data = read_raw(path)?;
    let text = if data.is_empty() {
        Err(HeaderError::NoHeader)
    } else {
        logical(&data)
    };
    text.map_err(|source| in_file(path, source))
}

fn in_file(path: &Path, source: HeaderError) -> Error {
    Error::Header {
        path: path.to_owned(),
        source,
    }
}

/// Copies the book `from` to another file, with `header` in place of its own.
///
/// # Errors
///
/// The operating system's, [`HeaderError::BadFormat`] for what is no book, and
/// [`HeaderError::SameFile`]. The output is there whole or not at all.
pub fn write(header: &str, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<()> {
    let (from, to) = (from.as_ref(), to.as_ref());
    refuse_same(from, to)?;
    rewrite(&create_raw(header), from, to)
}

/// Copies the book `from` to another file without its header.
///
/// # Errors
///
/// As [`write()`].
pub fn delete(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<()> {
    let (from, to) = (from.as_ref(), to.as_ref());
    refuse_same(from, to)?;
    rewrite(&[], from, to)
}

/// Replaces the header of a book in place. `None` leaves the variants or the comment as they are, or
/// as they are in a default header where there is none.
///
/// # Errors
///
/// As [`write()`], and [`HeaderError::BadHeader`] if the present header is malformed.
pub fn update(
    path: impl AsRef<Path>,
    variants: Option<&[String]>,
    comment: Option<&str>,
) -> Result<()> {
    let path = path.as_ref();
    let mut header = match read(path) {
        Ok(text) => parse(&text).map_err(|source| in_file(path, source))?,
        Err(Error::Header {
            source: HeaderError::NoHeader,
            ..
        }) => Header {
            variants: vec!["normal".to_owned()],
            comment: DEFAULT_COMMENT.to_owned(),
        },
        Err(err) => return Err(err),
    };
    if let Some(variants) = variants {
        header.variants = variants.to_vec();
    }
    if let Some(comment) = comment {
        header.comment = comment.to_owned();
    }
    let text = create(&header.variants, &header.comment).map_err(|source| in_file(path, source))?;
    rewrite(&create_raw(&text), path, path)
}

/// Removes the header of a book in place.
///
/// # Errors
///
/// As [`write()`].
pub fn remove(path: impl AsRef<Path>) -> Result<()> {
    rewrite(&[], path.as_ref(), path.as_ref())
}

fn refuse_same(from: &Path, to: &Path) -> Result<()> {
    let same = match (from.canonicalize(), to.canonicalize()) {
        (Ok(from), Ok(to)) => from == to,
        _ => from == to,
    };
    if same {
        return Err(in_file(to, HeaderError::SameFile));
    }
    Ok(())
}

/// Writes the records of `from` behind `header`.
fn rewrite(header: &[u8], from: &Path, to: &Path) -> Result<()> {
    detect(from)?;
    let mut book = BufReader::new(File::open(from).at(from, "open it")?);
    let (_, size) = null_records(&mut book).at(from, "read it")?;
    book.seek(SeekFrom::Start(size as u64))
        .at(from, "read it")?;
    let mut out = AtomicFile::create(to)?;
    out.write_all(header).at(to, "write it")?;
    io::copy(&mut book, &mut out).at(to, "write it")?;
    out.commit()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn assert_bad(text: &str) {
        assert!(
            matches!(parse(text), Err(HeaderError::BadHeader(_))),
            "{text:?}"
        );
    }

    #[test]
    fn examples_of_the_document() {
        let header = parse("@PG@\n1.0\n3\n2\nnormal\nsuicide\n(normally comments here)").unwrap();
        assert_eq!(header.variants, ["normal", "suicide"]);
        let later = "@PG@\n1.1\n4\n2\nnormal\nsuicide\n[somenewfield]\n(normally comments here)";
        assert_eq!(parse(later).unwrap(), header);
    }

    #[test]
    fn parsing_is_strict() {
        assert_bad("");
        assert_bad("\u{feff}@PG@\n1.0\n2\n1\nnormal");
        assert_bad("@PG@\r\n1.0\r\n2\r\n1\r\nnormal");
        for version in [
            "1", "1,0", "00.0", "10.01", "1.", ".1", " 1.0", "1.0.0", "a.b",
        ] {
            assert_bad(&format!("@PG@\n{version}\n2\n1\nnormal\nx"));
        }
        for version in ["1.0", "2.0", "0.0", "10.0", "10.10"] {
            assert!(
                parse(&format!("@PG@\n{version}\n2\n1\nnormal")).is_ok(),
                "{version}"
            );
        }
        for count in [
            "",
            "0",
            "01",
            "1",
            "-2",
            "+2",
            "2 ",
            "18446744073709551616",
            "4294967296",
        ] {
            assert_bad(&format!("@PG@\n1.0\n{count}\n1\nnormal"));
        }
        for count in ["", "01", "2", "4294967295"] {
            assert_bad(&format!("@PG@\n1.0\n2\n{count}\nnormal"));
        }
        assert_bad("@PG@\n1.0\n4294967296\n4294967295\nnormal");
        for name in [
            "",
            " normal",
            "nor mal",
            "Normal",
            "norm\u{e4}l",
            "normal\r",
        ] {
            assert_bad(&format!("@PG@\n1.0\n2\n1\n{name}\nx"));
        }
        assert_bad("@PG@\n1.1\n3\n1\nnormal\n padded\ncomment");
        assert!(parse("@PG@\n1.0\n1\n0\ncomment").is_ok());
    }

    #[test]
    fn what_no_header_can_hold() {
        for name in ["", "Normal", "a b", "a\nb", "\u{e4}"] {
            assert!(
                matches!(create(&[name], ""), Err(HeaderError::BadParameter(_))),
                "{name}"
            );
        }
        assert!(create(&["normal"], "a\0b").is_err());
    }

    #[test]
    fn long_headers() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("book.bin");
        for length in [PORTABLE_LENGTH, LONGEST - 100] {
            let text = create(&["normal"], &"x".repeat(length)).unwrap();
            std::fs::write(&path, create_raw(&text)).unwrap();
            assert_eq!(read(&path).unwrap(), text);
        }
        std::fs::write(&path, create_raw(&"x".repeat(LONGEST))).unwrap();
        assert!(
            read(&path)
                .unwrap_err()
                .to_string()
                .contains("longer than 1 MiB")
        );
    }

    #[test]
    fn records_survive_headers() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("book.bin");
        let records: Vec<u8> = (0..320u32).map(|i| (i / 16) as u8 + 1).collect();
        std::fs::write(&path, &records).unwrap();
        update(&path, None, None).unwrap();
        assert_eq!(
            parse(&read(&path).unwrap()).unwrap().comment,
            DEFAULT_COMMENT
        );
        update(&path, Some(&["atomic".to_owned()]), None).unwrap();
        update(&path, None, Some("two\nlines")).unwrap();
        let header = parse(&read(&path).unwrap()).unwrap();
        assert_eq!(header.variants, ["atomic"]);
        assert_eq!(header.comment, "two\nlines");
        remove(&path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), records);

        let other = dir.path().join("other.bin");
        write("@PG@\n1.0\n1\n0\n", &path, &other).unwrap();
        delete(&other, &path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), records);
        assert!(
            write("x", &path, &path)
                .unwrap_err()
                .to_string()
                .contains("the same")
        );
    }

    #[test]
    fn what_is_no_book_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("book.bin");
        for bytes in [&b"x"[..], &[[9u8; 16], [8; 16]].concat()] {
            std::fs::write(&path, bytes).unwrap();
            assert!(update(&path, None, None).is_err());
            assert_eq!(std::fs::read(&path).unwrap(), bytes);
        }
    }

    proptest! {
        #[test]
        fn what_is_created_is_parsed(
            variants in proptest::collection::vec("[!-@\\[-~]{1,12}", 0..5),
            comment in "[^\0]*",
        ) {
            let text = create(&variants, &comment).unwrap();
            prop_assert_eq!(parse(&text).unwrap(), Header { variants, comment });
            let raw = create_raw(&text);
            let (found, size) = extract(&raw).unwrap();
            prop_assert_eq!(found, text);
            prop_assert_eq!(size, raw.len());
        }

        #[test]
        fn any_text_is_parsed_or_refused(text in "(@PG@\n)?([0-9.]{0,3}\n){0,3}(\\PC|\n){0,40}") {
            let _ = parse(&text);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let mut book = vec![0; 8];
            book.extend_from_slice(&bytes);
            let _ = extract(&book);
            let _ = extract(&bytes);
        }
    }
}

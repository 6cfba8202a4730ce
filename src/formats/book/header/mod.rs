//! The `@PG@` header of a book, which contains a comment and lists the variants that the book is for.
//!
//! The header is text in the *null records* at the start of a book. Each null record has the key 0, followed by 8 bytes
//! of text. A null byte ends the text. Programs that look up positions by key never read these records. The text
//! consists of these lines: the magic `@PG@`, the version, the number of predefined fields, the predefined fields
//! themselves, and the comment. The first predefined field is the number of variants, and the others are the names of
//! the variants.
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

#[cfg(feature = "games")]
mod file;

use thiserror::Error;

#[cfg(feature = "games")]
pub use self::file::{DEFAULT_COMMENT, read, read_raw, remove, update};
use super::records::Entry;
use crate::storage::checksum::{Checksum, InvalidChecksum};

/// The maximum length of a header that every program can read, in bytes, including the null byte at its end.
pub const PORTABLE_LENGTH: usize = 2048;

/// An error in a header, or in the values from which a header is created.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// The size of the file is not a multiple of 16, or the keys of its records do not ascend.
    #[error("this is not a Polyglot book, or the book is damaged: {0}")]
    BadFormat(&'static str),
    /// The book has no null records.
    #[error("the book has no header")]
    NoHeader,
    /// A header cannot hold the given variant or comment.
    #[error("the header cannot be written: {0}")]
    BadParameter(String),
    /// The header is longer than [`PORTABLE_LENGTH`] bytes, so some programs would not read all of it.
    #[error(
        "the header would be {0} bytes long, but some programs read only {PORTABLE_LENGTH} bytes of a header: shorten \
         the comment"
    )]
    TooLong(usize),
    /// The header is malformed.
    #[error("the header of the book is malformed: {0}")]
    BadHeader(&'static str),
}

/// The first line of every header text.
pub const MAGIC: &str = "@PG@";

/// The version of the headers that [`create`] creates.
pub const VERSION: &str = "1.0";

/// The names of the variants that a header may list without the option `--force`, spelled as in the Chess Engine
/// Communication Protocol.
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

/// The content of the header of a book.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    /// The names of the variants that the book is for.
    pub variants: Vec<String>,
    /// Free text, which may have several lines.
    pub comment: String,
}

/// Returns `true` if `name` is one of [`KNOWN_VARIANTS`].
pub fn known_variant(name: &str) -> bool {
    KNOWN_VARIANTS.contains(&name)
}

/// Creates the text of a header. It lists the names of `variants` and ends with `comment`.
///
/// # Errors
///
/// Returns [`HeaderError::BadParameter`] if the comment contains a null byte. Also returns this error if the name
/// of a variant is empty, or contains a blank, a capital letter or anything else that is not printable ASCII.
pub fn create<S: AsRef<str>>(variants: &[S], comment: &str) -> Result<String, HeaderError> {
    if let Some(wrong) = variants.iter().find(|name| !is_variant(name.as_ref())) {
        return Err(HeaderError::BadParameter(format!(
            "\"{}\" is not a valid name for a variant: use only lower-case letters, digits and signs, without spaces",
            wrong.as_ref().escape_debug()
        )));
    }
    if comment.contains('\0') {
        return Err(HeaderError::BadParameter(
            "the comment contains a null character: remove this character".to_owned(),
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

/// Parses the text of a header. Skips predefined fields that the parser does not know, because later versions of the
/// header format may add some.
///
/// # Errors
///
/// Returns [`HeaderError::BadHeader`] if the text is malformed.
pub fn parse(text: &str) -> Result<Header, HeaderError> {
    let bad = |what| Err(HeaderError::BadHeader(what));
    let mut lines = text.split('\n');
    if lines.next() != Some(MAGIC) {
        return bad("the first line is not @PG@");
    }
    if !lines.next().is_some_and(is_version) {
        return bad("the second line is not a version such as 1.0");
    }
    let Some(fields) = lines.next().and_then(number) else {
        return bad("the third line, the number of fields, is not a number");
    };
    let Some(count) = lines.next().and_then(number) else {
        return bad("the fourth line, the number of variants, is not a number");
    };
    if count >= fields {
        return bad("the number of variants is not smaller than the number of fields");
    }
    let mut variants = Vec::new();
    for _ in 0..count {
        match lines.next() {
            Some(name) if is_variant(name) => variants.push(name.to_owned()),
            Some(_) => {
                return bad(
                    "the name of a variant is empty, or contains a space, an upper-case letter or an unprintable \
                     character",
                );
            }
            None => return bad("the header lists fewer variants than its fourth line states"),
        }
    }
    for _ in 1 + count..fields {
        match lines.next() {
            Some(field) if field.trim_matches(' ') == field => {}
            Some(_) => return bad("a predefined field begins or ends with a space"),
            None => return bad("the header has fewer fields than its third line states"),
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

/// Returns `true` if the text consists of digits and has no leading zero.
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

/// The maximum length of a header that polybook reads, in bytes: 1 MiB. A longer header is an error.
pub const MAX_HEADER_LENGTH: usize = 1 << 20;

/// Encodes the text of a header as records with the key 0. In a book, these records must precede all others.
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

/// The null records of a book: the records with the key 0 at its start, which contain the header.
pub(super) struct NullRecords {
    /// The header bytes of the records, which follow their keys. Bytes after about [`MAX_HEADER_LENGTH`] are not
    /// stored.
    pub data: Vec<u8>,
    /// The number of bytes that the null records take in the book.
    pub size: u64,
}

impl NullRecords {
    /// Reads the null records at the start of `records`, up to the first record with another key.
    pub(super) fn read<E>(
        records: impl IntoIterator<Item = Result<Entry, E>>,
    ) -> Result<NullRecords, E> {
        let mut null = NullRecords {
            data: Vec::new(),
            size: 0,
        };
        for entry in records {
            let entry = entry?;
            if entry.key != 0 {
                break;
            }
            if null.data.len() < MAX_HEADER_LENGTH {
                null.data.extend_from_slice(&entry.to_bytes()[8..]);
            }
            null.size += Entry::SIZE as u64;
        }
        Ok(null)
    }

    /// Returns `true` if the null records contain data other than null bytes after the text of the header.
    pub(super) fn has_more_than_text(&self) -> bool {
        let end = self.data.iter().position(|byte| *byte == 0);
        let rest = &self.data[end.unwrap_or(self.data.len())..];
        rest.iter().any(|byte| *byte != 0)
    }

    /// Returns the text of the header, which ends at the first null byte.
    ///
    /// # Errors
    ///
    /// Returns [`HeaderError::NoHeader`] if there are no null records. Returns [`HeaderError::BadHeader`] if no null
    /// byte ends the text, or if the text is not UTF-8.
    pub(super) fn text(&self) -> Result<&str, HeaderError> {
        if self.size == 0 {
            return Err(HeaderError::NoHeader);
        }
        let Some(end) = self.data.iter().position(|byte| *byte == 0) else {
            return Err(HeaderError::BadHeader(
                if self.data.len() >= MAX_HEADER_LENGTH {
                    "the header is longer than 1 MiB"
                } else {
                    "the text of the header does not end with a null character"
                },
            ));
        };
        std::str::from_utf8(&self.data[..end])
            .map_err(|_| HeaderError::BadHeader("the text of the header is not UTF-8"))
    }
}

/// The text that precedes the checksum on the last line of a header's comment.
const CHECKSUM_LINE_START: &str = "\nChecksum: ";

/// Returns `comment` with an additional last line for the checksum. [`BookWriter`](super::writer::BookWriter)
/// fills in the checksum.
pub(crate) fn with_checksum(comment: &str) -> String {
    format!("{comment}{CHECKSUM_LINE_START}{}", Checksum::default())
}

/// Splits a header text or a comment at the line of the checksum. Returns the text before this line and the digits of
/// the checksum. The digits are `None` if there is no such line.
pub(super) fn split_checksum(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(CHECKSUM_LINE_START) {
        Some((before, digits)) if !digits.contains('\n') => (before, Some(digits)),
        _ => (text, None),
    }
}

/// Returns `text`, the header text of a book, with the correct checksum filled in. The checksum covers all records and
/// the header text before the line of the checksum. `records` is the checksum of the records alone. A text without a
/// line for the checksum is returned unchanged.
pub(super) fn renewed(text: &str, records: Checksum) -> String {
    match split_checksum(text) {
        (before, Some(_)) => format!(
            "{before}{CHECKSUM_LINE_START}{}",
            sum_of(before).plus(records)
        ),
        (text, None) => text.to_owned(),
    }
}

/// Returns the checksum that the records of a book must have according to `text`, the text of its header. The header
/// states the sum of two checksums: that of the header text before the checksum line, and that of the records. This
/// function subtracts the checksum of the text.
///
/// Returns `None` if the header has no checksum, and `Some` with an error if the digits of the checksum are malformed.
pub(super) fn of_records(text: &str) -> Option<Result<Checksum, InvalidChecksum>> {
    let (before, digits) = split_checksum(text);
    let checksum = digits?.parse::<Checksum>();
    Some(checksum.map(|checksum| checksum.minus(sum_of(before))))
}

/// Returns the checksum of `before`, which is the part of a header text before the line of the checksum.
fn sum_of(before: &str) -> Checksum {
    let mut sum = Checksum::default();
    sum.add(before.as_bytes());
    sum
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::formats::book::records::records_of;

    fn null_records(book: &[u8]) -> NullRecords {
        NullRecords::read(records_of(book)).unwrap()
    }

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
    fn invalid_names_and_comments_are_refused() {
        for name in ["", "Normal", "a b", "a\nb", "\u{e4}"] {
            assert!(
                matches!(create(&[name], ""), Err(HeaderError::BadParameter(_))),
                "{name}"
            );
        }
        assert!(create(&["normal"], "a\0b").is_err());
    }

    proptest! {
        #[test]
        fn what_is_created_is_parsed(
            variants in proptest::collection::vec("[!-@\\[-~]{1,12}", 0..5),
            comment in "[^\0]*",
        ) {
            let text = create(&variants, &comment).unwrap();
            prop_assert_eq!(parse(&text).unwrap(), Header { variants, comment });
        }

        #[test]
        fn any_text_is_parsed_or_refused(text in "(@PG@\n)?([0-9.]{0,3}\n){0,3}(\\PC|\n){0,40}") {
            let _ = parse(&text);
        }

        #[test]
        fn what_is_written_is_read(text in "[^\0]{0,60}", records in 0..3usize) {
            let raw = create_raw(&text);
            let book = [&raw[..], &[7; Entry::SIZE].repeat(records)].concat();
            let null = null_records(&book);
            prop_assert_eq!(null.text(), Ok(&*text));
            prop_assert_eq!(null.size, raw.len() as u64);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let mut book = vec![0; 8];
            book.extend_from_slice(&bytes);
            let _ = null_records(&book).text();
            let _ = null_records(&bytes).text();
        }
    }
}

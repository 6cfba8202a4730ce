//! Reads and replaces the headers of books in files.

use std::{
    fs::File,
    io::{self, BufReader, Read, Seek, SeekFrom, Write},
    path::Path,
};

use super::{Header, HeaderError, NullRecords, create, create_raw, of_records, parse, renewed};
use crate::{
    error::{At, Error, Result},
    formats::book::{
        Book,
        foreign::refuse_foreign,
        records::{Entry, records_of},
    },
    storage::checksum::Checksum,
    storage::output::AtomicFile,
};

/// The comment that [`update`] gives to a new header if the caller passes no comment.
pub const DEFAULT_COMMENT: &str = "(default comment created by polybook pgheader)";

/// Returns an error if the file at `path` cannot be a Polyglot book, because its size is not a multiple of 16, or
/// because the keys of its first ten records do not ascend.
fn refuse_non_book(path: &Path) -> Result<()> {
    let bad = |what| Err(Error::format(path, HeaderError::BadFormat(what)));
    let file = File::open(path).at(path, "open")?;
    let size = file.metadata().at(path, "open")?.len();
    if !size.is_multiple_of(Entry::SIZE as u64) {
        return bad("the size of the file is not a multiple of 16");
    }
    let mut start = Vec::new();
    file.take(10 * Entry::SIZE as u64)
        .read_to_end(&mut start)
        .at(path, "read")?;
    let keys: Vec<&[u8]> = start.chunks_exact(Entry::SIZE).map(|r| &r[..8]).collect();
    if keys.is_sorted() {
        Ok(())
    } else {
        bad("the keys of the records are not in ascending order")
    }
}

/// Returns the raw bytes of a book's header: the contents of the records with the key 0 at the start of the book.
/// The result is empty if the book has no header.
///
/// # Errors
///
/// Returns an error if the file cannot be read.
pub fn read_raw(path: impl AsRef<Path>) -> Result<Vec<u8>> {
    Ok(null_records(path.as_ref())?.data)
}

/// Returns the text of a book's header. Use [`parse`] to read the fields of the text.
///
/// # Errors
///
/// Returns an error if the file cannot be read, [`HeaderError::NoHeader`] if the book has no header, and
/// [`HeaderError::BadHeader`] if the text does not end with a null byte or is not UTF-8.
pub fn read(path: impl AsRef<Path>) -> Result<String> {
    let path = path.as_ref();
    let null = null_records(path)?;
    let text = null.text().map(str::to_owned);
    text.map_err(|source| in_file(path, source))
}

fn null_records(path: &Path) -> Result<NullRecords> {
    let mut file = File::open(path).at(path, "open")?;
    refuse_foreign(&file, path)?;
    // On Windows, reading at an offset moves the cursor.
    file.rewind().at(path, "read")?;
    NullRecords::read(records_of(BufReader::new(file))).at(path, "read")
}

fn in_file(path: &Path, source: HeaderError) -> Error {
    Error::format(path, source)
}

/// Replaces the variants, the comment, or both in the header of a book file. The file is replaced as a whole, so it is
/// unchanged if an error occurs.
///
/// If `variants` or `comment` is `None`, the old value is kept. If the book has no header, they default to the variant
/// `normal` and [`DEFAULT_COMMENT`]. If the comment is kept and contains a checksum, the checksum is updated to match
/// the new header.
///
/// # Errors
///
/// Returns an error if the file cannot be read or written, [`HeaderError::BadFormat`] if it is not a book, and
/// [`HeaderError::BadHeader`] if its header is malformed. Also returns an error if a new comment would drop a checksum
/// that does not match the records, or if the checksum is malformed.
pub fn update(
    path: impl AsRef<Path>,
    variants: Option<&[String]>,
    comment: Option<&str>,
) -> Result<()> {
    let path = path.as_ref();
    let out = AtomicFile::create(path)?;
    let mut records = Checksum::default();
    let mut header = match read(path) {
        Ok(text) => {
            match of_records(&text) {
                Some(Ok(checksum)) => records = checksum,
                // A malformed checksum matches no records, so this fails.
                Some(Err(_)) => refuse_changed(path)?,
                None => {}
            }
            parse(&text).map_err(|source| in_file(path, source))?
        }
        Err(err) if err.carried() == Some(&HeaderError::NoHeader) => Header {
            variants: vec!["normal".to_owned()],
            comment: DEFAULT_COMMENT.to_owned(),
        },
        Err(err) => return Err(err),
    };
    if let Some(variants) = variants {
        header.variants = variants.to_vec();
    }
    if let Some(comment) = comment {
        refuse_changed(path)?;
        header.comment = comment.to_owned();
    }
    let text = create(&header.variants, &header.comment).map_err(|source| in_file(path, source))?;
    rewrite(&create_raw(&renewed(&text, records)), path, out)
}

/// Removes the header of a book file. The file is replaced as a whole, so it is unchanged if an error occurs.
///
/// # Errors
///
/// Returns an error if the file cannot be read or written, if it is not a book, or if the checksum in the header does
/// not match the records.
pub fn remove(path: impl AsRef<Path>) -> Result<()> {
    let out = AtomicFile::create(path.as_ref())?;
    refuse_changed(path.as_ref())?;
    rewrite(&[], path.as_ref(), out)
}

/// Returns an error if the book at `path` has a checksum that does not match its records. Call this function before a
/// change that removes the checksum, because damage cannot be detected afterwards.
fn refuse_changed(path: &Path) -> Result<()> {
    refuse_non_book(path)?;
    Book::open(path)?.refuse_changed()
}

/// Writes a new header and the records of the book at `path` to `out`, and commits `out`. `header` is the new header,
/// encoded as records with the key 0, or empty for a book without a header.
///
/// The caller must create `out` before it reads the old header. Creating `out` locks the file, so that no other process
/// can replace the book in between.
fn rewrite(header: &[u8], path: &Path, mut out: AtomicFile) -> Result<()> {
    refuse_non_book(path)?;
    let mut book = File::open(path).at(path, "open")?;
    let null = NullRecords::read(records_of(BufReader::new(&book))).at(path, "read")?;
    book.seek(SeekFrom::Start(null.size)).at(path, "read")?;
    out.write_all(header).at(out.target(), "write")?;
    io::copy(&mut book, &mut out).at(out.target(), "write")?;
    // Windows cannot replace a file that is open.
    drop(book);
    out.commit()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::book::header::{MAX_HEADER_LENGTH, PORTABLE_LENGTH};

    #[test]
    fn long_headers() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("book.bin");
        for length in [PORTABLE_LENGTH, MAX_HEADER_LENGTH - 100] {
            let text = create(&["normal"], &"x".repeat(length)).unwrap();
            std::fs::write(&path, create_raw(&text)).unwrap();
            assert_eq!(read(&path).unwrap(), text);
        }
        std::fs::write(&path, create_raw(&"x".repeat(MAX_HEADER_LENGTH))).unwrap();
        assert!(
            read(&path)
                .unwrap_err()
                .carried::<HeaderError>()
                .is_some_and(|err| err.to_string().contains("longer than 1 MiB"))
        );
    }

    #[test]
    fn records_survive_headers() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("book.bin");
        let record = |key: u8| [&[key; 8][..], &[0, 1], &[key; 6]].concat();
        let records: Vec<u8> = (1..=20).flat_map(record).collect();
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
    }

    #[test]
    fn a_malformed_checksum_is_not_renewed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("book.bin");
        let text = create(&["normal"], "mine\nChecksum: none").unwrap();
        let record = [&[1; 8][..], &[0, 1], &[1; 6]].concat();
        let book = [create_raw(&text), record].concat();
        std::fs::write(&path, &book).unwrap();
        update(&path, Some(&["atomic".to_owned()]), None).unwrap_err();
        assert_eq!(std::fs::read(&path).unwrap(), book);
    }

    #[test]
    fn a_book_that_is_being_replaced_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("book.bin");
        std::fs::write(&path, create_raw("@PG@\nmalformed")).unwrap();
        let other_run = AtomicFile::create(&path).unwrap();
        let err = update(&path, None, None).unwrap_err();
        assert!(err.to_string().contains("another run"), "{err}");
        drop(other_run);
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
}

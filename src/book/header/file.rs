//! The headers of books in files.

use std::{
    fs::File,
    io::{self, BufReader, Read, Seek, SeekFrom, Write},
    path::Path,
};

use super::{Header, HeaderError, NullRecords, create, create_raw, of_records, parse, renewed};
use crate::{
    book::{
        Book,
        foreign::refuse_foreign,
        records::{Entry, records_of},
    },
    checksum::Checksum,
    error::{At, Error, Result},
    output::AtomicFile,
};

/// The comment of a header that [`update`] adds without being given one.
pub const DEFAULT_COMMENT: &str = "(default comment created by polybook pgheader)";

/// Refuses a file that does not look like a Polyglot book: its size is that of records, and the keys of the first of
/// them ascend.
fn refuse_other(path: &Path) -> Result<()> {
    let bad = |what| Err(Error::format(path, HeaderError::BadFormat(what)));
    let file = File::open(path).at(path, "open")?;
    let size = file.metadata().at(path, "open")?.len();
    if !size.is_multiple_of(Entry::SIZE as u64) {
        return bad("its size is not a multiple of 16");
    }
    let mut start = Vec::new();
    file.take(10 * Entry::SIZE as u64)
        .read_to_end(&mut start)
        .at(path, "read")?;
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
    Ok(null_records(path.as_ref())?.data)
}

/// The text of a book's header.
///
/// # Errors
///
/// The operating system's, [`HeaderError::NoHeader`], or [`HeaderError::BadHeader`] if no null byte
/// ends it or it is not UTF-8. What it says is for [`parse`] to judge.
pub fn read(path: impl AsRef<Path>) -> Result<String> {
    let path = path.as_ref();
    let null = null_records(path)?;
    let text = null.text().map(str::to_owned);
    text.map_err(|source| in_file(path, source))
}

fn null_records(path: &Path) -> Result<NullRecords> {
    let file = File::open(path).at(path, "open")?;
    refuse_foreign(&file, path)?;
    NullRecords::read(records_of(BufReader::new(file))).at(path, "read")
}

fn in_file(path: &Path, source: HeaderError) -> Error {
    Error::format(path, source)
}

/// Replaces the header of a book in place. `None` keeps the variants or the comment, or takes
/// those of a default header where there is no header. The checksum of a kept comment is renewed.
///
/// # Errors
///
/// The operating system's, [`HeaderError::BadFormat`] for what is not a book, and [`HeaderError::BadHeader`] if the
/// present header is malformed. A new comment drops the checksum in the old one, so the checksum must match the records.
/// The new book is there whole or not at all.
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
            records = of_records(&text).and_then(Result::ok).unwrap_or_default();
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

/// Removes the header of a book in place.
///
/// # Errors
///
/// Returns the errors of [`update`] with a new comment.
pub fn remove(path: impl AsRef<Path>) -> Result<()> {
    let out = AtomicFile::create(path.as_ref())?;
    refuse_changed(path.as_ref())?;
    rewrite(&[], path.as_ref(), out)
}

/// Refuses a book whose checksum does not match its records: without the checksum, the damage would go unnoticed.
fn refuse_changed(path: &Path) -> Result<()> {
    refuse_other(path)?;
    Book::open(path)?.refuse_changed()
}

/// Writes the records of a book after `header` in its place. The output was begun before the book is read, so that no
/// other run replaces it meanwhile.
fn rewrite(header: &[u8], path: &Path, mut out: AtomicFile) -> Result<()> {
    refuse_other(path)?;
    let mut book = File::open(path).at(path, "open")?;
    let null = NullRecords::read(records_of(BufReader::new(&book))).at(path, "read")?;
    book.seek(SeekFrom::Start(null.size)).at(path, "read")?;
    out.write_all(header).at(out.target(), "write")?;
    io::copy(&mut book, &mut out).at(out.target(), "write")?;
    // Windows replaces no file that is open.
    drop(book);
    out.commit()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book::header::{LONGEST, PORTABLE_LENGTH};

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
                .carried::<HeaderError>()
                .is_some_and(|err| err.to_string().contains("longer than 1 MiB"))
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

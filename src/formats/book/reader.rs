//! Opens books, and finds the records of a position by its key.

use std::{
    borrow::Cow,
    fs::File,
    io::{self, ErrorKind, Read},
    path::{Path, PathBuf},
};

use super::{
    foreign::{refuse_foreign, refuse_foreign_start, refuse_impossible},
    header::{self, Header, NullRecords},
    records::{BookStorage, Entry, Records, each_move_once, entries_of},
};
use crate::{
    chess::position::{Rules, Variant, key},
    error::{Advice, At, Diagnosis, Error, Result},
    progress::Meter,
    storage::checksum::{Checksum, InvalidChecksum},
    storage::keyed::key_of,
    storage::positioned::StoredFile,
};

/// An open Polyglot book, in a file or in memory.
///
/// A file may have any size, because only the parts that are needed are read. Several threads may use a book at the
/// same time. If another program replaces the file (which Windows may refuse), the book still reads the old file. A
/// process keeps the files of at most 64 books open. If more books are in use, the file of each additional book is
/// reopened for each read, which fails if the file has been replaced.
///
/// ```
/// use polybook::{book::{Book, Entry}, position::{BookMove, key}};
///
/// let start = shakmaty::Chess::default();
/// let e4 = Entry { key: key(&start), mv: BookMove(0o1434), weight: 7, learn: 0 };
/// let book = Book::from_bytes(e4.to_bytes().to_vec()).expect("whole records");
/// assert_eq!(book.moves_of(&start)?, [e4]);
/// assert_eq!(book.moves(42)?.len(), 0);
/// # Ok::<(), polybook::Error>(())
/// ```
#[derive(Debug)]
pub struct Book {
    pub(super) path: PathBuf,
    pub(super) storage: BookStorage,
}

/// The maximum number of bytes that are read from a pipe or device: 256 MiB, which is 16 million records. All of
/// these bytes are kept in memory.
const MAX_PIPE_BYTES: u64 = if cfg!(test) { 1 << 20 } else { 256 << 20 };

impl Book {
    /// Opens a book for lookups. Each lookup reads a few blocks of 4 KiB. The checksum of the book is not verified; use
    /// [`open_within`](Book::open_within) for that.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, is not a book, or has a size that is not a multiple of 16.
    pub fn open(path: impl AsRef<Path>) -> Result<Book> {
        let path = path.as_ref();
        match Book::open_with_rest(path)? {
            (book, 0) => Ok(book),
            _ => Err(cut_short(path)),
        }
    }

    /// Opens a book whose file may end in the middle of a record. Returns the book, and the number of bytes after its
    /// last whole record.
    pub(super) fn open_with_rest(path: &Path) -> Result<(Book, usize)> {
        let file = File::open(path).at(path, "open")?;
        let metadata = file.metadata().at(path, "open")?;
        if !metadata.is_file() {
            return Ok((Book::from_pipe(file, path)?, 0));
        }
        refuse_foreign(&file, path)?;
        let size = Entry::SIZE as u64;
        let book = Book {
            path: path.to_owned(),
            storage: BookStorage::File(
                StoredFile::new(file, path).at(path, "open")?,
                metadata.len() / size,
            ),
        };
        Ok((book, (metadata.len() % size) as usize))
    }

    /// Opens a book for an operation that reads most of its records, and verifies the checksum of the book. If the book
    /// has at most `memory` bytes, it is loaded into memory, where lookups are fastest.
    ///
    /// # Errors
    ///
    /// Fails for the same reasons as [`open`](Book::open), and if the checksum in the header does not match the
    /// records.
    pub fn open_within(path: impl AsRef<Path>, memory: u64) -> Result<Book> {
        let mut book = Book::open(path)?;
        book.storage = book.storage.load_if_fits(memory).at(&book.path, "read")?;
        book.refuse_changed()?;
        Ok(book)
    }

    /// Reads a book from a pipe or device into memory. Returns an error if it contains more than [`MAX_PIPE_BYTES`]
    /// bytes, because a device may never end.
    fn from_pipe(file: File, path: &Path) -> Result<Book> {
        let mut bytes = Vec::new();
        let mut start = file.take(MAX_PIPE_BYTES);
        start.read_to_end(&mut bytes).at(path, "read")?;
        if bytes.len() as u64 == MAX_PIPE_BYTES {
            let problem = "this pipe or device delivers more than 256 MiB: save the book as a file, and give that file";
            return Err(Error::too_large(path, problem));
        }
        refuse_foreign_start(&bytes, bytes.len() as u64, path)?;
        refuse_impossible(&bytes, path)?;
        let mut book = Book::from_bytes(bytes).ok_or_else(|| cut_short(path))?;
        book.path = path.to_owned();
        Ok(book)
    }

    /// Creates a book from the bytes of a book file. Returns `None` if the number of bytes is not a multiple of 16.
    pub fn from_bytes(bytes: Vec<u8>) -> Option<Book> {
        bytes.len().is_multiple_of(Entry::SIZE).then(|| Book {
            path: PathBuf::from("book"),
            storage: BookStorage::Memory(bytes),
        })
    }

    /// Returns the path of the book's file, or `book` if the book was created [from bytes](Book::from_bytes).
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the number of records, including the records of the header.
    pub fn len(&self) -> u64 {
        self.storage.len()
    }

    /// Returns `true` if the book has no record.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns an iterator over all records in the order of the book, including the records of the header.
    pub fn iter(&self) -> Records<'_> {
        Records::new(&self.storage, &self.path)
    }

    /// Returns an iterator over all records that also checks the book. It yields an error if keys do not ascend and, at
    /// the end, if the checksum in the header does not match. Commands that copy records to a new book use this
    /// iterator, because the checksum of the new book would hide damage of the old one. `meter` advances by one for
    /// each record.
    pub(super) fn checked_records<'a>(&'a self, meter: &'a Meter) -> Result<CheckedRecords<'a>> {
        let null = self.null_records()?;
        Ok(CheckedRecords {
            expected: null.text().ok().and_then(header::of_records),
            ..self.sorted_records(meter)
        })
    }

    /// Returns an iterator over all records that yields an error if their keys do not ascend. `meter` advances by one
    /// for each record.
    pub(super) fn sorted_records<'a>(&'a self, meter: &'a Meter) -> CheckedRecords<'a> {
        meter.add_total(self.len());
        CheckedRecords {
            book: self,
            meter,
            records: self.iter(),
            last_key: 0,
            sum: Checksum::default(),
            expected: None,
        }
    }

    /// Verifies the checksum in the header, which covers the header and all records. Does nothing if the header has
    /// no checksum.
    ///
    /// # Errors
    ///
    /// Returns an error if the book cannot be read, if its checksum does not match, or if it is not sorted.
    pub fn refuse_changed(&self) -> Result<()> {
        let meter = Meter::default();
        let mut records = self.checked_records(&meter)?;
        match records.expected {
            Some(_) => records.try_for_each(|entry| entry.map(drop)),
            None => Ok(()),
        }
    }

    /// Returns the number of records, without the records of the header.
    pub(crate) fn len_without_header(&self) -> Result<u64> {
        Ok(self.len() - self.null_records()?.size / Entry::SIZE as u64)
    }

    pub(super) fn null_records(&self) -> Result<NullRecords> {
        NullRecords::read(self.iter())
    }

    /// Reads and parses the header.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, and an [`Error::Format`] if the book has no header or a malformed
    /// one.
    pub fn header(&self) -> Result<Header> {
        self.null_records()?
            .text()
            .and_then(header::parse)
            .map_err(|source| Error::format(&self.path, source))
    }

    /// Reads the names of the variants in the header. Returns an empty list if the book has no header, or if the header
    /// is malformed.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read.
    pub fn variants(&self) -> Result<Vec<String>> {
        let header = self.readable_header()?;
        Ok(header.map_or_else(Vec::new, |header| header.variants))
    }

    /// Reads and parses the header. Returns `None` if the book has no header, or if the header is malformed.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read.
    pub(crate) fn readable_header(&self) -> Result<Option<Header>> {
        match self.header() {
            Ok(header) => Ok(Some(header)),
            Err(Error::Format { .. }) => Ok(None),
            Err(err) => Err(err),
        }
    }

    /// Returns the variant that the header names. Returns `None` if the book has no header, or if the header lists no
    /// variant, several variants or an unknown one.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read.
    pub fn variant(&self) -> Result<Option<Variant>> {
        Ok(match &*self.variants()? {
            [name] => name.parse().ok(),
            _ => None,
        })
    }

    /// Returns `true` if the header lists `variant`, or a variant with the same rules for moves. A book without a
    /// header is for standard chess. Use this check before lookups, because positions of different variants may have
    /// the same key.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read.
    pub fn is_for(&self, variant: Variant) -> Result<bool> {
        let names = self.variants()?;
        let is_played_like =
            |name: &String| Ok(true) == name.parse().map(|own| variant.is_played_like(own));
        Ok(if names.is_empty() {
            variant == Variant::Standard
        } else {
            names.iter().any(is_played_like)
        })
    }

    /// Returns the moves of a position, sorted by descending weight. If a move has several records, their weights are
    /// added up, to at most 65535. The two spellings of castling (king to its target square, and king takes rook) count
    /// as the same move.
    ///
    /// The result includes moves of weight 0 and illegal moves. For an illegal move,
    /// [`to_move`](crate::chess::position::BookMove::to_move) returns `None`, and [`shares`](super::shares) returns no
    /// share.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, or if the book is so damaged that it has too many records of the
    /// position.
    pub fn moves_of<P: Rules>(&self, pos: &P) -> Result<Vec<Entry>> {
        Ok(each_move_once(pos, self.moves(key(pos))?))
    }

    /// Returns `true` if the book is certain to have no record with the position key `key`. Searches only books that
    /// are in memory. Always returns `false` for a book in a file, because a search would have to read the file.
    #[cfg(feature = "games")]
    pub(crate) fn certainly_lacks(&self, key: u64) -> bool {
        matches!(self.storage, BookStorage::Memory(_)) && matches!(self.storage.find(key), Ok(None))
    }

    /// Returns the records with the position key `key`, in the order of the book. Returns no records if `key` is 0, the
    /// key of the header's records.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read. Also returns an error if the book is so damaged that it has far
    /// more records of the position than the 65,536 different moves that records can contain.
    #[inline]
    pub fn moves(&self, key: u64) -> Result<Vec<Entry>> {
        let records = records_of_key(&self.storage, key).at(&self.path, "read")?;
        Ok(entries_of(&records))
    }
}

fn cut_short(path: &Path) -> Error {
    Error::damaged(
        path,
        "this is not a Polyglot book, or the end of the book is missing: the size is not a multiple of 16 bytes; use \
         an intact copy",
    )
}

impl<'a> IntoIterator for &'a Book {
    type Item = Result<Entry>;
    type IntoIter = Records<'a>;

    fn into_iter(self) -> Records<'a> {
        self.iter()
    }
}

/// An iterator over the records of a book that also checks the book. It yields an error if keys do not ascend and,
/// after the last record, if the checksum of the records differs from the checksum in the header.
#[derive(Debug)]
pub(super) struct CheckedRecords<'a> {
    book: &'a Book,
    meter: &'a Meter,
    records: Records<'a>,
    last_key: u64,
    /// The checksum of the records that have been read so far, without those of the header.
    sum: Checksum,
    /// The checksum that the records must have according to the header, or `None` if the header has no checksum or the
    /// iterator has ended.
    expected: Option<Result<Checksum, InvalidChecksum>>,
}

impl Iterator for CheckedRecords<'_> {
    type Item = Result<Entry>;

    #[inline]
    fn next(&mut self) -> Option<Result<Entry>> {
        let Some(record) = self.records.next() else {
            if self.expected.take()?.ok() == Some(self.sum) {
                return None;
            }
            let problem = Diagnosis::new(
                "the checksum in the header does not match the records, so the book is damaged, or another program \
                 changed it",
            )
            .advise("use an intact copy")
            .advise(
                Advice::option("write a copy without the checksum with {}", "fix")
                    .of_command("verify"),
            );
            return Some(Err(Error::damaged(&self.book.path, problem)));
        };
        self.meter.advance(1);
        if let Ok(entry) = record {
            if entry.key < self.last_key {
                let problem = Diagnosis::new("the records of the book are not sorted by key")
                    .advise(
                        Advice::option("{} writes a sorted copy", "fix")
                            .of_command("verify")
                            .with_value("OUT"),
                    );
                return Some(Err(Error::damaged(&self.book.path, problem)));
            }
            self.last_key = entry.key;
            if self.expected.is_some() && entry.key != 0 {
                self.sum.add_short(&entry.to_bytes());
            }
        }
        Some(record)
    }
}

/// The number of records that a lookup reads first. If all of them have the requested key, the lookup reads further
/// records.
const FIRST_READ_RECORDS: u64 = 16;

/// The maximum number of records of one position. A move has 16 bits, and a correct book contains each move of a
/// position only once.
const MAX_MOVES_PER_POSITION: u64 = 1 << 16;

/// Returns the bytes of all records with the position key `key`. Returns no records if `key` is 0, the key of the
/// header's records.
///
/// # Errors
///
/// Returns an error if the book cannot be read. Also returns an error if the book is so damaged that it has far more
/// records with this key than the 65,536 different moves that records can contain.
#[inline]
pub(super) fn records_of_key(book: &BookStorage, key: u64) -> io::Result<Cow<'_, [u8]>> {
    let start = match key {
        0 => None,
        _ => book.find(key)?,
    };
    let Some(start) = start else {
        return Ok(Cow::default());
    };
    let mut width = FIRST_READ_RECORDS;
    loop {
        let mut block = book.bytes(start, width.min(book.len() - start))?;
        let records = block.as_chunks::<{ Entry::SIZE }>().0;
        let end = records.iter().position(|record| key_of(record) != key);
        let size = end.unwrap_or(records.len()) * Entry::SIZE;
        if size < block.len() || start + width >= book.len() {
            match &mut block {
                Cow::Borrowed(bytes) => *bytes = &bytes[..size],
                Cow::Owned(bytes) => bytes.truncate(size),
            }
            return Ok(block);
        }
        if width > MAX_MOVES_PER_POSITION {
            let problem = "the book is damaged: it contains more records for one position than the position can have \
                           moves; use an intact copy";
            return Err(io::Error::new(ErrorKind::InvalidData, problem));
        }
        width *= 4;
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write};

    use proptest::prelude::*;

    use super::*;
    use crate::{
        chess::position::BookMove, formats::book::header::HeaderError,
        storage::positioned::StoredFile,
    };

    fn bytes(keys: &[u64]) -> Vec<u8> {
        let entry = |(i, key): (usize, &u64)| Entry {
            key: *key,
            mv: BookMove(1 + i as u16 % 7),
            weight: 1,
            learn: 0,
        };
        let entries = keys.iter().enumerate().map(entry);
        entries.flat_map(Entry::to_bytes).collect()
    }

    #[test]
    fn books_are_asked_by_all_threads() {
        fn is_send_and_sync<T: Send + Sync>() {}
        is_send_and_sync::<Book>();
        is_send_and_sync::<Records<'_>>();
    }

    #[cfg(unix)]
    #[test]
    fn a_device_without_an_end_is_no_book() {
        let err = Book::open("/dev/zero").unwrap_err().to_string();
        let advice = "save the book as a file, and give that file";
        assert!(err.contains(advice), "{err}");
        let dir = tempfile::tempdir().unwrap();
        let saved = dir.path().join("saved.bin");
        fs::write(&saved, bytes(&[1, 2])).unwrap();
        assert_eq!(Book::open(saved).unwrap().len(), 2);
    }

    // Only some versions of Windows replace an open file.
    #[cfg(unix)]
    #[test]
    fn an_open_book_answers_when_its_file_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("book.bin");
        fs::write(&path, bytes(&[1, 2, 2])).unwrap();
        let book = Book::open(&path).unwrap();
        let new = dir.path().join("new.bin");
        fs::write(&new, bytes(&[9])).unwrap();
        fs::rename(&new, &path).unwrap();
        assert_eq!(book.moves(2).unwrap().len(), 2);
        assert_eq!(Book::open(&path).unwrap().moves(2).unwrap().len(), 0);
        fs::remove_file(&path).unwrap();
        assert_eq!(book.iter().count(), 3);
    }

    #[test]
    fn a_file_that_shrinks_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("book.bin");
        fs::write(&path, bytes(&[1, 2, 3])).unwrap();
        let book = Book::open(&path).unwrap();
        fs::write(&path, bytes(&[1])).unwrap();
        assert!(book.moves(3).is_err());
        let read: Vec<Result<Entry>> = book.iter().collect();
        assert!(matches!(read[..], [Err(_)]), "{read:?}");
    }

    #[test]
    fn books_cut_short_are_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("book.bin");
        fs::write(&path, &bytes(&[1, 2])[..31]).unwrap();
        for opened in [Book::open(&path), Book::open_within(&path, u64::MAX)] {
            let err = opened.unwrap_err().to_string();
            assert!(err.contains("multiple of 16"), "{err}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_file_and_its_bytes_are_the_same_book(
            header in proptest::option::of("[a-z\n]{0,40}"),
            mut keys in proptest::collection::vec(prop_oneof![1..9u64, any::<u64>()], 0..5000),
        ) {
            keys.sort_unstable();
            let header = header.map_or(Vec::new(), |text| header::create_raw(&text));
            let whole = [header, bytes(&keys)].concat();
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("book.bin");
            fs::write(&path, &whole).unwrap();
            let (file, memory) = (Book::open(&path).unwrap(), Book::from_bytes(whole.clone()).unwrap());
            prop_assert_eq!(file.len(), memory.len());
            let said = |book: &Book| book.header().map_err(|err| err.carried::<HeaderError>().cloned());
            prop_assert_eq!(said(&file), said(&memory));
            let all = |book: &Book| -> Vec<u8> { book.iter().flat_map(|entry| entry.unwrap().to_bytes()).collect() };
            prop_assert_eq!(all(&file), &whole[..]);
            prop_assert_eq!(all(&memory), whole);
        }

        #[test]
        fn books_of_any_bytes_are_read_without_panic(bytes: Vec<u8>, keys: [u64; 4]) {
            if let Some(book) = Book::from_bytes(bytes) {
                for key in keys.into_iter().chain([0, u64::MAX]) {
                    let _ = book.moves(key).unwrap();
                }
                let _ = book.header();
            }
        }
    }

    #[test]
    fn a_header_that_cannot_be_read_is_not_taken_for_a_missing_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("book.bin");
        let header = header::create(&["atomic".to_owned()], "").unwrap();
        let mut bytes = header::create_raw(&header);
        bytes.extend(record(1, 1));
        fs::write(&path, &bytes).unwrap();
        let book = Book::open(&path).unwrap();
        assert_eq!(book.variant().unwrap(), Some(Variant::Atomic));
        assert!(book.is_for(Variant::Atomic).unwrap());
        // A file that has become shorter gives an error when its former bytes are read.
        fs::write(&path, &bytes[..Entry::SIZE]).unwrap();
        assert!(book.variant().is_err());
        assert!(book.is_for(Variant::Standard).is_err());
    }

    fn record(key: u64, number: usize) -> [u8; Entry::SIZE] {
        (u128::from(key) << 64 | number as u128).to_be_bytes()
    }

    /// Creates a book with these keys, in memory and in a file. Records are numbered.
    fn book(keys: &[u64]) -> [BookStorage; 2] {
        let records = keys.iter().enumerate();
        let bytes: Vec<u8> = records.flat_map(|(i, key)| record(*key, i)).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        [
            BookStorage::Memory(bytes),
            BookStorage::File(
                StoredFile::Open {
                    file,
                    stamp: None,
                    is_counted: false,
                },
                keys.len() as u64,
            ),
        ]
    }

    #[track_caller]
    fn assert_found(keys: &[u64], wanted: &[u64]) {
        let [memory, file] = book(keys);
        for key in wanted.iter().copied().filter(|key| *key != 0) {
            let places: Vec<usize> = (0..keys.len()).filter(|i| keys[*i] == key).collect();
            let expected: Vec<u8> = places.iter().flat_map(|i| record(key, *i)).collect();
            assert_eq!(records_of_key(&memory, key).unwrap(), expected);
            assert_eq!(records_of_key(&file, key).unwrap(), expected);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn every_key_is_found_however_keys_are_spread(
            mut keys in proptest::collection::vec(prop_oneof![1..50u64, any::<u64>(), u64::MAX - 50..=u64::MAX], 0..2000),
            others in proptest::collection::vec(any::<u64>(), 5),
            some in proptest::collection::vec(any::<proptest::sample::Index>(), 40),
        ) {
            keys.sort_unstable();
            let mut wanted = others;
            if !keys.is_empty() {
                wanted.extend(some.iter().map(|index| *index.get(&keys)));
                wanted.extend([keys[0], keys[keys.len() - 1], 1, u64::MAX]);
            }
            assert_found(&keys, &wanted);
        }

        #[test]
        fn unsorted_books_are_searched_without_panic(
            keys in proptest::collection::vec(prop_oneof![0..50u64, any::<u64>()], 0..1500), wanted: [u64; 4],
        ) {
            let [memory, file] = book(&keys);
            for key in wanted.into_iter().chain([0, u64::MAX]).chain(keys.first().copied()) {
                let _ = records_of_key(&memory, key).unwrap();
                let _ = records_of_key(&file, key).unwrap();
            }
        }
    }

    #[test]
    fn few_blocks_are_read_of_a_long_file() {
        // The keys have the distribution of a real book: 2^20 random values.
        let mut state = 9u64;
        let mut keys: Vec<u64> = (0..1 << 20)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                state ^ state >> 29
            })
            .collect();
        keys.sort_unstable();
        let wanted: Vec<u64> = keys.iter().step_by(50_021).copied().collect();
        assert_found(&keys, &wanted);
    }
}

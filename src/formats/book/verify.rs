//! Verifies books, and writes corrected copies of faulty ones.

use std::{
    cmp::Reverse,
    io::{self, Write},
    mem,
    path::Path,
};

use thiserror::Error as ThisError;

use super::{
    header::{self, Header, HeaderError, NullRecords, renewed, split_checksum},
    reader::Book,
    records::{Entry, write_entries},
    writer::BookWriter,
};
use crate::{
    chess::position::{BookMove, Variant},
    error::{At, Result},
    formats::counts::Memory,
    storage::checksum::Checksum,
    storage::output::AtomicFile,
    storage::sort::TextSorter,
};

/// A fault that [`verify`] found in a book.
#[derive(Clone, PartialEq, Eq, Debug, ThisError)]
#[non_exhaustive]
pub enum BookFault {
    /// The size is not a multiple of 16.
    #[error("the size of the book is not a multiple of 16: {rest} {} the last whole record", if *.rest == 1 { "byte follows" } else { "bytes follow" })]
    Size {
        /// The number of bytes after the last whole record.
        rest: usize,
    },
    /// The header is malformed.
    #[error("{0}")]
    Header(HeaderError),
    /// The header has a checksum that differs from the checksum of the header and the records.
    #[error(
        "the checksum in the header does not match the records: the book is damaged, or another program changed it"
    )]
    Checksum,
    /// Records have a smaller key than the record before them.
    #[error("{}", .0.text("has a smaller key than the record before it", "have smaller keys than the records before them"))]
    Order(FaultyRecords),
    /// Records with the key 0, which only the header may use, follow other records.
    #[error("{}", .0.text("has the key 0 but is not in the header", "have the key 0 but are not in the header"))]
    StrayNull(FaultyRecords),
    /// A position has several records with the same move.
    #[error("{}", .0.text("repeats a move of its position", "repeat moves of their positions"))]
    Twice(FaultyRecords),
    /// Records contain bits that do not encode a move.
    #[error("{}", .0.text("does not contain a possible move", "do not contain possible moves"))]
    Move(FaultyRecords),
}

/// The records of a book that have a certain fault: their number, and the index of the first one.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct FaultyRecords {
    /// The number of these records.
    pub count: u64,
    /// The index of the first of these records, counted from 0.
    pub first: u64,
}

impl FaultyRecords {
    fn note(&mut self, index: u64) {
        self.first = match self.count {
            0 => index,
            _ => self.first.min(index),
        };
        self.count += 1;
    }

    /// Returns a message about the faulty records. The message names the first of these records, and ends with
    /// `of_one`, such as "repeats a move", if there is one faulty record, or with `of_more`, such as "repeat moves", if
    /// there are several.
    fn text(&self, of_one: &str, of_more: &str) -> String {
        let first = self.first;
        match self.count {
            1 => format!("record {first} {of_one}"),
            count => format!("{count} records, beginning with record {first}, {of_more}"),
        }
    }
}

/// The result of [`verify`]: the faults of a book, and statistics about its records.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VerifiedBook {
    /// All faults. If there are none, every program reads the book correctly.
    pub faults: Vec<BookFault>,
    /// The number of whole records, including those of the header.
    pub records: u64,
    /// The number of records of the header.
    pub header_records: u64,
    /// Whether the header has a checksum. Without a checksum, changed weights and moves cannot be detected.
    pub has_checksum: bool,
}

/// Finds all faults of a book.
///
/// Reads the book once, from start to end. If its keys do not ascend, reads the book a second time and sorts its
/// records to find repeated moves. `memory` is the budget for sorting.
///
/// # Errors
///
/// Returns an error if the file cannot be read or is not a book, or if a temporary file cannot be written.
pub fn verify(path: impl AsRef<Path>, memory: &Memory) -> Result<VerifiedBook> {
    let book = FaultyBook::open(path.as_ref())?;
    let mut faults = Vec::new();
    if book.rest > 0 {
        faults.push(BookFault::Size { rest: book.rest });
    }
    let text = book.null.text();
    match text.and_then(header::parse) {
        Ok(_) if book.null.has_more_than_text() => {
            let problem = "more bytes follow the null character that ends the text of the header";
            faults.push(BookFault::Header(HeaderError::BadHeader(problem)));
        }
        Ok(_) | Err(HeaderError::NoHeader) => {}
        Err(err) => faults.push(BookFault::Header(err)),
    }
    let mut found = RecordFaults::new();
    let header_records = book.null.size / Entry::SIZE as u64;
    let mut records = header_records;
    let mut sum = Checksum::default();
    for record in book.records() {
        let (index, entry) = record?;
        records = index + 1;
        sum.add_short(&entry.to_bytes());
        found.record(index, entry, book.is_move);
    }
    let checksum = book.checksum_matches(sum);
    faults.extend((checksum == Some(false)).then_some(BookFault::Checksum));
    if found.order.count > 0 {
        // The records of a position need not be neighbors.
        found.repeated = repeated_anywhere(&book, memory)?;
    }
    faults.extend(found.faults());
    Ok(VerifiedBook {
        faults,
        records,
        header_records,
        has_checksum: checksum.is_some(),
    })
}

/// Repairs a book by writing a copy of it without its faults. `memory` is the memory budget for sorting.
///
/// Records are sorted, and records without a valid move are dropped. If several records have the same key and move,
/// only the one with the greatest weight is kept; the greatest `learn` breaks ties. A well-formed header is copied, but
/// a malformed header is dropped. If the checksum in the header matches the old book, the checksum of the new book
/// replaces it. If the checksum does not match, the new header has no checksum, because a new checksum would hide the
/// damage.
///
/// # Errors
///
/// Returns an error if the file cannot be read or is not a book, or if the output or a temporary file cannot be
/// written. In case of an error, the target of `file` is unchanged.
pub fn fix(path: impl AsRef<Path>, mut file: AtomicFile, memory: &Memory) -> Result<()> {
    let out = &file.target().to_owned();
    let book = FaultyBook::open(path.as_ref())?;
    let mut sorter = TextSorter::new(memory.clone(), None);
    let mut sum = Checksum::default();
    for record in book.records() {
        let (_, entry) = record?;
        sum.add_short(&entry.to_bytes());
        if entry.key != 0 && (book.is_move)(entry.mv) {
            sorter.push(&heaviest_first(entry).to_be_bytes())?;
        }
    }
    // A malformed header is left out.
    let text = book.null.text().ok();
    let text = text.filter(|text| header::parse(text).is_ok());
    let text = text.map(|text| match book.checksum_matches(sum) {
        Some(false) => split_checksum(text).0,
        _ => text,
    });
    let mut writer = BookWriter::begin(&mut file, text, &memory.temp_dir)?;
    let mut position: Vec<Entry> = Vec::new();
    for record in sorter.sorted() {
        let entry = from_heaviest_first(number(&record?));
        if position.first().is_some_and(|first| first.key != entry.key) {
            write_position(&mut position, &mut writer).at(out, "write")?;
        }
        if position.last().is_none_or(|last| last.mv != entry.mv) {
            position.push(entry);
        }
    }
    write_position(&mut position, &mut writer).at(out, "write")?;
    writer.finish()?;
    file.commit()
}

/// An open book that may have faults and is to be checked or repaired.
struct FaultyBook {
    book: Book,
    null: NullRecords,
    /// Returns `true` if a move is possible in some position of the book's variants.
    is_move: fn(BookMove) -> bool,
    /// The number of bytes after the last whole record.
    rest: usize,
}

impl FaultyBook {
    fn open(path: &Path) -> Result<FaultyBook> {
        let (book, rest) = Book::open_with_rest(path)?;
        let null = book.null_records()?;
        Ok(FaultyBook {
            is_move: move_check(null.text().and_then(header::parse).ok()),
            book,
            null,
            rest,
        })
    }

    /// Returns `true` if the checksum in the header is correct, or `None` if the header has no checksum. `records` is
    /// the checksum of the book's records. The checksum in the header also covers the text of the header.
    fn checksum_matches(&self, records: Checksum) -> Option<bool> {
        let text = self.null.text().ok()?;
        split_checksum(text).1?;
        Some(renewed(text, records) == text)
    }

    /// Returns an iterator over the records after the header, each with its index in the book.
    fn records(&self) -> impl Iterator<Item = Result<(u64, Entry)>> {
        let first = self.null.size / Entry::SIZE as u64;
        let records = (0..).zip(&self.book);
        // Errors are passed on, even if they occurred in the header.
        let records = records.filter(move |(index, entry)| *index >= first || entry.is_err());
        records.map(|(index, entry)| Ok((index, entry?)))
    }
}

/// Returns a function that checks the moves of a book with the header `header`. The returned function takes a move and
/// returns `true` if some position of the header's variants allows the move. Drops and promotions to a king are
/// accepted only if the header lists a variant other than standard chess and Chess960.
pub(super) fn move_check(header: Option<Header>) -> fn(BookMove) -> bool {
    let chess = [Variant::Standard, Variant::Chess960].map(Variant::name);
    let is_for_variants = header.is_some_and(|header| {
        let mut variants = header.variants.iter();
        variants.any(|name| !chess.contains(&name.as_str()))
    });
    if is_for_variants {
        BookMove::is_possible
    } else {
        |mv| mv.is_possible() && mv.is_well_formed_in_chess()
    }
}

/// A collector that finds the faults of a book's records while the records are read.
#[derive(Default)]
struct RecordFaults {
    order: FaultyRecords,
    null: FaultyRecords,
    /// The records that repeat a move of their position. Some may be missing if the keys do not ascend.
    repeated: FaultyRecords,
    moves: FaultyRecords,
    last_key: u64,
    /// The number of the current position, counted from 1.
    position: u64,
    /// For each move, the number of the last position that had it.
    seen: Vec<u64>,
}

impl RecordFaults {
    fn new() -> RecordFaults {
        RecordFaults {
            position: 1,
            seen: vec![0; 1 << 16],
            ..RecordFaults::default()
        }
    }

    fn record(&mut self, index: u64, entry: Entry, is_move: fn(BookMove) -> bool) {
        if entry.key < self.last_key {
            self.order.note(index);
        }
        if entry.key == 0 {
            self.null.note(index);
        }
        if !is_move(entry.mv) {
            self.moves.note(index);
        }
        self.position += u64::from(entry.key != self.last_key);
        let last = &mut self.seen[usize::from(entry.mv.0)];
        if mem::replace(last, self.position) == self.position {
            self.repeated.note(index);
        }
        self.last_key = entry.key;
    }

    fn faults(self) -> impl Iterator<Item = BookFault> {
        let fault = |records: FaultyRecords, fault: fn(FaultyRecords) -> BookFault| {
            (records.count > 0).then(|| fault(records))
        };
        let faults = [
            fault(self.order, BookFault::Order),
            fault(self.null, BookFault::StrayNull),
            fault(self.repeated, BookFault::Twice),
            fault(self.moves, BookFault::Move),
        ];
        faults.into_iter().flatten()
    }
}

/// Finds the records that repeat a move of their position. Also works for a damaged book in which the records of a
/// position are not adjacent.
fn repeated_anywhere(book: &FaultyBook, memory: &Memory) -> Result<FaultyRecords> {
    let mut sorter = TextSorter::new(memory.clone(), None);
    for record in book.records() {
        let (index, Entry { key, mv, .. }) = record?;
        let number = u128::from(key) << 64 | u128::from(mv.0) << 48 | u128::from(index);
        sorter.push(&number.to_be_bytes())?;
    }
    let mut repeated = FaultyRecords::default();
    let mut last = None;
    for record in sorter.sorted() {
        let record = number(&record?);
        let key_and_move = record >> 48;
        if last.replace(key_and_move) == Some(key_and_move) {
            repeated.note(record as u64 & INDEX_MASK);
        }
    }
    Ok(repeated)
}

/// Decodes a 128-bit number from `bytes`, the 16 bytes in big-endian order that the sorter returns.
fn number(bytes: &[u8]) -> u128 {
    u128::from_be_bytes(*bytes.first_chunk().expect("all texts are numbers"))
}

/// A mask of the low 48 bits of the numbers that [`repeated_anywhere`] sorts. These bits contain the index of a record,
/// and are enough for a book of 4 petabytes.
const INDEX_MASK: u64 = (1 << 48) - 1;

/// Encodes a record as a number. Sorting these numbers sorts the records by key, then by move, then by descending
/// weight, and then by descending `learn`.
fn heaviest_first(entry: Entry) -> u128 {
    u128::from_be_bytes(entry.to_bytes()) ^ u128::from(BELOW_MOVE_MASK)
}

/// Decodes the record from a number that [`heaviest_first`] returned.
fn from_heaviest_first(record: u128) -> Entry {
    Entry::from_bytes((record ^ u128::from(BELOW_MOVE_MASK)).to_be_bytes())
}

/// A mask of the low 48 bits of a record that is encoded as a number. They contain the weight and the field `learn`.
/// The higher bits contain the key and the move.
const BELOW_MOVE_MASK: u64 = (1 << 48) - 1;

/// Writes the records of one position to `out`, sorted by weight in descending order, and clears `entries`.
fn write_position(entries: &mut Vec<Entry>, out: &mut impl Write) -> io::Result<()> {
    entries.sort_by_key(|entry| Reverse(entry.weight));
    write_entries(entries, out)?;
    entries.clear();
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;
    use crate::formats::book::begin_book;

    fn record(key: u64, mv: u16, weight: u16, learn: u32) -> [u8; Entry::SIZE] {
        let entry = Entry {
            key,
            mv: BookMove(mv),
            weight,
            learn,
        };
        entry.to_bytes()
    }

    fn bytes(entries: &[(u64, u16)]) -> Vec<u8> {
        let record = |(key, mv): &(u64, u16)| record(*key, *mv, 1, 0);
        entries.iter().flat_map(record).collect()
    }

    /// Returns the faults of a file with these bytes. Checks that they are equal with all memory and with none.
    fn faults_of(bytes: &[u8]) -> Vec<BookFault> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("book.bin");
        fs::write(&path, bytes).unwrap();
        let found = verify(&path, &Memory::default()).unwrap();
        assert_eq!(verify(&path, &none()).unwrap(), found);
        found.faults
    }

    fn none() -> Memory {
        Memory {
            bytes: 0,
            ..Memory::default()
        }
    }

    fn fixed(bytes: &[u8], memory: &Memory) -> Vec<u8> {
        let dir = tempfile::tempdir().unwrap();
        let (path, out) = (dir.path().join("book.bin"), dir.path().join("fixed.bin"));
        fs::write(&path, bytes).unwrap();
        fix(&path, begin_book(&out, false).unwrap(), memory).unwrap();
        fs::read(out).unwrap()
    }

    #[test]
    fn messages_about_one_record_are_singular() {
        let order = |count| BookFault::Order(FaultyRecords { count, first: 7 }).to_string();
        assert_eq!(
            order(1),
            "record 7 has a smaller key than the record before it"
        );
        assert_eq!(
            order(2),
            "2 records, beginning with record 7, have smaller keys than the records before them"
        );
        assert_eq!(
            BookFault::Size { rest: 1 }.to_string(),
            "the size of the book is not a multiple of 16: 1 byte follows the last whole record"
        );
    }

    #[test]
    fn each_fault_is_found() {
        assert_eq!(faults_of(&bytes(&[(1, 1), (1, 2), (2, 1)])), []);
        assert_eq!(faults_of(&[]), []);
        assert_eq!(faults_of(&[0; 3]), [BookFault::Size { rest: 3 }]);
        assert_eq!(
            faults_of(&bytes(&[(2, 1), (1, 1)])),
            [BookFault::Order(FaultyRecords { count: 1, first: 1 })]
        );
        assert_eq!(
            faults_of(&bytes(&[(1, 1), (1, 2), (1, 1)])),
            [BookFault::Twice(FaultyRecords { count: 1, first: 2 })]
        );
        assert_eq!(
            faults_of(&bytes(&[(1, 0), (2, 0x7001), (3, 1), (4, 1)])),
            [BookFault::Move(FaultyRecords { count: 2, first: 0 })]
        );
        let null = faults_of(&bytes(&[(1, 1), (0, 1)]));
        assert!(
            null.contains(&BookFault::StrayNull(FaultyRecords { count: 1, first: 1 })),
            "{null:?}"
        );
        let header = header::create_raw("@PG@\n1.0\nx");
        assert!(matches!(faults_of(&header)[..], [BookFault::Header(_)]));
        let good = header::create_raw(&header::create(&["normal"], "x").unwrap());
        assert_eq!(faults_of(&[good, bytes(&[(1, 1)])].concat()), []);
    }

    #[test]
    fn every_damaged_byte_of_a_book_with_a_checksum_is_found() {
        let records = [record(1, 1, 5, 0), record(1, 2, 4, 0), record(9, 1, 5, 7)].concat();
        let mut sum = Checksum::default();
        records.as_chunks::<16>().0.iter().for_each(|r| sum.add(r));
        let text = header::create(&["normal"], &header::with_checksum("made by a test")).unwrap();
        let text = renewed(&text, sum);
        let book = [header::create_raw(&text), records].concat();
        assert_eq!(faults_of(&book), []);
        let line = text.rfind("\nChecksum").unwrap();
        // Changing a byte of this word is not found, because the header has no checksum without the word.
        let of_word =
            |at: usize| (line..line + 11).contains(&(at / 16 * 8 + at % 8)) && at % 16 >= 8;
        for at in (0..book.len()).filter(|at| !of_word(*at)) {
            for bit in 0..8 {
                let mut damaged = book.clone();
                damaged[at] ^= 1 << bit;
                assert!(!faults_of(&damaged).is_empty(), "bit {bit} of byte {at}");
            }
        }
    }

    #[test]
    fn fixing_does_not_make_damage_good() {
        let text = header::create(&["normal"], &header::with_checksum("x")).unwrap();
        let one = record(1, 1, 5, 0);
        let mut sum = Checksum::default();
        sum.add(&one);
        let header = |text: &str| header::create_raw(text);
        let whole = [&header(&renewed(&text, sum))[..], &one].concat();
        assert_eq!(fixed(&whole, &none()), whole);
        let other = record(1, 1, 6, 0);
        let damaged = [&header(&renewed(&text, sum))[..], &other].concat();
        let expected = [&header("@PG@\n1.0\n2\n1\nnormal\nx")[..], &other].concat();
        assert_eq!(fixed(&damaged, &none()), expected);
    }

    #[test]
    fn data_of_which_most_records_are_no_moves_is_not_a_book() {
        let dir = tempfile::tempdir().unwrap();
        let (path, out) = (dir.path().join("book.bin"), dir.path().join("fixed.bin"));
        // From a1, a knight can move to b3 and a king to b1, but no piece can move to c4 or f2.
        for (moves, is_book) in [
            (vec![17, 1, 26], true),
            (vec![17, 26], true),
            (vec![17, 26, 13], false),
            (vec![26], false),
        ] {
            for times in [1, 22, 100] {
                let entries: Vec<(u64, u16)> = (1..).zip(moves.repeat(times)).collect();
                fs::write(&path, bytes(&entries)).unwrap();
                let verified = verify(&path, &Memory::default());
                let fixed = fix(&path, begin_book(&out, false).unwrap(), &Memory::default());
                let opened = [Book::open(&path), Book::open_within(&path, u64::MAX)];
                assert_eq!((verified.is_ok(), fixed.is_ok()), (is_book, is_book));
                assert!(opened.iter().all(|opened| opened.is_ok() == is_book));
                if let Err(err) = fixed {
                    assert!(err.to_string().contains("no possible move"), "{err}");
                }
                assert_eq!(out.exists(), is_book);
                // The file exists only if the book was fixed.
                let _ = fs::remove_file(&out);
            }
        }
    }

    #[test]
    fn moves_repeated_far_apart_are_found() {
        let mut entries: Vec<(u64, u16)> = (1..=1000).rev().map(|key| (key << 40, 1)).collect();
        entries.extend([(500 << 40, 1), (900 << 40, 1), (1 << 40, 2)]);
        let found = faults_of(&bytes(&entries));
        let twice = BookFault::Twice(FaultyRecords {
            count: 2,
            first: 1000,
        });
        assert!(found.contains(&twice), "{found:?}");
    }

    #[test]
    fn positions_of_all_moves_there_are() {
        let mut entries: Vec<(u64, u16)> = (0..=u16::MAX).map(|mv| (7, mv)).collect();
        entries.extend([(7, 3), (7, 40_000), (8, 3), (8, 40_000), (8, 3)]);
        // The header is needed: `verify` refuses a file without a header if most of its moves are impossible.
        let header = header::create_raw("all moves");
        let header_records = header.len() as u64 / 16;
        let found = faults_of(&[header, bytes(&entries)].concat());
        let twice = BookFault::Twice(FaultyRecords {
            count: 3,
            first: header_records + (1 << 16),
        });
        assert!(found.contains(&twice), "{found:?}");
    }

    #[test]
    fn the_heaviest_of_equal_moves_stays() {
        let book = [
            record(1, 1, 5, 0),
            record(1, 1, 9, 3),
            record(1, 1, 9, 4),
            record(1, 2, 20, 0),
        ];
        let expected = [record(1, 2, 20, 0), record(1, 1, 9, 4)];
        assert_eq!(fixed(&book.concat(), &none()), expected.concat());
    }

    #[test]
    fn a_file_that_is_no_book_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let (path, out) = (dir.path().join("games.pgn"), dir.path().join("out.bin"));
        fs::write(&path, "[Event \"x\"]\n\n1. e4 e5 *\n").unwrap();
        let err = verify(&path, &none()).unwrap_err().to_string();
        assert!(err.contains("this is PGN, not a Polyglot book"), "{err}");
        assert!(fix(&path, begin_book(&out, false).unwrap(), &none()).is_err());
        assert!(!out.exists());
    }

    /// Finds repeated moves in a simple way, to compare with [`faults`].
    fn repeated(entries: &[(u64, u16)]) -> Option<BookFault> {
        let mut seen = std::collections::HashSet::new();
        let places: Vec<usize> = (0..entries.len())
            .filter(|i| !seen.insert(entries[*i]))
            .collect();
        let first = *places.first()? as u64;
        Some(BookFault::Twice(FaultyRecords {
            count: places.len() as u64,
            first,
        }))
    }

    proptest! {
        #[test]
        fn repeated_moves_are_counted_in_any_order(
            mut entries in proptest::collection::vec((1..9u64, 1..8u16), 0..200), is_sorted: bool,
        ) {
            if is_sorted {
                entries.sort_by_key(|entry| entry.0);
            }
            let found = faults_of(&bytes(&entries));
            let twice = found.into_iter().find(|fault| matches!(fault, BookFault::Twice(_)));
            prop_assert_eq!(twice, repeated(&entries));
        }

        #[test]
        fn a_fixed_book_has_no_faults(
            header in proptest::option::of("[a-z\n]{0,30}"),
            entries in proptest::collection::vec((0..9u64, prop_oneof![3 => 1..4u16, 1 => any::<u16>()]), 0..40),
            // The bytes are not ASCII, because a file that is a single line of text would be refused as text.
            rest in proptest::collection::vec(0x80u8.., 0..16),
        ) {
            let header = header.map_or(Vec::new(), |text| header::create_raw(&text));
            let with_keys = entries.iter().filter(|(key, _)| *key != 0);
            let are_moves = with_keys.map(|(_, mv)| BookMove(*mv).is_possible());
            let (moves, impossible): (Vec<bool>, Vec<bool>) = are_moves.partition(|is_move| *is_move);
            prop_assume!(!header.is_empty() || impossible.len() <= moves.len());
            let book = [header, bytes(&entries), rest].concat();
            let fixed_book = fixed(&book, &Memory::default());
            prop_assert_eq!(fixed(&book, &none()), &fixed_book[..]);
            prop_assert_eq!(faults_of(&fixed_book), []);
        }
    }
}

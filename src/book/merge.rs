//! Merging books.

use std::{
    cmp::{Ordering, Reverse},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use super::{
    entry::Entry,
    foreign::check_replaceable,
    header::{self, HeaderError},
    open::{Book, Records},
    weight::Scaling,
};
use crate::{
    error::{At, Error, Result},
    output::AtomicFile,
    progress::Meter,
    sort::Merge,
};

/// What to do with a position that several books know.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum MergePolicy {
    /// It gets the moves of all of them, and a move that several know gets the sum of its weights.
    #[default]
    Sum,
    /// It gets the moves of the first book that knows it, and no others.
    First,
}

/// What a merge did.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct MergeSummary {
    /// Records read, headers aside.
    pub read: u64,
    /// Records written, the header aside.
    pub written: u64,
    /// Positions whose weights had to be scaled down.
    pub scaled: u64,
}

/// Records that are counted together.
const STEP: u64 = 1 << 12;

/// Merges books, reading all of them once from start to end. Weights whose sum passes 65535 are
/// scaled down with those of the same position; `learn` is that of the first book that knows the move.
/// The header of the result names the variants of all. `meter` tells how far it has come.
///
/// # Errors
///
/// A book that cannot be read, is not sorted or cut short, or an output that cannot be written; the
/// output stays as it was then.
pub fn merge_books(
    inputs: &[PathBuf],
    out: &Path,
    policy: MergePolicy,
    meter: &Meter,
) -> Result<MergeSummary> {
    let books = inputs.iter().map(Book::open).collect::<Result<Vec<_>>>()?;
    let header = merged_header(&books, out)?;
    let mut file = AtomicFile::create_over(out, |old| check_replaceable(old, false))?;
    let mut merger = Merger {
        policy,
        position: Position::default(),
        writer: BufWriter::with_capacity(1 << 16, &mut file),
        summary: MergeSummary::default(),
    };
    let written = merger.writer.write_all(&header::create_raw(&header));
    written.at(out, "write")?;
    meter.expect(books.iter().map(Book::len).sum());
    let records = books.iter().enumerate();
    for record in Merge::new(records.map(|(number, book)| Ordered::new(number, book))) {
        merger.take(record?).at(out, "write")?;
        if merger.summary.read.is_multiple_of(STEP) {
            meter.advance(STEP);
        }
    }
    let summary = merger.finish().at(out, "write")?;
    file.commit()?;
    Ok(summary)
}

/// Writes the records of all books, which it takes in the order of their keys.
struct Merger<W> {
    policy: MergePolicy,
    position: Position,
    writer: W,
    summary: MergeSummary,
}

impl<W: Write> Merger<W> {
    fn take(&mut self, record: Numbered) -> io::Result<()> {
        self.summary.read += 1;
        if self.position.key() != Some(record.entry.key) {
            self.end_position()?;
        }
        let is_of_first = self
            .position
            .first
            .is_none_or(|first| first.book == record.book);
        if self.policy == MergePolicy::Sum || is_of_first {
            self.position.add(record);
        }
        Ok(())
    }

    fn end_position(&mut self) -> io::Result<()> {
        let (entries, is_scaled) = self.position.take_entries();
        self.summary.scaled += u64::from(is_scaled);
        self.summary.written += entries.len() as u64;
        for entry in entries {
            self.writer.write_all(&entry.to_bytes())?;
        }
        Ok(())
    }

    fn finish(mut self) -> io::Result<MergeSummary> {
        self.end_position()?;
        self.writer.flush()?;
        Ok(self.summary)
    }
}

/// The records of one position, from all books.
#[derive(Default)]
struct Position {
    /// The first record, from the first book that knows the position.
    first: Option<Numbered>,
    /// Records, each with its weight or the sum of several.
    sums: Vec<(Entry, u64)>,
    /// How many of them are of different moves, in the order of moves.
    folded: usize,
}

impl Position {
    fn key(&self) -> Option<u64> {
        self.first.map(|first| first.entry.key)
    }

    fn add(&mut self, record: Numbered) {
        self.first.get_or_insert(record);
        // However often moves are repeated, there are no more than so many.
        if self.sums.len() >= (2 * self.folded).max(1024) {
            self.fold();
        }
        self.sums.push((record.entry, record.entry.weight.into()));
    }

    /// Adds up the weights of equal moves.
    fn fold(&mut self) {
        // A stable sort: of equal moves, that of the first book comes first.
        self.sums.sort_by_key(|(entry, _)| entry.mv);
        self.sums.dedup_by(|(entry, weight), (first, sum)| {
            let is_same = entry.mv == first.mv;
            if is_same {
                *sum += *weight;
            }
            is_same
        });
        self.folded = self.sums.len();
    }

    /// The records of the merged book in its order, and whether their weights had to be scaled.
    fn take_entries(&mut self) -> (Vec<Entry>, bool) {
        self.fold();
        self.folded = 0;
        self.first = None;
        let largest = self.sums.iter().map(|(_, sum)| *sum).max().unwrap_or(0);
        let scaling = Scaling::new(largest);
        let scaled = self.sums.drain(..).map(|(entry, sum)| Entry {
            // A move that is never to be played stays so.
            weight: if sum == 0 { 0 } else { scaling.apply(sum) },
            ..entry
        });
        let mut entries: Vec<Entry> = scaled.collect();
        entries.sort_by_key(|entry| Reverse(entry.weight));
        (entries, largest > u64::from(u16::MAX))
    }
}

/// The header of the result: the variants of all books, and which books they were.
fn merged_header(books: &[Book], out: &Path) -> Result<String> {
    let mut united: Vec<String> = Vec::new();
    for book in books {
        for variant in variants(book)? {
            if !united.contains(&variant) {
                united.push(variant);
            }
        }
    }
    let names: Vec<String> = books
        .iter()
        .map(|book| {
            let path = book.path();
            let name = path.file_name().unwrap_or(path.as_os_str());
            name.to_string_lossy().replace(char::is_control, "?")
        })
        .collect();
    let mut comment = format!("Merged by polybook {} from", env!("CARGO_PKG_VERSION"));
    for (i, name) in names.iter().enumerate() {
        if comment.len() + name.len() > 1500 {
            comment.push_str(&format!(" and {} more", names.len() - i));
            break;
        }
        comment.push_str(if i == 0 { " " } else { ", " });
        comment.push_str(name);
    }
    header::create(&united, &comment).map_err(|source| Error::format(out, source))
}

/// A record and the number of its book. Records compare by key.
#[derive(Copy, Clone, Debug)]
struct Numbered {
    entry: Entry,
    book: usize,
}

impl Ord for Numbered {
    fn cmp(&self, other: &Numbered) -> Ordering {
        self.entry.key.cmp(&other.entry.key)
    }
}

impl PartialOrd for Numbered {
    fn partial_cmp(&self, other: &Numbered) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Numbered {
    fn eq(&self, other: &Numbered) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Numbered {}

/// The records of a book without its header. A record out of order is an error.
struct Ordered<'a> {
    number: usize,
    book: &'a Book,
    records: Records<'a>,
    last_key: u64,
}

impl<'a> Ordered<'a> {
    fn new(number: usize, book: &'a Book) -> Ordered<'a> {
        Ordered {
            number,
            book,
            records: book.iter(),
            last_key: 0,
        }
    }
}

impl Iterator for Ordered<'_> {
    type Item = Result<Numbered>;

    fn next(&mut self) -> Option<Result<Numbered>> {
        loop {
            let entry = match self.records.next()? {
                Ok(entry) => entry,
                Err(err) => return Some(Err(err)),
            };
            if entry.key < self.last_key {
                return Some(Err(self.book.unsorted()));
            }
            self.last_key = entry.key;
            if entry.key != 0 {
                let book = self.number;
                return Some(Ok(Numbered { entry, book }));
            }
        }
    }
}

/// The variants that a book's header names. A book without a header is for normal chess.
fn variants(book: &Book) -> Result<Vec<String>> {
    match book.header() {
        Ok(header) => Ok(header.variants),
        Err(err) if err.carried() == Some(&HeaderError::NoHeader) => Ok(vec!["normal".to_owned()]),
        Err(err) => Err(err),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::position::BookMove;

    fn entry(key: u64, mv: u16, weight: u16, learn: u32) -> Entry {
        Entry {
            key,
            mv: BookMove(mv),
            weight,
            learn,
        }
    }

    fn merged(books: &[Vec<Entry>], policy: MergePolicy) -> (Vec<Entry>, MergeSummary) {
        let dir = tempfile::tempdir().unwrap();
        let mut paths = Vec::new();
        for (i, entries) in books.iter().enumerate() {
            let path = dir.path().join(format!("{i}.bin"));
            let bytes: Vec<u8> = entries.iter().flat_map(|entry| entry.to_bytes()).collect();
            std::fs::write(&path, bytes).unwrap();
            paths.push(path);
        }
        let out = dir.path().join("out.bin");
        let summary = merge_books(&paths, &out, policy, &Meter::default()).unwrap();
        let book = Book::open(&out).unwrap();
        assert_eq!(book.header().unwrap().variants, ["normal"]);
        (
            book.iter()
                .map(|entry| entry.unwrap())
                .filter(|entry| entry.key != 0)
                .collect(),
            summary,
        )
    }

    #[test]
    fn weights_add_up() {
        let a = vec![entry(1, 5, 10, 1), entry(3, 5, 1, 0)];
        let b = vec![entry(1, 4, 15, 0), entry(1, 5, 7, 2), entry(2, 1, 0, 0)];
        let (found, summary) = merged(&[a.clone(), b.clone()], MergePolicy::Sum);
        let expected = [
            entry(1, 5, 17, 1),
            entry(1, 4, 15, 0),
            entry(2, 1, 0, 0),
            entry(3, 5, 1, 0),
        ];
        assert_eq!(found, expected);
        assert_eq!(
            summary,
            MergeSummary {
                read: 5,
                written: 4,
                scaled: 0
            }
        );
        let (found, _) = merged(&[a.clone(), b], MergePolicy::First);
        assert_eq!(
            found,
            [entry(1, 5, 10, 1), entry(2, 1, 0, 0), entry(3, 5, 1, 0)]
        );
    }

    #[test]
    fn sums_too_large_scale_their_position() {
        let a = vec![
            entry(1, 5, 60_000, 0),
            entry(1, 6, 1, 0),
            entry(2, 5, 60_000, 0),
        ];
        let b = vec![entry(1, 5, 60_000, 0)];
        let (found, summary) = merged(&[a, b], MergePolicy::Sum);
        assert_eq!(
            found,
            [
                entry(1, 5, 65_535, 0),
                entry(1, 6, 1, 0),
                entry(2, 5, 60_000, 0)
            ]
        );
        assert_eq!(summary.scaled, 1);
    }

    #[test]
    fn moves_repeated_without_end_are_folded() {
        let repeated: Vec<Entry> = (0..200_000u32)
            .map(|i| entry(1, (i % 3) as u16, 1, 0))
            .collect();
        let mut position = Position::default();
        for entry in repeated {
            position.add(Numbered { entry, book: 0 });
            assert!(position.sums.len() <= 1024);
        }
        let (entries, is_scaled) = position.take_entries();
        assert_eq!(
            entries,
            [
                entry(1, 0, 65_535, 0),
                entry(1, 1, 65_535, 0),
                entry(1, 2, 65_534, 0)
            ]
        );
        assert!(is_scaled);
    }

    #[test]
    fn what_cannot_be_merged() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.bin");
        let out = dir.path().join("out.bin");
        for (bytes, expected) in [
            (b"x".to_vec(), "multiple of 16"),
            (
                [entry(2, 1, 1, 0).to_bytes(), entry(1, 1, 1, 0).to_bytes()].concat(),
                "not sorted",
            ),
        ] {
            std::fs::write(&path, bytes).unwrap();
            let err = merge_books(
                std::slice::from_ref(&path),
                &out,
                MergePolicy::Sum,
                &Meter::default(),
            )
            .unwrap_err();
            assert!(err.to_string().contains(expected), "{err}");
            assert!(!out.exists());
        }
    }

    fn books() -> impl Strategy<Value = Vec<Vec<Entry>>> {
        let entries = proptest::collection::vec((1..6u64, 0..4u16, 0..1000u16), 0..12);
        let book = entries.prop_map(|mut entries| {
            entries.sort_unstable();
            let make = |(key, mv, weight)| entry(key, mv, weight, 0);
            entries.into_iter().map(make).collect()
        });
        proptest::collection::vec(book, 1..4)
    }

    proptest! {
        #[test]
        fn the_order_of_books_does_not_matter(mut books in books()) {
            let (forth, _) = merged(&books, MergePolicy::Sum);
            books.reverse();
            let (back, _) = merged(&books, MergePolicy::Sum);
            prop_assert_eq!(forth, back);
        }
    }
}

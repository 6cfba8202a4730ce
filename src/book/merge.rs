//! Merging books.

use std::{
    fs::File,
    io::{BufReader, BufWriter, Read, Write},
    path::{Path, PathBuf},
};

use super::{
    entry::Entry,
    header::{self, Header, HeaderError},
    weight::Scaling,
};
use crate::{
    error::{At, Error, Result},
    output::AtomicFile,
};

/// What becomes of a position that several books know.
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

/// Merges books, reading all of them once from start to end. Weights whose sum passes 65535 are
/// scaled down with those of the same position; `learn` is that of the first book that knows the move.
/// The header of the result names the variants of all.
///
/// # Errors
///
/// A book that cannot be read, is not sorted or cut short, or an output that cannot be written; there
/// is none then.
pub fn merge(inputs: &[PathBuf], out: &Path, policy: MergePolicy) -> Result<MergeSummary> {
    let mut books = Vec::with_capacity(inputs.len());
    for path in inputs {
        books.push(Source::open(path)?);
    }
    let mut file = AtomicFile::create(out)?;
    let header = merged_header(inputs, &books).map_err(|source| Error::format(out, source))?;
    let mut writer = BufWriter::with_capacity(1 << 16, &mut file);
    writer
        .write_all(&header::create_raw(&header))
        .at(out, "write")?;

    let mut summary = MergeSummary::default();
    let mut entries: Vec<Entry> = Vec::new();
    while let Some(key) = books.iter().filter_map(Source::key).min() {
        entries.clear();
        for book in &mut books {
            if book.key() != Some(key) {
                continue;
            }
            let known = policy == MergePolicy::First && !entries.is_empty();
            while let Some(entry) = book.next.filter(|entry| entry.key == key) {
                summary.read += 1;
                if !known {
                    entries.push(entry);
                }
                book.advance()?;
            }
        }
        summary.scaled += u64::from(add_up(&mut entries));
        summary.written += entries.len() as u64;
        for entry in &entries {
            writer.write_all(&entry.to_bytes()).at(out, "write")?;
        }
    }
    writer.flush().at(out, "write")?;
    drop(writer);
    file.commit()?;
    Ok(summary)
}

/// Adds up the weights of equal moves of a position and puts its records in order; tells whether they
/// had to be scaled.
fn add_up(entries: &mut Vec<Entry>) -> bool {
    // A stable sort: of equal moves, that of the first book comes first.
    entries.sort_by_key(|entry| entry.mv);
    let mut sums: Vec<(Entry, u64)> = Vec::with_capacity(entries.len());
    for entry in entries.drain(..) {
        match sums.last_mut() {
            Some((last, sum)) if last.mv == entry.mv => *sum += u64::from(entry.weight),
            _ => sums.push((entry, u64::from(entry.weight))),
        }
    }
    let largest = sums.iter().map(|(_, sum)| *sum).max().unwrap_or(0);
    let scaling = Scaling::new(largest);
    entries.extend(sums.into_iter().map(|(entry, sum)| Entry {
        // What was never to be played stays so.
        weight: if sum == 0 { 0 } else { scaling.apply(sum) },
        ..entry
    }));
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.weight));
    largest > u64::from(u16::MAX)
}

/// The variants of all books, and which books they were.
fn merged_header(paths: &[PathBuf], books: &[Source]) -> Result<String, HeaderError> {
    let mut variants: Vec<String> = Vec::new();
    for book in books {
        for variant in &book.variants {
            if !variants.contains(variant) {
                variants.push(variant.clone());
            }
        }
    }
    let names: Vec<String> = paths
        .iter()
        .map(|path| {
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
    header::create(&variants, &comment)
}

/// A book being read.
struct Source {
    path: PathBuf,
    book: BufReader<File>,
    variants: Vec<String>,
    next: Option<Entry>,
    last_key: u64,
}

impl Source {
    fn open(path: &Path) -> Result<Source> {
        let variants = match header::read(path) {
            Ok(text) => match header::parse(&text) {
                Ok(Header { variants, .. }) => variants,
                Err(source) => {
                    return Err(Error::format(path, source));
                }
            },
            // A book without a header is for normal chess.
            Err(err) if err.carried() == Some(&HeaderError::NoHeader) => vec!["normal".to_owned()],
            Err(err) => return Err(err),
        };
        let file = File::open(path).at(path, "open")?;
        let mut source = Source {
            path: path.to_owned(),
            book: BufReader::with_capacity(1 << 16, file),
            variants,
            next: None,
            last_key: 0,
        };
        source.advance()?;
        while source.next.is_some_and(|entry| entry.key == 0) {
            source.advance()?;
        }
        Ok(source)
    }

    fn key(&self) -> Option<u64> {
        self.next.map(|entry| entry.key)
    }

    fn advance(&mut self) -> Result<()> {
        let mut record = Vec::with_capacity(Entry::SIZE);
        (&mut self.book)
            .take(Entry::SIZE as u64)
            .read_to_end(&mut record)
            .at(&self.path, "read")?;
        self.next = match <[u8; Entry::SIZE]>::try_from(record) {
            Ok(bytes) => Some(Entry::from_bytes(bytes)),
            Err(rest) if rest.is_empty() => None,
            Err(_) => {
                return Err(Error::file(
                    &self.path,
                    "is no Polyglot book, or was cut short: its size is not a multiple of 16",
                ));
            }
        };
        let key = self.key().unwrap_or(u64::MAX);
        if key < self.last_key {
            return Err(Error::file(
                &self.path,
                "is not sorted: mend it with polybook verify --fix",
            ));
        }
        self.last_key = key;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{book::Book, position::BookMove};

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
        let summary = merge(&paths, &out, policy).unwrap();
        let book = Book::open(&out).unwrap();
        assert_eq!(book.header().unwrap().variants, ["normal"]);
        (
            book.iter().filter(|entry| entry.key != 0).collect(),
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
            let err = merge(std::slice::from_ref(&path), &out, MergePolicy::Sum).unwrap_err();
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

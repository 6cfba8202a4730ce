//! Merging books.

use std::path::{Path, PathBuf};

use super::{
    file::BookFile,
    foreign::begin_book,
    header::{self, HeaderError, with_checksum},
    open::Book,
    positions::{MergePolicy, Positions},
    records::write_entries,
};
use crate::{
    error::{At, Error, Result},
    progress::Meter,
    task,
};

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
/// scaled down with those of the same position; `learn` is that of the first book that has the move.
/// The header of the result names the variants of all. `meter` shows the progress.
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
    let mut file = begin_book(out)?;
    let books = inputs.iter().map(Book::open).collect::<Result<Vec<_>>>()?;
    let header = joined_header(&books, "Merged", "", out)?;
    let temp_dir = std::env::temp_dir();
    let mut writer = BookFile::begin(&mut file, Some(&header), &temp_dir)?;
    let mut summary = MergeSummary::default();
    let mut positions = Positions::checked(&books, policy, meter)?;
    for position in &mut positions {
        task::fault("merge books");
        let (entries, is_scaled) = position?.into_entries();
        summary.scaled += u64::from(is_scaled);
        summary.written += entries.len() as u64;
        write_entries(&entries, &mut writer).at(out, "write")?;
    }
    summary.read = positions.read;
    writer.finish()?;
    file.commit()?;
    Ok(summary)
}

/// The header of a book made from others: the variants of all, the operation, the names of the books, and the
/// options.
pub(super) fn joined_header(
    books: &[Book],
    done: &str,
    options: &str,
    out: &Path,
) -> Result<String> {
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
    let mut comment = format!("{done} by polybook {} from", env!("CARGO_PKG_VERSION"));
    for (i, name) in names.iter().enumerate() {
        if comment.len() + name.len() > 1500 {
            comment.push_str(&format!(" and {} more", names.len() - i));
            break;
        }
        comment.push_str(if i == 0 { " " } else { ", " });
        comment.push_str(name);
    }
    if !options.is_empty() {
        comment.push_str(&format!("\nOptions: {options}"));
    }
    header::create(&united, &with_checksum(&comment)).map_err(|source| Error::format(out, source))
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
    use crate::{book::Entry, position::BookMove};

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

//! Iterating over the positions of several books, in the order of keys.

use std::{cmp::Reverse, iter::Peekable};

use super::{
    open::{Book, CheckedRecords},
    records::Entry,
    weight::Scaling,
};
use crate::{error::Result, position::BookMove, progress::Meter, sort::Merge};

/// The way in which the moves of a position that several books contain are merged.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum MergePolicy {
    /// The position gets the moves of all books. A move that several books contain gets the sum of its weights.
    #[default]
    Sum,
    /// The position gets only the moves of the first book that contains the position.
    First,
}

/// A position and its moves, each once, sorted by their 16-bit numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct PositionEntries {
    pub key: u64,
    /// For each move, its first record and the sum of the weights of all its records.
    pub sums: Vec<(Entry, u64)>,
}

impl PositionEntries {
    /// Replaces each move by the result of `spelled`, and adds up moves that become equal.
    pub(super) fn spell(&mut self, spelled: impl Fn(&Entry) -> BookMove) {
        for (entry, _) in &mut self.sums {
            entry.mv = spelled(entry);
        }
        add_up(&mut self.sums);
    }

    /// Returns the records of the position, the heaviest first, and whether weights were scaled down because a sum exceeds
    /// 65535.
    pub(super) fn into_entries(self) -> (Vec<Entry>, bool) {
        let largest = self.sums.iter().map(|(_, sum)| *sum).max().unwrap_or(0);
        let scaling = Scaling::new(largest);
        let scaled = self.sums.into_iter().map(|(entry, sum)| Entry {
            // A move of weight 0 is never played, so it must not get a weight by scaling.
            weight: if sum == 0 { 0 } else { scaling.apply(sum) },
            ..entry
        });
        let mut entries: Vec<Entry> = scaled.collect();
        entries.sort_by_key(|entry| Reverse(entry.weight));
        (entries, largest > u64::from(u16::MAX))
    }
}

/// An iterator over the positions of books, which reads their records once from start to end. A move with several records
/// gets the sum of their weights, and `learn` of the first.
pub(super) struct BookPositions<'a> {
    records: Peekable<Merge<'a, (u64, usize, Entry)>>,
    policy: MergePolicy,
    /// The number of records read so far, not counting those of headers.
    pub read: u64,
}

impl<'a> BookPositions<'a> {
    /// Creates an iterator over the positions of `books`. `meter` counts the records that are read.
    pub(super) fn new(
        books: impl IntoIterator<Item = &'a Book>,
        policy: MergePolicy,
        meter: &'a Meter,
    ) -> BookPositions<'a> {
        let records = books.into_iter().map(|book| book.sorted_records(meter));
        BookPositions::of_records(records.collect(), policy)
    }

    /// Creates an iterator for a command that writes the records to a new book. At the end, it returns an error if the
    /// checksum of a book does not match.
    pub(super) fn checked(
        books: &'a [Book],
        policy: MergePolicy,
        meter: &'a Meter,
    ) -> Result<BookPositions<'a>> {
        let records = books.iter().map(|book| book.checked_records(meter));
        let records = records.collect::<Result<_>>()?;
        Ok(BookPositions::of_records(records, policy))
    }

    fn of_records(books: Vec<CheckedRecords<'a>>, policy: MergePolicy) -> BookPositions<'a> {
        let numbered = books.into_iter().enumerate().map(|(number, records)| {
            let numbered = records.map(move |entry| entry.map(|entry| (entry.key, number, entry)));
            let is_null = |record: &Result<(u64, usize, Entry)>| {
                record.as_ref().is_ok_and(|(key, ..)| *key == 0)
            };
            numbered.skip_while(is_null)
        });
        BookPositions {
            records: Merge::new(numbered).peekable(),
            policy,
            read: 0,
        }
    }

    /// Takes the next record if its key is `key`, or any next record if `key` is `None`. Returns `None` if the next
    /// record has another key or there are no more records. If reading failed, takes and returns the error.
    fn next_of(&mut self, key: Option<u64>) -> Result<Option<(u64, usize, Entry)>> {
        let is_of_key = |record: &Result<(u64, usize, Entry)>| match (record, key) {
            (Ok((found, ..)), Some(key)) => *found == key,
            _ => true,
        };
        let record = self.records.next_if(is_of_key).transpose()?;
        self.read += u64::from(record.is_some());
        Ok(record)
    }

    fn next_position(&mut self) -> Result<Option<PositionEntries>> {
        let Some((key, first_book, first)) = self.next_of(None)? else {
            return Ok(None);
        };
        let mut sums = vec![(first, u64::from(first.weight))];
        while let Some((_, book, entry)) = self.next_of(Some(key))? {
            if self.policy == MergePolicy::Sum || book == first_book {
                // Adding up now bounds the memory if a damaged book repeats moves very often.
                if sums.len() == 2 * MOST_MOVES {
                    add_up(&mut sums);
                }
                sums.push((entry, entry.weight.into()));
            }
        }
        add_up(&mut sums);
        Ok(Some(PositionEntries { key, sums }))
    }
}

impl Iterator for BookPositions<'_> {
    type Item = Result<PositionEntries>;

    fn next(&mut self) -> Option<Result<PositionEntries>> {
        self.next_position().transpose()
    }
}

/// The number of different moves that 16 bits can hold, so an upper bound on the moves of a position.
const MOST_MOVES: usize = 1 << 16;

/// Adds up the weights of equal moves, and sorts by move.
fn add_up(sums: &mut Vec<(Entry, u64)>) {
    // The sort is stable, so the record of the first book comes first among equal moves.
    sums.sort_by_key(|(entry, _)| entry.mv);
    sums.dedup_by(|(entry, weight), (first, sum)| {
        let is_same = entry.mv == first.mv;
        if is_same {
            *sum += *weight;
        }
        is_same
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_repeated_without_end_are_added_up() {
        let entry = |mv, weight| Entry {
            key: 1,
            mv: BookMove(mv),
            weight,
            learn: 0,
        };
        let records = (0..200_000u32).map(|i| entry((i % 3) as u16, 1));
        let book = Book::from_bytes(records.flat_map(Entry::to_bytes).collect()).unwrap();
        let meter = Meter::default();
        let mut positions = BookPositions::new([&book], MergePolicy::Sum, &meter);
        let position = positions.next().unwrap().unwrap();
        let (entries, is_scaled) = position.into_entries();
        let expected = [entry(0, 65_535), entry(1, 65_535), entry(2, 65_534)];
        assert_eq!((&entries[..], is_scaled), (&expected[..], true));
        assert!(positions.next().is_none());
    }
}

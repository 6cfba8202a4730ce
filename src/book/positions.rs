//! The positions of several books, in the order of their keys, each with the records of all books.

use std::cmp::{Ordering, Reverse};

use super::{
    entry::Entry,
    open::{Book, CheckedRecords},
    weight::Scaling,
};
use crate::{error::Result, progress::Meter, sort::Merge};

/// Records that are counted together.
const STEP: u64 = 1 << 12;

/// What to do with a position of several books.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum MergePolicy {
    /// It gets the moves of all of them. A move of several books gets the sum of its weights.
    #[default]
    Sum,
    /// It gets the moves of the first book that has it, and no others.
    First,
}

/// A position and its moves, each once, in the order of their numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct PositionEntries {
    pub key: u64,
    /// The first record of each move, and the sum of the weights of all.
    pub sums: Vec<(Entry, u64)>,
}

impl PositionEntries {
    /// The records of a book that has the position so, the heaviest first, and whether sums were too large and all
    /// weights were scaled down.
    pub(super) fn into_entries(self) -> (Vec<Entry>, bool) {
        let largest = self.sums.iter().map(|(_, sum)| *sum).max().unwrap_or(0);
        let scaling = Scaling::new(largest);
        let scaled = self.sums.into_iter().map(|(entry, sum)| Entry {
            // A move of weight 0 is never played, and stays so.
            weight: if sum == 0 { 0 } else { scaling.apply(sum) },
            ..entry
        });
        let mut entries: Vec<Entry> = scaled.collect();
        entries.sort_by_key(|entry| Reverse(entry.weight));
        (entries, largest > u64::from(u16::MAX))
    }
}

/// The positions of books whose records are read once from start to end. A move that several records of a
/// position have gets the sum of their weights, and `learn` of the first.
pub(super) struct Positions<'a> {
    records: Merge<Ordered<'a>, Numbered>,
    policy: MergePolicy,
    meter: &'a Meter,
    /// The first record of the next position.
    next: Option<Numbered>,
    joined: Joined,
    /// How many records have been read, headers aside.
    pub read: u64,
}

impl<'a> Positions<'a> {
    /// `meter` counts the records that have been read.
    pub(super) fn new(
        books: impl IntoIterator<Item = &'a Book>,
        policy: MergePolicy,
        meter: &'a Meter,
    ) -> Positions<'a> {
        let records = books.into_iter().map(Book::unchecked_records);
        Positions::of_records(records.collect(), policy, meter)
    }

    /// The same for a command that writes the records again: a checksum that differs is an error at the end.
    pub(super) fn checked(
        books: &'a [Book],
        policy: MergePolicy,
        meter: &'a Meter,
    ) -> Result<Positions<'a>> {
        let records = books.iter().map(Book::checked_records);
        let records = records.collect::<Result<_>>()?;
        Ok(Positions::of_records(records, policy, meter))
    }

    fn of_records(
        books: Vec<CheckedRecords<'a>>,
        policy: MergePolicy,
        meter: &'a Meter,
    ) -> Positions<'a> {
        let ordered = books.into_iter().enumerate().map(|(number, records)| {
            meter.add_total(records.book().len());
            Ordered::new(number, records)
        });
        Positions {
            records: Merge::new(ordered),
            policy,
            meter,
            next: None,
            joined: Joined::default(),
            read: 0,
        }
    }

    fn read(&mut self) -> Result<Option<Numbered>> {
        let record = self.records.next().transpose()?;
        if record.is_some() {
            self.read += 1;
            if self.read.is_multiple_of(STEP) {
                self.meter.advance(STEP);
            }
        }
        Ok(record)
    }

    fn next_position(&mut self) -> Result<Option<PositionEntries>> {
        let first = match self.next.take() {
            Some(first) => first,
            None => match self.read()? {
                Some(first) => first,
                None => return Ok(None),
            },
        };
        self.joined.add(first);
        while let Some(record) = self.read()? {
            if record.entry.key != first.entry.key {
                self.next = Some(record);
                break;
            }
            if self.policy == MergePolicy::Sum || record.book == first.book {
                self.joined.add(record);
            }
        }
        Ok(Some(PositionEntries {
            key: first.entry.key,
            sums: self.joined.take_sums(),
        }))
    }
}

impl Iterator for Positions<'_> {
    type Item = Result<PositionEntries>;

    fn next(&mut self) -> Option<Result<PositionEntries>> {
        self.next_position().transpose()
    }
}

/// The records of one position, from all books.
#[derive(Default)]
struct Joined {
    /// Records, each with its weight or the sum of several.
    sums: Vec<(Entry, u64)>,
    /// How many of them are of different moves, in the order of moves.
    folded: usize,
}

impl Joined {
    fn add(&mut self, record: Numbered) {
        // Folding bounds the memory, however often moves are repeated.
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

    /// The moves and their sums, in the order of moves.
    fn take_sums(&mut self) -> Vec<(Entry, u64)> {
        self.fold();
        self.folded = 0;
        self.sums.drain(..).collect()
    }
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
    records: CheckedRecords<'a>,
    last_key: u64,
}

impl<'a> Ordered<'a> {
    fn new(number: usize, records: CheckedRecords<'a>) -> Ordered<'a> {
        Ordered {
            number,
            records,
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
                return Some(Err(self.records.book().unsorted()));
            }
            self.last_key = entry.key;
            if entry.key != 0 {
                let book = self.number;
                return Some(Ok(Numbered { entry, book }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::BookMove;

    #[test]
    fn moves_repeated_without_end_are_folded() {
        let entry = |mv, weight| Entry {
            key: 1,
            mv: BookMove(mv),
            weight,
            learn: 0,
        };
        let mut joined = Joined::default();
        for i in 0..200_000u32 {
            joined.add(Numbered {
                entry: entry((i % 3) as u16, 1),
                book: 0,
            });
            assert!(joined.sums.len() <= 1024);
        }
        let sums = joined.take_sums();
        let (entries, is_scaled) = PositionEntries { key: 1, sums }.into_entries();
        let expected = [entry(0, 65_535), entry(1, 65_535), entry(2, 65_534)];
        assert_eq!((&entries[..], is_scaled), (&expected[..], true));
    }
}

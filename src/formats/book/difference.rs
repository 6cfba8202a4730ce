//! Compares two books position by position.

use std::iter::{self, Peekable};

use super::{
    merge::{BookPositions, MergePolicy, PositionEntries},
    reader::Book,
    records::{Entry, with_format_castling},
};
use crate::{
    chess::position::{BookMove, Rules},
    error::Result,
    progress::Meter,
    storage::sort::{Memory, TextSorter},
};

/// A position that has different moves in two books, with the moves that differ.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PositionDifference {
    /// The key of the position.
    pub key: u64,
    /// The moves that differ, sorted by their 16-bit numbers.
    pub moves: Vec<MoveDifference>,
    /// All moves of the position in each of the two books, each with the sum of the weights of its records.
    sums: [Vec<(Entry, u64)>; 2],
}

impl PositionDifference {
    /// Returns the total weight of all moves of this position in the first and in the second book, including the moves
    /// that do not differ. If `pos` is given, illegal moves are excluded. `pos` must be the position whose key is
    /// [`key`](PositionDifference::key).
    pub fn total_weights<P: Rules>(&self, pos: Option<&P>) -> [u64; 2] {
        let total = |sums: &Vec<(Entry, u64)>| {
            let counts = |mv: BookMove| pos.is_none_or(|pos| mv.to_move(pos).is_some());
            let counted = sums.iter().filter(|(entry, _)| counts(entry.mv));
            let weights = counted.map(|(_, sum)| *sum);
            weights.fold(0, u64::saturating_add)
        };
        self.sums.each_ref().map(total)
    }

    /// Returns the moves of this position that differ between the two books. Unlike
    /// [`moves`](PositionDifference::moves), treats the two spellings of castling as one move.
    ///
    /// `pos` must be the position whose key is [`key`](PositionDifference::key). It is needed to recognize castling,
    /// because a book may spell castling as king takes rook, as the format prescribes, or as a move of the king to its
    /// target square.
    pub fn moves_in<P: Rules>(&self, pos: &P) -> Vec<MoveDifference> {
        let spelled = |sums: &Vec<(Entry, u64)>| {
            let mut moves: Vec<(Entry, u64)> = Vec::new();
            for (entry, sum) in sums {
                let mv = with_format_castling(pos, entry.mv);
                match moves.iter_mut().find(|(other, _)| other.mv == mv) {
                    Some((_, other)) => *other += sum,
                    None => moves.push((Entry { mv, ..*entry }, *sum)),
                }
            }
            moves
        };
        let [first, second] = self.sums.each_ref().map(spelled);
        compared(&first, &second)
    }
}

/// A move that only one of two books contains, or whose weight or `learn` field differs between the books.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct MoveDifference {
    /// The move.
    pub mv: BookMove,
    /// The records of the move in the first book, or `None` if that book does not have the move.
    pub first: Option<MoveRecords>,
    /// The records of the move in the second book, or `None` if that book does not have the move.
    pub second: Option<MoveRecords>,
}

/// The records of a move in one book: the sum of their weights, and the field `learn` of the first record. A chess
/// program can store in `learn` what it has learned about the move from its games.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct MoveRecords {
    /// The sum of the weights of the records. The sum may exceed 65535.
    pub weight: u64,
    /// The field `learn` of the first record.
    pub learn: u32,
}

impl MoveDifference {
    /// Returns the absolute difference between the total weights of the move in the two books. A book without the move
    /// counts as weight 0.
    pub fn weight_change(&self) -> u64 {
        let weight = |records: Option<MoveRecords>| records.map_or(0, |records| records.weight);
        weight(self.first).abs_diff(weight(self.second))
    }
}

/// A sorter that returns descriptions of the differences between two books, largest difference first. Descriptions that
/// exceed the memory budget are written to a temporary file.
#[derive(Debug)]
pub struct LargestFirst {
    texts: TextSorter,
    /// The number of descriptions that were added.
    added: u64,
}

impl LargestFirst {
    /// Creates an empty sorter with the memory budget `memory`.
    pub fn new(memory: Memory) -> LargestFirst {
        LargestFirst {
            texts: TextSorter::new(memory, None),
            added: 0,
        }
    }

    /// Adds `text`, the description of a difference of the size `size`. Descriptions with equal sizes keep the order in
    /// which they were added.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be written.
    pub fn push(&mut self, size: u64, text: &str) -> Result<()> {
        let [descending, number] = [!size, self.added].map(u64::to_be_bytes);
        self.added += 1;
        self.texts
            .push(&[&descending, &number, text.as_bytes()].concat())
    }

    /// Returns an iterator over all added descriptions, largest difference first.
    ///
    /// # Errors
    ///
    /// The iterator yields an error if a temporary file cannot be read.
    pub fn texts(&mut self) -> impl Iterator<Item = Result<String>> {
        let prefix = 2 * size_of::<u64>();
        let texts = self.texts.sorted();
        texts.map(move |text| Ok(String::from_utf8_lossy(&text?[prefix..]).into_owned()))
    }
}

/// Compares the records of two books, but not their headers. Returns an iterator over the positions that differ, sorted
/// by key.
///
/// The order of the records within a position does not matter. The iterator reads both books once, from start to end.
/// `meter` advances by one for each record.
///
/// # Errors
///
/// The iterator yields an error if a book cannot be read or is not sorted, and then ends.
///
/// ```
/// use polybook::{book::{Book, Entry, differences}, position::BookMove, progress::Meter};
///
/// let record = |mv, weight| Entry { key: 1, mv: BookMove(mv), weight, learn: 0 }.to_bytes();
/// let book = |records: &[[u8; 16]]| Book::from_bytes(records.concat()).expect("whole records");
/// let (a, b) = (book(&[record(7, 2), record(8, 1)]), book(&[record(8, 3), record(7, 2)]));
/// let meter = Meter::default();
/// let found = differences(&a, &b, &meter).collect::<polybook::Result<Vec<_>>>()?;
/// assert_eq!(found[0].moves.len(), 1);
/// assert_eq!(found[0].moves[0].mv, BookMove(8));
/// assert_eq!(differences(&a, &a, &meter).count(), 0);
/// # Ok::<(), polybook::Error>(())
/// ```
pub fn differences<'a>(
    first: &'a Book,
    second: &'a Book,
    meter: &'a Meter,
) -> impl Iterator<Item = Result<PositionDifference>> + 'a {
    let positions = |book| BookPositions::new([book], MergePolicy::Sum, meter).peekable();
    let mut books = [first, second].map(positions);
    iter::from_fn(move || {
        loop {
            match next_position(&mut books).transpose()? {
                Ok(position) if position.moves.is_empty() => {}
                found => return Some(found),
            }
        }
    })
}

/// Compares the moves of the next position, the one with the smallest key that has not been read from `books` yet. The
/// result contains no moves if both books have the same moves in this position. Returns `None` at the end of both
/// books.
fn next_position(
    books: &mut [Peekable<BookPositions<'_>>; 2],
) -> Result<Option<PositionDifference>> {
    let key_of = |next: &Result<PositionEntries>| next.as_ref().ok().map(|next| next.key);
    let keys = books.iter_mut().filter_map(|book| key_of(book.peek()?));
    let key = keys.min();
    let mut sums = [Vec::new(), Vec::new()];
    for (book, sums) in books.iter_mut().zip(&mut sums) {
        if let Some(next) = book.next_if(|next| next.is_err() || key_of(next) == key) {
            *sums = next?.sums;
        }
    }
    let moves = compared(&sums[0], &sums[1]);
    Ok(key.map(|key| PositionDifference { key, moves, sums }))
}

/// Returns the moves of one position whose total weight or `learn` field differs between two books, sorted by move.
/// `first` and `second` contain the moves of the position in the first and the second book. Each element contains the
/// first record of a move, and the sum of the weights of all records of this move.
fn compared(first: &[(Entry, u64)], second: &[(Entry, u64)]) -> Vec<MoveDifference> {
    let all = first.iter().chain(second);
    let mut moves: Vec<BookMove> = all.map(|(entry, _)| entry.mv).collect();
    moves.sort_unstable();
    moves.dedup();
    let of = |sums: &[(Entry, u64)], mv| {
        let (entry, sum) = sums.iter().find(|(entry, _)| entry.mv == mv)?;
        Some(MoveRecords {
            weight: *sum,
            learn: entry.learn,
        })
    };
    let pairs = moves.into_iter().map(|mv| MoveDifference {
        mv,
        first: of(first, mv),
        second: of(second, mv),
    });
    pairs.filter(|pair| pair.first != pair.second).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Keys and moves, with their weights.
    type WeightsByMove = BTreeMap<(u64, u16), u16>;

    #[test]
    fn weights_of_repeated_records_are_not_scaled() {
        let record = |mv, weight| Entry {
            key: 1,
            mv: BookMove(mv),
            weight,
            learn: 0,
        };
        let book = |records: &[Entry]| {
            let bytes = records.iter().flat_map(|record| record.to_bytes());
            Book::from_bytes(bytes.collect()).unwrap()
        };
        let repeated = book(&[record(7, 40_000), record(7, 40_000), record(8, 100)]);
        // These sums are equal after the repeated records were scaled down.
        let single = book(&[record(7, 65_535), record(8, 81)]);
        let meter = Meter::default();
        let found: Vec<_> = differences(&repeated, &single, &meter).collect();
        let [Ok(position)] = &found[..] else {
            panic!("{found:?}");
        };
        let weight = |records: Option<MoveRecords>| records.unwrap().weight;
        let moves = position.moves.iter();
        let weights = moves.map(|mv| (weight(mv.first), weight(mv.second)));
        assert_eq!(weights.collect::<Vec<_>>(), [(80_000, 65_535), (100, 81)]);
    }

    fn book(weights: &WeightsByMove) -> Book {
        let entry = |((key, mv), weight): (&(u64, u16), &u16)| Entry {
            key: *key,
            mv: BookMove(*mv),
            weight: *weight,
            learn: 0,
        };
        let bytes = weights.iter().flat_map(|record| entry(record).to_bytes());
        Book::from_bytes(bytes.collect()).unwrap()
    }

    fn weights() -> impl Strategy<Value = WeightsByMove> {
        proptest::collection::btree_map((1..6u64, 0..4u16), 0..3u16, 0..20)
    }

    proptest! {
        #[test]
        fn what_differs_is_all_that_differs(a in weights(), b in weights()) {
            let meter = Meter::default();
            prop_assert_eq!(differences(&book(&a), &book(&a), &meter).count(), 0);
            // `first` with the differences applied is `second`.
            let mut mended = a.clone();
            for difference in differences(&book(&a), &book(&b), &meter) {
                let difference = difference.unwrap();
                for mv in difference.moves {
                    let place = (difference.key, mv.mv.0);
                    prop_assert_eq!(mended.remove(&place), mv.first.map(|found| found.weight as u16));
                    mended.extend(mv.second.map(|found| (place, found.weight as u16)));
                }
            }
            prop_assert_eq!(mended, b);
        }
    }
}

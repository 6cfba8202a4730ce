//! The moves and replies that a book has in a position.

use std::ops::Range;

use shakmaty::Move;

use crate::{
    book::{Entry, moves::Moves, open::Book},
    error::Result,
    position::{BookMove, Keyed, Rules},
    progress::Meter,
};

/// A book whose records are in order.
pub(in crate::book) struct Knowledge<'a> {
    book: &'a Book,
    filter: AbsentKeys,
    places: Places,
    positions: u64,
    /// Counts the records that are read and the positions whose moves are asked for.
    meter: &'a Meter,
}

/// Records that are counted together.
const STEP: u64 = 1 << 12;

/// What going on from a position costs, in records that are read.
const POSITION: u64 = 100;

/// A move of the book, and how often it would be chosen, from 0 to 1.
#[derive(Copy, Clone)]
pub(super) struct LikelyMove {
    pub mv: Move,
    pub share: f64,
}

/// A reply after which the book has a move.
pub(super) struct Reply<P> {
    pub mv: Move,
    pub after: Known<P>,
}

/// A position, and the number of its first record if it has any.
#[derive(Clone)]
pub(super) struct Known<P> {
    pub pos: Keyed<P>,
    pub place: Option<u64>,
}

impl<'a> Knowledge<'a> {
    /// Reads all records once. Expects the work of `walks` walks along the lines of a side.
    ///
    /// # Errors
    ///
    /// A book that cannot be read, or whose keys do not ascend, so that positions cannot be looked up.
    pub(in crate::book) fn new(
        book: &'a Book,
        meter: &'a Meter,
        walks: u64,
    ) -> Result<Knowledge<'a>> {
        Knowledge::within(book, meter, walks, AbsentKeys::MOST + Places::MOST)
    }

    /// The same in at most this many bytes, plus some KiB. With fewer bytes the book is read more often.
    ///
    /// # Errors
    ///
    /// As [`new`](Knowledge::new).
    pub(in crate::book) fn within(
        book: &'a Book,
        meter: &'a Meter,
        walks: u64,
        memory: usize,
    ) -> Result<Knowledge<'a>> {
        meter.add_total(book.len());
        let mut filter = AbsentKeys::new(book.len(), memory / 3 * 2);
        let mut places = Places::new(book.len(), memory / 3);
        let mut positions = 0;
        // The null key is the header's.
        let mut last = 0;
        for (index, entry) in (0..).zip(book) {
            let key = entry?.key;
            if key < last {
                return Err(book.unsorted());
            }
            if key != last {
                filter.insert(key);
                places.push(key, index);
                positions += 1;
            }
            last = key;
            if index % STEP == STEP - 1 {
                meter.advance(STEP);
            }
        }
        meter.advance(book.len() % STEP);
        // Each side is to move in about half of the positions.
        meter.add_total(positions * walks / 2 * POSITION);
        Ok(Knowledge {
            book,
            filter,
            places,
            positions,
            meter,
        })
    }

    pub(super) fn book(&self) -> &'a Book {
        self.book
    }

    /// How many positions the book has.
    pub(super) fn positions(&self) -> u64 {
        self.positions
    }

    /// Looks a position up.
    pub(super) fn look_up<P: Rules>(&self, pos: Keyed<P>) -> Result<Known<P>> {
        // Most positions are not in the book, which is quick to find.
        let place = match self.filter.may_contain(pos.key()) {
            true => self.book.find_in(self.places.range(pos.key()), pos.key())?,
            false => None,
        };
        Ok(Known { pos, place })
    }

    fn entries<P: Rules>(&self, known: &Known<P>) -> Result<Option<Moves<'a>>> {
        let place = known.place;
        place
            .map(|place| self.book.moves_from(place, known.pos.key()))
            .transpose()
    }

    /// The moves of the book that can be chosen, in its order, each with its share.
    pub(super) fn choices<P: Rules>(&self, known: &Known<P>) -> Result<Vec<LikelyMove>> {
        self.meter.advance(POSITION);
        let pos = known.pos.position();
        let moves: Vec<(Move, f64)> = self
            .entries(known)?
            .into_iter()
            .flatten()
            .filter_map(|entry| Some((playable(pos, &entry)?, entry.weight.into())))
            .collect();
        let sum: f64 = moves.iter().map(|(_, weight)| weight).sum();
        let choice = |(mv, weight)| LikelyMove {
            mv,
            share: weight / sum,
        };
        Ok(moves.into_iter().map(choice).collect())
    }

    fn knows_a_move<P: Rules>(&self, known: &Known<P>) -> Result<bool> {
        let pos = known.pos.position();
        let mut entries = self.entries(known)?.into_iter().flatten();
        Ok(entries.any(|entry| playable(pos, &entry).is_some()))
    }

    /// The replies after which the book has a move.
    pub(super) fn replies<P: Rules>(&self, pos: &Keyed<P>) -> Result<Vec<Reply<P>>> {
        let mut replies = Vec::new();
        for mv in pos.position().legal_moves() {
            let mut after = pos.clone();
            after.play(mv);
            let after = self.look_up(after)?;
            if self.knows_a_move(&after)? {
                replies.push(Reply { mv, after });
            }
        }
        Ok(replies)
    }
}

/// A filter that rejects most keys that a book does not have, by a bit for each value of their low bits.
struct AbsentKeys {
    bits: Vec<u64>,
}

impl AbsentKeys {
    /// Bits for each record: of the keys that the book does not have, at most one in this many passes.
    const BITS_A_RECORD: u64 = 32;

    /// A filter takes no more than 256 MiB. In a book of 20 GB, half of the keys pass.
    const MOST: usize = 1 << 28;

    /// A filter for `records` records, in at most `memory` bytes.
    fn new(records: u64, memory: usize) -> AbsentKeys {
        let words = (records * AbsentKeys::BITS_A_RECORD / 64).next_power_of_two();
        let most = power_of_two(memory.clamp(1 << 9, AbsentKeys::MOST) / size_of::<u64>());
        AbsentKeys {
            bits: vec![0; words.min(most) as usize],
        }
    }

    /// The word of a key and its bit there.
    fn bit(&self, key: u64) -> (usize, u64) {
        let word = (key >> 6) as usize & (self.bits.len() - 1);
        (word, 1 << (key & 63))
    }

    fn insert(&mut self, key: u64) {
        let (word, bit) = self.bit(key);
        self.bits[word] |= bit;
    }

    fn may_contain(&self, key: u64) -> bool {
        let (word, bit) = self.bit(key);
        self.bits[word] & bit != 0
    }
}

/// The places of the records of keys with the same high bits.
struct Places {
    /// The first record of each value of the high bits and of those above, as far as pushed.
    starts: Vec<u64>,
    /// How far to the right the high bits have to go.
    shift: u32,
    records: u64,
}

impl Places {
    /// Records for each value of the high bits.
    const RECORDS: u64 = 8;

    /// The table takes no more than 128 MiB.
    const MOST: usize = 1 << 27;

    /// A table for `records` records, in at most `memory` bytes.
    fn new(records: u64, memory: usize) -> Places {
        let values = (records / Places::RECORDS).next_power_of_two();
        let most = power_of_two(memory.clamp(1 << 9, Places::MOST) / size_of::<u64>());
        let bits = values.min(most).trailing_zeros().max(1);
        Places {
            starts: Vec::with_capacity(1 << bits),
            shift: 64 - bits,
            records,
        }
    }

    /// Takes the next key and the number of its first record.
    fn push(&mut self, key: u64, index: u64) {
        let value = (key >> self.shift) as usize;
        if self.starts.len() <= value {
            self.starts.resize(value + 1, index);
        }
    }

    /// The records that may be of a key.
    fn range(&self, key: u64) -> Range<u64> {
        let value = (key >> self.shift) as usize;
        let start = |value| self.starts.get(value).copied().unwrap_or(self.records);
        start(value)..start(value + 1)
    }
}

/// The largest power of two up to a number.
fn power_of_two(number: usize) -> u64 {
    1 << number.ilog2()
}

/// The legal move of a record that may be chosen. Castling counts only as the format writes it.
fn playable<P: Rules>(pos: &P, entry: &Entry) -> Option<Move> {
    if entry.weight == 0 {
        return None;
    }
    entry
        .mv
        .to_move(pos)
        .filter(|mv| BookMove::from(*mv) == entry.mv)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use shakmaty::Chess;

    use super::*;

    proptest! {
        #[test]
        fn no_key_is_missed(
            mut keys in proptest::collection::vec(prop_oneof![1..99u64, any::<u64>()], 0..600),
            memory in 0..1_000_000usize,
        ) {
            keys.sort_unstable();
            let records = keys.iter().flat_map(|key| (u128::from(*key) << 64).to_be_bytes());
            let book = Book::from_bytes(records.collect()).unwrap();
            let meter = Meter::default();
            let knowledge = Knowledge::within(&book, &meter, 2, memory).unwrap();
            for key in &keys {
                prop_assert!(knowledge.filter.may_contain(*key));
                let first = keys.partition_point(|other| other < key) as u64;
                let found = book.find_in(knowledge.places.range(*key), *key).unwrap();
                prop_assert_eq!(found, Some(first));
            }
            keys.dedup();
            prop_assert_eq!(knowledge.positions(), keys.len() as u64);
            prop_assert!(keys.len() < 2 || meter.fraction().is_some_and(|fraction| fraction < 1.0));
            let start = Keyed::new(Chess::default());
            prop_assert_eq!(knowledge.look_up(start).unwrap().place, None);
        }
    }
}

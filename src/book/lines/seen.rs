//! The positions that a walk through a book has been at.

use rustc_hash::FxHashSet;

use super::knowledge::Known;
use crate::{book::open::Book, position::Rules};

/// A set of positions: a bit for each position of the book, by the number of its first record, and the keys
/// of the others.
pub(super) struct Seen {
    known: Marks,
    others: FxHashSet<u64>,
}

impl Seen {
    pub(super) fn new(book: &Book) -> Seen {
        Seen {
            known: Marks::new(book),
            others: FxHashSet::default(),
        }
    }

    /// Whether a position is in the set.
    pub(super) fn contains<P: Rules>(&self, known: &Known<P>) -> bool {
        match known.place {
            Some(place) => self.known.contains(place),
            None => self.others.contains(&known.pos.key()),
        }
    }

    /// Adds a position; returns whether it was not in the set.
    pub(super) fn insert<P: Rules>(&mut self, known: &Known<P>) -> bool {
        match known.place {
            Some(place) => self.known.insert(place),
            None => self.others.insert(known.pos.key()),
        }
    }
}

/// A set of records of a book.
pub(super) struct Marks {
    bits: Vec<u64>,
    len: u64,
}

impl Marks {
    pub(super) fn new(book: &Book) -> Marks {
        Marks {
            bits: vec![0; book.len().div_ceil(64) as usize],
            len: 0,
        }
    }

    fn contains(&self, place: u64) -> bool {
        self.bits[(place / 64) as usize] & 1 << (place % 64) != 0
    }

    /// Adds a record; returns whether it was not in the set.
    pub(super) fn insert(&mut self, place: u64) -> bool {
        let bit = 1 << (place % 64);
        let bits = &mut self.bits[(place / 64) as usize];
        let is_new = *bits & bit == 0;
        *bits |= bit;
        self.len += u64::from(is_new);
        is_new
    }

    /// How many records are in the set.
    pub(super) fn len(&self) -> u64 {
        self.len
    }
}

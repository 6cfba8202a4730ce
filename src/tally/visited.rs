//! Looks up many positions at once, and records which positions were visited.

use std::{
    hint::black_box,
    sync::atomic::{AtomicU64, Ordering},
};

use super::find::{Finder, RecordPlace, RecordRange};

impl Finder<'_> {
    /// Returns the number of positions.
    pub fn positions(&self) -> u64 {
        self.shards.iter().map(|parts| parts.positions).sum()
    }

    /// Replaces `parts` with the records to search for each of the keys.
    ///
    /// Nearly every look-up waits for memory. Each loop is short, so that the processor runs many of its iterations at once and the
    /// look-ups wait together.
    pub fn parts(&self, keys: impl Iterator<Item = u64>, parts: &mut Vec<RecordRange>) {
        parts.clear();
        parts.extend(keys.map(|key| self.numbered(key)));
        for part in parts.iter_mut() {
            *part = self.whole(*part);
        }
        let records = self.counts.records();
        let first = |part: &RecordRange| records.in_memory(part.shard, part.start as usize);
        let firsts = parts.iter().filter_map(first);
        black_box(firsts.fold(0, |all, record| all ^ record.key()));
    }

    /// Creates a bit for each position, none of which is set.
    pub fn visited_bits(&self) -> VisitedBits {
        let shards = self
            .shards
            .iter()
            .map(|parts| {
                let records = *parts.starts.last().expect("the end is always there");
                (0..(records as usize).div_ceil(WORD))
                    .map(|_| AtomicU64::new(0))
                    .collect()
            })
            .collect();
        VisitedBits { shards }
    }
}

/// The number of bits in a word.
const WORD: usize = u64::BITS as usize;

/// A bit for each position of a [`Finder`]. There is a bit for each record; a position uses the bit of its first record.
#[derive(Debug)]
pub(crate) struct VisitedBits {
    shards: Vec<Vec<AtomicU64>>,
}

impl VisitedBits {
    /// Loads the bits of some positions into the processor's cache, so that [`set`](VisitedBits::set) does not wait for each.
    pub fn fetch(&self, parts: &[RecordRange]) {
        let word = |part: &RecordRange| self.shards[part.shard].get(part.start as usize / WORD);
        let words = parts.iter().filter_map(word);
        black_box(words.fold(0, |all, word| all | word.load(Ordering::Relaxed)));
    }

    /// Sets the bit of a position. Returns `true` if it was not set before. Any number of threads may call this at the same time.
    pub fn set(&self, place: RecordPlace) -> bool {
        let word = &self.shards[place.shard][place.record / WORD];
        let bit = 1 << (place.record % WORD);
        word.fetch_or(bit, Ordering::Relaxed) & bit == 0
    }
}

#[cfg(test)]
mod tests {
    use shakmaty::Color;

    use crate::{
        position::BookMove,
        sort::Memory,
        tally::{CountRecord, Scratch, Stats, Tally},
    };

    #[test]
    fn positions_that_are_found_together_are_marked_once() {
        let key = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for bytes in [1 << 30, 0] {
            let tally = Tally::new(Memory {
                bytes,
                ..Memory::default()
            });
            let record =
                |i, mv| CountRecord::new(key(i), BookMove(mv), Color::White, Stats::default());
            let records: Vec<CountRecord> = (0..60_000)
                .map(|i| record(i / 3, 1 + i as u16 % 3))
                .collect();
            tally.add_records(&records).unwrap();
            let counts = tally.seal().unwrap();
            let finder = counts.finder().unwrap();
            assert_eq!(finder.positions(), 20_000);
            let (marks, mut parts) = (finder.visited_bits(), Vec::new());
            let mut scratch = Scratch::default();
            for first in (0..30_000).step_by(100) {
                finder.parts((first..first + 100).map(key), &mut parts);
                marks.fetch(&parts);
                for (i, part) in (first..).zip(&parts) {
                    let found = finder.find(*part, &mut scratch).unwrap();
                    assert_eq!(found.is_some(), i < 20_000);
                    if let Some(found) = found {
                        assert!(marks.set(found.place));
                        assert!(!marks.set(found.place));
                    }
                }
            }
        }
    }
}

//! Packed positions in the order of their EPD.
//!
//! Positions come from a [walk](super::walk) in no order, with all their rows at once. Each thread has a sorter.
//!
//! A packed position is the EPD, a null byte, and for each row the length of the move, the move, and three numbers of seven
//! bits a byte.

use std::{iter, ops::Range, sync::Mutex};

use integer_encoding::VarInt;
use rayon::prelude::*;

use crate::{
    error::Result,
    sort::{Memory, Merge, TextSorter},
    tally::Stats,
    task,
};

/// Packed positions being collected, from any number of threads.
#[derive(Debug)]
pub(super) struct Piles(Vec<Mutex<TextSorter>>);

impl Piles {
    /// For this many threads.
    pub(super) fn new(threads: usize, memory: &Memory) -> Piles {
        let pile = |_| Mutex::new(TextSorter::new(memory.share(threads), None));
        Piles((0..threads).map(pile).collect())
    }

    /// Takes a position.
    pub(super) fn push(&self, packed: &[u8]) -> Result<()> {
        let pile = rayon::current_thread_index().unwrap_or(0) % self.0.len();
        let mut pile = task::lock(&self.0[pile]);
        task::fault("pile");
        pile.push(packed)
    }

    /// Ends collecting, and sorts what is in memory.
    pub(super) fn into_rows(self) -> SortedRows {
        let mut piles: Vec<_> = self.0.into_iter().map(task::unlocked).collect();
        piles.par_iter_mut().for_each(TextSorter::sort);
        SortedRows(piles)
    }
}

/// All positions.
#[derive(Debug)]
pub(super) struct SortedRows(Vec<TextSorter>);

impl SortedRows {
    /// How many bytes the packed positions have.
    pub(super) fn size(&self) -> u64 {
        self.0.iter().map(TextSorter::size).sum()
    }

    /// Calls `f` with each packed position in the order of EPDs.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be read, or the errors of `f`.
    pub(super) fn for_each(self, mut f: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let sequences = self.0.iter().flat_map(TextSorter::sequences);
        Merge::of_long(sequences, |packed| packed.len()).try_for_each(|packed| f(&packed?))
    }
}

/// The most bytes that a number takes.
const LONGEST_NUMBER: usize = 10;

/// Packs one position after the other.
#[derive(Default, Debug)]
pub(super) struct Packer {
    packed: Vec<u8>,
    moves: Vec<u8>,
    /// Where each row's move is, and its numbers.
    rows: Vec<(Range<usize>, Stats)>,
}

impl Packer {
    /// Starts a position, whose EPD `write` appends.
    pub(super) fn start(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.packed.clear();
        write(&mut self.packed);
        self.packed.push(0);
        self.moves.clear();
        self.rows.clear();
    }

    /// Adds a row, whose move `write` appends.
    pub(super) fn row(&mut self, stats: Stats, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.moves.len();
        write(&mut self.moves);
        self.rows.push((start..self.moves.len(), stats));
    }

    /// The packed position, the rows with the most games first.
    pub(super) fn finish(&mut self) -> &[u8] {
        let moves = &self.moves;
        self.rows.sort_unstable_by(|(a, a_stats), (b, b_stats)| {
            let games = b_stats.games().cmp(&a_stats.games());
            games.then_with(|| moves[a.clone()].cmp(&moves[b.clone()]))
        });
        for (mv, stats) in &self.rows {
            self.packed.push(mv.len() as u8);
            self.packed.extend_from_slice(&moves[mv.clone()]);
            for number in [stats.wins, stats.draws, stats.losses] {
                let mut bytes = [0; LONGEST_NUMBER];
                let length = number.encode_var(&mut bytes);
                self.packed.extend_from_slice(&bytes[..length]);
            }
        }
        &self.packed
    }
}

/// The EPD of a packed position, and the move and the numbers of each row.
#[inline]
pub(super) fn unpacked(packed: &[u8]) -> (&[u8], impl Iterator<Item = (&[u8], Stats)>) {
    let end = memchr::memchr(0, packed).expect("an EPD has an end");
    let mut rest = &packed[end + 1..];
    let rows = iter::from_fn(move || {
        let (length, after) = rest.split_first()?;
        let (mv, after) = after.split_at(usize::from(*length));
        rest = after;
        let mut number = || {
            let (number, length) = u64::decode_var(rest).expect("a row has three numbers");
            rest = &rest[length..];
            number
        };
        let stats = Stats {
            wins: number(),
            draws: number(),
            losses: number(),
        };
        Some((mv, stats))
    });
    (&packed[..end], rows)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rayon::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn positions_come_in_order_from_memory_and_files(
            boards in proptest::collection::hash_set(
                "((rnbqkbnr/pppppppp/8/8/8/){0,2}|[1-8KQRBNPkqrbnp/~\\[\\]]{0,40})[1-3]{0,2} [wb] (-|[KQkq]{1,4})", 0..300,
            ),
            quota in prop_oneof![Just(1usize << 12), Just(1 << 14), Just(1 << 20)],
        ) {
            let piles = Piles::new(3, &Memory { bytes: 3 * quota, ..Memory::default() });
            boards.par_iter().for_each_init(Packer::default, |packer, board| {
                packer.start(|text| text.extend_from_slice(board.as_bytes()));
                packer.row(Stats::default(), |text| text.extend_from_slice(b"a2a3"));
                piles.push(packer.finish()).unwrap();
            });
            let mut found = Vec::new();
            piles.into_rows().for_each(|packed| {
                found.push(String::from_utf8(unpacked(packed).0.to_vec()).unwrap());
                Ok(())
            }).unwrap();
            let mut expected: Vec<String> = boards.into_iter().collect();
            expected.sort();
            prop_assert_eq!(found, expected);
        }
    }

    proptest! {
        #[test]
        fn what_is_packed_comes_back(
            epd in "[ -~]{0,90}", numbers in proptest::collection::vec(any::<u64>(), 0..40),
        ) {
            let mut packer = Packer::default();
            packer.start(|text| text.extend_from_slice(epd.as_bytes()));
            for wins in &numbers {
                let stats = Stats { wins: *wins >> 1, draws: 1 << 40, losses: 0 };
                packer.row(stats, |text| text.extend_from_slice(b"e7e8q"));
            }
            let packed = packer.finish();
            let (found_epd, rows) = unpacked(packed);
            prop_assert_eq!(found_epd, epd.as_bytes());
            let mut found = Vec::new();
            for (mv, stats) in rows {
                prop_assert_eq!((mv, stats.draws, stats.losses), (&b"e7e8q"[..], 1 << 40, 0));
                found.push(stats.wins);
            }
            let mut expected: Vec<u64> = numbers.iter().map(|wins| wins >> 1).collect();
            expected.sort_by_key(|wins| std::cmp::Reverse(*wins));
            prop_assert_eq!(found, expected);
        }
    }
}

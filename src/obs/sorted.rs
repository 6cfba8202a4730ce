//! Collects packed positions, and sorts them by EPD.
//!
//! A [walk](super::walk) finds positions in arbitrary order, each with all its rows. Each thread collects them in a sorter of its
//! own, and the sorters are merged.
//!
//! A packed position is its EPD, a null byte, and for each row the length of the move, the move, and three numbers in a
//! variable-length encoding with seven bits per byte.

use std::{iter, ops::Range, sync::Mutex};

use integer_encoding::VarInt;
use rayon::prelude::*;

use crate::{
    counts::Stats,
    error::Result,
    sort::{Memory, Merge, TextSorter},
    task,
};

/// Collects packed positions, from any number of threads.
#[derive(Debug)]
pub(super) struct Piles(Vec<Mutex<TextSorter>>);

impl Piles {
    /// Creates the sorters for this many threads.
    pub(super) fn new(threads: usize, memory: &Memory) -> Piles {
        let pile = |_| Mutex::new(TextSorter::new(memory.share(threads), None));
        Piles((0..threads).map(pile).collect())
    }

    /// Adds a packed position.
    pub(super) fn push(&self, packed: &[u8]) -> Result<()> {
        let pile = rayon::current_thread_index().unwrap_or(0) % self.0.len();
        let mut pile = task::lock(&self.0[pile]);
        task::fault("pile");
        pile.push(packed)
    }

    /// Ends collecting, and sorts the positions in memory.
    pub(super) fn into_rows(self) -> SortedRows {
        let mut piles: Vec<_> = self.0.into_iter().map(task::unlocked).collect();
        piles.par_iter_mut().for_each(TextSorter::sort);
        SortedRows(piles)
    }
}

/// All packed positions, as sorted sequences.
#[derive(Debug)]
pub(super) struct SortedRows(Vec<TextSorter>);

impl SortedRows {
    /// Returns the total number of bytes of the packed positions.
    pub(super) fn size(&self) -> u64 {
        self.0.iter().map(TextSorter::size).sum()
    }

    /// Calls `f` with each packed position, sorted by EPD.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be read, and returns the errors of `f`.
    pub(super) fn for_each(self, mut f: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let sequences = self.0.iter().flat_map(TextSorter::sequences);
        Merge::of_long(sequences, |packed| packed.len()).try_for_each(|packed| f(&packed?))
    }
}

/// The maximum number of bytes of an encoded number.
const LONGEST_NUMBER: usize = 10;

/// Packs positions, one after the other, and reuses its buffers.
#[derive(Default, Debug)]
pub(super) struct Packer {
    packed: Vec<u8>,
    moves: Vec<u8>,
    /// For each row, the range of its move in `moves`, and its numbers.
    rows: Vec<(Range<usize>, Stats)>,
}

impl Packer {
    /// Starts a position. `write` appends its EPD.
    pub(super) fn start(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.packed.clear();
        write(&mut self.packed);
        self.packed.push(0);
        self.moves.clear();
        self.rows.clear();
    }

    /// Adds a row. `write` appends its move.
    pub(super) fn row(&mut self, stats: Stats, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.moves.len();
        write(&mut self.moves);
        self.rows.push((start..self.moves.len(), stats));
    }

    /// Returns the packed position. Its rows are sorted by descending number of games, then by move.
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

/// Unpacks a position. Returns its EPD, and an iterator over the moves and numbers of its rows.
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

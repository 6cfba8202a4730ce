//! Packed positions in the order of their EPD.
//!
//! Positions come from a [walk](super::walk) in no order, with all their rows at once. Each thread has a sorter. Positions
//! that are in memory at the end are divided into parts that are in order among themselves, so that the first can be
//! had before the last is sorted.
//!
//! A packed position is the length of the EPD in two bytes, the EPD, and for each row the length of the move, the move, and
//! three numbers of seven bits a byte.

use std::{ops::Range, sync::Mutex};

use integer_encoding::VarInt;

use crate::{
    error::Result,
    sort::{MOST_SORTERS, Memory, Order, Place, TextSorter, merged, sort_places, wait_together},
    tally::Stats,
    task,
};

/// Positions that are fetched from memory at once.
const FETCHED: usize = 32;

/// Into how many parts positions in memory are divided before they are sorted: by three characters.
const PART_BITS: u32 = 15;
const PARTS: usize = 1 << PART_BITS;

/// Packed positions being collected, from any number of threads.
#[derive(Debug)]
pub(super) struct Piles(Vec<Mutex<TextSorter<ByEpd>>>);

impl Piles {
    /// For this many threads.
    pub(super) fn new(threads: usize, memory: &Memory) -> Piles {
        let piles = threads.clamp(1, MOST_SORTERS);
        let pile = |_| Mutex::new(TextSorter::new(memory.share(piles), None));
        Piles((0..piles).map(pile).collect())
    }

    /// Takes a position.
    pub(super) fn push(&self, packed: &[u8]) -> Result<()> {
        let pile = rayon::current_thread_index().unwrap_or(0) % self.0.len();
        let mut pile = task::lock(&self.0[pile]);
        task::fault("pile");
        pile.push(packed)
    }

    /// Ends collecting.
    pub(super) fn into_rows(self) -> SortedRows {
        let mut piles: Vec<_> = self.0.into_iter().map(task::unlocked).collect();
        let mut starts = vec![0; PARTS + 1];
        for place in piles.iter().flat_map(TextSorter::places) {
            starts[place.part(PART_BITS) + 1] += 1;
        }
        for part in 0..PARTS {
            starts[part + 1] += starts[part];
        }
        let mut places = vec![Place::NOWHERE; starts[PARTS]];
        for (number, pile) in piles.iter_mut().enumerate() {
            for place in pile.take_places() {
                let at = &mut starts[place.part(PART_BITS)];
                places[*at] = place.in_sorter(number);
                *at += 1;
            }
        }
        SortedRows { piles, places }
    }
}

/// All positions, which are sorted while they are taken.
#[derive(Debug)]
pub(super) struct SortedRows {
    piles: Vec<TextSorter<ByEpd>>,
    /// Those in memory, part by part.
    places: Vec<Place>,
}

impl SortedRows {
    /// How many bytes the packed positions have.
    pub(super) fn size(&self) -> u64 {
        self.piles.iter().map(TextSorter::size).sum()
    }

    /// Calls `f` with each packed position in the order of EPDs.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be read, or the errors of `f`.
    pub(super) fn for_each(mut self, mut f: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let piles = &self.piles;
        let at = |place: Place| piles[place.sorter()].at(place);
        let parts = self
            .places
            .chunk_by_mut(|a, b| a.part(PART_BITS) == b.part(PART_BITS));
        let in_memory = parts.flat_map(|part| {
            sort_places::<ByEpd>(part, at);
            let part: &[Place] = part;
            part.chunks(FETCHED).flat_map(move |places| {
                wait_together(places, at);
                places.iter().map(move |place| at(*place))
            })
        });
        for packed in merged(in_memory, piles) {
            f(&packed?)?;
        }
        Ok(())
    }
}

/// Bytes before the EPD.
const HEAD: usize = 2;

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
        self.packed.extend_from_slice(&[0; HEAD]);
        write(&mut self.packed);
        let length = (self.packed.len() - HEAD) as u16;
        self.packed[..HEAD].copy_from_slice(&length.to_le_bytes());
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

/// The EPD of a packed position.
#[inline]
pub(super) fn epd(packed: &[u8]) -> &[u8] {
    let length = *packed.first_chunk().expect("a position has a head");
    &packed[HEAD..HEAD + usize::from(u16::from_le_bytes(length))]
}

/// By their EPDs.
#[derive(Debug)]
pub(super) struct ByEpd;

impl Order for ByEpd {
    /// The board's characters take five bits each.
    const PREFIX: usize = 25;

    #[inline]
    fn key(packed: &[u8]) -> &[u8] {
        epd(packed)
    }

    fn prefix(epd: &[u8]) -> u128 {
        const CODES: [u8; 256] = codes();
        let mut prefix = 0;
        let mut shift = u128::BITS;
        for byte in epd {
            let code = CODES[usize::from(*byte)];
            // A character without a code does not belong to a board. The rest is compared in full.
            if code == 0 || shift < 8 {
                break;
            }
            shift -= 5;
            prefix |= u128::from(code) << shift;
        }
        prefix
    }
}

/// Numbers for the characters of a board, ascending with them.
const fn codes() -> [u8; 256] {
    let characters = b"/12345678BKNPQR[]bknpqr~";
    let mut codes = [0; 256];
    let mut i = 0;
    while i < characters.len() {
        codes[characters[i] as usize] = i as u8 + 1;
        i += 1;
    }
    codes
}

/// The move and the numbers of each row of a packed position.
#[inline]
pub(super) fn rows(packed: &[u8]) -> impl Iterator<Item = (&[u8], Stats)> {
    let mut rest = &packed[HEAD + epd(packed).len()..];
    std::iter::from_fn(move || {
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
    })
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
                found.push(String::from_utf8(epd(packed).to_vec()).unwrap());
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
            prop_assert_eq!(super::epd(packed), epd.as_bytes());
            let mut found = Vec::new();
            for (mv, stats) in rows(packed) {
                prop_assert_eq!((mv, stats.draws, stats.losses), (&b"e7e8q"[..], 1 << 40, 0));
                found.push(stats.wins);
            }
            let mut expected: Vec<u64> = numbers.iter().map(|wins| wins >> 1).collect();
            expected.sort_by_key(|wins| std::cmp::Reverse(*wins));
            prop_assert_eq!(found, expected);
        }
    }
}

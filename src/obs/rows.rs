//! Rows in the order of their EPD, in bounded memory.
//!
//! Positions come from a [walk](super::walk) in no order, with all their rows at once. They are packed
//! one behind the other, one pile per thread, and sorted at the end; a pile that has its fill is
//! sorted and goes to a temporary file, and at the end the files are merged with the piles.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    ops::Range,
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use crate::{
    error::Result,
    sort::{Memory, Spool, SpoolReader},
    tally::Stats,
};

/// Positions being collected, from any number of threads.
#[derive(Debug)]
pub(super) struct Rows {
    piles: Vec<Mutex<Pile>>,
    /// How many bytes a pile may have.
    quota: usize,
    temp_dir: PathBuf,
}

#[derive(Default, Debug)]
struct Pile {
    /// Packed positions, one behind the other.
    packed: Vec<u8>,
    places: Vec<Place>,
    spilled: Option<Spool>,
    /// Where each sorted run of the file begins and ends.
    runs: Vec<(u64, u64)>,
}

/// A packed position and where it is.
#[derive(Copy, Clone, Debug)]
struct Place {
    /// The first characters of its EPD, which sort like them.
    prefix: u128,
    /// The first byte in its pile, and in the highest byte which pile.
    start: u64,
}

const PILE_SHIFT: u32 = 56;

/// Into how many parts positions in memory are divided before they are sorted: by three characters.
const PARTS: usize = 1 << 15;

impl Place {
    fn pile(self) -> usize {
        (self.start >> PILE_SHIFT) as usize
    }

    fn part(self) -> usize {
        (self.prefix >> 113) as usize
    }

    fn offset(self) -> usize {
        (self.start & ((1 << PILE_SHIFT) - 1)) as usize
    }
}

impl Rows {
    /// Room for a pile for each of so many threads.
    pub(super) fn new(threads: usize, memory: &Memory) -> Rows {
        let piles = threads.clamp(1, 1 << (u64::BITS - PILE_SHIFT));
        Rows {
            piles: (0..piles).map(|_| Mutex::default()).collect(),
            quota: (memory.bytes / piles).max(1 << 16),
            temp_dir: memory.temp_dir.clone(),
        }
    }

    /// Takes a position whose EPD stands at the start of `packed`, packed by a [`Packer`].
    pub(super) fn push(&self, packed: &[u8]) -> Result<()> {
        let pile = rayon::current_thread_index().unwrap_or(0) % self.piles.len();
        let mut pile = self.piles[pile]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let start = pile.packed.len() as u64;
        pile.places.push(Place {
            prefix: prefix(epd(packed)),
            start,
        });
        pile.packed.extend_from_slice(packed);
        if pile.packed.len() + pile.places.len() * size_of::<Place>() > self.quota {
            self.spill(&mut pile)?;
        }
        Ok(())
    }

    fn spill(&self, pile: &mut Pile) -> Result<()> {
        let Pile {
            packed,
            places,
            spilled,
            runs,
        } = pile;
        places.sort_unstable_by(|a, b| {
            a.prefix
                .cmp(&b.prefix)
                .then_with(|| epd(&packed[a.offset()..]).cmp(epd(&packed[b.offset()..])))
        });
        // It is not to be held in memory, that is the point.
        let file = spilled.get_or_insert_with(|| Spool::new(0, self.temp_dir.clone()));
        let start = file.len();
        for place in places.iter() {
            file.append(whole(&packed[place.offset()..]))?;
        }
        runs.push((start, file.len()));
        packed.clear();
        places.clear();
        Ok(())
    }

    /// Ends collecting.
    pub(super) fn sorted(self) -> SortedRows {
        let mut piles: Vec<Pile> = self
            .piles
            .into_iter()
            .map(|pile| pile.into_inner().unwrap_or_else(PoisonError::into_inner))
            .collect();
        // Parts that are in order among themselves: the first of them can be had before the last is
        // sorted.
        let mut starts = vec![0; PARTS + 1];
        for place in piles.iter().flat_map(|pile| &pile.places) {
            starts[place.part() + 1] += 1;
        }
        for part in 0..PARTS {
            starts[part + 1] += starts[part];
        }
        let mut next = starts.clone();
        let nowhere = Place {
            prefix: 0,
            start: 0,
        };
        let mut places = vec![nowhere; starts[PARTS]];
        for (number, pile) in piles.iter_mut().enumerate() {
            for place in std::mem::take(&mut pile.places) {
                let at = &mut next[place.part()];
                places[*at] = Place {
                    start: place.start | (number as u64) << PILE_SHIFT,
                    ..place
                };
                *at += 1;
            }
        }
        SortedRows {
            piles,
            places,
            starts,
        }
    }
}

/// All positions in order.
#[derive(Debug)]
pub(super) struct SortedRows {
    piles: Vec<Pile>,
    /// Those in memory, part by part.
    places: Vec<Place>,
    /// Where each part begins, and the end.
    starts: Vec<usize>,
}

impl SortedRows {
    /// How many bytes the packed positions have.
    pub(super) fn size(&self) -> u64 {
        let spilled = |pile: &Pile| pile.spilled.as_ref().map_or(0, Spool::len);
        self.piles
            .iter()
            .map(|pile| pile.packed.len() as u64 + spilled(pile))
            .sum()
    }

    /// Calls `f` with each packed position in the order of EPDs.
    pub(super) fn for_each(self, mut f: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let SortedRows {
            piles,
            mut places,
            starts,
        } = self;
        let mut runs = Vec::new();
        for pile in &piles {
            if let Some(file) = &pile.spilled {
                for (start, end) in &pile.runs {
                    runs.push(Run {
                        reader: file.reader(*start),
                        left: end - start,
                    });
                }
            }
        }
        let mut next = BinaryHeap::with_capacity(runs.len());
        for (i, run) in runs.iter_mut().enumerate() {
            if let Some(packed) = run.next()? {
                next.push(Reverse(Head(packed, i)));
            }
        }
        let at = |place: &Place| &piles[place.pile()].packed[place.offset()..];
        for part in starts.windows(2) {
            let part = &mut places[part[0]..part[1]];
            part.sort_unstable_by(|a, b| {
                a.prefix
                    .cmp(&b.prefix)
                    .then_with(|| epd(at(a)).cmp(epd(at(b))))
            });
            for place in part {
                let packed = whole(at(place));
                while let Some(Reverse(Head(first, i))) = next.peek() {
                    if epd(first) > epd(packed) {
                        break;
                    }
                    f(first)?;
                    let i = *i;
                    next.pop();
                    if let Some(packed) = runs[i].next()? {
                        next.push(Reverse(Head(packed, i)));
                    }
                }
                f(packed)?;
            }
        }
        while let Some(Reverse(Head(packed, i))) = next.pop() {
            f(&packed)?;
            if let Some(packed) = runs[i].next()? {
                next.push(Reverse(Head(packed, i)));
            }
        }
        Ok(())
    }
}

/// The next position of a run, ordered by its EPD.
struct Head(Vec<u8>, usize);

impl Ord for Head {
    fn cmp(&self, other: &Head) -> std::cmp::Ordering {
        epd(&self.0).cmp(epd(&other.0))
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Head) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Head) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Head {}

/// A sorted run being read.
struct Run<'a> {
    reader: SpoolReader<'a>,
    left: u64,
}

impl Run<'_> {
    fn next(&mut self) -> Result<Option<Vec<u8>>> {
        if self.left == 0 {
            return Ok(None);
        }
        let mut length = [0; 4];
        self.reader.read_exact(&mut length)?;
        let mut packed = vec![0; u32::from_le_bytes(length) as usize];
        packed[..4].copy_from_slice(&length);
        self.reader.read_exact(&mut packed[4..])?;
        self.left -= packed.len() as u64;
        Ok(Some(packed))
    }
}

/// A position being packed: the length of all in four bytes, that of the EPD in two, the EPD, and for
/// each row the length of the move, the move, and three numbers.
#[derive(Default, Debug)]
pub(super) struct Packer {
    packed: Vec<u8>,
    moves: Vec<u8>,
    /// Where each row's move stands, and its numbers.
    rows: Vec<(Range<usize>, Stats)>,
}

impl Packer {
    /// Starts a position, whose EPD `write` appends.
    pub(super) fn start(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.packed.clear();
        self.packed.extend_from_slice(&[0; 6]);
        write(&mut self.packed);
        let length = (self.packed.len() - 6) as u16;
        self.packed[4..6].copy_from_slice(&length.to_le_bytes());
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
                write_number(number, &mut self.packed);
            }
        }
        let length = self.packed.len() as u32;
        self.packed[..4].copy_from_slice(&length.to_le_bytes());
        &self.packed
    }
}

/// The EPD of a packed position.
pub(super) fn epd(packed: &[u8]) -> &[u8] {
    let length = packed[4..]
        .first_chunk()
        .copied()
        .map_or(0, u16::from_le_bytes);
    &packed[6..6 + usize::from(length)]
}

/// Calls `f` with the move and the numbers of each row of a packed position.
pub(super) fn for_each_row<'a>(packed: &'a [u8], mut f: impl FnMut(&'a [u8], Stats)) {
    let mut rest = &packed[6 + epd(packed).len()..];
    while let Some((length, after)) = rest.split_first() {
        let (mv, after) = after.split_at(usize::from(*length));
        rest = after;
        let mut number = || read_number(&mut rest);
        let stats = Stats {
            wins: number(),
            draws: number(),
            losses: number(),
        };
        f(mv, stats);
    }
}

/// A packed position at the start of more bytes.
pub(super) fn whole(packed: &[u8]) -> &[u8] {
    let length = packed.first_chunk().copied().map_or(0, u32::from_le_bytes);
    &packed[..length as usize]
}

/// Seven bits a byte, the lowest first, with the highest bit where more follow.
fn write_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn read_number(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    let mut shift = 0;
    while let Some((byte, rest)) = bytes.split_first() {
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if *byte < 0x80 {
            break;
        }
    }
    number
}

/// The first 25 characters of an EPD's board in five bits each, in the order of their bytes.
fn prefix(epd: &[u8]) -> u128 {
    const CODES: [u8; 256] = codes();
    let mut prefix = 0;
    let mut shift = u128::BITS;
    for byte in epd {
        let code = CODES[usize::from(*byte)];
        // What has no code does not belong to a board. The rest is compared in full.
        if code == 0 || shift < 8 {
            break;
        }
        shift -= 5;
        prefix |= u128::from(code) << shift;
    }
    prefix
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rayon::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_packed_comes_back(
            epd_text in "[ -~]{0,90}", numbers in proptest::collection::vec(0..1u64 << 60, 0..40),
        ) {
            let mut packer = Packer::default();
            packer.start(|text| text.extend_from_slice(epd_text.as_bytes()));
            for wins in &numbers {
                let stats = Stats { wins: *wins, draws: 1 << 40, losses: 0 };
                packer.row(stats, |text| text.extend_from_slice(b"e7e8q"));
            }
            let packed = packer.finish();
            prop_assert_eq!(epd(packed), epd_text.as_bytes());
            let mut found = Vec::new();
            for_each_row(packed, |mv, stats| {
                assert_eq!((mv, stats.draws), (&b"e7e8q"[..], 1 << 40));
                found.push(stats.wins);
            });
            let mut expected = numbers;
            expected.sort_by_key(|wins| std::cmp::Reverse(*wins));
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn positions_come_in_order_from_memory_and_files(
            boards in proptest::collection::hash_set("[1-8KQRBNPkqrbnp/~\\[\\]]{0,40} [wb] (-|[KQkq]{1,4})", 0..300),
            quota in prop_oneof![Just(1usize << 12), Just(1 << 14), Just(1 << 20)],
        ) {
            let rows = Rows {
                piles: (0..3).map(|_| Mutex::default()).collect(),
                quota,
                temp_dir: std::env::temp_dir(),
            };
            boards.par_iter().for_each_init(Packer::default, |packer, board| {
                packer.start(|text| text.extend_from_slice(board.as_bytes()));
                packer.row(Stats::default(), |text| text.extend_from_slice(b"a2a3"));
                rows.push(packer.finish()).unwrap();
            });
            let mut found = Vec::new();
            rows.sorted().for_each(|packed| {
                found.push(String::from_utf8(epd(packed).to_vec()).unwrap());
                Ok(())
            }).unwrap();
            let mut expected: Vec<String> = boards.into_iter().collect();
            expected.sort();
            prop_assert_eq!(found, expected);
        }
    }
}

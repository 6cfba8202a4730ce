//! Rows in the order of their EPD, in bounded memory.
//!
//! Positions come from a [walk](super::walk) in no order, with all their rows at once. They are packed
//! one behind the other, one pile per thread, and sorted at the end; a pile that has its fill is
//! sorted and goes to a temporary file, and at the end the files are merged with the piles.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use rayon::prelude::*;

use crate::{
    error::Result,
    tally::{Memory, Spool, SpoolReader, Stats},
};

/// A move of a position, as it will stand in the database.
pub(super) struct MoveRow<'a> {
    pub mv: &'a [u8],
    pub stats: Stats,
}

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

impl Place {
    fn pile(self) -> usize {
        (self.start >> PILE_SHIFT) as usize
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

    /// Takes a position whose EPD stands at the start of `packed`, [packed](pack) in full.
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
        let mut places = Vec::with_capacity(piles.iter().map(|pile| pile.places.len()).sum());
        for (number, pile) in piles.iter_mut().enumerate() {
            let tagged = std::mem::take(&mut pile.places).into_iter();
            places.extend(tagged.map(|place| Place {
                start: place.start | (number as u64) << PILE_SHIFT,
                ..place
            }));
        }
        let at = |place: &Place| &piles[place.pile()].packed[place.offset()..];
        places.par_sort_unstable_by(|a, b| {
            a.prefix
                .cmp(&b.prefix)
                .then_with(|| epd(at(a)).cmp(epd(at(b))))
        });
        SortedRows { piles, places }
    }
}

/// All positions in order.
#[derive(Debug)]
pub(super) struct SortedRows {
    piles: Vec<Pile>,
    /// Those in memory, in order.
    places: Vec<Place>,
}

impl SortedRows {
    /// Calls `f` with each packed position in the order of EPDs.
    pub(super) fn for_each(&self, mut f: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut runs = Vec::new();
        for pile in &self.piles {
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
        for place in &self.places {
            let packed = whole(&self.piles[place.pile()].packed[place.offset()..]);
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

/// Packs a position and its rows into `packed`: the length of all in four bytes, that of the EPD in
/// two, the EPD, and for each row the length of the move, the move, and three numbers.
pub(super) fn pack(epd: &[u8], rows: &[MoveRow<'_>], packed: &mut Vec<u8>) {
    packed.clear();
    packed.extend_from_slice(&[0; 4]);
    packed.extend_from_slice(&(epd.len() as u16).to_le_bytes());
    packed.extend_from_slice(epd);
    for row in rows {
        packed.push(row.mv.len() as u8);
        packed.extend_from_slice(row.mv);
        for number in [row.stats.wins, row.stats.draws, row.stats.losses] {
            write_number(number, packed);
        }
    }
    let length = packed.len() as u32;
    packed[..4].copy_from_slice(&length.to_le_bytes());
}

/// The EPD of a packed position.
pub(super) fn epd(packed: &[u8]) -> &[u8] {
    let length = packed[4..]
        .first_chunk()
        .copied()
        .map_or(0, u16::from_le_bytes);
    &packed[6..6 + usize::from(length)]
}

/// Calls `f` with each row of a packed position.
pub(super) fn for_each_row<'a>(
    packed: &'a [u8],
    mut f: impl FnMut(MoveRow<'a>) -> Result<()>,
) -> Result<()> {
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
        f(MoveRow { mv, stats })?;
    }
    Ok(())
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

    use super::*;

    fn row(mv: &'static [u8], wins: u64) -> MoveRow<'static> {
        let stats = Stats {
            wins,
            draws: 1 << 40,
            losses: 0,
        };
        MoveRow { mv, stats }
    }

    proptest! {
        #[test]
        fn what_is_packed_comes_back(
            epd_text in "[ -~]{0,90}", numbers in proptest::collection::vec(any::<u64>(), 0..40),
        ) {
            let mut packed = Vec::new();
            let rows: Vec<_> = numbers.iter().map(|wins| row(b"e7e8q", *wins)).collect();
            pack(epd_text.as_bytes(), &rows, &mut packed);
            prop_assert_eq!(epd(&packed), epd_text.as_bytes());
            let mut found = Vec::new();
            for_each_row(&packed, |row| {
                assert_eq!((row.mv, row.stats.draws), (&b"e7e8q"[..], 1 << 40));
                found.push(row.stats.wins);
                Ok(())
            }).unwrap();
            prop_assert_eq!(found, numbers);
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
            let mut packed = Vec::new();
            for board in &boards {
                pack(board.as_bytes(), &[row(b"a2a3", 7)], &mut packed);
                rows.push(&packed).unwrap();
            }
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

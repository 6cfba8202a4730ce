//! Collecting packed positions, in bounded memory.
//!
//! Positions come from a [walk](super::walk) in no order, with all their rows at once. They are packed one
//! behind the other, one pile per thread. A pile that reaches its quota is sorted and goes to a temporary file
//! as a run.

use std::{
    hint::black_box,
    path::{Path, PathBuf},
    sync::Mutex,
};

use super::packed::{Packed, epd};
use crate::{
    error::Result,
    sort::{ByteReader, ByteRun, Memory},
    task,
};

/// The bytes that a pile may have however little memory there is.
const SMALLEST_QUOTA: usize = 1 << 18;

/// Positions being collected, from any number of threads.
#[derive(Debug)]
pub(super) struct Piles {
    piles: Vec<Mutex<Pile>>,
    /// How many bytes a pile may have.
    quota: usize,
    temp_dir: PathBuf,
}

/// Positions of one thread.
#[derive(Default, Debug)]
pub(super) struct Pile {
    /// Packed positions, one behind the other.
    packed: Vec<u8>,
    places: Vec<Place>,
    spilled: Option<ByteRun>,
    /// Where each sorted run of the file begins and ends.
    runs: Vec<(u64, u64)>,
}

/// A packed position and where it is.
#[derive(Copy, Clone, Debug)]
pub(super) struct Place {
    /// The first characters of its EPD, which sort like them.
    prefix: Prefix,
    /// The first byte in its pile, and in the highest byte which pile.
    start: u64,
}

const PILE_SHIFT: u32 = 56;

/// The most positions whose characters behind the same prefix are in memory at once.
const MOST_BEHIND: usize = 1 << 16;

/// Into how many parts positions in memory are divided before they are sorted: by three characters.
pub(super) const PARTS: usize = 1 << 15;

impl Place {
    pub(super) const NOWHERE: Place = Place {
        prefix: Prefix([0; 2]),
        start: 0,
    };

    /// A position of the first pile.
    fn new(packed: &Packed<'_>, start: usize) -> Place {
        Place {
            prefix: prefix(packed.epd()),
            start: start as u64,
        }
    }

    /// The same in another pile.
    pub(super) fn in_pile(self, pile: usize) -> Place {
        Place {
            start: self.start | (pile as u64) << PILE_SHIFT,
            ..self
        }
    }

    pub(super) fn pile(self) -> usize {
        (self.start >> PILE_SHIFT) as usize
    }

    /// The part of the position, under [`PARTS`]. It never falls when the EPD grows.
    pub(super) fn part(self) -> usize {
        (self.prefix.0[0] >> 49) as usize
    }

    fn offset(self) -> usize {
        (self.start & ((1 << PILE_SHIFT) - 1)) as usize
    }
}

/// Sorts places by the EPDs of their positions, which begin in the bytes that `at` answers.
pub(super) fn sort_places<'a>(places: &mut [Place], at: impl Fn(&Place) -> &'a [u8]) {
    places.sort_unstable_by_key(|place| place.prefix);
    let mut behind = Vec::new();
    for same in places.chunk_by_mut(|a, b| a.prefix == b.prefix) {
        if same.len() > 1 {
            sort_same(same, &mut behind, &at);
        }
    }
}

/// Sorts places that have the same prefix. Positions are all over memory, so each is fetched once, for the
/// characters behind the prefix, which hardly any other has too.
fn sort_same<'a>(
    same: &mut [Place],
    behind: &mut Vec<(Prefix, Place)>,
    at: impl Fn(&Place) -> &'a [u8],
) {
    let epd = |place: &Place| epd(at(place));
    if !same[0].prefix.is_full() || same.len() > MOST_BEHIND {
        same.sort_unstable_by(|a, b| epd(a).cmp(epd(b)));
        return;
    }
    wait_together(same, &at);
    behind.clear();
    behind.extend(
        same.iter()
            .map(|place| (prefix(&epd(place)[PREFIX..]), *place)),
    );
    behind.sort_unstable_by(|(a, a_place), (b, b_place)| {
        a.cmp(b).then_with(|| epd(a_place).cmp(epd(b_place)))
    });
    for (place, (_, sorted)) in same.iter_mut().zip(behind) {
        *place = *sorted;
    }
}

/// Fetches the positions of places into the processor's cache: in so short a loop, it waits for many at once.
pub(super) fn wait_together<'a>(places: &[Place], at: impl Fn(&Place) -> &'a [u8]) {
    let first = |place| at(place)[0];
    black_box(places.iter().fold(0, |all, place| all ^ first(place)));
}

impl Piles {
    /// Room for a pile for each of so many threads.
    pub(super) fn new(threads: usize, memory: &Memory) -> Piles {
        let piles = threads.clamp(1, 1 << (u64::BITS - PILE_SHIFT));
        Piles {
            piles: (0..piles).map(|_| Mutex::default()).collect(),
            quota: (memory.bytes / piles).max(SMALLEST_QUOTA),
            temp_dir: memory.temp_dir.clone(),
        }
    }

    /// Takes a position.
    pub(super) fn push(&self, packed: &Packed<'_>) -> Result<()> {
        let pile = rayon::current_thread_index().unwrap_or(0) % self.piles.len();
        let mut pile = task::lock(&self.piles[pile]);
        task::fault("pile");
        let more = packed.bytes().len() + size_of::<Place>();
        if pile.bytes() + more > self.quota && !pile.places.is_empty() {
            pile.spill(&self.temp_dir)?;
        }
        let start = pile.packed.len();
        pile.places.push(Place::new(packed, start));
        pile.packed.extend_from_slice(packed.bytes());
        Ok(())
    }

    /// Ends collecting.
    pub(super) fn into_piles(self) -> Vec<Pile> {
        let piles = self.piles.into_iter();
        piles.map(task::unlocked).collect()
    }
}

impl Pile {
    /// The bytes in memory.
    fn bytes(&self) -> usize {
        self.packed.len() + self.places.len() * size_of::<Place>()
    }

    /// Moves the positions to the file, as a sorted run.
    fn spill(&mut self, temp_dir: &Path) -> Result<()> {
        let packed = &self.packed;
        let at = |place: &Place| &packed[place.offset()..];
        sort_places(&mut self.places, at);
        // What is spilled is not to stay in memory.
        let file = self
            .spilled
            .get_or_insert_with(|| ByteRun::new(0, temp_dir.to_owned()));
        let start = file.len();
        for place in &self.places {
            file.append(Packed::at_start(at(place)).bytes())?;
        }
        self.runs.push((start, file.len()));
        self.packed.clear();
        self.places.clear();
        Ok(())
    }

    /// How many bytes the packed positions have, in memory and in the file.
    pub(super) fn size(&self) -> u64 {
        let spilled = self.spilled.as_ref().map_or(0, ByteRun::len);
        self.packed.len() as u64 + spilled
    }

    /// The bytes that begin with the position of a place.
    pub(super) fn at(&self, place: Place) -> &[u8] {
        &self.packed[place.offset()..]
    }

    /// The places of the positions in memory.
    pub(super) fn places(&self) -> &[Place] {
        &self.places
    }

    /// Takes the places of the positions in memory, which stay where they are.
    pub(super) fn take_places(&mut self) -> Vec<Place> {
        std::mem::take(&mut self.places)
    }

    /// The sorted runs of the file.
    pub(super) fn runs(&self) -> impl Iterator<Item = Run<'_>> {
        let file = self.spilled.as_ref();
        file.into_iter().flat_map(|file| {
            self.runs.iter().map(|(start, end)| Run {
                reader: file.reader(*start),
                left: end - start,
            })
        })
    }
}

/// A sorted run being read.
pub(super) struct Run<'a> {
    reader: ByteReader<'a>,
    left: u64,
}

impl<'a> Iterator for Run<'a> {
    type Item = Result<Packed<'a>>;

    fn next(&mut self) -> Option<Result<Packed<'a>>> {
        if self.left == 0 {
            return None;
        }
        let packed = Packed::read(&mut self.reader);
        match &packed {
            Ok(packed) => self.left -= packed.bytes().len() as u64,
            Err(_) => self.left = 0,
        }
        Some(packed)
    }
}

/// The most characters that a prefix has.
const PREFIX: usize = 25;

/// The first [`PREFIX`] characters of an EPD's board in five bits each, in the order of their bytes. In two parts,
/// whose alignment makes a place smaller.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Prefix([u64; 2]);

impl Prefix {
    /// Whether there are as many characters as there can be, all of them of the board.
    fn is_full(self) -> bool {
        self.0[1] & 0b1111_1000 != 0
    }
}

fn prefix(epd: &[u8]) -> Prefix {
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
    Prefix([(prefix >> 64) as u64, prefix as u64])
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

    use super::super::{packed::Packer, sorted::SortedRows};
    use super::*;
    use crate::tally::Stats;

    proptest! {
        #[test]
        fn positions_come_in_order_from_memory_and_files(
            boards in proptest::collection::hash_set(
                "((rnbqkbnr/pppppppp/8/8/8/){0,2}|[1-8KQRBNPkqrbnp/~\\[\\]]{0,40})[1-3]{0,2} [wb] (-|[KQkq]{1,4})", 0..300,
            ),
            quota in prop_oneof![Just(1usize << 12), Just(1 << 14), Just(1 << 20)],
        ) {
            let piles = Piles {
                piles: (0..3).map(|_| Mutex::default()).collect(),
                quota,
                temp_dir: std::env::temp_dir(),
            };
            boards.par_iter().for_each_init(Packer::default, |packer, board| {
                packer.start(|text| text.extend_from_slice(board.as_bytes()));
                packer.row(Stats::default(), |text| text.extend_from_slice(b"a2a3"));
                piles.push(&packer.finish()).unwrap();
            });
            let mut found = Vec::new();
            SortedRows::new(piles.into_piles()).for_each(|packed| {
                found.push(String::from_utf8(packed.epd().to_vec()).unwrap());
                Ok(())
            }).unwrap();
            let mut expected: Vec<String> = boards.into_iter().collect();
            expected.sort();
            prop_assert_eq!(found, expected);
        }
    }
}

//! Packed positions in the order of their EPD.
//!
//! Positions come from a [walk](super::walk) in no order, with all their rows at once. Each thread has a sorter. Positions
//! that are in memory at the end are divided into parts that are in order among themselves, so that the first can be
//! had before the last is sorted.

use std::sync::Mutex;

use super::packed::ByEpd;
use crate::{
    error::Result,
    sort::{MOST_SORTERS, Memory, Place, TextSorter, merged, sort_places, wait_together},
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
        let mut next = starts.clone();
        let mut places = vec![Place::NOWHERE; starts[PARTS]];
        for (number, pile) in piles.iter_mut().enumerate() {
            for place in pile.take_places() {
                let at = &mut next[place.part(PART_BITS)];
                places[*at] = place.in_sorter(number);
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

/// All positions, which are sorted while they are taken.
#[derive(Debug)]
pub(super) struct SortedRows {
    piles: Vec<TextSorter<ByEpd>>,
    /// Those in memory, part by part.
    places: Vec<Place>,
    /// Where each part begins, and the end.
    starts: Vec<usize>,
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
        let in_memory = InMemory::new(&self.piles, &mut self.places, &self.starts);
        for packed in merged(in_memory, &self.piles) {
            f(&packed?)?;
        }
        Ok(())
    }
}

/// The positions in memory, whose parts are sorted one after the other.
struct InMemory<'a> {
    piles: &'a [TextSorter<ByEpd>],
    /// The places that are left, and the ends of their parts.
    places: &'a mut [Place],
    lengths: std::vec::IntoIter<usize>,
    /// The rest of the part that is sorted.
    sorted: &'a [Place],
    /// How many of these have been fetched.
    fetched: usize,
}

impl<'a> InMemory<'a> {
    fn new(
        piles: &'a [TextSorter<ByEpd>],
        places: &'a mut [Place],
        starts: &[usize],
    ) -> InMemory<'a> {
        let lengths = starts.windows(2).map(|part| part[1] - part[0]);
        let lengths: Vec<usize> = lengths.filter(|length| *length > 0).collect();
        InMemory {
            piles,
            places,
            lengths: lengths.into_iter(),
            sorted: &[],
            fetched: 0,
        }
    }
}

impl<'a> Iterator for InMemory<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        loop {
            let piles = self.piles;
            let at = |place: Place| piles[place.sorter()].at(place);
            if let Some((place, rest)) = self.sorted.split_first() {
                if self.fetched == 0 {
                    self.fetched = FETCHED.min(self.sorted.len());
                    wait_together(&self.sorted[..self.fetched], at);
                }
                self.fetched -= 1;
                self.sorted = rest;
                return Some(at(*place));
            }
            let length = self.lengths.next()?;
            let (part, rest) = std::mem::take(&mut self.places).split_at_mut(length);
            self.places = rest;
            sort_places::<ByEpd>(part, at);
            self.sorted = part;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rayon::prelude::*;

    use super::*;
    use crate::obs::packed::{Packer, epd};
    use crate::tally::Stats;

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
}

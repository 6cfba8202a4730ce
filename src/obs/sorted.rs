//! Packed positions in the order of their EPD.
//!
//! Those in memory are divided into parts that are in order among themselves, so that the first can be had before
//! the last is sorted. They are merged with the runs that were spilled.

use super::{
    packed::Packed,
    piles::{PARTS, Pile, Place, sort_places, wait_together},
};
use crate::{error::Result, sort::Merge};

/// Positions that are fetched from memory at once.
const FETCHED: usize = 32;

/// All positions, which are sorted while they are taken.
#[derive(Debug)]
pub(super) struct SortedRows {
    piles: Vec<Pile>,
    /// Those in memory, part by part.
    places: Vec<Place>,
    /// Where each part begins, and the end.
    starts: Vec<usize>,
}

impl SortedRows {
    pub(super) fn new(mut piles: Vec<Pile>) -> SortedRows {
        let mut starts = vec![0; PARTS + 1];
        for place in piles.iter().flat_map(Pile::places) {
            starts[place.part() + 1] += 1;
        }
        for part in 0..PARTS {
            starts[part + 1] += starts[part];
        }
        let mut next = starts.clone();
        let mut places = vec![Place::NOWHERE; starts[PARTS]];
        for (number, pile) in piles.iter_mut().enumerate() {
            for place in pile.take_places() {
                let at = &mut next[place.part()];
                places[*at] = place.in_pile(number);
                *at += 1;
            }
        }
        SortedRows {
            piles,
            places,
            starts,
        }
    }

    /// How many bytes the packed positions have.
    pub(super) fn size(&self) -> u64 {
        self.piles.iter().map(Pile::size).sum()
    }

    /// Calls `f` with each packed position in the order of EPDs.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be read, or what `f` answers.
    pub(super) fn for_each(self, mut f: impl FnMut(&Packed<'_>) -> Result<()>) -> Result<()> {
        let SortedRows {
            piles,
            mut places,
            starts,
        } = self;
        let in_memory = InMemory::new(&piles, &mut places, &starts);
        let mut sources: Vec<Source<'_>> = vec![Box::new(in_memory.map(Ok))];
        for run in piles.iter().flat_map(Pile::runs) {
            sources.push(Box::new(run));
        }
        for packed in Merge::new(sources) {
            f(&packed?)?;
        }
        Ok(())
    }
}

/// Positions in order, from memory or from a file.
type Source<'a> = Box<dyn Iterator<Item = Result<Packed<'a>>> + 'a>;

/// The positions in memory, whose parts are sorted one after the other.
struct InMemory<'a> {
    piles: &'a [Pile],
    /// The places that are left, and the ends of their parts.
    places: &'a mut [Place],
    lengths: std::vec::IntoIter<usize>,
    /// What is left of the part that is sorted.
    sorted: &'a [Place],
    /// How many of these have been fetched.
    fetched: usize,
}

impl<'a> InMemory<'a> {
    fn new(piles: &'a [Pile], places: &'a mut [Place], starts: &[usize]) -> InMemory<'a> {
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
    type Item = Packed<'a>;

    fn next(&mut self) -> Option<Packed<'a>> {
        loop {
            let piles = self.piles;
            let at = |place: &Place| piles[place.pile()].at(*place);
            if let Some((place, rest)) = self.sorted.split_first() {
                if self.fetched == 0 {
                    self.fetched = FETCHED.min(self.sorted.len());
                    wait_together(&self.sorted[..self.fetched], at);
                }
                self.fetched -= 1;
                self.sorted = rest;
                return Some(Packed::at_start(at(place)));
            }
            let length = self.lengths.next()?;
            let (part, rest) = std::mem::take(&mut self.places).split_at_mut(length);
            self.places = rest;
            sort_places(part, at);
            self.sorted = part;
        }
    }
}

//! The filters of a question, made ready for the sources that are asked.

use super::{query::Filters, sieve::Sieve, source::Source, sources::Sources, summed::SumFilter};
use crate::{
    error::Result,
    index::{explored::ListPlace, layout::Subject},
};

/// A list with more than one of so many games of a source is long.
const LONG: u64 = 4;

/// The sources of which a game can pass, and what passes there.
pub(super) struct Sieves<'a> {
    sieves: Vec<(&'a Source, Sieve<'a>)>,
    /// What sums are asked for, if they have all that the filters ask about.
    pub sum_filter: Option<SumFilter>,
}

impl<'a> Sieves<'a> {
    pub(super) fn new(sources: &'a Sources, filters: &Filters) -> Result<Sieves<'a>> {
        let mut sieves = Vec::new();
        for source in sources.iter() {
            if let Some(sieve) = Sieve::new(source, filters)? {
                sieves.push((source, sieve));
            }
        }
        Ok(Sieves {
            sieves,
            sum_filter: SumFilter::new(filters),
        })
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&'a Source, &Sieve<'a>)> {
        self.sieves.iter().map(|(source, sieve)| (*source, sieve))
    }

    /// Asks all games of the sources in which the list of a subject is long, if sums do not answer. Answers whether
    /// there are any.
    ///
    /// It is worth it where several lists of much the same games are gone through.
    pub(super) fn ask_long(&self, subject: Subject) -> Result<bool> {
        let mut are_any = false;
        if self.sum_filter.is_some() {
            return Ok(are_any);
        }
        for (source, sieve) in self.iter() {
            if let ListPlace::Apart(apart) = source.place(subject)?
                && apart.items > source.games() / LONG
            {
                sieve.ask_all();
                are_any = true;
            }
        }
        Ok(are_any)
    }
}

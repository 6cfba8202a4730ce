//! Suites of the moves that a database or a book has.

use shakmaty::variant::VariantPosition;

use super::{Suite, write::SuiteFormat};
use crate::{
    error::Result, output::AtomicFile, position::Keyed, progress::Meter, sort::Memory,
    tally::Stats, walk::Source,
};

/// What making a suite came to.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Written {
    /// Its lines or positions.
    pub entries: u64,
    /// Whether lines were left that nobody looked at.
    pub is_cut: bool,
}

/// White's results in all games that came to a position, `None` where games are not counted.
pub(crate) type Results<'a> = &'a dyn Fn(&Keyed<VariantPosition>) -> Result<Option<Stats>>;

/// A suite that is made of the moves that a source has after some positions, at least one.
pub(crate) struct SuiteOf<'a, S> {
    pub source: &'a S,
    pub results: Results<'a>,
    pub starts: &'a [VariantPosition],
    pub suite: &'a Suite,
    /// For the lines and positions on the way.
    pub memory: Memory,
    pub meter: &'a Meter,
}

impl<S: Source> SuiteOf<'_, S> {
    /// Writes the suite, and puts it in place.
    pub(crate) fn write(&self, file: AtomicFile, format: SuiteFormat) -> Result<Written> {
        match format {
            SuiteFormat::Pgn => self.write_lines(file),
            SuiteFormat::Epd => self.write_positions(file),
        }
    }
}

impl Suite {
    /// Whether the commonest are wanted of all, and not others.
    pub(super) fn takes_the_commonest(&self) -> bool {
        self.limit.is_some() && self.seed.is_none()
    }
}

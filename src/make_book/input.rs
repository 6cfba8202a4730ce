//! An input of a run as the pipeline sees it: games, or counts of games that were counted before.

use std::{ops::Range, path::Path};

use super::{
    budget::BYTES_OF_DIRECTORY,
    run::{Batches, Run},
};
use crate::{
    error::Result,
    position::VariantChoice,
    provenance::{Provenance, Pruned},
    tally::{By, OrderedCounts},
};

/// An input of a run.
pub(super) trait RunInput: Send + Sync {
    /// Refuses an input that cannot be read, if that is known before it is read.
    ///
    /// # Errors
    ///
    /// A missing or unreadable file, or a directory.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Its size in bytes, `None` where that is not known.
    fn size(&self) -> Option<u64>;

    /// The facts about counts, `None` for games.
    fn counted(&self) -> Option<CountedBefore<'_>> {
        None
    }

    /// The counts that are in order, if it has such.
    fn ordered(&self) -> Option<&dyn OrderedInput> {
        None
    }

    /// Reads it, and hands its games or rows to the threads of the run.
    ///
    /// # Errors
    ///
    /// An input that cannot be read, and [`Error::Interrupted`].
    fn read<'scope>(&'scope self, batches: &mut Batches<'_, 'scope, '_>) -> Result<()>;
}

/// Counts in the order of their keys. They need not be sorted: they are merged with all that was.
pub(super) trait OrderedInput: Sync {
    fn rows(&self) -> u64;

    /// The rows of some shards of keys.
    fn open<'r>(&'r self, run: &'r Run<'_>, shards: Range<usize>) -> OrderedCounts<'r>;

    /// Makes sure that the files are as they were written.
    ///
    /// # Errors
    ///
    /// A file that was altered.
    fn check_bytes(&self) -> Result<()>;

    /// Makes sure that all rows were read, and returns how many games they have in all.
    ///
    /// # Errors
    ///
    /// A file that was altered, or has other rows than it says.
    fn check_read(&self) -> Result<u64>;
}

/// The facts about counts that are an input.
pub(super) struct CountedBefore<'a> {
    pub path: &'a Path,
    /// Their inputs and their variant, if they state them.
    pub origin: Option<&'a (Provenance, VariantChoice)>,
    /// The classes that they count apart.
    pub by: By,
    /// The positions that they lack.
    pub pruned: Option<Pruned>,
    /// About how much memory the metadata of a part take besides what is usual.
    pub metadata: usize,
    #[cfg(feature = "parquet")]
    pub directory: &'a crate::counts::CountsDirectory,
}

impl CountedBefore<'_> {
    /// About how much memory they take while a thread reads a part in order.
    pub(super) fn memory(&self) -> usize {
        BYTES_OF_DIRECTORY + self.metadata
    }
}

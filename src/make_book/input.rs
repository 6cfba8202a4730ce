//! The interface of an input to the pipeline. Inputs are games, or counts from an earlier run.

use std::{ops::Range, path::Path};

use super::{
    budget::BYTES_OF_DIRECTORY,
    run::{Batches, Run},
};
use crate::{
    counts::{Grouping, OrderedCounts},
    error::Result,
    position::VariantChoice,
    provenance::{Provenance, Pruned},
};

/// An input of a run.
pub(super) trait RunInput: Send + Sync {
    /// Checks that the input can be read, as far as this is possible before reading it.
    ///
    /// # Errors
    ///
    /// Returns an error if the file does not exist, cannot be read or is a directory.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Returns the size of the input in bytes, or `None` if it is unknown.
    fn size(&self) -> Option<u64>;

    /// Returns facts about the counts, or `None` if the input is games.
    fn counted(&self) -> Option<CountedBefore<'_>> {
        None
    }

    /// Returns the counts in the order of their keys, or `None` if the input is games or unordered counts.
    fn ordered(&self) -> Option<&dyn OrderedInput> {
        None
    }

    /// Reads the input, and passes its games or rows to the threads of the run.
    ///
    /// # Errors
    ///
    /// Returns an error if the input cannot be read, and [`Error::Interrupted`](crate::Error::Interrupted) if the run is
    /// cancelled.
    fn read<'scope>(&'scope self, batches: &mut Batches<'_, 'scope, '_>) -> Result<()>;
}

/// Counts in ascending order of their keys. They are merged with the sorted counts of the other inputs, without being sorted
/// themselves.
pub(super) trait OrderedInput: Sync {
    /// Returns the number of rows.
    fn rows(&self) -> u64;

    /// Returns a reader of the rows whose keys belong to a range of shards.
    fn open<'r>(&'r self, run: &'r Run<'_>, shards: Range<usize>) -> OrderedCounts<'r>;

    /// Checks that the files still have the bytes that were written.
    ///
    /// # Errors
    ///
    /// Returns an error if a file was modified.
    fn check_bytes(&self) -> Result<()>;

    /// Checks that all rows have been read, and returns the number of half-moves that they count.
    ///
    /// # Errors
    ///
    /// Returns an error if a file was modified, or has other rows than its metadata says.
    fn check_read(&self) -> Result<u64>;
}

/// Facts about an input of counts.
pub(super) struct CountedBefore<'a> {
    pub path: &'a Path,
    /// The provenance and the variant of the counts, if they have a sidecar.
    pub origin: Option<&'a (Provenance, VariantChoice)>,
    /// The classes by which the counts are separated.
    pub by: Grouping,
    /// The numbers of positions, rows and half-moves that were pruned from the counts, or `None` if nothing was pruned.
    pub pruned: Option<Pruned>,
    /// The approximate memory, in bytes, that the metadata of a part (a Parquet file) takes beyond the usual amount.
    pub metadata: usize,
    #[cfg(feature = "parquet")]
    pub directory: &'a crate::counts::CountsDirectory,
}

impl CountedBefore<'_> {
    /// Returns the approximate number of bytes of memory that a thread needs to read a part in order.
    pub(super) fn memory(&self) -> usize {
        BYTES_OF_DIRECTORY + self.metadata
    }
}

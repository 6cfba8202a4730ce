//! Sorts byte strings that are added by several threads.

use std::sync::Mutex;

use rayon::prelude::*;

use super::{Memory, Merge, TextSorter};
use crate::{error::Result, task};

/// A set of sorters for byte strings, one for each thread. A mutex protects each sorter, so any thread can add strings
/// to any sorter. Threads rarely wait, because each thread normally uses its own sorter.
#[derive(Debug)]
pub(crate) struct ThreadSorters(Vec<Mutex<TextSorter>>);

impl ThreadSorters {
    /// Creates one sorter for each of `threads` threads. The sorters share the memory budget `memory`.
    pub(crate) fn new(threads: usize, memory: &Memory) -> ThreadSorters {
        let sorter = |_| Mutex::new(TextSorter::new(memory.share(threads), None));
        ThreadSorters((0..threads).map(sorter).collect())
    }

    /// Adds `text` to the sorter of the current thread.
    pub(crate) fn push(&self, text: &[u8]) -> Result<()> {
        let sorter = rayon::current_thread_index().unwrap_or(0) % self.0.len();
        let mut sorter = task::lock(&self.0[sorter]);
        task::fault("pile");
        sorter.push(text)
    }

    /// Sorts the strings that are still in memory, and returns all strings for reading in sorted order. Must be called
    /// after the last string has been added.
    pub(crate) fn into_sorted(self) -> SortedTexts {
        let mut sorters: Vec<_> = self.0.into_iter().map(task::unlocked).collect();
        sorters.par_iter_mut().for_each(TextSorter::sort);
        SortedTexts(sorters)
    }
}

/// A collection of byte strings in several sorted sequences, which are merged while they are read.
#[derive(Debug)]
pub(crate) struct SortedTexts(Vec<TextSorter>);

impl SortedTexts {
    /// Returns the total size of the strings in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.0.iter().map(TextSorter::size).sum()
    }

    /// Calls `f` with each string, in ascending order.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be read or if `f` fails.
    pub(crate) fn for_each(self, mut f: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let sequences = self.0.iter().flat_map(TextSorter::sequences);
        Merge::of_long(sequences, |text| text.len()).try_for_each(|text| f(&text?))
    }
}

//! The records of a shard that are still collected.

use super::{
    blocks::{Blocks, Pool},
    compact::compact,
    record::Record,
    run::Run,
    unsorted::Unsorted,
};

/// Records in memory, and where others are.
#[derive(Debug)]
pub(super) struct Shard<R> {
    pub new: Unsorted<R>,
    pub sorted: Blocks<R>,
    /// What was spilled to the file of the shard.
    pub runs: Vec<Run>,
}

impl<R> Default for Shard<R> {
    fn default() -> Shard<R> {
        Shard {
            new: Unsorted::default(),
            sorted: Blocks::default(),
            runs: Vec::new(),
        }
    }
}

impl<R: Record> Shard<R> {
    /// How many records are in memory.
    pub(super) fn len(&self) -> usize {
        self.new.len() + self.sorted.len()
    }

    /// Sorts the new records and merges them with those that are sorted.
    pub(super) fn compact(&mut self, pool: &Pool<R>) {
        let (new, sorted) = (
            std::mem::take(&mut self.new),
            std::mem::take(&mut self.sorted),
        );
        self.sorted = compact(new, sorted, pool);
    }
}

//! Sealed records: the sorted and folded records of a store, in one sequence for each shard.

use std::ops::Range;

use super::{
    Record,
    blocks::Blocks,
    merge::{MAX_BATCH_ITEMS, SortedRecords},
    run::ByteRun,
};
use crate::error::Result;

/// The records of a store after sorting and folding, which combines equal records into one. The store is divided into
/// shards. The shards are in ascending order, and so are the records of each shard.
#[derive(Debug)]
pub(crate) struct Sealed<R> {
    shards: Vec<SealedShard<R>>,
}

/// The sorted records of one shard, in memory or in a temporary file.
#[derive(Debug)]
pub(super) enum SealedShard<R> {
    Memory(Blocks<R>),
    /// A run in a temporary file, which neighboring shards share.
    File(ByteRun),
}

impl<R: Record> Sealed<R> {
    /// Creates the sealed store from groups of consecutive shards. The groups must be in ascending order.
    pub(super) fn new(groups: Vec<Vec<SealedShard<R>>>) -> Sealed<R> {
        Sealed {
            shards: groups.into_iter().flatten().collect(),
        }
    }

    /// Calls `f` with each record of the shard with index `shard`, in ascending order. Shards are the ordered parts of
    /// the store.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be read or was changed.
    pub(crate) fn for_each(&self, shard: usize, mut f: impl FnMut(R)) -> Result<()> {
        match &self.shards[shard] {
            SealedShard::Memory(records) => {
                records.iter().for_each(f);
                Ok(())
            }
            SealedShard::File(run) => {
                let mut refill = run.refill(MAX_BATCH_ITEMS);
                let mut records = Vec::new();
                loop {
                    refill(&mut records)?;
                    if records.is_empty() {
                        return Ok(());
                    }
                    records.drain(..).for_each(&mut f);
                }
            }
        }
    }

    /// Returns an iterator over the records of the shard with index `shard`, in ascending order.
    pub(crate) fn records(&self, shard: usize) -> SortedRecords<'_, R> {
        match &self.shards[shard] {
            SealedShard::Memory(records) => Box::new(records.iter().map(Ok)),
            SealedShard::File(run) => Box::new(run.records()),
        }
    }

    /// Returns the number of records in the shard with index `shard`.
    pub(crate) fn shard_len(&self, shard: usize) -> u64 {
        match &self.shards[shard] {
            SealedShard::Memory(records) => records.len() as u64,
            SealedShard::File(run) => run.records_len(),
        }
    }

    /// Returns the records of the shard with index `shard`, or `None` if they are in a temporary file.
    fn in_blocks(&self, shard: usize) -> Option<&Blocks<R>> {
        match &self.shards[shard] {
            SealedShard::Memory(records) => Some(records),
            SealedShard::File(_) => None,
        }
    }

    /// Returns `true` if the records of a shard are in memory, and `false` if they are in a temporary file. `shard` is
    /// the index of the shard.
    pub(crate) fn is_in_memory(&self, shard: usize) -> bool {
        self.in_blocks(shard).is_some()
    }

    /// Returns the record at index `number` in the shard with index `shard`. Returns `None` if `number` is out of
    /// bounds, or if the shard is in a temporary file.
    #[inline]
    pub(crate) fn in_memory(&self, shard: usize, number: usize) -> Option<&R> {
        self.in_blocks(shard)?.get(number)
    }

    /// Returns the records of the shard with index `shard` at the indices `range` as one slice. Records that are in a
    /// temporary file, or not contiguous in memory, are copied into `buffer` first.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be read or was changed.
    pub(crate) fn range<'a>(
        &'a self,
        shard: usize,
        range: Range<usize>,
        buffer: &'a mut Vec<R>,
    ) -> Result<&'a [R]> {
        match &self.shards[shard] {
            SealedShard::Memory(records) => Ok(records.range(range, buffer)),
            SealedShard::File(run) => {
                run.read(range, buffer)?;
                Ok(buffer)
            }
        }
    }

    /// Returns the approximate number of bytes of memory that the records take. Records in temporary files are not
    /// included.
    pub(crate) fn bytes_in_memory(&self) -> u64 {
        let in_memory = (0..self.shards.len()).filter_map(|shard| self.in_blocks(shard));
        (in_memory.map(Blocks::len).sum::<usize>() * size_of::<R>()) as u64
    }

    /// Returns `true` if the records of at least one shard are in a temporary file.
    pub(crate) fn is_spilled(&self) -> bool {
        (0..self.shards.len()).any(|shard| !self.is_in_memory(shard))
    }
}

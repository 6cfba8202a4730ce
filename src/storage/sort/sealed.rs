//! Sealed records: sorted and folded, one sequence for each shard.

use std::ops::Range;

use super::{
    Record,
    blocks::Blocks,
    merge::{AT_ONCE, SortedRecords},
    run::ByteRun,
};
use crate::error::Result;

/// All records of a store after they were sorted and equal records were folded into one. The store is divided into
/// ordered parts, called shards. The records of each shard are in ascending order.
#[derive(Debug)]
pub(crate) struct Sealed<R> {
    shards: Vec<SealedShard<R>>,
}

/// The sorted records of one shard, in memory or in a temporary file.
#[derive(Debug)]
pub(super) enum SealedShard<R> {
    Memory(Blocks<R>),
    /// A run in a file that other shards of the group share.
    File(ByteRun),
}

impl<R: Record> Sealed<R> {
    /// Creates the sorted store from groups of consecutive shards, the ordered parts of the store. The groups must be
    /// in ascending order.
    pub(super) fn new(groups: Vec<Vec<SealedShard<R>>>) -> Sealed<R> {
        Sealed {
            shards: groups.into_iter().flatten().collect(),
        }
    }

    /// Calls `f` with each record of a shard, one of the ordered parts of the store, in ascending order. `shard` is the
    /// number of the shard.
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
                let mut refill = run.refill(AT_ONCE);
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

    /// Returns an iterator over the records of one shard, in ascending order. `shard` is the number of the shard.
    pub(crate) fn records(&self, shard: usize) -> SortedRecords<'_, R> {
        match &self.shards[shard] {
            SealedShard::Memory(records) => Box::new(records.iter().map(Ok)),
            SealedShard::File(run) => Box::new(run.records()),
        }
    }

    /// Returns the number of records in the shard with the number `shard`.
    pub(crate) fn shard_len(&self, shard: usize) -> u64 {
        match &self.shards[shard] {
            SealedShard::Memory(records) => records.len() as u64,
            SealedShard::File(run) => run.records_len(),
        }
    }

    /// Returns the records of the shard with the number `shard` if they are in memory, or `None` if they are in a file.
    fn in_blocks(&self, shard: usize) -> Option<&Blocks<R>> {
        match &self.shards[shard] {
            SealedShard::Memory(records) => Some(records),
            SealedShard::File(_) => None,
        }
    }

    /// Returns `true` if the records of the shard with the number `shard` are in memory, and `false` if they are in a
    /// file.
    pub(crate) fn is_in_memory(&self, shard: usize) -> bool {
        self.in_blocks(shard).is_some()
    }

    /// Returns the record with the index `number` in a shard, one of the ordered parts of the store. `shard` is the
    /// number of the shard. Returns `None` if the shard has fewer records or is not in memory.
    #[inline]
    pub(crate) fn in_memory(&self, shard: usize, number: usize) -> Option<&R> {
        self.in_blocks(shard)?.get(number)
    }

    /// Returns the records at the indices `range` of the shard number `shard` as one slice. Records that are in a file,
    /// or not contiguous in memory, are first copied into `buffer`.
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

    /// Returns the approximate number of bytes that the records take in memory. Shards in files are not included.
    pub(crate) fn bytes_in_memory(&self) -> u64 {
        let in_memory = (0..self.shards.len()).filter_map(|shard| self.in_blocks(shard));
        (in_memory.map(Blocks::len).sum::<usize>() * size_of::<R>()) as u64
    }

    /// Returns `true` if the records of any shard are in a temporary file.
    pub(crate) fn is_spilled(&self) -> bool {
        (0..self.shards.len()).any(|shard| !self.is_in_memory(shard))
    }
}

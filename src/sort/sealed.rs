//! Sorted records: one sequence for each shard.

use std::ops::Range;

use super::{
    blocks::Blocks,
    merge::{AT_ONCE, Records},
    record::Record,
    run::ByteRun,
};
use crate::error::Result;

/// All records, sorted and folded, shard by shard.
#[derive(Debug)]
pub(crate) struct Sealed<R> {
    shards: Vec<SealedShard<R>>,
}

/// The records of a shard.
#[derive(Debug)]
pub(super) enum SealedShard<R> {
    Memory(Blocks<R>),
    /// A run of a file that neighboring shards share.
    File(ByteRun),
}

impl<R: Record> Sealed<R> {
    /// The records of all shards, in groups of shards.
    pub(super) fn new(groups: Vec<Vec<SealedShard<R>>>) -> Sealed<R> {
        Sealed {
            shards: groups.into_iter().flatten().collect(),
        }
    }

    /// Calls `f` with the records of a shard in ascending order.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be read.
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

    /// The records of a shard in ascending order.
    pub(crate) fn records(&self, shard: usize) -> Records<'_, R> {
        match &self.shards[shard] {
            SealedShard::Memory(records) => Box::new(records.iter().map(Ok)),
            SealedShard::File(run) => Box::new(run.records()),
        }
    }

    /// How many records a shard has.
    pub(crate) fn shard_len(&self, shard: usize) -> u64 {
        match &self.shards[shard] {
            SealedShard::Memory(records) => records.len() as u64,
            SealedShard::File(run) => run.records_len(),
        }
    }

    /// The records of a shard that is in memory.
    fn in_blocks(&self, shard: usize) -> Option<&Blocks<R>> {
        match &self.shards[shard] {
            SealedShard::Memory(records) => Some(records),
            SealedShard::File(_) => None,
        }
    }

    /// Whether a shard is in memory.
    pub(crate) fn is_in_memory(&self, shard: usize) -> bool {
        self.in_blocks(shard).is_some()
    }

    /// A record of a shard by its number, if the shard is in memory and has it.
    #[inline]
    pub(crate) fn in_memory(&self, shard: usize, number: usize) -> Option<&R> {
        self.in_blocks(shard)?.get(number)
    }

    /// Some records of a shard, read into `buffer` if they are not in one place in memory.
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

    /// About how many bytes of memory the records take.
    pub(crate) fn bytes_in_memory(&self) -> u64 {
        let in_memory = (0..self.shards.len()).filter_map(|shard| self.in_blocks(shard));
        (in_memory.map(Blocks::len).sum::<usize>() * size_of::<R>()) as u64
    }

    /// Whether any shard is in a temporary file.
    pub(crate) fn is_spilled(&self) -> bool {
        (0..self.shards.len()).any(|shard| !self.is_in_memory(shard))
    }
}

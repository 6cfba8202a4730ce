//! Records that are all sorted.

use std::{ops::Range, sync::Arc};

use super::{
    record::Record,
    run::{Run, RunFile},
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
    Memory(Vec<R>),
    /// One run of a file that neighbouring shards share.
    File(Arc<RunFile>, Run),
}

impl<R: Record> Sealed<R> {
    pub(super) fn new(shards: Vec<SealedShard<R>>) -> Sealed<R> {
        Sealed { shards }
    }

    /// Calls `f` with the records of a shard in ascending order.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be read.
    pub(crate) fn for_each(&self, shard: usize, mut f: impl FnMut(R)) -> Result<()> {
        match &self.shards[shard] {
            SealedShard::Memory(records) => records.iter().copied().for_each(f),
            SealedShard::File(file, run) => {
                for record in file.reader(*run) {
                    f(record?);
                }
            }
        }
        Ok(())
    }

    /// The records of a shard in ascending order.
    pub(crate) fn records(&self, shard: usize) -> Box<dyn Iterator<Item = Result<R>> + '_> {
        match &self.shards[shard] {
            SealedShard::Memory(records) => Box::new(records.iter().copied().map(Ok)),
            SealedShard::File(file, run) => Box::new(file.reader(*run)),
        }
    }

    /// How many records a shard has.
    pub(crate) fn shard_len(&self, shard: usize) -> u64 {
        match &self.shards[shard] {
            SealedShard::Memory(records) => records.len() as u64,
            SealedShard::File(_, run) => run.len(),
        }
    }

    /// The records of a shard that is in memory.
    pub(crate) fn in_memory(&self, shard: usize) -> Option<&[R]> {
        match &self.shards[shard] {
            SealedShard::Memory(records) => Some(records),
            SealedShard::File(..) => None,
        }
    }

    /// Some records of a shard, read into `buffer` if they are not in memory.
    pub(crate) fn range<'a>(
        &'a self,
        shard: usize,
        range: Range<usize>,
        buffer: &'a mut Vec<R>,
    ) -> Result<&'a [R]> {
        match &self.shards[shard] {
            SealedShard::Memory(records) => Ok(&records[range]),
            SealedShard::File(file, run) => {
                file.read(*run, range, buffer)?;
                Ok(buffer)
            }
        }
    }

    /// Whether any shard is in a temporary file.
    pub(crate) fn is_spilled(&self) -> bool {
        self.shards
            .iter()
            .any(|shard| matches!(shard, SealedShard::File(..)))
    }
}

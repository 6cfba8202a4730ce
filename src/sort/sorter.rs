//! Sorting more records than memory holds.

use std::marker::PhantomData;

use super::{
    memory::Memory,
    record::{Fold, Record, SHARDS},
    shards::{Partition, Shards},
};
use crate::{error::Result, task};

/// Records that are handed to the shards at once.
const BATCH: usize = 1 << 14;

/// Collects 128-bit records and gives them back in order, repeated ones as often as they came.
pub(crate) struct Sorter {
    shards: Shards<Plain>,
    batch: Vec<Plain>,
}

impl Sorter {
    /// No records yet; `memory` is for all that will come.
    pub(crate) fn new(memory: &Memory) -> Sorter {
        Sorter {
            shards: Shards::new(memory.clone()),
            batch: Vec::with_capacity(BATCH),
        }
    }

    /// Adds a record.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be written.
    pub(crate) fn push(&mut self, record: u128) -> Result<()> {
        self.batch.push(Plain(record));
        if self.batch.len() == BATCH {
            self.append()?;
        }
        Ok(())
    }

    fn append(&mut self) -> Result<()> {
        self.shards.append(&Partition::new(&self.batch))?;
        self.batch.clear();
        Ok(())
    }

    /// Calls `f` with all records in order, until it answers an error.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be written or read, or what `f` answers.
    pub(crate) fn for_each(mut self, mut f: impl FnMut(u128) -> Result<()>) -> Result<()> {
        self.append()?;
        // A pool of its own: the one that is shared panics if its threads cannot be started.
        let shards = self.shards;
        let sealed = task::pool(0)?.install(|| shards.seal())?;
        for shard in 0..SHARDS {
            for record in sealed.records(shard) {
                f(record?.0)?;
            }
        }
        Ok(())
    }
}

/// A record of any meaning whose high bits are a key.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Plain(pub(super) u128);

impl Record for Plain {
    type Fold = KeepAll<Plain>;

    fn from_bits(bits: u128) -> Plain {
        Plain(bits)
    }

    fn to_bits(self) -> u128 {
        self.0
    }

    /// Keys are spread evenly.
    fn rank(self) -> u64 {
        (self.0 >> 64) as u64
    }
}

/// Joins no records, not even equal ones.
pub(super) struct KeepAll<R>(PhantomData<R>);

impl<R> Default for KeepAll<R> {
    fn default() -> KeepAll<R> {
        KeepAll(PhantomData)
    }
}

impl<R> Fold for KeepAll<R> {
    type Record = R;

    fn take(&mut self, record: R, out: &mut impl FnMut(R)) {
        out(record);
    }

    fn finish(&mut self, _out: &mut impl FnMut(R)) {}
}

//! Sorting more records than memory holds.

use crate::{
    error::Result,
    tally::{BUCKETS, Fold, Memory, Partition, SHARDS, Shards},
};

/// Records that are handed to the shards at once.
const BATCH: usize = 1 << 14;

/// Collects 128-bit records and gives them back in order, repeated ones as often as they came.
pub(super) struct Sorter {
    shards: Shards<KeepAll>,
    batch: Vec<u128>,
}

impl Sorter {
    /// Takes about as much memory as said.
    pub(super) fn new(memory: &Memory) -> Sorter {
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
    pub(super) fn push(&mut self, record: u128) -> Result<()> {
        self.batch.push(record);
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
    pub(super) fn for_each(mut self, mut f: impl FnMut(u128) -> Result<()>) -> Result<()> {
        self.append()?;
        let sealed = self.shards.seal()?;
        for shard in 0..SHARDS {
            let mut answer = Ok(());
            sealed.for_each(shard, |record| {
                if answer.is_ok() {
                    answer = f(record);
                }
            })?;
            answer?;
        }
        Ok(())
    }
}

/// Records that differ are never joined, nor are equal ones.
#[derive(Default)]
struct KeepAll;

impl Fold for KeepAll {
    fn shard(record: u128) -> usize {
        (record >> 120) as usize
    }

    fn bucket(record: u128) -> usize {
        (record >> 112) as usize & (BUCKETS - 1)
    }

    fn take(&mut self, record: u128, out: &mut impl FnMut(u128)) {
        out(record);
    }

    fn finish(&mut self, _out: &mut impl FnMut(u128)) {}
}

//! Stores that sort more data than memory holds: they spill sorted runs to temporary files, and merge the runs.
//!
//! All data that may outgrow the memory budget is in one of these stores:
//!
//! | data | store |
//! |---|---|
//! | records of 128 bits, folded | [`Shards`], which are sealed into [`Sealed`] records |
//! | records of 128 bits from sources that are already sorted | [`merge_ordered`] |
//! | fingerprints that are looked up while others are added | [`SpillingSet`] |
//! | byte strings of any length: all, the first of them, or the first or best of each key | [`TextSorter`] |
//! | bytes that are read in the order in which they were written | [`ByteRun`] |
//!
//! Every run is a [`ByteRun`], whose blocks have checksums. Every merge is a [`Merge`].
//!
//! Records are distributed over [`SHARDS`] shards. The shards are ordered: every record of a shard is smaller than
//! every record of the next shard. A shard collects records, in a packed form if they have one. When it reaches its
//! quota, it is *compacted*: its records are sorted and folded. If the folded records still fill more than half of the
//! quota, they are written to a temporary file as a *run*. Sealing merges the runs of each shard with its records in
//! memory. The result stays in memory if it fits into the budget, and goes to a file otherwise. The sealed shards, one
//! after the other, are all records in order.
//!
//! The few thousand records of a shard are sorted within the processor's cache, and equal neighbors are folded. This is
//! faster than a hash map per shard, which waits for memory at each insertion, and its result is already a sorted run.

mod blocks;
mod merge;
mod record;
mod run;
mod sealed;
mod shards;
mod spilling_set;
mod texts;

use std::path::PathBuf;

pub(crate) use self::{
    merge::{Merge, Refill},
    record::{Fold, Once, PACKED, Record, SHARDS},
    run::{ByteReader, ByteRun},
    sealed::Sealed,
    shards::{Dropped, Shards, merge_ordered},
    spilling_set::SpillingSet,
    texts::TextSorter,
};

/// The memory budget of a store that sorts data, and the directory of the temporary files to which the store spills.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Memory {
    /// The number of bytes that the data may take before it is spilled to temporary files. Default: 1 GiB.
    pub bytes: usize,
    /// The directory of the temporary files. Default: the system's temporary directory.
    pub temp_dir: PathBuf,
}

impl Memory {
    /// The default memory budget in bytes: 1 GiB.
    pub const DEFAULT_BYTES: usize = 1 << 30;

    /// Divides the budget into `parts` equal shares, and returns one of them. The share has the same directory for
    /// temporary files.
    ///
    /// # Panics
    ///
    /// Panics if `parts` is 0.
    pub fn share(&self, parts: usize) -> Memory {
        self.part(self.bytes / parts)
    }

    /// Returns a budget of `bytes` bytes, with the same directory for temporary files as `self`. The bytes are not
    /// deducted from `self`.
    pub(crate) fn part(&self, bytes: usize) -> Memory {
        let temp_dir = self.temp_dir.clone();
        Memory { bytes, temp_dir }
    }
}

impl Default for Memory {
    fn default() -> Memory {
        Memory {
            bytes: Memory::DEFAULT_BYTES,
            temp_dir: std::env::temp_dir(),
        }
    }
}

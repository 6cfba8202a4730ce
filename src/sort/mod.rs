//! The stores that spill to sorted runs in temporary files and merge them: all data that may outgrow memory is here.
//!
//! | data | store |
//! |---|---|
//! | records of 128 bits, folded | [`Shards`], which give [`Sealed`] records |
//! | the same in ascending order already | [`merge_ordered`] |
//! | fingerprints that are looked up meanwhile | [`Seen`] |
//! | texts of any length; the first of them, or the first or best of each kind | [`TextSorter`] |
//! | bytes that are read as they came | [`ByteRun`] |
//!
//! Every run is a [`ByteRun`], whose blocks have checksums, and every merge is [`Merge`].
//!
//! Records are spread over [`SHARDS`] shards that are themselves in order: every record of one is
//! smaller than every record of the next. A shard collects records, packed where they allow it, and is *compacted* when
//! it reaches its quota: the records are sorted and folded. If that leaves the shard more than half full, they go to a
//! temporary file as a *run*. Sealing merges the runs of each shard with what it has in memory, into memory if the shard
//! has room for that. One shard after the other is the whole in order, without a big sort.
//!
//! Sorting the few thousand records of a shard in the cache and folding neighbors beats a hash map per
//! shard, which waits for memory at each count; and a sorted run is just what a spill needs.

mod blocks;
mod merge;
mod record;
mod run;
mod sealed;
mod seen;
mod shards;
mod texts;

use std::path::PathBuf;

pub(crate) use self::{
    merge::{Merge, Refill},
    record::{Fold, Once, PACKED, Record, SHARDS},
    run::{ByteReader, ByteRun},
    sealed::Sealed,
    seen::Seen,
    shards::{Dropped, Shards, merge_ordered},
    texts::TextSorter,
};

/// How much memory a table of records may take, and where it spills to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Memory {
    /// Bytes that records may take before they go to temporary files. Default: 1 GiB.
    pub bytes: usize,
    /// The directory of the temporary files. Default: the system's.
    pub temp_dir: PathBuf,
}

impl Memory {
    /// The default budget: 1 GiB.
    pub const DEFAULT_BYTES: usize = 1 << 30;

    /// One of several equal parts.
    pub fn share(&self, parts: usize) -> Memory {
        self.part(self.bytes / parts)
    }

    /// A part of this many bytes.
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

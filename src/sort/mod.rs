//! The external sorter: 128-bit records from many threads, in sorted order and bounded memory.
//!
//! The records are spread over [`SHARDS`] shards that are themselves in order: every record of one is
//! smaller than every record of the next. A shard collects records, three packed in the room of two where they
//! allow it, and is *compacted* when it reaches its quota: the new records are sorted, merged with those that are sorted
//! already, and folded. If that leaves the shard more than half full, its sorted records go to a temporary file as a
//! *run*. Sealing merges the runs of each shard with what it has in memory, into memory as far as there is room. One
//! shard after the other is the whole in order, without a big sort.
//!
//! Sorting the few thousand records of a shard in the cache and folding neighbours beats a hash map per
//! shard, which waits for memory at each count; and a sorted run is just what a spill needs.

mod blocks;
mod compact;
mod memory;
mod merge;
mod ordered;
mod packed;
mod record;
mod run;
mod seal;
mod sealed;
mod seen;
mod shard;
mod shards;
mod sorter;
mod texts;
mod unsorted;
mod windows;

pub use self::memory::Memory;
pub(crate) use self::ordered::merge_ordered;
#[cfg(test)]
pub(crate) use self::record::SHORT;
pub(crate) use self::run::ByteReader;
pub(crate) use self::windows::{Ascending, Choice};
pub(crate) use self::{
    merge::Merge,
    record::{Fold, Record, SHARDS},
    run::ByteRun,
    sealed::Sealed,
    seen::Seen,
    shards::{Partition, Shards},
    sorter::Sorter,
    texts::TextSorter,
};

//! Sorts data that exceeds memory: writes sorted runs to temporary files, and merges the runs later.
//!
//! All data that may exceed the memory budget is kept in one of these types:
//!
//! | data | store |
//! |---|---|
//! | records in any order, where equal records are folded into one | [`Shards`], later sorted into [`Sorted`] |
//! | records from sources that are already sorted | [`merge_ordered`] |
//! | fingerprints that are looked up while others are added | [`SpillingSet`] |
//! | byte strings of any length: all, the smallest ones, or the smallest or best of each key | [`TextSorter`] |
//! | bytes that are read in the order in which they were written | [`ByteRun`] |
//!
//! Every run is stored as a [`ByteRun`], which has a checksum for each block. Every merge is done by [`Merge`].
//!
//! Records are distributed over [`SHARDS`] shards. The shards are ordered: every record of a shard is smaller than
//! every record of the next shard. A shard collects records, in packed form if possible. When it reaches its quota,
//! it is *compacted*: its records are sorted, and equal records are folded. If the folded records still fill more
//! than half of the quota, they are written to a temporary file as a *run*. Sorting merges the runs of each shard
//! with its records in memory. The result stays in memory if it fits into the budget, and is otherwise written to a
//! file. The concatenation of the sorted shards contains all records in order.
//!
//! The few thousand records of a shard are sorted within the processor's cache before equal neighbors are folded. This
//! is faster than a hash map for each shard, which would wait for memory at each insertion. The result is also already
//! a sorted run.

mod run;
mod shards;
mod spilling_set;
mod texts;
mod thread_sorters;

use std::{fmt::Debug, path::PathBuf};

pub(crate) use self::{
    run::{ByteReader, ByteRun, Merge, Refill},
    shards::{Dropped, Shards, Sorted, merge_ordered},
    spilling_set::SpillingSet,
    texts::TextSorter,
    thread_sorters::ThreadSorters,
};

/// The memory budget of an operation that sorts data, and the directory for its temporary files. Data that exceeds the
/// budget is written to these files.
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

    /// Returns a budget that is one of `parts` equal shares of this one, with the same directory for temporary files.
    ///
    /// # Panics
    ///
    /// Panics if `parts` is 0.
    pub fn share(&self, parts: usize) -> Memory {
        self.with_bytes(self.bytes / parts)
    }

    /// Returns a budget of `bytes` bytes with the same directory for temporary files.
    pub(crate) fn with_bytes(&self, bytes: usize) -> Memory {
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

/// The number of shards into which a store divides its records. The shards are ordered: every record of a shard
/// precedes every record of the next shard.
pub(crate) const SHARDS: usize = 256;

/// The size in bytes of the packed form of a record. Unsorted records are packed to save memory. The packed
/// form omits bits that are always zero, and bits that follow from the number of the record's shard.
pub(crate) const PACKED_SIZE: usize = 10;

/// A record of fixed size that can be sorted and folded. Folding combines neighboring records into one, as
/// [`Record::Fold`] defines, for example by adding up the numbers of games in two records of the same move.
pub(crate) trait Record: Copy + Ord + Default + Send + Sync + Debug + 'static {
    /// The algorithm that combines neighbors in a sorted sequence of records, for example by adding up the numbers in
    /// equal records.
    type Fold: Fold<Record = Self>;

    /// The form in which temporary files store a record: an array of 16 or 24 bytes, or of another length that divides
    /// the size of a block of such a file.
    type Bytes: AsRef<[u8]> + for<'a> TryFrom<&'a [u8], Error: Debug>;

    /// Creates a record from its stored form.
    fn from_bytes(bytes: Self::Bytes) -> Self;

    /// Returns the stored form of the record.
    fn to_bytes(self) -> Self::Bytes;

    /// Returns the rank of the record, such as the key of its position. The high bits of the rank select the shard of
    /// the record. [`merge_ordered`](merge_ordered) groups records with equal ranks. Ranks must be evenly distributed
    /// over 64 bits, and must not decrease in a sorted sequence of records.
    fn rank(self) -> u64;

    /// Returns the packed form of the record, or `None` if it has none. The store keeps unsorted records in this form
    /// to save memory. The form may omit bits that are equal in all records of a shard.
    #[inline]
    fn packed(self) -> Option<[u8; PACKED_SIZE]> {
        None
    }

    /// Restores a record from its packed form. `_shard` is the number of its shard, which is needed because the packed
    /// form omits bits that are equal in all records of a shard.
    #[inline]
    fn from_packed(_shard: usize, _packed: [u8; PACKED_SIZE]) -> Self {
        unreachable!("no record has a packed form")
    }

    /// Returns the number of the record's shard. A store consists of [`SHARDS`] ordered shards, so the number is less
    /// than [`SHARDS`].
    #[inline]
    fn shard(self) -> usize {
        (self.rank() >> (u64::BITS - SHARDS.ilog2())) as usize
    }

    /// Returns the number of the bucket that the record belongs to if its shard is divided into 2^`bits` buckets. Every
    /// record of a bucket precedes every record of the next bucket.
    #[inline]
    fn bucket(self, bits: u32) -> usize {
        let below_shard = self.rank() << SHARDS.ilog2();
        // A single shift by 64 would overflow if `bits` is 0.
        (below_shard >> 1 >> (u64::BITS - 1 - bits)) as usize
    }
}

/// An algorithm that folds sorted records, for example by adding up the numbers in equal neighbors.
pub(crate) trait Fold: Default {
    /// The type of the records that are folded.
    type Record;

    /// Adds the next record. The caller must pass the records in ascending order. Passes each folded record to `out` as
    /// soon as no later record can change it. Never passes more records to `out` than it has received.
    fn take(&mut self, record: Self::Record, out: &mut impl FnMut(Self::Record));

    /// Passes the remaining folded records to `out`. Must be called after [`take`](Fold::take) has received the last
    /// record. Afterwards, `take` may receive further records with greater ranks.
    ///
    /// Folding a single record must not change it, because sorting skips the fold for records with unique ranks.
    fn finish(&mut self, out: &mut impl FnMut(Self::Record));
}

/// A fold that removes duplicates: it passes on only the first of several equal records. Contains the most recent
/// record, or `None` before the first record.
#[derive(Debug)]
pub(crate) struct Dedup<R>(Option<R>);

impl<R> Default for Dedup<R> {
    fn default() -> Dedup<R> {
        Dedup(None)
    }
}

impl<R: Copy + PartialEq> Fold for Dedup<R> {
    type Record = R;

    #[inline]
    fn take(&mut self, record: R, out: &mut impl FnMut(R)) {
        if self.0.replace(record) != Some(record) {
            out(record);
        }
    }

    #[inline]
    fn finish(&mut self, _out: &mut impl FnMut(R)) {}
}

/// A plain 128-bit record whose high 64 bits are a key. Duplicates are removed.
impl Record for u128 {
    type Fold = Dedup<u128>;
    type Bytes = [u8; 16];

    fn from_bytes(bytes: [u8; 16]) -> u128 {
        u128::from_le_bytes(bytes)
    }

    fn to_bytes(self) -> [u8; 16] {
        self.to_le_bytes()
    }

    /// Returns the high 64 bits of the record. They are a hash, so they are evenly distributed.
    fn rank(self) -> u64 {
        (self >> u64::BITS) as u64
    }
}

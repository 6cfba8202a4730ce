//! The records that [`Shards`](super::Shards) sorts, and how equal ones are folded.

use std::fmt::Debug;

/// The number of shards into which a store divides its records. The shards are ordered: every record of a shard
/// precedes every record of the next shard.
pub(crate) const SHARDS: usize = 256;

/// The size in bytes of the packed form of a 128-bit record, in which unsorted records are kept to save memory.
pub(crate) const PACKED: usize = 10;

/// A record of 128 bits that can be sorted and folded. Records have the same order as their bits.
pub(crate) trait Record: Copy + Ord + Send + Sync + Debug + 'static {
    /// The type that folds neighboring records in sorted order, for example by summing the counts of equal records.
    type Fold: Fold<Record = Self>;

    /// Creates a record from its 128-bit representation.
    fn from_bits(bits: u128) -> Self;

    /// Returns the 128-bit representation of the record.
    fn to_bits(self) -> u128;

    /// Returns a number by which records are distributed. It must be spread about evenly over 64 bits, and must never
    /// decrease as records ascend. Its high bits select the shard. In [`merge_ordered`](super::merge_ordered), records
    /// of equal rank form a group.
    fn rank(self) -> u64;

    /// Returns the packed form of the record, or `None` if it has none. The store keeps unsorted records in this form
    /// to save memory. The form may omit bits that follow from the number of the shard.
    #[inline]
    fn packed(self) -> Option<[u8; PACKED]> {
        None
    }

    /// Restores a record from its packed form. `_shard` is the number of its shard, from which the omitted bits follow.
    #[inline]
    fn from_packed(_shard: usize, _packed: [u8; PACKED]) -> Self {
        unreachable!("no record has a packed form")
    }

    /// Returns the number of the record's shard, the part of a store that contains it. The number is less than
    /// [`SHARDS`].
    #[inline]
    fn shard(self) -> usize {
        (self.rank() >> (u64::BITS - SHARDS.ilog2())) as usize
    }

    /// Returns the number of the record's bucket for a bucket sort. Each shard of a store is divided into 2^`bits`
    /// buckets, which are in the order of their records.
    #[inline]
    fn bucket(self, bits: u32) -> usize {
        let below_shard = self.rank() << SHARDS.ilog2();
        // A single shift by 64 would overflow if `bits` is 0.
        (below_shard >> 1 >> (u64::BITS - 1 - bits)) as usize
    }
}

/// An algorithm that folds the records of a sorted sequence, for example by summing the counts of equal neighbors.
pub(crate) trait Fold: Default {
    /// The type of the records that are folded.
    type Record;

    /// Processes the next record of a sequence in ascending order, and passes records that are complete to `out`. The
    /// total number of records passed never exceeds the number of records taken.
    fn take(&mut self, record: Self::Record, out: &mut impl FnMut(Self::Record));

    /// Passes the remaining records to `out`. Must be called after the last record of the sequence.
    fn finish(&mut self, out: &mut impl FnMut(Self::Record));
}

/// A fold that removes duplicates: of each group of equal records, it passes on one. It contains the last record that
/// was taken.
#[derive(Debug)]
pub(crate) struct Once<R>(Option<R>);

impl<R> Default for Once<R> {
    fn default() -> Once<R> {
        Once(None)
    }
}

impl<R: Copy + PartialEq> Fold for Once<R> {
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

/// A record without a meaning of its own. Its high 64 bits are a key. Equal records are folded into one.
impl Record for u128 {
    type Fold = Once<u128>;

    fn from_bits(bits: u128) -> u128 {
        bits
    }

    fn to_bits(self) -> u128 {
        self
    }

    /// Returns the high 64 bits of the record, a key. Keys are hashes, so they are spread evenly.
    fn rank(self) -> u64 {
        (self >> u64::BITS) as u64
    }
}

//! What the sorter must know of a record.

use std::fmt::Debug;

/// How many shards there are.
pub(crate) const SHARDS: usize = 256;

/// Into how many parts the new records of a shard are divided before they are sorted.
pub(crate) const BUCKETS: usize = 256;

/// A record of 128 bits. Records compare as their bits do.
pub(crate) trait Record: Copy + Ord + Send + Sync + Debug + 'static {
    /// What becomes of several records of one kind.
    type Fold: Fold<Record = Self>;

    /// The record of these bits.
    fn from_bits(bits: u128) -> Self;

    /// The bits of the record.
    fn to_bits(self) -> u128;

    /// The shard of the record, under [`SHARDS`]. It never falls when the record grows.
    fn shard(self) -> usize;

    /// The bucket of the record in its shard, under [`BUCKETS`]. Within a shard it never falls when the
    /// record grows.
    fn bucket(self) -> usize;
}

/// Joins records of one kind that follow one another in sorted order.
pub(crate) trait Fold: Default {
    /// The records that are joined.
    type Record;

    /// Takes the next record in ascending order and hands over those that are complete. Over a whole
    /// sequence it hands over no more than it takes.
    fn take(&mut self, record: Self::Record, out: &mut impl FnMut(Self::Record));

    /// Hands over what is left after the last record.
    fn finish(&mut self, out: &mut impl FnMut(Self::Record));
}

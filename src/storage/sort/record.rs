//! The records that [`Shards`](super::Shards) sorts, and how equal ones are folded.

use std::fmt::Debug;

/// The number of shards.
pub(crate) const SHARDS: usize = 256;

/// The size of a packed record in bytes.
pub(crate) const PACKED: usize = 10;

/// A record of 128 bits. Records are ordered as their bits are.
pub(crate) trait Record: Copy + Ord + Send + Sync + Debug + 'static {
    /// Joins neighboring records in sorted order, for example by adding up their counts.
    type Fold: Fold<Record = Self>;

    /// Returns the record that has these bits.
    fn from_bits(bits: u128) -> Self;

    /// Returns the bits of the record.
    fn to_bits(self) -> u128;

    /// Returns a number that is spread about evenly over 64 bits and never decreases as records ascend.
    ///
    /// Its high bits select the shard. Records of equal rank are a group of [`merge_ordered`](super::merge_ordered).
    fn rank(self) -> u64;

    /// Returns the packed form of the record, or `None` if it does not have one.
    ///
    /// Records wait in their packed form to be sorted. The form may leave out the bits that the shard implies.
    #[inline]
    fn packed(self) -> Option<[u8; PACKED]> {
        None
    }

    /// Returns the record of `shard` that has this packed form.
    #[inline]
    fn from_packed(_shard: usize, _packed: [u8; PACKED]) -> Self {
        unreachable!("no record has a packed form")
    }

    /// Returns the shard of the record, less than [`SHARDS`].
    #[inline]
    fn shard(self) -> usize {
        (self.rank() >> (u64::BITS - SHARDS.ilog2())) as usize
    }

    /// Returns the bucket of the record among the 2^`bits` buckets of its shard. Buckets are ordered as records are.
    #[inline]
    fn bucket(self, bits: u32) -> usize {
        let below_shard = self.rank() << SHARDS.ilog2();
        // A single shift by 64 would overflow if `bits` is 0.
        (below_shard >> 1 >> (u64::BITS - 1 - bits)) as usize
    }
}

/// Joins neighboring records of a sorted sequence.
pub(crate) trait Fold: Default {
    /// The type of the records.
    type Record;

    /// Takes the next record in ascending order, and passes records that are complete to `out`.
    ///
    /// The fold never passes on more records than it took.
    fn take(&mut self, record: Self::Record, out: &mut impl FnMut(Self::Record));

    /// Passes the remaining records to `out`. Called after the last record.
    fn finish(&mut self, out: &mut impl FnMut(Self::Record));
}

/// A fold that keeps one of several equal records. It holds the last record that it took.
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

    /// Returns the key. Keys are hashes, so they are spread evenly.
    fn rank(self) -> u64 {
        (self >> u64::BITS) as u64
    }
}

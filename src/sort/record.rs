//! The traits of records that the sorter needs.

use std::fmt::Debug;

/// How many shards there are.
pub(crate) const SHARDS: usize = 256;

/// Bytes of a packed record.
pub(crate) const PACKED: usize = 10;

/// A record of 128 bits. Records compare as their bits do.
pub(crate) trait Record: Copy + Ord + Send + Sync + Debug + 'static {
    /// How several records of one kind are joined.
    type Fold: Fold<Record = Self>;

    /// The record of these bits.
    fn from_bits(bits: u128) -> Self;

    /// The bits of the record.
    fn to_bits(self) -> u128;

    /// The place of the record among all, as a number that is spread about evenly over 64 bits. It never falls
    /// when the record grows.
    fn rank(self) -> u64;

    /// The record in fewer bytes, for as long as it waits to be sorted, if it has such a form. They need not say
    /// its shard.
    #[inline]
    fn packed(self) -> Option<[u8; PACKED]> {
        None
    }

    /// The record of a shard with this packed form.
    #[inline]
    fn from_packed(_shard: usize, _packed: [u8; PACKED]) -> Self {
        unreachable!("no record has a packed form")
    }

    /// The shard of the record, under [`SHARDS`].
    #[inline]
    fn shard(self) -> usize {
        (self.rank() >> (u64::BITS - SHARDS.ilog2())) as usize
    }

    /// The part of its shard that the record is in, of 2^`bits`.
    #[inline]
    fn bucket(self, bits: u32) -> usize {
        let below_shard = self.rank() << SHARDS.ilog2();
        // In two steps, because no bits at all would be too long a shift.
        (below_shard >> 1 >> (u64::BITS - 1 - bits)) as usize
    }
}

/// Joins records of one kind that follow one another in sorted order.
pub(crate) trait Fold: Default {
    /// The records that are joined.
    type Record;

    /// Takes the next record in ascending order and hands over those that are complete. Over a whole
    /// sequence it hands over no more than it takes.
    fn take(&mut self, record: Self::Record, out: &mut impl FnMut(Self::Record));

    /// Hands over the rest after the last record.
    fn finish(&mut self, out: &mut impl FnMut(Self::Record));
}

/// Keeps one of equal records.
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

/// A record of any meaning whose high bits are a key, kept once.
impl Record for u128 {
    type Fold = Once<u128>;

    fn from_bits(bits: u128) -> u128 {
        bits
    }

    fn to_bits(self) -> u128 {
        self
    }

    /// Keys are spread evenly.
    fn rank(self) -> u64 {
        (self >> u64::BITS) as u64
    }
}

//! The traits of records that the sorter needs.

use std::{fmt::Debug, marker::PhantomData};

/// How many shards there are.
pub(crate) const SHARDS: usize = 256;

/// Bits of the short form that the low half of a record may have.
pub(crate) const SHORT: u32 = 19;

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

    /// Whether there are short records at all.
    const HAS_SHORT: bool = false;

    /// The low half of the record in [`SHORT`] bits, if it has a short form.
    #[inline]
    fn short(self) -> Option<u64> {
        None
    }

    /// The record of this high half and this short form of the low one.
    #[inline]
    fn from_short(_high: u64, _short: u64) -> Self {
        unreachable!("no record has a short form")
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

//! Sorted records in few bytes.
//!
//! | bytes | meaning |
//! |---|---|
//! | 3 | bits 0-18: the short form of the record, 0 if it has none; 19-22: how many bytes the difference takes; 23: whether the low half follows |
//! | 0 or 8 | the low half |
//! | 0-8 | the difference of the high half from that of the record before |

use super::record::{Record, SHORT};

const HEAD: usize = 3;
const LOW: usize = size_of::<u64>();

/// The most bytes that a record takes.
pub(super) const LONGEST: usize = HEAD + LOW + size_of::<u64>();

/// Where the head says that the low half follows.
const HAS_LOW: u64 = 1 << 23;

/// Packs records that follow one another in ascending order of their high halves.
#[derive(Default, Debug)]
pub(super) struct Packing {
    /// The high half of the record before.
    last: u64,
}

impl Packing {
    /// Appends a record.
    #[inline]
    pub(super) fn push(&mut self, record: impl Record, out: &mut Vec<u8>) {
        let bits = record.to_bits();
        let high = (bits >> 64) as u64;
        let difference = high - self.last;
        self.last = high;
        let bytes = (u64::BITS - difference.leading_zeros()).div_ceil(8);
        let head = u64::from(bytes) << SHORT;
        let start = out.len();
        let short = record.short();
        let first = match short {
            Some(short) => u128::from(head | short) | u128::from(difference) << (8 * HEAD),
            None => u128::from(head | HAS_LOW) | u128::from(bits as u64) << (8 * HEAD),
        };
        // More bytes than are kept, because to append a number of them that is known takes less time.
        out.extend_from_slice(&first.to_le_bytes());
        let mut length = HEAD;
        if short.is_none() {
            length += LOW;
            out.truncate(start + length);
            out.extend_from_slice(&difference.to_le_bytes());
        }
        out.truncate(start + length + bytes as usize);
    }
}

/// Unpacks records.
#[derive(Default, Debug)]
pub(super) struct Unpacking {
    last: u64,
}

impl Unpacking {
    /// The record that `bytes` begin with, and how many bytes it takes. At least [`LONGEST`] must be there; those after
    /// the record may be anything.
    #[inline]
    pub(super) fn take<R: Record>(&mut self, bytes: &[u8; LONGEST]) -> (R, usize) {
        let first = u128::from_le_bytes(*bytes.first_chunk().expect("there are more"));
        let head = first as u64;
        let length = (head >> SHORT & 0xf) as usize;
        let mask = ((1u128 << (8 * length)) - 1) as u64;
        let rest = (first >> (8 * HEAD)) as u64;
        if head & HAS_LOW == 0 {
            self.last += rest & mask;
            let short = head & ((1 << SHORT) - 1);
            return (R::from_short(self.last, short), HEAD + length);
        }
        let difference = *bytes.last_chunk().expect("there are more");
        self.last += u64::from_le_bytes(difference) & mask;
        let bits = u128::from(self.last) << 64 | u128::from(rest);
        (R::from_bits(bits), HEAD + LOW + length)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sort::record::KeepAll;

    /// A number that has a short form if the higher bits of its low half are 0.
    #[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
    pub(in super::super) struct Number(pub u128);

    impl Record for Number {
        type Fold = KeepAll<Number>;

        fn from_bits(bits: u128) -> Number {
            Number(bits)
        }

        fn to_bits(self) -> u128 {
            self.0
        }

        fn rank(self) -> u64 {
            (self.0 >> 64) as u64
        }

        const HAS_SHORT: bool = true;

        fn short(self) -> Option<u64> {
            let low = self.0 as u64;
            (low >> SHORT == 0).then_some(low)
        }

        fn from_short(high: u64, short: u64) -> Number {
            Number(u128::from(high) << 64 | u128::from(short))
        }
    }

    proptest! {
        #[test]
        fn what_is_packed_comes_back(
            numbers in proptest::collection::vec((any::<u128>(), 0..128u32, any::<bool>()), 0..300),
        ) {
            let numbers = numbers.into_iter().map(|(bits, shift, short)| {
                let bits = bits >> shift;
                Number(if short { bits & !(u128::from(u64::MAX) >> SHORT << SHORT) } else { bits })
            });
            let mut numbers: Vec<Number> = numbers.collect();
            numbers.sort_unstable();
            let (mut packing, mut bytes) = (Packing::default(), Vec::new());
            for number in &numbers {
                let start = bytes.len();
                packing.push(*number, &mut bytes);
                prop_assert!(bytes.len() - start <= LONGEST);
            }
            bytes.extend([0xff; LONGEST]);
            let (mut unpacking, mut at) = (Unpacking::default(), 0);
            for number in numbers {
                let (found, length) = unpacking.take::<Number>(bytes[at..].first_chunk().unwrap());
                prop_assert_eq!(found, number);
                at += length;
            }
            prop_assert_eq!(at + LONGEST, bytes.len());
        }
    }
}

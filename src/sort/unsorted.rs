//! New records of a shard, in no order. Three that have short forms are kept in the places of two.

use super::{
    blocks::{Blocks, Pool},
    record::{Record, SHORT},
};

/// Records that are packed together, and the places that they take.
const TOGETHER: usize = 3;
const PLACES: usize = 2;

/// Records in the order in which they came, or nearly so.
#[derive(Debug)]
pub(super) struct Unsorted<R> {
    /// Packed records, [`PLACES`] for [`TOGETHER`] of them.
    packed: Blocks<R>,
    /// Those that have no short form, those that came with them, and the last of those that came together.
    plain: Blocks<R>,
}

impl<R> Default for Unsorted<R> {
    fn default() -> Unsorted<R> {
        Unsorted {
            packed: Blocks::default(),
            plain: Blocks::default(),
        }
    }
}

impl<R: Record> Unsorted<R> {
    /// How many records there are.
    pub(super) fn len(&self) -> usize {
        self.packed.len() / PLACES * TOGETHER + self.plain.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.packed.is_empty() && self.plain.is_empty()
    }

    /// Appends records, in blocks of the pool.
    pub(super) fn extend(&mut self, records: &[R], pool: &Pool<R>) {
        if !R::HAS_SHORT {
            self.plain.extend(records, pool);
            return;
        }
        let (threes, rest) = records.as_chunks();
        self.pack(threes, pool);
        self.plain.extend(rest, pool);
    }

    fn pack(&mut self, mut threes: &[[R; TOGETHER]], pool: &Pool<R>) {
        while !threes.is_empty() {
            let block = self.packed.last_with_room(pool);
            // Blocks have an even number of places.
            let room = (block.capacity() - block.len()) / PLACES;
            let (now, later) = threes.split_at(room.min(threes.len()));
            for three in now {
                match pack(*three) {
                    Some(two) => block.extend_from_slice(&two),
                    None => self.plain.extend(three, pool),
                }
            }
            threes = later;
        }
    }

    /// Calls `f` with each record.
    #[inline]
    pub(super) fn for_each(&self, mut f: impl FnMut(R)) {
        for block in self.packed.slices() {
            let (twos, _) = block.as_chunks();
            for two in twos {
                let [first, second, third] = unpack(*two);
                f(first);
                f(second);
                f(third);
            }
        }
        self.plain.iter().for_each(f);
    }

    /// The blocks in which the records stood.
    pub(super) fn into_blocks(self) -> Vec<Vec<R>> {
        let mut blocks = self.packed.into_blocks();
        blocks.append(&mut self.plain.into_blocks());
        blocks
    }
}

/// Bits of a place after the high half and the short form of a record, where a third one is packed.
const LOW: u32 = u64::BITS - SHORT;

const LOWEST: u64 = (1 << SHORT) - 1;

/// Three records in two places, if they have short forms.
///
/// | bits of the first place | meaning |
/// |---|---|
/// | 45-127 | the first record, its high half and its short form |
/// | 0-44 | the higher bits of the high half of the third |
///
/// | bits of the second place | meaning |
/// |---|---|
/// | 45-127 | the second record |
/// | 19-37 | the lower bits of the high half of the third |
/// | 0-18 | its short form |
#[inline]
fn pack<R: Record>([first, second, third]: [R; TOGETHER]) -> Option<[R; PLACES]> {
    let place = |record: R, short: u64, rest: u64| {
        let low = short << LOW | rest;
        R::from_bits(u128::from(high(record)) << 64 | u128::from(low))
    };
    let (Some(first_short), Some(second_short), Some(third_short)) =
        (first.short(), second.short(), third.short())
    else {
        return None;
    };
    let higher = high(third) >> SHORT;
    let lower = high(third) & LOWEST;
    Some([
        place(first, first_short, higher),
        place(second, second_short, lower << SHORT | third_short),
    ])
}

#[inline]
fn unpack<R: Record>([first, second]: [R; PLACES]) -> [R; TOGETHER] {
    let (first_low, second_low) = (first.to_bits() as u64, second.to_bits() as u64);
    let third = first_low << SHORT | second_low >> SHORT & LOWEST;
    [
        R::from_short(high(first), first_low >> LOW),
        R::from_short(high(second), second_low >> LOW),
        R::from_short(third, second_low & LOWEST),
    ]
}

#[inline]
fn high<R: Record>(record: R) -> u64 {
    (record.to_bits() >> 64) as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sort::record::KeepAll;

    /// A number that has a short form if the higher bits of its low half are 0.
    #[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
    struct Number(u128);

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

    fn number() -> impl Strategy<Value = Number> {
        let short = (any::<u64>(), 0..1u64 << SHORT)
            .prop_map(|(high, short)| Number::from_short(high, short));
        prop_oneof![9 => short, 1 => any::<u128>().prop_map(Number)]
    }

    proptest! {
        #[test]
        fn what_is_appended_is_there(
            parts in proptest::collection::vec(proptest::collection::vec(number(), 0..300), 0..9),
            quota in 1..9000usize,
        ) {
            let pool = Pool::new(quota);
            let mut unsorted = Unsorted::default();
            for part in &parts {
                unsorted.extend(part, &pool);
            }
            let mut expected = parts.concat();
            prop_assert_eq!(unsorted.len(), expected.len());
            prop_assert_eq!(unsorted.is_empty(), expected.is_empty());
            let mut found = Vec::new();
            unsorted.for_each(|number| found.push(number));
            found.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(found, expected);
        }
    }
}

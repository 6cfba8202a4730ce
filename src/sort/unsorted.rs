//! New records of a shard, in no order. Three that have room for it are kept in the place of two.

use super::{
    blocks::{Blocks, Pool},
    record::Record,
};

/// Records that are packed together, and the places that they take.
const TOGETHER: usize = 3;
const PLACES: usize = 2;

/// Records in the order in which they came, or nearly so.
#[derive(Debug)]
pub(super) struct Unsorted<R> {
    /// Packed records, [`PLACES`] for [`TOGETHER`] of them.
    packed: Blocks<R>,
    /// Those that have no room for it.
    plain: Blocks<R>,
    /// Fewer than [`TOGETHER`].
    rest: Vec<R>,
}

impl<R> Default for Unsorted<R> {
    fn default() -> Unsorted<R> {
        Unsorted {
            packed: Blocks::default(),
            plain: Blocks::default(),
            rest: Vec::new(),
        }
    }
}

impl<R: Record> Unsorted<R> {
    /// How many records there are.
    pub(super) fn len(&self) -> usize {
        self.packed.len() / PLACES * TOGETHER + self.plain.len() + self.rest.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.packed.is_empty() && self.plain.is_empty() && self.rest.is_empty()
    }

    /// Appends records, in blocks of the pool.
    pub(super) fn extend(&mut self, records: &[R], pool: &Pool<R>) {
        if !R::PACKS {
            self.plain.extend(records, pool);
            return;
        }
        let mut records = records;
        if !self.rest.is_empty() {
            let missing = (TOGETHER - self.rest.len()).min(records.len());
            let (now, later) = records.split_at(missing);
            self.rest.extend_from_slice(now);
            records = later;
            if let Some(three) = self.rest.first_chunk().copied() {
                self.rest.clear();
                self.pack(&[three], pool);
            }
        }
        let (threes, rest) = records.as_chunks();
        self.pack(threes, pool);
        self.rest.extend_from_slice(rest);
    }

    fn pack(&mut self, mut threes: &[[R; TOGETHER]], pool: &Pool<R>) {
        while !threes.is_empty() {
            let block = self.packed.last_with_room(pool);
            // Blocks have an even number of places.
            let room = (block.capacity() - block.len()) / PLACES;
            let (now, later) = threes.split_at(room.min(threes.len()));
            for three in now {
                match R::pack(*three) {
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
                let [first, second, third] = R::unpack(*two);
                f(first);
                f(second);
                f(third);
            }
        }
        self.plain.iter().for_each(&mut f);
        self.rest.iter().copied().for_each(&mut f);
    }

    /// The blocks in which the records stood.
    pub(super) fn into_blocks(self) -> Vec<Vec<R>> {
        let mut blocks = self.packed.into_blocks();
        blocks.append(&mut self.plain.into_blocks());
        blocks
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sort::sorter::KeepAll;

    /// A number that can be packed if it has no more than 80 bits.
    #[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
    struct Number(u128);

    const FEW: u32 = 80;
    const HALF: u32 = 48;

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

        const PACKS: bool = true;

        fn pack(three: [Number; 3]) -> Option<[Number; 2]> {
            let [first, second, third] = three.map(|number| number.0);
            let two = [first | third << FEW, second | third >> HALF << FEW];
            let is_small = |number: Number| number.0 >> FEW == 0;
            three.into_iter().all(is_small).then_some(two.map(Number))
        }

        fn unpack([first, second]: [Number; 2]) -> [Number; 3] {
            let lowest = |number: Number| number.0 & ((1 << FEW) - 1);
            let third = first.0 >> FEW | second.0 >> FEW << HALF;
            [lowest(first), lowest(second), third].map(Number)
        }
    }

    fn number() -> impl Strategy<Value = Number> {
        let small = any::<u128>().prop_map(|bits| Number(bits >> (u128::BITS - FEW)));
        prop_oneof![9 => small, 1 => any::<u128>().prop_map(Number)]
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

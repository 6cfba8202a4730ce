//! A shard: its records in memory, and how they are sorted and folded.

use std::cell::RefCell;

use super::{
    blocks::{Blocks, Pool},
    record::{Fold, Record},
    run::Run,
    unsorted::Unsorted,
};

/// About how many records a bucket should have: few enough to be sorted in the nearest cache.
const PER_BUCKET: usize = 4;

/// More buckets than this would fall out of the cache while records are distributed.
const MOST_BUCKET_BITS: u32 = 11;

thread_local! {
    /// Where the bits of new records are sorted.
    static SCRATCH: RefCell<Vec<u128>> = const { RefCell::new(Vec::new()) };
}

/// Records in memory, and where others are.
#[derive(Debug)]
pub(super) struct Shard<R> {
    pub new: Unsorted<R>,
    pub sorted: Blocks<R>,
    /// The runs that were spilled to the file of the shard.
    pub runs: Vec<Run>,
}

impl<R> Default for Shard<R> {
    fn default() -> Shard<R> {
        Shard {
            new: Unsorted::default(),
            sorted: Blocks::default(),
            runs: Vec::new(),
        }
    }
}

impl<R: Record> Shard<R> {
    /// How many records are in memory.
    pub(super) fn len(&self) -> usize {
        self.new.len() + self.sorted.len()
    }

    /// Sorts the new records, merges them with those that are sorted and folds the result, in the blocks that both had
    /// and further ones of the pool. Blocks that are left go there.
    pub(super) fn compact(&mut self, pool: &Pool<R>) {
        if self.new.is_empty() {
            return;
        }
        SCRATCH.with_borrow_mut(|scratch| {
            let scratch = sort_into(scratch, &self.new);
            let mut next = scratch.iter().map(|bits| R::from_bits(*bits)).peekable();
            let mut fold = R::Fold::default();
            let mut merged = Blocks::default();
            let mut empty = std::mem::take(&mut self.new).into_blocks();
            for block in std::mem::take(&mut self.sorted).into_blocks() {
                for record in &block {
                    while let Some(before) = next.next_if(|new| new < record) {
                        fold.take(before, &mut |folded| merged.push(folded, &mut empty, pool));
                    }
                    fold.take(*record, &mut |folded| merged.push(folded, &mut empty, pool));
                }
                empty.push(block);
            }
            for record in next {
                fold.take(record, &mut |folded| merged.push(folded, &mut empty, pool));
            }
            fold.finish(&mut |folded| merged.push(folded, &mut empty, pool));
            pool.give_back(empty);
            self.sorted = merged;
        });
    }
}

/// The sorted bits of records, in `scratch`. The records are distributed over buckets first, so that only
/// short parts are left to sort.
fn sort_into<'a, R: Record>(scratch: &'a mut Vec<u128>, records: &Unsorted<R>) -> &'a mut [u128] {
    let bits = (records.len() / PER_BUCKET)
        .max(1)
        .ilog2()
        .min(MOST_BUCKET_BITS);
    let mut ends = vec![0usize; 1 << bits];
    records.for_each(|record| ends[record.bucket(bits)] += 1);
    let mut places = Vec::with_capacity(ends.len());
    let mut total = 0;
    for end in &mut ends {
        places.push(total);
        total += *end;
        *end = total;
    }
    if scratch.len() < total {
        scratch.resize(total, 0);
    }
    let scratch = &mut scratch[..total];
    records.for_each(|record| {
        let place = &mut places[record.bucket(bits)];
        scratch[*place] = record.to_bits();
        *place += 1;
    });
    let mut start = 0;
    for end in ends {
        scratch[start..end].sort_unstable();
        start = end;
    }
    scratch
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sort::record::Once;

    /// A record that is kept once.
    #[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
    struct Number(u128);

    impl Record for Number {
        type Fold = Once<Number>;

        fn from_bits(bits: u128) -> Number {
            Number(bits)
        }

        fn to_bits(self) -> u128 {
            self.0
        }

        fn rank(self) -> u64 {
            (self.0 >> 64) as u64
        }
    }

    proptest! {
        #[test]
        fn compaction_sorts_and_folds_in_the_blocks_it_has(
            rounds in proptest::collection::vec((0..700usize, 1..5000u128), 1..8),
            quota in 1..2000usize,
        ) {
            let pool = Pool::new(quota);
            let mut shard = Shard::default();
            let mut expected = std::collections::BTreeSet::new();
            let mut state = 1u128;
            for (count, kinds) in rounds {
                let new: Vec<Number> = (0..count).map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1) & (u128::MAX >> 64);
                    Number(((state >> 30) % kinds) << 90)
                }).collect();
                expected.extend(&new);
                shard.new.extend(&new, &pool);
                shard.compact(&pool);
                prop_assert!(shard.sorted.iter().eq(expected.iter().copied()));
            }
        }
    }
}

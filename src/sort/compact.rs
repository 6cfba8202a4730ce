//! Sorting and folding the records of a shard.

use std::cell::RefCell;

use super::{
    blocks::{Blocks, Pool},
    record::{Fold, Record},
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

/// Sorts new records, merges them with sorted ones and folds the result, in the blocks that both had and
/// further ones of the pool. Blocks that are left go there.
pub(super) fn compact<R: Record>(new: Unsorted<R>, sorted: Blocks<R>, pool: &Pool<R>) -> Blocks<R> {
    if new.is_empty() {
        return sorted;
    }
    SCRATCH.with_borrow_mut(|scratch| {
        let scratch = sort_into(scratch, &new);
        if sorted.is_empty() {
            let kept = fold_in_place::<R>(scratch);
            let records = scratch[..kept].iter().map(|bits| R::from_bits(*bits));
            return Blocks::filled(new.into_blocks(), records, pool);
        }
        let mut merging = Merging {
            fold: R::Fold::default(),
            merged: Blocks::default(),
            empty: new.into_blocks(),
            pool,
        };
        let mut next = scratch.iter().map(|bits| R::from_bits(*bits)).peekable();
        for block in sorted.into_blocks() {
            for record in &block {
                while let Some(before) = next.next_if(|new| new < record) {
                    merging.take(before);
                }
                merging.take(*record);
            }
            merging.empty.push(block);
        }
        next.for_each(|record| merging.take(record));
        merging.finish()
    })
}

/// The result of a merge in the making.
struct Merging<'a, R: Record> {
    fold: R::Fold,
    merged: Blocks<R>,
    empty: Vec<Vec<R>>,
    pool: &'a Pool<R>,
}

impl<R: Record> Merging<'_, R> {
    #[inline]
    fn take(&mut self, record: R) {
        let (merged, empty) = (&mut self.merged, &mut self.empty);
        self.fold.take(record, &mut |folded| {
            merged.push(folded, empty, self.pool);
        });
    }

    fn finish(mut self) -> Blocks<R> {
        let (merged, empty) = (&mut self.merged, &mut self.empty);
        self.fold.finish(&mut |folded| {
            merged.push(folded, empty, self.pool);
        });
        self.pool.give_back(self.empty);
        self.merged
    }
}

/// Folds sorted records in place, to the front. Returns how many are left.
fn fold_in_place<R: Record>(records: &mut [u128]) -> usize {
    let mut fold = R::Fold::default();
    let mut kept = 0;
    for at in 0..records.len() {
        fold.take(R::from_bits(records[at]), &mut |folded| {
            records[kept] = folded.to_bits();
            kept += 1;
        });
    }
    fold.finish(&mut |folded| {
        records[kept] = folded.to_bits();
        kept += 1;
    });
    kept
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

    /// A record that is kept once.
    #[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
    struct Number(u128);

    #[derive(Default)]
    struct Once(Option<Number>);

    impl Record for Number {
        type Fold = Once;

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

    impl Fold for Once {
        type Record = Number;

        fn take(&mut self, record: Number, out: &mut impl FnMut(Number)) {
            if self.0.replace(record) != Some(record) {
                out(record);
            }
        }

        fn finish(&mut self, _out: &mut impl FnMut(Number)) {}
    }

    proptest! {
        #[test]
        fn compaction_sorts_and_folds_in_the_blocks_it_has(
            rounds in proptest::collection::vec((0..700usize, 1..5000u128), 1..8),
            quota in 1..2000usize,
        ) {
            let pool = Pool::new(quota);
            let mut sorted = Blocks::default();
            let mut expected = std::collections::BTreeSet::new();
            let mut state = 1u128;
            for (count, kinds) in rounds {
                let new: Vec<Number> = (0..count).map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1) & (u128::MAX >> 64);
                    Number(((state >> 30) % kinds) << 90)
                }).collect();
                expected.extend(&new);
                let mut unsorted = Unsorted::default();
                unsorted.extend(&new, &pool);
                sorted = compact(unsorted, sorted, &pool);
                prop_assert!(sorted.iter().eq(expected.iter().copied()));
            }
        }
    }
}

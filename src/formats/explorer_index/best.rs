//! A collection that keeps only the largest of the values that are added to it.

use std::{cmp::Reverse, collections::BinaryHeap};

/// A collection that keeps only the largest of the values that are added to it, up to a fixed number.
#[derive(Clone, Debug)]
pub(crate) struct Best<T> {
    wanted: usize,
    values: BinaryHeap<Reverse<T>>,
}

impl<T: Copy + Ord> Best<T> {
    /// Creates an empty collection that keeps up to `wanted` values.
    pub(crate) fn new(wanted: usize) -> Best<T> {
        Best {
            wanted,
            values: BinaryHeap::new(),
        }
    }

    /// Adds a value to the collection. If the collection then has more values than it may keep, drops the smallest one.
    #[inline]
    pub(crate) fn offer(&mut self, value: T) {
        if self.values.len() < self.wanted {
            self.values.push(Reverse(value));
        } else if let Some(mut least) = self.values.peek_mut()
            && value > least.0
        {
            least.0 = value;
        }
    }

    /// Returns an iterator over the kept values, in arbitrary order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = T> {
        self.values.iter().map(|value| value.0)
    }

    /// Adds all values of `other` to this collection, which keeps only the largest ones.
    pub(crate) fn join(&mut self, other: &Best<T>) {
        other.iter().for_each(|value| self.offer(value));
    }

    /// Returns the kept values in descending order.
    pub(crate) fn into_sorted(self) -> Vec<T> {
        let values = self.values.into_sorted_vec().into_iter();
        values.map(|value| value.0).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_largest_are_kept(mut values in proptest::collection::vec(0..1000u32, 0..500), wanted in 0..20usize) {
            let mut best = Best::new(wanted);
            let mut others = Best::new(wanted);
            let (some, rest) = values.split_at(values.len() / 3);
            some.iter().for_each(|value| best.offer(*value));
            rest.iter().for_each(|value| others.offer(*value));
            best.join(&others);
            let found = best.into_sorted();
            values.sort_unstable_by(|a, b| b.cmp(a));
            // Equal values are counted separately.
            values.truncate(wanted);
            let distinct = |values: &[u32]| { let mut v = values.to_vec(); v.dedup(); v };
            prop_assert_eq!(distinct(&found), distinct(&values));
        }
    }
}

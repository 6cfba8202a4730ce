//! The best few of many.

/// How many more than wanted are collected before the others are dropped.
const SLACK: usize = 64;

/// Keeps the largest few of the values that it is offered.
#[derive(Clone, Debug)]
pub(super) struct Best<T> {
    wanted: usize,
    values: Vec<T>,
    /// What a value must exceed to be among them, once there are enough.
    threshold: Option<T>,
}

impl<T: Copy + Ord> Best<T> {
    /// Keeps `wanted` values.
    pub(super) fn new(wanted: usize) -> Best<T> {
        Best {
            wanted,
            values: Vec::new(),
            threshold: None,
        }
    }

    /// Offers a value.
    #[inline]
    pub(super) fn offer(&mut self, value: T) {
        if self.wanted > 0 && self.threshold.is_none_or(|threshold| value > threshold) {
            self.take(value);
        }
    }

    fn take(&mut self, value: T) {
        self.values.push(value);
        if self.values.len() >= self.wanted.saturating_add(SLACK) {
            self.drop_others();
        }
    }

    fn drop_others(&mut self) {
        self.values.sort_unstable_by(|a, b| b.cmp(a));
        self.values.truncate(self.wanted);
        if self.values.len() == self.wanted {
            self.threshold = self.values.last().copied();
        }
    }

    /// The largest values, the largest first.
    pub(super) fn into_sorted(mut self) -> Vec<T> {
        self.drop_others();
        self.values
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
            values.iter().for_each(|value| best.offer(*value));
            let found = best.into_sorted();
            values.sort_unstable_by(|a, b| b.cmp(a));
            // Equal values count each.
            values.truncate(wanted);
            let distinct = |values: &[u32]| { let mut v = values.to_vec(); v.dedup(); v };
            prop_assert_eq!(distinct(&found), distinct(&values));
        }
    }
}

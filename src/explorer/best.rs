//! The best few of many.

/// How many more than wanted are collected at least before the others are dropped.
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
        // As many as are kept, so that each value is moved a few times at most.
        let slack = self.wanted.max(SLACK);
        if self.values.len() >= self.wanted.saturating_add(slack) {
            self.drop_others();
        }
    }

    fn drop_others(&mut self) {
        let Some(last) = self.wanted.checked_sub(1) else {
            return;
        };
        if last < self.values.len() {
            let (_, worst, _) = self.values.select_nth_unstable_by(last, |a, b| b.cmp(a));
            self.threshold = Some(*worst);
            self.values.truncate(self.wanted);
        }
    }

    /// Offers the values that another has kept.
    pub(super) fn join(&mut self, other: Best<T>) {
        other.values.into_iter().for_each(|value| self.offer(value));
    }

    /// The largest values, the largest first.
    pub(super) fn into_sorted(mut self) -> Vec<T> {
        self.drop_others();
        self.values.sort_unstable_by(|a, b| b.cmp(a));
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
            let mut others = Best::new(wanted);
            let (some, rest) = values.split_at(values.len() / 3);
            some.iter().for_each(|value| best.offer(*value));
            rest.iter().for_each(|value| others.offer(*value));
            best.join(others);
            let found = best.into_sorted();
            values.sort_unstable_by(|a, b| b.cmp(a));
            // Equal values count each.
            values.truncate(wanted);
            let distinct = |values: &[u32]| { let mut v = values.to_vec(); v.dedup(); v };
            prop_assert_eq!(distinct(&found), distinct(&values));
        }
    }
}

//! Merging and folding sorted sequences.

use std::{
    cmp::Ordering,
    collections::{BinaryHeap, binary_heap::PeekMut},
};

use super::record::{Fold, Record};
use crate::error::{Error, Result};

/// Sorted records from anywhere.
pub(crate) type Records<'a, R> = Box<dyn Iterator<Item = Result<R>> + 'a>;

/// Merges any number of sorted sequences into one. Of equal items, those of the first sequence come first.
///
/// After an error the merge is at its end.
pub(crate) struct Merge<I: Iterator<Item = Result<T>>, T: Ord> {
    sequences: Vec<I>,
    /// The next item of each sequence that has one.
    heads: BinaryHeap<Head<T>>,
    /// The error that a sequence began with.
    failed: Option<Error>,
}

/// The next item of a sequence. It compares the other way round, because a heap has the greatest on top.
struct Head<T> {
    item: T,
    /// Which sequence it is.
    which: usize,
}

impl<T: Ord> Ord for Head<T> {
    // Pairs of the standard library compare in calls of functions, which took a third of a merge.
    #[inline(always)]
    fn cmp(&self, other: &Head<T>) -> Ordering {
        let items = other.item.cmp(&self.item);
        items.then_with(|| other.which.cmp(&self.which))
    }
}

impl<T: Ord> PartialOrd for Head<T> {
    #[inline(always)]
    fn partial_cmp(&self, other: &Head<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Ord> PartialEq for Head<T> {
    fn eq(&self, other: &Head<T>) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T: Ord> Eq for Head<T> {}

impl<I: Iterator<Item = Result<T>>, T: Ord> Merge<I, T> {
    /// Merges `sequences`, reading the first item of each at once.
    pub(crate) fn new(sequences: impl IntoIterator<Item = I>) -> Merge<I, T> {
        let mut merge = Merge {
            sequences: sequences.into_iter().collect(),
            heads: BinaryHeap::new(),
            failed: None,
        };
        for (which, sequence) in merge.sequences.iter_mut().enumerate() {
            match sequence.next() {
                Some(Ok(item)) => merge.heads.push(Head { item, which }),
                Some(Err(err)) => {
                    merge.failed.get_or_insert(err);
                }
                None => {}
            }
        }
        merge
    }
}

impl<I: Iterator<Item = Result<T>>, T: Ord> Iterator for Merge<I, T> {
    type Item = Result<T>;

    #[inline]
    fn next(&mut self) -> Option<Result<T>> {
        if let Some(err) = self.failed.take() {
            self.heads.clear();
            return Some(Err(err));
        }
        let mut head = self.heads.peek_mut()?;
        let which = head.which;
        match self.sequences[which].next() {
            Some(Ok(next)) => {
                let before = std::mem::replace(&mut *head, Head { item: next, which });
                Some(Ok(before.item))
            }
            Some(Err(err)) => {
                drop(head);
                self.heads.clear();
                Some(Err(err))
            }
            None => Some(Ok(PeekMut::pop(head).item)),
        }
    }
}

/// Folds sorted records.
pub(super) fn fold_into<R: Record>(
    records: impl Iterator<Item = Result<R>>,
    mut push: impl FnMut(R) -> Result<()>,
) -> Result<()> {
    let mut fold = R::Fold::default();
    let mut pushed = Ok(());
    for record in records {
        fold.take(record?, &mut |folded| {
            if pushed.is_ok() {
                pushed = push(folded);
            }
        });
        if pushed.is_err() {
            break;
        }
    }
    fold.finish(&mut |folded| {
        if pushed.is_ok() {
            pushed = push(folded);
        }
    });
    pushed
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn everything_comes_once_and_in_order(mut sequences in proptest::collection::vec(
            proptest::collection::vec(0..50u32, 0..30), 0..9,
        )) {
            for sequence in &mut sequences {
                sequence.sort_unstable();
            }
            let mut expected = sequences.concat();
            expected.sort_unstable();
            let readers = sequences.iter().map(|sequence| sequence.iter().map(|item| Ok(*item)));
            let found: Vec<u32> = Merge::new(readers).map(Result::unwrap).collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn an_error_ends_the_merge() {
        for at in 0..3 {
            let failing = (0..3).map(|i| {
                if i == at {
                    Err(Error::Interrupted)
                } else {
                    Ok(i)
                }
            });
            let merge = Merge::new([failing]);
            let found: Vec<Result<i32>> = merge.collect();
            assert!(matches!(found.last(), Some(Err(Error::Interrupted))));
            assert_eq!(found.iter().filter(|item| item.is_err()).count(), 1);
        }
    }
}

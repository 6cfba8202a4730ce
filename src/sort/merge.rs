//! Merging sorted sequences.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, binary_heap::PeekMut},
};

use crate::error::{Error, Result};

/// Merges any number of sorted sequences into one. Of equal items, those of the first sequence come first.
///
/// After an error the merge is at its end.
pub(crate) struct Merge<I: Iterator<Item = Result<T>>, T: Ord> {
    sequences: Vec<I>,
    /// The next item of each sequence that has one, and which sequence it is.
    heads: BinaryHeap<Reverse<(T, usize)>>,
    /// The error that a sequence began with.
    failed: Option<Error>,
}

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
                Some(Ok(item)) => merge.heads.push(Reverse((item, which))),
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
        let which = head.0.1;
        match self.sequences[which].next() {
            Some(Ok(next)) => {
                let Reverse((item, _)) = std::mem::replace(&mut *head, Reverse((next, which)));
                Some(Ok(item))
            }
            Some(Err(err)) => {
                drop(head);
                self.heads.clear();
                Some(Err(err))
            }
            None => {
                let Reverse((item, _)) = PeekMut::pop(head);
                Some(Ok(item))
            }
        }
    }
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

//! Merges sorted sequences, and folds the merged records.

use std::{cmp::Ordering, collections::VecDeque};

use super::{Fold, Record};
use crate::error::Result;

/// An iterator over records in ascending order.
pub(crate) type SortedRecords<'a, R> = Box<dyn Iterator<Item = Result<R>> + 'a>;

/// A function that reads the next items of a sorted sequence, and appends them to the vector that it receives. At the
/// end of the sequence, and after an error, it appends nothing.
pub(crate) type Refill<'a, T> = Box<dyn FnMut(&mut Vec<T>) -> Result<()> + 'a>;

/// The maximum number of items that a merge reads from a sequence as one batch.
pub(super) const MAX_BATCH_ITEMS: usize = 1 << 8;

/// The size, in bytes of heap memory, at which a batch of items is complete. It bounds the memory that a batch of long
/// items takes. The size of a batch of short items is limited by [`MAX_BATCH_ITEMS`].
const MAX_BATCH_BYTES: usize = 1 << 13;

/// An iterator that merges any number of sorted sequences into one. The merge is stable: if items of two sequences are
/// equal, the items of the earlier sequence come first.
///
/// The merge reads a batch of items from each sequence. Then it sorts those items that must precede all unread items.
/// It uses the standard library's stable sort, which merges ascending runs and takes a third less time than a heap.
///
/// After an error, the iterator yields `None`.
pub(crate) struct Merge<'a, T> {
    /// The sequences that have not ended. Each is paired with the items that were read from it and have not been moved
    /// to `ready`.
    sources: Vec<(Refill<'a, T>, Vec<T>)>,
    /// The next items to yield, in ascending order.
    ready: VecDeque<T>,
}

impl<'a, T: Ord + 'a> Merge<'a, T> {
    pub(crate) fn new<I: Iterator<Item = Result<T>> + 'a>(
        sequences: impl IntoIterator<Item = I>,
    ) -> Merge<'a, T> {
        Merge::of_long(sequences, |_| 0)
    }

    /// Creates a merge of sorted sequences whose items own heap memory. `bytes` returns the number of bytes of heap
    /// memory that an item owns. Items that own much memory are read in smaller batches.
    pub(crate) fn of_long<I: Iterator<Item = Result<T>> + 'a>(
        sequences: impl IntoIterator<Item = I>,
        bytes: fn(&T) -> usize,
    ) -> Merge<'a, T> {
        let source = |sequence: I| -> Refill<'a, T> {
            let mut sequence = sequence.fuse();
            Box::new(move |out| {
                let mut held = 0;
                while out.len() < MAX_BATCH_ITEMS
                    && held < MAX_BATCH_BYTES
                    && let Some(item) = sequence.next()
                {
                    let item = item?;
                    held += bytes(&item);
                    out.push(item);
                }
                Ok(())
            })
        };
        Merge::of_sources(sequences.into_iter().map(source))
    }

    pub(super) fn of_sources(sources: impl IntoIterator<Item = Refill<'a, T>>) -> Merge<'a, T> {
        let sources = sources.into_iter();
        Merge {
            sources: sources.map(|source| (source, Vec::new())).collect(),
            ready: VecDeque::new(),
        }
    }

    /// Returns the next batch of merged items in ascending order, or an empty slice after the last item. Drops the
    /// items of the previous batch.
    pub(super) fn window(&mut self) -> Result<&[T]> {
        if let Err(err) = self.read_on() {
            self.sources.clear();
            return Err(err);
        }
        Ok(self.ready.as_slices().0)
    }

    fn read_on(&mut self) -> Result<()> {
        self.ready.clear();
        for (source, read) in &mut self.sources {
            if read.is_empty() {
                source(read)?;
            }
        }
        self.sources.retain(|(_, read)| !read.is_empty());
        // Only items up to the smallest of the last items are final: unread items of the sequence with that item may
        // precede any larger item.
        let lasts = self.sources.iter().map(|(_, read)| read.last());
        let Some((first, _)) = lasts.enumerate().min_by(|a, b| a.1.cmp(&b.1)) else {
            return Ok(());
        };
        let last = self.sources[first].1.pop().expect("it has a last item");
        for (number, (_, read)) in self.sources.iter_mut().enumerate() {
            let is_ready = |item: &T| match item.cmp(&last) {
                Ordering::Less => true,
                Ordering::Equal => number <= first,
                Ordering::Greater => false,
            };
            let end = read.partition_point(is_ready);
            self.ready.extend(read.drain(..end));
        }
        self.ready.push_back(last);
        self.ready.make_contiguous().sort();
        Ok(())
    }
}

impl<'a, T: Ord + 'a> Iterator for Merge<'a, T> {
    type Item = Result<T>;

    #[inline]
    fn next(&mut self) -> Option<Result<T>> {
        if self.ready.is_empty()
            && let Err(err) = self.window()
        {
            return Some(Err(err));
        }
        self.ready.pop_front().map(Ok)
    }
}

/// Folds the records of a merge, for example by summing the counts of equal records. Passes the folded records to
/// `push` in ascending order. Stops at the first error.
pub(super) fn fold_into<R: Record>(
    mut merge: Merge<'_, R>,
    mut push: impl FnMut(R) -> Result<()>,
) -> Result<()> {
    let mut fold = R::Fold::default();
    let mut pushed = Ok(());
    let mut push = |folded, pushed: &mut Result<()>| {
        if pushed.is_ok() {
            *pushed = push(folded);
        }
    };
    while pushed.is_ok() {
        let window = merge.window()?;
        if window.is_empty() {
            fold.finish(&mut |folded| push(folded, &mut pushed));
            break;
        }
        for record in window {
            fold.take(*record, &mut |folded| push(folded, &mut pushed));
        }
    }
    pushed
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::error::Error;

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

        #[test]
        fn equal_items_come_in_the_order_of_their_sequences(mut sequences in proptest::collection::vec(
            proptest::collection::vec(0..4u32, 0..900), 0..5,
        )) {
            /// Compares by the first number.
            #[derive(Copy, Clone, PartialEq, Eq, Debug)]
            struct Numbered(u32, usize, usize);

            impl Ord for Numbered {
                fn cmp(&self, other: &Numbered) -> Ordering {
                    self.0.cmp(&other.0)
                }
            }

            impl PartialOrd for Numbered {
                fn partial_cmp(&self, other: &Numbered) -> Option<Ordering> {
                    Some(self.cmp(other))
                }
            }

            sequences.iter_mut().for_each(|sequence| sequence.sort_unstable());
            let numbered: Vec<Vec<Numbered>> = sequences.iter().enumerate().map(|(which, sequence)| {
                let items = sequence.iter().enumerate();
                items.map(|(at, item)| Numbered(*item, which, at)).collect()
            }).collect();
            let mut expected = numbered.concat();
            expected.sort_by_key(|item| (item.0, item.1, item.2));
            let readers = numbered.iter().map(|sequence| sequence.iter().map(|item| Ok(*item)));
            let found: Vec<Numbered> = Merge::new(readers).map(Result::unwrap).collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn few_long_items_are_read_at_once() {
        use std::cell::Cell;

        let read = Cell::new(0);
        let long = (0..100).map(|number| {
            read.set(read.get() + 1);
            Ok(format!("{number:04}").repeat(MAX_BATCH_BYTES / 8))
        });
        let mut merge = Merge::of_long([long], String::len);
        merge.next().unwrap().unwrap();
        assert_eq!(read.get(), 2);
        assert_eq!(merge.count(), 99);
    }

    #[test]
    fn a_fold_ends_with_the_first_error_of_push() {
        let mut pushed = 0;
        let result = fold_into(Merge::new([(0..9_u128).map(Ok)]), |_| {
            pushed += 1;
            if pushed == 3 {
                Err(Error::Interrupted)
            } else {
                Ok(())
            }
        });
        assert!(matches!(result, Err(Error::Interrupted)));
        assert_eq!(pushed, 3);
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

//! A growable sequence of records, stored in blocks of equal size.
//!
//! Growing the sequence allocates a new block and never copies records. The allocator can reuse a freed block for the
//! next sequence. This matters because touching fresh memory pages takes as long as sorting the records in them.

use std::ops::Range;

use super::Record;

/// The size in bytes of a block. A sequence of records grows by one block at a time.
const BLOCK_SIZE: usize = 1 << 13;

/// A growable sequence of records, stored in separately allocated blocks of equal size. Every block except the last is
/// full.
#[derive(Debug)]
pub(super) struct Blocks<T>(Vec<Vec<T>>);

impl<T> Default for Blocks<T> {
    fn default() -> Blocks<T> {
        Blocks(Vec::new())
    }
}

impl<T: Copy> Blocks<T> {
    /// The number of records in a full block.
    const RECORDS_PER_BLOCK: usize = BLOCK_SIZE / size_of::<T>();

    pub(super) fn len(&self) -> usize {
        let full = self.0.len().saturating_sub(1) * Blocks::<T>::RECORDS_PER_BLOCK;
        full + self.0.last().map_or(0, Vec::len)
    }

    #[inline]
    pub(super) fn push(&mut self, record: T) {
        match self.0.last_mut() {
            Some(last) if last.len() < last.capacity() => last.push(record),
            _ => {
                let mut block = Vec::with_capacity(Blocks::<T>::RECORDS_PER_BLOCK);
                block.push(record);
                self.0.push(block);
            }
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = T> + Clone + '_ {
        self.0.iter().flatten().copied()
    }

    /// Returns the record at index `number`, or `None` if the index is out of bounds.
    #[inline]
    pub(super) fn get(&self, number: usize) -> Option<&T> {
        let block = self.0.get(number / Blocks::<T>::RECORDS_PER_BLOCK)?;
        block.get(number % Blocks::<T>::RECORDS_PER_BLOCK)
    }

    /// Returns the records in a range of indices as one slice. If the range spans several blocks, the records are
    /// copied into `buffer` first.
    pub(super) fn range<'a>(&'a self, range: Range<usize>, buffer: &'a mut Vec<T>) -> &'a [T] {
        let (first, start) = (
            range.start / Blocks::<T>::RECORDS_PER_BLOCK,
            range.start % Blocks::<T>::RECORDS_PER_BLOCK,
        );
        let in_first = |block: &'a Vec<T>| block.get(start..start + range.len());
        if let Some(records) = self.0.get(first).and_then(in_first) {
            return records;
        }
        buffer.clear();
        let records = self.0.iter().skip(first).flatten();
        buffer.extend(records.skip(start).take(range.len()));
        buffer
    }
}

impl<R: Record> Blocks<R> {
    /// Creates a sequence of records. `bits` contains the 128-bit representation of each record.
    pub(super) fn of_bits(bits: &[u128]) -> Blocks<R> {
        let block = |bits: &[u128]| {
            let mut block = Vec::with_capacity(Blocks::<R>::RECORDS_PER_BLOCK);
            block.extend(bits.iter().map(|bits| R::from_bits(*bits)));
            block
        };
        Blocks(
            bits.chunks(Blocks::<R>::RECORDS_PER_BLOCK)
                .map(block)
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn blocks_are_one_sequence(
            all in proptest::collection::vec(any::<u128>(), 0..5000),
            cut in (0.0..1.0f64, 0.0..1.0f64),
        ) {
            let mut pushed = Blocks::default();
            all.iter().for_each(|record| pushed.push(*record));
            prop_assert_eq!(pushed.iter().collect::<Vec<_>>(), &all[..]);
            let blocks = Blocks::<u128>::of_bits(&all);
            prop_assert_eq!(blocks.len(), all.len());
            prop_assert_eq!(blocks.iter().collect::<Vec<_>>(), &all[..]);
            let start = (cut.0 * all.len() as f64) as usize;
            let end = start + (cut.1 * (all.len() - start) as f64) as usize;
            for number in [start, all.len().saturating_sub(1), all.len()] {
                prop_assert_eq!(blocks.get(number), all.get(number));
            }
            let mut buffer = Vec::new();
            prop_assert_eq!(blocks.range(start..end, &mut buffer), &all[start..end]);
        }
    }
}

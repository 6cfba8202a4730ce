//! Records in blocks of equal size. So a sequence grows without being copied, and the memory of one that is gone fits
//! the next: fresh pages take as long as sorting.

use std::ops::Range;

use super::record::Record;

/// Bytes of a block.
const BLOCK: usize = 1 << 13;

/// A sequence of records. All blocks but the last are full.
#[derive(Debug)]
pub(super) struct Blocks<T>(Vec<Vec<T>>);

impl<T> Default for Blocks<T> {
    fn default() -> Blocks<T> {
        Blocks(Vec::new())
    }
}

impl<T: Copy> Blocks<T> {
    /// Records of a block.
    const EACH: usize = BLOCK / size_of::<T>();

    pub(super) fn len(&self) -> usize {
        let full = self.0.len().saturating_sub(1) * Blocks::<T>::EACH;
        full + self.0.last().map_or(0, Vec::len)
    }

    #[inline]
    pub(super) fn push(&mut self, record: T) {
        match self.0.last_mut() {
            Some(last) if last.len() < last.capacity() => last.push(record),
            _ => {
                let mut block = Vec::with_capacity(Blocks::<T>::EACH);
                block.push(record);
                self.0.push(block);
            }
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = T> + Clone + '_ {
        self.0.iter().flatten().copied()
    }

    /// A record by its number.
    #[inline]
    pub(super) fn get(&self, number: usize) -> Option<&T> {
        let block = self.0.get(number / Blocks::<T>::EACH)?;
        block.get(number % Blocks::<T>::EACH)
    }

    /// The records of a range: in place, or copied into `buffer` if they are in several blocks.
    pub(super) fn range<'a>(&'a self, range: Range<usize>, buffer: &'a mut Vec<T>) -> &'a [T] {
        let (first, start) = (
            range.start / Blocks::<T>::EACH,
            range.start % Blocks::<T>::EACH,
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
    /// The records of these bits.
    pub(super) fn of_bits(bits: &[u128]) -> Blocks<R> {
        let block = |bits: &[u128]| {
            let mut block = Vec::with_capacity(Blocks::<R>::EACH);
            block.extend(bits.iter().map(|bits| R::from_bits(*bits)));
            block
        };
        Blocks(bits.chunks(Blocks::<R>::EACH).map(block).collect())
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

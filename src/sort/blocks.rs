//! Records in blocks of equal size, which are reused instead of being given back to the system: fresh pages
//! take as long as sorting.

use std::sync::Mutex;

use crate::task;

/// The most records that a block has. Sizes are powers of two.
const LARGEST: usize = 1024;

/// The fewest, however little memory there is.
const SMALLEST: usize = 64;

/// Empty blocks.
#[derive(Debug)]
pub(super) struct Pool<R> {
    block: usize,
    empty: Mutex<Vec<Vec<R>>>,
}

impl<R: Copy> Pool<R> {
    /// For shards of at most `quota` records.
    pub(super) fn new(quota: usize) -> Pool<R> {
        Pool {
            block: (quota / 8).clamp(SMALLEST, LARGEST).next_power_of_two(),
            empty: Mutex::default(),
        }
    }

    /// How many records a block has.
    pub(super) fn block(&self) -> usize {
        self.block
    }

    /// An empty block.
    pub(super) fn take(&self) -> Vec<R> {
        let reused = task::lock(&self.empty).pop();
        reused.unwrap_or_else(|| Vec::with_capacity(self.block))
    }

    /// Takes back blocks that are not needed any more.
    pub(super) fn give_back(&self, blocks: impl IntoIterator<Item = Vec<R>>) {
        let mut empty = task::lock(&self.empty);
        empty.extend(blocks.into_iter().map(|mut block| {
            block.clear();
            block
        }));
    }
}

/// A sequence of records. All blocks but the last are full.
#[derive(Debug)]
pub(super) struct Blocks<R> {
    blocks: Vec<Vec<R>>,
}

impl<R> Default for Blocks<R> {
    fn default() -> Blocks<R> {
        Blocks { blocks: Vec::new() }
    }
}

impl<R: Copy> Blocks<R> {
    pub(super) fn len(&self) -> usize {
        match &self.blocks[..] {
            [] => 0,
            [first, .., last] => (self.blocks.len() - 1) * first.len() + last.len(),
            [only] => only.len(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// The records, a slice for each block.
    pub(super) fn slices(&self) -> impl Iterator<Item = &[R]> {
        self.blocks.iter().map(Vec::as_slice)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = R> + '_ {
        self.blocks.iter().flatten().copied()
    }

    /// A record by its number.
    #[inline]
    pub(super) fn get(&self, number: usize) -> Option<&R> {
        // Full blocks have a power of two of records.
        let block = self.blocks.first()?.len().next_power_of_two();
        let records = self.blocks.get(number >> block.trailing_zeros())?;
        records.get(number & (block - 1))
    }

    pub(super) fn into_blocks(self) -> Vec<Vec<R>> {
        self.blocks
    }

    /// Appends records, in blocks of the pool.
    pub(super) fn extend(&mut self, mut records: &[R], pool: &Pool<R>) {
        while !records.is_empty() {
            let last = self.last_with_room(pool);
            let room = last.capacity() - last.len();
            let (now, later) = records.split_at(room.min(records.len()));
            last.extend_from_slice(now);
            records = later;
        }
    }

    /// Whether there is no room for another record without another block.
    #[inline]
    pub(super) fn are_full(&self) -> bool {
        let is_full = |last: &Vec<R>| last.len() == last.capacity();
        self.blocks.last().is_none_or(is_full)
    }

    /// The last block, or a new one of the pool if that is full.
    pub(super) fn last_with_room(&mut self, pool: &Pool<R>) -> &mut Vec<R> {
        if self.are_full() {
            self.blocks.push(pool.take());
        }
        self.blocks.last_mut().expect("a block was pushed")
    }

    /// Appends a record, in a block of `empty` or else of the pool.
    #[inline(always)]
    pub(super) fn push(&mut self, record: R, empty: &mut Vec<Vec<R>>, pool: &Pool<R>) {
        match self.blocks.last_mut() {
            Some(last) if last.len() < last.capacity() => last.push(record),
            _ => {
                let mut block = empty.pop().unwrap_or_else(|| pool.take());
                block.clear();
                block.push(record);
                self.blocks.push(block);
            }
        }
    }

    /// The records of a range: in place, or copied into `buffer` if they are in several blocks.
    pub(super) fn range<'a>(
        &'a self,
        range: std::ops::Range<usize>,
        buffer: &'a mut Vec<R>,
    ) -> &'a [R] {
        if let [only] = &self.blocks[..] {
            return &only[range];
        }
        if range.is_empty() {
            return &[];
        }
        // Full blocks have a power of two of records.
        let block = self.blocks[0].len();
        let first = range.start >> block.trailing_zeros();
        let start = range.start & (block - 1);
        if start + range.len() <= block {
            return &self.blocks[first][start..start + range.len()];
        }
        buffer.clear();
        let records = self.blocks[first..].iter().flatten();
        buffer.extend(records.skip(start).take(range.len()));
        buffer
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn blocks_are_one_sequence(
            parts in proptest::collection::vec(proptest::collection::vec(any::<u32>(), 0..300), 0..9),
            quota in 1..9000usize,
            cut in (0.0..1.0f64, 0.0..1.0f64),
        ) {
            let pool = Pool::new(quota);
            let mut blocks = Blocks::default();
            for part in &parts {
                blocks.extend(part, &pool);
            }
            let all = parts.concat();
            prop_assert_eq!(blocks.len(), all.len());
            prop_assert_eq!(blocks.iter().collect::<Vec<_>>(), &all[..]);
            prop_assert_eq!(blocks.slices().collect::<Vec<_>>().concat(), &all[..]);
            let start = (cut.0 * all.len() as f64) as usize;
            let end = start + (cut.1 * (all.len() - start) as f64) as usize;
            for number in [start, all.len().saturating_sub(1), all.len()] {
                prop_assert_eq!(blocks.get(number), all.get(number));
            }
            let mut buffer = Vec::new();
            prop_assert_eq!(blocks.range(start..end, &mut buffer), &all[start..end]);
            // Blocks that are given back are used again.
            let count = blocks.into_blocks().len();
            pool.give_back((0..count).map(|_| Vec::with_capacity(1)));
            prop_assert_eq!(pool.empty.lock().unwrap().len(), count);
        }
    }
}

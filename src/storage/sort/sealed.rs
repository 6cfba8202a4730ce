//! Sealed records: the sorted and folded records of a store, in one sequence for each shard.
//!
//! A sequence in memory is stored in blocks of equal size ([`Blocks`]). Growing it allocates a new block and never
//! copies records. The allocator can reuse a freed block for the next sequence. This matters because touching fresh
//! memory pages takes as long as sorting the records in them.

use std::ops::Range;

use super::{
    Record,
    merge::{MAX_BATCH_ITEMS, SortedRecords},
    run::ByteRun,
};
use crate::error::Result;

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

/// The records of a store after sorting and folding, which combines equal records into one. The store is divided into
/// shards. The shards are in ascending order, and so are the records of each shard.
#[derive(Debug)]
pub(crate) struct Sealed<R> {
    shards: Vec<SealedShard<R>>,
}

/// The sorted records of one shard, in memory or in a temporary file.
#[derive(Debug)]
pub(super) enum SealedShard<R> {
    Memory(Blocks<R>),
    /// A run in a temporary file, which neighboring shards share.
    File(ByteRun),
}

impl<R: Record> Sealed<R> {
    /// Creates the sealed store from groups of consecutive shards. The groups must be in ascending order.
    pub(super) fn new(groups: Vec<Vec<SealedShard<R>>>) -> Sealed<R> {
        Sealed {
            shards: groups.into_iter().flatten().collect(),
        }
    }

    /// Calls `f` with each record of the shard with index `shard`, in ascending order. Shards are the ordered parts of
    /// the store.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be read or was changed.
    pub(crate) fn for_each(&self, shard: usize, mut f: impl FnMut(R)) -> Result<()> {
        match &self.shards[shard] {
            SealedShard::Memory(records) => {
                records.iter().for_each(f);
                Ok(())
            }
            SealedShard::File(run) => {
                let mut refill = run.refill(MAX_BATCH_ITEMS);
                let mut records = Vec::new();
                loop {
                    refill(&mut records)?;
                    if records.is_empty() {
                        return Ok(());
                    }
                    records.drain(..).for_each(&mut f);
                }
            }
        }
    }

    /// Returns an iterator over the records of the shard with index `shard`, in ascending order.
    pub(crate) fn records(&self, shard: usize) -> SortedRecords<'_, R> {
        match &self.shards[shard] {
            SealedShard::Memory(records) => Box::new(records.iter().map(Ok)),
            SealedShard::File(run) => Box::new(run.records()),
        }
    }

    /// Returns the number of records in the shard with index `shard`.
    pub(crate) fn shard_len(&self, shard: usize) -> u64 {
        match &self.shards[shard] {
            SealedShard::Memory(records) => records.len() as u64,
            SealedShard::File(run) => run.records_len(),
        }
    }

    /// Returns the records of the shard with index `shard`, or `None` if they are in a temporary file.
    fn in_blocks(&self, shard: usize) -> Option<&Blocks<R>> {
        match &self.shards[shard] {
            SealedShard::Memory(records) => Some(records),
            SealedShard::File(_) => None,
        }
    }

    /// Returns `true` if the records of a shard are in memory, and `false` if they are in a temporary file. `shard` is
    /// the index of the shard.
    pub(crate) fn is_in_memory(&self, shard: usize) -> bool {
        self.in_blocks(shard).is_some()
    }

    /// Returns the record at index `number` in the shard with index `shard`. Returns `None` if `number` is out of
    /// bounds, or if the shard is in a temporary file.
    #[inline]
    pub(crate) fn in_memory(&self, shard: usize, number: usize) -> Option<&R> {
        self.in_blocks(shard)?.get(number)
    }

    /// Returns the records of the shard with index `shard` at the indices `range` as one slice. Records that are in a
    /// temporary file, or not contiguous in memory, are copied into `buffer` first.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be read or was changed.
    pub(crate) fn range<'a>(
        &'a self,
        shard: usize,
        range: Range<usize>,
        buffer: &'a mut Vec<R>,
    ) -> Result<&'a [R]> {
        match &self.shards[shard] {
            SealedShard::Memory(records) => Ok(records.range(range, buffer)),
            SealedShard::File(run) => {
                run.read(range, buffer)?;
                Ok(buffer)
            }
        }
    }

    /// Returns the approximate number of bytes of memory that the records take. Records in temporary files are not
    /// included.
    pub(crate) fn bytes_in_memory(&self) -> u64 {
        let in_memory = (0..self.shards.len()).filter_map(|shard| self.in_blocks(shard));
        (in_memory.map(Blocks::len).sum::<usize>() * size_of::<R>()) as u64
    }

    /// Returns `true` if the records of at least one shard are in a temporary file.
    pub(crate) fn is_spilled(&self) -> bool {
        (0..self.shards.len()).any(|shard| !self.is_in_memory(shard))
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

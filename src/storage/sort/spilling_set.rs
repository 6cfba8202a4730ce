//! A set of fingerprints (128-bit hashes) whose memory use is bounded.

use std::collections::BTreeSet;

use super::{
    Memory,
    run::{BLOCK_SIZE, ByteRun, Merge},
};
use crate::error::Result;

/// The number of fingerprints in a block of a sorted run. For each block, the high half of the first fingerprint is
/// kept in memory. A lookup therefore reads only the blocks that may contain a fingerprint.
const FINGERPRINTS_PER_BLOCK: usize = BLOCK_SIZE / size_of::<u128>();

/// The maximum number of bytes of memory for one fingerprint, including its share of a node of the tree that contains
/// it. A node may be half empty.
const BYTES_PER_FINGERPRINT: usize = 48;

/// The number of fingerprints that a set may always keep in memory, even if its memory budget is very small.
const MIN_CAPACITY: usize = 1 << 10;

/// A set of 128-bit fingerprints. When it exceeds its memory budget, it moves the fingerprints to a temporary file as a
/// sorted run.
///
/// A lookup reads at most once from each run, even if the run is long. Each new run is merged with all older runs that
/// are not longer. Therefore, a set that is n times as large as its memory budget has only about log2(n) runs.
#[derive(Debug)]
pub(crate) struct SpillingSet {
    memory: Memory,
    /// The maximum number of fingerprints that are kept in memory.
    capacity: usize,
    recent: BTreeSet<u128>,
    /// The runs, longest first.
    runs: Vec<SortedRun>,
}

/// A sorted sequence of fingerprints in a temporary file, to which a [`SpillingSet`] has moved them. The file is
/// removed when the run is dropped.
#[derive(Debug)]
struct SortedRun {
    run: ByteRun,
    /// The high 64 bits of the first fingerprint of each block of [`FINGERPRINTS_PER_BLOCK`] fingerprints.
    firsts: Vec<u64>,
    /// The high 64 bits of the last fingerprint.
    last: u64,
}

impl SpillingSet {
    /// Creates an empty set. `memory` is its memory budget.
    pub(crate) fn new(memory: Memory) -> SpillingSet {
        SpillingSet {
            capacity: (memory.bytes / BYTES_PER_FINGERPRINT).max(MIN_CAPACITY),
            memory,
            recent: BTreeSet::new(),
            runs: Vec::new(),
        }
    }

    /// Adds a fingerprint to the set. Returns `true` if the set did not contain it before.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be written or read.
    pub(crate) fn insert(&mut self, fingerprint: u128) -> Result<bool> {
        if self.contains(fingerprint)? {
            return Ok(false);
        }
        self.recent.insert(fingerprint);
        if self.recent.len() == self.capacity {
            self.spill()?;
        }
        Ok(true)
    }

    /// Returns `true` if the set contains a fingerprint.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be read.
    pub(crate) fn contains(&self, fingerprint: u128) -> Result<bool> {
        if self.recent.contains(&fingerprint) {
            return Ok(true);
        }
        for run in &self.runs {
            if run.contains(fingerprint)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Adds a 64-bit position key to the set. Returns `true` if the set did not contain the key before. The key is
    /// stored as the high half of a fingerprint whose low half is 0.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be written or read.
    pub(crate) fn insert_key(&mut self, key: u64) -> Result<bool> {
        self.insert(u128::from(key) << 64)
    }

    /// Returns `true` if the set contains a position key that [`insert_key`](SpillingSet::insert_key) added.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be read.
    pub(crate) fn contains_key(&self, key: u64) -> Result<bool> {
        self.contains(u128::from(key) << 64)
    }

    /// Returns the low halves of all fingerprints with the high half `high`.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be read.
    pub(crate) fn low_halves(&self, high: u64) -> Result<Vec<u64>> {
        let first = u128::from(high) << 64;
        let recent = self.recent.range(first..=first | u128::from(u64::MAX));
        let mut low: Vec<u64> = recent.map(|fingerprint| *fingerprint as u64).collect();
        for run in &self.runs {
            let near = run.read_near(high)?.into_iter();
            let with_high = near.filter(|fingerprint| high_bits(*fingerprint) == high);
            low.extend(with_high.map(|fingerprint| fingerprint as u64));
        }
        Ok(low)
    }

    fn spill(&mut self) -> Result<()> {
        let sorted = std::mem::take(&mut self.recent);
        let mut newest = SortedRun::write(&self.memory, sorted.into_iter().map(Ok))?;
        while let Some(last) = self.runs.pop_if(|last| last.run.len() <= newest.run.len()) {
            let readers = [&last, &newest].map(|run| run.run.records::<u128>());
            newest = SortedRun::write(&self.memory, Merge::new(readers))?;
        }
        self.runs.push(newest);
        Ok(())
    }
}

impl SortedRun {
    fn write(memory: &Memory, sorted: impl Iterator<Item = Result<u128>>) -> Result<SortedRun> {
        let mut firsts = Vec::new();
        let mut last = 0;
        let mut writer = ByteRun::new(0, &memory.temp_dir);
        for (place, fingerprint) in sorted.enumerate() {
            let fingerprint = fingerprint?;
            if place.is_multiple_of(FINGERPRINTS_PER_BLOCK) {
                firsts.push(high_bits(fingerprint));
            }
            last = high_bits(fingerprint);
            writer.push(fingerprint)?;
        }
        Ok(SortedRun {
            run: writer.finish()?,
            firsts,
            last,
        })
    }

    fn contains(&self, fingerprint: u128) -> Result<bool> {
        let near = self.read_near(high_bits(fingerprint))?;
        Ok(near.binary_search(&fingerprint).is_ok())
    }

    /// Reads the blocks that may contain fingerprints with the high half `high`.
    fn read_near(&self, high: u64) -> Result<Vec<u128>> {
        let mut records = Vec::new();
        // If fingerprints are added in ascending order, this recognizes new ones without reading a file.
        if high > self.last {
            return Ok(records);
        }
        // Fingerprints with equal high bits may fill several blocks, and the first of them may be in the preceding
        // block.
        let first = self.firsts.partition_point(|first| *first < high);
        let end = self.firsts.partition_point(|first| *first <= high);
        let start = first.saturating_sub(1) * FINGERPRINTS_PER_BLOCK;
        let end = (end * FINGERPRINTS_PER_BLOCK).min(self.run.records_len::<u128>() as usize);
        self.run.read(start..end, &mut records)?;
        Ok(records)
    }
}

fn high_bits(fingerprint: u128) -> u64 {
    (fingerprint >> 64) as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn spread(number: u64) -> u128 {
        u128::from(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)) << 64 | u128::from(number)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        #[test]
        fn a_small_memory_knows_what_a_set_knows(
            numbers in proptest::collection::vec(0..9000u64, 0..20_000),
            same_high_bits in any::<bool>(),
        ) {
            let mut seen = SpillingSet::new(Memory { bytes: 0, ..Memory::default() });
            let mut set = BTreeSet::new();
            for number in numbers {
                let fingerprint = if same_high_bits {
                    number.into()
                } else {
                    spread(number)
                };
                prop_assert_eq!(seen.insert(fingerprint).unwrap(), set.insert(fingerprint));
            }
            prop_assert!(set.len() < MIN_CAPACITY || !seen.runs.is_empty());
            for fingerprint in &set {
                prop_assert!(seen.contains(*fingerprint).unwrap());
            }
            for high in set.iter().map(|fingerprint| high_bits(*fingerprint)).take(4) {
                let low = set.iter().filter(|fingerprint| high_bits(**fingerprint) == high);
                let mut found = seen.low_halves(high).unwrap();
                found.sort_unstable();
                prop_assert!(found.into_iter().eq(low.map(|fingerprint| *fingerprint as u64)));
            }
        }
    }

    #[test]
    fn keys_and_fingerprints_are_found_in_runs() {
        let mut seen = SpillingSet::new(Memory::default().with_bytes(0));
        let key = |number: u64| number << 52 | 1;
        // If keys are inserted in ascending order, the set need not read its runs to know that each key is new.
        for number in 0..3 * MIN_CAPACITY as u64 + 1 {
            assert!(seen.insert_key(key(number)).unwrap());
        }
        assert_eq!((seen.runs.len(), seen.recent.len()), (2, 1));
        for number in (0..=3 * MIN_CAPACITY as u64).step_by(64) {
            let fingerprint = u128::from(key(number)) << 64;
            assert!(seen.contains(fingerprint).unwrap());
            assert!(seen.contains_key(key(number)).unwrap());
            assert!(!seen.insert_key(key(number)).unwrap());
            assert!(!seen.contains(fingerprint + 1).unwrap());
            assert!(!seen.contains_key(key(number) + 1).unwrap());
        }
        assert_eq!((seen.runs.len(), seen.recent.len()), (2, 1));
    }

    #[test]
    fn fingerprints_with_equal_high_bits_may_fill_several_blocks() {
        let sorted = (0..1500_u128).map(|low| ((low / 1200) << 64) | (low % 1200 * 2));
        let run = SortedRun::write(&Memory::default(), sorted.clone().map(Ok)).unwrap();
        for fingerprint in sorted.step_by(5) {
            assert!(run.contains(fingerprint).unwrap());
            assert!(!run.contains(fingerprint + 1).unwrap());
        }
        assert!(!run.contains(2 << 64).unwrap());
    }

    #[test]
    fn runs_are_merged() {
        let mut seen = SpillingSet::new(Memory {
            bytes: 0,
            ..Memory::default()
        });
        for number in 0..(MIN_CAPACITY as u64 * 31) {
            assert!(seen.insert(spread(number)).unwrap());
        }
        let roomy = SpillingSet::new(Memory::default().with_bytes(1 << 20));
        assert_eq!(
            (seen.capacity, roomy.capacity),
            (MIN_CAPACITY, (1 << 20) / BYTES_PER_FINGERPRINT)
        );
        let sizes: Vec<u64> = seen
            .runs
            .iter()
            .map(|run| run.run.records_len::<u128>() / MIN_CAPACITY as u64)
            .collect();
        assert_eq!(sizes, [16, 8, 4, 2, 1]);
        for number in 0..(MIN_CAPACITY as u64 * 31) {
            assert!(!seen.insert(spread(number)).unwrap());
        }
    }
}

//! A set of fingerprints that is exact in bounded memory.

use rustc_hash::FxHashSet;

use super::{
    Memory,
    merge::Merge,
    run::{BLOCK, ByteRun},
};
use crate::error::Result;

/// Records of a run between two whose high bits are kept in memory: they are read at once.
const STRIDE: usize = BLOCK / size_of::<u128>();

/// The most memory that a fingerprint takes: in the table, half empty after it grew, and in the list that
/// is sorted.
const BYTES: usize = 64;

/// The fewest fingerprints that are kept in memory.
const FEWEST: usize = 1 << 10;

/// A set of 128-bit fingerprints. Past its memory they go to sorted runs in temporary files.
///
/// A run of any length costs one read for each lookup. Two runs of about the same size become one, so
/// there are few: for n times the fingerprints that memory holds, about log2 n.
#[derive(Debug)]
pub(crate) struct Seen {
    memory: Memory,
    /// How many fingerprints are kept in memory.
    room: usize,
    recent: FxHashSet<u128>,
    /// The largest first.
    runs: Vec<SeenRun>,
}

/// A sorted run in a file of its own, which is gone with it.
#[derive(Debug)]
struct SeenRun {
    run: ByteRun,
    /// The high bits of every [`STRIDE`]th fingerprint.
    firsts: Vec<u64>,
    /// Those of the last.
    last: u64,
}

impl Seen {
    /// No fingerprints yet; `memory` is for all that will come.
    pub(crate) fn new(memory: Memory) -> Seen {
        Seen {
            room: (memory.bytes / BYTES).max(FEWEST),
            memory,
            recent: FxHashSet::default(),
            runs: Vec::new(),
        }
    }

    /// Adds a fingerprint; returns whether it is new.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be written or read.
    pub(crate) fn insert(&mut self, fingerprint: u128) -> Result<bool> {
        if self.contains(fingerprint)? {
            return Ok(false);
        }
        self.recent.insert(fingerprint);
        if self.recent.len() == self.room {
            self.spill()?;
        }
        Ok(true)
    }

    /// Whether a fingerprint is in the set.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be read.
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

    /// Adds the key of a position; returns whether it is new.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be written or read.
    pub(crate) fn insert_key(&mut self, key: u64) -> Result<bool> {
        self.insert(u128::from(key) << 64)
    }

    /// Whether the key of a position is in the set.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be read.
    pub(crate) fn contains_key(&self, key: u64) -> Result<bool> {
        self.contains(u128::from(key) << 64)
    }

    fn spill(&mut self) -> Result<()> {
        let mut sorted: Vec<u128> = self.recent.drain().collect();
        sorted.sort_unstable();
        let mut newest = SeenRun::write(&self.memory, sorted.into_iter().map(Ok))?;
        while let Some(last) = self.runs.pop_if(|last| last.run.len() <= newest.run.len()) {
            let readers = [&last, &newest].map(|run| run.run.records::<u128>());
            newest = SeenRun::write(&self.memory, Merge::new(readers))?;
        }
        self.runs.push(newest);
        Ok(())
    }
}

impl SeenRun {
    fn write(memory: &Memory, sorted: impl Iterator<Item = Result<u128>>) -> Result<SeenRun> {
        let mut firsts = Vec::new();
        let mut last = 0;
        let mut writer = ByteRun::new(0, &memory.temp_dir);
        for (place, fingerprint) in sorted.enumerate() {
            let fingerprint = fingerprint?;
            if place.is_multiple_of(STRIDE) {
                firsts.push(high_bits(fingerprint));
            }
            last = high_bits(fingerprint);
            writer.push(fingerprint)?;
        }
        Ok(SeenRun {
            run: writer.finish()?,
            firsts,
            last,
        })
    }

    fn contains(&self, fingerprint: u128) -> Result<bool> {
        let high = high_bits(fingerprint);
        // Fingerprints in ascending order need no look at the files.
        if high > self.last {
            return Ok(false);
        }
        // Several fingerprints may have the same high bits.
        let first = self.firsts.partition_point(|first| *first < high);
        let end = self.firsts.partition_point(|first| *first <= high);
        let start = first.saturating_sub(1) * STRIDE;
        let end = (end * STRIDE).min(self.run.records_len() as usize);
        let mut records: Vec<u128> = Vec::new();
        self.run.read(start..end, &mut records)?;
        Ok(records.binary_search(&fingerprint).is_ok())
    }
}

fn high_bits(fingerprint: u128) -> u64 {
    (fingerprint >> 64) as u64
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

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
            let mut seen = Seen::new(Memory { bytes: 0, ..Memory::default() });
            let mut set = BTreeSet::new();
            for number in numbers {
                let fingerprint = if same_high_bits {
                    number.into()
                } else {
                    spread(number)
                };
                prop_assert_eq!(seen.insert(fingerprint).unwrap(), set.insert(fingerprint));
            }
            prop_assert!(set.len() < FEWEST || !seen.runs.is_empty());
            for fingerprint in set {
                prop_assert!(seen.contains(fingerprint).unwrap());
            }
        }
    }

    #[test]
    fn runs_are_merged() {
        let mut seen = Seen::new(Memory {
            bytes: 0,
            ..Memory::default()
        });
        for number in 0..(FEWEST as u64 * 31) {
            assert!(seen.insert(spread(number)).unwrap());
        }
        let sizes: Vec<u64> = seen
            .runs
            .iter()
            .map(|run| run.run.records_len() / FEWEST as u64)
            .collect();
        assert_eq!(sizes, [16, 8, 4, 2, 1]);
        for number in 0..(FEWEST as u64 * 31) {
            assert!(!seen.insert(spread(number)).unwrap());
        }
    }
}

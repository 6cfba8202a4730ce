//! Which positions share a key.
//!
//! Variants are counted by the identities of positions, and books know keys. A pair of both is a record of the
//! sorter, kept once.

use crate::{
    error::Result,
    sort::{Fold, Memory, Partition, Record, SHARDS, Sealed, Shards},
};

/// A position's key, which others may share, and its identity, which is its own.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct KeyedIdentity(u128);

impl KeyedIdentity {
    /// `key` is 0 if no book can have the position.
    pub(crate) fn new(key: u64, identity: u64) -> KeyedIdentity {
        KeyedIdentity(u128::from(key) << 64 | u128::from(identity))
    }

    fn key(self) -> u64 {
        (self.0 >> 64) as u64
    }

    fn identity(self) -> u64 {
        self.0 as u64
    }
}

impl Record for KeyedIdentity {
    type Fold = Once;

    fn from_bits(bits: u128) -> KeyedIdentity {
        KeyedIdentity(bits)
    }

    fn to_bits(self) -> u128 {
        self.0
    }

    /// Keys are spread evenly, but for those that no book can have.
    fn rank(self) -> u64 {
        self.key()
    }
}

/// Keeps one of equal records.
#[derive(Default)]
pub(crate) struct Once(Option<KeyedIdentity>);

impl Fold for Once {
    type Record = KeyedIdentity;

    fn take(&mut self, record: KeyedIdentity, out: &mut impl FnMut(KeyedIdentity)) {
        if self.0.replace(record) != Some(record) {
            out(record);
        }
    }

    fn finish(&mut self, _out: &mut impl FnMut(KeyedIdentity)) {}
}

/// Keys and identities being collected, from any number of threads.
#[derive(Debug)]
pub(crate) struct IdentityTally(Shards<KeyedIdentity>);

impl IdentityTally {
    /// None yet.
    pub(crate) fn new(memory: Memory) -> IdentityTally {
        IdentityTally(Shards::new(memory))
    }

    /// Takes pairs.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be written.
    pub(crate) fn add(&self, pairs: &[KeyedIdentity]) -> Result<()> {
        self.0.append(&Partition::new(pairs))
    }

    /// How many bytes are in temporary files.
    pub(crate) fn spilled_bytes(&self) -> u64 {
        self.0.spilled_bytes()
    }

    /// Ends collecting. Works on all threads of the rayon pool that it is called in.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be written or read.
    pub(crate) fn seal(self) -> Result<SharedKeys> {
        Ok(SharedKeys(self.0.seal()?))
    }
}

/// All keys with the identities of the positions that share them.
#[derive(Debug)]
pub(crate) struct SharedKeys(Sealed<KeyedIdentity>);

impl SharedKeys {
    /// Calls `f` with each key of a shard and each of its identities, in ascending order.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be read.
    pub(crate) fn for_each(&self, shard: usize, mut f: impl FnMut(u64, u64)) -> Result<()> {
        self.0
            .for_each(shard, |pair| f(pair.key(), pair.identity()))
    }

    /// About how many bytes of memory they take.
    pub(crate) fn bytes_in_memory(&self) -> u64 {
        let in_memory = (0..SHARDS).filter(|shard| self.0.is_in_memory(*shard));
        in_memory.map(|shard| self.0.shard_len(shard)).sum::<u64>()
            * size_of::<KeyedIdentity>() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sort::SHARDS;

    #[test]
    fn each_pair_is_kept_once_in_order() {
        for bytes in [0, 1 << 24] {
            let tally = IdentityTally::new(Memory {
                bytes,
                ..Memory::default()
            });
            let pairs: Vec<KeyedIdentity> = (0..60_000u64)
                .map(|i| i * 7 % 29_989)
                .map(|i| KeyedIdentity::new((i % 100) << 57, i))
                .collect();
            tally.add(&pairs).unwrap();
            tally.add(&pairs).unwrap();
            assert_eq!(tally.spilled_bytes() > 0, bytes == 0);
            let keys = tally.seal().unwrap();
            let mut found = Vec::new();
            for shard in 0..SHARDS {
                keys.for_each(shard, |key, identity| found.push((key, identity)))
                    .unwrap();
            }
            assert!(found.is_sorted());
            assert_eq!(found.len(), 29_989);
            assert!(
                found
                    .iter()
                    .all(|(key, identity)| *key == (identity % 100) << 57)
            );
        }
    }
}

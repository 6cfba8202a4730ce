//! Pairs of a position key and an identity, which tell the positions that share a key.
//!
//! Games of variants are counted by identity, but books look positions up by key. A pair is a record of the stores in `sort`,
//! which keep each pair once.

use crate::sort::{Once, Record};

/// The key of a position, which other positions may share, and its identity, which is its own.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct KeyedIdentity(u128);

impl KeyedIdentity {
    /// Creates a pair. `key` is 0 if a book cannot contain the position.
    pub(crate) fn new(key: u64, identity: u64) -> KeyedIdentity {
        KeyedIdentity(u128::from(key) << 64 | u128::from(identity))
    }

    pub(crate) fn key(self) -> u64 {
        (self.0 >> 64) as u64
    }

    pub(crate) fn identity(self) -> u64 {
        self.0 as u64
    }
}

impl Record for KeyedIdentity {
    type Fold = Once<KeyedIdentity>;

    fn from_bits(bits: u128) -> KeyedIdentity {
        KeyedIdentity(bits)
    }

    fn to_bits(self) -> u128 {
        self.0
    }

    /// Returns the key. Keys are spread evenly, except for the key 0 of positions that no book contains.
    fn rank(self) -> u64 {
        self.key()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sort::{Memory, SHARDS, Shards};

    #[test]
    fn each_pair_is_kept_once_in_order() {
        for bytes in [0, 1 << 24] {
            let tally = Shards::new(Memory {
                bytes,
                ..Memory::default()
            });
            let pairs: Vec<KeyedIdentity> = (0..60_000u64)
                .map(|i| i * 7 % 29_989)
                .map(|i| KeyedIdentity::new((i % 100) << 57, i))
                .collect();
            tally.append(&pairs).unwrap();
            tally.append(&pairs).unwrap();
            assert_eq!(tally.spilled_bytes() > 0, bytes == 0);
            let keys = tally.seal().unwrap();
            let mut found = Vec::new();
            for shard in 0..SHARDS {
                keys.for_each(shard, |pair| found.push((pair.key(), pair.identity())))
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

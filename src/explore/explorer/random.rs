//! Generates pseudorandom numbers.

use std::hash::{BuildHasher, Hasher, RandomState};

/// A pseudorandom number generator (SplitMix64 by G. L. Steele, D. Lea and C. H. Flood, 2014). Equal seeds produce
/// equal sequences of numbers.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// Creates a generator with the given seed. If `seed` is 0, each generator gets a different random seed.
    pub fn new(seed: u64) -> Random {
        // The standard library creates the keys of its hashers from the system's random numbers.
        let new = || RandomState::new().build_hasher().finish();
        Random(if seed == 0 { new() } else { seed })
    }

    /// Returns the next random number, from 0 (inclusive) to 1 (exclusive).
    pub fn next_number(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

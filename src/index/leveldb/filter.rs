//! The Bloom filters of a table: a table's keys in few bits, so that LevelDB need not read a block for
//! a key that is not there.
//!
//! There is a filter for each 2 KiB of the table, of the keys in the blocks that begin there.

/// The metaindex's name of the filters.
pub(super) const NAME: &[u8] = b"filter.leveldb.BuiltinBloomFilter2";

/// Each filter is for the blocks that begin within this many bytes, as a power of two.
const RANGE_BITS: u8 = 11;

const BITS_PER_KEY: usize = 10;

/// How many bits a key sets: ln 2 times the bits per key.
const PROBES: u8 = 6;

/// Makes a table's filters.
#[derive(Default, Debug)]
pub(super) struct FilterBuilder {
    filters: Vec<u8>,
    starts: Vec<u32>,
    /// The hashes of the keys of the next filter.
    hashes: Vec<u32>,
}

impl FilterBuilder {
    /// Adds a user's key of the present block.
    #[inline]
    pub(super) fn add(&mut self, key: &[u8]) {
        self.hashes.push(hash(key));
    }

    /// Says that the next block begins at `offset`.
    pub(super) fn start_block(&mut self, offset: u64) {
        while (self.starts.len() as u64) < offset >> RANGE_BITS {
            self.make_filter();
        }
    }

    fn make_filter(&mut self) {
        self.starts.push(self.filters.len() as u32);
        if self.hashes.is_empty() {
            return;
        }
        let start = self.filters.len();
        let len = (self.hashes.len() * BITS_PER_KEY).div_ceil(8).max(8);
        self.filters.resize(start + len, 0);
        let filter = &mut self.filters[start..];
        let bits = 8 * len as u32;
        // The remainder by two multiplications (Lemire, Kaser and Kurz, "Faster Remainder by Direct
        // Computation", 2019): a division for each bit takes twice as long as all the rest.
        let inverse = u64::MAX / u64::from(bits) + 1;
        let remainder = |hash: u32| {
            let fraction = inverse.wrapping_mul(u64::from(hash));
            ((u128::from(fraction) * u128::from(bits)) >> 64) as usize
        };
        for hash in &self.hashes {
            let mut hash = *hash;
            let step = hash.rotate_left(15);
            for _ in 0..PROBES {
                let bit = remainder(hash);
                filter[bit / 8] |= 1 << (bit % 8);
                hash = hash.wrapping_add(step);
            }
        }
        self.filters.push(PROBES);
        self.hashes.clear();
    }

    /// The block of all filters.
    pub(super) fn finish(&mut self) -> &[u8] {
        if !self.hashes.is_empty() {
            self.make_filter();
        }
        let end = self.filters.len() as u32;
        for start in self.starts.iter().chain([&end]) {
            self.filters.extend_from_slice(&start.to_le_bytes());
        }
        self.filters.push(RANGE_BITS);
        &self.filters
    }
}

/// LevelDB's hash function, with the seed of its filters.
fn hash(key: &[u8]) -> u32 {
    const SEED: u32 = 0xbc9f_1d34;
    const FACTOR: u32 = 0xc6a4_a793;
    let mut hash = SEED ^ (key.len() as u32).wrapping_mul(FACTOR);
    let (words, rest) = key.as_chunks::<4>();
    for word in words {
        hash = hash
            .wrapping_add(u32::from_le_bytes(*word))
            .wrapping_mul(FACTOR);
        hash ^= hash >> 16;
    }
    if !rest.is_empty() {
        for (i, byte) in rest.iter().enumerate() {
            hash = hash.wrapping_add(u32::from(*byte) << (8 * i));
        }
        hash = hash.wrapping_mul(FACTOR);
        hash ^= hash >> 24;
    }
    hash
}

//! Finds the records of a key.

use std::{
    borrow::Cow,
    io::{self, ErrorKind},
};

use super::records::{BookStorage, Entry};
use crate::keyed::key_of;

/// The number of records that are read first for a position. Further records are read only if all of these have the
/// position's key.
const FEW: u64 = 16;

/// The maximum number of records of a position. A move has 16 bits, so a correct book never has more.
const MOST_MOVES: u64 = 1 << 16;

/// Returns the records of a key, or no records for the key 0.
///
/// # Errors
///
/// Returns an error if the book cannot be read, or if it has many more records of the position than there are moves.
#[inline]
pub(super) fn records_of_key(book: &BookStorage, key: u64) -> io::Result<Cow<'_, [u8]>> {
    let start = match key {
        0 => None,
        _ => book.find(key)?,
    };
    let Some(start) = start else {
        return Ok(Cow::default());
    };
    let mut width = FEW;
    loop {
        let mut block = book.bytes(start, width.min(book.len() - start))?;
        let records = block.as_chunks::<{ Entry::SIZE }>().0;
        let end = records.iter().position(|record| key_of(record) != key);
        let size = end.unwrap_or(records.len()) * Entry::SIZE;
        if size < block.len() || start + width >= book.len() {
            match &mut block {
                Cow::Borrowed(bytes) => *bytes = &bytes[..size],
                Cow::Owned(bytes) => bytes.truncate(size),
            }
            return Ok(block);
        }
        if width > MOST_MOVES {
            let problem = "a position has more records than there are moves";
            return Err(io::Error::new(ErrorKind::InvalidData, problem));
        }
        width *= 4;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;
    use crate::positioned::StoredFile;

    fn record(key: u64, number: usize) -> [u8; Entry::SIZE] {
        (u128::from(key) << 64 | number as u128).to_be_bytes()
    }

    /// Creates a book with these keys, in memory and in a file. Records are numbered.
    fn book(keys: &[u64]) -> [BookStorage; 2] {
        let records = keys.iter().enumerate();
        let bytes: Vec<u8> = records.flat_map(|(i, key)| record(*key, i)).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        [
            BookStorage::Memory(bytes),
            BookStorage::File(
                StoredFile::Open {
                    file,
                    stamp: None,
                    is_counted: false,
                },
                keys.len() as u64,
            ),
        ]
    }

    #[track_caller]
    fn assert_found(keys: &[u64], wanted: &[u64]) {
        let [memory, file] = book(keys);
        for key in wanted.iter().copied().filter(|key| *key != 0) {
            let places: Vec<usize> = (0..keys.len()).filter(|i| keys[*i] == key).collect();
            let expected: Vec<u8> = places.iter().flat_map(|i| record(key, *i)).collect();
            assert_eq!(records_of_key(&memory, key).unwrap(), expected);
            assert_eq!(records_of_key(&file, key).unwrap(), expected);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn every_key_is_found_however_keys_are_spread(
            mut keys in proptest::collection::vec(prop_oneof![1..50u64, any::<u64>(), u64::MAX - 50..=u64::MAX], 0..2000),
            others in proptest::collection::vec(any::<u64>(), 5),
            some in proptest::collection::vec(any::<proptest::sample::Index>(), 40),
        ) {
            keys.sort_unstable();
            let mut wanted = others;
            if !keys.is_empty() {
                wanted.extend(some.iter().map(|index| *index.get(&keys)));
                wanted.extend([keys[0], keys[keys.len() - 1], 1, u64::MAX]);
            }
            assert_found(&keys, &wanted);
        }

        #[test]
        fn unsorted_books_are_searched_without_panic(
            keys in proptest::collection::vec(prop_oneof![0..50u64, any::<u64>()], 0..1500), wanted: [u64; 4],
        ) {
            let [memory, file] = book(&keys);
            for key in wanted.into_iter().chain([0, u64::MAX]).chain(keys.first().copied()) {
                let _ = records_of_key(&memory, key).unwrap();
                let _ = records_of_key(&file, key).unwrap();
            }
        }
    }

    #[test]
    fn few_blocks_are_read_of_a_long_file() {
        // The keys have the distribution of a real book: 2^20 random values.
        let mut state = 9u64;
        let mut keys: Vec<u64> = (0..1 << 20)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                state ^ state >> 29
            })
            .collect();
        keys.sort_unstable();
        let wanted: Vec<u64> = keys.iter().step_by(50_021).copied().collect();
        assert_found(&keys, &wanted);
    }
}

//! Finding the records of a key, in memory and in a file.
//!
//! Keys are spread evenly, so the place of one can be guessed. After a few guesses a short binary search remains.
//! In a book whose keys are not spread, binary search does all the work.

use std::{
    fs::File,
    io::{self, ErrorKind},
};

use super::records::Entry;
use crate::positioned::read_exact_at;

/// Records that are read at once: a page of most disks and of the system's cache.
const BLOCK: u64 = 256;

/// Records that are read first of a position.
const FEW: u64 = 16;

/// Guesses in a file before its range is halved.
const GUESSES: usize = 6;

/// The most records that a position of a book in a file may have: there are no more moves.
const MOST_MOVES: usize = 1 << 16;

/// The records of a key, among the bytes of a book.
#[inline]
pub(super) fn moves_in_memory(book: &[u8], key: u64) -> &[u8] {
    if key == 0 {
        return &[];
    }
    let records = &book[lower_bound(book, key) * Entry::SIZE..];
    &records[..count_while(records, |found| found == key) * Entry::SIZE]
}

/// The first record whose key is not smaller.
fn lower_bound(book: &[u8], key: u64) -> usize {
    let key_at = |index: usize| key_of(&book[index * Entry::SIZE..]);
    let (mut low, mut high) = (0, book.len() / Entry::SIZE);
    // Records before `low` have keys below `key`, records from `high` on do not. `low_key` and `high_key`
    // are the keys of the two records at these ends, once they are read.
    let (mut low_key, mut high_key) = (0, u64::MAX);
    for _ in 0..4 {
        if high - low < 16 || key < low_key || high_key <= low_key {
            break;
        }
        let share = share(key, low_key, high_key, (high - low) as u64);
        // A step past the guess on the side where more is left, so that both ends move.
        let guess = (low + share as usize).min(high - 1);
        for probe in [guess.saturating_sub(8).max(low), (guess + 8).min(high - 1)] {
            if probe < low || probe >= high {
                continue;
            }
            let found = key_at(probe);
            if found < key {
                (low, low_key) = (probe + 1, found);
            } else {
                (high, high_key) = (probe, found);
            }
        }
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if key_at(middle) < key {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// How many of `len` records between two keys are below a key between them.
#[inline]
fn share(key: u64, low_key: u64, high_key: u64, len: u64) -> u64 {
    let share = u128::from(key - low_key) * u128::from(len) / (u128::from(high_key - low_key) + 1);
    share as u64
}

/// The records of a key, in a file of `len` records.
pub(super) fn moves_in_file(file: &File, len: u64, key: u64) -> io::Result<Vec<u8>> {
    let start = match key {
        0 => None,
        _ => find_in_file(file, len, key)?,
    };
    let Some(start) = start else {
        return Ok(Vec::new());
    };
    let mut records = Vec::new();
    let (mut next, mut width) = (start, FEW);
    while next < len {
        let block = read_block(file, next, (len - next).min(width))?;
        let found = count_while(&block, |found| found == key) * Entry::SIZE;
        records.extend_from_slice(&block[..found]);
        if found < block.len() {
            break;
        }
        if records.len() > MOST_MOVES * Entry::SIZE {
            return Err(io::Error::new(
                ErrorKind::InvalidData,
                "a position has more records than there are moves",
            ));
        }
        next += width;
        width = BLOCK;
    }
    Ok(records)
}

/// The number of a key's first record, in a file of `len` records.
fn find_in_file(file: &File, len: u64, key: u64) -> io::Result<Option<u64>> {
    if len == 0 {
        return Ok(None);
    }
    // Records before `low` have keys below `key`, records from `high` on do not.
    let (mut low, mut high) = (0, len);
    let (mut low_key, mut high_key) = (0, u64::MAX);
    for round in 0.. {
        let width = (high - low).min(BLOCK);
        let guess = if round < GUESSES && low_key <= key && key <= high_key {
            low + share(key, low_key, high_key, high - low)
        } else {
            low + (high - low) / 2
        };
        let start = guess.saturating_sub(width / 2).clamp(low, high - width);
        let block = read_block(file, start, width)?;
        let below = count_while(&block, |found| found < key) as u64;
        if below == 0 && start > low {
            (high, high_key) = (start, key_of(&block));
        } else if below == width && start + width < high {
            let last = &block[block.len() - Entry::SIZE..];
            (low, low_key) = (start + width, key_of(last));
        } else {
            let found = match block.get(below as usize * Entry::SIZE..) {
                Some(rest) if !rest.is_empty() => Some(key_of(rest)),
                _ => (high < len).then_some(high_key),
            };
            return Ok((found == Some(key)).then_some(start + below));
        }
    }
    unreachable!("each round narrows the range")
}

fn read_block(file: &File, start: u64, records: u64) -> io::Result<Vec<u8>> {
    let mut block = vec![0; records as usize * Entry::SIZE];
    read_exact_at(file, &mut block, start * Entry::SIZE as u64)?;
    Ok(block)
}

/// How many of the first records have such keys.
#[inline]
fn count_while(block: &[u8], is_such: impl Fn(u64) -> bool) -> usize {
    block
        .chunks_exact(Entry::SIZE)
        .take_while(|record| is_such(key_of(record)))
        .count()
}

#[inline]
fn key_of(record: &[u8]) -> u64 {
    let key = record.first_chunk().expect("a record begins with its key");
    u64::from_be_bytes(*key)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    fn record(key: u64, number: usize) -> [u8; Entry::SIZE] {
        (u128::from(key) << 64 | number as u128).to_be_bytes()
    }

    /// A book of these keys, in memory and in a file; records are numbered.
    fn book(keys: &[u64]) -> (Vec<u8>, File) {
        let records = keys.iter().enumerate();
        let bytes: Vec<u8> = records.flat_map(|(i, key)| record(*key, i)).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        (bytes, file)
    }

    #[track_caller]
    fn assert_found(keys: &[u64], wanted: &[u64]) {
        let (bytes, file) = book(keys);
        for key in wanted.iter().copied().filter(|key| *key != 0) {
            let places: Vec<usize> = (0..keys.len()).filter(|i| keys[*i] == key).collect();
            let expected: Vec<u8> = places.iter().flat_map(|i| record(key, *i)).collect();
            let len = keys.len() as u64;
            assert_eq!(moves_in_memory(&bytes, key), expected);
            assert_eq!(moves_in_file(&file, len, key).unwrap(), expected);
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
            let (bytes, file) = book(&keys);
            for key in wanted.into_iter().chain([0, u64::MAX]).chain(keys.first().copied()) {
                let _ = moves_in_memory(&bytes, key);
                let _ = moves_in_file(&file, keys.len() as u64, key).unwrap();
            }
        }
    }

    #[test]
    fn few_blocks_are_read_of_a_long_file() {
        // Keys as a book has them: 2^20 records, spread evenly but for chance.
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

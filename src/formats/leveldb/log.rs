//! Encodes and decodes the logs of LevelDB, which are sequences of records.
//!
//! A log is divided into blocks of 32 KiB. A record is stored as one or more fragments, each with a checksum. A
//! fragment does not cross the end of a block. A manifest is a log of edits. Other logs contain entries that are not in
//! a table yet.

use std::collections::{BTreeMap, btree_map};

use super::{
    Damage,
    coding::{masked, take_array, take_string},
};

/// The size in bytes of the blocks into which a LevelDB log is divided.
const BLOCK_SIZE: usize = 32 << 10;

/// The size in bytes of the header of a log fragment, which contains the checksum, the length and the kind. A record
/// that crosses the end of a block is stored as several fragments.
const FRAGMENT_HEADER_SIZE: usize = 7;

/// The kind of a log fragment that contains a whole record.
const FULL: u8 = 1;
/// The kind of a log fragment that begins a record of several fragments.
const FIRST: u8 = 2;
/// The kind of a log fragment that is neither the first nor the last fragment of its record.
const MIDDLE: u8 = 3;
/// The kind of a log fragment that ends a record of several fragments.
const LAST: u8 = 4;

/// Encodes a LevelDB log that contains only `record`.
pub(super) fn of_record(mut record: &[u8]) -> Vec<u8> {
    let mut log = Vec::with_capacity(
        record.len() + record.len() / BLOCK_SIZE * FRAGMENT_HEADER_SIZE + FRAGMENT_HEADER_SIZE,
    );
    let mut is_first = true;
    loop {
        let room = BLOCK_SIZE - log.len() % BLOCK_SIZE - FRAGMENT_HEADER_SIZE;
        let (fragment, rest) = record.split_at(room.min(record.len()));
        let kind = match (is_first, rest.is_empty()) {
            (true, true) => FULL,
            (true, false) => FIRST,
            (false, false) => MIDDLE,
            (false, true) => LAST,
        };
        log.extend_from_slice(&checksum(kind, fragment).to_le_bytes());
        log.extend_from_slice(&(fragment.len() as u16).to_le_bytes());
        log.push(kind);
        log.extend_from_slice(fragment);
        record = rest;
        is_first = false;
        if record.is_empty() {
            return log;
        }
    }
}

/// Calculates the checksum of a log fragment from its kind and its bytes. The result is masked, as LevelDB stores it in
/// the fragment's header.
fn checksum(kind: u8, fragment: &[u8]) -> u32 {
    masked(crc32c::crc32c_append(crc32c::crc32c(&[kind]), fragment))
}

/// The error message for a log that ends within a record.
const TORN_RECORD: &str = "the log file of the index ends in the middle of a record";

/// Returns the records of a log, each as a pair of its offset in the log and its bytes.
///
/// # Errors
///
/// Returns an error if a checksum does not match, if fragments are not in order, or if the log ends within a record.
/// Unlike LevelDB, which ignores an incomplete record at the end because the writer may have been killed, this function
/// returns an error for it, because a record with a damaged length looks incomplete as well.
pub(super) fn records(log: &[u8]) -> Result<Vec<(u64, Vec<u8>)>, Damage> {
    let mut records = Vec::new();
    let mut open: Option<(u64, Vec<u8>)> = None;
    for (number, block) in log.chunks(BLOCK_SIZE).enumerate() {
        let mut rest = block;
        while rest.len() >= FRAGMENT_HEADER_SIZE {
            let at = block.len() - rest.len();
            let offset = (number * BLOCK_SIZE + at) as u64;
            let damage = |problem| Damage { offset, problem };
            let (expected, kind, fragment) = take_fragment(&mut rest).ok_or(damage(TORN_RECORD))?;
            if checksum(kind, fragment) != expected {
                return Err(damage(
                    "the checksum of a record in the log file of the index does not match",
                ));
            }
            match (kind, &mut open) {
                (FULL, None) => records.push((offset, fragment.to_vec())),
                (FIRST, None) => open = Some((offset, fragment.to_vec())),
                (MIDDLE | LAST, Some((_, record))) => {
                    record.extend_from_slice(fragment);
                    if kind == LAST {
                        records.extend(open.take());
                    }
                }
                _ => {
                    return Err(damage(
                        "the parts of a record in the log file of the index are not in order",
                    ));
                }
            }
        }
        // The end of a block that is too short for a fragment's header is filled with null bytes.
        if rest.iter().any(|byte| *byte != 0) {
            return Err(Damage {
                offset: (number * BLOCK_SIZE + block.len() - rest.len()) as u64,
                problem: TORN_RECORD,
            });
        }
    }
    match open {
        Some((offset, _)) => Err(Damage {
            offset,
            problem: TORN_RECORD,
        }),
        None => Ok(records),
    }
}

/// Decodes a fragment of a record from the front of `rest`, and advances `rest` past the fragment. Returns the
/// checksum, the kind and the bytes of the fragment, or `None` if the fragment is incomplete.
fn take_fragment<'a>(rest: &mut &'a [u8]) -> Option<(u32, u8, &'a [u8])> {
    let expected = u32::from_le_bytes(take_array(rest)?);
    let len = u16::from_le_bytes(take_array(rest)?);
    let kind = *rest.split_off_first()?;
    Some((expected, kind, rest.split_off(..len.into())?))
}

/// The newest entry of a key in the logs: its sequence number, and its value or `None` if the entry deletes the
/// key.
pub(super) type Logged = (u64, Option<Vec<u8>>);

/// The newest entries of all keys in the logs of a database, sorted by key.
#[derive(Default, Debug)]
pub(super) struct Memtable {
    entries: BTreeMap<Vec<u8>, Logged>,
}

impl Memtable {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds the entries of a LevelDB log to this memtable. If several entries have the same key, only the newest one is
    /// kept.
    ///
    /// # Errors
    ///
    /// Returns an error if the log or one of its batches is malformed. In this case, the entries before the damage
    /// have been added.
    pub(super) fn read_log(&mut self, bytes: &[u8]) -> Result<(), Damage> {
        for (offset, batch) in records(bytes)? {
            self.read_batch(&batch).ok_or(Damage {
                offset,
                problem: "a record in the log file of the index is malformed",
            })?;
        }
        Ok(())
    }

    /// Adds the entries of a batch to this memtable. A batch is a record of a log: the sequence number of its first
    /// entry, the number of entries, and the entries. Returns `None` if the batch is malformed.
    fn read_batch(&mut self, batch: &[u8]) -> Option<()> {
        let mut rest = batch;
        let first = u64::from_le_bytes(take_array(&mut rest)?);
        let count = u32::from_le_bytes(take_array(&mut rest)?);
        for sequence in first..first.checked_add(count.into())? {
            let kind = *rest.split_off_first()?;
            let key = take_string(&mut rest)?.to_vec();
            let value = match kind {
                0 => None,
                1 => Some(take_string(&mut rest)?.to_vec()),
                _ => return None,
            };
            let entry = self.entries.entry(key).or_default();
            if sequence >= entry.0 {
                *entry = (sequence, value);
            }
        }
        rest.is_empty().then_some(())
    }

    /// Returns an iterator over all keys with their newest entries, sorted by key.
    pub(super) fn entries(&self) -> btree_map::Iter<'_, Vec<u8>, Logged> {
        self.entries.iter()
    }

    /// Returns the newest entry of `key` in the logs: `Some(Some(value))` if it sets the value, or `Some(None)` if it
    /// deletes the key. Returns `None` if the logs do not contain the key.
    pub(super) fn get(&self, key: &[u8]) -> Option<Option<&[u8]>> {
        let (_, value) = self.entries.get(key)?;
        Some(value.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn long_records_fill_whole_blocks() {
        let record = vec![7; 3 * BLOCK_SIZE];
        let log = of_record(&record);
        assert_eq!(log.len(), 3 * BLOCK_SIZE + 4 * FRAGMENT_HEADER_SIZE);
        let kinds: Vec<u8> = (0..4).map(|block| log[block * BLOCK_SIZE + 6]).collect();
        assert_eq!(kinds, [FIRST, MIDDLE, MIDDLE, LAST]);
        assert_eq!(records(&log), Ok(vec![(0, record)]));
    }

    #[test]
    fn a_record_has_the_offset_at_which_it_begins() {
        let first = vec![7; BLOCK_SIZE - FRAGMENT_HEADER_SIZE];
        let mut log = [of_record(&first), of_record(b"second")].concat();
        let expected = vec![(0, first), (BLOCK_SIZE as u64, b"second".to_vec())];
        assert_eq!(records(&log), Ok(expected));
        *log.last_mut().unwrap() ^= 1;
        assert_eq!(records(&log).unwrap_err().offset, BLOCK_SIZE as u64);
    }

    #[test]
    fn a_block_ends_with_null_bytes_or_is_damaged() {
        let first = vec![7; BLOCK_SIZE - FRAGMENT_HEADER_SIZE];
        let ended = |end: [u8; 3]| records(&[&of_record(&first)[..], &end].concat());
        assert_eq!(ended([0; 3]), Ok(vec![(0, first.clone())]));
        for end in [[1, 0, 0], [0, 0, 1]] {
            assert_eq!(ended(end).unwrap_err().offset, BLOCK_SIZE as u64);
        }
    }

    /// Encodes a log that contains only a fragment.
    fn fragment(kind: u8, bytes: &[u8]) -> Vec<u8> {
        let mut log = of_record(bytes);
        log[..4].copy_from_slice(&checksum(kind, bytes).to_le_bytes());
        log[6] = kind;
        log
    }

    #[test]
    fn fragments_may_be_empty() {
        assert_eq!(records(&of_record(b"")), Ok(vec![(0, vec![])]));
        // LevelDB begins a record at the end of a block if only a fragment's header fits there.
        let first = vec![7; BLOCK_SIZE - 2 * FRAGMENT_HEADER_SIZE];
        let parts = [fragment(FIRST, b""), fragment(LAST, b"rest")].concat();
        let log = [of_record(&first), parts].concat();
        let offset = (BLOCK_SIZE - FRAGMENT_HEADER_SIZE) as u64;
        let expected = vec![(0, first), (offset, b"rest".to_vec())];
        assert_eq!(records(&log), Ok(expected));
    }

    #[test]
    fn fragments_must_be_in_order() {
        for (kinds, expected) in [
            (&[FULL, FIRST, MIDDLE, LAST, FULL][..], Some(3)),
            (&[FIRST, LAST, FIRST, LAST], Some(2)),
            (&[FIRST, MIDDLE], None),
            (&[FIRST, FULL, LAST], None),
            (&[FIRST, FIRST, LAST], None),
            (&[MIDDLE, LAST], None),
            (&[FULL, LAST], None),
            (&[FIRST, 0, LAST], None),
            (&[5], None),
        ] {
            let log: Vec<u8> = kinds
                .iter()
                .flat_map(|kind| fragment(*kind, b"x"))
                .collect();
            let found = records(&log).ok().map(|records| records.len());
            assert_eq!(found, expected, "{kinds:?}");
        }
    }

    #[test]
    fn sequence_numbers_do_not_overflow() {
        for (first, count, is_valid) in [
            (u64::MAX - 2, 2, true),
            (u64::MAX - 1, 2, false),
            (u64::MAX, 1, false),
        ] {
            // The entries delete the key `a`.
            let entries = [0, 1, b'a'].repeat(count as usize);
            let batch = [&first.to_le_bytes()[..], &u32::to_le_bytes(count), &entries].concat();
            let read = Memtable::default().read_log(&of_record(&batch));
            assert_eq!(read.is_ok(), is_valid, "{first}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>) {
            let mut memtable = Memtable::default();
            let _ = memtable.read_log(&bytes);
            let _ = memtable.read_log(&of_record(&bytes));
        }

        #[test]
        fn records_come_back(record in proptest::collection::vec(any::<u8>(), 0..100_000)) {
            prop_assert_eq!(records(&of_record(&record)), Ok(vec![(0, record)]));
        }

        #[test]
        fn any_bytes_are_records_or_an_error(mut bytes: Vec<u8>, kind in 0..6u8) {
            let _ = records(&bytes);
            // Records with a valid checksum.
            if bytes.len() >= FRAGMENT_HEADER_SIZE {
                let len = (bytes.len() - FRAGMENT_HEADER_SIZE) as u16;
                let checksum = checksum(kind, &bytes[FRAGMENT_HEADER_SIZE..]);
                bytes[..4].copy_from_slice(&checksum.to_le_bytes());
                bytes[4..6].copy_from_slice(&len.to_le_bytes());
                bytes[6] = kind;
                prop_assert_eq!(records(&bytes).is_ok(), kind == FULL);
            }
        }

        #[test]
        fn a_flipped_bit_is_seen(record in proptest::collection::vec(any::<u8>(), 0..200), bit: prop::sample::Index) {
            let mut log = of_record(&record);
            let bit = bit.index(8 * log.len());
            log[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(records(&log).is_err());
        }
    }
}

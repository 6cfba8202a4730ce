//! Logs: records one after the other, in pieces that do not cross a block of 32 KiB, each with a
//! checksum. Manifests are logs too. Other logs have entries that are in no table yet.

use std::collections::{BTreeMap, btree_map};

use super::{
    Damage,
    coding::{masked, take_array, take_string},
};

const BLOCK: usize = 32 << 10;

/// A piece's checksum, length and kind.
const PIECE_HEADER: usize = 7;

/// The kinds of pieces: a whole record, or the first, a middle or the last part of one.
const FULL: u8 = 1;
const FIRST: u8 = 2;
const MIDDLE: u8 = 3;
const LAST: u8 = 4;

/// A log of one record.
pub(super) fn of_record(mut record: &[u8]) -> Vec<u8> {
    let mut log =
        Vec::with_capacity(record.len() + record.len() / BLOCK * PIECE_HEADER + PIECE_HEADER);
    let mut is_first = true;
    loop {
        let room = BLOCK - log.len() % BLOCK - PIECE_HEADER;
        let (piece, rest) = record.split_at(room.min(record.len()));
        let kind = match (is_first, rest.is_empty()) {
            (true, true) => FULL,
            (true, false) => FIRST,
            (false, false) => MIDDLE,
            (false, true) => LAST,
        };
        log.extend_from_slice(&checksum(kind, piece).to_le_bytes());
        log.extend_from_slice(&(piece.len() as u16).to_le_bytes());
        log.push(kind);
        log.extend_from_slice(piece);
        record = rest;
        is_first = false;
        if record.is_empty() {
            return log;
        }
    }
}

fn checksum(kind: u8, piece: &[u8]) -> u32 {
    masked(crc32c::crc32c_append(crc32c::crc32c(&[kind]), piece))
}

const TORN: &str = "the log ends in the middle of a record";

/// The records of a log, each with the place where it begins.
///
/// LevelDB takes a log that ends in the middle of a record for one whose writer was killed, and passes
/// the rest over. The same comes of a length that is damaged, so here it is an error.
pub(super) fn records(log: &[u8]) -> Result<Vec<(u64, Vec<u8>)>, Damage> {
    let mut records = Vec::new();
    let mut open: Option<(u64, Vec<u8>)> = None;
    for (number, block) in log.chunks(BLOCK).enumerate() {
        let mut rest = block;
        while rest.len() >= PIECE_HEADER {
            let at = block.len() - rest.len();
            let offset = (number * BLOCK + at) as u64;
            let damage = |problem| Damage { offset, problem };
            let (expected, kind, piece) = take_piece(&mut rest).ok_or(damage(TORN))?;
            if checksum(kind, piece) != expected {
                return Err(damage("the checksum of a record does not match"));
            }
            match (kind, &mut open) {
                (FULL, None) => records.push((offset, piece.to_vec())),
                (FIRST, None) => open = Some((offset, piece.to_vec())),
                (MIDDLE | LAST, Some((_, record))) => {
                    record.extend_from_slice(piece);
                    if kind == LAST {
                        records.extend(open.take());
                    }
                }
                _ => return Err(damage("a piece of a log is in the wrong place")),
            }
        }
        // Less than the header of a piece is filled with null bytes.
        if rest.iter().any(|byte| *byte != 0) {
            return Err(Damage {
                offset: (number * BLOCK + block.len() - rest.len()) as u64,
                problem: TORN,
            });
        }
    }
    match open {
        Some((offset, _)) => Err(Damage {
            offset,
            problem: TORN,
        }),
        None => Ok(records),
    }
}

fn take_piece<'a>(rest: &mut &'a [u8]) -> Option<(u32, u8, &'a [u8])> {
    let expected = u32::from_le_bytes(take_array(rest)?);
    let len = u16::from_le_bytes(take_array(rest)?);
    let kind = *rest.split_off_first()?;
    Some((expected, kind, rest.split_off(..len.into())?))
}

/// What the logs say of a key: the sequence number, and the value if it is not deleted.
pub(super) type Logged = (u64, Option<Vec<u8>>);

/// What the logs say of all keys.
#[derive(Default, Debug)]
pub(super) struct Memtable {
    entries: BTreeMap<Vec<u8>, Logged>,
}

impl Memtable {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds what a log says.
    pub(super) fn read_log(&mut self, bytes: &[u8]) -> Result<(), Damage> {
        for (offset, batch) in records(bytes)? {
            self.read_batch(&batch).ok_or(Damage {
                offset,
                problem: "a batch of a log is malformed",
            })?;
        }
        Ok(())
    }

    /// A batch is the first sequence number, how many entries there are, and these.
    fn read_batch(&mut self, batch: &[u8]) -> Option<()> {
        let mut rest = batch;
        let first = u64::from_le_bytes(take_array(&mut rest)?);
        let count = u32::from_le_bytes(take_array(&mut rest)?);
        for sequence in (first..).take(count as usize) {
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

    /// All entries.
    pub(super) fn entries(&self) -> btree_map::Iter<'_, Vec<u8>, Logged> {
        self.entries.iter()
    }

    /// The value of a key, `Some(None)` if it is deleted, `None` if the logs do not say.
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
        let record = vec![7; 3 * BLOCK];
        let log = of_record(&record);
        assert_eq!(log.len(), 3 * BLOCK + 4 * PIECE_HEADER);
        let kinds: Vec<u8> = (0..4).map(|block| log[block * BLOCK + 6]).collect();
        assert_eq!(kinds, [FIRST, MIDDLE, MIDDLE, LAST]);
        assert_eq!(records(&log), Ok(vec![(0, record)]));
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
            // Also when the checksum is right.
            if bytes.len() >= PIECE_HEADER {
                let len = (bytes.len() - PIECE_HEADER) as u16;
                let checksum = checksum(kind, &bytes[PIECE_HEADER..]);
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

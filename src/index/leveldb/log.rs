//! Logs: records one after the other, in pieces that do not cross a block of 32 KiB, each with a
//! checksum. Manifests are logs too.

use super::{
    Damage,
    coding::{Fields, masked},
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

/// The records of a log, each with the place where it begins.
///
/// LevelDB takes a log that ends in the middle of a record for one whose writer was killed, and passes
/// the rest over. The same comes of a length that is damaged, so here it is an error.
pub(super) fn records(log: &[u8]) -> Result<Vec<(u64, Vec<u8>)>, Damage> {
    let mut records = Vec::new();
    let mut open: Option<(u64, Vec<u8>)> = None;
    for (number, block) in log.chunks(BLOCK).enumerate() {
        let mut fields = Fields::new(block);
        while fields.rest().len() >= PIECE_HEADER {
            let at = block.len() - fields.rest().len();
            let offset = (number * BLOCK + at) as u64;
            let damage = |problem| Damage { offset, problem };
            let (kind, piece) = piece(&mut fields).map_err(damage)?;
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
        if fields.rest().iter().any(|byte| *byte != 0) {
            return Err(Damage {
                offset: (number * BLOCK + block.len() - fields.rest().len()) as u64,
                problem: "the log ends in the middle of a record",
            });
        }
    }
    match open {
        Some((offset, _)) => Err(Damage {
            offset,
            problem: "the log ends in the middle of a record",
        }),
        None => Ok(records),
    }
}

fn piece<'a>(fields: &mut Fields<'a>) -> Result<(u8, &'a [u8]), &'static str> {
    let torn = "the log ends in the middle of a record";
    let expected = fields.u32().ok_or(torn)?;
    let (low, high) = (fields.byte().ok_or(torn)?, fields.byte().ok_or(torn)?);
    let kind = fields.byte().ok_or(torn)?;
    let piece = fields
        .bytes(usize::from(u16::from_le_bytes([low, high])))
        .ok_or(torn)?;
    if checksum(kind, piece) != expected {
        return Err("the checksum of a record does not match");
    }
    Ok((kind, piece))
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
        fn records_come_back(record in proptest::collection::vec(any::<u8>(), 0..100_000)) {
            prop_assert_eq!(records(&of_record(&record)), Ok(vec![(0, record)]));
        }

        #[test]
        fn any_bytes_are_read(mut bytes: Vec<u8>, kind in 0..6u8) {
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

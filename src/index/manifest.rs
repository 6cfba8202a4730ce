//! The manifest that makes a database of tables: which files there are, and which keys each holds.
//!
//! A manifest is a log of edits; ours has one. The log's records are cut at blocks of 32 KiB, and each
//! piece carries a checksum. The formats are those of LevelDB's `doc/log_format.md` and
//! `doc/impl.md`.

use std::{fs, path::Path};

use crate::error::{At, Result};

const BLOCK: usize = 32 << 10;
const PIECE_HEADER: usize = 7;

/// All tables stand in the last level, which is never compacted.
const LEVEL: u64 = 6;

/// The number of the manifest itself, and of a log that is not there because nothing is to recover.
const MANIFEST_NUMBER: u64 = 1;
const LOG_NUMBER: u64 = 2;

/// The number of the first table.
pub(super) const FIRST_TABLE: u64 = 3;

/// A table that has been written.
#[derive(Clone, Debug)]
pub(super) struct TableFile {
    pub number: u64,
    pub size: u64,
    pub entries: u64,
    pub first_key: Vec<u8>,
    pub last_key: Vec<u8>,
}

impl TableFile {
    /// The name of its file.
    pub(super) fn name(number: u64) -> String {
        format!("{number:06}.ldb")
    }
}

/// Writes the manifest of tables that do not overlap, and the file that points to it.
pub(super) fn write(directory: &Path, tables: &[TableFile]) -> Result<()> {
    let name = format!("MANIFEST-{MANIFEST_NUMBER:06}");
    let path = directory.join(&name);
    fs::write(&path, log_of(&edit(tables))).at(&path, "write")?;
    let path = directory.join("CURRENT");
    fs::write(&path, format!("{name}\n")).at(&path, "write")
}

/// One edit that says everything.
fn edit(tables: &[TableFile]) -> Vec<u8> {
    let mut edit = Vec::new();
    let next_number = tables
        .iter()
        .map(|table| table.number)
        .max()
        .unwrap_or(LOG_NUMBER)
        + 1;
    let last_sequence = tables.iter().map(|table| table.entries).max().unwrap_or(0);
    put_number(&mut edit, 1);
    put_bytes(&mut edit, b"leveldb.BytewiseComparator");
    for (tag, number) in [
        (2, LOG_NUMBER),
        (9, 0),
        (3, next_number),
        (4, last_sequence),
    ] {
        put_number(&mut edit, tag);
        put_number(&mut edit, number);
    }
    for table in tables {
        for number in [7, LEVEL, table.number, table.size] {
            put_number(&mut edit, number);
        }
        put_bytes(&mut edit, &internal_key(&table.first_key, 1));
        put_bytes(&mut edit, &internal_key(&table.last_key, table.entries));
    }
    edit
}

/// A key with the sequence number and the kind (1, a value) of its entry.
fn internal_key(key: &[u8], sequence: u64) -> Vec<u8> {
    [key, &(sequence << 8 | 1).to_le_bytes()].concat()
}

/// Seven bits a byte, the lowest first.
fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// A log of one record.
fn log_of(mut record: &[u8]) -> Vec<u8> {
    let mut log = Vec::with_capacity(record.len() + PIECE_HEADER);
    let mut is_first = true;
    loop {
        let room = BLOCK - log.len() % BLOCK - PIECE_HEADER;
        let (piece, rest) = record.split_at(room.min(record.len()));
        let kind = match (is_first, rest.is_empty()) {
            (true, true) => 1,
            (true, false) => 2,
            (false, false) => 3,
            (false, true) => 4,
        };
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&[kind]), piece);
        // Stored so that a checksum of data that holds checksums is still a good one.
        let masked = checksum.rotate_right(15).wrapping_add(0xa282_ead8);
        log.extend_from_slice(&masked.to_le_bytes());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_varints() {
        let mut out = Vec::new();
        for number in [0, 127, 128, 300, u64::MAX] {
            put_number(&mut out, number);
        }
        assert_eq!(out[..6], [0, 127, 0x80, 1, 0xac, 2]);
        assert_eq!(out.len(), 16);
    }

    #[test]
    fn long_records_fill_whole_blocks() {
        let log = log_of(&vec![7; 3 * BLOCK]);
        assert_eq!(log.len(), 3 * BLOCK + 4 * PIECE_HEADER);
        let kinds: Vec<u8> = (0..4).map(|block| log[block * BLOCK + 6]).collect();
        assert_eq!(kinds, [2, 3, 3, 4]);
    }
}

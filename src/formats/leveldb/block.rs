//! Encodes and decodes the blocks of a LevelDB table, which contain sorted entries with prefix-compressed keys.
//!
//! An entry begins with three varints: the length of the prefix that its key shares with the previous key, the length
//! of the rest of the key, and the length of the value. The rest of the key and the value follow. Every sixteenth key
//! is stored whole; its entry is a *restart point*. The block ends with the offsets of the restart points and their
//! number (32-bit little-endian integers), so that a key can be found by binary search over the restart points.

use std::{ops::Range, path::Path, sync::Arc};

use super::{
    Damage,
    coding::{put_varint, take_array, take_size},
    key::{self, EntryKind},
};
use crate::error::{Error, Result};

/// The number of entries from one restart point of a block to the next. A restart point is an entry that stores its
/// whole key, so that a lookup can begin there. Other entries store only the part of the key that differs from the
/// previous key.
const RESTART_INTERVAL: usize = 16;

/// An encoder for the blocks of a LevelDB table, which contain sorted entries with prefix-compressed keys. The encoder
/// reuses its buffer for each block.
#[derive(Debug)]
pub(super) struct BlockBuilder {
    /// The encoded entries.
    buffer: Vec<u8>,
    /// The offset of each restart point in `buffer`.
    restarts: Vec<u32>,
    last_key: Vec<u8>,
    /// The number of entries since the last restart point.
    since_restart: usize,
}

impl BlockBuilder {
    pub(super) fn new() -> BlockBuilder {
        BlockBuilder {
            buffer: Vec::new(),
            restarts: vec![0],
            last_key: Vec::new(),
            since_restart: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    pub(super) fn last_key(&self) -> &[u8] {
        &self.last_key
    }

    /// Returns the encoded size of the block in bytes, including the list of restart points that ends the block.
    pub(super) fn size(&self) -> usize {
        self.buffer.len() + 4 * self.restarts.len() + 4
    }

    /// Appends the beginning of an entry to the block: the lengths of the key and of the value, and the key. The key is
    /// the concatenation of `key` and `trailer`, and must be greater than all keys of the block. `trailer` contains the
    /// sequence number and the kind of the entry in a data block, and is empty in an index block.
    ///
    /// The caller must then append the value, which has `value_len` bytes, to the buffer that
    /// [`value`](BlockBuilder::value) returns.
    #[inline]
    pub(super) fn add_key(&mut self, key: &[u8], trailer: &[u8], value_len: usize) {
        let shared = if self.since_restart < RESTART_INTERVAL {
            match common_prefix(&self.last_key, key) {
                all if all == key.len() => all + common_prefix(&self.last_key[all..], trailer),
                some => some,
            }
        } else {
            self.restarts.push(self.buffer.len() as u32);
            self.since_restart = 0;
            0
        };
        self.since_restart += 1;
        self.last_key.truncate(shared);
        self.last_key
            .extend_from_slice(&key[shared.min(key.len())..]);
        self.last_key
            .extend_from_slice(&trailer[shared.saturating_sub(key.len())..]);
        let unshared = self.last_key.len() - shared;
        if (shared | unshared | value_len) < 0x80 {
            let lens = [shared as u8, unshared as u8, value_len as u8];
            self.buffer.extend_from_slice(&lens);
        } else {
            for number in [shared, unshared, value_len] {
                put_varint(&mut self.buffer, number as u64);
            }
        }
        self.buffer.extend_from_slice(&self.last_key[shared..]);
    }

    /// Returns the buffer of the block. After calling [`add_key`](BlockBuilder::add_key), the caller must append the
    /// entry's value to this buffer.
    #[inline]
    pub(super) fn value(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Returns the encoded entries of the block, without the list of restart points.
    pub(super) fn entries(&self) -> &[u8] {
        &self.buffer
    }

    /// Returns the encoded list of restart points, which are the entries whose keys are stored whole. The list contains
    /// the offset of each restart point and the number of restart points, as 32-bit little-endian integers.
    pub(super) fn restarts(&self) -> Vec<u8> {
        let count = self.restarts.len() as u32;
        let numbers = self.restarts.iter().chain([&count]);
        numbers.flat_map(|number| number.to_le_bytes()).collect()
    }

    /// Completes the block with the list of restart points, and returns the encoded block. Call
    /// [`clear`](BlockBuilder::clear) before you add entries of the next block.
    pub(super) fn finish(&mut self) -> &[u8] {
        let restarts = self.restarts();
        self.buffer.extend_from_slice(&restarts);
        &self.buffer
    }

    /// Removes all entries, so that the next block can begin.
    pub(super) fn clear(&mut self) {
        self.buffer.clear();
        self.restarts.truncate(1);
        self.last_key.clear();
        self.since_restart = 0;
    }
}

/// Returns the length in bytes of the longest common prefix of `a` and `b`.
#[inline]
fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// A decompressed block of a LevelDB table. If the last value of the block is too long to be held in memory, the
/// block contains only the bytes before this value.
#[derive(Debug)]
pub(super) struct Block {
    bytes: Vec<u8>,
    /// The offset in `bytes` at which the entries end.
    entries_end: usize,
    /// The number of restart points, or 0 if only the beginning of the block is in memory.
    restarts: usize,
    /// The length in bytes of the whole block if only its beginning is in memory, otherwise 0.
    len: usize,
    /// The offset of the block in its file.
    offset: u64,
    path: Arc<Path>,
}

/// The position of a cursor in a block. The cursor position contains the key and the value range of the current entry,
/// and the offset of the next entry.
#[derive(Clone, Default, Debug)]
pub(super) struct EntryState {
    /// The offset of the next entry.
    next: usize,
    /// The number of entries decoded so far.
    passed: usize,
    /// The internal key of the current entry.
    pub key: Vec<u8>,
    /// The byte range of the current entry's value in the block.
    pub value: Range<usize>,
}

impl EntryState {
    /// Creates a cursor position before the entry that begins at the offset `next` in a block. This entry must be a
    /// restart point, which is an entry whose key is stored whole.
    fn before(next: usize) -> EntryState {
        EntryState {
            next,
            ..EntryState::default()
        }
    }
}

impl Block {
    /// Creates a block from its decompressed bytes. `offset` is the offset of the block in the file `path`.
    ///
    /// # Errors
    ///
    /// Returns an error if the list of restart points at the end of the block is empty or does not fit into the block.
    /// A restart point is an entry whose key is stored whole.
    pub(super) fn new(bytes: Vec<u8>, offset: u64, path: &Arc<Path>) -> Result<Block> {
        let mut block = Block::of_first_part(bytes, 0, offset, path);
        let restarts = || {
            let (rest, count) = block.bytes.split_last_chunk()?;
            let restarts = u32::from_le_bytes(*count) as usize;
            let entries_end = rest.len().checked_sub(restarts.checked_mul(4)?)?;
            (restarts > 0).then_some((restarts, entries_end))
        };
        let restarts = restarts().ok_or_else(|| block.damaged("a block has no restarts"));
        (block.restarts, block.entries_end) = restarts?;
        Ok(block)
    }

    /// Creates a block whose last value is too long to be held in memory. `bytes` contains the part of the block before
    /// this value. `len` is the size of the whole block, and `offset` is its offset in the file `path`.
    pub(super) fn of_first_part(
        bytes: Vec<u8>,
        len: usize,
        offset: u64,
        path: &Arc<Path>,
    ) -> Block {
        Block {
            entries_end: bytes.len(),
            restarts: 0,
            len,
            bytes,
            offset,
            path: Arc::clone(path),
        }
    }

    fn damaged(&self, problem: &'static str) -> Error {
        let offset = self.offset;
        Damage { offset, problem }.into_error(&self.path)
    }

    /// Moves `state`, the position of a cursor, to the next entry of the block. The first call moves it to the first
    /// entry. Returns `false` if there is no next entry.
    ///
    /// If the block is held in memory without its last value, this function still moves to the last entry, although its
    /// value is missing.
    ///
    /// # Errors
    ///
    /// Returns an error if the next entry is malformed, or if the bytes in memory end before the last entry of the
    /// block.
    #[inline]
    pub(super) fn advance(&self, state: &mut EntryState) -> Result<bool> {
        let entries = &self.bytes[..self.entries_end];
        let mut rest = entries.get(state.next..).unwrap_or_default();
        if rest.is_empty() {
            if self.len > 0 && state.next <= self.entries_end {
                return Err(self.damaged("a long block is malformed"));
            }
            return Ok(false);
        }
        let value = self.take_entry(&mut rest, state);
        state.value = value.ok_or_else(|| self.damaged("an entry of a block is malformed"))?;
        state.next = state.value.end;
        state.passed += 1;
        Ok(true)
    }

    /// Decodes the lengths and the key of an entry from the front of `rest`, advances `rest` past them, and stores
    /// the key in `state`. Returns the byte range of the entry's value in the block.
    ///
    /// Returns `None` if the entry is malformed or its value lies outside of the block.
    #[inline]
    fn take_entry(&self, rest: &mut &[u8], state: &mut EntryState) -> Option<Range<usize>> {
        let (shared, unshared, value_len) = (take_size(rest)?, take_size(rest)?, take_size(rest)?);
        if shared > state.key.len() {
            return None;
        }
        state.key.truncate(shared);
        state.key.extend_from_slice(rest.split_off(..unshared)?);
        let start = self.entries_end - rest.len();
        let end = start.checked_add(value_len)?;
        if end > self.entries_end {
            // Only the last value of a partly held block may end outside of the held bytes. It must end where the
            // list of restart points begins.
            let restarts = state.passed / RESTART_INTERVAL + 1;
            let is_last = self.len.checked_sub(end)? == 4 * (restarts + 1);
            return is_last.then_some(start..end);
        }
        Some(start..end)
    }

    /// Splits the internal key of the entry at the cursor position `state` into the user key, the sequence number and
    /// the kind of the entry.
    ///
    /// # Errors
    ///
    /// Returns an error if the internal key is malformed.
    #[inline]
    pub(super) fn parts<'p>(&self, state: &'p EntryState) -> Result<(&'p [u8], u64, EntryKind)> {
        key::parse(&state.key).ok_or_else(|| self.damaged("a key of a block is malformed"))
    }

    /// Finds the first entry of the block whose user key is greater than or equal to `key`. If several entries have
    /// this user key, finds the newest one. Returns `None` if all user keys in the block are less than `key`. A user
    /// key is a key without the sequence number and the kind of its entry.
    ///
    /// # Errors
    ///
    /// Returns an error if a restart point or an entry is malformed.
    pub(super) fn find(&self, key: &[u8]) -> Result<Option<EntryState>> {
        // Binary search for the last restart point whose user key is less than `key`. If there is none, the search
        // begins at the first restart point.
        let (mut low, mut high) = (0, self.restarts);
        while high - low > 1 {
            let middle = low.midpoint(high);
            let mut state = EntryState::before(self.restart(middle)?);
            if !self.advance(&mut state)? {
                return Err(self.damaged("a restart of a block has no entry"));
            }
            if self.parts(&state)?.0 < key {
                low = middle;
            } else {
                high = middle;
            }
        }
        let mut state = EntryState::before(self.restart(low)?);
        while self.advance(&mut state)? {
            if self.parts(&state)?.0 >= key {
                return Ok(Some(state));
            }
        }
        Ok(None)
    }

    /// Returns the byte offset in the block of the restart point `number`, counted from 0. A restart point is an
    /// entry whose key is stored whole.
    ///
    /// # Errors
    ///
    /// Returns an error if the offset lies outside of the entries of the block.
    fn restart(&self, number: usize) -> Result<usize> {
        let at = self.entries_end + 4 * number;
        let offset = take_array(&mut &self.bytes[at..]).expect("the restarts lie within the block");
        let offset = u32::from_le_bytes(offset) as usize;
        if offset > self.entries_end {
            return Err(self.damaged("a restart lies outside of its block"));
        }
        Ok(offset)
    }

    /// Returns the value of the entry at the cursor position `state`, or `None` if the value is not in memory because
    /// it is too long.
    #[inline]
    pub(super) fn value(&self, state: &EntryState) -> Option<&[u8]> {
        self.bytes.get(state.value.clone())
    }

    /// Returns the value of the entry at the cursor position `state`. Reuses the buffer of the block for the result
    /// instead of allocating a new one, because the value may be large.
    pub(super) fn into_value(mut self, state: &EntryState) -> Vec<u8> {
        self.bytes.truncate(state.value.end);
        self.bytes.drain(..state.value.start);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_decodes_the_entries_of_one_restart() {
        let keys: Vec<[u8; 2]> = (0..1000_u16).map(u16::to_be_bytes).collect();
        let mut builder = BlockBuilder::new();
        for (key, sequence) in keys.iter().zip(1..) {
            builder.add_key(key, &key::trailer(sequence), 0);
        }
        let path = Arc::from(Path::new("table"));
        let block = Block::new(builder.finish().to_vec(), 0, &path).unwrap();
        for (key, sequence) in keys.iter().zip(1..) {
            let found = block.find(key).unwrap().unwrap();
            assert_eq!(block.parts(&found).unwrap().1, sequence);
            // The search begins at a restart point before the key.
            assert!(found.passed <= RESTART_INTERVAL + 1, "{}", found.passed);
        }
    }

    /// LevelDB keeps old entries of a key for a snapshot. They may fill several restart intervals.
    #[test]
    fn the_newest_of_many_entries_of_a_key_is_found() {
        let mut builder = BlockBuilder::new();
        for (key, sequences) in [(b"a", 0..20), (b"b", 20..70), (b"c", 70..71)] {
            for sequence in sequences.rev() {
                builder.add_key(key, &key::trailer(sequence), 0);
            }
        }
        let path = Arc::from(Path::new("table"));
        let block = Block::new(builder.finish().to_vec(), 0, &path).unwrap();
        for (key, newest) in [(b"a", 19), (b"b", 69), (b"c", 70)] {
            let found = block.find(key).unwrap().unwrap();
            assert_eq!(
                block.parts(&found).unwrap(),
                (&key[..], newest, EntryKind::Value)
            );
        }
    }

    #[test]
    fn a_key_shares_at_most_the_whole_key_before_it() {
        let first = [&[0, 9, 0][..], b"a", &key::trailer(2)].concat();
        for (shared, is_valid) in [(9, true), (10, false), (127, false)] {
            let second = [&[shared, 8, 0][..], &key::trailer(1)].concat();
            let restarts = [0_u32.to_le_bytes(), 1_u32.to_le_bytes()].concat();
            let bytes = [first.clone(), second, restarts].concat();
            let block = Block::new(bytes, 0, &Arc::from(Path::new("table"))).unwrap();
            let mut state = EntryState::default();
            assert!(block.advance(&mut state).unwrap());
            assert_eq!(block.advance(&mut state).is_ok(), is_valid, "{shared}");
        }
    }

    #[test]
    fn a_long_value_ends_where_the_restarts_begin() {
        const LONG: usize = 9000;
        for before in [0, 15, 16, 17, 40] {
            let mut builder = BlockBuilder::new();
            for number in 0..=before {
                let len = if number < before { 0 } else { LONG };
                builder.add_key(&[number], &key::trailer(1), len);
            }
            let len = builder.size() + LONG;
            for (len, is_valid) in [
                (len, true),
                (len - 4, false),
                (len + 4, false),
                (LONG, false),
            ] {
                let held = builder.entries().to_vec();
                let block = Block::of_first_part(held, len, 0, &Arc::from(Path::new("table")));
                let mut state = EntryState::default();
                for _ in 0..before {
                    assert!(block.advance(&mut state).unwrap());
                }
                let is_there = block.advance(&mut state);
                assert_eq!(is_there.is_ok(), is_valid, "{before} {len}");
                if is_valid {
                    assert_eq!((state.value.len(), block.value(&state)), (LONG, None));
                    assert!(!block.advance(&mut state).unwrap());
                }
            }
        }
    }
}

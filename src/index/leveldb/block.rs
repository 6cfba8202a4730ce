//! Blocks: the entries of a stretch of a table, each key without what it shares with the one before.
//!
//! An entry is: how many bytes of its key are those of the key before, how many are not, the length of the value
//! (varints), the bytes that are not shared, the value. Every sixteenth key is whole. The end of
//! the block says where these restarts are and how many, so that a key is found by halving.

use std::{ops::Range, path::Path, sync::Arc};

use super::{
    Damage,
    coding::{put_varint, take_array, take_size},
    key::{self, EntryKind},
};
use crate::error::{Error, Result};

/// How many entries there are from one whole key to the next.
const RESTART_INTERVAL: usize = 16;

/// Makes one block after the other.
#[derive(Debug)]
pub(super) struct BlockBuilder {
    buffer: Vec<u8>,
    restarts: Vec<u32>,
    last_key: Vec<u8>,
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

    /// How many bytes the block takes if it ends here.
    pub(super) fn size(&self) -> usize {
        self.buffer.len() + 4 * self.restarts.len() + 4
    }

    /// Adds an entry after all others up to its value, which is to be appended to [`value`](BlockBuilder::value). Its
    /// key has two parts.
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

    /// Where the bytes of a value go.
    #[inline]
    pub(super) fn value(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// The bytes of the entries.
    pub(super) fn entries(&self) -> &[u8] {
        &self.buffer
    }

    /// The bytes after the entries.
    pub(super) fn restarts(&self) -> Vec<u8> {
        let count = self.restarts.len() as u32;
        let numbers = self.restarts.iter().chain([&count]);
        numbers.flat_map(|number| number.to_le_bytes()).collect()
    }

    /// The block's bytes. [`clear`](BlockBuilder::clear) begins the next.
    pub(super) fn finish(&mut self) -> &[u8] {
        let restarts = self.restarts();
        self.buffer.extend_from_slice(&restarts);
        &self.buffer
    }

    pub(super) fn clear(&mut self) {
        self.buffer.clear();
        self.restarts.truncate(1);
        self.last_key.clear();
        self.since_restart = 0;
    }
}

/// How many bytes two strings begin with in common.
#[inline]
fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// A block that has been read, or the first part of one whose last value is too long to be held.
#[derive(Debug)]
pub(super) struct Block {
    bytes: Vec<u8>,
    /// Where the entries end that are held.
    entries_end: usize,
    restarts: usize,
    /// How many bytes the block has, held or not.
    len: usize,
    /// Where the block is.
    offset: u64,
    path: Arc<Path>,
}

/// An entry of a block, and where the next one begins.
#[derive(Clone, Default, Debug)]
pub(super) struct EntryState {
    next: usize,
    /// How many entries came before that.
    passed: usize,
    /// The internal key.
    pub key: Vec<u8>,
    /// Where the value is in the block.
    pub value: Range<usize>,
}

impl EntryState {
    /// Before the entry that begins with a whole key at `next`.
    fn before(next: usize) -> EntryState {
        EntryState {
            next,
            ..EntryState::default()
        }
    }
}

impl Block {
    /// Takes the bytes of the block that begins at `offset` of a file.
    pub(super) fn new(bytes: Vec<u8>, offset: u64, path: &Arc<Path>) -> Result<Block> {
        let mut block = Block::of_first_part(bytes, 0, offset, path);
        block.len = block.bytes.len();
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

    /// Takes the first bytes of a block of `len` bytes, whose last value is not among them.
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
        Damage { offset, problem }.of(&self.path)
    }

    /// Goes to the next entry, first to the first; false after the last. The last entry of a first part is the one
    /// whose value goes on after it.
    #[inline]
    pub(super) fn advance(&self, place: &mut EntryState) -> Result<bool> {
        let entries = &self.bytes[..self.entries_end];
        let mut rest = entries.get(place.next..).unwrap_or_default();
        if rest.is_empty() {
            if self.restarts == 0 && self.len > 0 && place.next <= self.entries_end {
                return Err(self.damaged("a long block is malformed"));
            }
            return Ok(false);
        }
        let value = self.take_entry(&mut rest, place);
        place.value = value.ok_or_else(|| self.damaged("an entry of a block is malformed"))?;
        place.next = place.value.end;
        place.passed += 1;
        Ok(true)
    }

    /// Takes an entry off the front: makes its key of the one before, and returns where its value is.
    #[inline]
    fn take_entry(&self, rest: &mut &[u8], place: &mut EntryState) -> Option<Range<usize>> {
        let (shared, unshared, value_len) = (take_size(rest)?, take_size(rest)?, take_size(rest)?);
        if shared > place.key.len() {
            return None;
        }
        place.key.truncate(shared);
        place.key.extend_from_slice(rest.split_off(..unshared)?);
        let start = self.entries_end - rest.len();
        let end = start.checked_add(value_len)?;
        if end > self.entries_end {
            // Only the restarts follow a value that is not held.
            let restarts = place.passed / RESTART_INTERVAL + 1;
            let is_last = self.len.checked_sub(end)? == 4 * (restarts + 1);
            return (self.restarts == 0 && is_last).then_some(start..end);
        }
        Some(start..end)
    }

    /// The entry's key as the user gave it, its sequence number and kind.
    #[inline]
    pub(super) fn parts<'p>(&self, place: &'p EntryState) -> Result<(&'p [u8], u64, EntryKind)> {
        key::parse(&place.key).ok_or_else(|| self.damaged("a key of a block is malformed"))
    }

    /// The first entry whose user's key is not less than `key`: the newest of that key.
    pub(super) fn find(&self, key: &[u8]) -> Result<Option<EntryState>> {
        // The last restart whose key is less, or the first one.
        let (mut low, mut high) = (0, self.restarts);
        while high - low > 1 {
            let middle = low.midpoint(high);
            let mut place = EntryState::before(self.restart(middle)?);
            if !self.advance(&mut place)? {
                return Err(self.damaged("a restart of a block has no entry"));
            }
            if self.parts(&place)?.0 < key {
                low = middle;
            } else {
                high = middle;
            }
        }
        let mut place = EntryState::before(self.restart(low)?);
        while self.advance(&mut place)? {
            if self.parts(&place)?.0 >= key {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    fn restart(&self, number: usize) -> Result<usize> {
        let at = self.entries_end + 4 * number;
        let place = take_array(&mut &self.bytes[at..]).expect("the restarts lie within the block");
        let place = u32::from_le_bytes(place) as usize;
        if place > self.entries_end {
            return Err(self.damaged("a restart lies outside of its block"));
        }
        Ok(place)
    }

    /// The value of an entry, `None` if it is not held.
    #[inline]
    pub(super) fn value(&self, place: &EntryState) -> Option<&[u8]> {
        self.bytes.get(place.value.clone())
    }

    /// The same as [`value`](Block::value) without a copy, because values may be large.
    pub(super) fn into_value(mut self, place: &EntryState) -> Vec<u8> {
        self.bytes.truncate(place.value.end);
        self.bytes.drain(..place.value.start);
        self.bytes
    }
}

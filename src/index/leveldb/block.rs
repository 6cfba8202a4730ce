//! Blocks: the entries of a stretch of a table, each key without what it shares with the one before.
//!
//! An entry is: how many bytes of its key are those of the key before, how many are not, the length of the value
//! (varints), the bytes that are not shared, the value. Every sixteenth key is whole. The end of
//! the block says where these restarts are and how many, so that a key is found by halving.

use std::ops::Range;

use super::{
    Damage,
    coding::{Fields, put_varint},
    key::{self, EntryKind},
};

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

    /// Adds an entry after all others, from the user's key and the sequence number.
    #[inline]
    pub(super) fn add(&mut self, key: &[u8], sequence: u64, value: &[u8]) {
        self.add_key(key, sequence, value.len());
        self.buffer.extend_from_slice(value);
    }

    /// Adds an entry up to its value.
    #[inline]
    pub(super) fn add_key(&mut self, key: &[u8], sequence: u64, value_len: usize) {
        self.add_parts(key, &key::trailer(sequence), value_len);
    }

    /// Adds an entry whose key is not an internal key, or one that was made as a whole.
    pub(super) fn add_whole(&mut self, key: &[u8], value: &[u8]) {
        self.add_parts(key, &[], value.len());
        self.buffer.extend_from_slice(value);
    }

    /// Adds an entry whose key has two parts, up to its value.
    #[inline]
    fn add_parts(&mut self, key: &[u8], trailer: &[u8], value_len: usize) {
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

/// How many bytes two strings begin with in common, eight at a time.
#[inline]
fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let words = a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0);
    let mut same = 0;
    for (a, b) in words {
        let differing = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if differing != 0 {
            return same + differing.trailing_zeros() as usize / 8;
        }
        same += 8;
    }
    let rest = a[same..].iter().zip(&b[same..]);
    same + rest.take_while(|(a, b)| a == b).count()
}

/// A block that has been read.
#[derive(Debug)]
pub(super) struct Block {
    bytes: Vec<u8>,
    /// Where the entries end and the restarts begin.
    entries_end: usize,
    restarts: usize,
    /// Where the block is in its file.
    offset: u64,
}

/// An entry of a block, and where the next one begins.
#[derive(Clone, Default, Debug)]
pub(super) struct EntryState {
    next: usize,
    /// The internal key.
    pub key: Vec<u8>,
    value: Range<usize>,
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

/// Reads an entry up to its value: makes its key of the one before, and returns how long the value is.
#[inline]
pub(super) fn read_key(fields: &mut Fields<'_>, key: &mut Vec<u8>) -> Option<usize> {
    let (shared, unshared, value_len) = (fields.size()?, fields.size()?, fields.size()?);
    if shared > key.len() {
        return None;
    }
    key.truncate(shared);
    key.extend_from_slice(fields.bytes(unshared)?);
    Some(value_len)
}

impl Block {
    /// Takes the bytes of the block that begins at `offset` of its file.
    pub(super) fn new(bytes: Vec<u8>, offset: u64) -> Result<Block, Damage> {
        let damage = Damage {
            offset,
            problem: "a block has no restarts",
        };
        let (rest, count) = bytes.split_last_chunk().ok_or(damage)?;
        let restarts = u32::from_le_bytes(*count) as usize;
        let entries_end = restarts
            .checked_mul(4)
            .and_then(|size| rest.len().checked_sub(size))
            .filter(|_| restarts > 0)
            .ok_or(damage)?;
        Ok(Block {
            bytes,
            entries_end,
            restarts,
            offset,
        })
    }

    fn damage(&self, problem: &'static str) -> Damage {
        Damage {
            offset: self.offset,
            problem,
        }
    }

    /// The entries at the start of a block that is not read as a whole, up to `end`.
    pub(super) fn of_first_entries(bytes: Vec<u8>, end: usize, offset: u64) -> Block {
        Block {
            bytes,
            entries_end: end,
            restarts: 0,
            offset,
        }
    }

    /// Goes to the next entry, first to the first; false after the last.
    #[inline]
    pub(super) fn advance(&self, place: &mut EntryState) -> Result<bool, Damage> {
        let entries = &self.bytes[..self.entries_end];
        let mut fields = Fields::new(&entries[place.next..]);
        if fields.is_empty() {
            return Ok(false);
        }
        let malformed = self.damage("an entry of a block is malformed");
        let value_len = read_key(&mut fields, &mut place.key).ok_or(malformed)?;
        let start = entries.len() - fields.rest().len();
        fields.bytes(value_len).ok_or(malformed)?;
        place.next = start + value_len;
        place.value = start..place.next;
        Ok(true)
    }

    /// The entry's key as the user gave it, its sequence number and kind.
    #[inline]
    pub(super) fn parts<'p>(
        &self,
        place: &'p EntryState,
    ) -> Result<(&'p [u8], u64, EntryKind), Damage> {
        key::parse(&place.key).ok_or_else(|| self.damage("a key of a block is malformed"))
    }

    /// The first entry whose user's key is not less than `key`: the newest of that key.
    pub(super) fn find(&self, key: &[u8]) -> Result<Option<EntryState>, Damage> {
        // The last restart whose key is less, or the first one.
        let (mut low, mut high) = (0, self.restarts);
        while high - low > 1 {
            let middle = low.midpoint(high);
            let mut place = EntryState::before(self.restart(middle)?);
            if !self.advance(&mut place)? {
                return Err(self.damage("a restart of a block has no entry"));
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

    fn restart(&self, number: usize) -> Result<usize, Damage> {
        let at = self.entries_end + 4 * number;
        let place = Fields::new(&self.bytes[at..])
            .u32()
            .expect("the restarts lie within the block");
        if place as usize > self.entries_end {
            return Err(self.damage("a restart lies outside of its block"));
        }
        Ok(place as usize)
    }

    /// The value of an entry.
    #[inline]
    pub(super) fn value(&self, place: &EntryState) -> &[u8] {
        &self.bytes[place.value.clone()]
    }

    /// The room of the block, for another one.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The same as [`value`](Block::value) without a copy, because values may be large.
    pub(super) fn into_value(mut self, place: &EntryState) -> Vec<u8> {
        self.bytes.truncate(place.value.end);
        self.bytes.drain(..place.value.start);
        self.bytes
    }
}

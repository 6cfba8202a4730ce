//! Reading values that are too long to be held in memory.
//!
//! A long value is the last value of its block. [`Table::long_block`] recognizes such a block and reads only its
//! beginning. [`Database::read_long`] streams the value itself, one Snappy chunk at a time.

use std::ops::Range;

use crate::error::{Error, Result};

use super::{
    block::Block,
    builder::{BLOCK_TRAILER, Handle, SNAPPY, STRETCH, UNCOMPRESSED},
    coding::{masked, put_varint, take_size},
    database::Database,
    table::{MOST_EXPANSION, Table},
};

/// The number of stored bytes to keep buffered.
const READ: usize = 2 * STRETCH;
/// An upper bound on the stored size of a chunk. Snappy expands incompressible data by at most a sixth.
const LONGEST_STRETCH: usize = STRETCH + STRETCH / 4;

/// The location of a value in a table of the database.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct StoredValue {
    /// The number of the table.
    pub(super) table: u64,
    pub(super) block: Handle,
    /// The byte range of the value in the decompressed block.
    pub(super) place: Range<usize>,
}

impl Database {
    /// Calls `f` with consecutive parts of a value; parts may be empty.
    ///
    /// # Errors
    ///
    /// Returns the error of `f`, or an error if the table cannot be read or the block is damaged. A checksum that does
    /// not match is noticed only after the last part.
    pub(crate) fn read_long(
        &self,
        value: &StoredValue,
        mut f: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let table = self.tables.get(value.table)?;
        let mut block = BlockStream::new(&table, value.block)?;
        let mut at = 0;
        while let Some(part) = block.next_part()? {
            let within = |place: usize| place.clamp(at, at + part.len()) - at;
            f(&part[within(value.place.start)..within(value.place.end)])?;
            at += part.len();
        }
        Ok(())
    }
}

impl Table {
    /// Returns the beginning of the block at `handle` if the block has more than `longest` bytes and more than two
    /// chunks. Returns `None` for a shorter block.
    ///
    /// The last value of a long block is the only long one, because a block ends with the entry that makes it larger
    /// than [`BLOCK_SIZE`](super::BLOCK_SIZE).
    ///
    /// # Errors
    ///
    /// Returns an error if the block cannot be read or is malformed.
    pub(super) fn long_block(&self, handle: Handle, longest: usize) -> Result<Option<Block>> {
        let longest = longest.max(2 * STRETCH);
        if handle.size <= (longest / MOST_EXPANSION) as u64 {
            return Ok(None);
        }
        let mut block = BlockStream::new(self, handle)?;
        let len = block.left;
        if len <= longest {
            return Ok(None);
        }
        let part = block.next_part()?.unwrap_or_default().to_vec();
        Ok(Some(Block::of_first_part(
            part,
            len,
            handle.offset,
            &self.path,
        )))
    }
}

/// Decompresses a block chunk by chunk.
///
/// A compressed block consists of the length of the whole followed by independently compressed chunks of [`STRETCH`]
/// bytes.
struct BlockStream<'t> {
    table: &'t Table,
    handle: Handle,
    is_compressed: bool,
    /// The expected checksum, from the trailer.
    checksum: u32,
    /// The CRC32C of the bytes read so far.
    read_checksum: u32,
    /// The number of bytes read so far.
    read: u64,
    /// The buffered bytes of the file. Those from `at` on are not decompressed yet.
    stored: Vec<u8>,
    at: usize,
    /// The number of decompressed bytes that [`next_part`](BlockStream::next_part) has not returned yet.
    left: usize,
    /// The chunk that was returned last.
    part: Vec<u8>,
}

impl<'t> BlockStream<'t> {
    /// Reads the trailer of the block at `handle`, and its decompressed length.
    ///
    /// # Errors
    ///
    /// Returns an error if the block lies outside of the file, cannot be read, uses an unknown compression, or has an
    /// impossible length.
    fn new(table: &'t Table, handle: Handle) -> Result<BlockStream<'t>> {
        table.stored_len(handle)?;
        let mut trailer = [0; BLOCK_TRAILER];
        table.read_at(&mut trailer, handle.offset + handle.size)?;
        let [compression, checksum @ ..] = trailer;
        let mut block = BlockStream {
            table,
            handle,
            is_compressed: compression == SNAPPY,
            checksum: u32::from_le_bytes(checksum),
            read_checksum: 0,
            read: 0,
            stored: Vec::new(),
            at: 0,
            left: handle.size as usize,
            part: Vec::new(),
        };
        match compression {
            UNCOMPRESSED => {}
            SNAPPY => {
                block.fill()?;
                let mut rest = &block.stored[..];
                let len = take_size(&mut rest).filter(|len| {
                    // A length that Snappy cannot reach with this many stored bytes is damage, and must not cause an
                    // allocation.
                    (len / MOST_EXPANSION) as u64 <= handle.size
                });
                block.left = len.ok_or_else(|| block.damaged("a block cannot be decompressed"))?;
                block.at = block.stored.len() - rest.len();
            }
            _ => return Err(block.damaged("a block is compressed in an unknown way")),
        }
        Ok(block)
    }

    fn damaged(&self, problem: &'static str) -> Error {
        self.table.damaged(self.handle.offset, problem)
    }

    /// Drops the decompressed bytes from the buffer and reads more of the block.
    fn fill(&mut self) -> Result<()> {
        self.stored.drain(..self.at);
        self.at = 0;
        let held = self.stored.len();
        let some = (READ - held.min(READ)).min((self.handle.size - self.read) as usize);
        self.stored.resize(held + some, 0);
        let new = &mut self.stored[held..];
        self.table.read_at(new, self.handle.offset + self.read)?;
        self.read += some as u64;
        self.read_checksum = crc32c::crc32c_append(self.read_checksum, new);
        Ok(())
    }

    /// Returns the next chunk of the decompressed block, or `None` at its end.
    ///
    /// # Errors
    ///
    /// Returns an error if the block cannot be read or a chunk is malformed. A checksum that does not match is reported
    /// after the last chunk, in place of `None`.
    fn next_part(&mut self) -> Result<Option<&[u8]>> {
        if self.stored.len() - self.at < LONGEST_STRETCH {
            self.fill()?;
        }
        let len = self.left.min(STRETCH);
        if len == 0 {
            let kind = if self.is_compressed {
                SNAPPY
            } else {
                UNCOMPRESSED
            };
            let checksum = crc32c::crc32c_append(self.read_checksum, &[kind]);
            let is_whole = self.at == self.stored.len() && self.read == self.handle.size;
            if !is_whole || masked(checksum) != self.checksum {
                return Err(self.damaged("the checksum of a block does not match"));
            }
            return Ok(None);
        }
        let stored = &self.stored[self.at..];
        let unpacked = match self.is_compressed {
            true => unpack(stored, len, &mut self.part),
            false => stored.get(..len).map(|stored| {
                self.part.clear();
                self.part.extend_from_slice(stored);
                len
            }),
        };
        self.at += unpacked.ok_or_else(|| self.damaged("a block cannot be decompressed"))?;
        self.left -= len;
        Ok(Some(&self.part))
    }
}

/// Decompresses the first chunk of `stored`, which has `len` decompressed bytes, into `out`. Returns the number of
/// stored bytes that the chunk takes, or `None` if it is malformed.
fn unpack(stored: &[u8], len: usize, out: &mut Vec<u8>) -> Option<usize> {
    let taken = stored_len(stored, len)?;
    let mut whole = Vec::with_capacity(taken + 5);
    put_varint(&mut whole, len as u64);
    whole.extend_from_slice(&stored[..taken]);
    out.resize(len, 0);
    let written = snap::raw::Decoder::new().decompress(&whole, out).ok()?;
    (written == len).then_some(taken)
}

/// Returns the number of stored bytes that decompress to the first `len` bytes. Returns `None` if `stored` is too short
/// or an element crosses the boundary.
fn stored_len(stored: &[u8], len: usize) -> Option<usize> {
    let (mut taken, mut made) = (0, 0);
    while made < len {
        let tag = *stored.get(taken)?;
        let short = usize::from(tag >> 2);
        let (element, bytes) = match tag & 3 {
            // A literal: its length less one is in the tag if it is below 60, otherwise in the next one to four bytes.
            0 if short < 60 => (1 + short + 1, short + 1),
            0 => {
                let digits = stored.get(taken + 1..)?.get(..short - 59)?;
                let fold = |len: usize, digit: &u8| len << 8 | usize::from(*digit);
                let bytes = digits.iter().rev().fold(0, fold) + 1;
                (1 + digits.len() + bytes, bytes)
            }
            // A copy, with an offset of one, two or four bytes.
            1 => (2, 4 + (short & 7)),
            2 => (3, 1 + short),
            _ => (5, 1 + short),
        };
        taken += element;
        made += bytes;
    }
    (made == len && taken <= stored.len()).then_some(taken)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn stretches_are_unpacked_by_themselves(seed: u64, kinds in 1..200u64, len in 0..300_000usize) {
            let mut random = fastrand::Rng::with_seed(seed);
            // From bytes that are hard to compress to easy ones.
            let bytes: Vec<u8> = (0..len).map(|at| random.u64(..kinds) as u8 ^ (at % 7) as u8).collect();
            let stored = snap::raw::Encoder::new().compress_vec(&bytes).unwrap();
            let mut rest = &stored[..];
            prop_assert_eq!(take_size(&mut rest), Some(len));
            let mut part = Vec::new();
            for expected in bytes.chunks(STRETCH) {
                let taken = unpack(rest, expected.len(), &mut part).unwrap();
                prop_assert!(part == expected);
                rest = &rest[taken..];
            }
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn any_bytes_are_unpacked(bytes: Vec<u8>, len in 0..STRETCH) {
            let _ = unpack(&bytes, len, &mut Vec::new());
        }
    }
}

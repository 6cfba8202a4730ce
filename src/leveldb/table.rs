//! Reading tables: single keys with [`Table::get`], blocks for the cursors, and values that are too long to be held in
//! memory.
//!
//! A long value is the last value of its block. [`Table::long_block`] recognizes such a block and reads only its
//! beginning. [`Database::read_long`] streams the value itself, one Snappy chunk at a time.

use std::{
    fs::File,
    io,
    ops::Range,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock},
};

use super::{
    Damage,
    block::{Block, EntryState},
    builder::{BLOCK_TRAILER, FOOTER, Handle, MAGIC, SNAPPY, STRETCH, UNCOMPRESSED},
    coding::{masked, put_varint, take_size, take_varint},
    database::Database,
    files::{TableSource, open_regular},
    key::EntryKind,
    manifest::TableFile,
};
use crate::{
    error::{At, Error, Result},
    storage::positioned::read_exact_at,
    task,
};

/// An upper bound on the number of bytes into which one compressed byte can expand. A compressed block that claims a
/// larger size is damaged.
pub(super) const MOST_EXPANSION: usize = 64;

/// The greatest stored size in bytes of a block that is cached.
const MOST_KEPT: u64 = 1 << 14;

/// A cache of recently read blocks, with 16 slots that all tables of a database share. It speeds up lookups of
/// neighboring keys, which are often in the same block. If another thread holds the lock of a slot, the cache is
/// bypassed.
#[derive(Debug, Default)]
pub(super) struct LastBlocks([Mutex<Option<LastBlock>>; 16]);

/// A cached block and its location.
#[derive(Debug)]
struct LastBlock {
    /// The number of the table.
    table: u64,
    offset: u64,
    block: Arc<Block>,
}

/// A table of a LevelDB database, open for reading.
#[derive(Debug)]
pub(super) struct Table {
    /// The manifest's description of the table.
    pub known: TableFile,
    pub(super) path: Arc<Path>,
    source: TableSource,
    /// The index block, which maps keys to the handles of the data blocks; empty until it is read. It is set only by
    /// the thread that holds `sets_index`, so that nothing waits for a thread that a fork left behind in the parent
    /// process.
    index: OnceLock<Arc<Block>>,
    sets_index: Mutex<()>,
}

/// Opens the file of `table` in `directory`. Returns the path of the file and the file. If the current file name does
/// not exist, tries the name that old versions of LevelDB give to the table.
///
/// # Errors
///
/// Returns an error if the file cannot be opened, is not a regular file, or does not have the size that the manifest
/// lists.
pub(super) fn open(directory: &Path, table: &TableFile) -> Result<(PathBuf, File)> {
    let is_missing = |opened: &Result<File>| matches!(opened, Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound);
    let mut path = directory.join(TableFile::name(table.number));
    let mut file = open_regular(&path);
    if is_missing(&file) {
        let old = directory.join(TableFile::old_name(table.number));
        let opened = open_regular(&old);
        if !is_missing(&opened) {
            (path, file) = (old, opened);
        }
    }
    let file = file?;
    let size = file.metadata().at(&path, "read")?.len();
    if size != table.size {
        return Err(Error::damaged(
            &path,
            format!(
                "is damaged: it has {size} bytes instead of {}; make the index again",
                table.size
            ),
        ));
    }
    Ok((path, file))
}

impl Table {
    /// Creates a table. `known` is its description in the manifest, `path` is the path of its file, and `source` is the
    /// file, held open or opened for each read.
    pub(super) fn new(known: TableFile, path: PathBuf, source: TableSource) -> Table {
        Table {
            known,
            path: path.into(),
            source,
            index: OnceLock::new(),
            sets_index: Mutex::default(),
        }
    }

    /// Returns the newest entry of a key in the table: `Some(Some(value))` if it sets the value, or `Some(None)` if it
    /// deletes the key. Returns `None` if the table does not contain the key. `last` caches blocks between calls.
    ///
    /// # Errors
    ///
    /// Returns an error if the table cannot be read or a block is damaged.
    pub(super) fn get(&self, key: &[u8], last: &LastBlocks) -> Result<Option<Option<Vec<u8>>>> {
        let index = self.index()?;
        let Some(place) = index.find(key)? else {
            return Ok(None);
        };
        let block = self.kept(self.handle(&index, &place)?, last)?;
        let Some(place) = block.find(key)? else {
            return Ok(None);
        };
        match block.parts(&place)? {
            (found, _, EntryKind::Value) if found == key => {
                let value = match Arc::try_unwrap(block) {
                    Ok(block) => block.into_value(&place),
                    Err(kept) => kept.value(&place).unwrap_or_default().to_vec(),
                };
                Ok(Some(Some(value)))
            }
            (found, _, EntryKind::Deletion) if found == key => Ok(Some(None)),
            _ => Ok(None),
        }
    }

    /// Returns the block at `handle`, from the cache `last` if the cache contains it. Otherwise reads the block from
    /// the file, and adds it to the cache if it is small.
    fn kept(&self, handle: Handle, last: &LastBlocks) -> Result<Arc<Block>> {
        let places = last.0.len() as u64;
        let place = &last.0[(self.known.number % places) as usize];
        if let Some(kept) = task::try_lock(place)
            && let Some(last) = &*kept
            && (last.table, last.offset) == (self.known.number, handle.offset)
        {
            return Ok(Arc::clone(&last.block));
        }
        let block = Arc::new(self.block(handle)?);
        if handle.size <= MOST_KEPT
            && let Some(mut kept) = task::try_lock(place)
        {
            *kept = Some(LastBlock {
                table: self.known.number,
                offset: handle.offset,
                block: Arc::clone(&block),
            });
        }
        Ok(block)
    }

    /// Creates an error about the table's file. `problem` is a predicate, such as "is damaged".
    pub(super) fn problem(&self, problem: &str) -> Error {
        Error::damaged(&*self.path, problem)
    }

    /// Returns the index block of the table. The first call reads it from the file; threads that call this function at
    /// the same time may each read it.
    fn index(&self) -> Result<Arc<Block>> {
        if let Some(index) = self.index.get() {
            return Ok(Arc::clone(index));
        }
        let index = Arc::new(self.read_index()?);
        if let Some(_sets) = task::try_lock(&self.sets_index) {
            // `set` fails only if another thread has set the same index first.
            let _ = self.index.set(Arc::clone(&index));
        }
        Ok(index)
    }

    /// Reads the index block of the table from its file.
    pub(super) fn read_index(&self) -> Result<Block> {
        let [_, index] = self.footer()?;
        self.block(index)
    }

    /// Verifies the checksums of the table's metaindex and of the blocks that the metaindex lists, such as filters.
    ///
    /// # Errors
    ///
    /// Returns an error if a block cannot be read, its checksum does not match, or the metaindex is malformed.
    pub(super) fn check_metadata(&self) -> Result<()> {
        let [metaindex, _] = self.footer()?;
        let metaindex = self.block(metaindex)?;
        let mut place = EntryState::default();
        while metaindex.advance(&mut place)? {
            let handle = self.handle(&metaindex, &place)?;
            self.checked(&self.stored(handle)?, handle)?;
        }
        Ok(())
    }

    /// Reads the footer of the table. Returns the location of the metaindex, then the location of the index.
    ///
    /// # Errors
    ///
    /// Returns an error if the file is too short or the footer is malformed.
    fn footer(&self) -> Result<[Handle; 2]> {
        let start = self.known.size.checked_sub(FOOTER as u64);
        let start = start.ok_or_else(|| self.damaged(0, "it is too short for a table"))?;
        let mut footer = [0; FOOTER];
        self.read_at(&mut footer, start)?;
        let (handles, magic) = footer.split_at(FOOTER - MAGIC.len());
        if magic != MAGIC {
            return Err(self.damaged(start, "it does not end as a table does"));
        }
        let mut handles = handles;
        let mut handle = || {
            let handle = take_handle(&mut handles);
            handle.ok_or_else(|| self.damaged(start, "the footer is malformed"))
        };
        Ok([handle()?, handle()?])
    }

    /// Decodes the value of the index entry at `place` in `block`: the location of a data block.
    ///
    /// # Errors
    ///
    /// Returns an error if the value is malformed.
    pub(super) fn handle(&self, block: &Block, place: &EntryState) -> Result<Handle> {
        take_handle(&mut block.value(place).unwrap_or_default())
            .ok_or_else(|| self.damaged(self.known.size, "the place of a block is malformed"))
    }

    /// Reads the block at `handle`, verifies its checksum and decompresses it.
    ///
    /// # Errors
    ///
    /// Returns an error if the block cannot be read or is damaged.
    pub(super) fn block(&self, handle: Handle) -> Result<Block> {
        self.unpacked(&self.stored(handle)?, handle)
    }

    /// Reads the bytes of the block at `handle` as they are stored, including the compression byte and the checksum.
    fn stored(&self, handle: Handle) -> Result<Vec<u8>> {
        let mut stored = vec![0; self.stored_len(handle)?];
        self.read_at(&mut stored, handle.offset)?;
        Ok(stored)
    }

    /// Fills `bytes` with the bytes of the table's file from `offset` on.
    pub(super) fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<()> {
        self.source.with_file(&self.path, |file| {
            read_exact_at(file, bytes, offset).at(&self.path, "read")
        })
    }

    /// Returns the number of bytes that the block at `handle` takes in the file, including the compression byte and the
    /// checksum.
    ///
    /// # Errors
    ///
    /// Returns an error if the block does not lie within the file.
    pub(super) fn stored_len(&self, handle: Handle) -> Result<usize> {
        let outside = || self.damaged(handle.offset, "a block lies outside of the file");
        let len = handle.size.checked_add(BLOCK_TRAILER as u64);
        let len = len.ok_or_else(outside)?;
        let end = handle.offset.checked_add(len).ok_or_else(outside)?;
        if end > self.known.size {
            return Err(outside());
        }
        usize::try_from(len).map_err(|_| outside())
    }

    /// Verifies the checksum at the end of a stored block. Returns the block without the checksum; its last byte is the
    /// compression byte. `handle` is the location of the block.
    ///
    /// # Errors
    ///
    /// Returns an error if the checksum does not match.
    fn checked<'s>(&self, stored: &'s [u8], handle: Handle) -> Result<&'s [u8]> {
        let (stored, checksum) = stored.split_at(stored.len() - size_of::<u32>());
        if masked(crc32c::crc32c(stored)).to_le_bytes() != checksum[..] {
            return Err(self.damaged(handle.offset, "the checksum of a block does not match"));
        }
        Ok(stored)
    }

    /// Verifies the checksum of a stored block and decompresses the block. `handle` is the location of the block.
    fn unpacked(&self, stored: &[u8], handle: Handle) -> Result<Block> {
        let damaged = |problem| self.damaged(handle.offset, problem);
        let stored = self.checked(stored, handle)?;
        let (compression, stored) = stored.split_last().expect("a block has a trailer");
        let bytes = match *compression {
            UNCOMPRESSED => stored.to_vec(),
            SNAPPY => {
                decompress(stored).ok_or_else(|| damaged("a block cannot be decompressed"))?
            }
            _ => return Err(damaged("a block is compressed in an unknown way")),
        };
        Block::new(bytes, handle.offset, &self.path)
    }

    /// Creates the error that the table's file is damaged at byte `offset`. `problem` describes the damage.
    pub(super) fn damaged(&self, offset: u64, problem: &'static str) -> Error {
        Damage { offset, problem }.of(&self.path)
    }
}

/// Decodes the location of a block at the front of `rest` and removes it from `rest`. Returns `None` if it is
/// malformed.
fn take_handle(rest: &mut &[u8]) -> Option<Handle> {
    Some(Handle {
        offset: take_varint(rest)?,
        size: take_varint(rest)?,
    })
}

/// Decompresses data in Snappy's format. Returns `None` if `stored` is malformed or claims a length that Snappy cannot
/// reach.
fn decompress(stored: &[u8]) -> Option<Vec<u8>> {
    let len = snap::raw::decompress_len(stored).ok()?;
    if len / MOST_EXPANSION > stored.len() {
        return None;
    }
    snap::raw::Decoder::new().decompress_vec(stored).ok()
}

/// The number of stored bytes that a [`BlockStream`] buffers.
const READ: usize = 2 * STRETCH;
/// An upper bound on the stored size in bytes of a Snappy chunk. Snappy expands incompressible data by at most a sixth.
const LONGEST_STRETCH: usize = STRETCH + STRETCH / 4;

/// The location in a database of a value that is too long to be held in memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct StoredValue {
    /// The number of the table.
    pub(super) table: u64,
    pub(super) block: Handle,
    /// The byte range of the value in the decompressed block.
    pub(super) place: Range<usize>,
}

impl Database {
    /// Streams a long value: calls `f` with its parts from first to last. A part may be empty.
    ///
    /// # Errors
    ///
    /// Returns an error if `f` fails, if the table cannot be read, or if the block of the value is damaged. A checksum
    /// that does not match is detected only after the last part.
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
    /// Reads only the beginning of the block at `handle`, if the decompressed block has more than `longest` bytes and
    /// more than two Snappy chunks. Returns `None` if the block is shorter.
    ///
    /// Only the last value of a block can be long, because a block ends with the entry that makes it larger than
    /// [`BLOCK_SIZE`](super::BLOCK_SIZE).
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

/// A reader that decompresses a large block one chunk at a time.
///
/// A compressed block consists of its decompressed length and of independently compressed chunks of [`STRETCH`] bytes.
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
    /// Begins to read the block at `handle`: reads its compression, its checksum and its decompressed length.
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

    /// Removes the bytes that are already decompressed from the buffer, and reads more bytes of the block from the
    /// file.
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

    /// Returns the next decompressed chunk, or `None` after the last one.
    ///
    /// # Errors
    ///
    /// Returns an error if the block cannot be read or a chunk is malformed. If the checksum of the block does not
    /// match, the call after the last chunk returns an error instead of `None`.
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

/// Decompresses the chunk at the front of `stored` into `out`. `len` is the decompressed length of the chunk. Returns
/// the compressed length of the chunk in bytes, or `None` if it is malformed.
fn unpack(stored: &[u8], len: usize, out: &mut Vec<u8>) -> Option<usize> {
    let taken = stored_len(stored, len)?;
    let mut whole = Vec::with_capacity(taken + 5);
    put_varint(&mut whole, len as u64);
    whole.extend_from_slice(&stored[..taken]);
    out.resize(len, 0);
    let written = snap::raw::Decoder::new().decompress(&whole, out).ok()?;
    (written == len).then_some(taken)
}

/// Returns the number of compressed bytes, from the front of `stored`, that decompress to exactly `len` bytes. Returns
/// `None` if `stored` is too short or no element of the compressed data ends there.
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

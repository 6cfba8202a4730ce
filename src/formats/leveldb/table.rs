//! Reads and writes the tables of a LevelDB database, which are files of sorted entries.
//!
//! A [`TableBuilder`] writes a table. A [`Table`] looks up single keys ([`Table::get`]), and reads blocks for cursors.
//! A value that is too long to be held in memory is the last value of its block. [`Table::long_block`] recognizes such
//! a block and reads only its beginning. [`Table::read_long`] streams the value, one Snappy chunk at a time.

use std::{
    io::{self, Write},
    ops::Range,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock},
};

use integer_encoding::VarInt;
use snap::raw::{Encoder, max_compress_len};

use super::{
    Damage,
    block::{Block, BlockBuilder, EntryState},
    coding::{masked, put_varint, take_size, take_varint},
    files::{TableFile, TableSource},
    key::{self, EntryKind},
};
use crate::{
    error::{At, Error, Result},
    storage::positioned::read_exact_at,
    task,
};

/// The size in bytes above which a block counts as full, before compression. The builder writes a full block
/// before it adds the next entry.
pub(crate) const BLOCK_SIZE: usize = 4 << 10;

/// The magic number at the end of every table.
pub(super) const MAGIC: [u8; 8] = 0xdb47_7524_8b80_fb57_u64.to_le_bytes();

/// The size in bytes of a table's footer. The footer consists of two block handles, which are the encoded locations of
/// blocks, and [`MAGIC`]. The handles are padded to their maximum total length of 40 bytes.
pub(super) const FOOTER_SIZE: usize = 40 + MAGIC.len();

/// The size in bytes of the trailer of each block: one byte for the compression and four for the checksum.
pub(super) const BLOCK_TRAILER_SIZE: usize = 5;

/// The compression byte of a block that is stored without compression.
pub(super) const UNCOMPRESSED: u8 = 0;
/// The compression byte of a block that is compressed with Snappy.
pub(super) const SNAPPY: u8 = 1;

/// The location of a block in a table's file.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Handle {
    pub offset: u64,
    /// The stored size of the block in bytes, without the trailer.
    pub size: u64,
}

impl Handle {
    /// Appends the handle to `out`, encoded as two varints: the offset and the size of the block.
    fn put(self, out: &mut Vec<u8>) {
        put_varint(out, self.offset);
        put_varint(out, self.size);
    }
}

/// A writer of a LevelDB table. Entries must be added in ascending order of keys, and get the sequence numbers 1, 2, 3
/// and so on.
pub(crate) struct TableBuilder<W> {
    file: BlockWriter<W>,
    block: BlockBuilder,
    index: BlockBuilder,
    /// The last key and the location of the block that was written last. The index entry of this block is added when
    /// the next key is known, because the key in the index must separate the two keys.
    written: Option<(Vec<u8>, Handle)>,
    first_key: Vec<u8>,
    /// The number of entries added so far.
    entries: u64,
}

impl<W: Write> TableBuilder<W> {
    /// Creates a builder that writes a table to `out`.
    pub(crate) fn new(out: W) -> TableBuilder<W> {
        TableBuilder {
            file: BlockWriter::new(out),
            block: BlockBuilder::new(),
            index: BlockBuilder::new(),
            written: None,
            first_key: Vec::new(),
            entries: 0,
        }
    }

    /// Adds an entry to the table. `key` must be greater than all keys added before.
    ///
    /// # Errors
    ///
    /// Returns an error if the current block is full and cannot be written.
    pub(crate) fn add(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        self.begin_entry(key, value.len())?;
        self.block.value().extend_from_slice(value);
        Ok(())
    }

    /// Adds an entry with a value of `len` bytes that is too long to be held in memory. `len` must be greater than
    /// [`BLOCK_SIZE`], and `key` must be greater than all keys added before.
    ///
    /// `put_value` is called with a function, and must pass all bytes of the value to this function in one or more
    /// calls.
    ///
    /// # Errors
    ///
    /// Returns an error if writing fails, if `put_value` fails, if `put_value` passes more or fewer than `len` bytes,
    /// or if the block has 4 GiB or more.
    pub(crate) fn add_long(
        &mut self,
        key: &[u8],
        len: usize,
        put_value: impl FnOnce(&mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.begin_entry(key, len)?;
        // The block is now larger than `BLOCK_SIZE`, so it ends here in any case.
        let (entries, restarts) = (self.block.entries(), self.block.restarts());
        self.file.begin(entries.len() + len + restarts.len())?;
        self.file.put(entries)?;
        put_value(&mut |part| self.file.put(part))?;
        self.file.put(&restarts)?;
        let handle = self.file.finish()?;
        self.end_block(handle);
        Ok(())
    }

    /// Begins an entry: appends its key and the length of its value to the current block. If the block is full, first
    /// writes it and begins a new one.
    fn begin_entry(&mut self, key: &[u8], value_len: usize) -> io::Result<()> {
        if self.entries == 0 {
            self.first_key.extend_from_slice(key);
        }
        self.entries += 1;
        if self.block.size() > BLOCK_SIZE {
            self.write_block()?;
        }
        if let Some((last, handle)) = self.written.take() {
            self.index_block(&key::separator(&last, key), handle);
        }
        self.block
            .add_key(key, &key::trailer(self.entries), value_len);
        Ok(())
    }

    fn write_block(&mut self) -> io::Result<()> {
        let handle = self.file.write_block(self.block.finish())?;
        self.end_block(handle);
        Ok(())
    }

    /// Ends the block that was written at `handle`, and clears the buffer for the next block. Stores the last key and
    /// the location of the block until the entry for this block is added to the table's index.
    fn end_block(&mut self, handle: Handle) {
        self.written = Some((self.block.last_key().to_vec(), handle));
        self.block.clear();
    }

    /// Adds an entry for the block at `handle` to the table's index, which lists all blocks. `separator` is the key of
    /// this entry, an internal key that is greater than or equal to all keys of the block.
    fn index_block(&mut self, separator: &[u8], handle: Handle) {
        let mut place = Vec::new();
        handle.put(&mut place);
        self.index.add_key(separator, &[], place.len());
        self.index.value().extend_from_slice(&place);
    }

    /// Writes the last block, the index and the footer. Returns a description of the table for the manifest, with the
    /// file number `number`.
    ///
    /// # Errors
    ///
    /// Returns an error if writing fails.
    pub(crate) fn finish(mut self, number: u64) -> io::Result<TableFile> {
        if !self.block.is_empty() {
            self.write_block()?;
        }
        let mut last_key = Vec::new();
        if let Some((last, handle)) = self.written.take() {
            last_key.extend_from_slice(&last[..last.len() - key::TRAILER_LENGTH]);
            self.index_block(&key::separator_at_end(&last), handle);
        }
        // The metaindex is an empty block, because the table has no filters. LevelDB reads filters only if a program
        // configures them.
        let mut footer = Vec::with_capacity(FOOTER_SIZE);
        self.file.write_block(self.block.finish())?.put(&mut footer);
        self.file.write_block(self.index.finish())?.put(&mut footer);
        footer.resize(FOOTER_SIZE - MAGIC.len(), 0);
        footer.extend_from_slice(&MAGIC);
        self.file.out.write_all(&footer)?;
        self.file.out.flush()?;
        Ok(TableFile {
            number,
            size: self.file.offset + FOOTER_SIZE as u64,
            first_key: self.first_key,
            last_key,
            first_sequence: 1,
            last_sequence: self.entries,
        })
    }
}

/// A writer that compresses blocks with Snappy, and appends the compression byte and the checksum to each block. The
/// bytes of a block may be passed in several calls, so a large block need not be held in memory.
///
/// Snappy's format consists of the length of the input and chunks of [`SNAPPY_CHUNK_SIZE`] bytes that are compressed
/// independently. Compressing one chunk at a time therefore produces the same bytes as compressing the whole block.
struct BlockWriter<W> {
    out: W,
    /// The number of bytes written to `out`.
    offset: u64,
    encoder: Encoder,
    compressed: Vec<u8>,
    /// The offset at which the current block begins.
    start: u64,
    /// The CRC32C of the current block's stored bytes so far.
    checksum: u32,
    /// The bytes of the current chunk, which are not compressed yet.
    chunk: Vec<u8>,
    /// The number of bytes of the current block that [`put`](BlockWriter::put) has not received yet.
    missing: usize,
}

/// The size in bytes of a chunk before compression. Snappy compresses chunks independently of each other.
pub(super) const SNAPPY_CHUNK_SIZE: usize = 1 << 16;

impl<W: Write> BlockWriter<W> {
    fn new(out: W) -> BlockWriter<W> {
        BlockWriter {
            out,
            offset: 0,
            encoder: Encoder::new(),
            compressed: Vec::new(),
            start: 0,
            checksum: 0,
            chunk: Vec::new(),
            missing: 0,
        }
    }

    /// Compresses a whole block, writes it with its trailer, and returns its location.
    fn write_block(&mut self, block: &[u8]) -> io::Result<Handle> {
        self.begin(block.len())?;
        self.put(block)?;
        self.finish()
    }

    /// Begins a block. `len` is the size of the block in bytes before compression.
    ///
    /// # Errors
    ///
    /// Returns an error if `len` does not fit into 32 bits, or if writing fails.
    fn begin(&mut self, len: usize) -> io::Result<()> {
        if u32::try_from(len).is_err() {
            return Err(io::Error::other("an entry is larger than 4 GiB"));
        }
        (self.start, self.checksum, self.missing) = (self.offset, 0, len);
        let mut header = Vec::new();
        put_varint(&mut header, len as u64);
        self.write(&header)
    }

    /// Appends `bytes` to the current block. Compresses and writes each chunk as soon as it is complete.
    ///
    /// # Errors
    ///
    /// Returns an error if the block becomes longer than the length passed to [`begin`](BlockWriter::begin), or if
    /// writing fails.
    fn put(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let missing = self.missing.checked_sub(bytes.len());
        self.missing = missing.ok_or_else(|| io::Error::other("a value is longer than it was"))?;
        while !bytes.is_empty() {
            let room = SNAPPY_CHUNK_SIZE - self.chunk.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.chunk.extend_from_slice(now);
            bytes = later;
            if self.chunk.len() == SNAPPY_CHUNK_SIZE {
                self.write_chunk()?;
            }
        }
        Ok(())
    }

    /// Compresses and writes the current Snappy chunk.
    fn write_chunk(&mut self) -> io::Result<()> {
        let mut compressed = std::mem::take(&mut self.compressed);
        let room = max_compress_len(self.chunk.len());
        compressed.resize(room.max(compressed.len()), 0);
        let len = self.encoder.compress(&self.chunk, &mut compressed)?;
        let header = self.chunk.len().required_space();
        self.chunk.clear();
        self.write(&compressed[header..len])?;
        self.compressed = compressed;
        Ok(())
    }

    /// Writes `bytes` to the output, and updates the checksum of the current block.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.checksum = crc32c::crc32c_append(self.checksum, bytes);
        self.offset += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    /// Ends the current block: writes its last chunk and its trailer. Returns the location of the block.
    ///
    /// # Errors
    ///
    /// Returns an error if the block is shorter than the length passed to [`begin`](BlockWriter::begin), or if writing
    /// fails.
    fn finish(&mut self) -> io::Result<Handle> {
        if self.missing > 0 {
            return Err(io::Error::other("a value is shorter than it was"));
        }
        self.write_chunk()?;
        let (offset, size) = (self.start, self.offset - self.start);
        self.write(&[SNAPPY])?;
        let checksum = masked(self.checksum).to_le_bytes();
        self.write(&checksum)?;
        Ok(Handle { offset, size })
    }
}

/// An upper bound on the ratio of a block's decompressed size to its compressed size. A block that states a
/// greater decompressed size is damaged.
pub(super) const MAX_EXPANSION: usize = 64;

/// The maximum size in bytes, after compression, of a block that is kept in the cache. Larger blocks are read from the
/// file each time, which limits the memory of the cache.
const MAX_CACHED_SIZE: u64 = 1 << 14;

/// A cache of up to 16 recently read blocks, which all tables of a database share. The cache speeds up lookups of
/// neighboring keys, which are often in the same block. If another thread is using a slot, a thread does not wait for
/// it, but reads the block from the file.
#[derive(Debug, Default)]
pub(super) struct BlockCache([Mutex<Option<CachedBlock>>; 16]);

/// A cached block and its location in the database.
#[derive(Debug)]
struct CachedBlock {
    /// The number of the table.
    table: u64,
    offset: u64,
    block: Arc<Block>,
}

/// A table of a LevelDB database, open for reading.
#[derive(Debug)]
pub(super) struct Table {
    /// The description of the table in the manifest.
    pub file: TableFile,
    pub(super) path: Arc<Path>,
    source: TableSource,
    /// The index block, which maps keys to the locations of the data blocks. The cell is empty until the block is read,
    /// and is set only by the thread that holds `sets_index`. Therefore no thread waits for another thread, which would
    /// never finish if a fork left it behind in the parent process.
    index: OnceLock<Arc<Block>>,
    sets_index: Mutex<()>,
}

impl Table {
    /// Creates a reader of a table. `file` is the description of the table in the manifest, and `path` is the path of
    /// its file. `source` tells whether the file is kept open or opened for each read.
    pub(super) fn new(file: TableFile, path: PathBuf, source: TableSource) -> Table {
        Table {
            file,
            path: path.into(),
            source,
            index: OnceLock::new(),
            sets_index: Mutex::default(),
        }
    }

    /// Returns the newest entry of `key` in the table: `Some(Some(value))` if it sets the value, or `Some(None)` if it
    /// deletes the key. Returns `None` if the table does not contain the key. `cache` contains recently read blocks.
    ///
    /// # Errors
    ///
    /// Returns an error if the table cannot be read or a block is damaged.
    pub(super) fn get(&self, key: &[u8], cache: &BlockCache) -> Result<Option<Option<Vec<u8>>>> {
        let index = self.index()?;
        let Some(entry) = index.find(key)? else {
            return Ok(None);
        };
        let block = self.cached_block(self.handle(&index, &entry)?, cache)?;
        let Some(entry) = block.find(key)? else {
            return Ok(None);
        };
        match block.parts(&entry)? {
            (found, _, EntryKind::Value) if found == key => {
                let value = match Arc::try_unwrap(block) {
                    Ok(block) => block.into_value(&entry),
                    Err(kept) => kept.value(&entry).unwrap_or_default().to_vec(),
                };
                Ok(Some(Some(value)))
            }
            (found, _, EntryKind::Deletion) if found == key => Ok(Some(None)),
            _ => Ok(None),
        }
    }

    /// Returns the block at `handle`, from `cache` if possible. Otherwise, reads the block from the file, and adds it
    /// to the cache if it is small.
    fn cached_block(&self, handle: Handle, cache: &BlockCache) -> Result<Arc<Block>> {
        let slots = cache.0.len() as u64;
        let slot = &cache.0[(self.file.number % slots) as usize];
        if let Some(kept) = task::try_lock(slot)
            && let Some(found) = &*kept
            && (found.table, found.offset) == (self.file.number, handle.offset)
        {
            return Ok(Arc::clone(&found.block));
        }
        let block = Arc::new(self.block(handle)?);
        if handle.size <= MAX_CACHED_SIZE
            && let Some(mut kept) = task::try_lock(slot)
        {
            *kept = Some(CachedBlock {
                table: self.file.number,
                offset: handle.offset,
                block: Arc::clone(&block),
            });
        }
        Ok(block)
    }

    /// Creates an error about the table's file. `problem` is a phrase such as "is damaged".
    pub(super) fn problem(&self, problem: &str) -> Error {
        Error::damaged(&*self.path, problem)
    }

    /// Returns the index block of the table. The first call reads the block from the file; several threads may do so
    /// at the same time.
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

    /// Verifies the checksums of blocks that lookups do not read: the metaindex of the table, and the blocks that the
    /// metaindex lists, such as filters.
    ///
    /// # Errors
    ///
    /// Returns an error if a block cannot be read, its checksum does not match, or the metaindex is malformed.
    pub(super) fn check_metadata(&self) -> Result<()> {
        let [metaindex, _] = self.footer()?;
        let metaindex = self.block(metaindex)?;
        let mut entry = EntryState::default();
        while metaindex.advance(&mut entry)? {
            let handle = self.handle(&metaindex, &entry)?;
            self.checked(&self.stored(handle)?, handle)?;
        }
        Ok(())
    }

    /// Reads the footer of the table. Returns the locations of the metaindex and of the index, in this order.
    ///
    /// # Errors
    ///
    /// Returns an error if the file is too short or the footer is malformed.
    fn footer(&self) -> Result<[Handle; 2]> {
        let start = self.file.size.checked_sub(FOOTER_SIZE as u64);
        let start = start.ok_or_else(|| self.damaged(0, "the file is too short for a table"))?;
        let mut footer = [0; FOOTER_SIZE];
        self.read_at(&mut footer, start)?;
        let (handles, magic) = footer.split_at(FOOTER_SIZE - MAGIC.len());
        if magic != MAGIC {
            return Err(self.damaged(start, "the end of the file is not the end of a table"));
        }
        let mut handles = handles;
        let mut handle = || {
            let handle = take_handle(&mut handles);
            handle.ok_or_else(|| self.damaged(start, "the footer is malformed"))
        };
        Ok([handle()?, handle()?])
    }

    /// Decodes the location of a block, which the index and the metaindex of a table store as the value of an entry.
    /// `block` is the index or the metaindex, and `place` is the cursor position of the entry.
    ///
    /// # Errors
    ///
    /// Returns an error if the value is malformed.
    pub(super) fn handle(&self, block: &Block, place: &EntryState) -> Result<Handle> {
        take_handle(&mut block.value(place).unwrap_or_default())
            .ok_or_else(|| self.damaged(self.file.size, "the offset of a block is malformed"))
    }

    /// Reads the block at `handle`, verifies its checksum and decompresses it.
    ///
    /// # Errors
    ///
    /// Returns an error if the block cannot be read or is damaged.
    pub(super) fn block(&self, handle: Handle) -> Result<Block> {
        self.unpacked(&self.stored(handle)?, handle)
    }

    /// Reads the block at `handle` without decompressing it. The result includes the compression byte and the
    /// checksum.
    fn stored(&self, handle: Handle) -> Result<Vec<u8>> {
        let mut stored = vec![0; self.stored_len(handle)?];
        self.read_at(&mut stored, handle.offset)?;
        Ok(stored)
    }

    /// Fills `bytes` with bytes of the table's file, beginning at `offset`.
    pub(super) fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<()> {
        self.source.with_file(&self.path, |file| {
            read_exact_at(file, bytes, offset).at(&self.path, "read")
        })
    }

    /// Returns the size in bytes that the block at `handle` takes in the file, including the compression byte and the
    /// checksum.
    ///
    /// # Errors
    ///
    /// Returns an error if the block does not lie within the file.
    pub(super) fn stored_len(&self, handle: Handle) -> Result<usize> {
        let outside = || self.damaged(handle.offset, "a block lies outside of the file");
        let len = handle.size.checked_add(BLOCK_TRAILER_SIZE as u64);
        let len = len.ok_or_else(outside)?;
        let end = handle.offset.checked_add(len).ok_or_else(outside)?;
        if end > self.file.size {
            return Err(outside());
        }
        usize::try_from(len).map_err(|_| outside())
    }

    /// Verifies the checksum at the end of `stored`, a block as it is stored in the file, and returns the block
    /// without the checksum. The last byte of the result is the compression byte. `handle` is the location of the
    /// block.
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

    /// Verifies the checksum of `stored`, a block as it is stored in the file, and decompresses the block. `handle`
    /// is the location of the block.
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

    /// Creates the error for damage at the byte offset `offset` of the table's file. `problem` describes the damage.
    pub(super) fn damaged(&self, offset: u64, problem: &'static str) -> Error {
        Damage { offset, problem }.into_error(&self.path)
    }
}

/// Decodes the location of a block from the front of `rest`, and advances `rest` past this location. Returns `None` if
/// the location is malformed.
fn take_handle(rest: &mut &[u8]) -> Option<Handle> {
    Some(Handle {
        offset: take_varint(rest)?,
        size: take_varint(rest)?,
    })
}

/// Decompresses data in Snappy's format. Returns `None` if `stored` is malformed, or if it states an impossibly large
/// decompressed length.
fn decompress(stored: &[u8]) -> Option<Vec<u8>> {
    let len = snap::raw::decompress_len(stored).ok()?;
    if len / MAX_EXPANSION > stored.len() {
        return None;
    }
    snap::raw::Decoder::new().decompress_vec(stored).ok()
}

/// The maximum number of bytes that a [`BlockStream`] buffers from the file.
const MAX_BUFFERED_BYTES: usize = 2 * SNAPPY_CHUNK_SIZE;
/// An upper bound on the size in bytes to which Snappy compresses a chunk of [`SNAPPY_CHUNK_SIZE`] bytes.
/// Incompressible data becomes up to a sixth longer; the bound allows a quarter.
const MAX_STORED_CHUNK_SIZE: usize = SNAPPY_CHUNK_SIZE + SNAPPY_CHUNK_SIZE / 4;

/// The location in a database of a value that is too long to be held in memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct StoredValue {
    /// The number of the table.
    pub(super) table: u64,
    pub(super) block: Handle,
    /// The byte range of the value in the decompressed block.
    pub(super) range: Range<usize>,
}

impl Table {
    /// Reads a long value in parts, and calls `f` with each part, from first to last. A part may be empty. `block` is
    /// the location of the block that contains the value, and `range` is the byte range of the value in the
    /// decompressed block.
    ///
    /// # Errors
    ///
    /// Returns an error if `f` fails, if the table cannot be read, or if the block of the value is damaged. A wrong
    /// checksum is detected only after the last part.
    pub(super) fn read_long(
        &self,
        block: Handle,
        range: &Range<usize>,
        mut f: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut block = BlockStream::new(self, block)?;
        let mut offset = 0;
        while let Some(part) = block.next_part()? {
            let within = |end: usize| end.clamp(offset, offset + part.len()) - offset;
            f(&part[within(range.start)..within(range.end)])?;
            offset += part.len();
        }
        Ok(())
    }

    /// Reads the beginning of the large block at `handle`: everything before the block's last value. Returns `None` if
    /// the decompressed block has at most `longest` bytes or at most 128 KiB. Such a block should be read as a whole.
    ///
    /// Only the last value of a block can be long, because a block ends as soon as it is larger than
    /// [`BLOCK_SIZE`](super::BLOCK_SIZE).
    ///
    /// # Errors
    ///
    /// Returns an error if the block cannot be read or is malformed.
    pub(super) fn long_block(&self, handle: Handle, longest: usize) -> Result<Option<Block>> {
        let longest = longest.max(2 * SNAPPY_CHUNK_SIZE);
        if handle.size <= (longest / MAX_EXPANSION) as u64 {
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
/// A compressed block consists of its decompressed length and of chunks that are compressed independently. A
/// chunk has [`SNAPPY_CHUNK_SIZE`] bytes before compression, except the last one.
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
    /// The buffered bytes of the file. The bytes from `at` on are not decompressed yet.
    stored: Vec<u8>,
    at: usize,
    /// The number of decompressed bytes that [`next_part`](BlockStream::next_part) has not returned yet.
    left: usize,
    /// The chunk that was returned last.
    part: Vec<u8>,
}

impl<'t> BlockStream<'t> {
    /// Creates a reader of the block at `handle`. Reads the compression, the checksum and the decompressed length of
    /// the block.
    ///
    /// # Errors
    ///
    /// Returns an error if the block lies outside of the file, cannot be read, uses an unknown compression, or has an
    /// impossible length.
    fn new(table: &'t Table, handle: Handle) -> Result<BlockStream<'t>> {
        table.stored_len(handle)?;
        let mut trailer = [0; BLOCK_TRAILER_SIZE];
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
                    // A length that is too great for this number of stored bytes is damaged, and must not cause an
                    // allocation.
                    (len / MAX_EXPANSION) as u64 <= handle.size
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

    /// Refills the buffer: removes the bytes that are already decompressed, and reads more bytes of the block from
    /// the file.
    fn fill(&mut self) -> Result<()> {
        self.stored.drain(..self.at);
        self.at = 0;
        let held = self.stored.len();
        let some = (MAX_BUFFERED_BYTES - held.min(MAX_BUFFERED_BYTES))
            .min((self.handle.size - self.read) as usize);
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
    /// Returns an error if the block cannot be read, if a chunk is malformed, or, after the last chunk, if the
    /// checksum of the block does not match.
    fn next_part(&mut self) -> Result<Option<&[u8]>> {
        if self.stored.len() - self.at < MAX_STORED_CHUNK_SIZE {
            self.fill()?;
        }
        let len = self.left.min(SNAPPY_CHUNK_SIZE);
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
        let unpacked = if self.is_compressed {
            unpack(stored, len, &mut self.part)
        } else {
            stored.get(..len).map(|stored| {
                self.part.clear();
                self.part.extend_from_slice(stored);
                len
            })
        };
        self.at += unpacked.ok_or_else(|| self.damaged("a block cannot be decompressed"))?;
        self.left -= len;
        Ok(Some(&self.part))
    }
}

/// Decompresses the chunk at the front of `stored` into `out`. `len` is the length in bytes of the decompressed chunk.
/// Returns the number of bytes of `stored` that belong to the chunk, or `None` if the chunk is malformed.
fn unpack(stored: &[u8], len: usize, out: &mut Vec<u8>) -> Option<usize> {
    let taken = stored_len(stored, len)?;
    let mut whole = Vec::with_capacity(taken + 5);
    put_varint(&mut whole, len as u64);
    whole.extend_from_slice(&stored[..taken]);
    out.resize(len, 0);
    let written = snap::raw::Decoder::new().decompress(&whole, out).ok()?;
    (written == len).then_some(taken)
}

/// Returns the number of bytes at the front of `stored` that decompress to exactly `len` bytes. Returns `None` if
/// `stored` is too short, or if no literal or copy of the compressed data ends after `len` decompressed bytes.
fn stored_len(stored: &[u8], len: usize) -> Option<usize> {
    let (mut taken, mut decompressed) = (0, 0);
    while decompressed < len {
        let tag = *stored.get(taken)?;
        let short = usize::from(tag >> 2);
        let (element, bytes) = match tag & 3 {
            // A literal. Its length minus 1 is in the tag if it is below 60, otherwise in the next one to four bytes.
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
        decompressed += bytes;
    }
    (decompressed == len && taken <= stored.len()).then_some(taken)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        super::{database::TableCursor, files::OpenPermit},
        *,
    };
    use crate::storage::positioned::write_all_at;

    /// A block can be passed in parts of any size: its bytes are the same, and only one chunk of it is in memory.
    #[test]
    fn a_block_in_parts_is_never_in_memory_as_a_whole() {
        let parts = [
            vec![1; 20],
            vec![2; 5 * SNAPPY_CHUNK_SIZE],
            vec![3; SNAPPY_CHUNK_SIZE - 20],
            vec![4],
        ];
        let mut writer = BlockWriter::new(Vec::new());
        writer.begin(parts.iter().map(Vec::len).sum()).unwrap();
        for part in &parts {
            writer.put(part).unwrap();
            assert!(
                writer.chunk.len() < SNAPPY_CHUNK_SIZE,
                "{}",
                writer.chunk.len()
            );
        }
        writer.finish().unwrap();
        let mut whole = BlockWriter::new(Vec::new());
        whole.write_block(&parts.concat()).unwrap();
        assert!(writer.out == whole.out);
    }

    /// Opens a table that consists of `bytes`, with entries from the key `a` to the key `c`.
    fn table_of(bytes: &[u8]) -> Arc<Table> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        let permit = OpenPermit::acquire(usize::MAX).unwrap();
        let description = TableFile {
            number: 1000,
            size: bytes.len() as u64,
            first_key: b"a".to_vec(),
            last_key: b"c".to_vec(),
            first_sequence: 1,
            last_sequence: 1,
        };
        let source = TableSource::Open(file, permit);
        Arc::new(Table::new(description, "x.ldb".into(), source))
    }

    #[test]
    fn a_long_block_ends_after_its_last_chunk() {
        let value = vec![b'x'; 4 * SNAPPY_CHUNK_SIZE];
        for extra in [0, 1, 2 * MAX_BUFFERED_BYTES] {
            let mut writer = BlockWriter::new(Vec::new());
            writer.begin(value.len()).unwrap();
            writer.put(&value).unwrap();
            // The checksum includes the bytes after the last chunk.
            writer.write(&vec![0; extra]).unwrap();
            let handle = writer.finish().unwrap();
            let mut read = 0;
            let add = |part: &[u8]| {
                read += part.len();
                Ok(())
            };
            let result = table_of(&writer.out).read_long(handle, &(0..value.len()), add);
            assert_eq!(result.is_ok(), extra == 0, "{extra}");
            assert_eq!(read, value.len());
        }
    }

    /// Opens a table that contains `blocks`. Each entry of a block is given by its key and its sequence number. Each
    /// element of `index` is an entry of the table's index: an internal key, and the number of a block in `blocks`.
    fn table_with(blocks: &[&[(&str, u64)]], index: &[(Vec<u8>, usize)]) -> Arc<Table> {
        let mut writer = BlockWriter::new(Vec::new());
        let handles = blocks.iter().map(|entries| {
            let mut block = BlockBuilder::new();
            for (key, sequence) in *entries {
                block.add_key(key.as_bytes(), &key::trailer(*sequence), 0);
            }
            writer.write_block(block.finish()).unwrap()
        });
        let handles: Vec<Handle> = handles.collect();
        let mut block = BlockBuilder::new();
        for (separator, number) in index {
            let mut place = Vec::new();
            handles[*number].put(&mut place);
            block.add_key(separator, &[], place.len());
            block.value().extend_from_slice(&place);
        }
        let mut footer = vec![0; 2];
        let index = writer.write_block(block.finish()).unwrap();
        index.put(&mut footer);
        footer.resize(FOOTER_SIZE - MAGIC.len(), 0);
        table_of(&[&writer.out[..], &footer, &MAGIC].concat())
    }

    /// Reads all entries of a table, and returns their number.
    fn read_all(table: Arc<Table>) -> Result<usize> {
        let mut cursor = TableCursor::new(table, usize::MAX)?;
        let mut entries = 0;
        while cursor.advance()? {
            entries += 1;
        }
        Ok(entries)
    }

    /// Reads all entries of a table. Checks that the reader finds the number `entries` if `problem` is `None`, and
    /// otherwise that it fails with an error whose message contains `problem`.
    fn check_entries(table: Arc<Table>, entries: usize, problem: Option<&str>) {
        match (read_all(table), problem) {
            (Ok(found), None) => assert_eq!(found, entries),
            (Err(err), Some(problem)) => assert!(err.to_string().contains(problem), "{err}"),
            (found, problem) => panic!("{found:?} instead of {problem:?}"),
        }
    }

    fn internal(key: &str, sequence: u64) -> Vec<u8> {
        let mut out = Vec::new();
        key::put(&mut out, key.as_bytes(), sequence);
        out
    }

    #[test]
    fn an_index_that_contradicts_its_blocks_is_damage() {
        for (index, problem) in [
            ([("b", 0, 0), ("d", 0, 1)], None),
            // A separator may be the last key of its block.
            ([("a", 1, 0), ("c", 1, 1)], None),
            ([("a", 2, 0), ("d", 0, 1)], Some("not in order")),
            ([("A", 0, 0), ("d", 0, 1)], Some("not in order")),
            ([("c", 0, 0), ("d", 0, 1)], Some("not in order")),
            ([("b", 0, 0), ("b", 0, 1)], Some("not in order")),
            ([("b", 0, 0), ("d", 0, 0)], Some("overlap")),
            ([("b", 0, 1), ("d", 0, 0)], Some("not in order")),
        ] {
            let index = index.map(|(key, sequence, block)| (internal(key, sequence), block));
            check_entries(table_with(&[&[("a", 1)], &[("c", 1)]], &index), 2, problem);
        }
        // The last separator is too short for an internal key.
        let index = [(internal("b", 0), 0), (b"d".to_vec(), 1)];
        let table = table_with(&[&[("a", 1)], &[("c", 1)]], &index);
        check_entries(table, 2, Some("malformed"));
        check_entries(table_with(&[], &[]), 0, Some("not in order"));
    }

    #[test]
    fn the_entries_of_a_key_begin_with_the_newest() {
        for (sequences, problem) in [
            ([2, 1], None),
            ([1, 1], Some("not in order")),
            ([1, 2], Some("not in order")),
        ] {
            let [first, second] = sequences.map(|sequence| ("a", sequence));
            let index = [(internal("d", 0), 0)];
            check_entries(
                table_with(&[&[first, second, ("c", 1)]], &index),
                3,
                problem,
            );
        }
    }

    /// Returns the bytes of a table with the value `value`.
    fn table_with_value(value: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut builder = TableBuilder::new(&mut bytes);
        builder.add(b"a", value).unwrap();
        builder.finish(3).unwrap();
        bytes
    }

    #[test]
    fn a_file_that_does_not_end_like_a_table_is_damaged() {
        let mut bytes = table_with_value(b"value");
        table_of(&bytes).read_index().unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        for (bytes, problem) in [
            (&bytes[..], "is not the end of a table"),
            (&bytes[..FOOTER_SIZE - 1], "too short"),
        ] {
            let err = table_of(bytes).read_index().unwrap_err().to_string();
            assert!(err.contains(problem), "{err}");
        }
    }

    #[test]
    fn small_blocks_are_read_once_and_large_ones_each_time() {
        let mut random = fastrand::Rng::with_seed(5);
        for (len, is_kept) in [(100, true), (2 * MAX_CACHED_SIZE as usize, false)] {
            let value: Vec<u8> = (0..len).map(|_| random.u8(..)).collect();
            let bytes = table_with_value(&value);
            let (table, cache) = (table_of(&bytes), BlockCache::default());
            let found = table.get(b"a", &cache).unwrap();
            assert!(found == Some(Some(value)));
            let TableSource::Open(file, _) = &table.source else {
                panic!("the file is open");
            };
            write_all_at(file, &vec![0; bytes.len()], 0).unwrap();
            let again = table.get(b"a", &cache).ok();
            assert!(again == is_kept.then_some(found), "{len}");
        }
    }

    #[test]
    fn a_block_cannot_be_much_longer_than_what_is_stored() {
        let chunk = vec![b'x'; SNAPPY_CHUNK_SIZE];
        for (len, is_possible) in [(1 << 20, false), (3 * SNAPPY_CHUNK_SIZE, true)] {
            let mut writer = BlockWriter::new(Vec::new());
            writer.begin(len).unwrap();
            writer.put(&chunk).unwrap();
            writer.missing = 0;
            let handle = writer.finish().unwrap();
            let block = table_of(&writer.out).long_block(handle, 0);
            assert_eq!(block.is_ok(), is_possible, "{len}");
        }
    }

    #[test]
    fn elements_of_every_kind_are_unpacked() {
        let mut part = Vec::new();
        let mut check = |stored: &[u8], expected: &[u8]| {
            // The bytes `next` belong to the next chunk.
            let longer = [stored, b"next"].concat();
            let taken = unpack(&longer, expected.len(), &mut part);
            assert_eq!(taken, Some(stored.len()));
            assert!(part == expected);
            let shorter = &stored[..stored.len() - 1];
            assert_eq!(unpack(shorter, expected.len(), &mut part), None);
        };
        for len in [1, 59, 60, 61, 256, 257, 65_536] {
            let literal: Vec<u8> = (0..len).map(|at| at as u8).collect();
            if len <= 60 {
                check(&[&[(len as u8 - 1) << 2][..], &literal].concat(), &literal);
            }
            let digits = (len as u32 - 1).to_le_bytes();
            for count in 1..=4 {
                if digits[count..] == [0; 4][count..] {
                    let tag = (59 + count as u8) << 2;
                    check(&[&[tag], &digits[..count], &literal].concat(), &literal);
                }
            }
        }
        for (copy, len) in [
            (&[1, 4][..], 4),
            (&[1 | 7 << 2, 4], 11),
            (&[2, 4, 0], 1),
            (&[2 | 63 << 2, 4, 0], 64),
            (&[3, 4, 0, 0, 0], 1),
            (&[3 | 63 << 2, 4, 0, 0, 0], 64),
        ] {
            let expected: Vec<u8> = b"abcd".iter().copied().cycle().take(4 + len).collect();
            check(&[&[3 << 2][..], b"abcd", copy].concat(), &expected);
        }
    }

    proptest! {
        #[test]
        fn chunks_are_unpacked_by_themselves(seed: u64, kinds in 1..200u64, len in 0..300_000usize) {
            let mut random = fastrand::Rng::with_seed(seed);
            // From bytes that are hard to compress to easy ones.
            let bytes: Vec<u8> = (0..len).map(|at| random.u64(..kinds) as u8 ^ (at % 7) as u8).collect();
            let stored = snap::raw::Encoder::new().compress_vec(&bytes).unwrap();
            let mut rest = &stored[..];
            prop_assert_eq!(take_size(&mut rest), Some(len));
            let mut part = Vec::new();
            for expected in bytes.chunks(SNAPPY_CHUNK_SIZE) {
                let taken = unpack(rest, expected.len(), &mut part).unwrap();
                prop_assert!(part == expected);
                rest = &rest[taken..];
            }
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn any_bytes_are_unpacked(bytes: Vec<u8>, len in 0..SNAPPY_CHUNK_SIZE) {
            let _ = unpack(&bytes, len, &mut Vec::new());
        }
    }
}

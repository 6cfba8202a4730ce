//! Writing tables from sorted entries.

use std::io::{self, Write};

use integer_encoding::VarInt;
use snap::raw::{Encoder, max_compress_len};

use super::{
    block::BlockBuilder,
    coding::{masked, put_varint},
    key,
    manifest::TableFile,
};

/// The size in bytes above which an uncompressed block is full: the builder writes a larger block before it adds the
/// next entry.
pub(crate) const BLOCK_SIZE: usize = 4 << 10;

/// The magic number at the end of every table.
pub(super) const MAGIC: [u8; 8] = 0xdb47_7524_8b80_fb57_u64.to_le_bytes();

/// The size in bytes of a table's footer: two block handles, each padded to its greatest length of 20 bytes, and
/// [`MAGIC`].
pub(super) const FOOTER: usize = 40 + MAGIC.len();

/// The number of bytes after each block: one byte for the compression and four for the checksum.
pub(super) const BLOCK_TRAILER: usize = 5;

/// The compression byte of a block that is stored as it is.
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
    /// Appends the handle to `out`, encoded as two varints: offset and size.
    fn put(self, out: &mut Vec<u8>) {
        put_varint(out, self.offset);
        put_varint(out, self.size);
    }
}

/// A writer of one LevelDB table from sorted entries. The entries get the sequence numbers 1, 2, 3 and so on.
pub(crate) struct TableBuilder<W> {
    file: BlockWriter<W>,
    block: BlockBuilder,
    index: BlockBuilder,
    /// The last key and the handle of the last written block. Its index entry is added when the next key is known,
    /// because the index key must separate the two keys.
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

    /// Adds an entry. `key` must be greater than all keys added before.
    ///
    /// # Errors
    ///
    /// Returns an error if writing a block that is full fails.
    pub(crate) fn add(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        self.begin_entry(key, value.len())?;
        self.block.value().extend_from_slice(value);
        Ok(())
    }

    /// Adds an entry whose value of `len` bytes is too long to be held in memory. `len` must be greater than
    /// [`BLOCK_SIZE`], and `key` must be greater than all keys added before.
    ///
    /// `put_value` receives a function that writes bytes, and must pass all bytes of the value to it, in one or more
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
        // The block is larger than `BLOCK_SIZE` now, so it would end before the next entry in any case.
        let (entries, restarts) = (self.block.entries(), self.block.restarts());
        self.file.begin(entries.len() + len + restarts.len())?;
        self.file.put(entries)?;
        put_value(&mut |part| self.file.put(part))?;
        self.file.put(&restarts)?;
        let handle = self.file.finish()?;
        self.end_block(handle);
        Ok(())
    }

    /// Appends the key and the value's length of an entry to the current block. If the block is full, writes the block
    /// first and begins a new one.
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

    /// Ends the block that was written at `handle`: stores its last key and its handle for the table's index, and
    /// clears the builder for the next block.
    fn end_block(&mut self, handle: Handle) {
        self.written = Some((self.block.last_key().to_vec(), handle));
        self.block.clear();
    }

    /// Adds an entry for the block at `handle` to the table's index, which lists all blocks. `separator` is an internal
    /// key that is greater than or equal to all keys of the block.
    fn index_block(&mut self, separator: &[u8], handle: Handle) {
        let mut place = Vec::new();
        handle.put(&mut place);
        self.index.add_key(separator, &[], place.len());
        self.index.value().extend_from_slice(&place);
    }

    /// Writes the last block, the index and the footer. Returns the table's description for the manifest, with the file
    /// number `number`.
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
            last_key.extend_from_slice(&last[..last.len() - key::TRAILER]);
            self.index_block(&key::separator_at_end(&last), handle);
        }
        // The metaindex is an empty block because the table has no filters. LevelDB reads filters only if a program
        // configures them.
        let mut footer = Vec::with_capacity(FOOTER);
        self.file.write_block(self.block.finish())?.put(&mut footer);
        self.file.write_block(self.index.finish())?.put(&mut footer);
        footer.resize(FOOTER - MAGIC.len(), 0);
        footer.extend_from_slice(&MAGIC);
        self.file.out.write_all(&footer)?;
        self.file.out.flush()?;
        Ok(TableFile {
            number,
            size: self.file.offset + FOOTER as u64,
            first_key: self.first_key,
            last_key,
            first_sequence: 1,
            last_sequence: self.entries,
        })
    }
}

/// A writer that compresses blocks with Snappy and appends the compression byte and the checksum. The bytes of a block
/// may be passed in several calls, so a large block is never held in memory as a whole.
///
/// Snappy's format is the length of the input, followed by chunks of [`STRETCH`] bytes that are compressed
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
    stretch: Vec<u8>,
    /// The number of bytes of the current block that [`put`](BlockWriter::put) has not received yet.
    missing: usize,
}

/// The size in bytes of the chunks that Snappy compresses independently of each other.
pub(super) const STRETCH: usize = 1 << 16;

impl<W: Write> BlockWriter<W> {
    fn new(out: W) -> BlockWriter<W> {
        BlockWriter {
            out,
            offset: 0,
            encoder: Encoder::new(),
            compressed: Vec::new(),
            start: 0,
            checksum: 0,
            stretch: Vec::new(),
            missing: 0,
        }
    }

    /// Compresses and writes a whole block with its trailer, and returns the block's location.
    fn write_block(&mut self, block: &[u8]) -> io::Result<Handle> {
        self.begin(block.len())?;
        self.put(block)?;
        self.finish()
    }

    /// Begins a block whose uncompressed size is `len` bytes.
    ///
    /// # Errors
    ///
    /// Returns an error if `len` does not fit into 32 bits, or if writing fails.
    fn begin(&mut self, len: usize) -> io::Result<()> {
        if u32::try_from(len).is_err() {
            return Err(io::Error::other("an entry has more than 4 GiB"));
        }
        (self.start, self.checksum, self.missing) = (self.offset, 0, len);
        let mut header = Vec::new();
        put_varint(&mut header, len as u64);
        self.write(&header)
    }

    /// Appends `bytes` to the current block. Every chunk that becomes complete is compressed and written.
    ///
    /// # Errors
    ///
    /// Returns an error if the block becomes longer than the length passed to [`begin`](BlockWriter::begin), or if
    /// writing fails.
    fn put(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let missing = self.missing.checked_sub(bytes.len());
        self.missing = missing.ok_or_else(|| io::Error::other("a value is longer than it was"))?;
        while !bytes.is_empty() {
            let room = STRETCH - self.stretch.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.stretch.extend_from_slice(now);
            bytes = later;
            if self.stretch.len() == STRETCH {
                self.write_stretch()?;
            }
        }
        Ok(())
    }

    /// Compresses and writes the bytes that were collected for the current Snappy chunk.
    fn write_stretch(&mut self) -> io::Result<()> {
        let mut compressed = std::mem::take(&mut self.compressed);
        let room = max_compress_len(self.stretch.len());
        compressed.resize(room.max(compressed.len()), 0);
        let len = self.encoder.compress(&self.stretch, &mut compressed)?;
        let header = self.stretch.len().required_space();
        self.stretch.clear();
        self.write(&compressed[header..len])?;
        self.compressed = compressed;
        Ok(())
    }

    /// Writes bytes to the file and adds them to the checksum of the current block.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.checksum = crc32c::crc32c_append(self.checksum, bytes);
        self.offset += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    /// Writes the last chunk and the trailer of the current block, and returns the block's location.
    ///
    /// # Errors
    ///
    /// Returns an error if the block is shorter than the length passed to [`begin`](BlockWriter::begin), or if writing
    /// fails.
    fn finish(&mut self) -> io::Result<Handle> {
        if self.missing > 0 {
            return Err(io::Error::other("a value is shorter than it was"));
        }
        if !self.stretch.is_empty() {
            self.write_stretch()?;
        }
        let (offset, size) = (self.start, self.offset - self.start);
        self.write(&[SNAPPY])?;
        let checksum = masked(self.checksum).to_le_bytes();
        self.write(&checksum)?;
        Ok(Handle { offset, size })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of a block do not depend on the size of its chunks, because Snappy cuts them too. But a chunk is in memory.
    #[test]
    fn a_block_in_parts_is_never_in_memory_as_a_whole() {
        let parts = [
            vec![1; 20],
            vec![2; 5 * STRETCH],
            vec![3; STRETCH - 20],
            vec![4],
        ];
        let mut writer = BlockWriter::new(Vec::new());
        writer.begin(parts.iter().map(Vec::len).sum()).unwrap();
        for part in &parts {
            writer.put(part).unwrap();
            assert!(writer.stretch.len() < STRETCH, "{}", writer.stretch.len());
        }
        writer.finish().unwrap();
        let mut whole = BlockWriter::new(Vec::new());
        whole.write_block(&parts.concat()).unwrap();
        assert!(writer.out == whole.out);
    }
}

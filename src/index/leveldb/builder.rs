//! Making tables from entries that are in order.

use std::io::{self, Write};

use integer_encoding::VarInt;
use snap::raw::{Encoder, max_compress_len};

use super::{
    block::BlockBuilder,
    coding::{masked, put_varint},
    key,
    manifest::TableFile,
};

/// A block ends before the entry that comes when it has more bytes than this.
pub(in crate::index) const BLOCK_SIZE: usize = 4 << 10;

/// The last bytes of every table.
pub(super) const MAGIC: [u8; 8] = 0xdb47_7524_8b80_fb57_u64.to_le_bytes();

/// Two places of blocks, as long as they can get, and [`MAGIC`].
pub(super) const FOOTER: usize = 40 + MAGIC.len();

/// A block has this many bytes more after its own: how it is compressed, and a checksum.
pub(super) const BLOCK_TRAILER: usize = 5;

/// How a block is compressed.
pub(super) const UNCOMPRESSED: u8 = 0;
pub(super) const SNAPPY: u8 = 1;

/// Where a block is in its file.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Handle {
    pub offset: u64,
    /// Its bytes, as they are stored, without the trailer.
    pub size: u64,
}

impl Handle {
    fn put(self, out: &mut Vec<u8>) {
        put_varint(out, self.offset);
        put_varint(out, self.size);
    }
}

/// Writes a table. Entries get the sequence numbers 1, 2 and so on.
pub(in crate::index) struct TableBuilder<W> {
    file: BlockWriter<W>,
    block: BlockBuilder,
    index: BlockBuilder,
    /// The last key of the block that was written last, and the block's place: its index entry is made
    /// when the next key is known.
    written: Option<(Vec<u8>, Handle)>,
    first_key: Vec<u8>,
    entries: u64,
}

impl<W: Write> TableBuilder<W> {
    /// Begins a table that goes to `out`.
    pub(in crate::index) fn new(out: W) -> TableBuilder<W> {
        TableBuilder {
            file: BlockWriter::new(out),
            block: BlockBuilder::new(),
            index: BlockBuilder::new(),
            written: None,
            first_key: Vec::new(),
            entries: 0,
        }
    }

    /// Adds an entry, whose key must come after all others.
    pub(in crate::index) fn add(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        self.begin_entry(key, value.len())?;
        self.block.value().extend_from_slice(value);
        Ok(())
    }

    /// Adds an entry whose value has more than [`BLOCK_SIZE`] bytes and is not in memory: `put_value` hands its `len` bytes to the function it
    /// is given, in parts.
    pub(in crate::index) fn add_long(
        &mut self,
        key: &[u8],
        len: usize,
        put_value: impl FnOnce(&mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.begin_entry(key, len)?;
        // The next entry would begin a new block anyway.
        let (entries, restarts) = (self.block.entries(), self.block.restarts());
        self.file.begin(entries.len() + len + restarts.len())?;
        self.file.put(entries)?;
        put_value(&mut |part| self.file.put(part))?;
        self.file.put(&restarts)?;
        let handle = self.file.finish()?;
        self.end_block(handle);
        Ok(())
    }

    /// Adds an entry up to its value. Ends the block before it if that is full.
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

    /// Begins a new block after one that was written.
    fn end_block(&mut self, handle: Handle) {
        self.written = Some((self.block.last_key().to_vec(), handle));
        self.block.clear();
    }

    fn index_block(&mut self, separator: &[u8], handle: Handle) {
        let mut place = Vec::new();
        handle.put(&mut place);
        self.index.add_key(separator, &[], place.len());
        self.index.value().extend_from_slice(&place);
    }

    /// Writes the rest of the table, which is to have the number `number`.
    pub(in crate::index) fn finish(mut self, number: u64) -> io::Result<TableFile> {
        if !self.block.is_empty() {
            self.write_block()?;
        }
        let mut last_key = Vec::new();
        if let Some((last, handle)) = self.written.take() {
            last_key.extend_from_slice(&last[..last.len() - key::TRAILER]);
            self.index_block(&key::separator_at_end(&last), handle);
        }
        // The metaindex is empty: a table has no filters, which LevelDB reads only if a program asks for them.
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

/// Writes blocks with their checksums. A block may come in parts, and is never in memory as a whole.
///
/// Snappy writes the length of all, then stretches of 64 KiB, each compressed by itself. So the result is
/// that of compressing the whole.
struct BlockWriter<W> {
    out: W,
    offset: u64,
    encoder: Encoder,
    compressed: Vec<u8>,
    /// Where the present block begins, and the checksum of what is written of it.
    start: u64,
    checksum: u32,
    /// Its bytes that have come and are not yet written, and how many have yet to come.
    stretch: Vec<u8>,
    missing: usize,
}

/// The bytes that Snappy compresses at a time.
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

    fn write_block(&mut self, block: &[u8]) -> io::Result<Handle> {
        self.begin(block.len())?;
        self.put(block)?;
        self.finish()
    }

    /// Begins a block of `len` bytes.
    fn begin(&mut self, len: usize) -> io::Result<()> {
        if u32::try_from(len).is_err() {
            return Err(io::Error::other("an entry has more than 4 GiB"));
        }
        (self.start, self.checksum, self.missing) = (self.offset, 0, len);
        let mut header = Vec::new();
        put_varint(&mut header, len as u64);
        self.write(&header)
    }

    /// Takes the next bytes of the block.
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

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.checksum = crc32c::crc32c_append(self.checksum, bytes);
        self.offset += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    /// Ends the block when all its bytes have come.
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

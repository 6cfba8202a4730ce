//! Making tables from entries that are in order.

use std::io::{self, Write};

use snap::raw::{Encoder, max_compress_len};

use super::{
    block::BlockBuilder,
    coding::{masked, put_varint},
    filter::{self, FilterBuilder},
    key,
    manifest::TableFile,
};

/// A block ends before the entry that comes when it has more bytes than this.
const BLOCK_SIZE: usize = 4 << 10;

/// The last bytes of every table.
pub(super) const MAGIC: [u8; 8] = 0xdb47_7524_8b80_fb57_u64.to_le_bytes();

/// Two places of blocks, as long as they can get, and [`MAGIC`].
pub(super) const FOOTER: usize = 40 + MAGIC.len();

/// What a block has behind its bytes: how it is compressed, and a checksum.
pub(super) const BLOCK_TRAILER: usize = 5;

/// How a block is compressed.
pub(super) const UNCOMPRESSED: u8 = 0;
pub(super) const SNAPPY: u8 = 1;

/// Where a block stands in its file.
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
    filter: FilterBuilder,
    first_key: Vec<u8>,
    key: Vec<u8>,
    entries: u64,
}

impl<W: Write> TableBuilder<W> {
    /// Begins a table that goes to `out`.
    pub(in crate::index) fn new(out: W) -> TableBuilder<W> {
        TableBuilder {
            file: BlockWriter {
                out,
                offset: 0,
                encoder: Encoder::new(),
                compressed: Vec::new(),
            },
            block: BlockBuilder::new(),
            index: BlockBuilder::new(),
            filter: FilterBuilder::default(),
            first_key: Vec::new(),
            key: Vec::new(),
            entries: 0,
        }
    }

    /// Adds an entry, whose key must come behind all others.
    pub(in crate::index) fn add(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        if self.entries == 0 {
            self.first_key.extend_from_slice(key);
        }
        self.entries += 1;
        self.key.clear();
        key::put(&mut self.key, key, self.entries);
        if self.block.size() > BLOCK_SIZE {
            let separator = key::separator(self.block.last_key(), &self.key);
            self.end_block(&separator)?;
        }
        self.filter.add(key);
        self.block.add(&self.key, value);
        Ok(())
    }

    /// Writes the present block. Its entry in the index is a key from its last one on.
    fn end_block(&mut self, separator: &[u8]) -> io::Result<()> {
        let handle = self.file.write_compressed(self.block.finish())?;
        self.block.clear();
        self.filter.start_block(self.file.offset);
        let mut place = Vec::new();
        handle.put(&mut place);
        self.index.add(separator, &place);
        Ok(())
    }

    /// Writes the rest of the table, which is to have the number `number`.
    pub(in crate::index) fn finish(mut self, number: u64) -> io::Result<TableFile> {
        let mut last_key = Vec::new();
        if !self.block.is_empty() {
            let last = self.block.last_key();
            last_key.extend_from_slice(&last[..last.len() - key::TRAILER]);
            let separator = key::separator_at_end(last);
            self.end_block(&separator)?;
        }
        let filters = self.file.write(self.filter.finish(), UNCOMPRESSED)?;
        let mut place = Vec::new();
        filters.put(&mut place);
        self.block.add(filter::NAME, &place);
        let mut footer = Vec::with_capacity(FOOTER);
        self.file
            .write_compressed(self.block.finish())?
            .put(&mut footer);
        self.file
            .write_compressed(self.index.finish())?
            .put(&mut footer);
        footer.resize(FOOTER - MAGIC.len(), 0);
        footer.extend_from_slice(&MAGIC);
        self.file.out.write_all(&footer)?;
        self.file.out.flush()?;
        Ok(TableFile {
            number,
            size: self.file.offset + FOOTER as u64,
            entries: self.entries,
            first_key: self.first_key,
            last_key,
        })
    }
}

/// Writes blocks with their checksums.
struct BlockWriter<W> {
    out: W,
    offset: u64,
    encoder: Encoder,
    compressed: Vec<u8>,
}

impl<W: Write> BlockWriter<W> {
    fn write_compressed(&mut self, block: &[u8]) -> io::Result<Handle> {
        let mut compressed = std::mem::take(&mut self.compressed);
        let room = max_compress_len(block.len());
        if compressed.len() < room {
            compressed.resize(room, 0);
        }
        // The length of a block must fit into 32 bits.
        let len = self.encoder.compress(block, &mut compressed)?;
        let handle = self.write(&compressed[..len], SNAPPY);
        self.compressed = compressed;
        handle
    }

    fn write(&mut self, bytes: &[u8], compression: u8) -> io::Result<Handle> {
        let checksum = crc32c::crc32c_append(crc32c::crc32c(bytes), &[compression]);
        self.out.write_all(bytes)?;
        self.out.write_all(&[compression])?;
        self.out.write_all(&masked(checksum).to_le_bytes())?;
        let handle = Handle {
            offset: self.offset,
            size: bytes.len() as u64,
        };
        self.offset += handle.size + BLOCK_TRAILER as u64;
        Ok(handle)
    }
}

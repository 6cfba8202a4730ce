//! Reading tables.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use super::{
    Damage,
    block::Block,
    builder::{BLOCK_TRAILER, FOOTER, Handle, MAGIC, SNAPPY, UNCOMPRESSED},
    coding::{Fields, masked},
    key::{self, Kind},
    manifest::TableFile,
};
use crate::{
    error::{At, Error, Result},
    positioned::read_exact_at,
};

/// The most that a byte of Snappy's output can stand for, and a little more.
pub(super) const MOST_EXPANSION: usize = 64;

/// The most bytes of a table that are read at once. Ours have a mebibyte before they are compressed, unless a value is
/// longer.
const MOST_AT_ONCE: u64 = 4 << 20;

/// A table that is open.
#[derive(Debug)]
pub(super) struct Table {
    path: PathBuf,
    file: File,
    size: u64,
    /// The block that tells where the others are, once it has been asked for.
    index: OnceLock<Block>,
}

impl Table {
    /// Opens a table of a directory.
    pub(super) fn open(directory: &Path, table: &TableFile) -> Result<Table> {
        let mut path = directory.join(TableFile::name(table.number));
        let mut file = File::open(&path);
        if let Err(err) = &file
            && err.kind() == io::ErrorKind::NotFound
        {
            let old = directory.join(TableFile::old_name(table.number));
            if old.exists() {
                path = old;
                file = File::open(&path);
            }
        }
        let file = file.at(&path, "open")?;
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
        Ok(Table {
            path,
            file,
            size,
            index: OnceLock::new(),
        })
    }

    /// The file, to tell it from another of the same name.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// The newest entry of a key: its value, `Some(None)` if it says that the key is deleted, `None` if
    /// there is none.
    pub(super) fn get(&self, key: &[u8]) -> Result<Option<Option<Vec<u8>>>> {
        self.find(key, self.index()?)
    }

    fn find(&self, key: &[u8], index: &Block) -> Result<Option<Option<Vec<u8>>>> {
        let in_file = |damage: Damage| damage.of(&self.path);
        let Some(place) = index.find(key).map_err(in_file)? else {
            return Ok(None);
        };
        let block = self.block(self.handle(index.value(&place))?)?;
        let Some(found) = block.find(key).map_err(in_file)? else {
            return Ok(None);
        };
        match key::parse(&found.key) {
            Some((found_key, _, Kind::Value)) if found_key == key => {
                Ok(Some(Some(block.into_value(&found))))
            }
            Some((found_key, _, Kind::Deletion)) if found_key == key => Ok(Some(None)),
            _ => Ok(None),
        }
    }

    /// What is wrong with the file, as an error.
    pub(super) fn of(&self, damage: Damage) -> Error {
        damage.of(&self.path)
    }

    pub(super) fn index(&self) -> Result<&Block> {
        if let Some(index) = self.index.get() {
            return Ok(index);
        }
        let index = self.read_index()?;
        Ok(self.index.get_or_init(|| index))
    }

    /// Reads the index from the file.
    pub(super) fn read_index(&self) -> Result<Block> {
        self.block(self.index_handle()?)
    }

    /// Where the footer says that the index is.
    fn index_handle(&self) -> Result<Handle> {
        let start = self.size.checked_sub(FOOTER as u64);
        let start = start.ok_or_else(|| self.damaged(0, "it is too short for a table"))?;
        let mut footer = [0; FOOTER];
        read_exact_at(&self.file, &mut footer, start).at(&self.path, "read")?;
        let (handles, magic) = footer.split_at(FOOTER - MAGIC.len());
        if magic != MAGIC {
            return Err(self.damaged(start, "it does not end as a table does"));
        }
        let mut fields = Fields::new(handles);
        let handle = || -> Option<Handle> {
            let (_metaindex_offset, _metaindex_size) = (fields.varint()?, fields.varint()?);
            read_handle(&mut fields)
        }();
        handle.ok_or_else(|| self.damaged(start, "the footer is malformed"))
    }

    pub(super) fn handle(&self, place: &[u8]) -> Result<Handle> {
        read_handle(&mut Fields::new(place))
            .ok_or_else(|| self.damaged(self.size, "the place of a block is malformed"))
    }

    /// Reads a block and verifies its checksum.
    pub(super) fn block(&self, handle: Handle) -> Result<Block> {
        let mut stored = vec![0; self.stored_len(handle)?];
        read_exact_at(&self.file, &mut stored, handle.offset).at(&self.path, "read")?;
        self.unpacked(&stored, handle, Vec::new())
    }

    /// Reads bytes of the file.
    pub(super) fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<()> {
        read_exact_at(&self.file, bytes, offset).at(&self.path, "read")
    }

    /// Reads all of the file, so that blocks can be read with [`Table::block_of`]; `None` if it is larger than a table
    /// need be.
    pub(super) fn read_whole(&self) -> Result<Option<Vec<u8>>> {
        if self.size > MOST_AT_ONCE {
            return Ok(None);
        }
        let mut bytes = vec![0; self.size as usize];
        read_exact_at(&self.file, &mut bytes, 0).at(&self.path, "read")?;
        Ok(Some(bytes))
    }

    /// The same as [`Table::block`] from the bytes of the file. Takes the room of another block.
    pub(super) fn block_of(&self, file: &[u8], handle: Handle, room: Vec<u8>) -> Result<Block> {
        let len = self.stored_len(handle)?;
        let start = handle.offset as usize;
        self.unpacked(&file[start..start + len], handle, room)
    }

    /// How many bytes a block takes in the file, all of which are there.
    pub(super) fn stored_len(&self, handle: Handle) -> Result<usize> {
        let outside = || self.damaged(handle.offset, "a block lies outside of the file");
        let len = handle.size.checked_add(BLOCK_TRAILER as u64);
        let len = len.ok_or_else(outside)?;
        let end = handle.offset.checked_add(len).ok_or_else(outside)?;
        if end > self.size {
            return Err(outside());
        }
        usize::try_from(len).map_err(|_| outside())
    }

    /// Verifies the checksum of a block with its trailer, and decompresses it.
    fn unpacked(&self, stored: &[u8], handle: Handle, mut room: Vec<u8>) -> Result<Block> {
        let damaged = |problem| self.damaged(handle.offset, problem);
        let (stored, checksum) = stored.split_at(stored.len() - size_of::<u32>());
        if masked(crc32c::crc32c(stored)).to_le_bytes() != checksum[..] {
            return Err(damaged("the checksum of a block does not match"));
        }
        let (compression, stored) = stored.split_last().expect("a block has a trailer");
        match *compression {
            UNCOMPRESSED => {
                room.clear();
                room.extend_from_slice(stored);
            }
            SNAPPY => decompress(stored, &mut room)
                .ok_or_else(|| damaged("a block cannot be decompressed"))?,
            _ => return Err(damaged("a block is compressed in an unknown way")),
        }
        Block::new(room, handle.offset).map_err(|damage| damage.of(&self.path))
    }

    pub(super) fn damaged(&self, offset: u64, problem: &'static str) -> Error {
        Damage { offset, problem }.of(&self.path)
    }
}

fn read_handle(fields: &mut Fields<'_>) -> Option<Handle> {
    Some(Handle {
        offset: fields.varint()?,
        size: fields.varint()?,
    })
}

fn decompress(stored: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let len = snap::raw::decompress_len(stored).ok()?;
    if len / MOST_EXPANSION > stored.len() {
        return None;
    }
    out.resize(len, 0);
    let written = snap::raw::Decoder::new().decompress(stored, out).ok()?;
    (written == len).then_some(())
}

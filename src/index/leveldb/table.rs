//! Reading tables.

use std::{
    fs::File,
    io,
    path::Path,
    sync::{Arc, Mutex, OnceLock},
};

use super::{
    Damage,
    block::{Block, EntryState},
    builder::{BLOCK_TRAILER, FOOTER, Handle, MAGIC, SNAPPY, UNCOMPRESSED},
    coding::{masked, take_varint},
    files::open_regular,
    key::EntryKind,
    manifest::TableFile,
};
use crate::{
    error::{At, Error, Result},
    positioned::read_exact_at,
    task,
};

/// A byte of Snappy's output unpacks to fewer bytes than this.
pub(super) const MOST_EXPANSION: usize = 64;

/// A block that was read is kept if it takes at most this many bytes in the file.
const MOST_KEPT: u64 = 1 << 14;

/// A cache of the blocks that were read last, in 16 slots that all tables share: keys that are looked up in order are
/// often in the same block. A lookup reads the block from the file if another thread holds the slot's lock.
#[derive(Debug, Default)]
pub(super) struct LastBlocks([Mutex<Option<LastBlock>>; 16]);

#[derive(Debug)]
struct LastBlock {
    table: u64,
    offset: u64,
    block: Arc<Block>,
}

/// A table that is open.
#[derive(Debug)]
pub(super) struct Table {
    /// What the manifest says of it.
    pub known: TableFile,
    pub(super) path: Arc<Path>,
    file: File,
    /// The block that maps keys to the offsets of the others, once it was read. It is set only by the thread that holds
    /// `sets_index`, so that nothing waits for a thread which a fork left behind in the parent.
    index: OnceLock<Arc<Block>>,
    sets_index: Mutex<()>,
}

impl Table {
    /// Opens a table of a directory.
    pub(super) fn open(directory: &Path, table: &TableFile) -> Result<Table> {
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
        Ok(Table {
            known: table.clone(),
            path: path.into(),
            file,
            index: OnceLock::new(),
            sets_index: Mutex::default(),
        })
    }

    /// The file, to compare it with another of the same name.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// The newest entry of a key: its value, `Some(None)` if it says that the key is deleted, `None` if
    /// there is none.
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

    /// Like [`Table::block`], but reads a small block once if it is asked for several times in a row.
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

    /// A problem of the file.
    pub(super) fn problem(&self, problem: &str) -> Error {
        Error::damaged(&*self.path, problem)
    }

    /// Returns the index block, which is read at the first call. Threads that call meanwhile each read it too.
    fn index(&self) -> Result<Arc<Block>> {
        if let Some(index) = self.index.get() {
            return Ok(Arc::clone(index));
        }
        let index = Arc::new(self.read_index()?);
        if let Some(_sets) = task::try_lock(&self.sets_index) {
            // An error: another thread was faster.
            let _ = self.index.set(Arc::clone(&index));
        }
        Ok(index)
    }

    /// Reads the index from the file.
    pub(super) fn read_index(&self) -> Result<Block> {
        let [_, index] = self.footer()?;
        self.block(index)
    }

    /// Reads the metaindex, and what it names, such as filters.
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

    /// Where the footer says that the metaindex and the index are.
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

    /// The place of a block that an entry of another has as its value.
    pub(super) fn handle(&self, block: &Block, place: &EntryState) -> Result<Handle> {
        take_handle(&mut block.value(place).unwrap_or_default())
            .ok_or_else(|| self.damaged(self.known.size, "the place of a block is malformed"))
    }

    /// Reads a block and verifies its checksum.
    pub(super) fn block(&self, handle: Handle) -> Result<Block> {
        self.unpacked(&self.stored(handle)?, handle)
    }

    /// A block with its trailer.
    fn stored(&self, handle: Handle) -> Result<Vec<u8>> {
        let mut stored = vec![0; self.stored_len(handle)?];
        self.read_at(&mut stored, handle.offset)?;
        Ok(stored)
    }

    /// Reads bytes of the file.
    pub(super) fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<()> {
        read_exact_at(&self.file, bytes, offset).at(&self.path, "read")
    }

    /// How many bytes a block takes in the file; the file has all of them.
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

    /// A block with its trailer, without the checksum, which is verified.
    fn checked<'s>(&self, stored: &'s [u8], handle: Handle) -> Result<&'s [u8]> {
        let (stored, checksum) = stored.split_at(stored.len() - size_of::<u32>());
        if masked(crc32c::crc32c(stored)).to_le_bytes() != checksum[..] {
            return Err(self.damaged(handle.offset, "the checksum of a block does not match"));
        }
        Ok(stored)
    }

    /// Verifies the checksum of a block with its trailer, and decompresses it.
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

    pub(super) fn damaged(&self, offset: u64, problem: &'static str) -> Error {
        Damage { offset, problem }.of(&self.path)
    }
}

fn take_handle(rest: &mut &[u8]) -> Option<Handle> {
    Some(Handle {
        offset: take_varint(rest)?,
        size: take_varint(rest)?,
    })
}

fn decompress(stored: &[u8]) -> Option<Vec<u8>> {
    let len = snap::raw::decompress_len(stored).ok()?;
    if len / MOST_EXPANSION > stored.len() {
        return None;
    }
    snap::raw::Decoder::new().decompress_vec(stored).ok()
}

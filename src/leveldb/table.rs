//! Reading tables: single keys with [`Table::get`], and blocks for the cursors.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock},
};

use super::{
    Damage,
    block::{Block, EntryState},
    builder::{BLOCK_TRAILER, FOOTER, Handle, MAGIC, SNAPPY, UNCOMPRESSED},
    coding::{masked, take_varint},
    files::{TableSource, open_regular},
    key::EntryKind,
    manifest::TableFile,
};
use crate::{
    error::{At, Error, Result},
    positioned::read_exact_at,
    task,
};

/// An upper bound on the number of bytes to which one byte of Snappy's output decompresses. A block that claims to be
/// larger is damaged.
pub(super) const MOST_EXPANSION: usize = 64;

/// The greatest stored size in bytes of a block that the cache keeps.
const MOST_KEPT: u64 = 1 << 14;

/// A cache of the blocks that were read last, in 16 slots that all tables of a database share. It makes lookups of
/// neighbouring keys fast, because these are often in the same block. A lookup reads the block from the file if another
/// thread holds the slot's lock.
#[derive(Debug, Default)]
pub(super) struct LastBlocks([Mutex<Option<LastBlock>>; 16]);

/// A cached block.
#[derive(Debug)]
struct LastBlock {
    /// The number of the table.
    table: u64,
    offset: u64,
    block: Arc<Block>,
}

/// An open table.
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

/// Opens the file of a table in `directory`, and returns it with its path. The file may have the name that older versions
/// of LevelDB gave it.
///
/// # Errors
///
/// Returns an error if the file cannot be opened, is not a regular file, or does not have the size that the manifest names.
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
    /// Creates a table from its file, which has the path `path`.
    pub(super) fn new(known: TableFile, path: PathBuf, source: TableSource) -> Table {
        Table {
            known,
            path: path.into(),
            source,
            index: OnceLock::new(),
            sets_index: Mutex::default(),
        }
    }

    /// Returns the newest entry of a key: `Some(Some(value))` if it sets the value, `Some(None)` if it deletes the key,
    /// and `None` if the table does not contain the key.
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

    /// Returns the block at `handle` from the cache, or reads it and caches it if it is small.
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

    /// Returns an error that the table has `problem`, a complete predicate such as "is damaged".
    pub(super) fn problem(&self, problem: &str) -> Error {
        Error::damaged(&*self.path, problem)
    }

    /// Returns the index block and reads it at the first call. Threads that call before the first one has finished each
    /// read the block.
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

    /// Reads the index block from the file.
    pub(super) fn read_index(&self) -> Result<Block> {
        let [_, index] = self.footer()?;
        self.block(index)
    }

    /// Reads the metaindex and the blocks that it lists, such as filters, and verifies their checksums.
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

    /// Reads the footer and returns the handles of the metaindex and the index.
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

    /// Decodes the value of an index entry: the handle of another block.
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

    /// Reads the stored bytes of the block at `handle`, including the trailer.
    fn stored(&self, handle: Handle) -> Result<Vec<u8>> {
        let mut stored = vec![0; self.stored_len(handle)?];
        self.read_at(&mut stored, handle.offset)?;
        Ok(stored)
    }

    /// Fills `bytes` from the file, beginning at `offset`.
    pub(super) fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<()> {
        self.source.with_file(&self.path, |file| {
            read_exact_at(file, bytes, offset).at(&self.path, "read")
        })
    }

    /// Returns the stored length of a block in bytes, including the trailer.
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

    /// Verifies the checksum of a stored block and returns the block without it. The compression byte remains at the
    /// end.
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

    /// Verifies the checksum of a stored block and decompresses it.
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

    /// Returns an error that the table has `problem` at `offset`.
    pub(super) fn damaged(&self, offset: u64, problem: &'static str) -> Error {
        Damage { offset, problem }.of(&self.path)
    }
}

/// Removes a handle from the front of `rest`, or returns `None` if it is malformed.
fn take_handle(rest: &mut &[u8]) -> Option<Handle> {
    Some(Handle {
        offset: take_varint(rest)?,
        size: take_varint(rest)?,
    })
}

/// Decompresses a Snappy block. Returns `None` if it is malformed or claims an impossible length.
fn decompress(stored: &[u8]) -> Option<Vec<u8>> {
    let len = snap::raw::decompress_len(stored).ok()?;
    if len / MOST_EXPANSION > stored.len() {
        return None;
    }
    snap::raw::Decoder::new().decompress_vec(stored).ok()
}
